// Functions of one tensor, element by element.

#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/acosh.h>
#include <ATen/ops/angle.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/asinh.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/atanh.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/frac.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/isneginf.h>
#include <ATen/ops/isposinf.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/logit_backward.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinc.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/special_ndtri.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::pointwise_rows {

namespace {

bool is_integer(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
}

// Integers have no fraction, which ATen refuses to say.
at::Tensor fraction(const at::Tensor& self) {
  return is_integer(self) ? at::zeros_like(self) : at::frac(self);
}

at::Tensor wide_rsqrt(const at::Tensor& self) {
  return at::rsqrt(wide(self));
}

// Rounded to so many decimals; of integers only a negative number of them takes digits away.
at::Tensor rounded(const at::Tensor& self, int64_t decimals) {
  if (!is_integer(self)) return at::round(wide(self), decimals);
  if (decimals >= 0) return self;
  return at::round(self.to(at::kDouble), decimals).to(self.scalar_type());
}

std::optional<double> epsilon(double eps) {
  return eps < 0 ? std::nullopt : std::optional(eps);
}

// Of integers and BOOL the result is FLOAT.
at::ScalarType floating(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? at::kFloat : dtype;
}

// Of DOUBLE it is FLOAT, too.
at::ScalarType at_most_float(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kFloat : floating(dtype);
}

void arcsinh(const at::Tensor& x, Output& out) {
  expect_dtype("out", out, at_most_float(x.scalar_type()));
  out = at::asinh(x).to(out->scalar_type());
}

}  // namespace

ACLNN(Abs, (In, self), (Out, out)) {
  out = self.scalar_type() == at::kBool ? self : at::abs(self);
}
ACLNN_UNARY(Acos, at::acos)
ACLNN_UNARY(Acosh, at::acosh)
ACLNN_UNARY(AngleV2, at::angle)
ACLNN_UNARY(Asin, at::asin)
ACLNN_UNARY(Asinh, at::asinh)
ACLNN_UNARY(Atan, at::atan)
ACLNN_UNARY(Atanh, at::atanh)
ACLNN_UNARY_OF(IntegralIn, BitwiseNot, at::bitwise_not)
ACLNN_UNARY(Ceil, at::ceil)
ACLNN_UNARY(Cos, at::cos)
ACLNN_UNARY(Cosh, at::cosh)
ACLNN_UNARY(Erf, at::erf)
ACLNN_UNARY(Erfc, at::erfc)
ACLNN_UNARY(Erfinv, at::erfinv)
ACLNN_UNARY(Exp, at::exp)
ACLNN_UNARY(Exp2, at::exp2)
ACLNN_UNARY(Expm1, at::expm1)
ACLNN_UNARY(Floor, at::floor)
ACLNN_UNARY(Frac, fraction)
ACLNN_UNARY(IsFinite, at::isfinite)
ACLNN_UNARY(IsNegInf, at::isneginf)
ACLNN_UNARY(IsPosInf, at::isposinf)
ACLNN_UNARY(Log, at::log)
ACLNN_UNARY(Log10, at::log10)
ACLNN_UNARY(Log1p, at::log1p)
ACLNN_UNARY(Log2, at::log2)
ACLNN_UNARY(LogicalNot, at::logical_not)
ACLNN_UNARY(Neg, at::neg)
ACLNN_UNARY(Reciprocal, at::reciprocal)
ACLNN_UNARY(Round, at::round)
ACLNN_UNARY(Rsqrt, wide_rsqrt)
ACLNN_UNARY(Sigmoid, at::sigmoid)
ACLNN_UNARY(Sign, at::sgn)  // of complex numbers, too
ACLNN_UNARY(Signbit, at::signbit)
ACLNN_UNARY(Sin, at::sin)
ACLNN_UNARY(Sinc, at::sinc)
ACLNN_UNARY(Sinh, at::sinh)
ACLNN_UNARY(Sqrt, at::sqrt)
ACLNN_UNARY(Tan, at::tan)
ACLNN_UNARY(Tanh, at::tanh)
ACLNN_UNARY(Trunc, at::trunc)

ACLNN_INPLACE_UNARY(Acos, at::acos)
ACLNN_INPLACE_UNARY(Acosh, at::acosh)
ACLNN_INPLACE_UNARY(Asin, at::asin)
ACLNN_INPLACE_UNARY(Asinh, at::asinh)
ACLNN_INPLACE_UNARY(Atan, at::atan)
ACLNN_INPLACE_UNARY(Atanh, at::atanh)
ACLNN_INPLACE_UNARY(Ceil, at::ceil)
ACLNN_INPLACE_UNARY(Cos, at::cos)
ACLNN_INPLACE_UNARY(Cosh, at::cosh)
ACLNN_INPLACE_UNARY(Erf, at::erf)
ACLNN_INPLACE_UNARY(Erfc, at::erfc)
ACLNN_INPLACE_UNARY(Erfinv, at::erfinv)
ACLNN_INPLACE_UNARY(Exp, at::exp)
ACLNN_INPLACE_UNARY(Exp2, at::exp2)
ACLNN_INPLACE_UNARY(Expm1, at::expm1)
ACLNN_INPLACE_UNARY(Floor, at::floor)
ACLNN_INPLACE_UNARY(Frac, fraction)
ACLNN_INPLACE_UNARY(Log, at::log)
ACLNN_INPLACE_UNARY(Log10, at::log10)
ACLNN_INPLACE_UNARY(Log1p, at::log1p)
ACLNN_INPLACE_UNARY(Log2, at::log2)
ACLNN_INPLACE_UNARY(LogicalNot, at::logical_not)
ACLNN_INPLACE_UNARY(Reciprocal, at::reciprocal)
ACLNN_INPLACE_UNARY(Rsqrt, wide_rsqrt)
ACLNN_INPLACE_UNARY(Sigmoid, at::sigmoid)
ACLNN_INPLACE_UNARY(Sin, at::sin)
ACLNN_INPLACE_UNARY(Sinc, at::sinc)
ACLNN_INPLACE_UNARY(Sinh, at::sinh)
ACLNN_INPLACE_UNARY(Sqrt, at::sqrt)
ACLNN_INPLACE_UNARY(Tan, at::tan)
ACLNN_INPLACE_UNARY(Tanh, at::tanh)

ACLNN(RoundDecimals, (In, self), (int64_t, decimals), (Out, out)) {
  out = rounded(self, decimals);
}
ACLNN(InplaceRoundDecimals, (InOut, selfRef), (int64_t, decimals)) {
  selfRef = rounded(selfRef, decimals);
}
ACLNN(NanToNum, (In, self), (float, nan), (float, posinf), (float, neginf), (Out, out)) {
  out = at::nan_to_num(self, nan, posinf, neginf);
}
ACLNN(InplaceNanToNum, (InOut, selfRef), (float, nan), (float, posinf), (float, neginf)) {
  selfRef = at::nan_to_num(selfRef, nan, posinf, neginf);
}

// eps is -1 when there is none.
ACLNN(Logit, (In, input), (double, eps), (Out, out)) {
  out = at::logit(wide(input), epsilon(eps));
}
ACLNN(LogitGrad, (FloatIn, x), (FloatIn, dy), (double, eps), (Out, dx)) {
  // ATen's vectors have 0 where x is nan.
  const at::Tensor gradient = at::logit_backward(wide(dy), wide(x), epsilon(eps));
  dx = at::where(at::isnan(x), wide(x), gradient);
}

ACLNN(AsinWithAgent, (In, x), (Out, y)) {
  expect_dtype("y", y, floating(x.scalar_type()));
  y = at::asin(x);
}
ACLNN(AsinhV2, (In, x), (Out, out)) {
  arcsinh(x, out);
}
ACLNN(AsinhWithAgent, (In, x), (Out, out)) {
  arcsinh(x, out);
}
ACLNN(Ndtri, (FloatIn, self), (Out, out)) {
  expect_like("out", out, self);
  out = at::special_ndtri(wide(self));
}

}  // namespace aclnn_host::pointwise_rows
