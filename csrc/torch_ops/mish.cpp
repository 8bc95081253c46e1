// torch.ops.aclnn.mish, mish_, mish_backward: ATen's schemas over aclnnMish, aclnnInplaceMish and
// aclnnMishBackward.

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

#include "aclnnop/aclnn_mish.h"
#include "aclnnop/aclnn_mish_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::mish_ops {
namespace {

ACLNN_DECLARE(Mish);
ACLNN_DECLARE(InplaceMish);
ACLNN_DECLARE(MishBackward);

struct Forward : CannFunction<Mish, "self"> {
  static constexpr const char* kSchema = "mish(Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&);
  static constexpr const char* kNode = "AclnnMishBackward0";
};

struct InPlace : CannFunction<InplaceMish, "selfRef"> {
  static constexpr const char* kSchema = "mish_(Tensor(a!) self) -> Tensor(a!)";
};

// Starts from the input, which the result does not tell: it falls and rises below 0.
struct Backward : CannFunction<MishBackward, "gradOutput", "self"> {
  static constexpr const char* kSchema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&);
  static constexpr const char* kNode = "AclnnMishBackwardBackward0";

  // The second derivative of mish, with t = tanh(softplus(x)) and s = sigmoid(x):
  // (1 - t^2) s (2 + x (1 - s - 2 t s)).
  static Tensor second_gradient(const Tensor& product, const Tensor& x) {
    const Tensor t = at::softplus(x).tanh();
    const Tensor s = at::sigmoid(x);
    return product * ((1 - t * t) * s * (x * (at::sigmoid(-x) - t * s * 2) + 2));
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward, InPlace>(m);
}

}  // namespace aclnn_torch::mish_ops
