// An algorithm at work in a plan: its operands, and what it makes of them.
#pragma once

#include <span>

#include "host_cann/arguments/compute_type.h"
#include "host_cann/ops/convolution/list.h"

namespace aclnn_host {

// The caller's tensors by what they are to the convolution from src to dst; null where there is
// none, and where the result of a pass is all that there is.
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

// The tensors that results must not be made in, because they are still read.
struct Sources {
  std::span<const TensorView> of_image;
  std::span<const TensorView> of_weight;
};

// Some passes by one algorithm.
class Computation {
 public:
  Computation(const Choice& choice, const Problem& problem, const Passes& passes,
              const CallerTensors& tensors, const ComputeType& type, Workspace& workspace);

  const Passes& passes() const { return passes_; }

  // Makes the results of the passes, in the caller's memory or elsewhere.
  void run(const CallerTensors& tensors, const Sources& sources, Results& results,
           void* workspace) const;

 private:
  Passes passes_;
  Form form_;
  Padding padding_;  // of src
  Operand src_;
  Operand dst_;
  Operand weight_;
  Operand bias_;
  Operand image_;
  Operand weight_gradient_;
  Algorithm algorithm_;
};

// What rounds a factor's values to the type of the products.
RoundingKernel round_factor(const TensorView& view, const ComputeType& type);

// What rounds the bias of a convolution. It is no factor of a product, so HF32 leaves it alone; and
// where an operator adds it in FLOAT, nothing rounds it.
RoundingKernel round_bias(const TensorView& view, const ComputeType& type, bool transposed,
                          Product product);

// The type of the operands, if it is that of the products for all tensors; else that of their sums.
aclDataType common_type(std::span<const TensorView> tensors, const ComputeType& type);

// A kernel of one element that moves in steps meets only some elements of the input: without the
// others, a convolution without a stride. Moves such strides from the geometry to the result, which
// is all ones otherwise.
ConvolutionGeometry::Values take_steps(ConvolutionGeometry& geometry, const TensorView& weight);
inline constexpr ConvolutionGeometry::Values kNoSteps{1, 1, 1};

// `result` is output or gradOutput.
ConvolutionSizes sizes_of(const TensorView& input, const TensorView& weight,
                          const TensorView& result, const ConvolutionGeometry& geometry);

// Takes a result to the tensor it belongs to, rounded to the type of the products unless the kernel
// is null, then cast to the tensor's type.
void finish(const Result& result, RoundingKernel kernel, const TensorView& to);

// The kernel that rounds a result to the type of the products before it is cast to the type of the
// tensor it goes to; null if the cast does just that.
inline RoundingKernel round_result(const ComputeType& type, const TensorView& to) {
  return to.dtype == type.dtype ? nullptr : type.round_result;
}

void store_zeros(const TensorView& to);

}  // namespace aclnn_host
