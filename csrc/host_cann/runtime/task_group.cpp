// Groups of captured tasks, and their updates.
#include "host_cann/runtime/task_group.h"

#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/capture.h"
#include "host_cann/runtime/stream.h"

namespace aclnn_host {
namespace {

// Replaces a group's tasks when the stream that collected the new ones reaches this task.
class UpdateTask final : public Task {
 public:
  UpdateTask(std::shared_ptr<CapturedModel> model, size_t first,
             std::vector<std::shared_ptr<Task>> tasks)
      : model_(std::move(model)), first_(first), tasks_(std::move(tasks)) {}
  aclError run() noexcept override {
    model_->replace(first_, tasks_);
    return ACL_SUCCESS;
  }

 private:
  const std::shared_ptr<CapturedModel> model_;
  const size_t first_;
  const std::vector<std::shared_ptr<Task>> tasks_;
};

aclError not_captured(const char* api) {
  return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
              "%s: the stream is not being captured; call aclmdlRICaptureBegin first", api);
}

aclError begin_group(const char* api, aclrtStream stream) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  const auto capture = capture_of(state, stream);
  if (capture == nullptr) return not_captured(api);
  if (capture->group) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: a group of tasks is being recorded already; call aclmdlRICaptureTaskGrpEnd "
                "first",
                api);
  }
  if (const aclError status = admit(api, *capture, stream)) return status;
  capture->group = RecordedGroup{stream, capture->model->size()};
  return ACL_SUCCESS;
}

aclError end_group(const char* api, aclrtStream stream, aclrtTaskGrp* handle) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (handle == nullptr) return null_argument(api, "handle");
  *handle = nullptr;
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  const auto capture = capture_of(state, stream);
  if (capture == nullptr) return not_captured(api);
  if (!capture->group || capture->group->stream != stream) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: no group of tasks is being recorded on the stream; call "
                "aclmdlRICaptureTaskGrpBegin on it first",
                api);
  }
  const RecordedGroup group = *capture->group;
  capture->group.reset();
  if (group.interrupted) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_INTR,
                "%s: another stream of the capture was given a task in between; record a group on "
                "one stream at a time",
                api);
  }
  if (const aclError status = admit(api, *capture, stream)) return status;
  const size_t count = capture->model->size() - group.first;
  *handle = task_groups().insert(std::make_shared<TaskGroup>(capture->model, group.first, count));
  return ACL_SUCCESS;
}

aclError begin_update(const char* api, aclrtStream stream, aclrtTaskGrp handle) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (handle == nullptr) return null_argument(api, "handle");
  const auto group = task_groups().find(handle);
  if (group == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE,
                "%s: %p is not a group of tasks of this process, or its model was destroyed", api,
                handle);
  }
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (state.streams.contains(stream)) return stream_is_captured(api);
  if (state.updates.contains(stream) || group->updating) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: %s; call aclmdlRICaptureTaskUpdateEnd first", api,
                group->updating ? "the group is being updated already"
                                : "the stream is updating another group");
  }
  state.updates.emplace(stream, GroupUpdate{group, {}});
  state.count();
  group->updating = true;
  return ACL_SUCCESS;
}

// Ends the update that a stream collects; false if it collects none.
bool take_update(aclrtStream stream, GroupUpdate* update) {
  auto& state = captures();
  const std::lock_guard lock(state.mutex);
  const auto node = state.updates.extract(stream);
  if (node.empty()) return false;
  state.count();
  *update = std::move(node.mapped());
  update->group->updating = false;
  return true;
}

aclError end_update(const char* api, aclrtStream stream) {
  if (stream == nullptr) return null_argument(api, "stream");
  if (require_stream(api, stream) == nullptr) return ACL_ERROR_RT_INVALID_HANDLE;
  if (const aclError status = refuse_captured(api, stream)) return status;
  GroupUpdate update;
  if (!take_update(stream, &update)) {
    return fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "%s: the stream is not updating a group; call aclmdlRICaptureTaskUpdateBegin first",
                api);
  }
  const size_t count = update.group->count;
  if (update.tasks.size() != count) {
    return fail(ACL_ERROR_RT_INTERNAL_ERROR,
                "%s: the number of operators that the stream was given is %zu, expected %zu, as "
                "many as the group has; the group is as it was",
                api, update.tasks.size(), count);
  }
  auto model = update.group->model.lock();
  if (model == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: the model of the group was destroyed", api);
  }
  return submit(
      api, stream,
      std::make_unique<UpdateTask>(std::move(model), update.group->first, std::move(update.tasks)));
}

}  // namespace

aclError add_to_update(const char* api, GroupUpdate& update, std::unique_ptr<Task>& task,
                       TaskKind kind) {
  if (kind != TaskKind::kOperator) {
    return fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
                "%s: the stream is updating a group of tasks, which takes calls of operators "
                "alone; call this function after aclmdlRICaptureTaskUpdateEnd",
                api);
  }
  task->launch = {.api = api, .kind = kind};
  update.tasks.push_back(std::move(task));
  return ACL_SUCCESS;
}

void end_task_groups(const CapturedModel& model) {
  task_groups().remove_if(
      [&](const TaskGroup& group) { return group.model.lock().get() == &model; });
}

}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  constexpr const char* kApi = "aclmdlRICaptureTaskGrpBegin";
  return guarded(kApi, [&] { return begin_group(kApi, stream); });
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  constexpr const char* kApi = "aclmdlRICaptureTaskGrpEnd";
  return guarded(kApi, [&] { return end_group(kApi, stream, handle); });
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  constexpr const char* kApi = "aclmdlRICaptureTaskUpdateBegin";
  return guarded(kApi, [&] { return begin_update(kApi, stream, handle); });
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  constexpr const char* kApi = "aclmdlRICaptureTaskUpdateEnd";
  return guarded(kApi, [&] { return end_update(kApi, stream); });
}
