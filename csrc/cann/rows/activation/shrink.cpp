// Piecewise linear functions: shrinking, clamping, and the step function.

#include "cann/rows/activation/shrinking.h"
#include "cann/rows/row.h"

namespace aclnn_host::activation_shrink_rows {

namespace {

// Checks the threshold of Softshrink and its gradient. (Hardshrink reads a negative one as 0.)
void expect_threshold(const c10::Scalar& lambd) {
  EXPECT(!(lambd.toDouble() < 0), "lambd is ", lambd, ", expected 0 or more");
}

}  // namespace

ACLNN(Hardshrink, (Floating<In>, self), (Number, lambd), (Out, out)) {
  out = hard_shrink(self, self, lambd);
}
// NaN becomes 0; ATen's hardshrink keeps it.
ACLNN(HardShrink, (Floating<In>, self), (Number, lambd), (Like<Out>, out, "self")) {
  const at::Tensor x = wide(self);
  out = x.masked_fill((x > lambd).logical_or(x < -lambd).logical_not(), 0);
}
// Behaviour of HardshrinkBackward, HardtanhBackward, SoftshrinkBackward: The gradient is gradOutput
// if self is NaN.
ACLNN(HardshrinkBackward, (Floating<In>, gradOutput), (Floating<In>, self), (Number, lambd),
      (Out, gradInput)) {
  gradInput = hard_shrink(gradOutput, self, lambd);
}
// Behaviour of Softshrink: Zeros are positive.
ACLNN(Softshrink, (Floating<In>, self), (Number, lambd), (Out, out)) {
  expect_threshold(lambd);
  out = soft_shrink(self, lambd);
}
ACLNN(SoftshrinkBackward, (Floating<In>, gradOutput), (Floating<In>, self), (Number, lambd),
      (Out, gradInput)) {
  expect_threshold(lambd);
  gradInput = hard_shrink(gradOutput, self, lambd);
}
// x - bias above lambd, x + bias below -lambd, and 0 between.
ACLNN(Shrink, (Floating<In>, self), (Number, lambd), (Number, bias), (Out, out)) {
  const double limit = lambd.toDouble();
  EXPECT(!(limit < 0), "lambd is ", limit, ", expected 0 or more");
  const at::Tensor x = wide(self);
  out = at::where(x > limit, x - bias, at::where(x < -limit, x + bias, c10::Scalar(0.0)));
}
ACLNN(Hardtanh, (In, self), (Number, clipValueMin), (Number, clipValueMax), (Out, out)) {
  out = at::hardtanh(self, clipValueMin, clipValueMax);
}
ACLNN(InplaceHardtanh, (InOut, selfRef), (Number, clipValueMin), (Number, clipValueMax)) {
  selfRef = at::hardtanh(selfRef, clipValueMin, clipValueMax);
}
// Deviation of HardtanhBackward: At min and max the gradient is 0, as in CANN's kernel; the
// document has gradOutput there.
ACLNN(HardtanhBackward, (Like<Floating<In>>, gradOutput, "self"), (Floating<In>, self),
      (Number, min), (Number, max), (Out, out)) {
  out = hardtanh_gradient(gradOutput, self, min, max);
}

ACLNN(Heaviside, (Floating<In>, input), (SameDtype<Floating<In>>, values, "input"),
      (SameDtype<Out>, out, "input")) {
  out = at::heaviside(input, values);
}

}  // namespace aclnn_host::activation_shrink_rows
