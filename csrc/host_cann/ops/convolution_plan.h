// What stage 2 of aclnnConvolution and aclnnConvolutionBackward does: products of values that were
// rounded to the type of the call's products, along one of several routes
// (convolution_strategy.h).
#pragma once

#include <array>
#include <cstdint>

#include "host_cann/ops/convolution.h"
#include "host_cann/ops/convolution_loops.h"
#include "host_cann/ops/convolution_operand.h"
#include "host_cann/ops/convolution_strategy.h"
#include "host_cann/ops/convolution_unfold.h"
#include "host_cann/ops/matrix_products.h"
#include "host_cann/ops/plan.h"

namespace aclnn_host {

// Where images are unfolded.
class UnfoldedRows {
 public:
  UnfoldedRows() = default;
  UnfoldedRows(const ConvolutionSizes& sizes, aclDataType dtype, Workspace& workspace);

  // Without rows if it was made so.
  Unfolded place(void* workspace) const;

 private:
  ConvolutionSizes sizes_{};
  TensorView rows_;
  uint64_t offset_ = 0;
};

// The sums of a tensor over everything but its channels.
class ChannelSums {
 public:
  ChannelSums() = default;
  ChannelSums(const TensorView& view, Workspace& workspace);

  void compute(const TensorView& view, void* workspace) const;
  // Writes them to a vector of any type, rounded to the tensor's in between.
  void store(const TensorView& to, void* workspace) const;

 private:
  Operand operand_;
  bool channels_last_ = false;
  int64_t channels_ = 0;
  int64_t parts_ = 0;  // sums of each channel, before they are added
  aclDataType dtype_ = ACL_DT_UNDEFINED;
  uint64_t offset_ = 0;
};

// aclnnConvolution. Its tensors are input, weight, bias unless absent, output.
struct ConvolutionPlan {
  static constexpr size_t kMaxTensors = 4;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  ConvolutionGeometry geometry;
  ConvolutionGeometry::Values steps;  // of the input, beside which the rest is not met
  ComputeType type;
  bool has_products;  // there are input elements to convolve
  Choice choice{};
  Operand input;
  Operand weight;
  Operand bias;
  Operand output;
  DirectProducts direct;
  WindowProducts windows;
  UnfoldedRows unfolded;
  MatrixProducts matrices;

  ConvolutionPlan(const aclTensor* input, const aclTensor* weight, const aclTensor* bias,
                  const aclTensor* output, const ConvolutionGeometry& geometry,
                  const ComputeType& type, Workspace& workspace);

  bool is_input(size_t i) const { return i + 1 < tensor_count; }
  bool is_output(size_t i) const { return i + 1 == tensor_count; }
  aclnnStatus compute(void* workspace);

 private:
  bool has_bias() const { return tensor_count == kMaxTensors; }
  const TensorView& output_view() const { return tensors[tensor_count - 1]; }
  RoundingKernel round_output() const;
  void store_bias(void* workspace);
  void compute_products(void* workspace);
};

// gradInput, gradWeight or both along one route.
struct GradientProducts {
  std::array<bool, 2> wanted{};
  Choice choice{};
  Margins margins;  // of gradInput
  Operand grad_output;
  Operand input;
  Operand weight;
  Operand grad_input;
  Operand grad_weight;
  uint64_t grad_weight_offset = 0;  // of the direct loops, in the workspace
  DirectProducts direct;
  WindowProducts input_windows;
  WindowProducts weight_windows;
  UnfoldedRows unfolded;
  MatrixProducts matrices;
};

// aclnnConvolutionBackward. Its tensors are gradOutput, input, weight, and the gradients that are
// not absent.
struct ConvolutionBackwardPlan {
  static constexpr size_t kMaxTensors = 6;
  static constexpr size_t kInputs = 3;
  using Outputs = std::array<const aclTensor*, 3>;

  TensorView tensors[kMaxTensors];
  size_t tensor_count = 0;
  // Where the gradients that are wanted are among the tensors: gradInput, gradWeight, gradBias; 0
  // for the others.
  std::array<size_t, 3> positions{};
  ConvolutionGeometry geometry;
  ConvolutionGeometry::Values steps;
  ComputeType type;
  bool has_products;
  ChannelSums grad_bias;
  // One for both, or one for each where they are best computed in different ways.
  std::array<GradientProducts, 2> products;
  size_t product_count = 0;

  // `gradients` may be null; `wanted` says which are to be computed.
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
  GradientProducts plan_products(const Choice& choice, std::array<bool, 2> wanted,
                                 const ConvolutionSizes& sizes, Workspace& workspace) const;
  struct Result;
  using Results = std::array<Result, 2>;
  void compute_products(const GradientProducts& plan, Results& results, void* workspace) const;
  void store_products(const Results& results) const;
};

}  // namespace aclnn_host
