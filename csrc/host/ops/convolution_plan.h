// What stage 2 of aclnnConvolution and aclnnConvolutionBackward does: ATen's convolutions on FLOAT
// (or DOUBLE) values that were rounded to the type of the call's products.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/convolution.h"
#include "ops/plan.h"

namespace aclnn_host {

// Zeros to put around a tensor's spatial dimensions.
struct Margins {
  ConvolutionGeometry::Values before{};
  ConvolutionGeometry::Values after{};
  bool operator==(const Margins&) const = default;
};

// How ATen is given a tensor argument: as FLOAT or DOUBLE elements, rounded. Elements that are that
// already are used where they lie; else they have a place in the workspace, channels-last if the
// argument is.
class Operand {
 public:
  Operand() = default;
  Operand(const TensorView& view, const ComputeType& type, Workspace& workspace,
          const Margins& margins = {});

  // Whether ATen gets the very values of the argument.
  bool is_exact() const { return round_ == nullptr && margins_ == Margins(); }

  // The call names the argument anew, because its address may have been changed since stage 1.
  at::Tensor read(const TensorView& view, void* workspace) const;
  // The same without the values, for an argument of which only the shape matters.
  at::Tensor shape_of(const TensorView& view, void* workspace) const;

 private:
  at::ScalarType dtype_ = at::kFloat;
  RoundingKernel round_ = nullptr;
  Margins margins_;
  bool in_place_ = true;
  Dims shape_;  // of the place in the workspace
  Dims strides_;
  uint64_t offset_ = 0;
};

// aclnnConvolution. Its tensors are input, weight, bias unless absent, output.
struct ConvolutionPlan {
  static constexpr size_t kMaxTensors = 4;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  ConvolutionGeometry geometry;
  ComputeType type;
  bool has_products;  // there are input elements to convolve
  Operand input;
  Operand weight;
  Operand bias;

  ConvolutionPlan(const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
                  const aclTensor* output, const ConvolutionGeometry& geometry,
                  const ComputeType& type, Workspace& workspace);

  bool is_input(size_t i) const { return i + 1 < tensor_count; }
  bool is_output(size_t i) const { return i + 1 == tensor_count; }
  aclnnStatus compute(void* workspace) noexcept;

 private:
  bool has_bias() const { return tensor_count == kMaxTensors; }
  const TensorView& output_view() const { return tensors[tensor_count - 1]; }
};

// aclnnConvolutionBackward. Its tensors are gradOutput, input, weight, and the gradients that are
// not absent.
struct ConvolutionBackwardPlan {
  static constexpr size_t kMaxTensors = 6;
  static constexpr size_t kInputs = 3;
  using Gradients = std::array<const aclTensor*, 3>;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  // Where the gradients that are wanted are among the tensors: gradInput, gradWeight, gradBias; 0
  // for the others.
  std::array<size_t, 3> positions{};
  ConvolutionGeometry geometry;
  ComputeType type;
  bool has_products;
  Operand grad_output;
  Operand input;
  Operand weight;
  Operand bias_source;  // gradOutput's very values

  // `gradients` may be null; `wanted` says which are to be computed.
  ConvolutionBackwardPlan(const aclTensor* grad_output, const aclTensor* input,
                          const aclTensor* weight, const Gradients& gradients, const bool* wanted,
                          const ConvolutionGeometry& geometry, const ComputeType& type,
                          Workspace& workspace);

  bool is_input(size_t i) const { return i < kInputs; }
  bool is_output(size_t i) const { return i >= kInputs; }
  aclnnStatus compute(void* workspace) noexcept;

 private:
  bool wants(size_t gradient) const { return positions[gradient] != 0; }
  const TensorView& gradient_view(size_t i) const { return tensors[positions[i]]; }
  void compute_gradients(void* workspace);
};

}  // namespace aclnn_host
