// Elementwise functions.

#include "cann/named_ops/operator.h"
#include "cann/rows/integers.h"

namespace aclnn_host::named_pointwise {

#define NAMED_UNARY(Name, call)             \
  NAMED_OPERATOR(Name, (In, x), (Out, y)) { \
    y = call(x);                            \
  }
#define NAMED_BINARY(Name, call)                       \
  NAMED_OPERATOR(Name, (In, x1), (In, x2), (Out, y)) { \
    y = call;                                          \
  }

// Order comparisons, also of unsigned integers.
#define NAMED_COMPARISON(Name, function)                                                          \
  NAMED_OPERATOR(Name, (In, x1), (In, x2), (Out, y)) {                                            \
    const auto compare = [](const at::Tensor& a, const at::Tensor& b) { return function(a, b); }; \
    y = compared(x1, x2, compare);                                                                \
  }

namespace {

// log(x * scale + shift) to a base; -1 stands for the natural logarithm.
at::Tensor in_base(const at::Tensor& logarithm, double base) {
  return base == -1 ? logarithm : logarithm / std::log(base);
}

}  // namespace

NAMED_UNARY(Abs, at::abs)
NAMED_UNARY(Acos, at::acos)
NAMED_UNARY(Acosh, at::acosh)
NAMED_UNARY(Asin, at::asin)
NAMED_UNARY(Asinh, at::asinh)
NAMED_UNARY(Atan, at::atan)
NAMED_UNARY(Atanh, at::atanh)
NAMED_UNARY(Ceil, at::ceil)
NAMED_UNARY(Cos, at::cos)
NAMED_UNARY(Cosh, at::cosh)
NAMED_UNARY(Erf, at::erf)
NAMED_UNARY(Erfc, at::erfc)
NAMED_UNARY(Erfinv, at::erfinv)
NAMED_UNARY(Expm1, at::expm1)
NAMED_UNARY(Floor, at::floor)
NAMED_UNARY(IsFinite, at::isfinite)
NAMED_UNARY(Log1p, at::log1p)
NAMED_UNARY(LogicalNot, at::logical_not)
NAMED_UNARY(Neg, at::neg)
NAMED_UNARY(Reciprocal, at::reciprocal)
NAMED_UNARY(Sign, at::sign)
NAMED_UNARY(Sin, at::sin)
NAMED_UNARY(Sinh, at::sinh)
NAMED_UNARY(Sqrt, at::sqrt)
NAMED_UNARY(Square, at::square)
NAMED_UNARY(Tan, at::tan)
NAMED_UNARY(Trunc, at::trunc)

NAMED_OPERATOR(Rsqrt, (In, x), (Out, y)) {
  y = at::rsqrt(wide(x));
}
NAMED_OPERATOR(Exp, (In, x), (Out, y), (Attribute<double>, base), (Attribute<double>, scale),
               (Attribute<double>, shift)) {
  const at::Tensor exponent = wide(x) * scale.value_or(1) + shift.value_or(0);
  const double radix = base.value_or(-1);
  y = at::exp(radix == -1 ? exponent : exponent * std::log(radix));
}
NAMED_OPERATOR(Log, (In, x), (Out, y), (Attribute<double>, base), (Attribute<double>, scale),
               (Attribute<double>, shift)) {
  const double radix = base.value_or(-1);
  const at::Tensor argument = wide(x) * scale.value_or(1) + shift.value_or(0);
  y = radix == 2    ? at::log2(argument)
      : radix == 10 ? at::log10(argument)
                    : in_base(at::log(argument), radix);
}
NAMED_OPERATOR(Round, (In, x), (Out, y), (Attribute<int64_t>, decimals)) {
  y = decimals.value_or(0) == 0 ? at::round(x) : at::round(x, *decimals);
}
NAMED_OPERATOR(NanToNum, (In, x), (Out, y), (Attribute<double>, nan), (Attribute<double>, posinf),
               (Attribute<double>, neginf)) {
  y = at::nan_to_num(x, nan, posinf, neginf);
}

NAMED_BINARY(Add, at::add(x1, x2))
NAMED_BINARY(Sub, at::sub(x1, x2))
NAMED_BINARY(Mul, at::mul(x1, x2))
NAMED_BINARY(RealDiv, at::div(x1, x2))
NAMED_BINARY(Div, at::div(x1, x2))
NAMED_BINARY(FloorDiv, at::floor_divide(x1, x2))
NAMED_BINARY(FloorMod, remainder_or_self(x1, x2))
NAMED_BINARY(Mod, at::fmod(x1, x2))
NAMED_BINARY(Pow, at::pow(x1, x2))
NAMED_BINARY(Maximum, at::maximum(x1, x2))
NAMED_BINARY(Minimum, at::minimum(x1, x2))
NAMED_BINARY(Atan2, at::atan2(x1, x2))
NAMED_BINARY(Xlogy, at::xlogy(wide(x1), wide(x2)))
NAMED_BINARY(BitwiseAnd, at::bitwise_and(x1, x2))
NAMED_BINARY(BitwiseOr, at::bitwise_or(x1, x2))
NAMED_BINARY(BitwiseXor, at::bitwise_xor(x1, x2))
NAMED_BINARY(LeftShift, at::bitwise_left_shift(x1, x2))
NAMED_BINARY(RightShift, at::bitwise_right_shift(x1, x2))
NAMED_BINARY(Equal, at::eq(x1, x2))
NAMED_BINARY(NotEqual, at::ne(x1, x2))
NAMED_COMPARISON(Greater, at::gt)
NAMED_COMPARISON(GreaterEqual, at::ge)
NAMED_COMPARISON(Less, at::lt)
NAMED_COMPARISON(LessEqual, at::le)
NAMED_BINARY(LogicalAnd, at::logical_and(x1, x2))
NAMED_BINARY(LogicalOr, at::logical_or(x1, x2))
NAMED_UNARY(BitwiseNot, at::bitwise_not)
NAMED_UNARY(Invert, at::bitwise_not)

NAMED_OPERATOR(AxpyV2, (In, x1), (In, x2), (In, alpha), (Out, y)) {
  y = wide(x1) + wide(x2) * wide(alpha);
}
NAMED_OPERATOR(LogAddExp, (In, x1), (In, x2), (Out, y), (Attribute<double>, base),
               (Attribute<double>, scale), (Attribute<double>, shift)) {
  const double radix = base.value_or(-1);
  EXPECT(scale.value_or(1) == 1 && shift.value_or(0) == 0 && (radix == -1 || radix == 2),
         "base is ", radix, ", scale ", scale.value_or(1), " and shift ", shift.value_or(0),
         ", expected a base of -1 or 2, a scale of 1 and a shift of 0");
  y = radix == 2 ? at::logaddexp2(x1, x2) : at::logaddexp(x1, x2);
}
NAMED_OPERATOR(Addcdiv, (In, input_data), (In, x1), (In, x2), (In, value), (Out, y)) {
  y = wide(input_data) + wide(value) * wide(x1) / wide(x2);
}
NAMED_OPERATOR(Addcmul, (In, input_data), (In, x1), (In, x2), (In, value), (Out, y)) {
  y = wide(input_data) + wide(value) * wide(x1) * wide(x2);
}
NAMED_OPERATOR(Lerp, (In, start), (In, end), (In, weight), (Out, y)) {
  y = at::lerp(wide(start), wide(end), wide(weight));
}
NAMED_OPERATOR(ClipByValue, (In, x), (In, clip_value_min), (In, clip_value_max), (Out, y)) {
  y = at::clamp(x, clip_value_min, clip_value_max);
}
NAMED_OPERATOR(ClipByValueV2, (In, x), (In, clip_value_min), (In, clip_value_max), (Out, y)) {
  y = at::clamp(x, clip_value_min, clip_value_max);
}
NAMED_OPERATOR(IsClose, (In, x1), (In, x2), (Out, y), (Attribute<double>, rtol),
               (Attribute<double>, atol), (Attribute<bool>, equal_nan)) {
  y = at::isclose(x1, x2, rtol.value_or(1e-5), atol.value_or(1e-8), equal_nan.value_or(false));
}
NAMED_OPERATOR(TensorEqual, (In, input_x), (In, input_y), (Out, output_z)) {
  output_z = at::eq(input_x, input_y).all();
}
NAMED_OPERATOR(Cross, (In, x1), (In, x2), (Out, y), (Attribute<int64_t>, dim)) {
  y = at::cross(wide(x1), wide(x2), dim.value_or(-1));
}
// Adds parts of the channel blocks of two tensors.
NAMED_OPERATOR(StrideAdd, (Floating<In>, x1), (Floating<In>, x2), (Out, y),
               (Attribute<int64_t>, x1_c1_offset), (Attribute<int64_t>, x2_c1_offset),
               (Attribute<int64_t>, c1_len)) {
  constexpr int64_t kChannels = 16;  // in a block
  expect_dims("x1", x1, 4);
  expect_dims("x2", x2, 4);
  const int64_t length = c1_len.value_or(0);
  expect_at_least("c1_len", length, 0);
  // The last block is padded beyond the tensor's last channel.
  const auto blocks = [length](const char* name, const at::Tensor& x, int64_t offset) {
    const int64_t count = (x.size(1) + kChannels - 1) / kChannels;
    EXPECT(offset >= 0 && offset <= count && length <= count - offset, name, "_c1_offset is ",
           offset, " and c1_len ", length, ", expected a part of the ", count,
           " blocks of 16 channels of ", name);
    const at::Tensor whole =
        at::constant_pad_nd(wide(x), {0, 0, 0, 0, 0, count * kChannels - x.size(1)});
    return whole.narrow(1, offset * kChannels, length * kChannels);
  };
  const at::Tensor part = blocks("x1", x1, x1_c1_offset.value_or(0));
  y = part + blocks("x2", x2, x2_c1_offset.value_or(0));
}

}  // namespace aclnn_host::named_pointwise
