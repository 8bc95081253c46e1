// Gradients of inverse functions: of trigonometric and hyperbolic ones, and of the square root.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/sqrt.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::inverse_function_gradients_rows {

namespace {

// A gradient, what it is computed from and the result have one dtype and one shape.
void check_gradient(const char* gradient_name, const at::Tensor& gradient, const at::Tensor& x,
                    const Output& result) {
  expect_like(gradient_name, gradient, x);
  expect_like(result.name(), result, x);
}

// sqrt(1 - x^2), which is NaN where x is no value of a sine.
at::Tensor cosine_of_sine(const at::Tensor& x) {
  const at::Tensor sine = wide(x);
  return at::sqrt(1 - sine * sine);
}

}  // namespace

ACLNN(AcosGrad, (FloatIn, y_grad), (FloatIn, x), (Out, x_grad)) {
  check_gradient("y_grad", y_grad, x, x_grad);
  x_grad = -wide(y_grad) / cosine_of_sine(x);
}
// y is the input of acos.
ACLNN(AcosGradV2, (FloatIn, y), (FloatIn, dy), (Out, z)) {
  check_gradient("dy", dy, y, z);
  z = -wide(dy) / cosine_of_sine(y);
}
// y is the result of acosh.
ACLNN(AcoshGrad, (FloatIn, y), (FloatIn, dy), (Out, dx)) {
  check_gradient("dy", dy, y, dx);
  EXPECT(y.numel() > 0, "y has shape ", y.sizes(), ", expected at least one element");
  dx = wide(dy) / at::sinh(wide(y));
}
// y is the input of asin.
ACLNN(AsinGrad, (FloatIn, y), (FloatIn, dy), (Out, z)) {
  check_gradient("dy", dy, y, z);
  z = wide(dy) / cosine_of_sine(y);
}
// y is the result of asinh.
ACLNN(AsinhGrad, (FloatIn, y), (FloatIn, dy), (Out, z)) {
  check_gradient("dy", dy, y, z);
  z = wide(dy) / at::cosh(wide(y));
}
ACLNN(AtanGrad, (FloatIn, x), (FloatIn, dy), (Out, dx)) {
  check_gradient("dy", dy, x, dx);
  const at::Tensor tangent = wide(x);
  dx = wide(dy) / (1 + tangent * tangent);
}
// y is the result of sqrt. Where dy is 0 the gradient is 0, even if y is 0, too.
ACLNN(SqrtBackward, (FloatIn, y), (FloatIn, dy), (Out, z)) {
  check_gradient("dy", dy, y, z);
  const at::Tensor gradient = wide(dy);
  z = (0.5 * gradient / wide(y)).masked_fill(gradient == 0, 0);
}

}  // namespace aclnn_host::inverse_function_gradients_rows
