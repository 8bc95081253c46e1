// Sums, differences, products, quotients, remainders and powers.

#include <algorithm>

#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/digamma.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/gcd.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logaddexp2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/real.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/round.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/special_xlog1py.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>

#include "cann/rows/checks.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::arithmetic_rows {

namespace {

at::IntArrayRef shape_of(const at::Tensor& tensor) {
  return tensor.sizes();
}

// out = function(self, other, ...), where ATen computes element by element.
#define WRITE_ELEMENTWISE(out, function, self, other, ...)                           \
  out.write(                                                                         \
      at::result_type(self, other), at::infer_size(shape_of(self), shape_of(other)), \
      Output::Reads::kSameElement,                                                   \
      [&] { return function(self, other __VA_OPT__(, ) __VA_ARGS__); },              \
      [&](at::Tensor& place) { function##_out(place, self, other __VA_OPT__(, ) __VA_ARGS__); })

// self + alpha * other and self - alpha * other. ATen's own functions round alpha and the product
// to 16 bits; addcmul computes in FLOAT and rounds once.
bool is_scaled_in_16_bits(const at::Tensor& self, const at::Tensor& other,
                          const c10::Scalar& alpha) {
  const bool is_real = alpha.isFloatingPoint() || alpha.isIntegral(/*includeBool=*/false);
  return is_real && alpha.toDouble() != 1 &&
         at::isReducedFloatingType(at::result_type(self, other));
}
at::Tensor one_of_both(const at::Tensor& self, const at::Tensor& other) {
  return at::ones({}, self.options().dtype(at::result_type(self, other)));
}
at::Tensor scaled_sum(const at::Tensor& self, const at::Tensor& other, const c10::Scalar& alpha) {
  if (!is_scaled_in_16_bits(self, other, alpha)) return at::add(self, other, alpha);
  return at::addcmul(self, other, one_of_both(self, other), alpha);
}
void scaled_sum_out(at::Tensor& place, const at::Tensor& self, const at::Tensor& other,
                    const c10::Scalar& alpha) {
  if (is_scaled_in_16_bits(self, other, alpha)) {
    at::addcmul_out(place, self, other, one_of_both(self, other), alpha);
  } else {
    at::add_out(place, self, other, alpha);
  }
}
at::Tensor scaled_difference(const at::Tensor& self, const at::Tensor& other,
                             const c10::Scalar& alpha) {
  if (!is_scaled_in_16_bits(self, other, alpha)) return at::sub(self, other, alpha);
  return at::addcmul(self, other, one_of_both(self, other), -alpha.toDouble());
}
void scaled_difference_out(at::Tensor& place, const at::Tensor& self, const at::Tensor& other,
                           const c10::Scalar& alpha) {
  if (is_scaled_in_16_bits(self, other, alpha)) {
    at::addcmul_out(place, self, other, one_of_both(self, other), -alpha.toDouble());
  } else {
    at::sub_out(place, self, other, alpha);
  }
}

// CANN's divisions by number: 0 keeps the fraction, 1 truncates, 2 rounds down.
std::optional<c10::string_view> rounding_of(int64_t mode) {
  EXPECT(mode >= 0 && mode <= 2, "mode is ", mode, ", expected 0, 1 or 2");
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

at::Tensor quotient(const at::Tensor& self, const at::Tensor& other, int64_t mode) {
  const at::ScalarType type = at::result_type(self, other);
  if (mode == 1 && at::isIntegralType(type, /*includeBool=*/false)) {
    return truncated_quotient(self.to(type), other.to(type));
  }
  return at::div(self, other, rounding_of(mode));
}
at::Tensor quotient(const at::Tensor& self, const c10::Scalar& other, int64_t mode) {
  return quotient(self, at::native::wrapped_scalar_tensor(other), mode);
}

using aclnn_host::remainder_or_self;
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

// The tensors of a list, all of out's dtype, combined from the first to the last.
template <class Combine>
at::Tensor combined(const std::vector<at::Tensor>& tensors, const Output& out, Combine combine) {
  EXPECT(!tensors.empty(), "tensors is empty, expected at least one tensor");
  for (const at::Tensor& tensor : tensors) expect_dtype("a tensor of the list", tensor, out);
  at::Tensor result = wide(tensors[0]);
  for (size_t i = 1; i < tensors.size(); ++i) result = combine(result, wide(tensors[i]));
  return result;
}
at::Tensor sum_of(const std::vector<at::Tensor>& tensors, const Output& out) {
  return combined(tensors, out,
                  [](const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); });
}

// ---- aclnnScale

// How many dimensions of x, from axis on, scale has by the arguments.
int64_t scaled_dims(const at::Tensor& x, const at::Tensor& scale, int64_t axis, int64_t num_axes,
                    bool from_blob) {
  EXPECT(num_axes >= -1, "numAxes is ", num_axes, ", expected -1 or more");
  if (!from_blob) return scale.dim();
  return num_axes == -1 ? x.dim() - axis : num_axes;
}

// Which shape scale and bias have beside x: sizes from axis on, then as many 1 as dimensions
// follow.
std::vector<int64_t> scale_shape(const at::Tensor& x, const at::Tensor& scale, int64_t axis,
                                 int64_t num_axes, bool from_blob) {
  EXPECT(axis >= -x.dim() && axis < x.dim(), "axis is ", axis, ", expected ", -x.dim(), " to ",
         x.dim() - 1, ", a dimension of x");
  if (axis < 0) axis += x.dim();
  const int64_t dims = scaled_dims(x, scale, axis, num_axes, from_blob);
  EXPECT(dims <= x.dim() - axis, "scale is for ", dims, " dimensions of x from ", axis,
         " on, expected at most ", x.dim() - axis);
  const bool is_one = scale.numel() == 1 && scale.dim() <= 1;
  if (is_one && (!from_blob || dims == 0)) return {};
  const at::IntArrayRef expected =
      x.sizes().slice(static_cast<size_t>(axis), static_cast<size_t>(dims));
  EXPECT(dims > 0 && scale.sizes() == expected, "scale has shape ", scale.sizes(), ", expected ",
         dims > 0 ? expected : at::IntArrayRef(1), " by axis and numAxes");
  std::vector<int64_t> shape = expected.vec();
  shape.resize(static_cast<size_t>(x.dim() - axis), 1);
  return shape;
}

}  // namespace

ACLNN(Add, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  WRITE_ELEMENTWISE(out, scaled_sum, self, other, alpha);
}
ACLNN(Adds, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = at::add(wide(self), other, alpha);
}
ACLNN(AddV3, (AnyNumber, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  out = at::add(at::native::wrapped_scalar_tensor(self), wide(other), alpha);
}
ACLNN(AddRelu, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  out = at::relu(scaled_sum(self, other, alpha));
}
ACLNN(InplaceAdd, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  WRITE_ELEMENTWISE(selfRef, scaled_sum, selfRef, other, alpha);
}
ACLNN(InplaceAdds, (InOut, selfRef), (AnyNumber, other), (AnyNumber, alpha)) {
  selfRef = at::add(wide(selfRef), other, alpha);
}
ACLNN(InplaceAddRelu, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  selfRef = at::relu(scaled_sum(selfRef, other, alpha));
}

ACLNN(Sub, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  WRITE_ELEMENTWISE(out, scaled_difference, self, other, alpha);
}
ACLNN(Subs, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = at::sub(wide(self), other, alpha);
}
ACLNN(InplaceSub, (InOut, selfRef), (In, other), (AnyNumber, alpha)) {
  WRITE_ELEMENTWISE(selfRef, scaled_difference, selfRef, other, alpha);
}
ACLNN(InplaceSubs, (InOut, selfRef), (AnyNumber, other), (AnyNumber, alpha)) {
  selfRef = at::sub(wide(selfRef), other, alpha);
}
ACLNN(Rsub, (In, self), (In, other), (AnyNumber, alpha), (Out, out)) {
  out = scaled_difference(other, self, alpha);
}
ACLNN(Rsubs, (In, self), (AnyNumber, other), (AnyNumber, alpha), (Out, out)) {
  out = at::rsub(wide(self), other, alpha);
}

ACLNN(Mul, (In, self), (In, other), (Out, out)) {
  WRITE_ELEMENTWISE(out, at::mul, self, other);
}
ACLNN_BINARY_OF(In, AnyNumber, Muls, at::mul)
ACLNN(InplaceMul, (InOut, selfRef), (In, other)) {
  WRITE_ELEMENTWISE(selfRef, at::mul, selfRef, other);
}
ACLNN_INPLACE_BINARY_OF(InOut, AnyNumber, Muls, at::mul)

ACLNN(Div, (In, self), (In, other), (Out, out)) {
  WRITE_ELEMENTWISE(out, at::div, self, other);
}
ACLNN_BINARY_OF(In, AnyNumber, Divs, at::div)
ACLNN(InplaceDiv, (InOut, selfRef), (In, other)) {
  WRITE_ELEMENTWISE(selfRef, at::div, selfRef, other);
}
ACLNN_INPLACE_BINARY_OF(InOut, AnyNumber, Divs, at::div)
ACLNN(DivMod, (In, self), (In, other), (int, mode), (Out, out)) {
  out = quotient(self, other, mode);
}
ACLNN(DivMods, (In, self), (Number, other), (int, mode), (Out, out)) {
  out = quotient(self, other, mode);
}
ACLNN(InplaceDivMod, (InOut, selfRef), (In, other), (int, mode)) {
  selfRef = quotient(selfRef, other, mode);
}
ACLNN(InplaceDivMods, (InOut, selfRef), (Number, other), (int, mode)) {
  selfRef = quotient(selfRef, other, mode);
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

ACLNN(Addcmul, (In, self), (In, tensor1), (In, tensor2), (AnyNumber, value), (Out, out)) {
  out = at::addcmul(self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcmul, (InOut, selfRef), (In, tensor1), (In, tensor2), (AnyNumber, value)) {
  selfRef = at::addcmul(selfRef, tensor1, tensor2, value);
}
ACLNN(Addcdiv, (In, self), (In, tensor1), (In, tensor2), (AnyNumber, value), (Out, out)) {
  out = at::addcdiv(self, tensor1, tensor2, value);
}
ACLNN(InplaceAddcdiv, (InOut, selfRef), (In, tensor1), (In, tensor2), (AnyNumber, value)) {
  selfRef = at::addcdiv(selfRef, tensor1, tensor2, value);
}
ACLNN(Lerp, (In, self), (In, end), (In, weight), (Out, out)) {
  out = lerp_by(self, end, weight);
}
ACLNN(Lerps, (In, self), (In, end), (AnyNumber, weight), (Out, out)) {
  out = at::lerp(self, end, weight);
}
ACLNN(InplaceLerp, (InOut, selfRef), (In, end), (In, weight)) {
  selfRef = lerp_by(selfRef, end, weight);
}
ACLNN(InplaceLerps, (InOut, selfRef), (In, end), (AnyNumber, weight)) {
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

ACLNN(Lgamma, (FloatIn, self), (Out, out)) {
  expect_dtype(out, self);
  out = at::lgamma(self);
}
ACLNN(Digamma, (FloatIn, self), (Out, out)) {
  expect_dtype(out, self);
  out = at::digamma(self);
}
ACLNN_INPLACE_UNARY(Neg, at::neg)
ACLNN_INPLACE_UNARY(Round, at::round)
ACLNN_INPLACE_UNARY(Trunc, at::trunc)
ACLNN(Square, (In, self), (Out, out)) {
  expect_dtype(out, self);
  out = at::mul(self, self);
}
ACLNN(IsInf, (In, x), (Out, out)) {
  out = at::isinf(x);
}
ACLNN(Real, (In, self), (Out, out)) {
  const at::Tensor real = at::real(self);
  expect_dtype(out, real);
  out = real;
}

ACLNN(Xlog1py, (FloatIn, x), (FloatIn, y), (Out, z)) {
  expect_dtype("y", y, x);
  expect_dtype(z, x);
  z = at::special_xlog1py(wide(x), wide(y));
}
ACLNN_INPLACE_BINARY(XLogYTensor, wide_xlogy)
// The tensor is overwritten, not the number.
ACLNN(InplaceAddV3, (AnyNumber, selfRef), (InOut, other), (AnyNumber, alpha)) {
  other = at::add(at::native::wrapped_scalar_tensor(selfRef), wide(other), alpha);
}
ACLNN_INPLACE_BINARY_OF(IntegralInOut, IntegralIn, BitwiseOrTensor, at::bitwise_or)
ACLNN_INPLACE_BINARY_OF(IntegralInOut, Number, BitwiseOrScalar, at::bitwise_or)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, BitwiseAndTensorOut, at::bitwise_and)
ACLNN(InplaceBitwiseAndTensorOut, (IntegralInOut, self), (IntegralIn, other)) {
  self = at::bitwise_and(self, other);
}
ACLNN(MaskedScale, (FloatIn, self), (In, mask), (float, scale), (Out, out)) {
  expect_dtype(out, self);
  expect_shape("mask", mask, self.sizes());
  EXPECT(!mask.is_complex(), "mask has dtype ", dtype_text(mask.scalar_type()),
         ", expected FLOAT, FLOAT16, INT8 or UINT8");
  const at::Tensor x = wide(self);
  out = at::mul(at::mul(x, mask.to(x.scalar_type())), c10::Scalar(scale.value()));
}
// scale and bias stand for dimensions of x from axis on: for numAxes of them (-1 for all that
// follow) with scaleFromBlob, for as many as scale has without.
ACLNN(Scale, (FloatIn, x), (FloatIn, scale), (OptionalIn, bias), (int64_t, axis),
      (int64_t, numAxes), (bool, scaleFromBlob), (Out, y)) {
  expect_dtype("scale", scale, x);
  expect_dtype(y, x);
  const std::vector<int64_t> shape = scale_shape(x, scale, axis, numAxes, scaleFromBlob);
  at::Tensor result = at::mul(wide(x), wide(scale).reshape(shape));
  if (bias) {
    expect_dtype("bias", *bias, x);
    expect_shape("bias", *bias, scale.sizes());
    result = at::add(result, wide(*bias).reshape(shape));
  }
  y = result;
}

// ---- sums and extremes of lists

ACLNN(Sum, (Ins, tensors), (Out, out)) {
  out = sum_of(tensors, out);
}
// A list without tensors leaves out alone.
ACLNN(AddN, (Ins, tensors), (Out, out)) {
  if (tensors.empty()) return;
  for (const at::Tensor& tensor : tensors) {
    expect_shape("a tensor of the list", tensor, tensors[0].sizes());
  }
  out = sum_of(tensors, out);
}
ACLNN(MaxN, (Ins, tensors), (Out, out)) {
  out = combined(tensors, out,
                 [](const at::Tensor& a, const at::Tensor& b) { return at::maximum(a, b); });
}
ACLNN(MinN, (Ins, tensors), (Out, out)) {
  out = combined(tensors, out,
                 [](const at::Tensor& a, const at::Tensor& b) { return at::minimum(a, b); });
}

}  // namespace aclnn_host::arithmetic_rows
