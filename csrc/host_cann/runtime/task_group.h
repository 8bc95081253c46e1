#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/captured_model.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {

// The object behind an aclrtTaskGrp: consecutive tasks of a model that may be replaced.
struct TaskGroup {
  TaskGroup(std::weak_ptr<CapturedModel> of, size_t begin, size_t length)
      : model(std::move(of)), first(begin), count(length) {}

  const std::weak_ptr<CapturedModel> model;
  const size_t first;
  const size_t count;
  bool updating = false;  // guarded by Captures::mutex
};

using TaskGroupTable = HandleTable<TaskGroup, Object::kTaskGroup>;
inline TaskGroupTable& task_groups() {
  return PerProcess<TaskGroupTable>::get();
}

// A group between its Begin and its End.
struct RecordedGroup {
  aclrtStream stream;
  size_t first;
  bool interrupted = false;  // another stream of the capture received a task
};

// The update of a group between its Begin and its End.
struct GroupUpdate {
  std::shared_ptr<TaskGroup> group;
  std::vector<std::shared_ptr<Task>> tasks;
};

// Adds a task to an update; the status says if it was accepted. The caller holds Captures::mutex.
aclError add_to_update(const char* api, GroupUpdate& update, std::unique_ptr<Task>& task,
                       TaskKind kind);

// Ends the groups of a model that ends.
void end_task_groups(const CapturedModel& model);

}  // namespace aclnn_host
