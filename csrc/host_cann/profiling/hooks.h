#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/profiling/recorder.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/visibility.h"

// What the host CANN tells a profile. Without one, each costs a load of `profile_parts` at most.
namespace aclnn_host {

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
