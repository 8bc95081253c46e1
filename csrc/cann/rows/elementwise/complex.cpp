// Complex numbers: made of real and imaginary parts, and split into them.

#include "cann/rows/row.h"

namespace aclnn_host::elementwise_complex_rows {

ACLNN(Complex, (In, real), (In, imag), (Out, out)) {
  out = at::complex(real, imag);
}
ACLNN(Polar, (In, input), (In, angle), (Out, out)) {
  out = at::polar(input, angle);
}
ACLNN(Real, (In, self), (Out, out)) {
  const at::Tensor real = at::real(self);
  expect_dtype(out, real);
  out = real;
}

ACLNN_UNARY(AngleV2, at::angle)

}  // namespace aclnn_host::elementwise_complex_rows
