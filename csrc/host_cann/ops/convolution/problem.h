// The description of a convolution from which an algorithm is chosen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "acl/acl_base.h"
#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// The order of a tensor's dimensions in memory: any strides, or one without gaps. Channels before
// the batch form one matrix of all images, and keep the rows of channels-first images unchanged.
enum class Layout { kAsGiven, kChannelsFirst, kChannelsLast, kChannelsOutermost };

// The passes of a convolution from src to dst (kernels/convolution_direct.h). The forward pass of a
// transposed convolution is the backward-data pass of the convolution that it transposes, and its
// gradInput is that one's forward pass.
enum class Pass { kForward, kBackwardData, kBackwardWeight };

// One pass, for which an algorithm is chosen.
struct Problem {
  ConvolutionSizes sizes;
  ConvolutionGeometry geometry;
  Pass pass;
  bool is_gradient;    // part of aclnnConvolutionBackward
  bool channels_last;  // the caller's input is channels-last
  // The dtype of the operands: FLOAT, DOUBLE, or a 16-bit dtype shared by all tensors and the
  // products.
  aclDataType dtype;
  // Results must not depend on the number of threads.
  bool deterministic;
};

// The passes that one algorithm computes together.
struct Passes {
  std::optional<Pass> image;  // kForward or kBackwardData, whose result is dst or src
  bool weight = false;        // kBackwardWeight

  bool read_src() const { return weight || image == Pass::kForward; }
  bool read_dst() const { return weight || image == Pass::kBackwardData; }
};

// The number of elements of an image or a kernel.
inline int64_t volume(const ConvolutionSizes::Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

// The number of multiplications of a pass.
inline double product_count(const ConvolutionSizes& sizes) {
  const auto count = [](const ConvolutionSizes::Values& values) {
    return static_cast<double>(values[0]) * static_cast<double>(values[1]) *
           static_cast<double>(values[2]);
  };
  return static_cast<double>(sizes.batch * sizes.groups) *
         static_cast<double>(sizes.src_channels * sizes.dst_channels) * count(sizes.dst) *
         count(sizes.kernel);
}

}  // namespace aclnn_host
