// Stage 2 of aclnnConvolution and aclnnConvolutionBackward: products of values rounded to the
// call's product dtype, by algorithms of the list (list.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "host_cann/ops/convolution/channel_sums.h"
#include "host_cann/ops/convolution/computation.h"

namespace aclnn_host {

// aclnnConvolution. Its tensors are input, weight, bias unless absent, output.
struct ConvolutionPlan {
  static constexpr size_t kMaxTensors = 4;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  ConvolutionGeometry geometry;
  ConvolutionGeometry::Values steps;  // strides over the input elements in use
  ComputeType type;
  RoundingKernel round_bias = nullptr;
  std::optional<Computation> products;  // unless the input has no elements
  Operand bias;                         // otherwise

  ConvolutionPlan(const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
                  const aclTensor* output, const ConvolutionGeometry& geometry,
                  const ComputeType& type, Product product, Workspace& workspace);

  bool is_input(size_t i) const { return i + 1 < tensor_count; }
  bool is_output(size_t i) const { return i + 1 == tensor_count; }
  aclnnStatus compute(void* workspace);

 private:
  bool has_bias() const { return tensor_count == kMaxTensors; }
  const TensorView& output_view() const { return tensors[tensor_count - 1]; }
  // `met` is the part of the input that the kernel reads.
  CallerTensors roles(const TensorView& met) const;
  void plan_products(Workspace& workspace);
  void compute_products(void* workspace) const;
  void store_bias(void* workspace) const;
};

// aclnnConvolutionBackward. Its tensors are gradOutput, input, weight and the requested gradients.
struct ConvolutionBackwardPlan {
  static constexpr size_t kMaxTensors = 6;
  static constexpr size_t kInputs = 3;
  using Outputs = std::array<const aclTensor*, 3>;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  // Indices of the requested gradients among the tensors: gradInput, gradWeight, gradBias; 0 for
  // the others.
  std::array<size_t, 3> positions{};
  ConvolutionGeometry geometry;
  ConvolutionGeometry::Values steps;
  ComputeType type;
  bool has_products;
  ChannelSums grad_bias;
  // One for both gradients of the products, or one for each if two algorithms compute them.
  std::array<std::optional<Computation>, 2> products;

  // `gradients` may be null; `wanted` selects the gradients to compute.
  ConvolutionBackwardPlan(const aclTensor* grad_output, const aclTensor* input,
                          const aclTensor* weight, const Outputs& gradients, const bool* wanted,
                          const ConvolutionGeometry& geometry, const ComputeType& type,
                          Workspace& workspace);

  bool is_input(size_t i) const { return i < kInputs; }
  bool is_output(size_t i) const { return i >= kInputs; }
  aclnnStatus compute(void* workspace);

 private:
  bool wants(size_t gradient) const { return positions[gradient] != 0; }
  const TensorView& gradient_view(size_t i) const { return tensors[positions[i]]; }
  // The parts of the input and of its gradient that the kernel reads or writes.
  struct Met {
    TensorView input;
    TensorView grad_input;
  };
  Met met() const;
  CallerTensors roles(const Met& met) const;
  void plan_products(Workspace& workspace);
  void compute_products(void* workspace) const;
};

}  // namespace aclnn_host
