// torch.ops.aclnn.selu, selu_, selu_backward over aclnnSelu, aclnnInplaceSelu and
// aclnnSeluBackward. The backward needs the result alone.

#include <ATen/TensorOperators.h>
#include <ATen/ops/lt.h>

#include "aclnnop/aclnn_selu.h"
#include "aclnnop/aclnn_selu_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::selu_ops {
namespace {

ACLNN_DECLARE(Selu);
ACLNN_DECLARE(InplaceSelu);
ACLNN_DECLARE(SeluBackward);

struct Forward : CannFunction<Selu, "self"> {
  static constexpr const char* kSchema = "selu(Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&);
  static constexpr const char* kNode = "AclnnSeluBackward0";
};

struct InPlace : CannFunction<InplaceSelu, "selfRef"> {
  static constexpr const char* kSchema = "selu_(Tensor(a!) self) -> Tensor(a!)";
};

struct Backward : CannFunction<SeluBackward, "gradOutput", "result"> {
  static constexpr const char* kSchema =
      "selu_backward(Tensor grad_output, Tensor result) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&);
  static constexpr const char* kNode = "AclnnSeluBackwardBackward0";
  static constexpr StartsFrom kStartsFrom = StartsFrom::kResult;

  // 1 on the negative branch; like ATen, excluding 0.
  static Tensor second_gradient(const Tensor& product, const Tensor& result) {
    return product * at::lt(result, 0).to(product.scalar_type());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward, InPlace>(m);
}

}  // namespace aclnn_torch::selu_ops
