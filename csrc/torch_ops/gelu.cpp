// torch.ops.aclnn.gelu, gelu_backward: ATen's schemas. aclnnGelu and aclnnGeluBackward are the
// formula that ATen calls "tanh"; that of "none" is in aclnnGeluV2 and aclnnGeluBackwardV2.

#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <torch/library.h>

#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_backward.h"
#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch::gelu_ops {
namespace {

using c10::string_view;

ACLNN_DECLARE(Gelu);
ACLNN_DECLARE(GeluBackward);
ACLNN_DECLARE(GeluV2);
ACLNN_DECLARE(GeluBackwardV2);

using GeluSignature = Tensor(const Tensor&, string_view);
using GeluBackwardSignature = Tensor(const Tensor&, const Tensor&, string_view);

const auto& gelu_op() {
  static const auto op = find_operator<GeluSignature>("aclnn::gelu");
  return op;
}

const auto& gelu_backward_op() {
  static const auto op = find_operator<GeluBackwardSignature>("aclnn::gelu_backward");
  return op;
}

void check_formula(const char* api, const Tensor& tensor, string_view approximate) {
  if (approximate == "none" || approximate == "tanh") return;
  refuse(api, tensor.device(),
         c10::str("approximate is \"", approximate, "\", expected \"none\" or \"tanh\""));
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor gelu_output(const Tensor& self, string_view approximate) {
  const char* const api = approximate == "tanh" ? Gelu::kStage1 : GeluV2::kStage1;
  check_tensors(api, {{approximate == "tanh" ? "self" : "x", self}});
  check_formula(api, self, approximate);
  return empty_output(self, self);
}

Tensor gelu_device(const Tensor& self, string_view approximate) {
  Tensor out = gelu_output(self, approximate);
  if (approximate == "tanh") {
    call_device<Gelu>(self, Written{out});
  } else {
    call_device<GeluV2>(self, int64_t{0}, Written{out});
  }
  return out;
}

Tensor gelu_backward_output(const Tensor& grad_output, const Tensor& self,
                            string_view approximate) {
  const char* const api = approximate == "tanh" ? GeluBackward::kStage1 : GeluBackwardV2::kStage1;
  const Named gradient{"gradOutput", grad_output};
  const Named value{"self", self};
  check_tensors(api, {gradient, value});
  check_same(api, value, gradient);
  check_formula(api, self, approximate);
  return empty_output(grad_output, self);
}

Tensor gelu_backward_device(const Tensor& grad_output, const Tensor& self,
                            string_view approximate) {
  Tensor grad_input = gelu_backward_output(grad_output, self, approximate);
  if (approximate == "tanh") {
    call_device<GeluBackward>(grad_output, self, Written{grad_input});
  } else {
    std::string word(approximate);
    call_device<GeluBackwardV2>(grad_output, self, word.data(), Written{grad_input});
  }
  return grad_input;
}

// The second derivative of gelu. "none": phi(x) (2 - x^2). "tanh", with v = 2 u and s of it:
// s (1 - s) (2 v' + x v'' + x v'^2 (1 - 2 s)).
Tensor gelu_second(const Tensor& x, const std::string& approximate) {
  const Tensor square = x * x;
  if (approximate == "none") {
    return (square * -0.5).exp() * 0.39894228040143267794 * (2 - square);
  }
  constexpr double kLinear = 1.5957691216057307117597842397375;
  constexpr double kCubic = 0.044715 * kLinear;
  const Tensor v = x * (square * kCubic + kLinear);
  const Tensor s = at::sigmoid(v);
  const Tensor rest = at::sigmoid(-v);
  const Tensor slope = square * (3 * kCubic) + kLinear;
  return s * rest * (slope * 2 + square * (6 * kCubic) + x * slope * slope * (rest - s));
}

// Saves self.
struct GeluFormula {
  static constexpr const char* kName = "AclnnGeluBackward0";
  using Attributes = std::tuple<std::string>;  // approximate

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes& attributes) {
    return {gelu_backward_op().call(grads[0], saved[0], std::get<0>(attributes))};
  }
};

// Saves grad_output and self.
struct GeluBackwardFormula {
  static constexpr const char* kName = "AclnnGeluBackwardBackward0";
  using Attributes = GeluFormula::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const auto& [approximate] = attributes;
    variable_list result(2);
    if (needed[0]) result[0] = gelu_backward_op().call(grads[0], saved[1], approximate);
    if (needed[1]) result[1] = grads[0] * saved[0] * gelu_second(saved[1], approximate);
    return result;
  }
};

Tensor gelu_autograd(c10::DispatchKeySet keys, const Tensor& self, string_view approximate) {
  const auto run = [&] {
    return gelu_op().redispatch(keys & c10::after_autograd_keyset, self, approximate);
  };
  return differentiate_elementwise<GeluFormula>({std::string(approximate)}, run, self);
}

Tensor gelu_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                              const Tensor& self, string_view approximate) {
  const auto run = [&] {
    return gelu_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, self,
                                         approximate);
  };
  return differentiate_elementwise<GeluBackwardFormula>({std::string(approximate)}, run,
                                                        grad_output, self);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("gelu(Tensor self, *, str approximate='none') -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("gelu", &gelu_device);
  m.impl("gelu_backward", &gelu_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("gelu", &gelu_output);
  m.impl("gelu_backward", &gelu_backward_output);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("gelu", &gelu_autograd);
  m.impl("gelu_backward", &gelu_backward_autograd);
}

}  // namespace aclnn_torch::gelu_ops
