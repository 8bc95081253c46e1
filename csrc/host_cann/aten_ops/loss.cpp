// Losses and their gradients. A reduction is ATen's: 0 none, 1 mean, 2 sum.

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_backward.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mse_loss_backward.h>
#include <ATen/ops/multilabel_margin_loss_forward.h>
#include <ATen/ops/nll_loss2d_backward.h>
#include <ATen/ops/nll_loss2d_forward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/smooth_l1_loss_backward.h>
#include <ATen/ops/soft_margin_loss.h>
#include <ATen/ops/soft_margin_loss_backward.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// Classes, of any integer type, which a row sees as INT64.
struct TargetIn : IntegralIn {
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i).to(at::kLong); }
};

void check_reduction(int64_t reduction) {
  TORCH_CHECK(reduction >= 0 && reduction < at::Reduction::END, "reduction is ", reduction,
              ", expected 0 (none), 1 (mean) or 2 (sum)");
}

// A loss's derivative by one element, times the gradient of the loss and the share that the element
// has in it.
at::Tensor chain(const at::Tensor& derivative, const at::Tensor& grad, int64_t reduction) {
  const at::Tensor product = derivative * wide(grad);
  return reduction == at::Reduction::Mean ? product / derivative.numel() : product;
}

// Targets that are ignored may have any value.
void check_targets(const at::Tensor& target, int64_t classes, int64_t ignored) {
  if (target.is_cpu()) check_bounds("target", target.masked_select(target != ignored), classes);
}

}  // namespace

ACLNN(NLLLoss, (In, self), (TargetIn, target), (In, weight), (int64_t, reduction),
      (int64_t, ignoreIndex), (Out, out), (Out, totalWeightOut)) {
  check_reduction(reduction);
  const auto [loss, total] =
      at::nll_loss_forward(wide(self), target, wide(weight), reduction, ignoreIndex);
  out = loss;
  totalWeightOut = total;
}
ACLNN(NLLLossBackward, (In, gradOutput), (In, self), (TargetIn, target), (In, weight),
      (int64_t, reduction), (int64_t, ignoreIndex), (In, totalWeight), (Out, out)) {
  check_reduction(reduction);
  check_targets(target, self.size(-1), ignoreIndex);
  out = at::nll_loss_backward(wide(gradOutput), wide(self), target, wide(weight), reduction,
                              ignoreIndex, wide(totalWeight));
}
ACLNN(NLLLoss2d, (In, self), (TargetIn, target), (In, weight), (int64_t, reduction),
      (int64_t, ignoreIndex), (Out, out), (Out, totalWeightOut)) {
  check_reduction(reduction);
  check_targets(target, self.size(1), ignoreIndex);
  const auto [loss, total] =
      at::nll_loss2d_forward(wide(self), target, wide(weight), reduction, ignoreIndex);
  out = loss;
  totalWeightOut = total;
}
ACLNN(NLLLoss2dBackward, (In, gradOutput), (In, self), (TargetIn, target), (In, weight),
      (int64_t, reduction), (int64_t, ignoreIndex), (In, totalWeight), (Out, out)) {
  check_reduction(reduction);
  check_targets(target, self.size(1), ignoreIndex);
  out = at::nll_loss2d_backward(wide(gradOutput), wide(self), target, wide(weight), reduction,
                                ignoreIndex, wide(totalWeight));
}

ACLNN(MseLoss, (In, self), (In, target), (int64_t, reduction), (Out, out)) {
  check_reduction(reduction);
  out = at::mse_loss(wide(self), wide(target), reduction);
}
ACLNN(MseLossBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (Out, gradInput)) {
  check_reduction(reduction);
  gradInput = at::mse_loss_backward(wide(gradOutput), wide(self), wide(target), reduction);
}
ACLNN(L1Loss, (In, self), (In, target), (int64_t, reduction), (Out, out)) {
  check_reduction(reduction);
  out = at::l1_loss(wide(self), wide(target), reduction);
}
ACLNN(L1LossBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (Out, gradInput)) {
  check_reduction(reduction);
  gradInput = chain((wide(self) - wide(target)).sign(), gradOutput, reduction);
}
ACLNN(SmoothL1Loss, (FloatIn, self), (FloatIn, target), (int64_t, reduction), (float, beta),
      (Out, result)) {
  check_reduction(reduction);
  result = at::smooth_l1_loss(wide(self), wide(target), reduction, beta);
}
ACLNN(SmoothL1LossBackward, (FloatIn, gradOut), (FloatIn, self), (FloatIn, target),
      (int64_t, reduction), (float, beta), (Out, gradInput)) {
  check_reduction(reduction);
  gradInput = at::smooth_l1_loss_backward(wide(gradOut), wide(self), wide(target), reduction, beta);
}
ACLNN(SoftMarginLoss, (In, self), (In, target), (int64_t, reduction), (Out, out)) {
  check_reduction(reduction);
  out = at::soft_margin_loss(wide(self), wide(target), reduction);
}
ACLNN(SoftMarginLossBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (Out, out)) {
  check_reduction(reduction);
  out = at::soft_margin_loss_backward(wide(gradOutput), wide(self), wide(target), reduction);
}
ACLNN(MultilabelMarginLoss, (In, self), (IndexIn, target), (int64_t, reduction), (Out, out),
      (Out, isTarget)) {
  check_reduction(reduction);
  const auto [loss, hits] = at::multilabel_margin_loss_forward(wide(self), target, reduction);
  out = loss;
  isTarget = hits;
}

ACLNN(BinaryCrossEntropy, (In, self), (In, target), (OptionalIn, weight), (int64_t, reduction),
      (Out, out)) {
  check_reduction(reduction);
  out = at::binary_cross_entropy(wide(self), wide(target), wide(weight), reduction);
}
ACLNN(BinaryCrossEntropyBackward, (In, gradOutput), (In, self), (In, target), (OptionalIn, weight),
      (int64_t, reduction), (Out, out)) {
  check_reduction(reduction);
  out = at::binary_cross_entropy_backward(wide(gradOutput), wide(self), wide(target), wide(weight),
                                          reduction);
}
ACLNN(BinaryCrossEntropyWithLogits, (In, self), (In, target), (OptionalIn, weightOptional),
      (OptionalIn, posWeightOptional), (int64_t, reduction), (Out, out)) {
  check_reduction(reduction);
  out = at::binary_cross_entropy_with_logits(wide(self), wide(target), wide(weightOptional),
                                             wide(posWeightOptional), reduction);
}
// With s = sigmoid(self): weight (s - target), or with p, the weight of the positive class,
// weight ((1 - target + p target) s - p target).
ACLNN(BinaryCrossEntropyWithLogitsBackward, (In, gradOutput), (In, self), (In, target),
      (OptionalIn, weightOptional), (OptionalIn, posWeightOptional), (int64_t, reduction),
      (Out, out)) {
  check_reduction(reduction);
  const at::Tensor probability = at::sigmoid(wide(self));
  at::Tensor derivative = probability - wide(target);
  if (posWeightOptional) {
    const at::Tensor positive = wide(*posWeightOptional) * wide(target);
    derivative = (1 - wide(target) + positive) * probability - positive;
  }
  if (weightOptional) derivative = derivative * wide(*weightOptional);
  out = chain(derivative, gradOutput, reduction);
}

ACLNN(KlDiv, (In, self), (In, target), (int64_t, reduction), (bool, logTarget), (Out, out)) {
  check_reduction(reduction);
  out = at::kl_div(wide(self), wide(target), reduction, logTarget);
}
ACLNN(KlDivBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (bool, logTarget), (Out, out)) {
  check_reduction(reduction);
  const at::Tensor goal = wide(target);
  out = chain(logTarget ? -goal.exp() : -goal, gradOutput, reduction);
}
// Of target (log target - self), and of exp(target) (target - self) for a logarithmic target.
ACLNN(KlDivTargetBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (bool, logTarget), (Out, gradTarget)) {
  check_reduction(reduction);
  const at::Tensor goal = wide(target);
  const at::Tensor derivative = logTarget ? goal.exp() * (goal + 1 - wide(self))
                                          : (goal.log() + 1 - wide(self)).masked_fill(goal == 0, 0);
  gradTarget = chain(derivative, gradOutput, reduction);
}
