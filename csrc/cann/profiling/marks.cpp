#include "cann/profiling/marks.h"

#include <map>
#include <mutex>
#include <utility>

#include "cann/profiling/recorder.h"
#include "host_cann/runtime/json.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {

namespace {

constexpr size_t kMostRanges = 65536;

std::atomic<uint64_t> marks = 0;

std::string mark_record(const Mark& mark, int64_t begin, int64_t end) {
  std::string record = begin_record("mark", begin, end);
  record += R"(,"type":)";
  add_text(record, mark.type);
  record += R"(,"message":)";
  add_text(record, mark.message);
  record += R"(,"domain":)";
  add_text(record, mark.domain);
  record += R"(,"mark":)";
  add_number(record, mark.number);
  return record;
}

// A stream task that stores the time at which the stream reaches the beginning of a range in
// `begin`, or records the end of a range, or a moment, which has no beginning.
class MarkTask final : public Task {
 public:
  MarkTask(Mark mark, aclrtStream stream, std::shared_ptr<std::atomic<int64_t>> begin, bool ends)
      : mark_(std::move(mark)), stream_(stream), begin_(std::move(begin)), ends_(ends) {}

  aclError run() noexcept override {
    const int64_t now = profile_clock();
    if (!ends_) {
      begin_->store(now);
      return ACL_SUCCESS;
    }
    const int64_t begin = begin_ != nullptr ? begin_->load() : now;
    if (begin == 0 || !is_profiled(kProfileMarks) || !is_profiled_device(current_device())) {
      return ACL_SUCCESS;
    }
    try {
      std::string record = mark_record(mark_, begin, now);
      record += R"(,"device":)";
      add_number(record, current_device());
      record += R"(,"stream":)";
      add_number(record, stream_id(stream_));
      recorder().add(mark_.profile, record += '}');
    } catch (...) {  // out of memory
    }
    return ACL_SUCCESS;
  }

 private:
  const Mark mark_;
  const aclrtStream stream_;
  const std::shared_ptr<std::atomic<int64_t>> begin_;
  const bool ends_;
};

void begin(Mark& mark) {
  mark.profile = profile_number.load();
  mark.number = ++marks;
}

struct OpenRanges {
  std::mutex mutex;
  uint64_t profile = 0;
  uint64_t last = 0;
  std::map<uint64_t, Range> ranges;
  static void after_fork() noexcept {}

  void forget_earlier() {
    if (const uint64_t now = profile_number.load(); now != profile) {
      ranges.clear();
      profile = now;
    }
  }
};

OpenRanges& open_ranges() {
  return PerProcess<OpenRanges>::get();
}

}  // namespace

aclError mark_moment(const char* api, Mark mark, aclrtStream stream) {
  begin(mark);
  const int64_t now = profile_clock();
  recorder().add(mark.profile, mark_record(mark, now, now) += '}');
  if (stream == nullptr) return ACL_SUCCESS;
  return submit(api, stream, std::make_unique<MarkTask>(mark, stream, nullptr, true),
                TaskKind::kMarker);
}

aclError begin_range(const char* api, Mark mark, aclrtStream stream, Range* range) {
  begin(mark);
  *range = {std::move(mark), profile_clock(), stream, nullptr};
  if (stream == nullptr) return ACL_SUCCESS;
  range->begin_on_stream = std::make_shared<std::atomic<int64_t>>(0);
  return submit(
      api, stream,
      std::make_unique<MarkTask>(range->mark, stream, range->begin_on_stream, /*ends=*/false),
      TaskKind::kMarker);
}

aclError end_range(const char* api, const Range& range) {
  recorder().add(range.mark.profile, mark_record(range.mark, range.begin, profile_clock()) += '}');
  if (range.stream == nullptr) return ACL_SUCCESS;
  return submit(
      api, range.stream,
      std::make_unique<MarkTask>(range.mark, range.stream, range.begin_on_stream, /*ends=*/true),
      TaskKind::kMarker);
}

uint64_t keep_range(Range range) {
  OpenRanges& open = open_ranges();
  const std::lock_guard lock(open.mutex);
  open.forget_earlier();
  if (open.ranges.size() >= kMostRanges) return 0;
  open.ranges.emplace(++open.last, std::move(range));
  return open.last;
}

bool take_range(uint64_t number, Range* range) {
  OpenRanges& open = open_ranges();
  const std::lock_guard lock(open.mutex);
  open.forget_earlier();
  const auto node = open.ranges.extract(number);
  if (node.empty()) return false;
  *range = std::move(node.mapped());
  return true;
}

}  // namespace aclnn_host
