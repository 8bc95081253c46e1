// torch.ops.aclnn.softplus, softplus_backward: ATen's schemas over aclnnSoftplus and
// aclnnSoftplusBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/sigmoid.h>

#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_softplus_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::softplus_ops {
namespace {

using at::Scalar;

ACLNN_DECLARE(Softplus);
ACLNN_DECLARE(SoftplusBackward);

struct Forward : CannFunction<Softplus, "self"> {
  static constexpr const char* kSchema =
      "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor";
  using Signature = Tensor(const Tensor&, const Scalar&, const Scalar&);
  static constexpr const char* kNode = "AclnnSoftplusBackward0";
};

struct Backward : CannFunction<SoftplusBackward, "gradOutput", "self"> {
  static constexpr const char* kSchema =
      "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&, const Scalar&, const Scalar&);
  static constexpr const char* kNode = "AclnnSoftplusBackwardBackward0";

  // The second derivative of softplus: beta s (1 - s) with s = sigmoid(beta x); 0 where softplus is
  // the identity.
  static Tensor second_gradient(const Tensor& product, const Tensor& x, const Scalar& beta,
                                const Scalar& threshold) {
    const Tensor v = x * beta;
    return product * (at::sigmoid(v) * at::sigmoid(-v) * beta).masked_fill(at::gt(v, threshold), 0);
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward>(m);
}

}  // namespace aclnn_torch::softplus_ops
