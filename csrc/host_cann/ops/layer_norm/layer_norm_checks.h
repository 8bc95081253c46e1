// The checks of aclnnLayerNorm and aclnnLayerNormBackward.
#pragma once

#include <cstdint>

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/descriptors/containers.h"

namespace aclnn_host::layer_norm {

// The tensor arguments; weight, bias, mean, rstd and the gradients may be absent.
struct ForwardTensors {
  Argument input;
  Argument weight;
  Argument bias;
  Argument out;
  Argument mean;
  Argument rstd;
};
struct BackwardTensors {
  Argument grad_out;
  Argument input;
  Argument mean;
  Argument rstd;
  Argument weight;
  Argument bias;
  Argument gradients[3];  // of input, weight and bias
};

// The sizes of input as a matrix of the rows that are normalised.
struct Counts {
  int64_t rows;
  int64_t columns;
};

// The checks after those of workspaceSize and executor, in CANN's order. Without a failure, they
// return the counts.
Counts check_layer_norm(Checks& checks, const ForwardTensors& tensors,
                        const aclIntArray* normalized_shape);
Counts check_layer_norm_backward(Checks& checks, const BackwardTensors& tensors,
                                 const aclIntArray* normalized_shape,
                                 const aclBoolArray* output_mask);

}  // namespace aclnn_host::layer_norm
