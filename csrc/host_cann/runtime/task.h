#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "acl/acl_base.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// The kind of a task. In a captured model only operator calls can be replaced. A marker only tells
// a profile how far its stream has come.
enum class TaskKind { kOperator, kMarker, kOther };

// The origin of a task, for profiles: the function that submitted it (a string literal) and the
// stream's handle.
struct Launch {
  uint64_t profile = 0;  // the profile being recorded; 0 if none
  uint64_t number = 0;   // of the launch, counted from 1
  const char* api = nullptr;
  aclrtStream stream = nullptr;
  TaskKind kind = TaskKind::kOther;
};

// Work for a stream. run() returns a status; on failure it records its message with fail().
// abandon() is called instead when the stream drops the task, with the reason: an earlier failure
// on the stream, or the stream's forced end. One of them is called once for an accepted task, and
// once per execution for a captured one, which must therefore stay reusable.
class ACLNN_HOST_INTERNAL Task {
 public:
  virtual ~Task() = default;
  virtual aclError run() noexcept = 0;
  virtual void abandon(aclError /*status*/, const std::string& /*message*/) noexcept {}
  // True if the task only signals how far the stream has come. The stream then runs it and counts
  // it as done in one step, so that a waiter finds the stream at that point.
  virtual bool only_tells() const noexcept { return false; }
  // Appends the task's details for a profile to `record`, as JSON members, each preceded by a
  // comma.
  virtual void describe(std::string& /*record*/) {}

  Launch launch;  // for profile_hooks.h; a captured task has only function and kind
};

// Submits the task to a stream. The null stream runs it at once, on the calling thread, and keeps
// its status for the thread's next synchronisation of the null stream. A created stream queues it
// or, under ACLNN_TORCH_INLINE_STREAMS, also runs it at once on the calling thread. A captured
// stream adds it to its model. The return value says if the task was accepted (107017, with a
// message in api's name, for an invalid stream), not how it ended. The task is destroyed after it
// ran, on the thread that ran it; a captured task with its model.
ACLNN_HOST_INTERNAL aclError submit(const char* api, aclrtStream stream, std::unique_ptr<Task> task,
                                    TaskKind kind = TaskKind::kOther) noexcept;

// True if the running task belongs to a captured model: it uses the memory now at its addresses,
// not the blocks that existed during capture.
ACLNN_HOST_INTERNAL bool is_replayed() noexcept;

// True if a stream is being captured. False for the null stream.
ACLNN_HOST_INTERNAL bool is_captured(aclrtStream stream);

// The device of the calling thread; in a task, the device of its stream. -1 without a device, as
// for CPU tensors.
ACLNN_HOST_INTERNAL int32_t current_device() noexcept;

}  // namespace aclnn_host
