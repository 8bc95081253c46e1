// torch.ops.aclnn.convolution and convolution_backward: ATen's schemas, with cube_math_type, over
// aclnnConvolution and aclnnConvolutionBackward; one file, because each is the derivative of the
// other.

#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch::convolution_ops {
namespace {

using at::OptionalSymIntArrayRef;
using c10::SymInt;
using c10::SymIntArrayRef;
using OptionalTensor = std::optional<Tensor>;
using OutputMask = std::array<bool, 3>;
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

ACLNN_DECLARE(Convolution);
ACLNN_DECLARE(ConvolutionBackward);

// The operators as the dispatcher knows them.

using ConvolutionSignature = Tensor(const Tensor&, const Tensor&, const OptionalTensor&,
                                    SymIntArrayRef, SymIntArrayRef, SymIntArrayRef, bool,
                                    SymIntArrayRef, SymInt, std::optional<int64_t>);
using ConvolutionBackwardSignature = Gradients(const Tensor&, const Tensor&, const Tensor&,
                                               OptionalSymIntArrayRef, SymIntArrayRef,
                                               SymIntArrayRef, SymIntArrayRef, bool, SymIntArrayRef,
                                               SymInt, OutputMask, std::optional<int64_t>);

const auto& convolution_op() {
  static const auto op = find_operator<ConvolutionSignature>("aclnn::convolution");
  return op;
}

const auto& convolution_backward_op() {
  static const auto op = find_operator<ConvolutionBackwardSignature>("aclnn::convolution_backward");
  return op;
}

// ---- Devices: aclnn. Meta: sizes, strides and dtype only. --------------------------------------

// The arguments other than tensors.
struct Parameters {
  SymIntArrayRef stride;
  SymIntArrayRef padding;
  SymIntArrayRef dilation;
  bool transposed;
  SymIntArrayRef output_padding;
  const SymInt& groups;
  int64_t cube_math_type;
};

// The caller's value; by default 0 (KEEP_DTYPE), or on an NPU the value that torch_npu uses for its
// own convolutions.
int64_t resolved(std::optional<int64_t> cube_math_type, const Tensor& input) {
  if (cube_math_type) return *cube_math_type;
  return input.device().is_privateuseone() ? npu_backend().convolution_math_type() : 0;
}

// The values hold one number for all spatial dimensions, or one for each.
const SymInt& value_at(SymIntArrayRef values, size_t dim) {
  return values[values.size() == 1 ? 0 : dim];
}

void check_length(const char* api, at::Device device, const char* name, SymIntArrayRef values,
                  size_t spatial) {
  if (values.size() == 1 || values.size() == spatial) return;
  refuse(api, device,
         std::string(name) + " has " + std::to_string(values.size()) + " values, expected 1 or " +
             std::to_string(spatial) + " (one per spatial dimension)");
}

// Checks the values that are not symbolic. The upper limit is the host CANN's and keeps the
// arithmetic of output sizes from overflowing.
void check_values(const char* api, at::Device device, const char* name, SymIntArrayRef values,
                  int64_t least) {
  for (const SymInt& value : values) {
    const auto known = value.maybe_as_int();
    if (known && *known < least) {
      refuse(api, device,
             std::string(name) + " is " + c10::str(values) +
                 ", expected values >= " + std::to_string(least));
    }
    if (known && *known > std::numeric_limits<int32_t>::max()) {
      refuse(api, device,
             std::string(name) + " is " + c10::str(values) + ", expected values < 2^31");
    }
  }
}

// Conditions under which the output sizes are defined and the arguments fit into the types of the C
// functions.
void check_parameters(const char* api, const Tensor& input, const Tensor& weight,
                      const Parameters& parameters) {
  const at::Device device = input.device();
  const int64_t rank = input.dim();
  if (rank < 3 || rank > 5) {
    refuse(api, device,
           "input has shape " + c10::str(input.sym_sizes()) +
               ", expected 3, 4 or 5 dimensions: batch, channels, and 1 to 3 spatial "
               "ones; reshape it, e.g. with unsqueeze(0) if there is no batch");
  }
  if (weight.dim() != rank) {
    refuse(api, device,
           "weight has shape " + c10::str(weight.sym_sizes()) +
               ", expected as many dimensions as input (shape " + c10::str(input.sym_sizes()) +
               ")");
  }
  const auto spatial = static_cast<size_t>(rank - 2);
  check_length(api, device, "stride", parameters.stride, spatial);
  check_length(api, device, "padding", parameters.padding, spatial);
  check_length(api, device, "dilation", parameters.dilation, spatial);
  check_length(api, device, "outputPadding", parameters.output_padding, spatial);
  check_values(api, device, "stride", parameters.stride, 1);
  check_values(api, device, "padding", parameters.padding, 0);
  check_values(api, device, "dilation", parameters.dilation, 1);
  check_values(api, device, "outputPadding", parameters.output_padding, 0);
  if (!parameters.transposed) {
    for (const SymInt& value : parameters.output_padding) {
      if (value.maybe_as_int().value_or(0) != 0) {
        refuse(api, device,
               "outputPadding is " + c10::str(parameters.output_padding) +
                   ", expected zeros when transposed is false");
      }
    }
  }
  const auto groups = parameters.groups.maybe_as_int();
  if (groups && (*groups < 1 || *groups > std::numeric_limits<uint16_t>::max())) {
    refuse(api, device, "groups is " + std::to_string(*groups) + ", expected 1 to 65535");
  }
  // The C functions have an INT8, and accept 4 and 5 by the release of CANN.
  if (parameters.cube_math_type < 0 || parameters.cube_math_type > 5) {
    refuse(api, device,
           "cubeMathType is " + std::to_string(parameters.cube_math_type) +
               ", expected 0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16), 3 "
               "(USE_HF32), 4 (USE_FP32_ADD) or 5 (USE_HIGH_PREC_MODE)");
  }
}

// As in ATen: channels-last if either tensor is. torch_npu makes no channels-last tensors.
at::MemoryFormat memory_format_of(const Tensor& input, const Tensor& weight) {
  if (input.device().is_privateuseone()) return at::MemoryFormat::Contiguous;
  for (const Tensor& tensor : {input, weight}) {
    const at::MemoryFormat format = tensor.suggest_memory_format();
    if (format != at::MemoryFormat::Contiguous) return format;
  }
  return at::MemoryFormat::Contiguous;
}

// Checks the number of channels, unless it is symbolic.
void check_channels(const char* api, Named input, const Tensor& weight, const SymInt& expected,
                    const SymInt& groups) {
  const auto channels = input.tensor.sym_size(1).maybe_as_int();
  const auto wanted = expected.maybe_as_int();
  if (!channels || !wanted || *channels == *wanted) return;
  refuse(api, input.tensor.device(),
         std::string(input.name) + " has shape " + c10::str(input.tensor.sym_sizes()) +
             ", expected " + std::to_string(*wanted) + " channels for weight of shape " +
             c10::str(weight.sym_sizes()) + " and " + c10::str(groups) + " groups");
}

std::vector<SymInt> output_sizes(const Tensor& input, const Tensor& weight,
                                 const Parameters& parameters) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, _] = parameters;
  std::vector<SymInt> sizes{input.sym_size(0),
                            transposed ? weight.sym_size(1) * groups : weight.sym_size(0)};
  for (int64_t d = 0; d < input.dim() - 2; ++d) {
    const SymInt size = input.sym_size(d + 2);
    const SymInt reach = value_at(dilation, d) * (weight.sym_size(d + 2) - 1) + 1;
    const SymInt margins = value_at(padding, d) * 2;
    sizes.push_back(transposed ? (size - 1) * value_at(stride, d) - margins + reach +
                                     value_at(output_padding, d)
                               : (size + margins - reach) / value_at(stride, d) + 1);
    const auto known = sizes.back().maybe_as_int();
    const auto room = (size + margins - reach).maybe_as_int();
    if ((known && *known < (transposed ? 1 : 0)) || (!transposed && room && *room < 0)) {
      refuse(Convolution::kStage1, input.device(),
             "weight of shape " + c10::str(weight.sym_sizes()) +
                 " leaves nothing of input of shape " + c10::str(input.sym_sizes()) +
                 " in spatial dimension " + std::to_string(d) +
                 ": expected a kernel within the padded input");
    }
  }
  return sizes;
}

Tensor convolution_output(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                          const Parameters& parameters) {
  constexpr const char* kApi = Convolution::kStage1;
  const Tensor bias_tensor = tensor_of(bias);
  check_tensors(kApi, {{"input", input}, {"weight", weight}, {"bias", bias_tensor, true}});
  check_parameters(kApi, input, weight, parameters);
  check_channels(
      kApi, {"input", input}, weight,
      parameters.transposed ? weight.sym_size(0) : weight.sym_size(1) * parameters.groups,
      parameters.groups);
  at::ScalarType dtype = at::promote_types(input.scalar_type(), weight.scalar_type());
  if (bias) dtype = at::promote_types(dtype, bias->scalar_type());
  return new_tensor(input, output_sizes(input, weight, parameters), dtype,
                    memory_format_of(input, weight));
}

Tensor convolution_device(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                          SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation,
                          bool transposed, SymIntArrayRef output_padding, SymInt groups,
                          std::optional<int64_t> cube_math_type) {
  const int64_t math_type = resolved(cube_math_type, input);
  Tensor output = convolution_output(
      input, weight, bias,
      {stride, padding, dilation, transposed, output_padding, groups, math_type});
  call_device<Convolution>(input, weight, tensor_of(bias), C10_AS_INTARRAYREF_SLOW(stride),
                           C10_AS_INTARRAYREF_SLOW(padding), C10_AS_INTARRAYREF_SLOW(dilation),
                           transposed, C10_AS_INTARRAYREF_SLOW(output_padding), groups.expect_int(),
                           Written{output}, static_cast<int8_t>(math_type));
  return output;
}

Tensor convolution_meta(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                        SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation,
                        bool transposed, SymIntArrayRef output_padding, SymInt groups,
                        std::optional<int64_t> cube_math_type) {
  return convolution_output(input, weight, bias,
                            {stride, padding, dilation, transposed, output_padding, groups,
                             resolved(cube_math_type, input)});
}

Gradients convolution_backward_outputs(const Tensor& grad_output, const Tensor& input,
                                       const Tensor& weight, const Parameters& parameters,
                                       OutputMask wanted) {
  constexpr const char* kApi = ConvolutionBackward::kStage1;
  check_tensors(kApi, {{"gradOutput", grad_output}, {"input", input}, {"weight", weight}});
  check_parameters(kApi, input, weight, parameters);
  if (grad_output.dim() != input.dim()) {
    refuse(kApi, input.device(),
           "gradOutput has shape " + c10::str(grad_output.sym_sizes()) +
               ", expected as many dimensions as input (shape " + c10::str(input.sym_sizes()) +
               ")");
  }
  const Named first{parameters.transposed ? "input" : "gradOutput",
                    parameters.transposed ? input : grad_output};
  const Named second{parameters.transposed ? "gradOutput" : "input",
                     parameters.transposed ? grad_output : input};
  check_channels(kApi, first, weight, weight.sym_size(0), parameters.groups);
  check_channels(kApi, second, weight, weight.sym_size(1) * parameters.groups, parameters.groups);
  const at::MemoryFormat format = memory_format_of(input, weight);
  const auto like = [&](const Tensor& tensor) {
    return new_tensor(tensor, tensor.sym_sizes(), tensor.scalar_type(), format);
  };
  return {wanted[0] ? like(input) : Tensor(), wanted[1] ? like(weight) : Tensor(),
          wanted[2] ? new_tensor(grad_output, {grad_output.sym_size(1)}, grad_output.scalar_type())
                    : Tensor()};
}

Gradients convolution_backward_device(const Tensor& grad_output, const Tensor& input,
                                      const Tensor& weight, OptionalSymIntArrayRef bias_sizes,
                                      SymIntArrayRef stride, SymIntArrayRef padding,
                                      SymIntArrayRef dilation, bool transposed,
                                      SymIntArrayRef output_padding, SymInt groups,
                                      OutputMask output_mask,
                                      std::optional<int64_t> cube_math_type) {
  const int64_t math_type = resolved(cube_math_type, input);
  const auto gradients = convolution_backward_outputs(
      grad_output, input, weight,
      {stride, padding, dilation, transposed, output_padding, groups, math_type}, output_mask);
  const at::OptionalIntArrayRef sizes =
      bias_sizes ? at::OptionalIntArrayRef(C10_AS_INTARRAYREF_SLOW(*bias_sizes)) : std::nullopt;
  const auto& [grad_input, grad_weight, grad_bias] = gradients;
  call_device<ConvolutionBackward>(
      grad_output, input, weight, sizes, C10_AS_INTARRAYREF_SLOW(stride),
      C10_AS_INTARRAYREF_SLOW(padding), C10_AS_INTARRAYREF_SLOW(dilation), transposed,
      C10_AS_INTARRAYREF_SLOW(output_padding), static_cast<int>(groups.expect_int()), output_mask,
      static_cast<int8_t>(math_type), Written{grad_input}, Written{grad_weight},
      Written{grad_bias});
  return gradients;
}

Gradients convolution_backward_meta(const Tensor& grad_output, const Tensor& input,
                                    const Tensor& weight, OptionalSymIntArrayRef,
                                    SymIntArrayRef stride, SymIntArrayRef padding,
                                    SymIntArrayRef dilation, bool transposed,
                                    SymIntArrayRef output_padding, SymInt groups,
                                    OutputMask output_mask, std::optional<int64_t> cube_math_type) {
  return convolution_backward_outputs(grad_output, input, weight,
                                      {stride, padding, dilation, transposed, output_padding,
                                       groups, resolved(cube_math_type, input)},
                                      output_mask);
}

// ---- Derivatives. A convolution is linear in input, in weight and in bias, and its gradients are
// linear in gradOutput and in the other factor: every derivative is one of the two operators on
// other arguments. --------------------------------------------------------------------------------

// stride, padding, dilation, transposed, outputPadding, groups, cubeMathType.
using Attributes = std::tuple<std::vector<SymInt>, std::vector<SymInt>, std::vector<SymInt>, bool,
                              std::vector<SymInt>, SymInt, int64_t>;

Tensor convolve(const Tensor& input, const Tensor& weight, const Attributes& attributes) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, type] = attributes;
  return convolution_op().call(input, weight, std::nullopt, stride, padding, dilation, transposed,
                               output_padding, groups, type);
}

Gradients gradients_of(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                       const Attributes& attributes, OutputMask wanted) {
  const auto& [stride, padding, dilation, transposed, output_padding, groups, type] = attributes;
  if (!wanted[0] && !wanted[1] && !wanted[2]) return {};
  const std::vector<SymInt> bias_sizes{grad_output.sym_size(1)};
  return convolution_backward_op().call(
      grad_output, input, weight,
      wanted[2] ? OptionalSymIntArrayRef(bias_sizes) : OptionalSymIntArrayRef(), stride, padding,
      dilation, transposed, output_padding, groups, wanted, type);
}

// The tangent of the output, from the tangents of input, weight and bias, any of which may be
// undefined; `sizes` and `dtype` are the output's.
Tensor output_change(const Tensor& input_change, const Tensor& weight_change,
                     const Tensor& bias_change, const Tensor& input, const Tensor& weight,
                     const Attributes& attributes, SymIntArrayRef sizes) {
  Tensor change;
  if (input_change.defined()) change = convolve(input_change, weight, attributes);
  if (weight_change.defined()) {
    change = sum_of_defined(change, convolve(input, weight_change, attributes));
  }
  if (bias_change.defined()) {
    std::vector<SymInt> shape(sizes.size(), 1);
    shape[1] = sizes[1];
    const Tensor along_channels = bias_change.view_symint(shape);
    // In its own memory, like an output.
    change =
        change.defined() ? change + along_channels : along_channels.expand_symint(sizes).clone();
  }
  return change;
}

// Saves input and weight. Inputs: input, weight, bias.
struct ConvolutionFormula {
  static constexpr const char* kName = "AclnnConvolutionBackward0";
  using Attributes = convolution_ops::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const auto [grad_input, grad_weight, grad_bias] =
        gradients_of(grads[0], saved[0], saved[1], attributes, {needed[0], needed[1], needed[2]});
    return {grad_input, grad_weight, grad_bias};
  }
};

// Saves gradOutput, input and weight, which are its inputs.
struct ConvolutionBackwardFormula {
  static constexpr const char* kName = "AclnnConvolutionBackwardBackward0";
  using Attributes = convolution_ops::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const Tensor& grad_output = saved[0];
    const Tensor& input = saved[1];
    const Tensor& weight = saved[2];
    variable_list result(3);
    if (needed[0]) {
      result[0] = output_change(grads[0], grads[1], grads[2], input, weight, attributes,
                                grad_output.sym_sizes());
    }
    if (needed[1] && grads[1].defined()) {
      result[1] =
          std::get<0>(gradients_of(grad_output, input, grads[1], attributes, {true, false, false}));
    }
    if (needed[2] && grads[0].defined()) {
      result[2] = std::get<1>(
          gradients_of(grad_output, grads[0], weight, attributes, {false, true, false}));
    }
    return result;
  }
};

Tensor convolution_autograd(c10::DispatchKeySet keys, const Tensor& input, const Tensor& weight,
                            const OptionalTensor& bias, SymIntArrayRef stride,
                            SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed,
                            SymIntArrayRef output_padding, SymInt groups,
                            std::optional<int64_t> cube_math_type) {
  // Fixed now, so that all derivatives use one value even if the setting changes later.
  const int64_t math_type = resolved(cube_math_type, input);
  const Attributes attributes{stride.vec(),         padding.vec(), dilation.vec(), transposed,
                              output_padding.vec(), groups,        math_type};
  const Tensor bias_tensor = tensor_of(bias);
  const auto node = make_node<ConvolutionFormula>(attributes, input, weight, bias_tensor);
  if (node) {
    node->save(input, /*is_output=*/false);
    node->save(weight, /*is_output=*/false);
  }
  Tensor output = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return convolution_op().redispatch(keys & c10::after_autograd_keyset, input, weight, bias,
                                       stride, padding, dilation, transposed, output_padding,
                                       groups, math_type);
  }();
  if (node) torch::autograd::set_history(output, node);

  set_tangent(output,
              output_change(tangent_of(input), tangent_of(weight), tangent_of(bias_tensor),
                            primal_of(input), primal_of(weight), attributes, output.sym_sizes()));
  return output;
}

Gradients convolution_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                                        const Tensor& input, const Tensor& weight,
                                        OptionalSymIntArrayRef bias_sizes, SymIntArrayRef stride,
                                        SymIntArrayRef padding, SymIntArrayRef dilation,
                                        bool transposed, SymIntArrayRef output_padding,
                                        SymInt groups, OutputMask output_mask,
                                        std::optional<int64_t> cube_math_type) {
  // Fixed now, so that all derivatives use one value even if the setting changes later.
  const int64_t math_type = resolved(cube_math_type, input);
  const Attributes attributes{stride.vec(),         padding.vec(), dilation.vec(), transposed,
                              output_padding.vec(), groups,        math_type};
  const auto node = make_node<ConvolutionBackwardFormula>(attributes, grad_output, input, weight);
  if (node) {
    for (const Tensor& tensor : {grad_output, input, weight}) {
      node->save(tensor, /*is_output=*/false);
    }
  }
  auto [grad_input, grad_weight, grad_bias] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return convolution_backward_op().redispatch(
        keys & c10::after_autograd_keyset, grad_output, input, weight, bias_sizes, stride, padding,
        dilation, transposed, output_padding, groups, output_mask, math_type);
  }();
  variable_list results{grad_input, grad_weight, grad_bias};
  if (node) torch::autograd::set_history(results, node);

  const Tensor grad_tangent = tangent_of(grad_output);
  const Tensor input_tangent = tangent_of(input);
  const Tensor weight_tangent = tangent_of(weight);
  const Tensor grad = primal_of(grad_output);
  std::array<Tensor, 3> tangents;
  if (grad_tangent.defined()) {
    std::tie(tangents[0], tangents[1], tangents[2]) =
        gradients_of(grad_tangent, primal_of(input), primal_of(weight), attributes, output_mask);
  }
  if (weight_tangent.defined() && output_mask[0]) {
    tangents[0] =
        sum_of_defined(tangents[0], std::get<0>(gradients_of(grad, primal_of(input), weight_tangent,
                                                             attributes, {true, false, false})));
  }
  if (input_tangent.defined() && output_mask[1]) {
    tangents[1] =
        sum_of_defined(tangents[1], std::get<1>(gradients_of(grad, input_tangent, primal_of(weight),
                                                             attributes, {false, true, false})));
  }
  for (size_t i = 0; i < tangents.size(); ++i) set_tangent(results[i], tangents[i]);
  return {results[0], results[1], results[2]};
}

// Autocast computes convolutions in its 16-bit dtype, as torch.conv2d.
template <at::DeviceType kDevice>
Tensor convolution_autocast(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                            SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation,
                            bool transposed, SymIntArrayRef output_padding, SymInt groups,
                            std::optional<int64_t> cube_math_type) {
  const c10::impl::ExcludeDispatchKeyGuard guard(
      at::autocast::get_autocast_dispatch_key_from_device_type(kDevice));
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(kDevice);
  const auto cast = [&](const auto& tensor) {
    return at::autocast::cached_cast(dtype, tensor, kDevice);
  };
  return convolution_op().call(cast(input), cast(weight), cast(bias), stride, padding, dilation,
                               transposed, output_padding, groups, cube_math_type);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def(
      "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, int? "
      "cube_math_type=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
      "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
      "output_padding, SymInt groups, bool[3] output_mask, *, int? cube_math_type=None) -> "
      "(Tensor, "
      "Tensor, Tensor)",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("convolution", &convolution_device);
  m.impl("convolution_backward", &convolution_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("convolution", &convolution_meta);
  m.impl("convolution_backward", &convolution_backward_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("convolution", &convolution_autograd);
  m.impl("convolution_backward", &convolution_backward_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastCPU, m) {
  m.impl("convolution", &convolution_autocast<at::kCPU>);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastPrivateUse1, m) {
  m.impl("convolution", &convolution_autocast<at::kPrivateUse1>);
}

}  // namespace aclnn_torch::convolution_ops
