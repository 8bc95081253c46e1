// Trigonometric and hyperbolic functions, their inverses, and gradients. The hyperbolic tangent is
// in activation/sigmoid.cpp.

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_trigonometric_rows {

namespace {

// Integers and BOOL have FLOAT results.
at::ScalarType floating(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? at::kFloat : dtype;
}

// DOUBLE has FLOAT results, too.
at::ScalarType at_most_float(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kFloat : floating(dtype);
}

void arcsinh(const at::Tensor& x, Output& out) {
  expect_dtype("out", out, at_most_float(x.scalar_type()));
  out = at::asinh(x).to(out->scalar_type());
}

// sqrt(1 - x^2); NaN if x is outside [-1, 1].
at::Tensor cosine_of_sine(const at::Tensor& x) {
  const at::Tensor sine = wide(x);
  return at::sqrt(1 - sine * sine);
}

}  // namespace

ACLNN_ELEMENTWISE(Sin, at::sin)
ACLNN_ELEMENTWISE(Sinc, at::sinc)
ACLNN_ELEMENTWISE(Cos, at::cos)
ACLNN_ELEMENTWISE(Tan, at::tan)
ACLNN_ELEMENTWISE(Asin, at::asin)
// y is the input of asin.
ACLNN(AsinGrad, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, z, "y")) {
  z = wide(dy) / cosine_of_sine(y);
}

ACLNN(AsinWithAgent, (In, x), (Out, y)) {
  expect_dtype("y", y, floating(x.scalar_type()));
  y = at::asin(x);
}
ACLNN_ELEMENTWISE(Acos, at::acos)
ACLNN(AcosGrad, (Like<Floating<In>>, y_grad, "x"), (Floating<In>, x), (Like<Out>, x_grad, "x")) {
  x_grad = -wide(y_grad) / cosine_of_sine(x);
}
// y is the input of acos.
ACLNN(AcosGradV2, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, z, "y")) {
  z = -wide(dy) / cosine_of_sine(y);
}

ACLNN_ELEMENTWISE(Atan, at::atan)
ACLNN(AtanGrad, (Floating<In>, x), (Like<Floating<In>>, dy, "x"), (Like<Out>, dx, "x")) {
  const at::Tensor tangent = wide(x);
  dx = wide(dy) / (1 + tangent * tangent);
}

ACLNN_BINARY(Atan2, at::atan2)
ACLNN_INPLACE_BINARY(Atan2, at::atan2)
ACLNN_ELEMENTWISE(Sinh, at::sinh)
ACLNN_ELEMENTWISE(Cosh, at::cosh)
ACLNN_ELEMENTWISE(Asinh, at::asinh)
ACLNN(AsinhV2, (In, x), (Out, out)) {
  arcsinh(x, out);
}
// y is the result of asinh.
ACLNN(AsinhGrad, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, z, "y")) {
  z = wide(dy) / at::cosh(wide(y));
}

ACLNN(AsinhWithAgent, (In, x), (Out, out)) {
  arcsinh(x, out);
}
ACLNN_ELEMENTWISE(Acosh, at::acosh)
// y is the result of acosh.
ACLNN(AcoshGrad, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, dx, "y")) {
  expect_elements("y", y);
  dx = wide(dy) / at::sinh(wide(y));
}

ACLNN_ELEMENTWISE(Atanh, at::atanh)

}  // namespace aclnn_host::elementwise_trigonometric_rows
