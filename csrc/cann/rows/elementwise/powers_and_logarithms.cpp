// Powers, roots, exponentials and logarithms.

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_powers_and_logarithms_rows {

namespace {

// Converts integers to FLOAT.
at::Tensor with_fractions(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? self.to(at::kFloat) : self;
}

at::Tensor wide_xlogy(const at::Tensor& self, const at::Tensor& other) {
  return at::xlogy(wide(self), wide(other));
}
at::Tensor wide_xlogy(const at::Tensor& self, const c10::Scalar& other) {
  return at::xlogy(wide(self), other);
}

at::Tensor wide_rsqrt(const at::Tensor& self) {
  return at::rsqrt(wide(self));
}

}  // namespace

ACLNN(PowTensorTensor, (In, self), (In, exponent), (Out, out)) {
  out = at::pow(self, exponent);
}
ACLNN(PowTensorScalar, (In, self), (Number, exponent), (Out, out)) {
  out = at::pow(wide(self), exponent);
}
ACLNN(PowScalarTensor, (Number, self), (In, exponent), (Out, out)) {
  out = at::pow(self, wide(exponent));
}
ACLNN(InplacePowTensorTensor, (InOut, selfRef), (In, exponent)) {
  selfRef = at::pow(selfRef, exponent);
}
ACLNN(InplacePowTensorScalar, (InOut, selfRef), (Number, exponent)) {
  selfRef = at::pow(wide(selfRef), exponent);
}
ACLNN(Square, (In, self), (SameDtype<Out>, out, "self")) {
  out = at::mul(self, self);
}

ACLNN_ELEMENTWISE(Sqrt, at::sqrt)
// y is the result of sqrt. The gradient is 0 if dy is 0, even if y is 0.
ACLNN(SqrtBackward, (Floating<In>, y), (Like<Floating<In>>, dy, "y"), (Like<Out>, z, "y")) {
  const at::Tensor gradient = wide(dy);
  z = (0.5 * gradient / wide(y)).masked_fill(gradient == 0, 0);
}

ACLNN_UNARY(Rsqrt, wide_rsqrt)
ACLNN_INPLACE_UNARY(Rsqrt, wide_rsqrt)
ACLNN_ELEMENTWISE(Exp, at::exp)
ACLNN_ELEMENTWISE(Exp2, at::exp2)
ACLNN_ELEMENTWISE(Expm1, at::expm1)
ACLNN_ELEMENTWISE(Log, at::log)
ACLNN_ELEMENTWISE(Log10, at::log10)
ACLNN_ELEMENTWISE(Log1p, at::log1p)
ACLNN_ELEMENTWISE(Log2, at::log2)

ACLNN(LogAddExp, (In, self), (In, other), (Out, out)) {
  out = at::logaddexp(with_fractions(self), with_fractions(other));
}
ACLNN(LogAddExp2, (In, self), (In, other), (Out, out)) {
  out = at::logaddexp2(with_fractions(self), with_fractions(other));
}
ACLNN_BINARY(XLogYTensor, wide_xlogy)
ACLNN_BINARY_NUMBER(XLogYScalarOther, wide_xlogy)
ACLNN(XLogYScalarSelf, (Number, self), (In, other), (Out, out)) {
  out = at::xlogy(self, wide(other));
}
ACLNN_INPLACE_BINARY(XLogYTensor, wide_xlogy)
ACLNN_INPLACE_BINARY_NUMBER(XLogYScalarOther, wide_xlogy)

ACLNN(Xlog1py, (Floating<In>, x), (SameDtype<Floating<In>>, y, "x"), (SameDtype<Out>, z, "x")) {
  z = at::special_xlog1py(wide(x), wide(y));
}

}  // namespace aclnn_host::elementwise_powers_and_logarithms_rows
