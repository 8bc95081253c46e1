// What the algorithms of a convolution have in common. Each is a value type with
//
//   static bool supports(const Problem& problem);
//   static Form form(const Problem& problem, Layout layout, aclDataType dtype);
//   Algorithm(const Problem& problem, const Form& form, const Passes& passes, Workspace&
//   workspace); void run(const Operands& operands, Results& results) const;
//
// whose constructor reserves its part of the workspace. list.h has them all.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "host_cann/arguments/plan.h"
#include "host_cann/ops/convolution/operand.h"
#include "host_cann/ops/convolution/problem.h"

namespace aclnn_host {

// The type in which factors are summed.
inline aclDataType sum_type(aclDataType dtype) {
  return dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

// How an algorithm takes its operands, and makes its results.
struct Form {
  Layout layout;  // of src and dst
  Layout weight_layout;
  aclDataType dtype;  // of the operands
  // Of the results, before they are cast to the types of the caller's tensors.
  aclDataType image_dtype;
  aclDataType weight_dtype;
  Placement placement = Placement::kAnywhere;
  // Padding that differs between the two sides is put around src before.
  bool pads_src = false;
  // Results lie where ATen allocates them, in the caller's memory if ATen can.
  bool allocates = false;
  // The batch is computed in pieces, each on one thread.
  bool in_pieces = false;

  bool operator==(const Form&) const = default;
};

// The operands of stage 2 in an algorithm's form. Of those that no pass reads only the shape
// counts.
struct Operands {
  TensorView src;
  TensorView dst;
  TensorView weight;
  TensorView bias;  // without storage if there is none
  void* workspace;

  // As kernels of our own take them.
  ConvolutionTensors data() const { return {src.data(), dst.data(), weight.data(), bias.data()}; }
};

// A result that is not rounded yet, nor cast.
struct Result {
  // Where it belongs, without storage if that must not be written to yet; then where it is.
  TensorView view;
  Padding padding;  // that is no part of it
  // What keeps the memory, if that is neither the caller's nor the workspace.
  at::Tensor memory;
};

struct Results {
  Result image;
  Result weight;
};

}  // namespace aclnn_host
