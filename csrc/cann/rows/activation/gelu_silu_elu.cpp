// GELU, SiLU and ELU, and their gradients.

#include "cann/rows/row.h"

namespace aclnn_host::activation_gelu_silu_elu_rows {

namespace {

double beta_of(const std::optional<c10::Scalar>& beta) {
  EXPECT(!beta || !beta->isComplex(), "betaOptional is complex, expected a real number");
  return beta ? beta->toDouble() : 1;
}

// Checks CELU's alpha, by which it divides.
void expect_divisor(const c10::Scalar& alpha) {
  EXPECT(alpha.toComplexDouble() != 0.0, "alpha is 0, expected a number other than 0");
}

}  // namespace

// The approximation x * sigmoid(1.702 x).
ACLNN(FastGelu, (Floating<In>, self), (Out, out)) {
  const at::Tensor x = wide(self);
  out = at::mul(x, at::sigmoid(at::mul(x, 1.702)));
}
// The formula takes the sign of 0 as 1.
ACLNN(FastGeluV2, (Floating<In>, x), (Like<Out>, out, "x")) {
  const at::Tensor value = wide(x);
  const at::Tensor distance = at::abs(0.7071 * value).clamp_max(1.769) - 1.769;
  const at::Tensor half = -0.1444 * distance.square() + 0.5;
  out = value * (at::where(value + 1e-12 < 0, -half, half) + 0.5);
}
ACLNN(FastGeluBackward, (Floating<In>, gradOutput), (Floating<In>, self), (Out, gradInput)) {
  const at::Tensor scaled = at::mul(wide(self), 1.702);
  gradInput = at::mul(wide(gradOutput), at::silu_backward(at::ones_like(scaled), scaled));
}
// x sigmoid(beta x); beta is 1 if it is null. The derivative by x is that of SiLU at beta x.
ACLNN(Swish, (Floating<In>, self), (Optional<Number>, betaOptional), (Like<Out>, out, "self")) {
  const double beta = beta_of(betaOptional);
  const at::Tensor x = wide(self);
  out = beta == 1 ? at::silu(x) : at::mul(x, at::sigmoid(x * beta));
}
ACLNN(SwishBackward, (Like<Floating<In>>, gradOutput, "self"), (Floating<In>, self),
      (Optional<Number>, betaOptional), (Like<Out>, gradInput, "self")) {
  gradInput = at::silu_backward(wide(gradOutput), wide(self) * beta_of(betaOptional));
}

ACLNN(EluV2, (Floating<In>, self), (Number, alpha), (Number, scale), (Number, inputScale),
      (Like<Out>, out, "self")) {
  out = at::elu(wide(self), alpha, scale, inputScale);
}

ACLNN(Celu, (Floating<In>, self), (Number, alpha), (Out, out)) {
  expect_divisor(alpha);
  out = at::celu(self, alpha);
}
ACLNN(InplaceCelu, (Floating<InOut>, selfRef), (Number, alpha)) {
  expect_divisor(alpha);
  selfRef = at::celu(selfRef, alpha);
}

}  // namespace aclnn_host::activation_gelu_silu_elu_rows
