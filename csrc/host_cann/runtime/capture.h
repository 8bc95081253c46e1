#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/captured_model.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/task_group.h"

namespace aclnn_host {

// How many steps of which streams a point in a capture comes after.
using Progress = std::map<aclrtStream, uint64_t>;

// What is between aclmdlRICaptureBegin and aclmdlRICaptureEnd. Guarded by Captures::mutex.
struct Capture {
  aclmdlRI handle;
  std::shared_ptr<CapturedModel> model;  // until the capture has ended
  aclrtContext context;
  aclrtStream origin;  // the stream that it began on
  aclmdlRICaptureMode mode;
  std::thread::id thread;  // the one that began it
  // The streams that are captured, and what the next step of each comes after: a stream is joined
  // when the origin's next step comes after all of its steps.
  std::map<aclrtStream, Progress> streams;
  const char* problem = nullptr;  // why no model can come of it, if none can
  bool ended = false;
  std::optional<RecordedGroup> group;  // of tasks, that is being recorded
};

// A record of an event on a captured stream.
struct CapturedRecord {
  std::shared_ptr<Capture> capture;
  Progress progress;
};

// The captures of the process.
struct Captures {
  std::mutex mutex;
  std::map<aclrtStream, std::shared_ptr<Capture>> streams;  // those that are captured
  std::map<aclrtStream, GroupUpdate> updates;               // those that collect an update
  std::atomic<size_t> busy = 0;  // the number of both: a launch takes no lock while it is 0
  static void after_fork() noexcept {}

  // To be called after a change of streams or updates.
  void count() noexcept { busy = streams.size() + updates.size(); }
};

inline Captures& captures() {
  return PerProcess<Captures>::get();
}

// The capture that a stream belongs to, or null. The caller holds the mutex.
std::shared_ptr<Capture> capture_of(const Captures& state, aclrtStream stream);

// Whether a stream that is captured may be given another step; a message in api's name if not. The
// caller holds the mutex.
aclError admit(const char* api, Capture& capture, aclrtStream stream);

// Takes a task that is not to be run now, since its stream is captured or collects an update. The
// status says whether it was accepted; nullopt, with the task where it was, if it is to be run.
std::optional<aclError> divert(const char* api, aclrtStream stream, std::unique_ptr<Task>& task,
                               TaskKind kind);

// 107027, in api's name, for a stream, or a device one of whose streams, is being captured, so that
// it cannot be waited for, queried or ended.
aclError refuse_captured(const char* api, aclrtStream stream);
aclError stream_is_captured(const char* api) noexcept;
aclError refuse_captured_device(const char* api, int32_t device);

// `status` in api's name, if a capture's mode forbids the calling thread what waits for the device.
aclError refuse_in_mode(const char* api, aclError status);

// Records an event on a stream. Null, and *status 0, if the stream is not being captured.
std::shared_ptr<CapturedRecord> capture_record(const char* api, aclrtStream stream,
                                               aclError* status);

// Has a stream wait for a record, and be captured with it; nullopt if its capture is over.
std::optional<aclError> capture_wait(const char* api, aclrtStream stream,
                                     const CapturedRecord& record);

// Whether the capture of a record is not over; the record may be null.
bool is_pending(const std::shared_ptr<CapturedRecord>& record);

// A stream has ended: no model comes of its capture.
void end_capture_of(aclrtStream stream);

}  // namespace aclnn_host
