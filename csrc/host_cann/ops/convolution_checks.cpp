// The checks of aclnnConvolution and aclnnConvolutionBackward, in the order in which CANN makes
// them; docs/emulation.md says where they deviate. Texts with shapes are put together only for a
// check that fails.

#include <algorithm>
#include <limits>
#include <string>

#include "host_cann/descriptors/containers.h"
#include "host_cann/ops/cast.h"
#include "host_cann/ops/convolution.h"

namespace aclnn_host {
namespace {

constexpr DtypeRule kTypes[] = {{ACL_FLOAT, Product::kAscend310P},
                                {ACL_FLOAT16, Product::kAscend310P},
                                {ACL_BF16, Product::kAscend910B},
                                {ACL_DOUBLE, Product::kHost}};
constexpr int64_t kMaxGroups = 65535;
constexpr int64_t kMaxCubeMathType = 3;

// Sums and products of any two 64-bit sizes.
using Wide = __int128;

struct Array {
  const char* name;
  const aclIntArray* values;
};

std::string text_of(const aclIntArray& array) {
  return shape_text(Dims(array.values.get(), array.size));
}

// ---- One argument -------------------------------------------------------------------------------

void require_dtype(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  switch (const aclDataType dtype = argument.tensor->view.dtype) {
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E5M2:
      checks.require(false,
                     "%s has dtype %s, which the host CANN does not emulate for convolutions; "
                     "expected FLOAT, FLOAT16 or BFLOAT16, cast the tensor",
                     argument.name, dtype_name(dtype));
      break;
    default: checks.dtype_in(argument, kTypes);
  }
}

void require_rank(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims& shape = argument.tensor->view.shape;
  if (shape.size() < 3 || shape.size() > 5) {
    checks.require(false,
                   "%s has shape %s, expected 3, 4 or 5 dimensions: batch, channels, and 1 to 3 "
                   "spatial ones; reshape it",
                   argument.name, shape_text(shape).c_str());
  }
}

void require_same_rank(Checks& checks, Argument argument, Argument input) {
  if (!checks.ok()) return;
  const Dims& shape = argument.tensor->view.shape;
  const Dims& other = input.tensor->view.shape;
  if (shape.size() != other.size()) {
    checks.require(false,
                   "%s has shape %s, expected as many dimensions as %s "
                   "(shape %s)",
                   argument.name, shape_text(shape).c_str(), input.name, shape_text(other).c_str());
  }
}

// ND at every rank, or the format that belongs to the rank, which has been checked.
void require_format(Checks& checks, Argument argument) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const TensorView& view = argument.tensor->view;
  const uint64_t rank = view.shape.size();
  constexpr std::pair<aclFormat, const char*> kFormats[] = {
      {ACL_FORMAT_NCL, "NCL"}, {ACL_FORMAT_NCHW, "NCHW"}, {ACL_FORMAT_NCDHW, "NCDHW"}};
  const auto& [format, name] = kFormats[rank - 3];
  checks.require(view.format == ACL_FORMAT_ND || view.format == format,
                 "%s has format %d and %llu dimensions, expected ND (%d) or %s (%d)", argument.name,
                 static_cast<int>(view.format), static_cast<unsigned long long>(rank),
                 static_cast<int>(ACL_FORMAT_ND), name, static_cast<int>(format));
}

void require_at_least(Checks& checks, Array array, int64_t least) {
  if (!checks.ok()) return;
  const int64_t* const begin = array.values->values.get();
  const bool good =
      std::all_of(begin, begin + array.values->size, [&](int64_t value) { return value >= least; });
  if (!good) {
    checks.require(false, "%s is %s, expected values >= %lld", array.name,
                   text_of(*array.values).c_str(), static_cast<long long>(least));
  }
}

// One value for all spatial dimensions or one for each; padding may have two for each.
void require_length(Checks& checks, Array array, uint64_t spatial, bool doubled = false) {
  if (!checks.ok()) return;
  const uint64_t size = array.values->size;
  if (size == 1 || size == spatial || (doubled && size == 2 * spatial)) return;
  const std::string more =
      doubled ? ", or " + std::to_string(2 * spatial) + " (before and after each)" : "";
  checks.require(false, "%s has %llu values, expected 1 or %llu (one per spatial dimension)%s",
                 array.name, static_cast<unsigned long long>(size),
                 static_cast<unsigned long long>(spatial), more.c_str());
}

void require_lengths(Checks& checks, const ConvolutionArguments& arguments, uint64_t spatial,
                     bool doubled_padding) {
  require_length(checks, {"stride", arguments.stride}, spatial);
  require_length(checks, {"dilation", arguments.dilation}, spatial);
  require_length(checks, {"padding", arguments.padding}, spatial, doubled_padding);
}

void require_groups(Checks& checks, int64_t groups) {
  checks.require(groups >= 1 && groups <= kMaxGroups, "groups is %lld, expected 1 to %lld",
                 static_cast<long long>(groups), static_cast<long long>(kMaxGroups));
}

void require_cube_math_type(Checks& checks, int8_t type) {
  checks.require(type >= 0 && type <= kMaxCubeMathType,
                 "cubeMathType is %d, expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 "
                 "(USE_FP16) or 3 (USE_HF32)",
                 type);
}

// Products without FP32 matrix units compute FLOAT in FLOAT16 or not at all.
void require_computable(Checks& checks, aclDataType promoted, int8_t type) {
  const bool has_fp32 = has_fp32_units(checks.product());
  const bool allows_half = type == 1 || type == 2;
  checks.require(has_fp32 || promoted == ACL_FLOAT16 || allows_half,
                 "cubeMathType is %d with tensors of dtype %s, which this product has no matrix "
                 "units for; pass 1 or 2 to compute in FLOAT16, or FLOAT16 tensors",
                 type, dtype_name(promoted));
}

void require_3d_supported(Checks& checks, uint64_t spatial) {
  checks.require(spatial < 3 || checks.product() >= Product::kAscend910B,
                 "input has 5 dimensions, but this product has no 3-D convolution; expected 3 or "
                 "4, or select Ascend910B or a later product");
}

void require_size(Checks& checks, Argument argument, uint64_t dim, Wide expected, const char* why) {
  if (!checks.ok()) return;
  const Dims& shape = argument.tensor->view.shape;
  if (shape[dim] != expected) {
    checks.require(false, "%s has shape %s, expected %lld at dimension %llu: %s", argument.name,
                   shape_text(shape).c_str(), static_cast<long long>(expected),
                   static_cast<unsigned long long>(dim), why);
  }
}

// ---- Shapes -------------------------------------------------------------------------------------

// The tensors on the two sides of the weight. When transposed, they change sides.
struct Channels {
  Argument first;   // as many channels as weight has in dimension 0
  Argument second;  // groups times as many as weight has in dimension 1
};

void require_divided(Checks& checks, Argument weight, int64_t groups) {
  const Dims& kernel = weight.tensor->view.shape;
  if (checks.ok() && kernel[0] % groups != 0) {
    checks.require(false,
                   "groups is %lld and weight has shape %s, expected groups to divide its "
                   "dimension 0",
                   static_cast<long long>(groups), shape_text(kernel).c_str());
  }
}

void require_channels(Checks& checks, const Channels& channels, Argument weight, int64_t groups) {
  if (!checks.ok()) return;
  const Dims& kernel = weight.tensor->view.shape;
  require_size(checks, channels.first, 1, kernel[0], "the size of weight's dimension 0");
  require_size(checks, channels.second, 1, Wide{kernel[1]} * groups,
               "groups times the size of weight's dimension 1");
  require_divided(checks, weight, groups);
}

Wide reach_of(int64_t kernel, int64_t dilation) {
  return Wide{dilation} * (Wide{kernel} - 1) + 1;
}

Wide padded_size(const ConvolutionGeometry& geometry, const Dims& shape, uint64_t d) {
  return Wide{shape[d + 2]} + geometry.padding_before[d] + geometry.padding_after[d];
}

// The size of the output of a convolution over dimension d; at most 0 when nothing fits.
Wide output_size(const ConvolutionGeometry& geometry, const Dims& input, const Dims& weight,
                 uint64_t d) {
  const Wide reach = reach_of(weight[d + 2], geometry.dilation[d]);
  if (geometry.transposed) {
    return (Wide{input[d + 2]} - 1) * geometry.stride[d] - geometry.padding_before[d] -
           geometry.padding_after[d] + reach + geometry.output_padding[d];
  }
  const Wide room = padded_size(geometry, input, d) - reach;
  return room < 0 ? 0 : room / geometry.stride[d] + 1;
}

// The kernel lies within the padded input.
void require_kernel_fits(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                         Argument weight) {
  if (!checks.ok() || geometry.transposed) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    if (padded_size(geometry, shape, d) < reach_of(kernel[d + 2], geometry.dilation[d])) {
      checks.require(false,
                     "weight has shape %s and dilation %lld, which in spatial dimension %llu is "
                     "larger than input (shape %s) with its padding; expected it to fit",
                     shape_text(kernel).c_str(), static_cast<long long>(geometry.dilation[d]),
                     static_cast<unsigned long long>(d), shape_text(shape).c_str());
    }
  }
}

// The batch and the spatial sizes of what the convolution of input with weight gives.
void require_output_sizes(Checks& checks, const ConvolutionGeometry& geometry, Argument input,
                          Argument weight, Argument output) {
  if (!checks.ok()) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  require_size(checks, output, 0, shape[0], "the batch size of input");
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const Wide expected = output_size(geometry, shape, kernel, d);
    if (geometry.transposed) {
      checks.require(expected > 0,
                     "the output has no elements in spatial dimension %llu; expected less padding",
                     static_cast<unsigned long long>(d));
    }
    require_size(checks, output, d + 2, expected,
                 geometry.transposed
                     ? "(input - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1"
                     : "floor((input + 2 padding - dilation (kernel - 1) - 1) / stride) + 1");
  }
}

// The host's own limits, because it must never leave its buffers: oneDNN counts positions in 32
// bits, and asymmetric padding becomes memory.
void require_countable(Checks& checks, const ConvolutionGeometry& geometry, Argument large) {
  if (!checks.ok()) return;
  constexpr Wide kMost = std::numeric_limits<int32_t>::max();
  Dims padded = large.tensor->view.shape;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const Wide size = padded_size(geometry, large.tensor->view.shape, d);
    checks.require(size <= kMost && geometry.stride[d] <= kMost && geometry.dilation[d] <= kMost,
                   "stride, dilation, or padding with the size of %s exceeds 2^31 - 1 in spatial "
                   "dimension %llu",
                   large.name, static_cast<unsigned long long>(d));
    if (!checks.ok()) return;
    padded.begin()[d + 2] = static_cast<int64_t>(size);
  }
  const auto count = element_count(padded);
  checks.require(count && *count < INT64_MAX / 16, "%s with its padding has too many elements",
                 large.name);
}

// outputPadding makes an output that a convolution with this stride or dilation can start from.
void require_output_padding(Checks& checks, const ConvolutionGeometry& geometry) {
  if (!checks.ok() || !geometry.transposed) return;
  for (uint64_t d = 0; d < geometry.spatial; ++d) {
    const int64_t value = geometry.output_padding[d];
    checks.require(value < geometry.stride[d] || value < geometry.dilation[d],
                   "outputPadding is %lld in spatial dimension %llu, expected less than the "
                   "stride (%lld) or the dilation (%lld)",
                   static_cast<long long>(value), static_cast<unsigned long long>(d),
                   static_cast<long long>(geometry.stride[d]),
                   static_cast<long long>(geometry.dilation[d]));
  }
}

}  // namespace

bool is_empty(const TensorView& view) {
  return std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
}

ConvolutionGeometry::ConvolutionGeometry(const ConvolutionArguments& arguments, uint64_t spatial)
    : spatial(spatial), transposed(arguments.transposed), groups(arguments.groups) {
  const auto value = [](const aclIntArray& array, uint64_t i) {
    return array.values[array.size == 1 ? 0 : i];
  };
  const bool doubled = arguments.padding->size == 2 * spatial;
  for (uint64_t d = 0; d < spatial; ++d) {
    stride[d] = value(*arguments.stride, d);
    dilation[d] = value(*arguments.dilation, d);
    padding_before[d] = value(*arguments.padding, doubled ? 2 * d : d);
    padding_after[d] = value(*arguments.padding, doubled ? 2 * d + 1 : d);
    if (transposed) output_padding[d] = value(*arguments.output_padding, d);
  }
}

aclDataType promoted_type(std::initializer_list<Argument> arguments) {
  aclDataType promoted = ACL_DT_UNDEFINED;
  for (const auto& [name, tensor] : arguments) {
    if (tensor == nullptr) continue;
    const aclDataType dtype = tensor->view.dtype;
    promoted = promoted == ACL_DT_UNDEFINED ? dtype : promote_type(promoted, dtype);
  }
  return promoted;
}

void check_convolution(Checks& checks, Argument input, Argument weight, Argument bias,
                       const ConvolutionArguments& arguments, Argument output) {
  checks.not_null(input.name, input.tensor)
      .not_null(weight.name, weight.tensor)
      .not_null("stride", arguments.stride)
      .not_null("padding", arguments.padding)
      .not_null("dilation", arguments.dilation);
  if (arguments.transposed) checks.not_null("outputPadding", arguments.output_padding);
  checks.not_null(output.name, output.tensor);

  for (const Argument& argument : {input, weight, output, bias}) require_dtype(checks, argument);

  for (const Argument& argument : {input, weight, output}) require_rank(checks, argument);
  require_same_rank(checks, weight, input);
  require_same_rank(checks, output, input);
  if (!checks.ok()) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  const uint64_t spatial = shape.size() - 2;
  const Wide channels = arguments.transposed ? Wide{kernel[1]} * arguments.groups : Wide{kernel[0]};
  if (bias.tensor != nullptr) {
    const Dims& length = bias.tensor->view.shape;
    if (length.size() != 1 || length[0] != channels) {
      checks.require(false, "bias has shape %s, expected [%lld], the channels of output",
                     shape_text(length).c_str(), static_cast<long long>(channels));
    }
  }
  const bool doubled_padding = spatial == 2 || (spatial == 1 && !arguments.transposed);
  require_lengths(checks, arguments, spatial, doubled_padding);
  if (arguments.transposed) {
    require_length(checks, {"outputPadding", arguments.output_padding}, spatial);
  }

  for (const Argument& argument : {input, weight, output}) require_format(checks, argument);
  if (!checks.ok()) return;
  checks.require(input.tensor->view.format == output.tensor->view.format,
                 "output has format %d, expected %d as input has",
                 static_cast<int>(output.tensor->view.format),
                 static_cast<int>(input.tensor->view.format));
  if (bias.tensor != nullptr) {
    const aclFormat format = bias.tensor->view.format;
    checks.require(format == ACL_FORMAT_ND || format == ACL_FORMAT_NCL ||
                       format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCDHW,
                   "bias has format %d, expected ND (%d)", static_cast<int>(format),
                   static_cast<int>(ACL_FORMAT_ND));
  }

  for (uint64_t d = 0; d < spatial; ++d) {
    if (kernel[d + 2] <= 0) {
      checks.require(false, "weight has shape %s, expected a kernel size > 0",
                     shape_text(kernel).c_str());
    }
  }
  require_at_least(checks, {"stride", arguments.stride}, 1);
  require_at_least(checks, {"dilation", arguments.dilation}, 1);
  require_at_least(checks, {"padding", arguments.padding}, 0);
  require_groups(checks, arguments.groups);
  if (!checks.ok()) return;
  const ConvolutionGeometry geometry(arguments, spatial);
  require_channels(checks, arguments.transposed ? Channels{input, output} : Channels{output, input},
                   weight, arguments.groups);
  if (arguments.transposed) {
    require_at_least(checks, {"outputPadding", arguments.output_padding}, 0);
    require_output_padding(checks, geometry);
  }
  require_kernel_fits(checks, geometry, input, weight);

  require_output_sizes(checks, geometry, input, weight, output);

  require_cube_math_type(checks, arguments.cube_math_type);
  require_computable(checks, promoted_type({input, weight, bias}), arguments.cube_math_type);

  require_3d_supported(checks, spatial);
  require_countable(checks, geometry, arguments.transposed ? output : input);
  for (const Argument& argument : {input, weight, bias, output}) checks.addressable(argument);
}

namespace {

// The gradients that are wanted are there, and biasSizes with gradBias.
void require_wanted(Checks& checks, const aclBoolArray* output_mask, const aclIntArray* bias_sizes,
                    std::span<const Argument, 3> gradients) {
  if (!checks.ok()) return;
  checks.require_present(output_mask->size == 3, "outputMask has %llu values, expected 3",
                         static_cast<unsigned long long>(output_mask->size));
  for (size_t i = 0; checks.ok() && i < 3; ++i) {
    if (output_mask->values[i]) checks.not_null(gradients[i].name, gradients[i].tensor);
  }
  if (checks.ok() && output_mask->values[2]) checks.not_null("biasSizes", bias_sizes);
}

// Ascend950 writes each gradient in the dtype of what it is the gradient of.
void require_dtype_of(Checks& checks, Argument gradient, Argument of) {
  if (!checks.ok() || gradient.tensor == nullptr) return;
  if (checks.product() == Product::kAscend950) checks.same_dtype(gradient, of);
}

void require_backward_values(Checks& checks, const ConvolutionArguments& arguments, uint64_t rank) {
  require_at_least(checks, {"stride", arguments.stride}, 1);
  require_at_least(checks, {"padding", arguments.padding}, 0);
  require_at_least(checks, {"dilation", arguments.dilation}, 1);
  if (!checks.ok()) return;
  const aclIntArray& output_padding = *arguments.output_padding;
  const aclIntArray& stride = *arguments.stride;
  if (arguments.transposed) {
    require_at_least(checks, {"outputPadding", arguments.output_padding}, 0);
    // The lengths are checked later; an array of one value has it for all dimensions.
    for (uint64_t d = 0; rank == 5 && d < std::max(output_padding.size, stride.size); ++d) {
      const uint64_t i = output_padding.size == 1 ? 0 : d;
      const uint64_t j = stride.size == 1 ? 0 : d;
      if (i < output_padding.size && j < stride.size &&
          output_padding.values[i] >= stride.values[j]) {
        checks.require(false, "outputPadding is %s, expected values less than stride %s",
                       text_of(output_padding).c_str(), text_of(stride).c_str());
      }
    }
  } else {
    const bool zero =
        std::all_of(output_padding.values.get(), output_padding.values.get() + output_padding.size,
                    [](int64_t value) { return value == 0; });
    if (!zero) {
      checks.require(false, "outputPadding is %s, expected zeros when transposed is false",
                     text_of(output_padding).c_str());
    }
  }
  require_groups(checks, arguments.groups);
  require_cube_math_type(checks, arguments.cube_math_type);
}

void require_bias_sizes(Checks& checks, const aclIntArray& bias_sizes, Wide channels) {
  if (bias_sizes.size != 1 || bias_sizes.values[0] != channels) {
    checks.require(false, "biasSizes is %s, expected [%lld], the channels of the output",
                   text_of(bias_sizes).c_str(), static_cast<long long>(channels));
  }
}

// What remains to be checked of a call whose input or weight is empty.
void check_empty_backward(Checks& checks, Argument input, Argument weight,
                          const aclIntArray* bias_sizes, const ConvolutionArguments& arguments,
                          const aclBoolArray& output_mask) {
  if (!checks.ok()) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  if (output_mask.values[2]) {
    require_bias_sizes(checks, *bias_sizes,
                       arguments.transposed ? Wide{kernel[1]} * arguments.groups : kernel[0]);
  }
  if (output_mask.values[0] && shape[0] != 0 && shape[1] != 0) {
    checks.require(false,
                   "input has shape %s and weight %s: one is empty, expected gradInput only of an "
                   "input with batch size 0 or without channels",
                   shape_text(shape).c_str(), shape_text(kernel).c_str());
  }
  if (checks.product() < Product::kAscend910B) return;
  const uint64_t spatial = shape.size() - 2;
  require_lengths(checks, arguments, spatial, spatial == 2);
  require_length(checks, {"outputPadding", arguments.output_padding}, spatial);
  require_divided(checks, weight, arguments.groups);
  if (arguments.transposed) {
    if (kernel[0] == 0) {
      checks.require(false, "weight has shape %s, expected channels", shape_text(kernel).c_str());
    }
    require_size(checks, input, 1, kernel[0], "the size of weight's dimension 0");
    return;
  }
  require_size(checks, input, 1, Wide{kernel[1]} * arguments.groups,
               "groups times the size of weight's dimension 1");
  if (kernel.size() == shape.size() && checks.ok()) {
    require_kernel_fits(checks, ConvolutionGeometry(arguments, spatial), input, weight);
  }
}

// The shapes of a call in which neither input nor weight is empty.
void check_backward_shapes(Checks& checks, Argument grad_output, Argument input, Argument weight,
                           const ConvolutionArguments& arguments,
                           std::span<const Argument, 3> gradients) {
  require_same_rank(checks, grad_output, input);
  require_same_rank(checks, weight, input);
  if (!checks.ok()) return;
  for (const Argument& argument : {grad_output, weight}) {
    if (is_empty(argument.tensor->view)) {
      checks.require(false, "%s has shape %s, expected elements", argument.name,
                     shape_text(argument.tensor->view.shape).c_str());
    }
  }
  const auto [grad_input, grad_weight, grad_bias] =
      std::array{gradients[0], gradients[1], gradients[2]};
  if (grad_input.tensor != nullptr) checks.same_shape(grad_input, input);
  if (grad_weight.tensor != nullptr) checks.same_shape(grad_weight, weight);
  if (checks.ok() && grad_bias.tensor != nullptr) {
    const Dims& length = grad_bias.tensor->view.shape;
    const int64_t channels = grad_output.tensor->view.shape[1];
    if (length.size() != 1 || length[0] != channels) {
      checks.require(false, "gradBias has shape %s, expected [%lld], the channels of gradOutput",
                     shape_text(length).c_str(), static_cast<long long>(channels));
    }
  }
  const uint64_t spatial = input.tensor->view.shape.size() - 2;
  require_lengths(checks, arguments, spatial, spatial == 2);
  require_length(checks, {"outputPadding", arguments.output_padding}, spatial);
  require_channels(
      checks, arguments.transposed ? Channels{input, grad_output} : Channels{grad_output, input},
      weight, arguments.groups);
  if (!checks.ok()) return;
  const ConvolutionGeometry geometry(arguments, spatial);
  require_output_padding(checks, geometry);
  require_kernel_fits(checks, geometry, input, weight);
  require_output_sizes(checks, geometry, input, weight, grad_output);
  require_countable(checks, geometry, arguments.transposed ? grad_output : input);
}

}  // namespace

void check_convolution_backward(Checks& checks, Argument grad_output, Argument input,
                                Argument weight, const aclIntArray* bias_sizes,
                                const ConvolutionArguments& arguments,
                                const aclBoolArray* output_mask, Argument grad_input,
                                Argument grad_weight, Argument grad_bias) {
  const Argument gradients[] = {grad_input, grad_weight, grad_bias};
  checks.not_null(grad_output.name, grad_output.tensor)
      .not_null(input.name, input.tensor)
      .not_null(weight.name, weight.tensor)
      .not_null("stride", arguments.stride)
      .not_null("padding", arguments.padding)
      .not_null("dilation", arguments.dilation)
      .not_null("outputPadding", arguments.output_padding)
      .not_null("outputMask", output_mask);
  require_wanted(checks, output_mask, bias_sizes, gradients);
  for (const Argument& argument :
       {grad_output, input, weight, grad_input, grad_weight, grad_bias}) {
    require_dtype(checks, argument);
  }
  require_dtype_of(checks, grad_input, input);
  require_dtype_of(checks, grad_weight, weight);
  require_dtype_of(checks, grad_bias, grad_output);
  for (const Argument& argument : {grad_output, input, weight, grad_input, grad_weight}) {
    require_rank(checks, argument);
    require_format(checks, argument);
  }
  const bool checks_bias_format =
      !arguments.transposed && has_bfloat16(checks.product()) && checks.product() != Product::kHost;
  if (checks.ok() && grad_bias.tensor != nullptr && checks_bias_format) {
    checks.require(
        grad_bias.tensor->view.format == ACL_FORMAT_ND, "gradBias has format %d, expected ND (%d)",
        static_cast<int>(grad_bias.tensor->view.format), static_cast<int>(ACL_FORMAT_ND));
  }
  if (!checks.ok()) return;
  const uint64_t rank = input.tensor->view.shape.size();
  require_backward_values(checks, arguments, rank);
  const aclDataType promoted = promoted_type({grad_output, input, weight});
  require_computable(checks, promoted, arguments.cube_math_type);
  // Without elements, later products look at less than earlier ones.
  const bool empty = is_empty(input.tensor->view) || is_empty(weight.tensor->view);
  if (!empty || checks.product() < Product::kAscend910B) {
    check_backward_shapes(checks, grad_output, input, weight, arguments, gradients);
  }
  if (empty) check_empty_backward(checks, input, weight, bias_sizes, arguments, *output_mask);
  require_3d_supported(checks, rank - 2);
  const bool is_a2 =
      checks.product() == Product::kAscend910B || checks.product() == Product::kAscend910_93;
  if (is_a2 && rank == 5 && arguments.groups > 1 && grad_weight.tensor != nullptr) {
    const bool in_half = arguments.cube_math_type == 2 || promoted != ACL_FLOAT;
    checks.require(!in_half || grad_weight.tensor->view.dtype != ACL_FLOAT,
                   "gradWeight has dtype FLOAT with groups %lld in three dimensions and 16-bit "
                   "products, which this product cannot write; pass a 16-bit gradWeight",
                   static_cast<long long>(arguments.groups));
  }
  for (const Argument& argument :
       {grad_output, input, weight, grad_input, grad_weight, grad_bias}) {
    checks.addressable(argument);
  }
}

}  // namespace aclnn_host
