// What the checks of aclnnConvolution and aclnnConvolutionBackward require of single arguments and
// shapes. Each does nothing once a check has failed. Texts with shapes are put together only for a
// check that fails.
#pragma once

#include <cstdint>
#include <string>

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/ops/convolution/geometry.h"

namespace aclnn_host {

// Sums and products of any two 64-bit sizes.
using Wide = __int128;

struct NamedArray {
  const char* name;
  const aclIntArray* values;
};

// The tensors on the two sides of the weight. When transposed, they change sides.
struct ChannelSides {
  Argument first;   // as many channels as weight has in dimension 0
  Argument second;  // groups times as many as weight has in dimension 1
};

std::string text_of(const aclIntArray& array);

void require_dtype(Checks& checks, Argument argument);
void require_rank(Checks& checks, Argument argument);
void require_same_rank(Checks& checks, Argument argument, Argument input);

// ND at every rank, or the format that belongs to the rank, which has been checked.
void require_format(Checks& checks, Argument argument);
void require_at_least(Checks& checks, NamedArray array, int64_t least);

// One value for all spatial dimensions or one for each; padding may have two for each.
void require_length(Checks& checks, NamedArray array, uint64_t spatial, bool doubled = false);
void require_lengths(Checks& checks, const ConvolutionArguments& arguments, uint64_t spatial,
                     bool doubled_padding);
void require_groups(Checks& checks, int64_t groups);
void require_few_groups(Checks& checks, int64_t groups);
// The gradient has all but the last, USE_FP32_ADD.
enum class CubeMathTypes { kOfForward, kOfBackward };
void require_cube_math_type(Checks& checks, int8_t type, CubeMathTypes types);

// Products without FP32 matrix units compute FLOAT in FLOAT16 or not at all.
void require_computable(Checks& checks, aclDataType promoted, int8_t type);
void require_3d_supported(Checks& checks, uint64_t spatial);
void require_size(Checks& checks, Argument argument, uint64_t dim, Wide expected, const char* why);
void require_divided(Checks& checks, Argument weight, int64_t groups);
void require_channels(Checks& checks, const ChannelSides& channels, Argument weight,
                      int64_t groups);

// The kernel lies within the padded input.
void require_kernel_fits(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                         Argument weight);

void require_batch(Checks& checks, Argument output, Argument input);

// The spatial sizes of what the convolution of input with weight gives.
void require_output_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                          Argument weight, Argument output);

// Sizes of gradOutput from which the transposed convolution's gradients follow: an outputPadding
// less than the stride gives them, or in 1-D and 2-D, the one that is given.
void require_transposed_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                              Argument weight, Argument grad_output);

// The host's own limits, because it must never leave its buffers: oneDNN counts positions in 32
// bits, and asymmetric padding becomes memory.
void require_countable(Checks& checks, const ConvolutionGeometry& geometry, Argument src);

// outputPadding makes an output that a convolution with this stride or dilation can start from.
void require_output_padding(Checks& checks, const ConvolutionGeometry& geometry);

}  // namespace aclnn_host
