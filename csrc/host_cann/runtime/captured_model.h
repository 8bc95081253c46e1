#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "host_cann/runtime/deadline.h"
#include "host_cann/runtime/handle_table.h"
#include "host_cann/runtime/per_process.h"
#include "host_cann/runtime/task.h"

namespace aclnn_host {

// The object behind an aclmdlRI: the tasks given to streams during capture, in capture order. A
// task can only depend on tasks captured before it, so an execution runs them in that order, on one
// stream.
class CapturedModel {
 public:
  // A captured task, the function that submitted it (a string literal) and its stream.
  struct Step {
    const char* api;
    aclrtStream stream;
    TaskKind kind;
    std::shared_ptr<Task> task;
  };

  explicit CapturedModel(int32_t device) : device_(device), id_(next_id_++) {}

  int32_t device() const noexcept { return device_; }
  uint32_t id() const noexcept { return id_; }

  // Adds a captured task; returns their number; ends the capture, after which the model can be
  // executed.
  void add(Step step);
  size_t size() const;
  void complete();
  bool is_complete() const;

  // Returns a copy of the current steps.
  std::vector<Step> steps() const;

  // Replaces the tasks from `first` on. A running execution uses the new tasks from the step that
  // it has reached.
  void replace(size_t first, const std::vector<std::shared_ptr<Task>>& tasks) noexcept;

  // Runs all tasks up to the first failure and returns its status. Calls are serialised.
  aclError run() noexcept;

  // Notifies the tasks that an execution was dropped.
  void abandon(aclError status, const std::string& message) noexcept;

  // Counts an execution in, and out; and waits until none is left. False at the deadline, or at
  // once if called inside an execution.
  void enter() noexcept;
  void leave() noexcept;
  bool wait_until_idle(const Deadline& deadline);

  void set_name(std::string name);
  std::string name() const;

  // A function to call at the model's destruction.
  using Callback = std::pair<aclrtCallback, void*>;
  void add_callback(const Callback& callback);
  bool remove_callback(aclrtCallback function);
  std::vector<Callback> callbacks() const;

 private:
  std::shared_ptr<Task> task_at(size_t index) const noexcept;
  void abandon_from(size_t first, aclError status, const std::string& message) noexcept;

  static inline std::atomic<uint32_t> next_id_ = 0;

  const int32_t device_;
  const uint32_t id_;
  std::mutex turn_;           // held by the running execution
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  std::vector<Step> steps_;
  bool complete_ = false;
  uint64_t executions_ = 0;
  std::string name_;
  std::vector<Callback> callbacks_;
};

using ModelTable = HandleTable<CapturedModel, Object::kModel>;
inline ModelTable& models() {
  return PerProcess<ModelTable>::get();
}

}  // namespace aclnn_host
