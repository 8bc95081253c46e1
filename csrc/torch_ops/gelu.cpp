// torch.ops.aclnn.gelu, gelu_backward: ATen's schemas. aclnnGelu and aclnnGeluBackward compute
// ATen's "tanh" formula, aclnnGeluV2 and aclnnGeluBackwardV2 the formula of "none".

#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>

#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_backward.h"
#include "aclnnop/aclnn_gelu_backward_v2.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::gelu_ops {
namespace {

using c10::string_view;

ACLNN_DECLARE(Gelu);
ACLNN_DECLARE(GeluBackward);
ACLNN_DECLARE(GeluV2);
ACLNN_DECLARE(GeluBackwardV2);

void check_formula(const char* api, const Tensor& tensor, string_view approximate) {
  if (approximate == "none" || approximate == "tanh") return;
  refuse(api, tensor.device(),
         c10::str("approximate is \"", approximate, "\", expected \"none\" or \"tanh\""));
}

struct Forward {
  static constexpr const char* kSchema = "gelu(Tensor self, *, str approximate='none') -> Tensor";
  using Signature = Tensor(const Tensor&, string_view);
  static constexpr const char* kNode = "AclnnGeluBackward0";

  static void check(const Tensor& self, string_view approximate) {
    if (approximate == "tanh") return CannFunction<Gelu, "self">::check(self);
    CannFunction<GeluV2, "x">::check(self);
    check_formula(GeluV2::kStage1, self, approximate);
  }

  static void call(const Tensor& self, string_view approximate, const Written& out) {
    if (approximate == "tanh") return call_device<Gelu>(self, out);
    call_device<GeluV2>(self, int64_t{0}, out);
  }
};

struct Backward {
  static constexpr const char* kSchema =
      "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&, string_view);
  static constexpr const char* kNode = "AclnnGeluBackwardBackward0";
  static constexpr StartsFrom kStartsFrom = StartsFrom::kInput;

  static void check(const Tensor& grad_output, const Tensor& self, string_view approximate) {
    if (approximate == "tanh") {
      return CannFunction<GeluBackward, "gradOutput", "self">::check(grad_output, self);
    }
    CannFunction<GeluBackwardV2, "gradOutput", "self">::check(grad_output, self);
    check_formula(GeluBackwardV2::kStage1, self, approximate);
  }

  static void call(const Tensor& grad_output, const Tensor& self, string_view approximate,
                   const Written& grad_input) {
    if (approximate == "tanh") return call_device<GeluBackward>(grad_output, self, grad_input);
    std::string word(approximate);
    call_device<GeluBackwardV2>(grad_output, self, word.data(), grad_input);
  }

  // The second derivative of gelu. "none": phi(x) (2 - x^2). "tanh", with v = 2 u and s =
  // sigmoid(v): s (1 - s) (2 v' + x v'' + x v'^2 (1 - 2 s)).
  static Tensor second_gradient(const Tensor& product, const Tensor& x, string_view approximate) {
    const Tensor square = x * x;
    if (approximate == "none") {
      return product * ((square * -0.5).exp() * 0.39894228040143267794 * (2 - square));
    }
    constexpr double kLinear = 1.5957691216057307117597842397375;
    constexpr double kCubic = 0.044715 * kLinear;
    const Tensor v = x * (square * kCubic + kLinear);
    const Tensor s = at::sigmoid(v);
    const Tensor rest = at::sigmoid(-v);
    const Tensor slope = square * (3 * kCubic) + kLinear;
    return product *
           (s * rest * (slope * 2 + square * (6 * kCubic) + x * slope * slope * (rest - s)));
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward>(m);
}

}  // namespace aclnn_torch::gelu_ops
