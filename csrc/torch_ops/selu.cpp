// torch.ops.aclnn.selu, selu_, selu_backward over aclnnSelu, aclnnInplaceSelu and
// aclnnSeluBackward. The backward works from the result alone.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/lt.h>
#include <torch/library.h>

#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_selu_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/inplace.h"

namespace aclnn_torch::selu_ops {
namespace {

ACLNN_DECLARE(Selu);
ACLNN_DECLARE(InplaceSelu);
ACLNN_DECLARE(SeluBackward);

const auto& selu_op() {
  static const auto op = find_operator<Tensor(const Tensor&)>("aclnn::selu");
  return op;
}

const auto& selu_inplace_op() {
  static const auto op = find_operator<Tensor&(Tensor&)>("aclnn::selu_");
  return op;
}

const auto& selu_backward_op() {
  static const auto op =
      find_operator<Tensor(const Tensor&, const Tensor&)>("aclnn::selu_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor selu_output(const Tensor& self) {
  check_tensors(Selu::kStage1, {{"self", self}});
  return empty_output(self, self);
}

Tensor selu_device(const Tensor& self) {
  Tensor out = selu_output(self);
  call_device<Selu>(self, Written{out});
  return out;
}

void check_selu_inplace(const Tensor& self) {
  check_tensors(InplaceSelu::kStage1, {{"selfRef", self}});
  check_overwritable(InplaceSelu::kStage1, {"selfRef", self});
}

Tensor& selu_inplace_device(Tensor& self) {
  check_selu_inplace(self);
  call_device<InplaceSelu>(Written{self});
  return self;
}

Tensor& selu_inplace_meta(Tensor& self) {
  check_selu_inplace(self);
  return self;
}

Tensor selu_backward_output(const Tensor& grad_output, const Tensor& result) {
  const Named gradient{"gradOutput", grad_output};
  const Named value{"result", result};
  check_tensors(SeluBackward::kStage1, {gradient, value});
  check_same(SeluBackward::kStage1, value, gradient);
  return empty_output(grad_output, result);
}

Tensor selu_backward_device(const Tensor& grad_output, const Tensor& result) {
  Tensor grad_input = selu_backward_output(grad_output, result);
  call_device<SeluBackward>(grad_output, result, Written{grad_input});
  return grad_input;
}

// The derivative of selu_backward with respect to result, times `tangent`: 1 on the negative
// branch, without 0 as in ATen.
Tensor selu_double_backward(const Tensor& tangent, const Tensor& grad_output,
                            const Tensor& result) {
  return tangent * grad_output * at::lt(result, 0).to(tangent.scalar_type());
}

// Saves the result.
struct SeluFormula {
  static constexpr const char* kName = "AclnnSeluBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes&) {
    return {selu_backward_op().call(grads[0], saved[0])};
  }
};

// Saves grad_output and result.
struct SeluBackwardFormula {
  static constexpr const char* kName = "AclnnSeluBackwardBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes&) {
    variable_list result(2);
    if (needed[0]) result[0] = selu_backward_op().call(grads[0], saved[1]);
    if (needed[1]) result[1] = selu_double_backward(grads[0], saved[0], saved[1]);
    return result;
  }
};

Tensor selu_autograd(c10::DispatchKeySet keys, const Tensor& self) {
  const auto node = make_node<SeluFormula>({}, self);
  Tensor out = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return selu_op().redispatch(keys & c10::after_autograd_keyset, self);
  }();
  if (node) torch::autograd::set_history(out, node);
  if (const Tensor tangent = tangent_of(self); tangent.defined()) {
    set_tangent(out, selu_backward_op().call(tangent, primal_of(out)));
  }
  if (node) node->save(out, /*is_output=*/true);  // with its tangent
  return out;
}

Tensor& selu_inplace_autograd(c10::DispatchKeySet keys, Tensor& self) {
  torch::autograd::check_inplace(self, torch::autograd::compute_requires_grad(self));
  const auto node = make_node<SeluFormula>({}, self);
  Tensor tangent = tangent_of(self);
  {
    const at::AutoDispatchBelowAutograd guard;
    selu_inplace_op().redispatch(keys & c10::after_autograd_keyset, self);
  }
  if (node) torch::autograd::rebase_history(self, node);
  if (tangent.defined()) {
    tangent.copy_(selu_backward_op().call(tangent, primal_of(self)));
  }
  if (node) node->save(self, /*is_output=*/true, self.is_view());  // with its tangent
  return self;
}

Tensor& selu_inplace_overwrite(c10::DispatchKeySet keys, Tensor& self) {
  return overwrite(
      self, [&] { selu_inplace_op().redispatch(keys & c10::after_ADInplaceOrView_keyset, self); });
}

Tensor selu_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                              const Tensor& result) {
  const auto run = [&] {
    return selu_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, result);
  };
  return differentiate_elementwise<SeluBackwardFormula>({}, run, grad_output, result);
}

// Compilers see selu_ as selu and a replacement of self.
Tensor& selu_inplace_functionalize(Tensor& self) {
  return replace_by_functional(self, [](const Tensor& value) { return selu_op().call(value); });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("selu(Tensor self) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("selu_(Tensor(a!) self) -> Tensor(a!)", {at::Tag::pt2_compliant_tag});
  m.def("selu_backward(Tensor grad_output, Tensor result) -> Tensor", {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("selu", &selu_device);
  m.impl("selu_", &selu_inplace_device);
  m.impl("selu_backward", &selu_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("selu", &selu_output);
  m.impl("selu_", &selu_inplace_meta);
  m.impl("selu_backward", &selu_backward_output);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("selu", &selu_autograd);
  m.impl("selu_", &selu_inplace_autograd);
  m.impl("selu_backward", &selu_backward_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, ADInplaceOrView, m) {
  m.impl("selu_", &selu_inplace_overwrite);
}

TORCH_LIBRARY_IMPL(aclnn, Functionalize, m) {
  m.impl("selu_", &selu_inplace_functionalize);
}

}  // namespace aclnn_torch::selu_ops
