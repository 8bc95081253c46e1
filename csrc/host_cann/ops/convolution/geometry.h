// The parameters of a convolution that are not tensors.
#pragma once

#include <array>
#include <cstdint>

#include "host_cann/descriptors/containers.h"

namespace aclnn_host {

// As the caller gives them.
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

  // The outputPadding that gives a transposed convolution this output, whatever its caller says.
  void take_output_padding(const Dims& input, const Dims& weight, const Dims& output);

  // Whether the padding is the same on both sides, which is all that ATen can do.
  bool is_symmetric() const { return padding_before == padding_after; }
};

}  // namespace aclnn_host
