// torch.ops.aclnn.hardsigmoid, hardsigmoid_, hardsigmoid_backward: ATen's schemas over
// aclnnHardsigmoid, aclnnInplaceHardsigmoid and aclnnHardsigmoidBackward.

#include <ATen/ops/zeros_like.h>

#include "aclnnop/aclnn_hardsigmoid.h"
#include "aclnnop/aclnn_hardsigmoid_backward.h"
#include "torch_ops/elementwise_operator.h"

namespace aclnn_torch::hardsigmoid_ops {
namespace {

ACLNN_DECLARE(Hardsigmoid);
ACLNN_DECLARE(InplaceHardsigmoid);
ACLNN_DECLARE(HardsigmoidBackward);

struct Forward : CannFunction<Hardsigmoid, "self"> {
  static constexpr const char* kSchema = "hardsigmoid(Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&);
  static constexpr const char* kNode = "AclnnHardsigmoidBackward0";
};

struct InPlace : CannFunction<InplaceHardsigmoid, "self"> {
  static constexpr const char* kSchema = "hardsigmoid_(Tensor(a!) self) -> Tensor(a!)";
};

// Starts from the input: a result near 0 or 1 is rounded to that.
struct Backward : CannFunction<HardsigmoidBackward, "gradOutput", "self"> {
  static constexpr const char* kSchema =
      "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor";
  using Signature = Tensor(const Tensor&, const Tensor&);
  static constexpr const char* kNode = "AclnnHardsigmoidBackwardBackward0";

  // The slope is constant in pieces.
  static Tensor second_gradient(const Tensor& product, const Tensor&) {
    return at::zeros_like(product);
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  add_elementwise<Forward, Backward, InPlace>(m);
}

}  // namespace aclnn_torch::hardsigmoid_ops
