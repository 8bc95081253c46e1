// torch.ops.aclnn.silu, silu_backward: ATen's schemas over aclnnSilu and aclnnSiluBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>

#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_silu_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::silu_ops {
namespace {

ACLNN_DECLARE(Silu);
ACLNN_DECLARE(SiluBackward);

struct Forward : CannFunction<Silu, "self"> {
  static constexpr const char* kSchema = "silu(Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&);
  static constexpr const char* kNode = "AclnnSiluBackward0";
};

struct Backward : CannFunction<SiluBackward, "gradOutput", "self"> {
  static constexpr const char* kSchema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&);
  static constexpr const char* kNode = "AclnnSiluBackwardBackward0";

  // The second derivative of silu: s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x).
  static Tensor second_gradient(const Tensor& product, const Tensor& x) {
    const Tensor s = at::sigmoid(x);
    const Tensor rest = at::sigmoid(-x);
    return product * (s * rest * (x * (rest - s) + 2));
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward>(m);
}

}  // namespace aclnn_torch::silu_ops
