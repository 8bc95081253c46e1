// The interface of a convolution algorithm. Each algorithm is a value type with
//
//   static bool supports(const Problem& problem);
//   static Form form(const Problem& problem, Layout layout, aclDataType dtype);
//   Algorithm(const Problem& problem, const Form& form, const Passes& passes, Workspace&
//   workspace); void run(const Operands& operands, Results& results) const;
//
// Its constructor reserves the algorithm's part of the workspace. list.h lists all algorithms.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "host_cann/arguments/plan.h"
#include "host_cann/ops/convolution/operand.h"
#include "host_cann/ops/convolution/problem.h"

namespace aclnn_host {

// The dtype in which products are accumulated.
inline aclDataType sum_type(aclDataType dtype) {
  return dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

// The form in which an algorithm takes its operands and produces its results.
struct Form {
  Layout layout;  // of src and dst
  Layout weight_layout;
  aclDataType dtype;  // of the operands
  // The dtypes of the results, before the cast to the caller's dtypes.
  aclDataType image_dtype;
  aclDataType weight_dtype;
  Placement placement = Placement::kAnywhere;
  // Asymmetric padding is added to src beforehand.
  bool pads_src = false;
  // ATen allocates the results, in the caller's memory where possible.
  bool allocates = false;
  // The batch is computed in pieces, each on one thread.
  bool in_pieces = false;

  bool operator==(const Form&) const = default;
};

// The operands of stage 2 in an algorithm's form. Operands that no pass reads only need a shape.
struct Operands {
  TensorView src;
  TensorView dst;
  TensorView weight;
  TensorView bias;  // without storage if absent
  void* workspace;

  // As arguments of the project's kernels.
  ConvolutionTensors data() const { return {src.data(), dst.data(), weight.data(), bias.data()}; }
};

// A result before rounding and casting.
struct Result {
  // Its destination, without storage if that must not be written yet; after the pass, its location.
  TensorView view;
  Padding padding;  // not part of the result
  // Owns the memory, if it is neither the caller's nor the workspace.
  at::Tensor memory;
};

struct Results {
  Result image;
  Result weight;
};

}  // namespace aclnn_host
