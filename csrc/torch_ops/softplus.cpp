// torch.ops.aclnn.softplus, softplus_backward: ATen's schemas over aclnnSoftplus and
// aclnnSoftplusBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/sigmoid.h>
#include <torch/library.h>

#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_softplus_backward.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch::softplus_ops {
namespace {

using at::Scalar;

ACLNN_DECLARE(Softplus);
ACLNN_DECLARE(SoftplusBackward);

using SoftplusSignature = Tensor(const Tensor&, const Scalar&, const Scalar&);
using SoftplusBackwardSignature = Tensor(const Tensor&, const Tensor&, const Scalar&,
                                         const Scalar&);

const auto& softplus_op() {
  static const auto op = find_operator<SoftplusSignature>("aclnn::softplus");
  return op;
}

const auto& softplus_backward_op() {
  static const auto op = find_operator<SoftplusBackwardSignature>("aclnn::softplus_backward");
  return op;
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Tensor softplus_output(const Tensor& self) {
  check_tensors(Softplus::kStage1, {{"self", self}});
  return empty_output(self, self);
}

Tensor softplus_device(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  Tensor out = softplus_output(self);
  call_device<Softplus>(self, beta, threshold, Written{out});
  return out;
}

Tensor softplus_meta(const Tensor& self, const Scalar&, const Scalar&) {
  return softplus_output(self);
}

Tensor softplus_backward_output(const Tensor& grad_output, const Tensor& self) {
  const Named gradient{"gradOutput", grad_output};
  const Named value{"self", self};
  check_tensors(SoftplusBackward::kStage1, {gradient, value});
  check_same(SoftplusBackward::kStage1, value, gradient);
  return empty_output(grad_output, self);
}

Tensor softplus_backward_device(const Tensor& grad_output, const Tensor& self, const Scalar& beta,
                                const Scalar& threshold) {
  Tensor grad_input = softplus_backward_output(grad_output, self);
  call_device<SoftplusBackward>(grad_output, self, beta, threshold, Written{grad_input});
  return grad_input;
}

Tensor softplus_backward_meta(const Tensor& grad_output, const Tensor& self, const Scalar&,
                              const Scalar&) {
  return softplus_backward_output(grad_output, self);
}

// The second derivative of softplus: beta s (1 - s) with s = sigmoid(beta x), and 0 where softplus
// is x.
Tensor softplus_second(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const Tensor v = x * beta;
  return (at::sigmoid(v) * at::sigmoid(-v) * beta).masked_fill(at::gt(v, threshold), 0);
}

// Saves self.
struct SoftplusFormula {
  static constexpr const char* kName = "AclnnSoftplusBackward0";
  using Attributes = std::tuple<Scalar, Scalar>;  // beta, threshold

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes& attributes) {
    const auto& [beta, threshold] = attributes;
    return {softplus_backward_op().call(grads[0], saved[0], beta, threshold)};
  }
};

// Saves grad_output and self.
struct SoftplusBackwardFormula {
  static constexpr const char* kName = "AclnnSoftplusBackwardBackward0";
  using Attributes = SoftplusFormula::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const auto& [beta, threshold] = attributes;
    variable_list result(2);
    if (needed[0]) result[0] = softplus_backward_op().call(grads[0], saved[1], beta, threshold);
    if (needed[1]) result[1] = grads[0] * saved[0] * softplus_second(saved[1], beta, threshold);
    return result;
  }
};

Tensor softplus_autograd(c10::DispatchKeySet keys, const Tensor& self, const Scalar& beta,
                         const Scalar& threshold) {
  const auto run = [&] {
    return softplus_op().redispatch(keys & c10::after_autograd_keyset, self, beta, threshold);
  };
  return differentiate_elementwise<SoftplusFormula>({beta, threshold}, run, self);
}

Tensor softplus_backward_autograd(c10::DispatchKeySet keys, const Tensor& grad_output,
                                  const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  const auto run = [&] {
    return softplus_backward_op().redispatch(keys & c10::after_autograd_keyset, grad_output, self,
                                             beta, threshold);
  };
  return differentiate_elementwise<SoftplusBackwardFormula>({beta, threshold}, run, grad_output,
                                                            self);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> "
      "Tensor",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("softplus", &softplus_device);
  m.impl("softplus_backward", &softplus_backward_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("softplus", &softplus_meta);
  m.impl("softplus_backward", &softplus_backward_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("softplus", &softplus_autograd);
  m.impl("softplus_backward", &softplus_backward_autograd);
}

}  // namespace aclnn_torch::softplus_ops
