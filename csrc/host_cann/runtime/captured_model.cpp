// Captured models: execution, names, destruction.
#include "host_cann/runtime/captured_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include <unistd.h>

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/named_file.h"
#include "host_cann/runtime/profile_hooks.h"
#include "host_cann/runtime/stream.h"
#include "host_cann/runtime/task_group.h"
#include "host_cann/runtime/write_all.h"

namespace aclnn_host {
namespace {

// Timeout for a model's destruction to wait for its executions, in milliseconds; CANN's value.
constexpr int32_t kDestroyPatience = 10000;

constexpr size_t kLongestName = 512;

// The model that the calling thread executes.
thread_local const CapturedModel* executing = nullptr;

// An execution of a model, as a task of a stream.
class ExecutionTask final : public Task {
 public:
  explicit ExecutionTask(std::shared_ptr<CapturedModel> model) : model_(std::move(model)) {
    model_->enter();
  }
  ~ExecutionTask() override { model_->leave(); }
  aclError run() noexcept override { return model_->run(); }
  void abandon(aclError status, const std::string& message) noexcept override {
    model_->abandon(status, message);
  }

 private:
  const std::shared_ptr<CapturedModel> model_;
};

// Finds the model of a handle.
aclError find_model(const char* api, aclmdlRI handle, std::shared_ptr<CapturedModel>* model) {
  if (handle == nullptr) return null_argument(api, "modelRI");
  *model = models().find(handle);
  if (*model != nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              "%s: %p is not a model of this process: it was destroyed, or its capture failed", api,
              handle);
}

// The same, and fails if the model's capture is not over.
aclError find_complete(const char* api, aclmdlRI handle, std::shared_ptr<CapturedModel>* model) {
  if (const aclError status = find_model(api, handle, model)) return status;
  if ((*model)->is_complete()) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_MODEL_CAPTURED,
              "%s: the model is still being captured; call aclmdlRICaptureEnd first", api);
}

// Without a stream, a model runs on the thread's device.
aclError other_device_of_thread(const char* api, const CapturedModel& model, int32_t device) {
  return fail(ACL_ERROR_RT_STREAM_CONTEXT,
              "%s: the model was captured on device %d, but this thread's device is %d; call "
              "aclrtSetDevice for the model's device first",
              api, model.device(), device);
}

aclError other_device_of_stream(const char* api, const CapturedModel& model, int32_t device) {
  return fail(ACL_ERROR_RT_STREAM_CONTEXT,
              "%s: the model was captured on device %d, but the stream belongs to device %d; "
              "execute it on a stream of its own device",
              api, model.device(), device);
}

aclError execute_async(const char* api, aclmdlRI handle, aclrtStream stream) {
  std::shared_ptr<CapturedModel> model;
  if (const aclError status = find_complete(api, handle, &model)) return status;
  int32_t device = current_device();
  if (stream != nullptr) {
    const auto object = require_stream(api, stream);
    if (object == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
    device = object->device();
    if (const aclError status = refuse_captured(api, stream)) return status;
  } else if (require_context(api) == nullptr) {
    return ACL_ERROR_RT_CONTEXT_NULL;
  }
  if (device != model->device()) {
    return stream == nullptr ? other_device_of_thread(api, *model, device)
                             : other_device_of_stream(api, *model, device);
  }
  return submit(api, stream, std::make_unique<ExecutionTask>(std::move(model)));
}

// A stream for one execution. The destructor joins its worker if the work is known to be done;
// otherwise the worker ends by itself.
struct OwnStream {
  explicit OwnStream(int32_t device) : stream(std::make_shared<Stream>(thread_context(), device)) {}
  ~OwnStream() {
    stream->close(false);
    done ? stream->join() : stream->detach();
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  const std::shared_ptr<Stream> stream;
  bool done = false;
};

aclError execute(const char* api, aclmdlRI handle, int32_t timeout) {
  if (timeout < kForever || timeout == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: timeout is %d, expected 1 or more milliseconds, or -1 to wait without a limit",
                api, timeout);
  }
  std::shared_ptr<CapturedModel> model;
  if (const aclError status = find_complete(api, handle, &model)) return status;
  const auto context = require_context(api);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (context->device != model->device()) {
    return other_device_of_thread(api, *model, context->device);
  }
  OwnStream own(context->device);
  auto task = std::make_unique<ExecutionTask>(std::move(model));
  if (const aclError status = own.stream->enqueue(api, std::move(task))) return status;
  const aclError status = own.stream->synchronize(api, Deadline(timeout));
  own.done = status != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  return status;
}

aclError destroy(const char* api, aclmdlRI handle) {
  std::shared_ptr<CapturedModel> model;
  if (const aclError status = find_complete(api, handle, &model)) return status;
  if (!model->wait_until_idle(Deadline(kDestroyPatience))) {
    return fail(ACL_ERROR_RT_MODEL_RUNNING,
                "%s: the model is being executed; synchronise the stream that executes it first",
                api);
  }
  const auto callbacks = model->callbacks();
  if (models().remove(handle) == nullptr) return find_model(api, handle, &model);
  end_task_groups(*model);
  aclError first = ACL_SUCCESS;
  for (const auto& [function, data] : callbacks) {
    try {
      function(data);
    } catch (...) {
      const aclError status =
          fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s: a registered function threw an exception", api);
      if (first == ACL_SUCCESS) first = status;
    }
  }
  return first;
}

// Writes the steps as events of chrome://tracing: one row per stream, one slot per task.
void write_steps(std::ostream& out, const CapturedModel& model) {
  std::map<aclrtStream, size_t> streams;  // numbered by first appearance
  size_t index = 0;
  for (const auto& step : model.steps()) {
    const size_t stream = streams.emplace(step.stream, streams.size()).first->second;
    out << (index == 0 ? "[\n" : ",\n") << R"(  {"name": ")" << step.api
        << R"(", "ph": "X", "pid": "model)" << model.id() << R"(", "tid": "stream)" << stream
        << R"(", "ts": )" << index << R"(, "dur": 1, "args": {"Model Id": )" << model.id()
        << R"(, "Stream Id": )" << stream << R"(, "Task Id": )" << index << R"(, "Task Type": ")"
        << (step.kind == TaskKind::kOperator ? "operator" : "runtime") << R"("}})";
    ++index;
  }
  out << (index == 0 ? "[]\n" : "\n]\n");
}

aclError write_json(const char* api, const CapturedModel& model, const char* path) {
  std::ostringstream text;
  write_steps(text, model);
  NamedFile file = open_named_file(path, Existing::kEmptied);
  if (file.error == 0) {
    const int error = write_all(file.descriptor, text.str());
    close(file.descriptor);
    if (error == 0) return ACL_SUCCESS;
    file.reason = std::strerror(error);
  }
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: path %s cannot be written: %s", api, path,
              file.reason.c_str());
}

}  // namespace

void CapturedModel::add(Step step) {
  const std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
}

size_t CapturedModel::size() const {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

void CapturedModel::complete() {
  const std::lock_guard lock(mutex_);
  complete_ = true;
}

bool CapturedModel::is_complete() const {
  const std::lock_guard lock(mutex_);
  return complete_;
}

std::vector<CapturedModel::Step> CapturedModel::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

void CapturedModel::replace(size_t first,
                            const std::vector<std::shared_ptr<Task>>& tasks) noexcept {
  for (size_t i = 0; i < tasks.size(); ++i) {
    std::shared_ptr<Task> task = tasks[i];
    const std::lock_guard lock(mutex_);
    // Destroys the old task outside the lock, or once it has run.
    steps_[first + i].task.swap(task);
  }
}

std::shared_ptr<Task> CapturedModel::task_at(size_t index) const noexcept {
  const std::lock_guard lock(mutex_);
  return index < steps_.size() ? steps_[index].task : nullptr;
}

bool is_replayed() noexcept {
  return executing != nullptr;
}

aclError CapturedModel::run() noexcept {
  const std::lock_guard turn(turn_);
  const CapturedModel* const outer = executing;
  executing = this;
  aclError status = ACL_SUCCESS;
  for (size_t i = 0; status == ACL_SUCCESS; ++i) {
    const auto task = task_at(i);
    if (task == nullptr) break;
    status = run_captured(*task);
    if (status == ACL_SUCCESS) continue;
    const std::string message = take_messages();
    abandon_from(i + 1, status, message);
    put_messages(message);
  }
  executing = outer;
  return status;
}

void CapturedModel::abandon(aclError status, const std::string& message) noexcept {
  abandon_from(0, status, message);
}

void CapturedModel::abandon_from(size_t first, aclError status,
                                 const std::string& message) noexcept {
  for (size_t i = first; const auto task = task_at(i); ++i) task->abandon(status, message);
}

void CapturedModel::enter() noexcept {
  const std::lock_guard lock(mutex_);
  ++executions_;
}

void CapturedModel::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (--executions_ == 0) idle_.notify_all();
}

bool CapturedModel::wait_until_idle(const Deadline& deadline) {
  if (executing == this) return false;
  std::unique_lock lock(mutex_);
  return deadline.wait(idle_, lock, [&] { return executions_ == 0; });
}

void CapturedModel::set_name(std::string name) {
  const std::lock_guard lock(mutex_);
  name_ = std::move(name);
}

std::string CapturedModel::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

void CapturedModel::add_callback(const Callback& callback) {
  const std::lock_guard lock(mutex_);
  callbacks_.push_back(callback);
}

bool CapturedModel::remove_callback(aclrtCallback function) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(callbacks_, [&](const auto& each) { return each.first == function; }) > 0;
}

std::vector<CapturedModel::Callback> CapturedModel::callbacks() const {
  const std::lock_guard lock(mutex_);
  return callbacks_;
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  constexpr const char* kApi = "aclmdlRIExecuteAsync";
  return guarded(kApi, [&] { return execute_async(kApi, modelRI, stream); });
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  constexpr const char* kApi = "aclmdlRIExecute";
  return guarded(kApi, [&] { return execute(kApi, modelRI, timeout); });
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  constexpr const char* kApi = "aclmdlRIDestroy";
  return guarded(kApi, [&] { return destroy(kApi, modelRI); });
}

aclError aclmdlRIAbort(aclmdlRI modelRI) {
  constexpr const char* kApi = "aclmdlRIAbort";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: the model was captured, and CANN does not stop the execution of such a model; "
                "synchronise the stream that executes it",
                kApi);
  });
}

aclError aclmdlRISetName(aclmdlRI modelRI, const char* name) {
  constexpr const char* kApi = "aclmdlRISetName";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    if (name == nullptr) return null_argument(kApi, "name");
    model->set_name(std::string(name, strnlen(name, kLongestName)));
    return ACL_SUCCESS;
  });
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name) {
  constexpr const char* kApi = "aclmdlRIGetName";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    if (name == nullptr) return null_argument(kApi, "name");
    if (maxLen == 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "%s: maxLen is 0, expected the size of name's memory, at least 1", kApi);
    }
    const std::string own = model->name();
    const size_t length = std::min(own.size(), static_cast<size_t>(maxLen) - 1);
    std::memcpy(name, own.data(), length);
    name[length] = '\0';
    return ACL_SUCCESS;
  });
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  constexpr const char* kApi = "aclmdlRIGetId";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    if (modelRIId == nullptr) return null_argument(kApi, "modelRIId");
    *modelRIId = model->id();
    return ACL_SUCCESS;
  });
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void* userData) {
  constexpr const char* kApi = "aclmdlRIDestroyRegisterCallback";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    if (func == nullptr) return null_argument(kApi, "func");
    model->add_callback({func, userData});
    return ACL_SUCCESS;
  });
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) {
  constexpr const char* kApi = "aclmdlRIDestroyUnregisterCallback";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_model(kApi, modelRI, &model)) return status;
    if (func == nullptr) return null_argument(kApi, "func");
    if (model->remove_callback(func)) return ACL_SUCCESS;
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: func is not registered with the model; call aclmdlRIDestroyRegisterCallback "
                "first",
                kApi);
  });
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  constexpr const char* kApi = "aclmdlRIDebugPrint";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    return find_complete(kApi, modelRI, &model);
  });
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) {
  constexpr const char* kApi = "aclmdlRIDebugJsonPrint";
  return guarded(kApi, [&]() -> aclError {
    std::shared_ptr<CapturedModel> model;
    if (const aclError status = find_complete(kApi, modelRI, &model)) return status;
    if (path == nullptr) return null_argument(kApi, "path");
    if (flags > ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags is 0x%x, expected 0 or 1", kApi, flags);
    }
    return write_json(kApi, *model, path);
  });
}
