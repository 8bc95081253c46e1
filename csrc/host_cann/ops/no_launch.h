// Operators that CANN generates launch nothing when every output is empty: stage 1 succeeds once
// product, dtypes and formats are right, because the tiling function, which checks shapes and
// attributes, is not called. (hicann/opbase, indv_executor.cpp: NnopbaseExecutorMatchCache and
// NnopbaseExecutorDoTiling.)
#pragma once

#include <algorithm>
#include <initializer_list>
#include <tuple>

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"

namespace aclnn_host {

// A call without any work. The last tensors are its outputs.
struct NoLaunchPlan {
  static constexpr size_t kMaxTensors = std::tuple_size_v<decltype(DtypeRow::dtypes)>;

  TensorView tensors[kMaxTensors];
  size_t tensor_count;
  size_t input_count;

  NoLaunchPlan(std::initializer_list<Argument> arguments, size_t outputs)
      : tensor_count(arguments.size()), input_count(arguments.size() - outputs) {
    std::transform(arguments.begin(), arguments.end(), tensors,
                   [](const Argument& argument) { return view_of(argument.tensor); });
  }

  bool is_input(size_t i) const { return i < input_count; }
  bool is_output(size_t i) const { return i >= input_count; }
  aclnnStatus compute(void*) { return OK; }
};

// True if no check has failed and the last `outputs` arguments are empty.
inline bool launches_nothing(const Checks& checks, std::initializer_list<Argument> arguments,
                             size_t outputs) {
  return checks.ok() && std::all_of(arguments.end() - outputs, arguments.end(), [](Argument each) {
           return element_count(each.tensor->view.shape) == 0;
         });
}

// Completes stage 1 of such a call.
inline aclnnStatus make_no_launch_executor(const char* api, Checks& checks,
                                           std::initializer_list<Argument> arguments,
                                           size_t outputs, uint64_t* workspace_size,
                                           aclOpExecutor** executor) {
  for (const Argument& argument : arguments) checks.addressable(argument);
  if (!checks.ok()) return checks.status();
  return make_executor(api, workspace_size, executor,
                       [&](Workspace&) { return NoLaunchPlan(arguments, outputs); });
}

}  // namespace aclnn_host
