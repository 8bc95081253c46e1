#pragma once

#include <atomic>
#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/visibility.h"

// Hooks that report calls, launches and tasks with their times to a registered profiler. While
// nothing is recorded, each hook costs at most one load of `profile_parts`.
namespace aclnn_host {

// The kinds of records, as bits.
enum ProfilePart : uint32_t {
  kProfileApis = 1,     // calls of host functions
  kProfileTasks = 2,    // tasks of streams, and their launches
  kProfileTensors = 4,  // tensors of tasks
  kProfileMarks = 8,    // marks set by programs
};

// The parts being recorded now; 0 without a profile. Every hook checks it first.
ACLNN_HOST_INTERNAL extern std::atomic<uint32_t> profile_parts;

inline bool is_profiled(uint32_t parts) noexcept {
  return (profile_parts.load(std::memory_order_relaxed) & parts) != 0;
}

// The number of profiles begun so far, which identifies the latest. Work that began in one profile
// is not recorded in the next.
ACLNN_HOST_INTERNAL extern std::atomic<uint64_t> profile_number;

// The number of the profile that records any of these parts now; 0 if none does.
inline uint64_t current_profile(uint32_t parts) noexcept {
  return is_profiled(parts) ? profile_number.load(std::memory_order_relaxed) : 0;
}

// Profiled devices as bits, and a test for one of them.
extern std::atomic<uint64_t> profiled_devices;
inline bool is_profiled_device(int32_t device) noexcept {
  return device >= 0 && (profiled_devices.load(std::memory_order_relaxed) >> device & 1) != 0;
}

// Nanoseconds of CLOCK_MONOTONIC_RAW, the clock that torch_npu's profiler uses.
ACLNN_HOST_INTERNAL int64_t profile_clock() noexcept;

// The interface of a profiler. Each function is called on the thread of the event, after its end,
// with times of profile_clock().
class Profiler {
 public:
  // A call of a function named `api` followed by `suffix`.
  virtual void add_api(uint64_t profile, const char* api, const char* suffix, int64_t begin,
                       int64_t end) noexcept = 0;
  virtual void add_launch(const Launch& launch, int64_t begin, int64_t end) noexcept = 0;
  // A completed task of a launch, which may be that of its model's execution.
  virtual void add_task(Task& task, const Launch& launch, int64_t begin, int64_t end,
                        aclError status) noexcept = 0;

 protected:
  ~Profiler() = default;
};

// Registers the profiler, which must live as long as the process. Call before setting any of
// `profile_parts`.
void register_profiler(Profiler& profiler) noexcept;

ACLNN_HOST_INTERNAL void record_api(uint64_t profile, const char* api, const char* suffix,
                                    int64_t begin) noexcept;

// A call of a function, until the end of the scope. The name is `api` followed by `suffix`.
class ApiSpan {
 public:
  explicit ApiSpan(const char* api, const char* suffix = "") noexcept
      : api_(api),
        suffix_(suffix),
        profile_(current_profile(kProfileApis)),
        begin_(profile_ != 0 ? profile_clock() : 0) {}
  ~ApiSpan() {
    if (profile_ != 0) [[unlikely]]
      record_api(profile_, api_, suffix_, begin_);
  }
  ApiSpan(const ApiSpan&) = delete;
  ApiSpan& operator=(const ApiSpan&) = delete;

 private:
  const char* const api_;
  const char* const suffix_;
  const uint64_t profile_;
  const int64_t begin_;
};

// Assigns the task its launch number, and returns the time to pass to record_launch().
int64_t begin_launch(const char* api, aclrtStream stream, TaskKind kind, Task& task) noexcept;
void record_launch(const Launch& launch, int64_t begin) noexcept;

// The launch of a task, until the end of the scope, when the task may already be destroyed.
class LaunchSpan {
 public:
  LaunchSpan(const char* api, aclrtStream stream, TaskKind kind, Task& task) noexcept {
    if (is_profiled(kProfileTasks)) [[unlikely]] {
      begin_ = begin_launch(api, stream, kind, task);
      launch_ = task.launch;
    }
  }
  ~LaunchSpan() {
    if (begin_ != 0) [[unlikely]]
      record_launch(launch_, begin_);
  }
  LaunchSpan(const LaunchSpan&) = delete;
  LaunchSpan& operator=(const LaunchSpan&) = delete;

 private:
  int64_t begin_ = 0;
  Launch launch_;
};

// Runs a task and records it under the launch.
aclError run_recorded(Task& task, const Launch& launch) noexcept;

inline aclError run_task(Task& task) noexcept {
  return task.launch.profile == 0 ? task.run() : run_recorded(task, task.launch);
}

// Runs a task of a captured model; it is recorded under the launch of the execution.
aclError run_captured(Task& task) noexcept;

}  // namespace aclnn_host
