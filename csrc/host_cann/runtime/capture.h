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

// A point in a capture: for each stream, the number of its steps that precede the point.
using Progress = std::map<aclrtStream, uint64_t>;

// The state between aclmdlRICaptureBegin and aclmdlRICaptureEnd. Guarded by Captures::mutex.
struct Capture {
  aclmdlRI handle;
  std::shared_ptr<CapturedModel> model;  // null once the capture has ended
  aclrtContext context;
  aclrtStream origin;  // the stream on which the capture began
  aclmdlRICaptureMode mode;
  std::thread::id thread;  // the thread that began it
  // The captured streams, each with the progress that its next step depends on. A stream is joined
  // when the origin's next step depends on all of its steps.
  std::map<aclrtStream, Progress> streams;
  const char* problem = nullptr;  // why the capture is invalid; null if it is valid
  bool ended = false;
  std::optional<RecordedGroup> group;  // the task group being recorded
};

// A record of an event on a captured stream.
struct CapturedRecord {
  std::shared_ptr<Capture> capture;
  Progress progress;
};

// All captures of the process.
struct Captures {
  std::mutex mutex;
  std::map<aclrtStream, std::shared_ptr<Capture>> streams;  // captured streams
  std::map<aclrtStream, GroupUpdate> updates;               // streams that collect an update
  std::atomic<size_t> busy = 0;  // size of both maps: a launch takes no lock while it is 0
  static void after_fork() noexcept {}

  // Call after changing streams or updates.
  void count() noexcept { busy = streams.size() + updates.size(); }
};

inline Captures& captures() {
  return PerProcess<Captures>::get();
}

// Returns the capture that a stream belongs to, or null. The caller holds the mutex.
std::shared_ptr<Capture> capture_of(const Captures& state, aclrtStream stream);

// Checks that a captured stream may receive another step; fails in api's name otherwise. The caller
// holds the mutex.
aclError admit(const char* api, Capture& capture, aclrtStream stream);

// Takes a task instead of running it, if its stream is captured or collects an update, and returns
// whether it was accepted. Returns nullopt and leaves the task if it is to be run.
std::optional<aclError> divert(const char* api, aclrtStream stream, std::unique_ptr<Task>& task,
                               TaskKind kind);

// Fails with 107027, in api's name, if the stream, or any stream of the device, is being captured:
// it cannot be waited for, queried or ended.
aclError refuse_captured(const char* api, aclrtStream stream);
aclError stream_is_captured(const char* api) noexcept;
aclError refuse_captured_device(const char* api, int32_t device);

// Returns `status`, in api's name, if a capture's mode forbids the calling thread to wait for the
// device.
aclError refuse_in_mode(const char* api, aclError status);

// Records an event on a stream. Returns null, with *status 0, if the stream is not being captured.
std::shared_ptr<CapturedRecord> capture_record(const char* api, aclrtStream stream,
                                               aclError* status);

// Makes a stream wait for a record and join its capture; nullopt if the capture is over.
std::optional<aclError> capture_wait(const char* api, aclrtStream stream,
                                     const CapturedRecord& record);

// True while the record's capture is going on; the record may be null.
bool is_pending(const std::shared_ptr<CapturedRecord>& record);

// Invalidates the capture of a stream that has ended.
void end_capture_of(aclrtStream stream);

}  // namespace aclnn_host
