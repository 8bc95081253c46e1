// Events: their recordings, the tasks with which streams record, await and reset them, and
// AscendCL's functions. One file, so that no other part of the runtime can see their types.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/deadline.h"
#include "host_cann/runtime/error_messages.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/lost_work.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {
namespace {

using Clock = std::chrono::steady_clock;

// The flags that may be combined; others stand alone.
constexpr uint32_t kCombinedFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

// One recording of an event: a position in a stream's order. A waiter holds a reference, so a later
// recording or the event's end does not affect it. A recording dropped by its stream is settled
// with the reason, and waiting for it fails.
class Record {
 public:
  void settle(aclError status, const std::string& message) noexcept {
    const std::lock_guard lock(mutex_);
    settled_ = true;
    status_ = status;
    time_ = Clock::now();
    try {
      message_ = message;
    } catch (...) {
      // Out of memory: only the status is reported.
    }
    changed_.notify_all();
  }

  // Tells if all work before the recording is done, and returns the stream's failure, if any.
  aclError query(bool* settled) {
    std::unique_lock lock(mutex_);
    *settled = settled_;
    return report(lock);
  }

  aclError wait(const char* api, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    if (!deadline.wait(changed_, lock, [&] { return settled_; })) {
      return fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                  "%s: the event did not complete before the timeout", api);
    }
    return report(lock);
  }

  // The time of completion; false if the recording is not done or was dropped.
  bool time(Clock::time_point* time) {
    const std::lock_guard lock(mutex_);
    *time = time_;
    return settled_ && status_ == ACL_SUCCESS;
  }

 private:
  aclError report(std::unique_lock<std::mutex>& lock) {
    const aclError status = status_;
    if (status == ACL_SUCCESS) return status;
    const std::string message = message_;
    lock.unlock();
    return fail_again(status, message);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;
  aclError status_ = ACL_SUCCESS;
  std::string message_;
  Clock::time_point time_;
};

// The function that created an event determines the event's capabilities.
enum class Kind { kPlain, kWithFlag, kExWithFlag };

struct Event {
  Event(Kind made_by, uint32_t flag) : kind(made_by), flags(flag) {}

  std::shared_ptr<Record> last() {
    const std::lock_guard lock(mutex);
    return record;
  }

  // Makes a recording the event's last one.
  void set(std::shared_ptr<Record> recording) noexcept {
    const std::lock_guard lock(mutex);
    record = std::move(recording);
    captured = nullptr;
    changed.notify_all();
  }

  // The record in a capture, if it is newer than the last recording.
  std::shared_ptr<CapturedRecord> last_captured() {
    const std::lock_guard lock(mutex);
    return captured;
  }

  // True if captured streams record, wait for and reset the event whenever the model is executed.
  // Other events only connect the streams of one capture.
  bool is_external() const { return (flags & ACL_EVENT_EXTERNAL) != 0; }

  const Kind kind;
  const uint32_t flags;
  std::atomic<int64_t> pending_waits = 0;
  std::mutex mutex;
  std::condition_variable changed;  // signals a new recording
  std::shared_ptr<Record> record;   // the last recording; null before the first and after a reset
  std::shared_ptr<CapturedRecord> captured;
};

using EventTable = HandleTable<Event, Object::kEvent>;

EventTable& events() {
  return PerProcess<EventTable>::get();
}

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<Record> record) : record_(std::move(record)) {}
  aclError run() noexcept override {
    record_->settle(ACL_SUCCESS, {});
    return ACL_SUCCESS;
  }
  void abandon(aclError status, const std::string& message) noexcept override {
    record_->settle(status, message);
  }
  bool only_tells() const noexcept override { return true; }

 private:
  const std::shared_ptr<Record> record_;
};

// How long a stream waits for an event, in milliseconds.
std::atomic<int32_t> wait_timeout = kForever;

class WaitTask final : public Task {
 public:
  WaitTask(std::shared_ptr<Event> event, std::shared_ptr<Record> record)
      : event_(std::move(event)), record_(std::move(record)) {
    ++event_->pending_waits;
  }
  ~WaitTask() override { --event_->pending_waits; }
  aclError run() noexcept override {
    return record_->wait("aclrtStreamWaitEvent", Deadline(timeout_));
  }

 private:
  const int32_t timeout_ = wait_timeout;  // its value when the wait was submitted
  const std::shared_ptr<Event> event_;
  const std::shared_ptr<Record> record_;
};

// Resets the event to its initial state, unless it was recorded again since the task was queued.
class ResetTask final : public Task {
 public:
  explicit ResetTask(std::shared_ptr<Event> event)
      : event_(std::move(event)), record_(event_->last()) {}
  aclError run() noexcept override {
    const std::lock_guard lock(event_->mutex);
    if (event_->record == record_) event_->record = nullptr;
    return ACL_SUCCESS;
  }

 private:
  const std::shared_ptr<Event> event_;
  const std::shared_ptr<Record> record_;
};

// Tasks of captured streams on an external event, run at each execution of the model. The event is
// then a flag: a record sets it, a wait blocks until it is set, a reset clears it.
class ExternalRecordTask final : public Task {
 public:
  explicit ExternalRecordTask(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  aclError run() noexcept override { return record(ACL_SUCCESS, {}); }
  void abandon(aclError status, const std::string& message) noexcept override {
    record(status, message);
  }

 private:
  aclError record(aclError status, const std::string& message) noexcept {
    return guarded("aclrtRecordEvent", [&]() -> aclError {
      auto record = std::make_shared<Record>();
      record->settle(status, message);
      event_->set(std::move(record));
      return ACL_SUCCESS;
    });
  }

  const std::shared_ptr<Event> event_;
};

class ExternalWaitTask final : public Task {
 public:
  explicit ExternalWaitTask(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  aclError run() noexcept override {
    const Deadline deadline(timeout_);
    std::unique_lock lock(event_->mutex);
    const auto recorded = [&] { return event_->record != nullptr; };
    if (!recorded() && !is_worker()) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "%s: the model waits for an external event that was not recorded before, but is "
                  "executed by the thread that asked for it, as the default stream does, and every "
                  "stream under ACLNN_TORCH_INLINE_STREAMS; record the event first, or execute the "
                  "model on a stream of aclrtCreateStream",
                  kApi);
    }
    if (!deadline.wait(event_->changed, lock, recorded)) {
      return fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                  "%s: the external event was not recorded before the timeout", kApi);
    }
    const auto record = event_->record;
    lock.unlock();
    return record->wait(kApi, deadline);
  }

 private:
  static constexpr const char* kApi = "aclrtStreamWaitEvent";
  const int32_t timeout_ = wait_timeout;
  const std::shared_ptr<Event> event_;
};

class ExternalResetTask final : public Task {
 public:
  explicit ExternalResetTask(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  aclError run() noexcept override {
    event_->set(nullptr);
    return ACL_SUCCESS;
  }

 private:
  const std::shared_ptr<Event> event_;
};

// Finds the event of a handle, which messages call `argument`.
aclError find_event(const char* api, aclrtEvent event, std::shared_ptr<Event>* object,
                    const char* argument = "event") {
  if (event == nullptr) return null_argument(api, argument);
  *object = events().find(event);
  if (*object != nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              "%s: %s is %p, which is not an event of this process, or was destroyed", api,
              argument, event);
}

// The table of flags in the documents of both functions, "aclrtCreateEventWithFlag" and
// "aclrtCreateEventExWithFlag".
aclError check_flag(const char* api, Kind kind, uint32_t flag) {
  if (flag != 0 && (flag & ~kCombinedFlags) == 0) return ACL_SUCCESS;
  const bool ex = kind == Kind::kExWithFlag;
  if (ex && flag == ACL_EVENT_IPC) return ACL_SUCCESS;
  if (!ex && (flag == ACL_EVENT_EXTERNAL || flag == ACL_EVENT_DEVICE_USE_ONLY)) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: flag is 0x%x, expected a combination of ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE and "
              "ACL_EVENT_CAPTURE_STREAM_PROGRESS, or %s alone",
              api, flag, ex ? "ACL_EVENT_IPC" : "ACL_EVENT_EXTERNAL or ACL_EVENT_DEVICE_USE_ONLY");
}

aclError create(const char* api, aclrtEvent* event, Kind kind, uint32_t flag) {
  return guarded(api, [&]() -> aclError {
    if (event == nullptr) return null_argument(api, "event");
    if (const aclError status = check_flag(api, kind, flag)) return status;
    *event = events().insert(std::make_shared<Event>(kind, flag));
    return ACL_SUCCESS;
  });
}

aclError not_for_ex_events(const char* api) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: the event was made by aclrtCreateEventExWithFlag, whose events this function "
              "does not accept; create it with aclrtCreateEvent",
              api);
}

// The failure of a captured stream that uses an event of a kind that captures do not accept.
aclError not_for_captures(const char* api) {
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: the stream is being captured, which takes events of aclrtCreateEventExWithFlag, "
              "or with the flag ACL_EVENT_EXTERNAL; create the event so",
              api);
}

// Fails with 107028 if the event is recorded in a capture, where it never completes.
aclError refuse_captured_event(const char* api, Event& event) {
  if (!is_pending(event.last_captured())) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_EVENT_CAPTURED,
              "%s: the event was recorded on a stream that is being captured, so that it does not "
              "complete; call this function after aclmdlRICaptureEnd",
              api);
}

// Records an event on a stream that is being captured.
aclError record_in_capture(const char* api, const std::shared_ptr<Event>& event,
                           aclrtStream stream) {
  if (event->is_external()) {
    return submit(api, stream, std::make_unique<ExternalRecordTask>(event));
  }
  if (event->kind != Kind::kExWithFlag) return not_for_captures(api);
  aclError status = ACL_SUCCESS;
  auto record = capture_record(api, stream, &status);
  if (record == nullptr) return status;
  const std::lock_guard lock(event->mutex);
  event->captured = std::move(record);
  return ACL_SUCCESS;
}

// Makes a captured stream wait for an event that was not recorded in a capture.
aclError wait_in_capture(const char* api, aclrtStream stream, const std::shared_ptr<Event>& event) {
  if (event->is_external()) {
    return submit(api, stream, std::make_unique<ExternalWaitTask>(event));
  }
  if (event->kind != Kind::kExWithFlag) return not_for_captures(api);
  if (event->last() == nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
              "%s: the stream is being captured, and the event was recorded outside of the "
              "capture; record it on a stream that is captured too, wait for it before "
              "aclmdlRICaptureBegin, or take an event with the flag ACL_EVENT_EXTERNAL",
              api);
}

aclError synchronize_event(const char* api, aclrtEvent event, int32_t timeout) {
  const ApiSpan span(api);
  return guarded(api, [&]() -> aclError {
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(api, event, &object)) return failure;
    if (const aclError refusal = refuse_captured_event(api, *object)) return refusal;
    const auto record = object->last();
    return or_lost_work(record == nullptr ? ACL_SUCCESS : record->wait(api, Deadline(timeout)));
  });
}

// True if the event's last recording is done. An event that was never recorded counts as ready if
// aclrtCreateEventExWithFlag made it.
aclError query(const Event& event, const std::shared_ptr<Record>& record, bool* ready) {
  if (record != nullptr) return record->query(ready);
  *ready = event.kind == Kind::kExWithFlag;
  return ACL_SUCCESS;
}

// The time at which the event's last recording completed.
aclError time_of(const char* api, const char* argument, aclrtEvent event, Clock::time_point* time) {
  std::shared_ptr<Event> object;
  if (const aclError failure = find_event(api, event, &object, argument)) return failure;
  if (const aclError refusal = refuse_captured_event(api, *object)) return refusal;
  if ((object->flags & ACL_EVENT_TIME_LINE) == 0) {
    return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                "%s: %s was created without ACL_EVENT_TIME_LINE and records no time; create it "
                "with that flag",
                api, argument);
  }
  const auto record = object->last();
  if (record == nullptr) {
    return fail(ACL_ERROR_RT_INTERNAL_ERROR,
                "%s: %s was never recorded; call aclrtRecordEvent first", api, argument);
  }
  if (!record->time(time)) {
    return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                "%s: %s is not complete; synchronise it first", api, argument);
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclrtCreateEvent(aclrtEvent* event) {
  return create("aclrtCreateEvent", event, Kind::kPlain, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return create("aclrtCreateEventWithFlag", event, Kind::kWithFlag, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return create("aclrtCreateEventExWithFlag", event, Kind::kExWithFlag, flag);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  constexpr const char* kApi = "aclrtDestroyEvent";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Event> object;
    if (events().remove(event) != nullptr) return ACL_SUCCESS;
    return find_event(kApi, event, &object);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  constexpr const char* kApi = "aclrtRecordEvent";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(kApi, event, &object)) return failure;
    if (is_captured(stream)) return record_in_capture(kApi, object, stream);
    const auto record = std::make_shared<Record>();
    const aclError status = submit(kApi, stream, std::make_unique<RecordTask>(record));
    if (status != ACL_SUCCESS) return status;  // invalid stream: the event is unchanged
    object->set(record);
    return ACL_SUCCESS;
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  constexpr const char* kApi = "aclrtResetEvent";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(kApi, event, &object)) return failure;
    if (object->kind == Kind::kExWithFlag) return not_for_ex_events(kApi);
    if (is_captured(stream)) {
      if (!object->is_external()) return not_for_captures(kApi);
      return submit(kApi, stream, std::make_unique<ExternalResetTask>(object));
    }
    return submit(kApi, stream, std::make_unique<ResetTask>(object));
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  constexpr const char* kApi = "aclrtStreamWaitEvent";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<Event> object = events().find(event);
    // torch_npu destroys an event once it is complete, although its queue may still hold a wait for
    // it; such a wait has nothing to wait for.
    if (object == nullptr && EventTable::was_made(event)) return ACL_SUCCESS;
    if (object == nullptr) return find_event(kApi, event, &object);
    if (const auto captured = object->last_captured(); is_pending(captured)) {
      if (const auto status = capture_wait(kApi, stream, *captured)) return *status;
    }
    if (is_captured(stream)) return wait_in_capture(kApi, stream, object);
    auto record = object->last();
    // Checks the stream's handle even if there is nothing to wait for.
    if (record == nullptr) (record = std::make_shared<Record>())->settle(ACL_SUCCESS, {});
    return submit(kApi, stream, std::make_unique<WaitTask>(object, std::move(record)));
  });
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  constexpr uint32_t kLongest = std::numeric_limits<int32_t>::max() / 1000;
  wait_timeout = timeout == 0 ? kForever : static_cast<int32_t>(std::min(timeout, kLongest)) * 1000;
  return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  constexpr const char* kApi = "aclrtQueryEvent";
  return guarded(kApi, [&]() -> aclError {
    if (status == nullptr) return null_argument(kApi, "status");
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(kApi, event, &object)) return failure;
    if (object->kind == Kind::kExWithFlag) return not_for_ex_events(kApi);
    if (const aclError refusal = refuse_captured_event(kApi, *object)) return refusal;
    bool ready = false;
    const aclError failure = query(*object, object->last(), &ready);
    *status = ready ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return failure;
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  constexpr const char* kApi = "aclrtQueryEventStatus";
  return guarded(kApi, [&]() -> aclError {
    if (status == nullptr) return null_argument(kApi, "status");
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(kApi, event, &object)) return failure;
    if (const aclError refusal = refuse_captured_event(kApi, *object)) return refusal;
    bool ready = false;
    const aclError failure = query(*object, object->last(), &ready);
    *status = ready ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return failure;
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  constexpr const char* kApi = "aclrtQueryEventWaitStatus";
  return guarded(kApi, [&]() -> aclError {
    if (status == nullptr) return null_argument(kApi, "status");
    std::shared_ptr<Event> object;
    if (const aclError failure = find_event(kApi, event, &object)) return failure;
    if (object->kind == Kind::kExWithFlag) return not_for_ex_events(kApi);
    const bool done = object->pending_waits == 0;
    *status = done ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return ACL_SUCCESS;
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return synchronize_event("aclrtSynchronizeEvent", event, kForever);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  constexpr const char* kApi = "aclrtSynchronizeEventWithTimeout";
  if (timeout < kForever) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: timeout is %d, expected milliseconds, or -1 to wait without a limit", kApi,
                timeout);
  }
  return synchronize_event(kApi, event, timeout);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  constexpr const char* kApi = "aclrtEventElapsedTime";
  return guarded(kApi, [&]() -> aclError {
    if (ms == nullptr) return null_argument(kApi, "ms");
    Clock::time_point start, end;
    if (const aclError status = time_of(kApi, "startEvent", startEvent, &start)) return status;
    if (const aclError status = time_of(kApi, "endEvent", endEvent, &end)) return status;
    if (end < start) {
      return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
                  "%s: endEvent completed before startEvent; pass the earlier event as startEvent",
                  kApi);
    }
    *ms = std::chrono::duration<float, std::milli>(end - start).count();
    return ACL_SUCCESS;
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  constexpr const char* kApi = "aclrtEventGetTimestamp";
  return guarded(kApi, [&]() -> aclError {
    if (timestamp == nullptr) return null_argument(kApi, "timestamp");
    Clock::time_point time;
    if (const aclError status = time_of(kApi, "event", event, &time)) return status;
    const auto since =
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
    *timestamp = static_cast<uint64_t>(since.count());
    return ACL_SUCCESS;
  });
}
