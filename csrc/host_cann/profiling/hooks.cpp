#include "host_cann/profiling/hooks.h"

#include <string>

#include "host_cann/runtime/json.h"
#include "host_cann/runtime/stream.h"

namespace aclnn_host {
namespace {

std::atomic<uint64_t> launches = 0;

// The launch of the task that the calling thread runs.
thread_local const Launch* running = nullptr;

// Whether it began with the profile that goes on.
bool is_wanted(const Launch& launch) noexcept {
  return launch.profile != 0 && launch.profile == current_profile(kProfileTasks) &&
         launch.kind != TaskKind::kMarker && is_profiled_device(current_device());
}

void add_name(std::string& record, const char* name, const char* suffix) {
  record += R"(,"name":")";
  record.append(name).append(suffix);
  record += '"';
}

void add_launch(std::string& record, const Launch& launch) {
  add_name(record, launch.api, "");
  record += R"(,"launch":)";
  add_number(record, launch.number);
  record += launch.kind == TaskKind::kOperator ? R"(,"operator":true)" : R"(,"operator":false)";
}

// For want of memory a record is dropped.
template <class Make>
void record(uint64_t profile, Make make) noexcept {
  try {
    recorder().add(profile, make());
  } catch (...) {
  }
}

}  // namespace

void record_api(uint64_t profile, const char* api, const char* suffix, int64_t begin) noexcept {
  const int64_t end = profile_clock();
  record(profile, [&] {
    std::string text = begin_record("api", begin, end);
    add_name(text, api, suffix);
    return text += '}';
  });
}

int64_t begin_launch(const char* api, aclrtStream stream, TaskKind kind, Task& task) noexcept {
  if (kind == TaskKind::kMarker) return 0;
  task.launch = {profile_number.load(), launches.fetch_add(1, std::memory_order_relaxed) + 1, api,
                 stream, kind};
  return profile_clock();
}

void record_launch(const Launch& launch, int64_t begin) noexcept {
  const int64_t end = profile_clock();
  record(launch.profile, [&] {
    std::string text = begin_record("launch", begin, end);
    add_launch(text, launch);
    return text += '}';
  });
}

aclError run_recorded(Task& task, const Launch& launch) noexcept {
  if (!is_wanted(launch)) return task.run();
  const Launch* const outer = running;
  running = &launch;
  const int64_t begin = profile_clock();
  const aclError status = task.run();
  const int64_t end = profile_clock();
  running = outer;
  record(launch.profile, [&] {
    std::string text = begin_record("task", begin, end);
    add_launch(text, launch);
    text += R"(,"device":)";
    add_number(text, current_device());
    text += R"(,"stream":)";
    add_number(text, stream_id(launch.stream));
    text += R"(,"status":)";
    add_number(text, status);
    if (is_profiled(kProfileTensors)) task.describe(text);
    return text += '}';
  });
  return status;
}

aclError run_captured(Task& task) noexcept {
  if (running == nullptr) return task.run();
  return run_recorded(task, {running->profile, running->number, task.launch.api, running->stream,
                             task.launch.kind});
}

}  // namespace aclnn_host
