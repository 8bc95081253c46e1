// What the operators inside CANN's convolutions refuse after its checks have let a call through:
// the limits of their tilings, by product. `host` has none of them.
#pragma once

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// A convolution from a large image to a small one, none of them empty, or what it is the gradient
// of; and that a transposed convolution transposes.
struct InnerConvolution {
  const ConvolutionGeometry& geometry;
  Argument large;
  Argument small;
  const Dims& weight;
  aclDataType dtype;  // of the products
  bool has_bias;
};

// Whether a gradient's operators are published ones, which check what CANN's own checks do not.
bool has_published_gradients(Product product, uint64_t spatial);

// aclnnConvolution's, not transposed.
void require_convolvable(Checks& checks, const InnerConvolution& call);

// aclnnConvolution's, transposed, and gradInput's.
void require_data_gradient(Checks& checks, const InnerConvolution& call);

// The gradInput of a transposed convolution, which on Ascend950 is one of volumes in any case.
void require_transposed_data_gradient(Checks& checks, const InnerConvolution& call);

// gradWeight's.
void require_weight_gradient(Checks& checks, const InnerConvolution& call);

}  // namespace aclnn_host
