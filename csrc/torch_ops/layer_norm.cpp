// torch.ops.aclnn.layer_norm, layer_norm_backward: the schemas of ATen's native_layer_norm and
// native_layer_norm_backward over aclnnLayerNorm and aclnnLayerNormBackward.

#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <torch/library.h>

#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/normalization.h"

namespace aclnn_torch::layer_norm_ops {
namespace {

using c10::SymIntArrayRef;
using OptionalTensor = std::optional<Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Mask = std::array<bool, 3>;

ACLNN_DECLARE(LayerNorm);
ACLNN_DECLARE(LayerNormBackward);

using LayerNormSignature = Triple(const Tensor&, SymIntArrayRef, const OptionalTensor&,
                                  const OptionalTensor&, double);
using LayerNormBackwardSignature = Triple(const Tensor&, const Tensor&, SymIntArrayRef,
                                          const Tensor&, const Tensor&, const OptionalTensor&,
                                          const OptionalTensor&, Mask);

const auto& layer_norm_op() {
  static const auto op = find_operator<LayerNormSignature>("aclnn::layer_norm");
  return op;
}

const auto& layer_norm_backward_op() {
  static const auto op = find_operator<LayerNormBackwardSignature>("aclnn::layer_norm_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

void check_normalized(const char* api, const Tensor& input, SymIntArrayRef shape,
                      const Tensor& weight, const Tensor& bias) {
  const auto sizes = input.sym_sizes();
  if (shape.empty() || shape.size() > sizes.size()) {
    refuse(api, input.device(),
           c10::str("normalizedShape has ", shape.size(), " sizes, expected 1 to ", sizes.size(),
                    ", the dimensions of input"));
  }
  constexpr const char* kWhy = "as normalizedShape has";
  for (const auto& [name, tensor, optional] :
       {Named{"weight", weight, true}, Named{"bias", bias, true}}) {
    if (tensor.defined()) check_shape(api, {name, tensor}, shape, kWhy, ACLNN_ERR_PARAM_INVALID);
  }
}

// y, mean and rstd; the statistics have one value per row.
Triple layer_norm_outputs(const Tensor& input, SymIntArrayRef shape, const Tensor& weight,
                          const Tensor& bias) {
  check_tensors(LayerNorm::kStage1,
                {{"input", input}, {"weight", weight, true}, {"bias", bias, true}});
  check_normalized(LayerNorm::kStage1, input, shape, weight, bias);
  c10::SymDimVector rows(input.sym_sizes().begin(), input.sym_sizes().end());
  std::fill(rows.end() - static_cast<int64_t>(shape.size()), rows.end(), 1);
  const at::ScalarType real = real_type(input);
  return {new_tensor(input, input.sym_sizes(), input.scalar_type()), new_tensor(input, rows, real),
          new_tensor(input, rows, real)};
}

Triple layer_norm_device(const Tensor& input, SymIntArrayRef shape, const OptionalTensor& weight,
                         const OptionalTensor& bias, double eps) {
  const Tensor scale = tensor_of(weight), shift = tensor_of(bias);
  auto outputs = layer_norm_outputs(input, shape, scale, shift);
  const auto& [y, mean, rstd] = outputs;
  call_device<LayerNorm>(input, C10_AS_INTARRAYREF_SLOW(shape), scale, shift, eps, Written{y},
                         Written{mean}, Written{rstd});
  return outputs;
}

Triple layer_norm_meta(const Tensor& input, SymIntArrayRef shape, const OptionalTensor& weight,
                       const OptionalTensor& bias, double) {
  return layer_norm_outputs(input, shape, tensor_of(weight), tensor_of(bias));
}

// The gradients that the mask selects; the others are undefined. The weights' gradients have the
// weight's dtype, or the compute dtype.
Triple layer_norm_backward_outputs(const Tensor& grad_out, const Tensor& input,
                                   SymIntArrayRef shape, const Tensor& mean, const Tensor& rstd,
                                   const Tensor& weight, const Tensor& bias, Mask mask) {
  constexpr const char* kApi = LayerNormBackward::kStage1;
  const Named gradient{"gradOut", grad_out}, value{"input", input};
  check_tensors(kApi, {gradient,
                       value,
                       {"mean", mean},
                       {"rstd", rstd},
                       {"weight", weight, true},
                       {"bias", bias, true}});
  check_same(kApi, gradient, value);
  check_normalized(kApi, input, shape, weight, bias);
  const auto of_weight = [&](const Tensor& tensor) {
    return new_tensor(input, shape, tensor.defined() ? tensor.scalar_type() : real_type(input));
  };
  return {mask[0] ? new_tensor(input, input.sym_sizes(), input.scalar_type()) : Tensor(),
          mask[1] ? of_weight(weight) : Tensor(),
          mask[2] ? of_weight(bias.defined() ? bias : weight) : Tensor()};
}

Triple layer_norm_backward_device(const Tensor& grad_out, const Tensor& input, SymIntArrayRef shape,
                                  const Tensor& mean, const Tensor& rstd,
                                  const OptionalTensor& weight, const OptionalTensor& bias,
                                  Mask mask) {
  const Tensor scale = tensor_of(weight), shift = tensor_of(bias);
  auto outputs =
      layer_norm_backward_outputs(grad_out, input, shape, mean, rstd, scale, shift, mask);
  const auto& [dx, dgamma, dbeta] = outputs;
  call_device<LayerNormBackward>(grad_out, input, C10_AS_INTARRAYREF_SLOW(shape), mean, rstd, scale,
                                 shift, mask, Written{dx}, Written{dgamma}, Written{dbeta});
  return outputs;
}

Triple layer_norm_backward_meta(const Tensor& grad_out, const Tensor& input, SymIntArrayRef shape,
                                const Tensor& mean, const Tensor& rstd,
                                const OptionalTensor& weight, const OptionalTensor& bias,
                                Mask mask) {
  return layer_norm_backward_outputs(grad_out, input, shape, mean, rstd, tensor_of(weight),
                                     tensor_of(bias), mask);
}

// The operators' computation in ATen operations, for tangents and higher derivatives.

c10::SymInt elements_of(SymIntArrayRef shape) {
  c10::SymInt count = 1;
  for (const c10::SymInt& size : shape) count *= size;
  return count;
}

Rows rows_of(const Tensor& input, const Tensor& rstd, SymIntArrayRef shape) {
  return {input, rstd.sym_numel(), elements_of(shape)};
}

// gamma as a row; 1 if it is absent.
Tensor scale_of(const Rows& rows, const Tensor& weight, const Tensor& like) {
  return weight.defined() ? rows.row(weight) : at::ones({1, 1}, rows.matrix(like).options());
}

Triple composed_layer_norm(const Tensor& input, SymIntArrayRef shape, const Tensor& weight,
                           const Tensor& bias, double eps, const Triple& outputs) {
  const auto& [y, mean, rstd] = outputs;
  const Rows rows = rows_of(input, rstd, shape);
  const Tensor x = rows.matrix(input);
  const Tensor m = rows.mean(x);
  const Tensor centered = x - m;
  const Tensor r = at::rsqrt(rows.mean(centered * centered) + eps);
  Tensor value = centered * r * scale_of(rows, weight, input);
  if (bias.defined()) value = value + rows.row(bias);
  return {restored(value, y), restored(m, mean), restored(r, rstd)};
}

Triple composed_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                    SymIntArrayRef shape, const Tensor& mean, const Tensor& rstd,
                                    const Tensor& weight, const Triple& outputs) {
  const auto& [dx, dgamma, dbeta] = outputs;
  const Rows rows = rows_of(input, rstd, shape);
  const Tensor d = rows.matrix(grad_out);
  const Tensor r = rows.column(rstd);
  const Tensor xhat = (rows.matrix(input) - rows.column(mean)) * r;
  const Tensor a = d * scale_of(rows, weight, input);
  const auto like = [](const Tensor& values, const Tensor& output) {
    return output.defined() ? restored(values, output) : Tensor();
  };
  return {like((a - rows.mean(a) - xhat * rows.mean(a * xhat)) * r, dx),
          like((d * xhat).sum(0), dgamma), like(d.sum(0), dbeta)};
}

// Sets the outputs' tangents to those of the composition.
void set_tangents(const Triple& outputs, const Triple& composed) {
  const auto set = [](const Tensor& output, const Tensor& value) {
    if (output.defined()) set_tangent(output, tangent_of(value));
  };
  set(std::get<0>(outputs), std::get<0>(composed));
  set(std::get<1>(outputs), std::get<1>(composed));
  set(std::get<2>(outputs), std::get<2>(composed));
}

// Saves input, weight, bias, mean and rstd.
struct LayerNormFormula {
  static constexpr const char* kName = "AclnnLayerNormBackward0";
  using Attributes = std::tuple<std::vector<c10::SymInt>>;  // normalized_shape

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const Tensor &input = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor &mean = saved[3], &rstd = saved[4];
    const auto& [shape] = attributes;
    variable_list result(3);
    if (grads[0].defined()) {
      std::tie(result[0], result[1], result[2]) =
          layer_norm_backward_op().call(grads[0], input, shape, mean, rstd, optional_of(weight),
                                        optional_of(bias), {needed[0], needed[1], needed[2]});
    }
    if (!needed[0] || !(grads[1].defined() || grads[2].defined())) return result;
    // d mean / dx = 1 / D, d rstd / dx = -rstd^2 xhat / D
    const at::Scalar columns(elements_of(shape));
    Tensor of_input;
    if (grads[1].defined()) of_input = (grads[1] / columns).expand_symint(input.sym_sizes());
    if (grads[2].defined()) {
      const Tensor centered = input.to(rstd.scalar_type()) - mean;
      const Tensor factor = grads[2] * rstd * rstd * rstd / columns;
      of_input = sum_of_defined(of_input, -factor * centered);
    }
    result[0] = sum_of_defined(result[0], of_input.to(input.scalar_type()));
    return result;
  }
};

// Saves grad_out, input, mean, rstd and weight. With xhat = (x - m) r, a = dy * gamma, A = mean of
// a and B = mean of a xhat:
//   dx = r (a - A - xhat B),  dgamma = sum over the rows of dy * xhat,  dbeta = that of dy
struct LayerNormBackwardFormula {
  static constexpr const char* kName = "AclnnLayerNormBackwardBackward0";
  using Attributes = LayerNormFormula::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const Rows rows = rows_of(saved[1], saved[3], std::get<0>(attributes));
    const Tensor dy = rows.matrix(saved[0]);
    const Tensor r = rows.column(saved[3]);
    const Tensor centered = rows.matrix(saved[1]) - rows.column(saved[2]);
    const Tensor xhat = centered * r;
    const Tensor gamma = scale_of(rows, saved[4], saved[1]);
    Tensor of_dy, of_xhat, of_r, of_gamma;
    if (grads[0].defined()) {
      const Tensor g = rows.matrix(grads[0]);
      const Tensor a = dy * gamma;
      const Tensor mean_a = rows.mean(a), mean_b = rows.mean(a * xhat);
      const Tensor share = rows.mean(g * xhat);
      const Tensor of_a = r * (g - rows.mean(g) - xhat * share);
      of_dy = gamma * of_a;
      of_gamma = (dy * of_a).sum(0);
      of_xhat = -r * (g * mean_b + share * a);
      of_r = rows.sum(g * (a - mean_a - xhat * mean_b));
    }
    if (grads[1].defined()) {
      const Tensor g = rows.row(grads[1]);
      of_dy = sum_of_defined(of_dy, g * xhat);
      of_xhat = sum_of_defined(of_xhat, g * dy);
    }
    if (grads[2].defined()) {
      of_dy = sum_of_defined(of_dy, rows.row(grads[2]).expand_symint(dy.sym_sizes()));
    }
    variable_list result{of_dy, Tensor(), Tensor(), of_r, of_gamma};
    if (of_xhat.defined()) {
      result[1] = of_xhat * r;
      result[2] = -rows.sum(result[1]);
      result[3] = sum_of_defined(of_r, rows.sum(of_xhat * centered));
    }
    for (size_t i = 0; i < result.size(); ++i) {
      if (!needed[i]) {
        result[i] = Tensor();
      } else if (result[i].defined()) {
        result[i] = restored(result[i], saved[i]);
      }
    }
    return result;
  }
};

std::vector<c10::SymInt> sizes_of(SymIntArrayRef shape) {
  return shape.vec();
}

Triple layer_norm_autograd(c10::DispatchKeySet keys, const Tensor& input, SymIntArrayRef shape,
                           const OptionalTensor& weight, const OptionalTensor& bias, double eps) {
  const Tensor scale = tensor_of(weight), shift = tensor_of(bias);
  const auto node = make_node<LayerNormFormula>({sizes_of(shape)}, input, scale, shift);
  Triple outputs = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return layer_norm_op().redispatch(keys & c10::after_autograd_keyset, input, shape, weight, bias,
                                      eps);
  }();
  const auto& [y, mean, rstd] = outputs;
  if (node) {
    for (const Tensor* output : {&y, &mean, &rstd}) {
      torch::autograd::set_history(*output, node);
    }
  }
  if (tangent_of(input).defined() || tangent_of(scale).defined() || tangent_of(shift).defined()) {
    set_tangents(outputs, composed_layer_norm(input, shape, scale, shift, eps, outputs));
  }
  if (node) {
    for (const Tensor* saved : {&input, &scale, &shift}) node->save(*saved, /*is_output=*/false);
    node->save(mean, /*is_output=*/true);  // with its tangent
    node->save(rstd, /*is_output=*/true);
  }
  return outputs;
}

Triple layer_norm_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_out,
                                    const Tensor& input, SymIntArrayRef shape, const Tensor& mean,
                                    const Tensor& rstd, const OptionalTensor& weight,
                                    const OptionalTensor& bias, Mask mask) {
  const Tensor scale = tensor_of(weight);
  const auto node =
      make_node<LayerNormBackwardFormula>({sizes_of(shape)}, grad_out, input, mean, rstd, scale);
  Triple outputs = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return layer_norm_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_out, input,
                                               shape, mean, rstd, weight, bias, mask);
  }();
  bool has_tangent = false;
  for (const Tensor* saved : {&grad_out, &input, &mean, &rstd, &scale}) {
    if (node) node->save(*saved, /*is_output=*/false);
    has_tangent = has_tangent || tangent_of(*saved).defined();
  }
  if (node) {
    std::apply([&](const auto&... output) { (torch::autograd::set_history(output, node), ...); },
               outputs);
  }
  if (has_tangent) {
    set_tangents(outputs,
                 composed_layer_norm_backward(grad_out, input, shape, mean, rstd, scale, outputs));
  }
  return outputs;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def(
      "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float "
      "eps) -> (Tensor, Tensor, Tensor)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
      "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, "
      "Tensor)",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("layer_norm", &layer_norm_device);
  m.impl("layer_norm_backward", &layer_norm_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("layer_norm", &layer_norm_meta);
  m.impl("layer_norm_backward", &layer_norm_backward_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("layer_norm", &layer_norm_autograd);
  m.impl("layer_norm_backward", &layer_norm_backward_autograd);
}

}  // namespace aclnn_torch::layer_norm_ops
