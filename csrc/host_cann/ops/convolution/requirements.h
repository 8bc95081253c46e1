// The requirements of aclnnConvolution and aclnnConvolutionBackward on single arguments and shapes.
// Each function does nothing once a check has failed. Texts with shapes are formatted only for a
// failed check.
#pragma once

#include <cstdint>
#include <string>

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/arguments/compute_type.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// Holds sums and products of any two 64-bit sizes.
using Wide = __int128;

struct NamedArray {
  const char* name;
  const aclIntArray* values;
};

// The tensors on the two sides of the weight; a transposed convolution swaps them.
struct ChannelSides {
  Argument first;   // channels equal to weight's dimension 0
  Argument second;  // channels equal to groups times weight's dimension 1
};

std::string text_of(const aclIntArray& array);

void require_dtype(Checks& checks, Argument argument);
void require_rank(Checks& checks, Argument argument);
void require_same_rank(Checks& checks, Argument argument, Argument input);

// Requires ND at every rank, or the format of the rank, which has been checked.
void require_format(Checks& checks, Argument argument);
void require_at_least(Checks& checks, NamedArray array, int64_t least);

// Requires one value for all spatial dimensions or one for each; padding may have two for each.
void require_length(Checks& checks, NamedArray array, uint64_t spatial, bool doubled = false);
void require_lengths(Checks& checks, const ConvolutionArguments& arguments, uint64_t spatial,
                     bool doubled_padding);
void require_groups(Checks& checks, int64_t groups);
void require_few_groups(Checks& checks, int64_t groups);
void require_cube_math_type(Checks& checks, int8_t type, CubeMathTypes types);

// Products without FP32 matrix units compute FLOAT in FLOAT16 or reject it.
void require_computable(Checks& checks, aclDataType promoted, int8_t type);
void require_3d_supported(Checks& checks, uint64_t spatial);
void require_size(Checks& checks, Argument argument, uint64_t dim, Wide expected, const char* why);
void require_divided(Checks& checks, Argument weight, int64_t groups);
void require_channels(Checks& checks, const ChannelSides& channels, Argument weight,
                      int64_t groups);

// Requires the kernel to lie within the padded input.
void require_kernel_fits(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                         Argument weight);

void require_batch(Checks& checks, Argument output, Argument input);

// Checks the spatial sizes of the convolution of input with weight.
void require_output_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                          Argument weight, Argument output);

// Requires sizes of gradOutput for which the transposed convolution's gradients are defined: an
// outputPadding less than the stride yields them or, in 1-D and 2-D, the given one does.
void require_transposed_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                              Argument weight, Argument grad_output);

// Limits of the host CANN, which must never access memory outside its buffers: oneDNN counts
// positions in 32 bits, and asymmetric padding is allocated.
void require_countable(Checks& checks, const ConvolutionGeometry& geometry, Argument src);

// Requires an outputPadding that a convolution with this stride or dilation can produce.
void require_output_padding(Checks& checks, const ConvolutionGeometry& geometry);

}  // namespace aclnn_host
