// The checks of aclnnConvolution and aclnnConvolutionBackward.
#pragma once

#include <initializer_list>

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// The tensor arguments; bias and the gradients may be absent.
struct ForwardTensors {
  Argument input;
  Argument weight;
  Argument bias;
  Argument output;
};
struct BackwardTensors {
  Argument grad_output;
  Argument input;
  Argument weight;
  Argument grad_input;
  Argument grad_weight;
  Argument grad_bias;
};

// The checks of the two operators, in the order of CANN's documents.
void check_convolution(Checks& checks, const ForwardTensors& tensors,
                       const ConvolutionArguments& arguments);
void check_convolution_backward(Checks& checks, const BackwardTensors& tensors,
                                const aclIntArray* bias_sizes,
                                const ConvolutionArguments& arguments,
                                const aclBoolArray* output_mask);

// What the operators inside refuse of what these checks let through (limits.h), with the status
// that CANN's function makes of that.
aclnnStatus check_inside_convolution(const char* api, const ForwardTensors& tensors,
                                     const ConvolutionArguments& arguments);
aclnnStatus check_inside_convolution_backward(const char* api, const BackwardTensors& tensors,
                                              const ConvolutionArguments& arguments,
                                              const aclBoolArray& output_mask);

// The last check, of all tensors.
void check_memory(Checks& checks, std::initializer_list<Argument> tensors);

// CANN's PromoteType of the dtypes that the checks let through.
aclDataType promoted_type(std::initializer_list<Argument> arguments);

// Whether a tensor has no elements.
bool is_empty(const TensorView& view);

}  // namespace aclnn_host
