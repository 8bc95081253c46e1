// Losses and their gradients. `reduction` is "none", "mean" or "sum".

#include <ATen/core/Reduction.h>

#include "cann/named_ops/operator.h"
#include "cann/rows/loss/reductions.h"
#include "cann/rows/loss/targets.h"

namespace aclnn_host::named_loss {

namespace {

int64_t reduction_of(const std::optional<std::string>& attribute) {
  return aclnn_host::reduction_of("reduction", attribute.value_or("mean"));
}

// Broadcasts both tensors, because ATen divides a mean by the number of elements of the first one.
std::pair<at::Tensor, at::Tensor> of_one_shape(const at::Tensor& a, const at::Tensor& b) {
  const auto both = at::broadcast_tensors({wide(a), wide(b)});
  return {both[0], both[1]};
}

// Requires one element, or one for each of x.
void expect_gradient(const char* name, const at::Tensor& gradient, const at::Tensor& x) {
  EXPECT(gradient.numel() == 1 || gradient.sizes() == x.sizes(), name, " has shape ",
         gradient.sizes(), ", expected one element or ", x.sizes(), ", the shape of x");
}

// Reshapes the result to y, which may have another number of dimensions of size 1.
at::Tensor shaped_as(const Output& y, const at::Tensor& result) {
  return result.numel() == y->numel() ? result.view(y->sizes()) : result;
}

}  // namespace

NAMED_OPERATOR(MseLoss, (Floating<In>, predict), (Floating<In>, label), (Out, y),
               (Attribute<std::string>, reduction)) {
  y = shaped_as(y, at::mse_loss(wide(predict), wide(label), reduction_of(reduction)));
}
NAMED_OPERATOR(MseLossGrad, (Floating<In>, predict), (Floating<In>, label), (Floating<In>, dout),
               (Out, y), (Attribute<std::string>, reduction)) {
  y = chain(2 * (wide(predict) - wide(label)), dout, reduction_of(reduction));
}
NAMED_OPERATOR(LpLoss, (Floating<In>, predict), (Floating<In>, label), (Out, y),
               (Attribute<int64_t>, p), (Attribute<std::string>, reduction)) {
  EXPECT(p.value_or(1) == 1, "p is ", *p, ", expected 1");
  y = shaped_as(y, at::l1_loss(wide(predict), wide(label), reduction_of(reduction)));
}
NAMED_OPERATOR(L1LossGrad, (Floating<In>, grads), (Floating<In>, predict), (Floating<In>, label),
               (Out, y), (Attribute<std::string>, reduction)) {
  y = chain(at::sign(wide(predict) - wide(label)), grads, reduction_of(reduction));
}
NAMED_OPERATOR(SmoothL1LossV2, (Floating<In>, predict), (Floating<In>, label), (Out, loss),
               (Attribute<double>, sigma), (Attribute<std::string>, reduction)) {
  loss = shaped_as(loss, at::smooth_l1_loss(wide(predict), wide(label), reduction_of(reduction),
                                            sigma.value_or(1)));
}
NAMED_OPERATOR(SmoothL1LossGradV2, (Floating<In>, predict), (Floating<In>, label),
               (Floating<In>, dout), (Out, gradient), (Attribute<double>, sigma),
               (Attribute<std::string>, reduction)) {
  const auto [x, target] = of_one_shape(predict, label);
  gradient = at::smooth_l1_loss_backward(wide(dout), x, target, reduction_of(reduction),
                                         sigma.value_or(1));
}
NAMED_OPERATOR(SoftMarginLoss, (Floating<In>, input_x), (Floating<In>, input_y), (Out, output_z),
               (Attribute<std::string>, reduction)) {
  output_z = shaped_as(output_z,
                       at::soft_margin_loss(wide(input_x), wide(input_y), reduction_of(reduction)));
}
NAMED_OPERATOR(SoftMarginLossGrad, (Floating<In>, predict), (Floating<In>, label),
               (Floating<In>, dout), (Out, gradient), (Attribute<std::string>, reduction)) {
  const auto [x, target] = of_one_shape(predict, label);
  gradient = at::soft_margin_loss_backward(wide(dout), x, target, reduction_of(reduction));
}
NAMED_OPERATOR(BinaryCrossEntropy, (Floating<In>, x), (Floating<In>, y), (Optional<In>, weight),
               (Out, output), (Attribute<std::string>, reduction)) {
  const at::Tensor loss =
      at::binary_cross_entropy(wide(x), wide(y), wide(weight), reduction_of(reduction));
  output = shaped_as(output, loss);
}
NAMED_OPERATOR(BinaryCrossEntropyGrad, (Floating<In>, x), (Floating<In>, y),
               (Floating<In>, grad_output), (Optional<In>, weight), (Out, output),
               (Attribute<std::string>, reduction)) {
  expect_shape("y", y, x.sizes());
  expect_gradient("grad_output", grad_output, x);
  output = at::binary_cross_entropy_backward(wide(grad_output), wide(x), wide(y), wide(weight),
                                             reduction_of(reduction));
}
NAMED_OPERATOR(SigmoidCrossEntropyWithLogitsV2, (Floating<In>, predict), (Floating<In>, target),
               (Optional<In>, weight), (Optional<In>, pos_weight), (Out, loss),
               (Attribute<std::string>, reduction)) {
  loss = shaped_as(loss,
                   at::binary_cross_entropy_with_logits(wide(predict), wide(target), wide(weight),
                                                        wide(pos_weight), reduction_of(reduction)));
}
// The derivative of -w (p t log s + (1 - t) log(1 - s)), where s is the sigmoid of the logits.
NAMED_OPERATOR(SigmoidCrossEntropyWithLogitsGradV2, (Floating<In>, predict), (Floating<In>, target),
               (Floating<In>, dout), (Optional<In>, weight), (Optional<In>, pos_weight),
               (Out, gradient), (Attribute<std::string>, reduction)) {
  const at::Tensor s = at::sigmoid(wide(predict)), t = wide(target);
  at::Tensor each = s - t;
  if (pos_weight) {
    const at::Tensor p = wide(*pos_weight) * t;
    each = (p + 1 - t) * s - p;
  }
  if (weight) each = each * wide(*weight);
  gradient = chain(each, dout, reduction_of(reduction));
}
NAMED_OPERATOR(KLDiv, (Floating<In>, x), (Floating<In>, target), (Out, y),
               (Attribute<std::string>, reduction), (Attribute<bool>, log_target)) {
  const std::string mode = reduction.value_or("mean");
  const bool is_log = log_target.value_or(false);
  if (mode == "batchmean") {
    EXPECT(x.dim() > 0, "x has no dimensions, expected a batch as the first");
    const at::Tensor sum = at::kl_div(wide(x), wide(target), at::Reduction::Sum, is_log);
    y = shaped_as(y, sum / static_cast<double>(x.size(0)));
    return;
  }
  y = shaped_as(y, at::kl_div(wide(x), wide(target), reduction_of(mode), is_log));
}
NAMED_OPERATOR(KlDivLossGrad, (Floating<In>, grad),
               (Unused<Floating<In>>, input, "the gradient does not depend on it"),
               (Floating<In>, target), (Out, y), (Attribute<std::string>, reduction),
               (Attribute<bool>, log_target)) {
  const at::Tensor t = wide(target);
  const at::Tensor each =
      log_target.value_or(false) ? -at::exp(t) : at::where(t > 0, -t, c10::Scalar(0.0));
  y = chain(each, grad, reduction_of(reduction));
}
NAMED_OPERATOR(NLLLoss, (Floating<In>, x), (IndexIn, target), (Optional<In>, weight), (Out, y),
               (Out, total_weight), (Attribute<std::string>, reduction),
               (Attribute<int64_t>, ignore_index)) {
  const auto [loss, total] = at::nll_loss_forward(
      wide(x), target, wide(weight), reduction_of(reduction), ignore_index.value_or(-100));
  y = shaped_as(y, loss);
  total_weight = shaped_as(total_weight, total);
}
NAMED_OPERATOR(NLLLossGrad, (Floating<In>, x), (Floating<In>, y_grad), (IndexIn, target),
               (Optional<In>, weight), (Floating<In>, total_weight), (Out, x_grad),
               (Attribute<std::string>, reduction), (Attribute<int64_t>, ignore_index)) {
  const int64_t mode = reduction_of(reduction);
  expect_dims("x", x, 1, 2);
  check_targets(target, x.size(-1), ignore_index.value_or(-100));
  if (mode != at::Reduction::None) expect_one("y_grad", y_grad);
  expect_one("total_weight", total_weight);
  const at::Tensor grads = mode == at::Reduction::None ? y_grad : y_grad.reshape({});
  x_grad = at::nll_loss_backward(wide(grads), wide(x), target, wide(weight), mode,
                                 ignore_index.value_or(-100), wide(total_weight).reshape({}));
}
NAMED_OPERATOR(MultilabelMarginLoss, (Floating<In>, x), (IndexIn, target), (Out, y),
               (Out, is_target), (Attribute<std::string>, reduction)) {
  const auto [loss, marks] =
      at::multilabel_margin_loss_forward(wide(x), target, reduction_of(reduction));
  y = shaped_as(y, loss);
  is_target.copy(marks);
}
// Computes the loss of each row, and its gradient.
NAMED_OPERATOR(SoftmaxCrossEntropyWithLogits, (Floating<In>, features), (Floating<In>, labels),
               (Out, loss), (Out, backprop)) {
  std::tie(loss, backprop) = softmax_cross_entropy(features, labels);
}

}  // namespace aclnn_host::named_loss
