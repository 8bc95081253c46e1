// What aclnnConvolution and aclnnConvolutionBackward share: their parameters, the checks of both,
// and what they compute in.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/kernels/rounding.h"
#include "host_cann/ops/checks.h"

namespace aclnn_host {

// The arguments of a convolution that are not tensors, as the caller gives them.
struct ConvolutionArguments {
  const aclIntArray* stride;
  const aclIntArray* padding;
  const aclIntArray* dilation;
  bool transposed;
  const aclIntArray* output_padding;
  int64_t groups;
  int8_t cube_math_type;
};

// The same as numbers, one for each spatial dimension. Padding widens the input, or narrows the
// output of a transposed convolution.
struct ConvolutionGeometry {
  static constexpr uint64_t kMaxSpatial = 3;
  using Values = std::array<int64_t, kMaxSpatial>;

  uint64_t spatial = 0;
  Values stride{};
  Values padding_before{};
  Values padding_after{};
  Values dilation{};
  Values output_padding{};
  bool transposed = false;
  int64_t groups = 1;

  ConvolutionGeometry() = default;
  // Of arrays whose lengths have been checked.
  ConvolutionGeometry(const ConvolutionArguments& arguments, uint64_t spatial);

  // Whether the padding is the same on both sides, which is all that ATen can do.
  bool is_symmetric() const { return padding_before == padding_after; }
};

// FP32 matrix units exist on Atlas A2 and later.
inline bool has_fp32_units(Product product) {
  return product >= Product::kAscend910B;
}

// The type of a call's products: its tensors' values are rounded to it, its gradInput or output is
// a number of it. Sums are FLOAT, or DOUBLE for that.
struct ComputeType {
  aclDataType dtype;
  RoundingKernel round_input;   // of values of another dtype; null where every value fits
  RoundingKernel round_result;  // likewise
};

// Of tensors that CANN promotes to `promoted`, on the current product.
ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product);

// CANN's PromoteType of the dtypes that the checks let through.
aclDataType promoted_type(std::initializer_list<Argument> arguments);

// Rounds floats to a 16-bit dtype; null for the wider ones.
RoundingKernel rounding_to(aclDataType dtype);

// All checks of the two operators, in the order of CANN's documents. `bias`, and the gradients, may
// be absent.
void check_convolution(Checks& checks, Argument input, Argument weight, Argument bias,
                       const ConvolutionArguments& arguments, Argument output);
void check_convolution_backward(Checks& checks, Argument grad_output, Argument input,
                                Argument weight, const aclIntArray* bias_sizes,
                                const ConvolutionArguments& arguments,
                                const aclBoolArray* output_mask, Argument grad_input,
                                Argument grad_weight, Argument grad_bias);

// Whether a tensor has no elements.
bool is_empty(const TensorView& view);

}  // namespace aclnn_host
