// Sums, differences, products, quotients, remainders and powers.

#include <ATen/ScalarOps.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/gcd.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logaddexp2.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// CANN's divisions by number: 0 keeps the fraction, 1 truncates, 2 rounds down.
std::optional<c10::string_view> rounding_of(int64_t mode) {
  TORCH_CHECK(mode >= 0 && mode <= 2, "mode is ", mode, ", expected 0, 1 or 2");
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

// The remainder with the sign of the divisor; by an integer 0 it is the dividend, as the documents
// say, where ATen raises an error.
at::Tensor remainder_or_self(const at::Tensor& self, const at::Tensor& other) {
  if (!at::isIntegralType(at::result_type(self, other), /*includeBool=*/true)) {
    return at::remainder(self, other);
  }
  const at::Tensor is_zero = at::eq(other, 0);
  return at::where(is_zero, self, at::remainder(self, other.masked_fill(is_zero, 1)));
}
at::Tensor remainder_or_self(const at::Tensor& self, const c10::Scalar& other) {
  return remainder_or_self(self, at::native::wrapped_scalar_tensor(other));
}

// Integers as FLOAT.
at::Tensor with_fractions(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? self.to(at::kFloat) : self;
}

at::Tensor wide_xlogy(const at::Tensor& self, const at::Tensor& other) {
  return at::xlogy(wide(self), wide(other));
}
at::Tensor wide_xlogy(const at::Tensor& self, const c10::Scalar& other) {
  return at::xlogy(wide(self), other);
}

// What lerp wants of a weight: the type of the tensors.
at::Tensor lerp_by(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight) {
  return at::lerp(self, end, weight.to(self.scalar_type()));
}

}  // namespace

ACLNN(Add, (In, self), (In, other), (Number, alpha), (Out, out)) {
  out = at::add(self, other, alpha);
}
ACLNN(Adds, (In, self), (Number, other), (Number, alpha), (Out, out)) {
  out = at::add(wide(self), other, alpha);
}
ACLNN(AddV3, (Number, self), (In, other), (Number, alpha), (Out, out)) {
  out = at::add(at::native::wrapped_scalar_tensor(self), wide(other), alpha);
}
ACLNN(AddRelu, (In, self), (In, other), (Number, alpha), (Out, out)) {
  out = at::relu(at::add(self, other, alpha));
}
ACLNN(InplaceAdd, (InOut, selfRef), (In, other), (Number, alpha)) {
  selfRef = at::add(selfRef, other, alpha);
}
ACLNN(InplaceAdds, (InOut, selfRef), (Number, other), (Number, alpha)) {
  selfRef = at::add(wide(selfRef), other, alpha);
}
ACLNN(InplaceAddRelu, (InOut, selfRef), (In, other), (Number, alpha)) {
  selfRef = at::relu(at::add(selfRef, other, alpha));
}

ACLNN(Sub, (In, self), (In, other), (Number, alpha), (Out, out)) {
  out = at::sub(self, other, alpha);
}
ACLNN(Subs, (In, self), (Number, other), (Number, alpha), (Out, out)) {
  out = at::sub(wide(self), other, alpha);
}
ACLNN(InplaceSub, (InOut, selfRef), (In, other), (Number, alpha)) {
  selfRef = at::sub(selfRef, other, alpha);
}
ACLNN(InplaceSubs, (InOut, selfRef), (Number, other), (Number, alpha)) {
  selfRef = at::sub(wide(selfRef), other, alpha);
}
ACLNN(Rsub, (In, self), (In, other), (Number, alpha), (Out, out)) {
  out = at::rsub(self, other, alpha);
}
ACLNN(Rsubs, (In, self), (Number, other), (Number, alpha), (Out, out)) {
  out = at::rsub(wide(self), other, alpha);
}

ACLNN_BINARY(Mul, at::mul)
ACLNN_BINARY_NUMBER(Muls, at::mul)
ACLNN_INPLACE_BINARY(Mul, at::mul)
ACLNN_INPLACE_BINARY_NUMBER(Muls, at::mul)

ACLNN_BINARY(Div, at::div)
ACLNN_BINARY_NUMBER(Divs, at::div)
ACLNN_INPLACE_BINARY(Div, at::div)
ACLNN_INPLACE_BINARY_NUMBER(Divs, at::div)
ACLNN(DivMod, (In, self), (In, other), (int, mode), (Out, out)) {
  out = at::div(self, other, rounding_of(mode));
}
ACLNN(DivMods, (In, self), (Number, other), (int, mode), (Out, out)) {
  out = at::div(self, other, rounding_of(mode));
}
ACLNN(InplaceDivMod, (InOut, selfRef), (In, other), (int, mode)) {
  selfRef = at::div(selfRef, other, rounding_of(mode));
}
ACLNN(InplaceDivMods, (InOut, selfRef), (Number, other), (int, mode)) {
  selfRef = at::div(selfRef, other, rounding_of(mode));
}
ACLNN_BINARY(FloorDivide, at::floor_divide)
ACLNN_BINARY_NUMBER(FloorDivides, at::floor_divide)
ACLNN_INPLACE_BINARY(FloorDivide, at::floor_divide)
ACLNN_INPLACE_BINARY_NUMBER(FloorDivides, at::floor_divide)

ACLNN_BINARY(RemainderTensorTensor, remainder_or_self)
ACLNN_BINARY_NUMBER(RemainderTensorScalar, remainder_or_self)
ACLNN(RemainderScalarTensor, (Number, self), (In, other), (Out, out)) {
  out = remainder_or_self(at::native::wrapped_scalar_tensor(self), wide(other));
}
ACLNN_INPLACE_BINARY(RemainderTensorTensor, remainder_or_self)
ACLNN_INPLACE_BINARY_NUMBER(RemainderTensorScalar, remainder_or_self)
ACLNN_BINARY(FmodTensor, at::fmod)
ACLNN_BINARY_NUMBER(FmodScalar, at::fmod)
ACLNN_INPLACE_BINARY(FmodTensor, at::fmod)
ACLNN_INPLACE_BINARY_NUMBER(FmodScalar, at::fmod)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, Gcd, at::gcd)

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

ACLNN(Addcmul, (In, self), (In, tensor1), (In, tensor2), (Number, value), (Out, out)) {
  out = at::addcmul(self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcmul, (InOut, selfRef), (In, tensor1), (In, tensor2), (Number, value)) {
  selfRef = at::addcmul(selfRef, tensor1, tensor2, value);
}
ACLNN(Addcdiv, (In, self), (In, tensor1), (In, tensor2), (Number, value), (Out, out)) {
  out = at::addcdiv(self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcdiv, (InOut, selfRef), (In, tensor1), (In, tensor2), (Number, value)) {
  selfRef = at::addcdiv(selfRef, tensor1, tensor2, value);
}
ACLNN(Lerp, (In, self), (In, end), (In, weight), (Out, out)) {
  out = lerp_by(self, end, weight);
}
ACLNN(Lerps, (In, self), (In, end), (Number, weight), (Out, out)) {
  out = at::lerp(self, end, weight);
}
ACLNN(InplaceLerp, (InOut, selfRef), (In, end), (In, weight)) {
  selfRef = lerp_by(selfRef, end, weight);
}
ACLNN(InplaceLerps, (InOut, selfRef), (In, end), (Number, weight)) {
  selfRef = at::lerp(selfRef, end, weight);
}

ACLNN_BINARY(Atan2, at::atan2)
ACLNN_INPLACE_BINARY(Atan2, at::atan2)
ACLNN_BINARY(XLogYTensor, wide_xlogy)
ACLNN_BINARY_NUMBER(XLogYScalarOther, wide_xlogy)
ACLNN_INPLACE_BINARY_NUMBER(XLogYScalarOther, wide_xlogy)
ACLNN(XLogYScalarSelf, (Number, self), (In, other), (Out, out)) {
  out = at::xlogy(self, wide(other));
}
ACLNN(LogAddExp, (In, self), (In, other), (Out, out)) {
  out = at::logaddexp(with_fractions(self), with_fractions(other));
}
ACLNN(LogAddExp2, (In, self), (In, other), (Out, out)) {
  out = at::logaddexp2(with_fractions(self), with_fractions(other));
}
ACLNN(Complex, (In, real), (In, imag), (Out, out)) {
  out = at::complex(real, imag);
}
ACLNN(Polar, (In, input), (In, angle), (Out, out)) {
  out = at::polar(input, angle);
}
