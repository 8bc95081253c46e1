// How a convolution is computed: the choice, and the measurements behind it.
#pragma once

#include <array>
#include <cstdint>

#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/ops/convolution.h"

namespace aclnn_host {

// The order of a tensor's dimensions in memory: any strides, or one without gaps. Channels before
// the batch make one matrix of all images, and take rows of channels-first ones as they are.
enum class Layout { kAsGiven, kChannelsFirst, kChannelsLast, kChannelsOutermost };

enum class Route {
  kDirect,     // loops of our own (kernels/convolution_direct.h, or _depthwise.h: channels-last)
  kPointwise,  // a kernel of one element: matrix products, our own (matrix_products.h) or ATen's
  kWindows,    // products of windows (kernels/convolution_windows.h)
  kUnfolded,   // matrix products of unfolded images (convolution_unfold.h)
  kAten,       // ATen's convolution, which is oneDNN's for nearly all
};

// What is computed: one of the three sums of kernels/convolution_direct.h.
enum class Sum { kSmall, kLarge, kWeight };

// What the choice depends on.
struct ConvolutionCase {
  ConvolutionSizes sizes;
  const ConvolutionGeometry& geometry;
  Sum sum;
  bool is_gradient;
  bool channels_last;  // the input is
  // What the operands are given in: FLOAT, DOUBLE, or a 16-bit type that all tensors and the
  // products have.
  aclDataType dtype;
  // Whether the number of threads must not change a bit.
  bool deterministic;
};

struct Choice {
  Route route;
  Layout layout;      // of the operands
  aclDataType dtype;  // of the operands: that of the case, or FLOAT; windows' results are FLOAT
  bool in_pieces;     // what ATen computes are pieces of the batch, each on one thread
  bool operator==(const Choice&) const = default;
};

// Whether the program wants the same bits for any number of threads, of CANN or of PyTorch.
bool wants_same_bits();

// How many factors are multiplied.
double product_count(const ConvolutionSizes& sizes);

Choice choose(const ConvolutionCase& convolution);

}  // namespace aclnn_host
