// torch.ops.aclnn.hardswish, hardswish_, hardswish_backward: ATen's schemas over aclnnHardswish,
// aclnnInplaceHardswish and aclnnHardswishBackwardV2, which agrees with ATen at -3 and 3.

#include <ATen/TensorOperators.h>
#include <ATen/ops/lt.h>

#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_hardswish_backward_v2.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::hardswish_ops {
namespace {

ACLNN_DECLARE(Hardswish);
ACLNN_DECLARE(InplaceHardswish);
ACLNN_DECLARE(HardswishBackwardV2);

struct Forward : CannFunction<Hardswish, "self"> {
  static constexpr const char* kSchema = "hardswish(Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&);
  static constexpr const char* kNode = "AclnnHardswishBackward0";
};

struct InPlace : CannFunction<InplaceHardswish, "self"> {
  static constexpr const char* kSchema = "hardswish_(Tensor(a!) self) -> Tensor(a!)";
};

// Starts from the input, because the result does not determine it: from -3 to 0, two inputs share a
// result.
struct Backward : CannFunction<HardswishBackwardV2, "gradOutput", "self"> {
  static constexpr const char* kSchema =
      "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&);
  static constexpr const char* kNode = "AclnnHardswishBackwardBackward0";

  // The second derivative of hardswish is 1/3 between -3 and 3, else 0.
  static Tensor second_gradient(const Tensor& product, const Tensor& x) {
    return product * at::lt(x.abs(), 3).to(product.scalar_type()) / 3;
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward, InPlace>(m);
}

}  // namespace aclnn_torch::hardswish_ops
