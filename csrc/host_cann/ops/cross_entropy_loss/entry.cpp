// Stage 1 of aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad: the checks in CANN's order.
// docs/emulation/operators.md lists the deviations from CANN.
#include "acl/acl_base.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/ops/cross_entropy_loss/backward.h"
#include "host_cann/ops/cross_entropy_loss/forward.h"
#include "host_cann/ops/no_launch.h"

namespace aclnn_host {
namespace {

using namespace cross_entropy;

constexpr Product kA2 = Product::kAscend910B;
constexpr Product k950 = Product::kAscend950;
constexpr Product kHost = Product::kHost;

// input, target, weight, loss, logProb, zloss, lse.
constexpr DtypeRow forward_row(aclDataType real, aclDataType target, Product since) {
  const aclDataType weight = real == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  return {{real, target, weight, real, real, real, real}, since};
}
constexpr DtypeRow kForwardRows[] = {
    forward_row(ACL_BF16, ACL_INT64, kA2),     forward_row(ACL_FLOAT16, ACL_INT64, kA2),
    forward_row(ACL_FLOAT, ACL_INT64, kA2),    forward_row(ACL_BF16, ACL_INT32, k950),
    forward_row(ACL_FLOAT16, ACL_INT32, k950), forward_row(ACL_FLOAT, ACL_INT32, k950),
    forward_row(ACL_DOUBLE, ACL_INT64, kHost), forward_row(ACL_DOUBLE, ACL_INT32, kHost)};

// gradLoss, logProb, target, weight, gradZloss, lse, out.
constexpr DtypeRow backward_row(aclDataType real, aclDataType target, Product since) {
  const aclDataType weight = real == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  return {{real, real, target, weight, real, real, real}, since};
}
constexpr DtypeRow kBackwardRows[] = {
    backward_row(ACL_BF16, ACL_INT64, kA2),     backward_row(ACL_FLOAT16, ACL_INT64, kA2),
    backward_row(ACL_FLOAT, ACL_INT64, kA2),    backward_row(ACL_BF16, ACL_INT32, k950),
    backward_row(ACL_FLOAT16, ACL_INT32, k950), backward_row(ACL_FLOAT, ACL_INT32, k950),
    backward_row(ACL_DOUBLE, ACL_INT64, kHost), backward_row(ACL_DOUBLE, ACL_INT32, kHost)};

// The tensor arguments; weight, and what the gradient takes for the z-loss, may be absent.
struct LossTensors {
  Argument input;
  Argument target;
  Argument weight;
  Argument loss;
  Argument log_prob;
  Argument zloss;
  Argument lse;
};
struct GradientTensors {
  Argument grad_loss;
  Argument log_prob;
  Argument target;
  Argument weight;
  Argument grad_zloss;
  Argument lse;
  Argument out;
};

// The attributes that are checked, as the caller gives them.
struct GivenAttributes {
  const char* reduction;
  double smoothing;
  double zloss_scale;
};

Sizes require_matrix(Checks& checks, Argument matrix) {
  if (!checks.ok()) return {};
  const Dims& shape = matrix.tensor->view.shape;
  if (shape.size() == 2 && shape[1] > 0) return {shape[0], shape[1]};
  checks.require_tiling(false, "%s has shape %s, expected [N, C] with C > 0; reshape it",
                        matrix.name, shape_text(shape).c_str());
  return {};
}

// `meaning` describes the tensor's contents.
void require_shape(Checks& checks, Argument argument, std::initializer_list<int64_t> shape,
                   const char* meaning) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims expected(shape.begin(), shape.size());
  if (argument.tensor->view.shape == expected) return;
  checks.require_tiling(false, "%s has shape %s, expected %s, %s; reshape it", argument.name,
                        shape_text(argument.tensor->view.shape).c_str(),
                        shape_text(expected).c_str(), meaning);
}

void require_attributes(Checks& checks, const GivenAttributes& attributes) {
  if (!checks.ok()) return;
  const auto& [reduction, smoothing, zloss_scale] = attributes;
  checks
      .require_tiling(parse_reduction(reduction).has_value(),
                      "reduction is \"%s\", expected \"none\", \"mean\" or \"sum\"",
                      reduction ? reduction : "")
      .require_tiling(smoothing >= 0 && smoothing <= 1,
                      "labelSmoothing is %g, expected a number from 0 to 1", smoothing);
}

constexpr const char* kLaterProducts =
    "select Ascend950 or host, which have it (ACLNN_TORCH_PRODUCT=Ascend950, or "
    "aclnn_torch.set_product(\"Ascend950\") in Python)";

// Atlas A2 and A3 support neither smoothing nor the z-loss.
void require_plain(Checks& checks, const GivenAttributes& attributes) {
  if (!checks.ok() || checks.product() >= k950) return;
  checks
      .require_tiling(attributes.smoothing == 0,
                      "labelSmoothing is %g, expected 0; %s, or smooth logProb",
                      attributes.smoothing, kLaterProducts)
      .require_tiling(attributes.zloss_scale == 0, "lseSquareScaleForZloss is %g, expected 0; %s",
                      attributes.zloss_scale, kLaterProducts);
}
void require_no_zloss(Checks& checks, bool zloss_wanted, const char* name) {
  if (!checks.ok() || checks.product() >= k950) return;
  checks.require_tiling(!zloss_wanted,
                        "%s is given, but this product has no z-loss; omit it, or %s", name,
                        kLaterProducts);
}

// Checks the shapes and attributes of the loss; returns the sizes, unless a check fails.
Sizes check_loss(Checks& checks, const LossTensors& tensors, const GivenAttributes& attributes,
                 bool return_zloss) {
  const Sizes sizes = require_matrix(checks, tensors.input);
  const auto [rows, classes] = sizes;
  const int64_t results = parse_reduction(attributes.reduction) == Reduction::kNone ? rows : 1;
  require_shape(checks, tensors.target, {rows}, "a label for every row of input");
  require_shape(checks, tensors.weight, {classes}, "a weight for every class");
  require_attributes(checks, attributes);
  require_shape(checks, tensors.loss, {results}, "as the reduction needs");
  require_shape(checks, tensors.log_prob, {rows, classes}, "as input has");
  require_plain(checks, attributes);
  require_no_zloss(checks, return_zloss, "returnZloss");
  // CANN requires these two in any case; an output that is not requested is not written and may be
  // empty.
  const auto left_out = [&](bool wanted, Argument output) {
    return checks.ok() && !wanted && element_count(output.tensor->view.shape) == 0;
  };
  if (!left_out(return_zloss, tensors.zloss)) {
    require_shape(checks, tensors.zloss, {results}, "as the reduction needs");
  }
  if (!left_out(attributes.zloss_scale != 0, tensors.lse)) {
    require_shape(checks, tensors.lse, {rows}, "a number for every row");
  }
  return sizes;
}

// The gradient of a loss with a number for each of `rows`, or of a reduced one, which may be
// zero-dimensional.
void require_gradient(Checks& checks, Argument argument, bool reduced, int64_t rows) {
  if (checks.ok() && argument.tensor != nullptr && reduced &&
      argument.tensor->view.shape.size() == 0) {
    return;
  }
  require_shape(
      checks, argument, {reduced ? 1 : rows},
      reduced ? "one number, which may also have shape []" : "a number for every row of logProb");
}

// Checks the shapes and attributes of the gradient; returns the sizes, unless a check fails.
Sizes check_gradient(Checks& checks, const GradientTensors& tensors,
                     const GivenAttributes& attributes) {
  const Sizes sizes = require_matrix(checks, tensors.log_prob);
  const auto [rows, classes] = sizes;
  const bool reduced = parse_reduction(attributes.reduction) != Reduction::kNone;
  const aclTensor* const lse = tensors.lse.tensor;
  const bool has_zloss = tensors.grad_zloss.tensor != nullptr;
  require_gradient(checks, tensors.grad_loss, reduced, rows);
  require_shape(checks, tensors.target, {rows}, "a label for every row of logProb");
  require_shape(checks, tensors.weight, {classes}, "a weight for every class");
  require_attributes(checks, attributes);
  require_shape(checks, tensors.out, {rows, classes}, "as logProb has");
  require_plain(checks, attributes);
  require_no_zloss(checks, has_zloss, "gradZloss");
  // torch_npu passes the forward's output on, which has shape {0} without a scale.
  const bool lse_left_out =
      lse == nullptr || (attributes.zloss_scale == 0 && element_count(lse->view.shape) == 0);
  require_no_zloss(checks, !lse_left_out, "lseForZloss");
  require_gradient(checks, tensors.grad_zloss, reduced, rows);
  if (!lse_left_out) {
    require_shape(checks, tensors.lse, {rows}, "a number for every row of logProb");
  }
  checks.require_tiling(!has_zloss || !lse_left_out || attributes.zloss_scale == 0,
                        "gradZloss is given without lseForZloss; pass what the forward returned");
  return sizes;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;
using namespace aclnn_host::cross_entropy;

aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(
    const aclTensor* input, const aclTensor* target, const aclTensor* weightOptional,
    char* reductionOptional, int64_t ignoreIndex, double labelSmoothing,
    double lseSquareScaleForZloss, bool returnZloss, const aclTensor* lossOut,
    const aclTensor* logProbOut, const aclTensor* zlossOut, const aclTensor* lseForZlossOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnCrossEntropyLoss";
  const LossTensors tensors{{"input", input},
                            {"target", target},
                            {"weight", weightOptional},
                            {"lossOut", lossOut},
                            {"logProbOut", logProbOut},
                            {"zlossOut", zlossOut},
                            {"lseForZlossOut", lseForZlossOut}};
  const auto& [logits, labels, weight, loss, log_prob, zloss, lse] = tensors;
  const std::initializer_list<Argument> arguments = {logits,   labels, weight, loss,
                                                     log_prob, zloss,  lse};
  const Given given[] = {logits,
                         labels,
                         weight,
                         Named{"reduction", reductionOptional},
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"lseSquareScaleForZloss", lseSquareScaleForZloss},
                         Named{"returnZloss", returnZloss},
                         loss,
                         log_prob,
                         zloss,
                         lse};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : {logits, labels, loss, log_prob, zloss, lse}) {
      checks.not_null(argument);
    }
    checks.results_not_null(workspaceSize, executor)
        .available_since(kA2)
        .dtype_row_in(arguments, kForwardRows);
    for (const Argument& argument : arguments) checks.format_like_nd(argument);
    if (launches_nothing(checks, arguments, 4)) {
      return make_no_launch_executor(kApi, checks, arguments, 4, workspaceSize, executor);
    }
    const GivenAttributes attributes{reductionOptional, labelSmoothing, lseSquareScaleForZloss};
    const Sizes sizes = check_loss(checks, tensors, attributes, returnZloss);
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return ForwardPlan(
          {input, target, weightOptional, lossOut, logProbOut, zlossOut, lseForZlossOut},
          Attributes(reductionOptional, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
                     input->view.dtype),
          returnZloss, lseSquareScaleForZloss != 0, sizes, workspace);
    });
  });
}

ACLNN_STAGE2(CrossEntropyLoss)

aclnnStatus aclnnCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* gradLoss, const aclTensor* logProb, const aclTensor* target,
    const aclTensor* weightOptional, const aclTensor* gradZlossOptional,
    const aclTensor* lseForZlossOptional, char* reductionOptional, int64_t ignoreIndex,
    double labelSmoothing, double lseSquareScaleForZloss, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnCrossEntropyLossGrad";
  const GradientTensors tensors{{"gradLoss", gradLoss},
                                {"logProb", logProb},
                                {"target", target},
                                {"weight", weightOptional},
                                {"gradZloss", gradZlossOptional},
                                {"lseForZloss", lseForZlossOptional},
                                {"out", out}};
  const auto& [grad_loss, log_prob, labels, weight, grad_zloss, lse, result] = tensors;
  const std::initializer_list<Argument> arguments = {grad_loss,  log_prob, labels, weight,
                                                     grad_zloss, lse,      result};
  const Given given[] = {grad_loss,
                         log_prob,
                         labels,
                         weight,
                         grad_zloss,
                         lse,
                         Named{"reduction", reductionOptional},
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"lseSquareScaleForZloss", lseSquareScaleForZloss},
                         result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : {grad_loss, log_prob, labels, result}) {
      checks.not_null(argument);
    }
    checks.results_not_null(workspaceSize, executor)
        .available_since(kA2)
        .dtype_row_in(arguments, kBackwardRows);
    for (const Argument& argument : arguments) checks.format_like_nd(argument);
    if (launches_nothing(checks, arguments, 1)) {
      return make_no_launch_executor(kApi, checks, arguments, 1, workspaceSize, executor);
    }
    const GivenAttributes attributes{reductionOptional, labelSmoothing, lseSquareScaleForZloss};
    const Sizes sizes = check_gradient(checks, tensors, attributes);
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return BackwardPlan(
          {gradLoss, logProb, target, weightOptional, gradZlossOptional, lseForZlossOptional, out},
          Attributes(reductionOptional, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
                     logProb->view.dtype),
          sizes, workspace);
    });
  });
}

ACLNN_STAGE2(CrossEntropyLossGrad)
