#include "cann/profiling/recorder.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host_cann/runtime/json.h"
#include "host_cann/runtime/named_file.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/write_all.h"

namespace aclnn_host {
namespace {

// The size of the buffer. Writes should be rare, and short compared with a task.
constexpr size_t kBufferSize = size_t{1} << 20;

}  // namespace

Recorder& recorder() {
  return PerProcess<Recorder>::get();
}

void Recorder::after_fork() noexcept {
  profile_parts.store(0);
  profiled_devices.store(0);
}

std::string begin_record(std::string_view kind, int64_t begin, int64_t end) {
  std::string record = R"({"kind":)";
  add_text(record, kind);
  record += R"(,"thread":)";
  add_number(record, syscall(SYS_gettid));  // a libc function only since glibc 2.30
  record += R"(,"begin":)";
  add_number(record, begin);
  record += R"(,"end":)";
  add_number(record, end);
  return record;
}

int Recorder::open(const std::string& path, uint64_t limit, std::string_view first) {
  const std::lock_guard lock(mutex_);
  buffer_.reserve(kBufferSize + kBufferSize / 4);
  const NamedFile opened = open_named_file(path, Existing::kRefused);
  if (opened.error != 0) return opened.error;
  const int file = opened.descriptor;
  // Written at once, so that the file is readable even if the process is killed.
  buffer_.append(first).append("\n");
  size_ = buffer_.size();
  const int error = write_all(file, buffer_);
  buffer_.clear();
  if (error != 0) {
    ::close(file);
    return error;
  }
  file_ = file;
  limit_ = limit;
  outcome_ = {};
  profile_number.fetch_add(1);
  return 0;
}

void Recorder::add(uint64_t profile, std::string_view record) noexcept {
  const std::lock_guard lock(mutex_);
  if (file_ < 0 || profile != profile_number.load()) return;
  const size_t length = record.size() + 1;
  if (outcome_.error != 0 || length > limit_ - size_) {
    ++outcome_.lost;
    return;
  }
  if (buffer_.size() + length > buffer_.capacity()) flush();
  if (buffer_.size() + length > buffer_.capacity()) {  // a single record is larger than the buffer
    ++outcome_.lost;
    return;
  }
  buffer_ += record;
  buffer_ += '\n';
  size_ += length;
  ++buffered_;
  if (buffer_.size() >= kBufferSize) flush();
}

void Recorder::flush() noexcept {
  const int error = outcome_.error != 0 ? outcome_.error : write_all(file_, buffer_);
  if (error != 0) {
    outcome_.error = error;
    outcome_.lost += buffered_;
  }
  buffer_.clear();
  buffered_ = 0;
}

Recorder::Outcome Recorder::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) return {};
  flush();
  if (::close(file_) != 0 && outcome_.error == 0) outcome_.error = errno;
  file_ = -1;
  std::string().swap(buffer_);
  return outcome_;
}

}  // namespace aclnn_host
