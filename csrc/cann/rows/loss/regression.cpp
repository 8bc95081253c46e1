// Losses of numbers, and their gradients. Reductions are numbered as in ATen: 0 none, 1 mean, 2
// sum.

#include <numbers>

#include <ATen/core/Reduction.h>

#include "cann/rows/loss/reductions.h"
#include "cann/rows/row.h"

namespace aclnn_host::loss_regression_rows {

namespace {

// ---- the negative log-likelihood of a normal distribution

// Refuses a target that has not the input's shape, except for a size of 1 in one of the dimensions.
void check_target(const at::Tensor& target, const at::Tensor& input) {
  int64_t differences = target.dim() == input.dim() ? 0 : 2;
  for (int64_t dim = 0; differences < 2 && dim < input.dim(); ++dim) {
    if (target.size(dim) == input.size(dim)) continue;
    differences += target.size(dim) == 1 ? 1 : 2;
  }
  EXPECT(differences < 2, "target has shape ", target.sizes(), ", expected ", input.sizes(),
         ", or 1 in one of the dimensions");
}

// The variance, broadcastable to the input. It may lack the last dimension or be one number.
at::Tensor variance_of(const at::Tensor& var, const at::Tensor& input) {
  if (var.sizes() == input.sizes()) return wide(var);
  if (input.dim() > 0) {
    const auto last = static_cast<size_t>(input.dim()) - 1;
    const at::IntArrayRef rows = input.sizes().slice(0, last);
    if (var.sizes() == rows) return wide(var).unsqueeze(-1);
    if (var.dim() == input.dim() && var.size(-1) == 1 && var.sizes().slice(0, last) == rows) {
      return wide(var);
    }
  }
  EXPECT(var.numel() == 1, "var has shape ", var.sizes(), ", expected ", input.sizes(),
         ", 1 in the last dimension, no last dimension, or one element");
  return wide(var).reshape({});
}

void check_eps(double eps) {
  EXPECT(std::isfinite(eps) && eps > 0, "eps is ", eps, ", expected a finite number more than 0");
}

}  // namespace

ACLNN(MseLoss, (In, self), (In, target), (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::mse_loss(wide(self), wide(target), reduction);
}

// Behaviour of MseLossOut: The mean and the sum are over dimension 0.
ACLNN(MseLossOut, (Floating<In>, self), (Floating<In>, target), (Reduction<int64_t>, reduction),
      (Out, out)) {
  const at::Tensor squares = (wide(self) - wide(target)).square();
  const int64_t mode = reduction;
  out = mode == at::Reduction::None   ? squares
        : mode == at::Reduction::Mean ? squares.mean(0)
                                      : squares.sum(0);
}
ACLNN(MseLossBackward, (In, gradOutput), (In, self), (In, target), (Reduction<int64_t>, reduction),
      (Out, gradInput)) {
  gradInput = at::mse_loss_backward(wide(gradOutput), wide(self), wide(target), reduction);
}
// Behaviour of MseLossGrad: The order is predict, label, dout, as in the operator's definition and
// the vendor's sample. The document has dout first.
ACLNN(MseLossGrad, (Floating<In>, predict), (SameDtype<Floating<In>>, label, "predict"),
      (SameDtype<Floating<In>>, dout, "predict"), (char*, reductionOptional), (Out, yOut)) {
  const auto reduction = reduction_of("reductionOptional", reductionOptional);
  expect_dims("predict", predict, 0, 8);
  expect_dims("label", label, 0, 8);
  expect_dims("dout", dout, 0, 8);
  const at::Tensor gradient = wide(dout) * (wide(predict) - wide(label)) * 2;
  yOut = reduction == at::Reduction::Mean ? gradient / predict.numel() : gradient;
}

ACLNN(L1Loss, (In, self), (In, target), (Reduction<int64_t>, reduction), (Out, out)) {
  out = at::l1_loss(wide(self), wide(target), reduction);
}
ACLNN(L1LossBackward, (In, gradOutput), (In, self), (In, target), (Reduction<int64_t>, reduction),
      (Out, gradInput)) {
  gradInput = chain((wide(self) - wide(target)).sign(), gradOutput, reduction);
}
ACLNN(SmoothL1Loss, (Floating<In>, self), (Floating<In>, target), (Reduction<int64_t>, reduction),
      (float, beta), (Out, result)) {
  result = at::smooth_l1_loss(wide(self), wide(target), reduction, beta);
}
ACLNN(SmoothL1LossBackward, (Floating<In>, gradOut), (Floating<In>, self), (Floating<In>, target),
      (Reduction<int64_t>, reduction), (float, beta), (Out, gradInput)) {
  gradInput = at::smooth_l1_loss_backward(wide(gradOut), wide(self), wide(target), reduction, beta);
}
ACLNN(HuberLoss, (Floating<In>, predictions), (Like<Floating<In>>, targets, "predictions"),
      (float, delta), (Like<Out>, loss, "predictions")) {
  EXPECT(delta > 0, "delta is ", delta, ", expected more than 0");
  loss = at::huber_loss(wide(predictions), wide(targets), at::Reduction::None, delta.value());
}
ACLNN(LpLoss, (Floating<In>, predict), (Like<Floating<In>>, label, "predict"), (int64_t, p),
      (const char*, reduction), (SameDtype<Out>, out, "predict")) {
  expect_one_of("p", p, {1});
  EXPECT(!reduction.empty(), "reduction is empty, expected none, mean or sum");
  reduce(at::abs(wide(predict) - wide(label)), reduction_of("reduction", reduction), out);
}

ACLNN(GaussianNllLoss, (Floating<In>, input), (SameDtype<Floating<In>>, target, "input"),
      (SameDtype<Floating<In>>, var, "input"), (bool, full), (double, eps),
      (char*, reductionOptional), (SameDtype<Out>, out, "input")) {
  check_target(target, input);
  check_eps(eps);
  const auto reduction = reduction_of("reductionOptional", reductionOptional);
  const at::Tensor variance = variance_of(var, input).clamp_min(eps.value());
  const at::Tensor difference = wide(input) - wide(target);
  at::Tensor losses = 0.5 * (at::log(variance) + difference.square() / variance);
  if (full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  reduce(losses, reduction, out);
}
// A variance less than eps has the gradient at eps.
ACLNN(GaussianNllLossGrad, (SameDtype<Floating<In>>, gradOutput, "input"), (Floating<In>, input),
      (SameDtype<Floating<In>>, target, "input"), (SameDtype<Floating<In>>, var, "input"),
      (Unused<bool>, full, "the gradient does not depend on it"), (float, eps),
      (const char*, reduction), (Like<Out>, gradInput, "input"), (Like<Out>, gradVar, "var")) {
  check_target(target, input);
  check_eps(eps);
  const auto mode = reduction_of("reduction", reduction);
  at::Tensor gradient = wide(gradOutput);
  if (mode == at::Reduction::None) {
    expect_shape("gradOutput", gradOutput, input.sizes());
  } else {
    EXPECT(gradOutput.numel() == 1, "gradOutput has shape ", gradOutput.sizes(),
           ", expected one element for a reduced loss");
    gradient = gradient.reshape({});
  }
  if (mode == at::Reduction::Mean) gradient = gradient / input.numel();
  const at::Tensor given = variance_of(var, input);
  const at::Tensor variance = given.clamp_min(eps.value());
  const at::Tensor difference = wide(input) - wide(target);
  const at::Tensor by_variance =
      gradient * 0.5 * (1 / variance - difference.square() / variance.square());
  const at::Tensor by_input = gradient * difference / variance;
  gradInput = by_input;
  gradVar = by_variance.expand(input.sizes()).sum_to_size(given.sizes()).reshape(var.sizes());
}

}  // namespace aclnn_host::loss_regression_rows
