#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "acl/acl_base.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// What a task is: in a captured model, calls of operators may be replaced, and nothing else; a
// marker only tells a profile how far its stream is.
enum class TaskKind { kOperator, kMarker, kOther };

// How a task came to its stream, which a profile says: the function that brought it (a string
// literal), and the stream's handle.
struct Launch {
  uint64_t profile = 0;  // that was being recorded; 0 when none was
  uint64_t number = 0;   // of the launch, from 1 on
  const char* api = nullptr;
  aclrtStream stream = nullptr;
  TaskKind kind = TaskKind::kOther;
};

// Work for a stream. run() returns a status; a failing one records its message with fail().
// abandon() is called in its place when the stream drops the task, with the reason: an earlier
// failure on the stream, or the stream's forced end. Either is called once on an accepted task, and
// on one that was captured once in every execution of its model, so that it may not use itself up.
class ACLNN_HOST_INTERNAL Task {
 public:
  virtual ~Task() = default;
  virtual aclError run() noexcept = 0;
  virtual void abandon(aclError /*status*/, const std::string& /*message*/) noexcept {}
  // Whether all it does is to tell others how far the stream is. Who hears of it must find the
  // stream so far, so that the stream does it and counts it as done in one step.
  virtual bool only_tells() const noexcept { return false; }
  // Puts what a profile says of the task besides its times behind `record`, as members of JSON,
  // each with a comma in front.
  virtual void describe(std::string& /*record*/) {}

  Launch launch;  // for profile_hooks.h; a captured task has its function and kind alone
};

// Hands the task to a stream. The null stream runs it at once, on the calling thread; its status is
// then kept for the thread's next synchronisation of the null stream. A created stream queues it,
// or, as ACLNN_TORCH_INLINE_STREAMS has it, runs it at once on the calling thread too. A stream
// that is being captured does not run it: its model gets it. The return value says whether the task
// was accepted (a stream that is none: 107017, with a message in api's name), never how it went.
// The task is destroyed after it ran, on the thread that ran it; a captured one with its model.
ACLNN_HOST_INTERNAL aclError submit(const char* api, aclrtStream stream, std::unique_ptr<Task> task,
                                    TaskKind kind = TaskKind::kOther) noexcept;

// Whether the task that runs on the calling thread belongs to a captured model: it uses whatever
// lies at its addresses now, and not the blocks that were there when it was captured.
ACLNN_HOST_INTERNAL bool is_replayed() noexcept;

// Whether a stream is being captured. False for the null stream.
ACLNN_HOST_INTERNAL bool is_captured(aclrtStream stream);

// The device of the calling thread, which in a task is its stream's; -1 if it has none, as when CPU
// tensors are computed.
ACLNN_HOST_INTERNAL int32_t current_device() noexcept;

}  // namespace aclnn_host
