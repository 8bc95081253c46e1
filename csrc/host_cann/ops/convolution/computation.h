// Runs one algorithm in a plan, from the caller's operands to its results.
#pragma once

#include <span>

#include "host_cann/arguments/compute_type.h"
#include "host_cann/ops/convolution/list.h"

namespace aclnn_host {

// The caller's tensors by their role in the convolution from src to dst; null if there is none, or
// if only the result of a pass is needed.
struct CallerTensors {
  const TensorView* src = nullptr;
  const TensorView* dst = nullptr;
  const TensorView* weight = nullptr;
  const TensorView* bias = nullptr;
  RoundingKernel round_bias = nullptr;
  // Results.
  const TensorView* image = nullptr;
  const TensorView* weight_gradient = nullptr;
};

// Tensors that are still read, so that no result may overwrite them.
struct Sources {
  std::span<const TensorView> of_image;
  std::span<const TensorView> of_weight;
};

// One or more passes computed by one algorithm.
class Computation {
 public:
  Computation(const Choice& choice, const Problem& problem, const Passes& passes,
              const CallerTensors& tensors, const ComputeType& type, Workspace& workspace);

  const Passes& passes() const { return passes_; }

  // Computes the results of the passes, in the caller's memory or elsewhere.
  void run(const CallerTensors& tensors, const Sources& sources, Results& results,
           void* workspace) const;

 private:
  Passes passes_;
  Form form_;
  Padding padding_;  // around src
  Operand src_;
  Operand dst_;
  Operand weight_;
  Operand bias_;
  Operand image_;
  Operand weight_gradient_;
  Algorithm algorithm_;
};

// Returns the kernel that rounds a factor to the products' dtype.
RoundingKernel round_factor(const TensorView& view, const ComputeType& type);

// Returns the kernel that rounds the bias of a convolution. HF32 does not affect the bias, which is
// not a factor; where an operator adds it in FLOAT, it is not rounded at all.
RoundingKernel round_bias(const TensorView& view, const ComputeType& type, bool transposed,
                          Product product);

// The operands' dtype: that of the products if all tensors have it, otherwise that of the sums.
aclDataType common_type(std::span<const TensorView> tensors, const ComputeType& type);

// A kernel of one element with a stride reads only some elements of the input; on those elements,
// it is a convolution without a stride. Moves such strides from the geometry to the result; all
// other values of the result are 1.
ConvolutionGeometry::Values take_steps(ConvolutionGeometry& geometry, const TensorView& weight);
inline constexpr ConvolutionGeometry::Values kNoSteps{1, 1, 1};

// `result` is output or gradOutput.
ConvolutionSizes sizes_of(const TensorView& input, const TensorView& weight,
                          const TensorView& result, const ConvolutionGeometry& geometry);

// Writes a result to its tensor: rounded to the products' dtype, unless the kernel is null, then
// cast to the tensor's dtype.
void finish(const Result& result, RoundingKernel kernel, const TensorView& to);

// The kernel that rounds a result to the products' dtype before it is cast to the dtype of its
// tensor; null if the cast alone has the same effect.
inline RoundingKernel round_result(const ComputeType& type, const TensorView& to) {
  return to.dtype == type.dtype ? nullptr : type.round_result;
}

void store_zeros(const TensorView& to);

}  // namespace aclnn_host
