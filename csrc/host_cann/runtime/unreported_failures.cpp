#include "host_cann/runtime/unreported_failures.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <fcntl.h>

#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/write_all.h"

namespace aclnn_host {
namespace {

constexpr size_t kMostFailures = 256;  // remembered at most
constexpr size_t kLongestText = 4096;  // bytes of one text in the launcher's memory
// Limits of that memory for writing a failure, and for marking it as reported: the line of a mark
// is less than half as long as that of a failure, so all marks fit.
constexpr off_t kMostOfFailures = 1 << 20;
constexpr off_t kMostBytes = 2 * kMostOfFailures;

struct Failure {
  uint64_t number;  // in the launcher's memory
  int32_t device;
  aclError status;
  std::string text;
};

struct UnreportedFailures {
  std::mutex mutex;
  std::vector<Failure> all;  // in order of occurrence
  uint64_t last = 0;         // number of the last one
  std::atomic<bool> has_any = false;
  static void after_fork() noexcept {}
};

// The variable's text at its first read.
const std::string& where_to_write() {
  static const std::string* const text = [] {
    const char* const found = std::getenv("ACLNN_TORCH_FAILURES");
    return new std::string(found == nullptr ? "" : found);
  }();
  return *text;
}

// True if a link leads to memory made by `aclnn-torch run`.
bool leads_to_memory_of_run(const char* link) noexcept {
  char name[64];
  const ssize_t length = readlink(link, name, sizeof(name));
  return length > 0 && std::string_view(name, static_cast<size_t>(length)) ==
                           "/memfd:aclnn_torch_failures (deleted)";
}

// Opens that memory for one line; -1 if there is none, it belongs to another user, or it has `most`
// bytes. The variable may be left over from a process that has ended, and its path may lead to
// another program's file. Nothing else is opened, because opening a pipe or a device has effects.
int open_memory(off_t most) noexcept {
  const char* const path = where_to_write().c_str();
  if (!leads_to_memory_of_run(path)) return -1;
  const int memory = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (memory < 0) return -1;
  char own[32];
  std::snprintf(own, sizeof(own), "/proc/self/fd/%d", memory);
  struct stat found{};
  if (leads_to_memory_of_run(own) && fstat(memory, &found) == 0 && found.st_uid == geteuid() &&
      found.st_size < most) {
    return memory;
  }
  close(memory);
  return -1;
}

// Writes a line: the process, the number, and `members`, which begin with a comma.
void write_line(uint64_t number, std::string_view members, off_t most) noexcept {
  const int memory = open_memory(most);
  if (memory < 0) return;
  try {
    std::string line = R"({"process":)";
    add_number(line, getpid());
    line += R"(,"number":)";
    add_number(line, number);
    line.append(members).append("}\n");
    write_all(memory, line);
  } catch (...) {
    // Out of memory.
  }
  close(memory);
}

// Removes and marks the failures that are reported now.
template <class IsReported>
std::vector<Failure> take(UnreportedFailures& state, IsReported&& is_reported) {
  std::vector<Failure> taken;
  const std::lock_guard lock(state.mutex);
  for (auto each = state.all.begin(); each != state.all.end();) {
    if (!is_reported(*each)) {
      ++each;
      continue;
    }
    write_line(each->number, R"(,"told":true)", kMostBytes);
    taken.push_back(std::move(*each));
    each = state.all.erase(each);
  }
  state.has_any = !state.all.empty();
  return taken;
}

}  // namespace

void read_where_to_write() {
  where_to_write();
}

void add_unreported(int32_t device, uint64_t stream, const char* api, aclError status,
                    const std::string& text) noexcept {
  try {
    std::string members = R"(,"device":)";
    add_number(members, device);
    members += R"(,"stream":)";
    add_number(members, stream);
    members += R"(,"call":)";
    add_text(members, api == nullptr ? "" : api);
    members += R"(,"status":)";
    add_number(members, status);
    members += R"(,"text":)";
    add_text(members, std::string_view(text).substr(0, kLongestText));
    auto& state = PerProcess<UnreportedFailures>::get();
    const std::lock_guard lock(state.mutex);
    if (state.all.size() == kMostFailures) return;
    write_line(++state.last, members, kMostOfFailures);
    state.all.push_back({state.last, device, status, text});
    state.has_any = true;
  } catch (...) {
    // Out of memory.
  }
}

void mark_reported(aclError status, const std::string& text, int32_t device) noexcept {
  UnreportedFailures* const state = PerProcess<UnreportedFailures>::find();
  if (state == nullptr || !state->has_any) return;
  try {
    take(*state, [&](const Failure& each) {
      return (device < 0 || each.device == device) && each.status == status && each.text == text;
    });
  } catch (...) {
    // Out of memory: the failure is reported again later.
  }
}

aclError report_all(int32_t device) noexcept {
  UnreportedFailures* const state = PerProcess<UnreportedFailures>::find();
  if (state == nullptr || !state->has_any) return ACL_SUCCESS;
  aclError first = ACL_SUCCESS;
  try {
    const auto is_wanted = [&](const Failure& each) { return device < 0 || each.device == device; };
    for (const Failure& each : take(*state, is_wanted)) {
      fail_again_on(each.device, each.status, each.text);
      if (first == ACL_SUCCESS) first = each.status;
    }
  } catch (...) {
    // Out of memory.
  }
  return first;
}

}  // namespace aclnn_host
