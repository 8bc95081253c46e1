#include "host_cann/runtime/profile_hooks.h"

#include <ctime>

namespace aclnn_host {

std::atomic<uint32_t> profile_parts = 0;
std::atomic<uint64_t> profile_number = 0;
std::atomic<uint64_t> profiled_devices = 0;

namespace {

std::atomic<Profiler*> registered_profiler = nullptr;

std::atomic<uint64_t> launches = 0;

// The launch of the task that the calling thread is running.
thread_local const Launch* running = nullptr;

// True if the launch belongs to the profile being recorded now.
bool is_wanted(const Launch& launch) noexcept {
  return launch.profile != 0 && launch.profile == current_profile(kProfileTasks) &&
         launch.kind != TaskKind::kMarker && is_profiled_device(current_device());
}

// Calls record(profiler). A thread may see `profile_parts` set before it sees the profiler.
template <class Record>
void notify(Record record) noexcept {
  if (Profiler* const profiler = registered_profiler.load()) record(*profiler);
}

}  // namespace

int64_t profile_clock() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void register_profiler(Profiler& profiler) noexcept {
  registered_profiler.store(&profiler);
}

void record_api(uint64_t profile, const char* api, const char* suffix, int64_t begin) noexcept {
  const int64_t end = profile_clock();
  notify([&](Profiler& profiler) { profiler.add_api(profile, api, suffix, begin, end); });
}

int64_t begin_launch(const char* api, aclrtStream stream, TaskKind kind, Task& task) noexcept {
  if (kind == TaskKind::kMarker) return 0;
  task.launch = {profile_number.load(), launches.fetch_add(1, std::memory_order_relaxed) + 1, api,
                 stream, kind};
  return profile_clock();
}

void record_launch(const Launch& launch, int64_t begin) noexcept {
  const int64_t end = profile_clock();
  notify([&](Profiler& profiler) { profiler.add_launch(launch, begin, end); });
}

aclError run_recorded(Task& task, const Launch& launch) noexcept {
  if (!is_wanted(launch)) return task.run();
  const Launch* const outer = running;
  running = &launch;
  const int64_t begin = profile_clock();
  const aclError status = task.run();
  const int64_t end = profile_clock();
  running = outer;
  notify([&](Profiler& profiler) { profiler.add_task(task, launch, begin, end, status); });
  return status;
}

aclError run_captured(Task& task) noexcept {
  if (running == nullptr) return task.run();
  return run_recorded(task, {running->profile, running->number, task.launch.api, running->stream,
                             task.launch.kind});
}

}  // namespace aclnn_host
