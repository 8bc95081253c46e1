// torch.ops.aclnn.silu, silu_backward: ATen's schemas over aclnnSilu and aclnnSiluBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <torch/library.h>

#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_silu_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch::silu_ops {
namespace {

ACLNN_DECLARE(Silu);
ACLNN_DECLARE(SiluBackward);

const auto& silu_op() {
  static const auto op = find_operator<Tensor(const Tensor&)>("aclnn::silu");
  return op;
}

const auto& silu_backward_op() {
  static const auto op =
      find_operator<Tensor(const Tensor&, const Tensor&)>("aclnn::silu_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor silu_output(const Tensor& self) {
  check_tensors(Silu::kStage1, {{"self", self}});
  return empty_output(self, self);
}

Tensor silu_device(const Tensor& self) {
  Tensor out = silu_output(self);
  call_device<Silu>(self, Written{out});
  return out;
}

Tensor silu_backward_output(const Tensor& grad_output, const Tensor& self) {
  const Named gradient{"gradOutput", grad_output};
  const Named value{"self", self};
  check_tensors(SiluBackward::kStage1, {gradient, value});
  check_same(SiluBackward::kStage1, value, gradient);
  return empty_output(grad_output, self);
}

Tensor silu_backward_device(const Tensor& grad_output, const Tensor& self) {
  Tensor grad_input = silu_backward_output(grad_output, self);
  call_device<SiluBackward>(grad_output, self, Written{grad_input});
  return grad_input;
}

// The second derivative of silu: s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x).
Tensor silu_second(const Tensor& x) {
  const Tensor s = at::sigmoid(x);
  const Tensor rest = at::sigmoid(-x);
  return s * rest * (x * (rest - s) + 2);
}

// Saves self.
struct SiluFormula {
  static constexpr const char* kName = "AclnnSiluBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes&) {
    return {silu_backward_op().call(grads[0], saved[0])};
  }
};

// Saves grad_output and self.
struct SiluBackwardFormula {
  static constexpr const char* kName = "AclnnSiluBackwardBackward0";
  using Attributes = std::tuple<>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes&) {
    variable_list result(2);
    if (needed[0]) result[0] = silu_backward_op().call(grads[0], saved[1]);
    if (needed[1]) result[1] = grads[0] * saved[0] * silu_second(saved[1]);
    return result;
  }
};

Tensor silu_autograd(c10::DispatchKeySet keys, const Tensor& self) {
  const auto run = [&] { return silu_op().redispatch(keys & c10::after_autograd_keyset, self); };
  return differentiate_elementwise<SiluFormula>({}, run, self);
}

Tensor silu_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                              const Tensor& self) {
  const auto run = [&] {
    return silu_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, self);
  };
  return differentiate_elementwise<SiluBackwardFormula>({}, run, grad_output, self);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("silu(Tensor self) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("silu_backward(Tensor grad_output, Tensor self) -> Tensor", {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("silu", &silu_device);
  m.impl("silu_backward", &silu_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("silu", &silu_output);
  m.impl("silu_backward", &silu_backward_output);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("silu", &silu_autograd);
  m.impl("silu_backward", &silu_backward_autograd);
}

}  // namespace aclnn_torch::silu_ops
