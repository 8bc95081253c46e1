// The sigmoid, the hyperbolic tangent, their variants and gradients.

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::activation_sigmoid_rows {

namespace {

// The division of integers truncates, so clamp(x + 3, 0, 6) / 6 is 1 from x = 3 on and 0 below.
at::Tensor hard_sigmoid(const at::Tensor& x) {
  if (x.scalar_type() == at::kInt) return (x >= 3).to(at::kInt);
  EXPECT(at::isFloatingType(x.scalar_type()), "self has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT, FLOAT16, BFLOAT16 or INT32");
  return at::hardsigmoid(wide(x));
}

}  // namespace

ACLNN_ELEMENTWISE(Sigmoid, at::sigmoid)

// Computes a gradient from the incoming gradient and a tensor that the forward pass saved.
#define ACLNN_BACKWARD(Name, saved, call)                                          \
  ACLNN(Name, (FloatingOrComplex<In>, gradOutput), (FloatingOrComplex<In>, saved), \
        (Out, gradInput)) {                                                        \
    gradInput = call(wide(gradOutput), wide(saved));                               \
  }
ACLNN_BACKWARD(SigmoidBackward, output, at::sigmoid_backward)
ACLNN_UNARY_OF(Floating<In>, LogSigmoid, at::log_sigmoid)
ACLNN(LogSigmoidForward, (Floating<In>, self), (Out, out), (Out, buffer)) {
  at::Tensor saved;
  std::tie(out, saved) = at::log_sigmoid_forward(self);
  if (saved.sizes() == buffer->sizes()) buffer = saved;
}
ACLNN(LogSigmoidBackward, (Floating<In>, gradOutput), (Floating<In>, self),
      (Unused<Floating<In>>, buffer, "CANN does not use it"), (Out, gradInput)) {
  gradInput = at::log_sigmoid_backward(wide(gradOutput), wide(self),
                                       std::get<1>(at::log_sigmoid_forward(wide(self))));
}
ACLNN(HardsigmoidV2, (In, self), (Like<Out>, out, "self")) {
  out = hard_sigmoid(self);
}
ACLNN(InplaceHardsigmoidV2, (InOut, self)) {
  self = hard_sigmoid(self);
}
ACLNN_ELEMENTWISE(Tanh, at::tanh)
ACLNN_BACKWARD(TanhBackward, output, at::tanh_backward)
// y is the result of tanh.
ACLNN(TanhGrad, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, dx, "y")) {
  dx = wide(dy) * (1 - wide(y) * wide(y));
}
ACLNN(Softsign, (Floating<In>, self), (Like<Out>, out, "self")) {
  out = wide(self) / (1 + at::abs(wide(self)));
}
ACLNN(SoftsignBackward, (Floating<In>, gradients), (Like<Floating<In>>, features, "gradients"),
      (Like<Out>, out, "gradients")) {
  out = wide(gradients) / (1 + at::abs(wide(features))).square();
}

}  // namespace aclnn_host::activation_sigmoid_rows
