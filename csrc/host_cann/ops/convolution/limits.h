// Limits of the tilings of the operators inside CANN's convolutions, by product: they reject some
// calls that pass CANN's API checks. `host` has none of them.
#pragma once

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// A convolution from a large image to a small one, all non-empty; also stands for its gradients,
// and for the convolution that a transposed one transposes.
struct InnerConvolution {
  const ConvolutionGeometry& geometry;
  Argument large;
  Argument small;
  const Dims& weight;
  aclDataType dtype;  // of the products
  bool has_bias;
};

// True if a gradient uses published operators, which make checks that CANN's API omits.
bool has_published_gradients(Product product, uint64_t spatial);

// Limits of aclnnConvolution, not transposed.
void require_convolvable(Checks& checks, const InnerConvolution& call);

// Limits of aclnnConvolution, transposed, and of gradInput.
void require_data_gradient(Checks& checks, const InnerConvolution& call);

// Limits of a transposed convolution's gradInput, which Ascend950 always computes in 3-D.
void require_transposed_data_gradient(Checks& checks, const InnerConvolution& call);

// Limits of gradWeight.
void require_weight_gradient(Checks& checks, const InnerConvolution& call);

}  // namespace aclnn_host
