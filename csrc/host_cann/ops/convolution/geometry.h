// The non-tensor parameters of a convolution.
#pragma once

#include <array>
#include <cstdint>

#include "host_cann/descriptors/containers.h"

namespace aclnn_host {

// In the caller's form.
struct ConvolutionArguments {
  const aclIntArray* stride;
  const aclIntArray* padding;
  const aclIntArray* dilation;
  bool transposed;
  const aclIntArray* output_padding;
  int64_t groups;
  int8_t cube_math_type;
};

// The same as one number per spatial dimension. Padding enlarges the input, or shrinks the output
// of a transposed convolution.
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
  // From arrays whose lengths have been checked.
  ConvolutionGeometry(const ConvolutionArguments& arguments, uint64_t spatial);

  // Computes the outputPadding from a transposed convolution's output, ignoring the caller's value.
  void take_output_padding(const Dims& input, const Dims& weight, const Dims& output);

  // True if the padding is equal on both sides, as ATen requires.
  bool is_symmetric() const { return padding_before == padding_after; }
};

}  // namespace aclnn_host
