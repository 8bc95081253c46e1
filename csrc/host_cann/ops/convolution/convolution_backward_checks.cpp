// The checks of aclnnConvolutionBackward, in CANN's order; docs/emulation/operators.md lists the
// deviations.
#include <algorithm>
#include <array>
#include <span>

#include "host_cann/arguments/cast.h"
#include "host_cann/arguments/compute_type.h"
#include "host_cann/ops/convolution/convolution_checks.h"
#include "host_cann/ops/convolution/limits.h"
#include "host_cann/ops/convolution/requirements.h"

namespace aclnn_host {
namespace {

// Requires a tensor for each requested gradient, and biasSizes with gradBias.
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

// On Ascend950 a gradient has the dtype of the tensor it belongs to.
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
    // The lengths are checked later; an array of one value applies to all dimensions.
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
  if (!has_published_gradients(checks.product(), rank - 2)) {
    require_few_groups(checks, arguments.groups);
  }
  require_cube_math_type(checks, arguments.cube_math_type, CubeMathTypes::kOfBackward);
}

void require_bias_sizes(Checks& checks, const aclIntArray& bias_sizes, Wide channels) {
  if (bias_sizes.size != 1 || bias_sizes.values[0] != channels) {
    checks.require(false, "biasSizes is %s, expected [%lld], the channels of the output",
                   text_of(bias_sizes).c_str(), static_cast<long long>(channels));
  }
}

// The remaining checks of a call whose input or weight is empty.
void check_empty_backward(Checks& checks, Argument grad_output, Argument input, Argument weight,
                          const aclIntArray* bias_sizes, const ConvolutionArguments& arguments,
                          const aclBoolArray& output_mask) {
  if (!checks.ok()) return;
  const Dims& shape = input.tensor->view.shape;
  const Dims& kernel = weight.tensor->view.shape;
  const Wide transposed_channels = Wide{kernel[1]} * arguments.groups;
  if (output_mask.values[2]) {
    require_bias_sizes(
        checks, *bias_sizes,
        arguments.transposed ? transposed_channels : grad_output.tensor->view.shape[1]);
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
  require_length(checks, {"outputPadding", arguments.output_padding}, spatial, spatial == 2);
  require_divided(checks, weight, arguments.groups);
  if (arguments.transposed) {
    if (shape[0] != 0) {
      require_size(checks, grad_output, 1, transposed_channels,
                   "groups times the size of weight's dimension 1");
    }
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

ChannelSides sides_of(Argument grad_output, Argument input, bool transposed) {
  return transposed ? ChannelSides{input, grad_output} : ChannelSides{grad_output, input};
}

// True if the tiling of an inner operator checks that the groups divide the channels. CANN's API
// checks do so for depthwise convolutions only.
bool is_divided_inside(Product product, uint64_t spatial, const ChannelSides& sides,
                       int64_t groups) {
  const bool is_depthwise = sides.second.tensor->view.shape[1] == groups;
  return has_published_gradients(product, spatial) &&
         (product == Product::kAscend950 || !is_depthwise);
}

// The same for the batch; that of lines and planes is checked in the API.
bool has_batch_inside(Product product, uint64_t spatial) {
  return spatial == 3 && has_published_gradients(product, spatial);
}

// Checks the shapes if neither input nor weight is empty.
void check_backward_shapes(Checks& checks, Argument grad_output, Argument input, Argument weight,
                           const ConvolutionArguments& arguments,
                           std::span<const Argument, 3> gradients) {
  const ChannelSides sides = sides_of(grad_output, input, arguments.transposed);
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
  require_length(checks, {"outputPadding", arguments.output_padding}, spatial, spatial == 2);
  require_channels(checks, sides, weight, arguments.groups);
  if (!is_divided_inside(checks.product(), spatial, sides, arguments.groups)) {
    require_divided(checks, weight, arguments.groups);
  }
  if (!checks.ok()) return;
  const ConvolutionGeometry geometry(arguments, spatial);
  require_kernel_fits(checks, geometry, input, weight);
  if (arguments.transposed) {
    require_transposed_sizes(checks, geometry, input, weight, grad_output);
  } else {
    require_output_sizes(checks, geometry, input, weight, grad_output);
  }
  if (!has_batch_inside(checks.product(), spatial)) require_batch(checks, grad_output, input);
  require_countable(checks, geometry, arguments.transposed ? grad_output : input);
}

// A restriction of Atlas A2 and A3.
void require_writable_grad_weight(Checks& checks, const ConvolutionArguments& arguments,
                                  aclDataType promoted, Argument grad_weight) {
  const bool is_a2 =
      checks.product() == Product::kAscend910B || checks.product() == Product::kAscend910_93;
  if (!is_a2 || arguments.groups <= 1 || grad_weight.tensor == nullptr) return;
  const bool in_half = arguments.cube_math_type == 2 || promoted != ACL_FLOAT;
  checks.require(!in_half || grad_weight.tensor->view.dtype != ACL_FLOAT,
                 "gradWeight has dtype FLOAT with groups %lld in three dimensions and 16-bit "
                 "products, which this product cannot write; pass a 16-bit gradWeight",
                 static_cast<long long>(arguments.groups));
}

}  // namespace

void check_convolution_backward(Checks& checks, const BackwardTensors& tensors,
                                const aclIntArray* bias_sizes,
                                const ConvolutionArguments& arguments,
                                const aclBoolArray* output_mask) {
  const auto& [grad_output, input, weight, grad_input, grad_weight, grad_bias] = tensors;
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
  // For empty tensors, newer products check less than older ones.
  const bool empty = is_empty(input.tensor->view) || is_empty(weight.tensor->view);
  if (!empty || checks.product() < Product::kAscend910B) {
    check_backward_shapes(checks, grad_output, input, weight, arguments, gradients);
  }
  if (empty) {
    check_empty_backward(checks, grad_output, input, weight, bias_sizes, arguments, *output_mask);
  }
  require_3d_supported(checks, rank - 2);
  if (rank == 5) require_writable_grad_weight(checks, arguments, promoted, grad_weight);
}

aclnnStatus check_inside_convolution_backward(const char* api, const BackwardTensors& tensors,
                                              const ConvolutionArguments& arguments,
                                              const aclBoolArray& output_mask) {
  const auto& [grad_output, input, weight, grad_input, grad_weight, grad_bias] = tensors;
  Checks checks(api, ACLNN_ERR_INNER_NULLPTR);
  require_few_groups(checks, arguments.groups);
  if (!is_empty(input.tensor->view) && !is_empty(weight.tensor->view)) {
    const Dims& kernel = weight.tensor->view.shape;
    require_divided(checks, weight, arguments.groups);
    require_batch(checks, grad_output, input);
    const ConvolutionGeometry geometry(arguments, kernel.size() - 2);
    const aclDataType dtype = compute_type(promoted_type({grad_output, input, weight}),
                                           arguments.cube_math_type, checks.product())
                                  .dtype;
    const bool transposed = arguments.transposed;
    const InnerConvolution call{
        geometry, transposed ? grad_output : input, transposed ? input : grad_output, kernel, dtype,
        false};
    if (output_mask.values[0]) {
      transposed ? require_transposed_data_gradient(checks, call)
                 : require_data_gradient(checks, call);
    }
    if (output_mask.values[1]) require_weight_gradient(checks, call);
  }
  return checks.status();
}

}  // namespace aclnn_host
