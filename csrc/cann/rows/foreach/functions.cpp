// Functions of lists of tensors.

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/row.h"

namespace aclnn_host::foreach_functions_rows {

namespace {

// Rounds half away from zero.
at::Tensor round_away(const at::Tensor& x) {
  const at::Tensor whole = at::trunc(x);
  return at::where((x - whole).abs() >= 0.5, whole + x.sign(), whole);
}

at::Tensor rounded(const at::Tensor& x, int64_t mode) {
  enum Mode { kFloor = 2, kCeil = 3, kAway = 4, kTrunc = 5, kOdd = 6, kFrac = 7 };
  if (at::isIntegralType(x.scalar_type(), /*includeBool=*/false)) {
    return mode == kFrac ? x - x : x.clone();
  }
  switch (mode) {
    case kFloor: return at::floor(x);
    case kCeil: return at::ceil(x);
    case kAway: return round_away(x);
    case kTrunc: return at::trunc(x);
    case kFrac: return x - at::trunc(x);
    case kOdd:
      EXPECT(false, "roundMode is 6 (to odd), expected another; the host CANN does not emulate it");
    default: return at::round(x);
  }
}

}  // namespace

// aclnnForeach<Name>(x, out)
#define UNARY(Name, function)                                                        \
  ACLNN(Foreach##Name, (Ins, x), (Outs, out)) {                                      \
    for_each_elementwise(                                                            \
        out, [&](size_t i) { return x[i].scalar_type(); },                           \
        [&](size_t i) { return at::function(x[i]); },                                \
        [&](size_t i, at::Tensor& result) { at::function##_out(result, x[i]); }, x); \
  }
UNARY(Abs, abs)
UNARY(Acos, acos)
ACLNN(ForeachACosInplace, (InOuts, x)) {
  for_each_of_one_type(x, [&](size_t i) { return at::acos(x[i]); });
}

UNARY(Asin, asin)
UNARY(Atan, atan)
UNARY(Cos, cos)
UNARY(Cosh, cosh)
UNARY(Erf, erf)
UNARY(Erfc, erfc)
UNARY(Exp, exp)
UNARY(Expm1, expm1)
UNARY(Log, log)
ACLNN(ForeachLogInplace, (InOuts, x)) {
  for_each_of_one_type(x, [&](size_t i) { return at::log(x[i]); });
}

UNARY(Log10, log10)
UNARY(Log1p, log1p)
UNARY(Log2, log2)
UNARY(Neg, neg)
UNARY(Reciprocal, reciprocal)
UNARY(Sigmoid, sigmoid)
UNARY(Sign, sign)
UNARY(Sin, sin)
UNARY(Sinh, sinh)
UNARY(Sqrt, sqrt)
UNARY(Tan, tan)
UNARY(Tanh, tanh)
#undef UNARY

ACLNN(ForeachCopy, (Ins, x), (Outs, out)) {
  for_each(out, [&](size_t i) { return x[i]; }, x);
}
ACLNN(ForeachZeroInplace, (InOuts, x)) {
  for_each(x, [&](size_t i) { return at::zeros_like(x[i]); });
}

// The mode of the first version is unknown in stage 1; all modes have the same shapes and dtypes.
// Behaviour of ForeachRoundOffNumber*: Mode 4 rounds halves away from zero, mode 7 leaves the
// fraction, and mode 6 (to odd) is refused: in stage 2 (507015) where it is a tensor, in stage 1
// (161002) where it is a number. Every other mode rounds halves to even.
ACLNN(ForeachRoundOffNumber, (Ins, x), (In, roundMode), (Outs, out)) {
  EXPECT(roundMode.numel() == 1 && roundMode.scalar_type() == at::kChar, "roundMode has shape ",
         roundMode.sizes(), " and dtype ", dtype_text(roundMode.scalar_type()),
         ", expected one element of INT8");
  const int64_t mode = has_values(roundMode) ? roundMode.reshape({}).item().toLong() : 1;
  for_each_of_one_type(out, [&](size_t i) { return rounded(x[i], mode); }, x);
}
ACLNN(ForeachRoundOffNumberV2, (Ins, x), (Number, roundMode), (Outs, out)) {
  const int64_t mode = roundMode.toLong();
  for_each(out, [&](size_t i) { return rounded(x[i], mode); }, x);
}
ACLNN(ForeachNorm, (Ins, x), (Number, scalar), (Outs, out)) {
  const auto norm = [&](size_t i) {
    const at::Tensor result = at::linalg_vector_norm(wide(x[i]), scalar);
    // The output has one element and any number of dimensions.
    return out[i]->numel() == 1 ? result.view(out[i]->sizes()) : result;
  };
  for_each(out, norm, x);
}

}  // namespace aclnn_host::foreach_functions_rows
