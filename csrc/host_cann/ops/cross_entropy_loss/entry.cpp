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

void require_attributes(Checks& checks, const char* reduction, double smoothing) {
  if (!checks.ok()) return;
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
void require_plain(Checks& checks, double smoothing, double zloss_scale, bool zloss_wanted,
                   const char* zloss_name) {
  if (!checks.ok() || checks.product() >= k950) return;
  checks
      .require_tiling(smoothing == 0, "labelSmoothing is %g, expected 0; %s, or smooth logProb",
                      smoothing, kLaterProducts)
      .require_tiling(zloss_scale == 0, "lseSquareScaleForZloss is %g, expected 0; %s", zloss_scale,
                      kLaterProducts)
      .require_tiling(!zloss_wanted, "%s is given, but this product has no z-loss; omit it, or %s",
                      zloss_name, kLaterProducts);
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
  const Argument logits{"input", input}, labels{"target", target};
  const Argument weight{"weight", weightOptional};
  const Argument loss{"lossOut", lossOut}, log_prob{"logProbOut", logProbOut};
  const Argument zloss{"zlossOut", zlossOut}, lse{"lseForZlossOut", lseForZlossOut};
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

    const Sizes sizes = require_matrix(checks, logits);
    const auto [rows, classes] = sizes;
    const int64_t results = parse_reduction(reductionOptional) == Reduction::kNone ? rows : 1;
    require_shape(checks, labels, {rows}, "a label for every row of input");
    require_shape(checks, weight, {classes}, "a weight for every class");
    require_attributes(checks, reductionOptional, labelSmoothing);
    require_shape(checks, loss, {results}, "as the reduction needs");
    require_shape(checks, log_prob, {rows, classes}, "as input has");
    require_plain(checks, labelSmoothing, lseSquareScaleForZloss, returnZloss, "returnZloss");
    // CANN requires these two in any case; an output that is not requested is not written and may
    // be empty.
    const bool return_lse = lseSquareScaleForZloss != 0;
    const auto left_out = [&](bool wanted, const aclTensor* tensor) {
      return checks.ok() && !wanted && element_count(tensor->view.shape) == 0;
    };
    if (!left_out(returnZloss, zlossOut)) {
      require_shape(checks, zloss, {results}, "as the reduction needs");
    }
    if (!left_out(return_lse, lseForZlossOut)) {
      require_shape(checks, lse, {rows}, "a number for every row");
    }
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return ForwardPlan(
          {input, target, weightOptional, lossOut, logProbOut, zlossOut, lseForZlossOut},
          Attributes(reductionOptional, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
                     input->view.dtype),
          returnZloss, return_lse, sizes, workspace);
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
  const Argument gradient{"gradLoss", gradLoss}, log_prob{"logProb", logProb};
  const Argument labels{"target", target}, weight{"weight", weightOptional};
  const Argument zloss_gradient{"gradZloss", gradZlossOptional};
  const Argument lse{"lseForZloss", lseForZlossOptional}, result{"out", out};
  const std::initializer_list<Argument> arguments = {gradient,       log_prob, labels, weight,
                                                     zloss_gradient, lse,      result};
  const Given given[] = {gradient,
                         log_prob,
                         labels,
                         weight,
                         zloss_gradient,
                         lse,
                         Named{"reduction", reductionOptional},
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"lseSquareScaleForZloss", lseSquareScaleForZloss},
                         result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : {gradient, log_prob, labels, result}) {
      checks.not_null(argument);
    }
    checks.results_not_null(workspaceSize, executor)
        .available_since(kA2)
        .dtype_row_in(arguments, kBackwardRows);
    for (const Argument& argument : arguments) checks.format_like_nd(argument);
    if (launches_nothing(checks, arguments, 1)) {
      return make_no_launch_executor(kApi, checks, arguments, 1, workspaceSize, executor);
    }

    const Sizes sizes = require_matrix(checks, log_prob);
    const int64_t rows = sizes.rows;
    const int64_t classes = sizes.classes;
    const bool reduced = parse_reduction(reductionOptional) != Reduction::kNone;
    // The gradient of a loss; that of a reduced loss may be zero-dimensional.
    const auto require_gradient = [&](Argument argument) {
      if (checks.ok() && argument.tensor != nullptr && reduced &&
          argument.tensor->view.shape.size() == 0) {
        return;
      }
      require_shape(checks, argument, {reduced ? 1 : rows},
                    reduced ? "one number, which may also have shape []"
                            : "a number for every row of logProb");
    };
    require_gradient(gradient);
    require_shape(checks, labels, {rows}, "a label for every row of logProb");
    require_shape(checks, weight, {classes}, "a weight for every class");
    require_attributes(checks, reductionOptional, labelSmoothing);
    require_shape(checks, result, {rows, classes}, "as logProb has");
    require_plain(checks, labelSmoothing, lseSquareScaleForZloss, gradZlossOptional != nullptr,
                  "gradZloss");
    // torch_npu passes the forward's output on, which has shape {0} without a scale.
    const bool lse_left_out =
        lseForZlossOptional == nullptr ||
        (lseSquareScaleForZloss == 0 && element_count(lseForZlossOptional->view.shape) == 0);
    require_plain(checks, 0, 0, !lse_left_out, "lseForZloss");
    require_gradient(zloss_gradient);
    if (!lse_left_out) {
      require_shape(checks, lse, {rows}, "a number for every row of logProb");
    }
    checks.require_tiling(
        gradZlossOptional == nullptr || !lse_left_out || lseSquareScaleForZloss == 0,
        "gradZloss is given without lseForZloss; pass what the forward returned");
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
