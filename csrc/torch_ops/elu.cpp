// torch.ops.aclnn.elu, elu_, elu_backward: ATen's schemas over aclnnElu, aclnnInplaceElu and
// aclnnEluBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/lt.h>

#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::elu_ops {
namespace {

using at::Scalar;

ACLNN_DECLARE(Elu);
ACLNN_DECLARE(InplaceElu);
ACLNN_DECLARE(EluBackward);

struct Forward : CannFunction<Elu, "self"> {
  static constexpr const char* kSchema =
      "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor";
  using Signature = Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&);
  static constexpr const char* kNode = "AclnnEluBackward0";
};

struct InPlace : CannFunction<InplaceElu, "selfRef"> {
  static constexpr const char* kSchema =
      "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)";
};

struct Backward : CannFunction<EluBackward, "gradOutput", "selfOrResult"> {
  static constexpr const char* kSchema =
      "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
      "is_result, Tensor self_or_result) -> Tensor";
  using Signature = Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&, bool,
                           const Tensor&);
  static constexpr const char* kNode = "AclnnEluBackwardBackward0";
  // For a negative alpha, the backward fails if it starts from the result, which elu_ saves; as in
  // ATen.
  static constexpr StartsFrom kStartsFrom = StartsFrom::kEither;

  // As in ATen, the second derivative at 0 is 0.
  static Tensor second_gradient(const Tensor& product, const Scalar& alpha, const Scalar& scale,
                                const Scalar& input_scale, bool is_result,
                                const Tensor& self_or_result) {
    const Tensor negative = at::lt(self_or_result, 0).to(product.scalar_type());
    const Tensor scaled = product * input_scale;
    if (is_result) return scaled * negative;
    return elementwise::Gradient<Backward>::op().call(scaled, alpha, scale, input_scale, false,
                                                      self_or_result) *
           negative;
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward, InPlace>(m);
}

}  // namespace aclnn_torch::elu_ops
