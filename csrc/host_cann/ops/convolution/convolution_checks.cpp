// The checks of aclnnConvolution, in CANN's order, and what those of its gradient share;
// docs/emulation/operators.md lists the deviations.
#include "host_cann/ops/convolution/convolution_checks.h"

#include <algorithm>

#include "host_cann/arguments/cast.h"
#include "host_cann/arguments/compute_type.h"
#include "host_cann/ops/convolution/limits.h"
#include "host_cann/ops/convolution/requirements.h"

namespace aclnn_host {

bool is_empty(const TensorView& view) {
  return std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
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

namespace {

// Checks the shapes and the lengths of the arrays.
void check_shapes(Checks& checks, const ForwardTensors& tensors,
                  const ConvolutionArguments& arguments) {
  const auto& [input, weight, bias, output] = tensors;
  for (const Argument& argument : {input, weight, output}) require_rank(checks, argument);
  require_same_rank(checks, weight, input);
  require_same_rank(checks, output, input);
  if (!checks.ok()) return;
  const Dims& kernel = weight.tensor->view.shape;
  const uint64_t spatial = input.tensor->view.shape.size() - 2;
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
}

void check_formats(Checks& checks, const ForwardTensors& tensors) {
  const auto& [input, weight, bias, output] = tensors;
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
}

// True if the tiling of an inner operator checks the groups, instead of CANN's API checks.
bool has_counted_groups(Product product, uint64_t spatial, bool transposed) {
  return product == Product::kAscend950 ||
         (transposed && has_published_gradients(product, spatial));
}

// Checks kernel sizes and the non-tensor parameters.
void check_values(Checks& checks, Argument weight, const ConvolutionArguments& arguments) {
  if (!checks.ok()) return;
  const Dims& kernel = weight.tensor->view.shape;
  // Ascend950 transposes with a kernel of no size, whose output has none either.
  const bool may_be_empty = arguments.transposed && checks.product() >= Product::kAscend950;
  for (uint64_t d = 2; d < kernel.size(); ++d) {
    if (kernel[d] < (may_be_empty ? 0 : 1)) {
      checks.require(false, "weight has shape %s, expected a kernel size > 0",
                     shape_text(kernel).c_str());
    }
  }
  require_at_least(checks, {"stride", arguments.stride}, 1);
  require_at_least(checks, {"dilation", arguments.dilation}, 1);
  require_groups(checks, arguments.groups);
  if (!has_counted_groups(checks.product(), kernel.size() - 2, arguments.transposed)) {
    require_few_groups(checks, arguments.groups);
  }
}

// CANN rejects an empty input or weight if the output has elements.
void require_something(Checks& checks, const ForwardTensors& tensors, bool transposed) {
  if (!checks.ok() || checks.product() == Product::kHost) return;
  const Dims& shape = tensors.input.tensor->view.shape;
  if (!is_empty(tensors.input.tensor->view) && !is_empty(tensors.weight.tensor->view)) return;
  constexpr const char* kText =
      "input has shape %s and output %s, expected %s; or select the product host, whose output is "
      "the bias then";
  const auto require = [&](bool condition, const char* expected) {
    if (condition) return;
    checks.require(false, kText, shape_text(shape).c_str(),
                   shape_text(tensors.output.tensor->view.shape).c_str(), expected);
  };
  if (!transposed) {
    return require(is_empty(tensors.output.tensor->view),
                   "an output without elements of an input without");
  }
  require(shape[1] != 0, "channels");
  if (checks.product() != Product::kAscend950) return;
  const bool has_positions = std::find(shape.begin() + 2, shape.end(), 0) == shape.end();
  require(has_positions, "spatial sizes > 0");
  const Dims& kernel = tensors.weight.tensor->view.shape;
  const Dims& positions = tensors.output.tensor->view.shape;
  for (uint64_t d = 2; d < kernel.size(); ++d) {
    if (kernel[d] != 0 || positions[d] == 0) continue;
    checks.require(false,
                   "weight has shape %s and output %s, expected a kernel size > 0 in dimension "
                   "%llu, where output has a size; or select the product host, whose output is the "
                   "bias then",
                   shape_text(kernel).c_str(), shape_text(positions).c_str(),
                   static_cast<unsigned long long>(d));
  }
}

// Checks the padding of the convolution that computes a transposed one. On Ascend950, only releases
// up to CANN 9.0 do.
void require_inverse_padding(Checks& checks, const ConvolutionGeometry& geometry, Argument weight,
                             const aclIntArray& padding) {
  constexpr Wide kMax = 255;
  const bool is_950 = checks.product() == Product::kAscend950;
  if (!checks.ok() || !geometry.transposed || checks.product() == Product::kHost) return;
  if (is_950 && checks.cann_release() > CannRelease::k9_0) return;
  const bool is_volume = geometry.spatial == 3;
  for (uint64_t d = is_volume ? 1 : 0; d < geometry.spatial; ++d) {
    // Like CANN, uses the first two even if four values are given.
    const int64_t given = padding.values[padding.size == 1 ? 0 : d];
    const int64_t taps = weight.tensor->view.shape[d + 2];
    const Wide inverse = Wide{taps - 1} * geometry.dilation[d] - given;
    checks.require(inverse <= kMax && (!is_volume || inverse >= 0),
                   "padding is %s, with which dilation (weight - 1) - padding is %lld in spatial "
                   "dimension %llu, expected %s255; or select %s",
                   text_of(padding).c_str(), static_cast<long long>(inverse),
                   static_cast<unsigned long long>(d), is_volume ? "0 to " : "at most ",
                   is_950 ? "CANN 9.1 or the product host" : "the product Ascend950 or host");
  }
}

// True for a line that CANN transposes as a matrix product on Ascend950.
bool is_product_of_lines(const ForwardTensors& tensors, const ConvolutionGeometry& geometry) {
  const int64_t taps = tensors.weight.tensor->view.shape[2];
  return geometry.spatial == 1 && geometry.groups == 1 && geometry.padding_before[0] == 0 &&
         geometry.padding_after[0] == 0 && geometry.output_padding[0] == 0 &&
         geometry.dilation[0] == 1 && tensors.input.tensor->view.shape[2] == 1 &&
         tensors.output.tensor->view.shape[2] == taps &&
         (taps == 1 || tensors.bias.tensor == nullptr);
}

// No operator transposes 16-bit tensors into FLOAT; before Ascend910B the output is cast.
void require_transposed_dtype(Checks& checks, const ForwardTensors& tensors,
                              const ConvolutionGeometry& geometry, aclDataType dtype) {
  const Product product = checks.product();
  if (!has_fp32_units(product) || product == Product::kHost || !geometry.transposed) return;
  if (product == Product::kAscend950 && is_product_of_lines(tensors, geometry)) return;
  const bool casts =
      tensors.output.tensor->view.dtype == ACL_FLOAT && (dtype == ACL_FLOAT16 || dtype == ACL_BF16);
  checks.require(!casts,
                 "output has dtype FLOAT, expected %s as the products have when transposed is "
                 "true; pass such an output and cast it, cubeMathType 2, or select the "
                 "product host",
                 dtype_name(dtype));
}

// Checks the limits of the inner operators' tilings.
void require_within_limits(Checks& checks, const ForwardTensors& tensors,
                           const ConvolutionArguments& arguments) {
  const auto& [input, weight, bias, output] = tensors;
  const Dims& kernel = weight.tensor->view.shape;
  const ConvolutionGeometry geometry(arguments, kernel.size() - 2);
  const aclDataType dtype =
      compute_type(promoted_type({input, weight}), arguments.cube_math_type, checks.product())
          .dtype;
  const bool has_bias = bias.tensor != nullptr;
  if (arguments.transposed) {
    const bool in_half = arguments.cube_math_type == 2;
    if (!in_half) require_transposed_dtype(checks, tensors, geometry, dtype);
    require_data_gradient(checks, {geometry, output, input, kernel, dtype, has_bias});
  } else {
    require_convolvable(checks, {geometry, input, output, kernel, dtype, has_bias});
  }
}

}  // namespace

void check_convolution(Checks& checks, const ForwardTensors& tensors,
                       const ConvolutionArguments& arguments) {
  const auto& [input, weight, bias, output] = tensors;
  checks.not_null(input.name, input.tensor)
      .not_null(weight.name, weight.tensor)
      .not_null("stride", arguments.stride)
      .not_null("padding", arguments.padding)
      .not_null("dilation", arguments.dilation);
  if (arguments.transposed) checks.not_null("outputPadding", arguments.output_padding);
  checks.not_null(output.name, output.tensor);
  for (const Argument& argument : {input, weight, output, bias}) require_dtype(checks, argument);
  check_shapes(checks, tensors, arguments);
  check_formats(checks, tensors);
  check_values(checks, weight, arguments);
  if (!checks.ok()) return;

  const uint64_t spatial = input.tensor->view.shape.size() - 2;
  const ConvolutionGeometry geometry(arguments, spatial);
  require_channels(checks,
                   arguments.transposed ? ChannelSides{input, output} : ChannelSides{output, input},
                   weight, arguments.groups);
  require_divided(checks, weight, arguments.groups);
  if (arguments.transposed) {
    require_at_least(checks, {"outputPadding", arguments.output_padding}, 0);
    require_output_padding(checks, geometry);
  }
  const bool is_empty_input = is_empty(input.tensor->view);
  if (!is_empty_input) require_kernel_fits(checks, geometry, input, weight);

  require_batch(checks, output, input);
  require_output_sizes(checks, geometry, input, weight, output);
  require_something(checks, tensors, arguments.transposed);
  if (!is_empty_input && !is_empty(output.tensor->view)) {
    require_inverse_padding(checks, geometry, weight, *arguments.padding);
  }

  require_cube_math_type(checks, arguments.cube_math_type, CubeMathTypes::kOfForward);
  // The bias is cast to the promoted dtype of these two.
  const aclDataType promoted = promoted_type({input, weight});
  require_computable(checks, promoted, arguments.cube_math_type);

  // Atlas inference products support FLOAT16 in the forward pass (per the document; not checked).
  const bool on_inference = checks.product() == Product::kAscend310P && promoted == ACL_FLOAT16;
  if (!on_inference || arguments.transposed) require_3d_supported(checks, spatial);
  require_countable(checks, geometry, arguments.transposed ? output : input);
}

aclnnStatus check_inside_convolution(const char* api, const ForwardTensors& tensors,
                                     const ConvolutionArguments& arguments) {
  const auto& [input, weight, bias, output] = tensors;
  Checks padding(api, ACLNN_ERR_RUNTIME_ERROR);
  require_at_least(padding, {"padding", arguments.padding}, 0);
  if (!padding.ok()) return padding.status();

  Checks checks(api, arguments.transposed ? ACLNN_ERR_RUNTIME_ERROR : ACLNN_ERR_INNER_NULLPTR);
  require_few_groups(checks, arguments.groups);
  const bool is_launched = !is_empty(input.tensor->view) && !is_empty(weight.tensor->view) &&
                           !is_empty(output.tensor->view);
  if (is_launched) require_within_limits(checks, tensors, arguments);
  return checks.status();
}

void check_memory(Checks& checks, std::initializer_list<Argument> tensors) {
  for (const Argument& argument : tensors) checks.addressable(argument);
}

}  // namespace aclnn_host
