// Stream capture: records the work given to streams as a model.
#include "host_cann/runtime/capture.h"

#include <algorithm>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/stream.h"

namespace aclnn_host {
namespace {

// The mode that aclmdlRICaptureThreadExchangeMode sets for the calling thread.
thread_local aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

bool is_mode(aclmdlRICaptureMode mode) {
  return mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

aclError unknown_mode(const char* api, aclmdlRICaptureMode mode) {
  return fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: mode is %d, expected ACL_MODEL_RI_CAPTURE_MODE_GLOBAL (0), THREAD_LOCAL (1) or "
              "RELAXED (2)",
              api, mode);
}

aclError invalidated(const char* api, const Capture& capture) {
  return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
              "%s: no model can come of the capture any more: %s; end it with aclmdlRICaptureEnd, "
              "and capture anew",
              api, capture.problem);
}

// Changes a capture, and invalidates it if memory runs out in the middle of the change.
template <class Change>
void change(Capture& capture, Change&& make) {
  try {
    make();
  } catch (...) {
    capture.problem = "memory ran out in it";
    throw;
  }
}

// Counts a step of a stream; it depends on everything that the stream has done or waited for.
void step(Capture& capture, aclrtStream stream) {
  ++capture.streams[stream][stream];
}

aclError add_task(const char* api, Capture& capture, aclrtStream stream,
                  std::unique_ptr<Task>& task, TaskKind kind) {
  if (const aclError status = admit(api, capture, stream)) return status;
  if (capture.group && kind != TaskKind::kOperator) {
    return fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
                "%s: the stream is recording a group of tasks, which takes calls of operators "
                "alone; call this function after aclmdlRICaptureTaskGrpEnd",
                api);
  }
  task->launch = {.api = api, .stream = stream, .kind = kind};
  change(capture, [&] {
    capture.model->add({api, stream, kind, std::shared_ptr<Task>(std::move(task))});
    step(capture, stream);
  });
  return ACL_SUCCESS;
}

// Returns a captured stream that was not joined to the origin, or null.
aclrtStream find_unjoined(const Capture& capture) {
  const Progress& joined = capture.streams.at(capture.origin);
  for (const auto& [stream, progress] : capture.streams) {
    const auto seen = joined.find(stream);
    if (stream != capture.origin && (seen == joined.end() || seen->second < progress.at(stream))) {
      return stream;
    }
  }
  return nullptr;
}

// Removes a capture's streams from the table and returns its model, which recorded events would
// otherwise keep alive. The caller holds the mutex.
std::shared_ptr<CapturedModel> release(Captures& state, Capture& capture) {
  std::erase_if(state.streams, [&](const auto& each) { return each.second.get() == &capture; });
  state.count();
  capture.ended = true;
  return std::move(capture.model);
}

// Returns the error, in api's name, for a capture that yields no model, or success. The capture's
// streams have been released.
aclError judge(const char* api, const Capture& capture, std::thread::id thread) {
  if (thread != capture.thread && capture.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
                "%s: another thread began the capture; end it on that thread, or begin it with "
                "ACL_MODEL_RI_CAPTURE_MODE_RELAXED",
                api);
  }
  if (capture.problem != nullptr) return invalidated(api, capture);
  if (capture.group) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: a group of tasks is still being recorded; call aclmdlRICaptureTaskGrpEnd "
                "first",
                api);
  }
  if (const aclrtStream stream = find_unjoined(capture)) {
    return fail(ACL_ERROR_RT_STREAM_UNJOINED,
                "%s: stream %p was captured too, and the stream that the capture began on does not "
                "wait for its last step; record an event at its end, and have that stream wait for "
                "the event before the capture ends",
                api, stream);
  }
  return ACL_SUCCESS;
}

// Destroys the model of a failed capture.
void discard(aclmdlRI handle, const CapturedModel& model) {
  models().remove(handle);
  end_task_groups(model);
}

aclError begin(const char* api, aclrtStream stream, aclmdlRICaptureMode mode) {
  if (stream == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "%s: stream is a null pointer, and the default stream cannot be captured; create a "
                "stream with aclrtCreateStream",
                api);
  }
  if (!is_mode(mode)) return unknown_mode(api, mode);
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  // Under the lock, so that the stream cannot end in between.
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (state.streams.contains(stream)) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURED,
                "%s: the stream is being captured already; call aclmdlRICaptureEnd first", api);
  }
  if (state.updates.contains(stream)) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: the stream is updating a group of tasks; call aclmdlRICaptureTaskUpdateEnd "
                "first",
                api);
  }
  auto capture = std::make_shared<Capture>();
  capture->model = std::make_shared<CapturedModel>(object->device());
  capture->context = object->context();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams[stream];
  state.streams.emplace(stream, capture);
  try {
    capture->handle = models().insert(capture->model);
  } catch (...) {
    state.streams.erase(stream);
    throw;
  }
  state.count();
  return ACL_SUCCESS;
}

aclError end(const char* api, aclrtStream stream, aclmdlRI* handle) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (handle == nullptr) return null_argument(api, "modelRI");
  *handle = nullptr;
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  std::shared_ptr<Capture> capture;
  std::shared_ptr<CapturedModel> model;
  {
    auto& state = captures();
    const std::lock_guard lock(state.mutex);
    capture = capture_of(state, stream);
    if (capture == nullptr) {
      return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
                  "%s: the stream is not being captured; call aclmdlRICaptureBegin first", api);
    }
    if (capture->origin != stream) {
      return fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
                  "%s: the capture did not begin on this stream, which joined it by an event; call "
                  "this function for the stream that it began on, %p",
                  api, capture->origin);
    }
    model = release(state, *capture);
  }
  if (const aclError status = judge(api, *capture, std::this_thread::get_id())) {
    discard(capture->handle, *model);
    return status;
  }
  model->complete();
  *handle = capture->handle;
  return ACL_SUCCESS;
}

aclError get_info(const char* api, aclrtStream stream, aclmdlRICaptureStatus* status,
                  aclmdlRI* handle) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (status == nullptr && handle == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "%s: status and modelRI are null pointers, expected one that is not", api);
  }
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  auto& state = captures();
  std::shared_ptr<Capture> capture;
  bool valid = false;
  if (state.busy != 0) {
    const std::lock_guard lock(state.mutex);
    capture = capture_of(state, stream);
    valid = capture != nullptr && capture->problem == nullptr;
  }
  if (status != nullptr) {
    *status = capture == nullptr ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
              : valid            ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
                                 : ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  }
  if (handle != nullptr) *handle = capture == nullptr ? nullptr : capture->handle;
  return ACL_SUCCESS;
}

// True if a capture of this context forbids the calling thread to call functions that wait for the
// device, by the table of aclmdlRICaptureThreadExchangeMode. The caller holds the mutex.
bool forbids(const Captures& state, aclrtContext context) {
  const auto self = std::this_thread::get_id();
  for (const auto& [stream, capture] : state.streams) {
    if (capture->context != context || capture->mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) continue;
    if (capture->thread == self) return true;
    if (capture->mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL &&
        thread_mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) {
      return true;
    }
  }
  return false;
}

// Adds a stream to a record's capture and makes it wait for the record. The caller holds the mutex.
aclError join(const char* api, Captures& state, aclrtStream stream, const CapturedRecord& record) {
  Capture& capture = *record.capture;
  if (const aclError status = admit(api, capture, stream)) return status;
  change(capture, [&] {
    state.streams.emplace(stream, record.capture);
    state.count();
    Progress& progress = capture.streams[stream];
    for (const auto& [other, count] : record.progress) {
      uint64_t& known = progress[other];
      known = std::max(known, count);
    }
    step(capture, stream);
  });
  return ACL_SUCCESS;
}

}  // namespace

std::shared_ptr<Capture> capture_of(const Captures& state, aclrtStream stream) {
  const auto found = state.streams.find(stream);
  return found == state.streams.end() ? nullptr : found->second;
}

aclError admit(const char* api, Capture& capture, aclrtStream stream) {
  if (capture.problem != nullptr) return invalidated(api, capture);
  if (capture.group && capture.group->stream != stream) {
    capture.group->interrupted = true;
    return fail(ACL_ERROR_STREAM_TASK_GROUP_INTR,
                "%s: a group of tasks is being recorded on another stream of the capture; call "
                "this function after aclmdlRICaptureTaskGrpEnd",
                api);
  }
  return ACL_SUCCESS;
}

std::optional<aclError> divert(const char* api, aclrtStream stream, std::unique_ptr<Task>& task,
                               TaskKind kind) {
  auto& state = captures();
  if (state.busy == 0) return std::nullopt;
  const std::lock_guard lock(state.mutex);
  const auto update = state.updates.find(stream);
  if (update != state.updates.end()) return add_to_update(api, update->second, task, kind);
  const auto capture = capture_of(state, stream);
  if (capture == nullptr) return std::nullopt;
  return add_task(api, *capture, stream, task, kind);
}

bool is_captured(aclrtStream stream) {
  auto& state = captures();
  if (state.busy == 0) return false;
  const std::lock_guard lock(state.mutex);
  return state.streams.contains(stream);
}

aclError refuse_captured(const char* api, aclrtStream stream) {
  return is_captured(stream) ? stream_is_captured(api) : aclError{ACL_SUCCESS};
}

aclError stream_is_captured(const char* api) noexcept {
  return fail(ACL_ERROR_RT_STREAM_CAPTURED,
              "%s: the stream is being captured, so that its tasks do not run; call this function "
              "before aclmdlRICaptureBegin or after aclmdlRICaptureEnd",
              api);
}

aclError refuse_captured_device(const char* api, int32_t device) {
  auto& state = captures();
  if (state.busy == 0) return ACL_SUCCESS;
  const std::lock_guard lock(state.mutex);
  for (const auto& [stream, capture] : state.streams) {
    if (capture->model->device() != device) continue;
    return fail(ACL_ERROR_RT_STREAM_CAPTURED,
                "%s: stream %p of device %d is being captured; call this function before "
                "aclmdlRICaptureBegin or after aclmdlRICaptureEnd",
                api, stream, device);
  }
  return ACL_SUCCESS;
}

aclError refuse_in_mode(const char* api, aclError status) {
  auto& state = captures();
  if (state.busy == 0) return ACL_SUCCESS;
  const aclrtContext context = thread_context();
  const std::lock_guard lock(state.mutex);
  if (context == nullptr || thread_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED ||
      !forbids(state, context)) {
    return ACL_SUCCESS;
  }
  return fail(status,
              "%s: a stream is being captured, in a mode that forbids this thread calls that wait "
              "for the device; if the capture does not depend on what is copied or set, set the "
              "thread's mode to ACL_MODEL_RI_CAPTURE_MODE_RELAXED with "
              "aclmdlRICaptureThreadExchangeMode for the time of the call",
              api);
}

std::shared_ptr<CapturedRecord> capture_record(const char* api, aclrtStream stream,
                                               aclError* status) {
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  *status = ACL_SUCCESS;
  auto capture = capture_of(state, stream);
  if (capture == nullptr) return nullptr;
  *status = admit(api, *capture, stream);
  if (*status != ACL_SUCCESS) return nullptr;
  change(*capture, [&] { step(*capture, stream); });
  Progress progress = capture->streams.at(stream);
  return std::make_shared<CapturedRecord>(CapturedRecord{std::move(capture), std::move(progress)});
}

std::optional<aclError> capture_wait(const char* api, aclrtStream stream,
                                     const CapturedRecord& record) {
  if (stream == nullptr) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
                "%s: the event was recorded on a stream that is being captured, and the default "
                "stream cannot be captured with it; pass another stream",
                api);
  }
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  const auto object = require_stream(api, stream);
  if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  Capture& capture = *record.capture;
  if (capture.ended) return std::nullopt;
  const auto own = capture_of(state, stream);
  if (own != nullptr && own != record.capture) {
    own->problem = capture.problem = "a stream of one capture waited for an event of another";
    return fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT,
                "%s: the stream is being captured into one model, and the event was recorded in "
                "the capture of another; no model can come of either",
                api);
  }
  if (own == nullptr && object->context() != capture.context) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT,
                "%s: the stream belongs to another context than the capture that the event was "
                "recorded in, so that it cannot be captured with it",
                api);
  }
  if (state.updates.contains(stream)) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: the stream is updating a group of tasks; call aclmdlRICaptureTaskUpdateEnd "
                "first",
                api);
  }
  return join(api, state, stream, record);
}

bool is_pending(const std::shared_ptr<CapturedRecord>& record) {
  if (record == nullptr) return false;
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  return !record->capture->ended;
}

void end_capture_of(aclrtStream stream) {
  auto& state = captures();
  std::shared_ptr<Capture> capture;
  std::shared_ptr<CapturedModel> model;
  std::map<aclrtStream, GroupUpdate>::node_type update;
  {
    const std::lock_guard lock(state.mutex);
    update = state.updates.extract(stream);
    if (!update.empty()) update.mapped().group->updating = false;
    capture = capture_of(state, stream);
    if (capture != nullptr && capture->origin == stream) {
      model = release(state, *capture);
    } else if (capture != nullptr) {
      capture->problem = "one of its streams ended with its device or context";
    }
    state.count();
  }
  if (model != nullptr) discard(capture->handle, *model);
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  constexpr const char* kApi = "aclmdlRICaptureBegin";
  return guarded(kApi, [&] { return begin(kApi, stream, mode); });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  constexpr const char* kApi = "aclmdlRICaptureGetInfo";
  return guarded(kApi, [&] { return get_info(kApi, stream, status, modelRI); });
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  constexpr const char* kApi = "aclmdlRICaptureEnd";
  return guarded(kApi, [&] { return end(kApi, stream, modelRI); });
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  constexpr const char* kApi = "aclmdlRICaptureThreadExchangeMode";
  if (mode == nullptr) return null_argument(kApi, "mode");
  if (!is_mode(*mode)) return unknown_mode(kApi, *mode);
  std::swap(thread_mode, *mode);
  return ACL_SUCCESS;
}
