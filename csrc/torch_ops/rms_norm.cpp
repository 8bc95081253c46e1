// torch.ops.aclnn.rms_norm, rms_norm_grad over aclnnRmsNorm and aclnnRmsNormGrad.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/rsqrt.h>
#include <torch/library.h>

#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/normalization.h"

namespace aclnn_torch::rms_norm_ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

ACLNN_DECLARE(RmsNorm);
ACLNN_DECLARE(RmsNormGrad);

// The operators as the dispatcher knows them.

using RmsNormSignature = Pair(const Tensor&, const Tensor&, double);
using RmsNormGradSignature = Pair(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

const auto& rms_norm_op() {
  static const auto op = find_operator<RmsNormSignature>("aclnn::rms_norm");
  return op;
}

const auto& rms_norm_grad_op() {
  static const auto op = find_operator<RmsNormGradSignature>("aclnn::rms_norm_grad");
  return op;
}

void check_gamma(const char* api, const Tensor& x, const Tensor& gamma) {
  for (const auto& [name, tensor, _] : {Named{"x", x}, Named{"gamma", gamma}}) {
    if (tensor.dim() >= 1 && tensor.dim() <= 8) continue;
    refuse(api, x.device(),
           c10::str(name, " has ", tensor.dim(), " dimensions, expected 1 to 8; reshape it"),
           ACLNN_ERR_INNER_TILING_ERROR);
  }
  const auto sizes = x.sym_sizes();
  const auto rank = std::min<size_t>(gamma.dim(), sizes.size());
  check_shape(api, {"gamma", gamma}, sizes.slice(sizes.size() - rank),
              "the last dimensions of x; shapes are not broadcast, expand first",
              ACLNN_ERR_INNER_TILING_ERROR);
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

// y and rstd; rstd has one value per row.
Pair rms_norm_outputs(const Tensor& x, const Tensor& gamma) {
  check_tensors(RmsNorm::kStage1, {{"x", x}, {"gamma", gamma}});
  check_gamma(RmsNorm::kStage1, x, gamma);
  c10::SymDimVector rows(x.sym_sizes().begin(), x.sym_sizes().end());
  std::fill(rows.end() - gamma.dim(), rows.end(), 1);
  return {new_tensor(x, x.sym_sizes(), x.scalar_type()), new_tensor(x, rows, real_type(x))};
}

Pair rms_norm_device(const Tensor& x, const Tensor& gamma, double epsilon) {
  auto outputs = rms_norm_outputs(x, gamma);
  const auto& [y, rstd] = outputs;
  call_device<RmsNorm>(x, gamma, epsilon, Written{y}, Written{rstd});
  return outputs;
}

Pair rms_norm_meta(const Tensor& x, const Tensor& gamma, double) {
  return rms_norm_outputs(x, gamma);
}

// dx and dgamma.
Pair rms_norm_grad_outputs(const Tensor& dy, const Tensor& x, const Tensor& rstd,
                           const Tensor& gamma) {
  constexpr const char* kApi = RmsNormGrad::kStage1;
  check_tensors(kApi, {{"dy", dy}, {"x", x}, {"rstd", rstd}, {"gamma", gamma}});
  check_shape(kApi, {"dy", dy}, x.sym_sizes(), "as x has; shapes are not broadcast, expand first",
              ACLNN_ERR_INNER_TILING_ERROR);
  check_gamma(kApi, x, gamma);
  return {new_tensor(x, x.sym_sizes(), x.scalar_type()),
          new_tensor(x, gamma.sym_sizes(), real_type(x))};
}

Pair rms_norm_grad_device(const Tensor& dy, const Tensor& x, const Tensor& rstd,
                          const Tensor& gamma) {
  auto outputs = rms_norm_grad_outputs(dy, x, rstd, gamma);
  const auto& [dx, dgamma] = outputs;
  call_device<RmsNormGrad>(dy, x, rstd, gamma, Written{dx}, Written{dgamma});
  return outputs;
}

Pair composed_rms_norm(const Tensor& x, const Tensor& gamma, double epsilon, const Pair& outputs) {
  const auto& [y, rstd] = outputs;
  const Rows rows(x, rstd.sym_numel(), gamma.sym_numel());
  const Tensor values = rows.matrix(x);
  const Tensor r = at::rsqrt(rows.mean(values * values) + epsilon);
  return {restored(values * r * rows.row(gamma), y), restored(r, rstd)};
}

Pair composed_rms_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& rstd,
                            const Tensor& gamma, const Pair& outputs) {
  const auto& [dx, dgamma] = outputs;
  const Rows rows(x, rstd.sym_numel(), gamma.sym_numel());
  const Tensor d = rows.matrix(dy);
  const Tensor r = rows.column(rstd);
  const Tensor xhat = rows.matrix(x) * r;
  const Tensor a = d * rows.row(gamma);
  return {restored((a - xhat * rows.mean(a * xhat)) * r, dx), restored((d * xhat).sum(0), dgamma)};
}

// Sets the outputs' tangents to those of the composition.
void set_tangents(const Pair& outputs, const Pair& composed) {
  set_tangent(std::get<0>(outputs), tangent_of(std::get<0>(composed)));
  set_tangent(std::get<1>(outputs), tangent_of(std::get<1>(composed)));
}

// Saves x, gamma and rstd.
struct RmsNormFormula {
  static constexpr const char* kName = "AclnnRmsNormBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes&) {
    const Tensor &x = saved[0], &gamma = saved[1], &rstd = saved[2];
    variable_list result(2);
    if (grads[0].defined()) {
      const auto [dx, dgamma] = rms_norm_grad_op().call(grads[0], x, rstd, gamma);
      if (needed[0]) result[0] = dx;
      if (needed[1]) result[1] = dgamma.to(gamma.scalar_type());
    }
    if (grads[1].defined() && needed[0]) {
      // d rstd / dx = -rstd^3 x / D
      const Tensor factor = grads[1] * rstd * rstd * rstd / at::Scalar(gamma.sym_numel());
      result[0] =
          sum_of_defined(result[0], (-factor * x.to(rstd.scalar_type())).to(x.scalar_type()));
    }
    return result;
  }
};

// Saves dy, x, rstd and gamma. With a = dy * gamma, c = mean over D of a * x and r = rstd:
//   dx = r a - r^3 c x,  dgamma = sum over the rows of dy * x * r
struct RmsNormGradFormula {
  static constexpr const char* kName = "AclnnRmsNormGradBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes&) {
    const Rows rows(saved[1], saved[2].sym_numel(), saved[3].sym_numel());
    const Tensor dy = rows.matrix(saved[0]);
    const Tensor x = rows.matrix(saved[1]);
    const Tensor r = rows.column(saved[2]);
    const Tensor gamma = rows.row(saved[3]);
    Tensor of_dy, of_x, of_r, of_gamma;
    if (grads[0].defined()) {
      const Tensor g = rows.matrix(grads[0]);
      const Tensor a = dy * gamma;
      const Tensor c = rows.mean(a * x);
      const Tensor s = rows.mean(g * x);
      const Tensor cube = r * r * r;
      const Tensor of_a = r * g - cube * s * x;
      of_dy = gamma * of_a;
      of_x = -cube * (s * a + c * g);
      of_r = rows.sum(g * a - 3 * r * r * c * g * x);
      of_gamma = (dy * of_a).sum(0);
    }
    if (grads[1].defined()) {
      const Tensor g = rows.row(grads[1]);
      of_dy = sum_of_defined(of_dy, g * x * r);
      of_x = sum_of_defined(of_x, g * dy * r);
      of_r = sum_of_defined(of_r, rows.sum(g * dy * x));
    }
    variable_list result{of_dy, of_x, of_r, of_gamma};
    for (size_t i = 0; i < result.size(); ++i) {
      if (result[i].defined()) result[i] = restored(result[i], saved[i]);
    }
    return result;
  }
};

Pair rms_norm_autograd(c10::DispatchKeySet keys, const Tensor& x, const Tensor& gamma,
                       double epsilon) {
  const auto node = make_node<RmsNormFormula>({}, x, gamma);
  Pair outputs = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return rms_norm_op().redispatch(keys & c10::after_autograd_keyset, x, gamma, epsilon);
  }();
  const auto& [y, rstd] = outputs;
  if (node) {
    torch::autograd::set_history(y, node);
    torch::autograd::set_history(rstd, node);
  }
  if (tangent_of(x).defined() || tangent_of(gamma).defined()) {
    set_tangents(outputs, composed_rms_norm(x, gamma, epsilon, outputs));
  }
  if (node) {
    node->save(x, /*is_output=*/false);
    node->save(gamma, /*is_output=*/false);
    node->save(rstd, /*is_output=*/true);  // with its tangent
  }
  return outputs;
}

Pair rms_norm_grad_autograd(c10::DispatchKeySet keys, const Tensor& dy, const Tensor& x,
                            const Tensor& rstd, const Tensor& gamma) {
  const auto node = make_node<RmsNormGradFormula>({}, dy, x, rstd, gamma);
  Pair outputs = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return rms_norm_grad_op().redispatch(keys & c10::after_autograd_keyset, dy, x, rstd, gamma);
  }();
  bool has_tangent = false;
  for (const Tensor* input : {&dy, &x, &rstd, &gamma}) {
    if (node) node->save(*input, /*is_output=*/false);
    has_tangent = has_tangent || tangent_of(*input).defined();
  }
  if (node) {
    torch::autograd::set_history(std::get<0>(outputs), node);
    torch::autograd::set_history(std::get<1>(outputs), node);
  }
  if (has_tangent) {
    set_tangents(outputs, composed_rms_norm_grad(dy, x, rstd, gamma, outputs));
  }
  return outputs;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("rms_norm(Tensor x, Tensor gamma, float epsilon=1e-6) -> (Tensor y, Tensor rstd)",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "rms_norm_grad(Tensor dy, Tensor x, Tensor rstd, Tensor gamma) -> (Tensor dx, Tensor dgamma)",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("rms_norm", &rms_norm_device);
  m.impl("rms_norm_grad", &rms_norm_grad_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("rms_norm", &rms_norm_meta);
  m.impl("rms_norm_grad", &rms_norm_grad_outputs);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("rms_norm", &rms_norm_autograd);
  m.impl("rms_norm_grad", &rms_norm_grad_autograd);
}

}  // namespace aclnn_torch::rms_norm_ops
