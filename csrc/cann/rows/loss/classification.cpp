// Losses of classes and of distributions, and their gradients. Reductions are numbered as in ATen:
// 0 none, 1 mean, 2 sum.

#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include "cann/rows/loss/reductions.h"
#include "cann/rows/loss/targets.h"
#include "cann/rows/row.h"

namespace aclnn_host::loss_classification_rows {

namespace {

// Classes of any integer type, which a row sees as INT64.
struct TargetIn : Integral<In> {
  static Value get(const Frame& frame, size_t i) { return frame.tensor(i).to(at::kLong); }
};

void check_expands(const char* name, const at::Tensor& tensor, const at::Tensor& to) {
  EXPECT(at::is_expandable_to(tensor.sizes(), to.sizes()), name, " has shape ", tensor.sizes(),
         ", expected one that broadcasts to ", to.sizes());
}

// KlDiv has this reduction in addition to ATen's.
constexpr int64_t kBatchMean = 3;

void check_divergence_reduction(int64_t reduction) {
  expect_range("reduction", reduction, 0, kBatchMean, " (none, mean, sum or batchmean)");
}

// The number of samples. A tensor without dimensions is one sample.
int64_t batch_of(const at::Tensor& losses) {
  return losses.dim() > 0 ? losses.size(0) : 1;
}

// The common shape of self and target after broadcasting, to which the gradient of the loss
// expands.
std::vector<int64_t> common_shape(const at::Tensor& grad, const at::Tensor& self,
                                  const at::Tensor& target) {
  expect_dims("self", self, 0, 8);
  expect_dims("target", target, 0, 8);
  std::vector<int64_t> shape = at::infer_size(self.sizes(), target.sizes());
  EXPECT(at::is_expandable_to(grad.sizes(), shape), "gradOutput has shape ", grad.sizes(),
         ", expected one that broadcasts to ", at::IntArrayRef(shape),
         ", the shape of self and target");
  return shape;
}

// A gradient of the divergence, summed to the shape of its tensor.
at::Tensor of_divergence(const at::Tensor& derivative, const at::Tensor& grad, int64_t reduction,
                         const at::Tensor& input) {
  const at::Tensor all = reduction == kBatchMean ? derivative * wide(grad) / batch_of(derivative)
                                                 : chain(derivative, grad, reduction);
  return at::sum_to(all, input.sizes());
}

}  // namespace

ACLNN(NLLLoss, (In, self), (TargetIn, target), (In, weight), (Reduction<int64_t>, reduction),
      (int64_t, ignoreIndex), (Out, out), (Out, totalWeightOut)) {
  std::tie(out, totalWeightOut) =
      at::nll_loss_forward(wide(self), target, wide(weight), reduction, ignoreIndex);
}
ACLNN(NLLLossBackward, (In, gradOutput), (In, self), (TargetIn, target), (In, weight),
      (Reduction<int64_t>, reduction), (int64_t, ignoreIndex), (In, totalWeight), (Out, out)) {
  check_targets(target, self.size(-1), ignoreIndex);
  out = at::nll_loss_backward(wide(gradOutput), wide(self), target, wide(weight), reduction,
                              ignoreIndex, wide(totalWeight));
}
ACLNN(NLLLoss2d, (In, self), (TargetIn, target), (In, weight), (Reduction<int64_t>, reduction),
      (int64_t, ignoreIndex), (Out, out), (Out, totalWeightOut)) {
  check_targets(target, self.size(1), ignoreIndex);
  std::tie(out, totalWeightOut) =
      at::nll_loss2d_forward(wide(self), target, wide(weight), reduction, ignoreIndex);
}
ACLNN(NLLLoss2dBackward, (In, gradOutput), (In, self), (TargetIn, target), (In, weight),
      (Reduction<int64_t>, reduction), (int64_t, ignoreIndex), (In, totalWeight), (Out, out)) {
  check_targets(target, self.size(1), ignoreIndex);
  out = at::nll_loss2d_backward(wide(gradOutput), wide(self), target, wide(weight), reduction,
                                ignoreIndex, wide(totalWeight));
}
ACLNN(SoftMarginLoss, (In, self), (In, target), (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::soft_margin_loss(wide(self), wide(target), reduction);
}
ACLNN(SoftMarginLossBackward, (In, gradOutput), (In, self), (In, target),
      (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::soft_margin_loss_backward(wide(gradOutput), wide(self), wide(target), reduction);
}
ACLNN(MultilabelMarginLoss, (In, self), (IndexIn, target), (Reduction<int64_t>, reduction),
      (Out, out), (Out, isTarget)) {
  std::tie(out, isTarget) = at::multilabel_margin_loss_forward(wide(self), target, reduction);
  if (self.numel() == 0 && out->dim() == 0) {  // ATen leaves the memory as it is
    out = at::full({}, reduction.value() == at::Reduction::Mean ? NAN : 0, wide(self).options());
  }
}

ACLNN(BinaryCrossEntropy, (In, self), (In, target), (Optional<In>, weight),
      (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::binary_cross_entropy(wide(self), wide(target), wide(weight), reduction);
}
ACLNN(BinaryCrossEntropyBackward, (In, gradOutput), (In, self), (In, target),
      (Optional<In>, weight), (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::binary_cross_entropy_backward(wide(gradOutput), wide(self), wide(target), wide(weight),
                                          reduction);
}
ACLNN(BinaryCrossEntropyWithLogits, (In, self), (In, target), (Optional<In>, weightOptional),
      (Optional<In>, posWeightOptional), (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::binary_cross_entropy_with_logits(wide(self), wide(target), wide(weightOptional),
                                             wide(posWeightOptional), reduction);
}
// With s = sigmoid(self): weight (s - target), or with p, the weight of the positive class,
// weight ((1 - target + p target) s - p target).
ACLNN(BinaryCrossEntropyWithLogitsBackward, (In, gradOutput), (In, self), (In, target),
      (Optional<In>, weightOptional), (Optional<In>, posWeightOptional),
      (Reduction<int64_t>, reduction), (Out, out)) {
  const at::Tensor probability = at::sigmoid(wide(self));
  at::Tensor derivative = probability - wide(target);
  if (posWeightOptional) {
    const at::Tensor positive = wide(*posWeightOptional) * wide(target);
    derivative = (1 - wide(target) + positive) * probability - positive;
  }
  if (weightOptional) derivative = derivative * wide(*weightOptional);
  out = chain(derivative, gradOutput, reduction);
}

// ---- KlDiv: a fourth reduction divides the sum by the batch size, the first dimension.
ACLNN(KlDiv, (In, self), (In, target), (int64_t, reduction), (bool, logTarget), (Out, out)) {
  check_divergence_reduction(reduction);
  if (reduction != kBatchMean) {
    out = at::kl_div(wide(self), wide(target), reduction, logTarget);
    return;
  }
  const at::Tensor losses = at::kl_div(wide(self), wide(target), at::Reduction::None, logTarget);
  out = losses.sum() / batch_of(losses);
}
// The gradients have the common shape of self and target after broadcasting, and are summed to the
// shape of the argument.
ACLNN(KlDivBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (bool, logTarget), (Out, out)) {
  check_divergence_reduction(reduction);
  const std::vector<int64_t> shape = common_shape(gradOutput, self, target);
  const at::Tensor goal = wide(target).expand(shape);
  out = of_divergence(logTarget ? -goal.exp() : -goal, gradOutput, reduction, self);
}
// The gradient of target (log target - self), or of exp(target) (target - self) for a logarithmic
// target.
ACLNN(KlDivTargetBackward, (In, gradOutput), (In, self), (In, target), (int64_t, reduction),
      (bool, logTarget), (Out, gradTarget)) {
  check_divergence_reduction(reduction);
  const std::vector<int64_t> shape = common_shape(gradOutput, self, target);
  const at::Tensor goal = wide(target).expand(shape);
  const at::Tensor derivative = logTarget ? goal.exp() * (goal + 1 - wide(self))
                                          : (goal.log() + 1 - wide(self)).masked_fill(goal == 0, 0);
  gradTarget = of_divergence(derivative, gradOutput, reduction, target);
}
ACLNN(SoftmaxCrossEntropyWithLogits, (Floating<In>, features),
      (SameShape<Floating<In>>, labels, "features"), (SameDtype<Out>, loss, "features"),
      (SameDtype<Out>, backprop, "features")) {
  expect_dims("features", features, 2);
  std::tie(loss, backprop) = softmax_cross_entropy(features, labels);
}
// The derivative by target of the loss -weight (p target log s + (1 - target) log(1 - s)), with s =
// sigmoid(self), is -weight (self + (p - 1) log s).
ACLNN(BinaryCrossEntropyWithLogitsTargetBackward, (Floating<In>, gradOutput), (Floating<In>, self),
      (Floating<In>, target), (Optional<In>, weightOptional), (Optional<In>, posWeightOptional),
      (Reduction<int64_t>, reduction), (Out, gradTarget)) {
  expect_shape("target", target, self.sizes());
  check_expands("gradOutput", gradOutput, self);
  at::Tensor derivative = wide(self);
  if (posWeightOptional) {
    check_expands("posWeightOptional", *posWeightOptional, self);
    derivative = derivative + (wide(*posWeightOptional) - 1) * at::log_sigmoid(derivative);
  }
  if (weightOptional) {
    check_expands("weightOptional", *weightOptional, self);
    derivative = derivative * wide(*weightOptional);
  }
  gradTarget = chain(-derivative, gradOutput, reduction);
}

// Targets are 1 or -1.
ACLNN(HingeEmbeddingLoss, (Floating<In>, input), (Like<Floating<In>>, target, "input"),
      (double, margin), (char*, reduction), (SameDtype<Out>, loss, "input")) {
  const at::Tensor distance = wide(input);
  const at::Tensor missing = (margin.value() - distance).clamp_min(0);
  reduce(at::where(target == 1, distance, missing), reduction_of("reduction", reduction), loss);
}
ACLNN(HingeLoss, (Floating<In>, predict), (Like<Floating<In>>, target, "predict"),
      (Like<Out>, loss, "predict")) {
  loss = (1 - wide(target) * wide(predict)).clamp_min(0);
}
ACLNN(HingeLossGrad, (Floating<In>, predict), (Like<Floating<In>>, target, "predict"),
      (Like<Floating<In>>, gradOutput, "predict"), (Like<Out>, gradInput, "predict")) {
  const at::Tensor has_loss = 1 - wide(target) * wide(predict) > 0;
  gradInput = (-wide(target) * wide(gradOutput)).masked_fill(has_loss.logical_not(), 0);
}

}  // namespace aclnn_host::loss_classification_rows
