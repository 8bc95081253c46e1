// torch.ops.aclnn.hardswish, hardswish_, hardswish_backward: ATen's schemas over aclnnHardswish,
// aclnnInplaceHardswish and aclnnHardswishBackwardV2, which at -3 and 3 does as ATen.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/lt.h>
#include <torch/library.h>

#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_hardswish_backward_v2.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/inplace.h"

namespace aclnn_torch::hardswish_ops {
namespace {

ACLNN_DECLARE(Hardswish);
ACLNN_DECLARE(InplaceHardswish);
ACLNN_DECLARE(HardswishBackwardV2);

const auto& hardswish_op() {
  static const auto op = find_operator<Tensor(const Tensor&)>("aclnn::hardswish");
  return op;
}

const auto& hardswish_inplace_op() {
  static const auto op = find_operator<Tensor&(Tensor&)>("aclnn::hardswish_");
  return op;
}

const auto& hardswish_backward_op() {
  static const auto op =
      find_operator<Tensor(const Tensor&, const Tensor&)>("aclnn::hardswish_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor hardswish_output(const Tensor& self) {
  check_tensors(Hardswish::kStage1, {{"self", self}});
  return empty_output(self, self);
}

Tensor hardswish_device(const Tensor& self) {
  Tensor out = hardswish_output(self);
  call_device<Hardswish>(self, Written{out});
  return out;
}

Tensor& hardswish_inplace_meta(Tensor& self) {
  check_tensors(InplaceHardswish::kStage1, {{"self", self}});
  check_overwritable(InplaceHardswish::kStage1, {"self", self});
  return self;
}

Tensor& hardswish_inplace_device(Tensor& self) {
  hardswish_inplace_meta(self);
  call_device<InplaceHardswish>(Written{self});
  return self;
}

Tensor hardswish_backward_output(const Tensor& grad_output, const Tensor& self) {
  const Named gradient{"gradOutput", grad_output};
  const Named value{"self", self};
  check_tensors(HardswishBackwardV2::kStage1, {gradient, value});
  check_same(HardswishBackwardV2::kStage1, value, gradient);
  return empty_output(grad_output, self);
}

Tensor hardswish_backward_device(const Tensor& grad_output, const Tensor& self) {
  Tensor grad_input = hardswish_backward_output(grad_output, self);
  call_device<HardswishBackwardV2>(grad_output, self, Written{grad_input});
  return grad_input;
}

// Saves self.
struct HardswishFormula {
  static constexpr const char* kName = "AclnnHardswishBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes&) {
    return {hardswish_backward_op().call(grads[0], saved[0])};
  }
};

// Saves grad_output and self. The second derivative of hardswish is 1/3 between -3 and 3, else 0.
struct HardswishBackwardFormula {
  static constexpr const char* kName = "AclnnHardswishBackwardBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes&) {
    variable_list result(2);
    if (needed[0]) result[0] = hardswish_backward_op().call(grads[0], saved[1]);
    if (needed[1]) {
      const Tensor between = at::lt(saved[1].abs(), 3).to(grads[0].scalar_type());
      result[1] = grads[0] * saved[0] * between / 3;
    }
    return result;
  }
};

Tensor hardswish_autograd(c10::DispatchKeySet keys, const Tensor& self) {
  const auto run = [&] {
    return hardswish_op().redispatch(keys & c10::after_autograd_keyset, self);
  };
  return differentiate_elementwise<HardswishFormula>({}, run, self);
}

// Saves a copy of the input, which the result does not tell: from -3 to 0 two inputs have one.
Tensor& hardswish_inplace_autograd(c10::DispatchKeySet keys, Tensor& self) {
  torch::autograd::check_inplace(self, torch::autograd::compute_requires_grad(self));
  const auto node = make_node<HardswishFormula>({}, self);
  if (node) node->save(self.clone(), /*is_output=*/false);  // with its tangent
  const Tensor tangent = tangent_of(self);
  const Tensor new_tangent =
      tangent.defined() ? hardswish_backward_op().call(tangent, primal_of(self)) : Tensor();
  {
    const at::AutoDispatchBelowAutograd guard;
    hardswish_inplace_op().redispatch(keys & c10::after_autograd_keyset, self);
  }
  if (node) torch::autograd::rebase_history(self, node);
  if (tangent.defined()) tangent.copy_(new_tangent);
  return self;
}

Tensor& hardswish_inplace_overwrite(c10::DispatchKeySet keys, Tensor& self) {
  return overwrite(self, [&] {
    hardswish_inplace_op().redispatch(keys & c10::after_ADInplaceOrView_keyset, self);
  });
}

Tensor hardswish_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                                   const Tensor& self) {
  const auto run = [&] {
    return hardswish_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, self);
  };
  return differentiate_elementwise<HardswishBackwardFormula>({}, run, grad_output, self);
}

// Compilers see hardswish_ as hardswish and a replacement of self.
Tensor& hardswish_inplace_functionalize(Tensor& self) {
  return replace_by_functional(self,
                               [](const Tensor& value) { return hardswish_op().call(value); });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("hardswish(Tensor self) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("hardswish_(Tensor(a!) self) -> Tensor(a!)", {at::Tag::pt2_compliant_tag});
  m.def("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("hardswish", &hardswish_device);
  m.impl("hardswish_", &hardswish_inplace_device);
  m.impl("hardswish_backward", &hardswish_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("hardswish", &hardswish_output);
  m.impl("hardswish_", &hardswish_inplace_meta);
  m.impl("hardswish_backward", &hardswish_backward_output);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("hardswish", &hardswish_autograd);
  m.impl("hardswish_", &hardswish_inplace_autograd);
  m.impl("hardswish_backward", &hardswish_backward_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, ADInplaceOrView, m) {
  m.impl("hardswish_", &hardswish_inplace_overwrite);
}

TORCH_LIBRARY_IMPL(aclnn, Functionalize, m) {
  m.impl("hardswish_", &hardswish_inplace_functionalize);
}

}  // namespace aclnn_torch::hardswish_ops
