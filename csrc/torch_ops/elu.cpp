// torch.ops.aclnn.elu, elu_, elu_backward: ATen's schemas over aclnnElu, aclnnInplaceElu and
// aclnnEluBackward.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/lt.h>
#include <torch/library.h>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/inplace.h"

namespace aclnn_torch::elu_ops {
namespace {

using at::Scalar;

ACLNN_DECLARE(Elu);
ACLNN_DECLARE(InplaceElu);
ACLNN_DECLARE(EluBackward);

// The operators as the dispatcher knows them.

using EluSignature = Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&);
using EluInplaceSignature = Tensor&(Tensor&, const Scalar&, const Scalar&, const Scalar&);
using EluBackwardSignature = Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&,
                                    bool, const Tensor&);

const auto& elu_op() {
  static const auto op = find_operator<EluSignature>("aclnn::elu");
  return op;
}

const auto& elu_inplace_op() {
  static const auto op = find_operator<EluInplaceSignature>("aclnn::elu_");
  return op;
}

const auto& elu_backward_op() {
  static const auto op = find_operator<EluBackwardSignature>("aclnn::elu_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor elu_output(const Tensor& self) {
  check_tensors(Elu::kStage1, {{"self", self}});
  return empty_output(self, self);
}

Tensor elu_device(const Tensor& self, const Scalar& alpha, const Scalar& scale,
                  const Scalar& input_scale) {
  Tensor out = elu_output(self);
  call_device<Elu>(self, alpha, scale, input_scale, Written{out});
  return out;
}

Tensor elu_meta(const Tensor& self, const Scalar&, const Scalar&, const Scalar&) {
  return elu_output(self);
}

void check_elu_inplace(const Tensor& self) {
  check_tensors(InplaceElu::kStage1, {{"selfRef", self}});
  check_overwritable(InplaceElu::kStage1, {"selfRef", self});
}

Tensor& elu_inplace_device(Tensor& self, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale) {
  check_elu_inplace(self);
  call_device<InplaceElu>(Written{self}, alpha, scale, input_scale);
  return self;
}

Tensor& elu_inplace_meta(Tensor& self, const Scalar&, const Scalar&, const Scalar&) {
  check_elu_inplace(self);
  return self;
}

Tensor elu_backward_output(const Tensor& grad_output, const Tensor& self_or_result) {
  const Named gradient{"gradOutput", grad_output};
  const Named value{"selfOrResult", self_or_result};
  check_tensors(EluBackward::kStage1, {gradient, value});
  check_same(EluBackward::kStage1, value, gradient);
  return empty_output(grad_output, self_or_result);
}

Tensor elu_backward_device(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale, bool is_result,
                           const Tensor& self_or_result) {
  Tensor grad_input = elu_backward_output(grad_output, self_or_result);
  call_device<EluBackward>(grad_output, alpha, scale, input_scale, is_result, self_or_result,
                           Written{grad_input});
  return grad_input;
}

Tensor elu_backward_meta(const Tensor& grad_output, const Scalar&, const Scalar&, const Scalar&,
                         bool, const Tensor& self_or_result) {
  return elu_backward_output(grad_output, self_or_result);
}

// The derivative of elu_backward with respect to self_or_result, times `tangent`. As in ATen, 0 has
// no second derivative.
Tensor elu_double_backward(const Tensor& tangent, const Tensor& grad_output, const Scalar& alpha,
                           const Scalar& scale, const Scalar& input_scale, bool is_result,
                           const Tensor& self_or_result) {
  const Tensor negative = at::lt(self_or_result, 0).to(tangent.scalar_type());
  const Tensor product = tangent * grad_output * input_scale;
  if (is_result) return product * negative;
  return elu_backward_op().call(product, alpha, scale, input_scale, false, self_or_result) *
         negative;
}

// Saves the input of elu, or the result of elu_.
struct EluFormula {
  static constexpr const char* kName = "AclnnEluBackward0";
  using Attributes = std::tuple<Scalar, Scalar, Scalar, bool>;  // ..., is_result

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes& attributes) {
    const auto& [alpha, scale, input_scale, is_result] = attributes;
    return {elu_backward_op().call(grads[0], alpha, scale, input_scale, is_result, saved[0])};
  }
};

// Saves grad_output and self_or_result.
struct EluBackwardFormula {
  static constexpr const char* kName = "AclnnEluBackwardBackward0";
  using Attributes = EluFormula::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const auto& [alpha, scale, input_scale, is_result] = attributes;
    variable_list result(2);
    if (needed[0]) {
      result[0] = elu_backward_op().call(grads[0], alpha, scale, input_scale, is_result, saved[1]);
    }
    if (needed[1]) {
      result[1] =
          elu_double_backward(grads[0], saved[0], alpha, scale, input_scale, is_result, saved[1]);
    }
    return result;
  }
};

Tensor elu_autograd(c10::DispatchKeySet keys, const Tensor& self, const Scalar& alpha,
                    const Scalar& scale, const Scalar& input_scale) {
  const auto run = [&] {
    return elu_op().redispatch(keys & c10::after_autograd_keyset, self, alpha, scale, input_scale);
  };
  return differentiate_elementwise<EluFormula>({alpha, scale, input_scale, false}, run, self);
}

// Like ATen, saves the result; a negative alpha then fails in the backward.
Tensor& elu_inplace_autograd(c10::DispatchKeySet keys, Tensor& self, const Scalar& alpha,
                             const Scalar& scale, const Scalar& input_scale) {
  torch::autograd::check_inplace(self, torch::autograd::compute_requires_grad(self));
  const auto node = make_node<EluFormula>({alpha, scale, input_scale, true}, self);
  const Tensor tangent = tangent_of(self);
  // Of the input, while it is still there: the result does not tell the branch of a negative alpha.
  const Tensor new_tangent =
      tangent.defined()
          ? elu_backward_op().call(tangent, alpha, scale, input_scale, false, primal_of(self))
          : Tensor();
  {
    const at::AutoDispatchBelowAutograd guard;
    elu_inplace_op().redispatch(keys & c10::after_autograd_keyset, self, alpha, scale, input_scale);
  }
  if (node) torch::autograd::rebase_history(self, node);
  if (tangent.defined()) tangent.copy_(new_tangent);
  if (node) node->save(self, /*is_output=*/true, self.is_view());  // with its tangent
  return self;
}

Tensor& elu_inplace_overwrite(c10::DispatchKeySet keys, Tensor& self, const Scalar& alpha,
                              const Scalar& scale, const Scalar& input_scale) {
  return overwrite(self, [&] {
    elu_inplace_op().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, alpha, scale,
                                input_scale);
  });
}

Tensor elu_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                             const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                             bool is_result, const Tensor& self_or_result) {
  const auto run = [&] {
    return elu_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, alpha,
                                        scale, input_scale, is_result, self_or_result);
  };
  return differentiate_elementwise<EluBackwardFormula>({alpha, scale, input_scale, is_result}, run,
                                                       grad_output, self_or_result);
}

// Compilers see elu_ as elu and a replacement of self.
Tensor& elu_inplace_functionalize(Tensor& self, const Scalar& alpha, const Scalar& scale,
                                  const Scalar& input_scale) {
  return replace_by_functional(
      self, [&](const Tensor& value) { return elu_op().call(value, alpha, scale, input_scale); });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        {at::Tag::pt2_compliant_tag});
  m.def("elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
      "is_result, Tensor self_or_result) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("elu", &elu_device);
  m.impl("elu_", &elu_inplace_device);
  m.impl("elu_backward", &elu_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("elu", &elu_meta);
  m.impl("elu_", &elu_inplace_meta);
  m.impl("elu_backward", &elu_backward_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("elu", &elu_autograd);
  m.impl("elu_", &elu_inplace_autograd);
  m.impl("elu_backward", &elu_backward_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, ADInplaceOrView, m) {
  m.impl("elu_", &elu_inplace_overwrite);
}

TORCH_LIBRARY_IMPL(aclnn, Functionalize, m) {
  m.impl("elu_", &elu_inplace_functionalize);
}

}  // namespace aclnn_torch::elu_ops
