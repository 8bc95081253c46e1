#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/aclnn_guard.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/descriptors/executor_table.h"
#include "host_cann/descriptors/given.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/live_objects.h"
#include "host_cann/runtime/recycled.h"
#include "host_cann/runtime/task.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// A tensor argument of an operator. An argument overwritten in place is both input and output. The
// tensors of a list are consecutive and share a list number; 0 means no list.
struct TensorArgument {
  TensorView* view;
  bool is_input;
  bool is_output;
  size_t list = 0;
  uint64_t block = 0;  // number of its block at the launch; 0 for none
};

// All tensor arguments, in the order of the operator's prototype.
struct TensorArguments {
  TensorArgument* begin = nullptr;
  size_t count = 0;
};

}  // namespace aclnn_host

// A checked operator call, ready to run: made by stage 1, consumed by stage 2. Holds copies of all
// its data, is independent of any thread, and is itself the task that a stream runs.
struct ACLNN_HOST_INTERNAL aclOpExecutor : aclnn_host::Task, aclnn_host::Recycled {
  aclOpExecutor(const char* api, uint64_t workspace_size)
      : api(api), workspace_size(workspace_size) {}

  // Runs the computation. `workspace` holds at least workspace_size bytes.
  virtual aclnnStatus compute(void* workspace) noexcept = 0;
  virtual std::unique_ptr<aclOpExecutor> clone() const = 0;
  virtual aclnn_host::TensorArguments tensors() noexcept = 0;

  aclError run() noexcept final;
  void describe(std::string& record) final;

  const char* api;  // "aclnnElu"; a string literal
  uint64_t workspace_size;
  void* workspace = nullptr;
  uint64_t workspace_block = 0;  // as TensorArgument::block
  aclnn_host::Counted<aclnn_host::Object::kExecutor> counted;
};

namespace aclnn_host {

// Computes in the workspace given to stage 2. tests/mutants replaces this function by one that
// changes the results.
aclnnStatus compute_call(aclOpExecutor& executor);

// The executor of an operator. Plan has `aclnnStatus compute(void* workspace)`, which may throw,
// and `tensors`, an array of kMaxTensors TensorViews, tensor_count of them in use: the tensor
// arguments of the prototype. is_input(i) and is_output(i) give their sides.
template <class Plan>
struct ExecutorOf final : aclOpExecutor {
  ExecutorOf(const char* api, uint64_t workspace_size, Plan&& plan)
      : aclOpExecutor(api, workspace_size), plan(std::move(plan)) {
    point_at_tensors();
  }
  ExecutorOf(const ExecutorOf& other) : aclOpExecutor(other), plan(other.plan) {
    point_at_tensors();
  }

  aclnnStatus compute(void* workspace) noexcept override {
    try {
      return plan.compute(workspace);
    } catch (const std::exception& error) {
      return fail(ACLNN_ERR_INNER, "%s: the computation failed: %s", api, error.what());
    }
  }
  std::unique_ptr<aclOpExecutor> clone() const override {
    return std::make_unique<ExecutorOf>(*this);
  }
  TensorArguments tensors() noexcept override { return {arguments, plan.tensor_count}; }

  void point_at_tensors() {
    for (size_t i = 0; i < plan.tensor_count; ++i) {
      arguments[i] = {&plan.tensors[i], plan.is_input(i), plan.is_output(i)};
    }
  }

  Plan plan;
  TensorArgument arguments[Plan::kMaxTensors];
};

// Stage 1 of every operator: `body` checks the arguments and makes the executor. Its exceptions
// become statuses, even one thrown for lack of memory for an error text. `given` are the
// prototype's arguments.
ACLNN_HOST_INTERNAL aclnnStatus stage1(const char* api, GivenArguments given,
                                       aclnnStatus (*body)(const void* of),
                                       const void* of) noexcept;
template <class Body>
aclnnStatus stage1(const char* api, GivenArguments given, const Body& body) noexcept {
  return stage1(
      api, given, [](const void* of) { return (*static_cast<const Body*>(of))(); }, &body);
}

// Stage 2 of every operator: checks executor and workspace, submits the call to the stream, and
// disposes of the executor: one that is not repeatable is consumed even if the launch fails.
ACLNN_HOST_INTERNAL aclnnStatus launch(const char* api, void* workspace, uint64_t workspace_size,
                                       aclOpExecutor* executor, aclrtStream stream) noexcept;

}  // namespace aclnn_host
