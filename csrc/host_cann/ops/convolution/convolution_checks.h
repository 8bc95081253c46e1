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

// Applies the limits of the inner operators (limits.h) to calls that pass the checks, and returns
// the status that CANN's function maps the failure to.
aclnnStatus check_inside_convolution(const char* api, const ForwardTensors& tensors,
                                     const ConvolutionArguments& arguments);
aclnnStatus check_inside_convolution_backward(const char* api, const BackwardTensors& tensors,
                                              const ConvolutionArguments& arguments,
                                              const aclBoolArray& output_mask);

// The last check: the memory of all tensors.
void check_memory(Checks& checks, std::initializer_list<Argument> tensors);

// CANN's PromoteType for the dtypes that the checks accept.
aclDataType promoted_type(std::initializer_list<Argument> arguments);

// True if a tensor has no elements.
bool is_empty(const TensorView& view);

}  // namespace aclnn_host
