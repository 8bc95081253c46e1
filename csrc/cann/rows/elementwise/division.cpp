// Quotients, remainders and common divisors. Their documents differ in the rounding of integers.

#include <ATen/ScalarOps.h>

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_division_rows {

namespace {

// The rounding of CANN's division modes: 0 keeps the fraction, 1 truncates, 2 rounds down.
std::optional<c10::string_view> rounding_of(int64_t mode) {
  expect_range("mode", mode, 0, 2);
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

bool is_integer(const at::Tensor& x) {
  return at::isIntegralType(x.scalar_type(), /*includeBool=*/false);
}

template <class Integer>
std::pair<double, double> limits() {
  using Limits = std::numeric_limits<Integer>;
  return {static_cast<double>(Limits::lowest()), static_cast<double>(Limits::max())};
}

// The limits of a small integer type.
std::pair<double, double> limits_of(const char* name, const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kByte: return limits<uint8_t>();
    case at::kChar: return limits<int8_t>();
    case at::kShort: return limits<int16_t>();
    case at::kInt: return limits<int32_t>();
    default:
      EXPECT(false, name, " has dtype ", dtype_text(x.scalar_type()),
             ", expected a floating point type, INT8, INT16, INT32 or UINT8");
  }
}

// Converts integral values, infinities and NaN to the integer type of x with saturation; NaN
// becomes 0.
at::Tensor saturated(const at::Tensor& values, const char* name, const at::Tensor& x) {
  const auto [least, most] = limits_of(name, x);
  return values.nan_to_num(0, INFINITY, -INFINITY)
      .to(at::kDouble)
      .clamp(least, most)
      .to(x.scalar_type());
}

// Converts integers to DOUBLE, in which quotients and remainders of 32-bit integers are exact.
at::Tensor exact(const at::Tensor& x) {
  return is_integer(x) ? x.to(at::kDouble) : wide(x);
}

// x / other rounded towards 0. The document does not define division by 0; here it gives 0.
at::Tensor truncated_integers(const at::Tensor& x, const at::Tensor& other) {
  const at::Tensor is_zero = other == 0;
  return truncated_quotient(x, other.masked_fill(is_zero, 1)).masked_fill(is_zero, 0);
}

}  // namespace

ACLNN(Div, (In, self), (In, other), (Out, out)) {
  WRITE_ELEMENTWISE(out, at::div, self, other);
}
ACLNN_BINARY_OF(In, AnyNumber, Divs, at::div)

// Mode 0 is the exact quotient, mode 1 rounds towards 0, mode 2 rounds down. Quotients of integers
// are always rounded.
ACLNN(DivV3, (In, self), (SameDtype<In>, other, "self"), (int64_t, mode),
      (SameDtype<Out>, out, "self")) {
  expect_range("mode", mode, 0, 2);
  const at::Tensor quotient = exact(self) / exact(other);
  if (is_integer(self)) {
    out = saturated(mode == 2 ? at::floor(quotient) : at::trunc(quotient), "self", self);
  } else {
    out = mode == 0 ? quotient : mode == 1 ? at::trunc(quotient) : at::floor(quotient);
  }
}
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

// Integers are divided as FLOAT and truncated; for BOOL the result is FLOAT.
ACLNN(RealDiv, (In, self), (Like<In>, other, "self"), (SameShape<Out>, out, "self")) {
  if (is_integer(self)) {
    expect_dtype(out, self);
    const at::Tensor quotient = self.to(at::kFloat) / other.to(at::kFloat);
    out = saturated(at::trunc(quotient), "self", self);
  } else if (self.scalar_type() == at::kBool) {
    expect_dtype("out", out, at::kFloat);
    out = self.to(at::kFloat) / other.to(at::kFloat);
  } else {
    expect_dtype(out, self);
    out = wide(self) / wide(other);
  }
}
// Tensors of two different types are divided as FLOAT, with a FLOAT result.
ACLNN(TruncateDiv, (In, x1), (SameShape<In>, x2, "x1"), (SameShape<Out>, out, "x1")) {
  const bool is_mixed = x1.scalar_type() != x2.scalar_type();
  expect_dtype("out", out, is_mixed ? at::kFloat : x1.scalar_type());
  for (const auto& [name, x] : {std::pair("x1", &x1), {"x2", &x2}}) {
    EXPECT(x->scalar_type() != at::kBool && !x->is_complex(), name, " has dtype ",
           dtype_text(x->scalar_type()), ", expected real numbers");
  }
  if (is_mixed) {
    out = at::trunc(x1.to(at::kFloat) / x2.to(at::kFloat));
  } else if (is_integer(x1)) {
    out = truncated_integers(x1, x2);
  } else {
    out = at::trunc(wide(x1) / wide(x2));
  }
}
// The remainder has the sign of x1. Remainders of integers divided by 0 are undefined.
ACLNN(TruncateMod, (In, x1), (Like<In>, x2, "x1"), (Like<Out>, out, "x1")) {
  const at::Tensor remainder = at::fmod(exact(x1), exact(x2));
  out = is_integer(x1) ? saturated(remainder, "x1", x1) : remainder;
}
// Integers are divided as FLOAT.
ACLNN(FloorDiv, (In, self_x), (Like<In>, self_y, "self_x"), (Like<Out>, out, "self_x")) {
  if (is_integer(self_x)) {
    const at::Tensor quotient = self_x.to(at::kFloat) / self_y.to(at::kFloat);
    out = saturated(at::floor(quotient), "self_x", self_x);
  } else {
    out = at::floor(wide(self_x) / wide(self_y));
  }
}

// Deviation of FloorDivide*, *Fmod*, DivMod*: An integer divided by 0 is 507015 when the stream is
// synchronised, and 161002 in stage 1 for a scalar. The documents do not say, and a device returns
// an unspecified number.
ACLNN_BINARY(FloorDivide, at::floor_divide)
ACLNN_BINARY_NUMBER(FloorDivides, at::floor_divide)
ACLNN_INPLACE_BINARY(FloorDivide, at::floor_divide)
ACLNN_INPLACE_BINARY_NUMBER(FloorDivides, at::floor_divide)
// Behaviour of *Remainder*: The remainder of an integer divided by 0 is the dividend, as
// documented.
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
ACLNN_BINARY_OF(Integral<In>, Integral<In>, Gcd, at::gcd)
ACLNN_ELEMENTWISE(Reciprocal, at::reciprocal)

}  // namespace aclnn_host::elementwise_division_rows
