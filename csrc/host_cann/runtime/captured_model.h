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

// The object behind an aclmdlRI: the tasks that streams were given while they were captured, in the
// order of capture. That order is one in which they may run, for a task can only depend on what was
// captured before it, so an execution runs them one after another, on one stream.
class CapturedModel {
 public:
  // A captured task, the function that brought it (a string literal) and the stream it was for.
  struct Step {
    const char* api;
    aclrtStream stream;
    TaskKind kind;
    std::shared_ptr<Task> task;
  };

  explicit CapturedModel(int32_t device) : device_(device), id_(next_id_++) {}

  int32_t device() const noexcept { return device_; }
  uint32_t id() const noexcept { return id_; }

  // Capture: adds a task; how many there are; the end, from which on the model can be executed.
  void add(Step step);
  size_t size() const;
  void complete();
  bool is_complete() const;

  // The steps as they are now.
  std::vector<Step> steps() const;

  // Puts tasks in the places of those from `first` on. An execution under way takes the new ones
  // where it has not come to the old ones yet.
  void replace(size_t first, const std::vector<std::shared_ptr<Task>>& tasks) noexcept;

  // Runs all tasks, up to the first that fails, whose status it returns. One call at a time.
  aclError run() noexcept;

  // Tells the tasks that an execution was dropped.
  void abandon(aclError status, const std::string& message) noexcept;

  // An execution was asked for, or is over; and the wait until there is none. False at the
  // deadline, or at once in a function that an execution calls.
  void enter() noexcept;
  void leave() noexcept;
  bool wait_until_idle(const Deadline& deadline);

  void set_name(std::string name);
  std::string name() const;

  // What is called at the model's destruction.
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
  std::mutex turn_;           // held by the execution that runs
  mutable std::mutex mutex_;  // guards what follows
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
