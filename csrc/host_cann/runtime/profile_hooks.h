#pragma once

#include <atomic>
#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/visibility.h"

// What the host CANN tells a profiler, which registers here: calls, launches and tasks, with their
// times. While nothing is recorded, each hook costs a load of `profile_parts` at most.
namespace aclnn_host {

// What is recorded, as bits.
enum ProfilePart : uint32_t {
  kProfileApis = 1,     // calls of functions of the host
  kProfileTasks = 2,    // tasks of streams, and their launches
  kProfileTensors = 4,  // the tensors of tasks
  kProfileMarks = 8,    // what programs mark themselves
};

// The parts that are recorded now; 0 without a profile. Every hook asks it first.
ACLNN_HOST_INTERNAL extern std::atomic<uint32_t> profile_parts;

inline bool is_profiled(uint32_t parts) noexcept {
  return (profile_parts.load(std::memory_order_relaxed) & parts) != 0;
}

// How many profiles began so far, which is the number of the latest. What began in one is no part
// of the next, where it ends.
ACLNN_HOST_INTERNAL extern std::atomic<uint64_t> profile_number;

// The number of the profile that records any of these parts now; 0 without one.
inline uint64_t current_profile(uint32_t parts) noexcept {
  return is_profiled(parts) ? profile_number.load(std::memory_order_relaxed) : 0;
}

// Which devices are profiled, as bits, and whether one is.
extern std::atomic<uint64_t> profiled_devices;
inline bool is_profiled_device(int32_t device) noexcept {
  return device >= 0 && (profiled_devices.load(std::memory_order_relaxed) >> device & 1) != 0;
}

// Nanoseconds of CLOCK_MONOTONIC_RAW, the clock of torch_npu's own records.
ACLNN_HOST_INTERNAL int64_t profile_clock() noexcept;

// What records. Each function is called on the thread where it happened, after the end, with the
// times of profile_clock().
class Profiler {
 public:
  // A call of a function, whose name is `api` and `suffix`.
  virtual void add_api(uint64_t profile, const char* api, const char* suffix, int64_t begin,
                       int64_t end) noexcept = 0;
  virtual void add_launch(const Launch& launch, int64_t begin, int64_t end) noexcept = 0;
  // A task that ran, for a launch that need not be its own.
  virtual void add_task(Task& task, const Launch& launch, int64_t begin, int64_t end,
                        aclError status) noexcept = 0;

 protected:
  ~Profiler() = default;
};

// From here on `profiler` is told; it stays as long as the process. To be called before any of
// `profile_parts` is set.
void register_profiler(Profiler& profiler) noexcept;

ACLNN_HOST_INTERNAL void record_api(uint64_t profile, const char* api, const char* suffix,
                                    int64_t begin) noexcept;

// A call of a function, from here to the end of the scope. The name is `api` and `suffix`.
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

// Gives a task the number of its launch, and the time that record_launch() needs.
int64_t begin_launch(const char* api, aclrtStream stream, TaskKind kind, Task& task) noexcept;
void record_launch(const Launch& launch, int64_t begin) noexcept;

// The launch of a task, from here to the end of the scope, by when the task may be gone.
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

// Runs a task, and records it as that of the launch.
aclError run_recorded(Task& task, const Launch& launch) noexcept;

inline aclError run_task(Task& task) noexcept {
  return task.launch.profile == 0 ? task.run() : run_recorded(task, task.launch);
}

// Runs a task of a captured model: it belongs to the launch of the execution.
aclError run_captured(Task& task) noexcept;

}  // namespace aclnn_host
