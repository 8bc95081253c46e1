// The first versions of functions on lists of tensors, whose numbers stand in tensors.

#include <ATen/TensorOperators.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/div.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/log.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/row.h"

namespace aclnn_host::foreach_first_rows {

namespace {

// The same, where all tensors of a call have one type.
template <class Result, class... Lists>
void for_each_of_one_type(std::vector<Output>& out, Result result, const Lists&... lists) {
  const auto checked = [&](size_t i) {
    const at::ScalarType dtype = out[0]->scalar_type();
    EXPECT(out[i]->scalar_type() == dtype && ((lists[i].scalar_type() == dtype) && ...),
           "the tensors ", i, " of the lists have different dtypes, expected ", dtype,
           " for all of them; cast them");
    return result(i);
  };
  for_each(out, checked, lists...);
}

// The only element of a tensor, to compute with x.
at::Tensor number(const char* name, const at::Tensor& value, const at::Tensor& x) {
  EXPECT(value.numel() == 1, name, " has shape ", value.sizes(), ", expected one element");
  EXPECT(c10::canCast(value.scalar_type(), x.scalar_type()), name, " has dtype ",
         dtype_text(value.scalar_type()), ", expected one that converts to ",
         dtype_text(x.scalar_type()), ", the dtype of the lists; cast it");
  return value.reshape({}).to(wide(x.scalar_type()));
}

// Element i of a tensor with one number for each tensor of a list.
at::Tensor number_of(const at::Tensor& scalars, size_t i, const std::vector<at::Tensor>& list) {
  EXPECT(scalars.numel() == static_cast<int64_t>(list.size()), "scalars has shape ",
         scalars.sizes(), ", expected ", list.size(), " elements, one for each tensor of x1");
  EXPECT(scalars.scalar_type() == list[i].scalar_type(), "scalars has dtype ",
         dtype_text(scalars.scalar_type()), ", expected ", dtype_text(list[i].scalar_type()),
         " as x1 has; cast it");
  return number("scalars", scalars.reshape({-1}).select(0, static_cast<int64_t>(i)), list[i]);
}

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
    case kOdd: EXPECT(false, "roundMode is 6 (to odd), which the host CANN does not emulate");
    default: return at::round(x);
  }
}

at::Tensor addcmul(const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& x3,
                   const at::Tensor& scale) {
  return wide(x1) + scale * wide(x2) * wide(x3);
}
at::Tensor addcdiv(const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& x3,
                   const at::Tensor& scale) {
  return wide(x1) + wide(x2) / wide(x3) * scale;
}

}  // namespace

ACLNN(ForeachACosInplace, (InOuts, x)) {
  for_each_of_one_type(x, [&](size_t i) { return at::acos(x[i]); });
}
ACLNN(ForeachLogInplace, (InOuts, x)) {
  for_each_of_one_type(x, [&](size_t i) { return at::log(x[i]); });
}

// aclnnForeach<Name>List(x1, x2, alpha, out) and ...ListInplace(x1, x2, alpha)
#define WITH_ALPHA(Name, function)                                                           \
  ACLNN(Foreach##Name##List, (Ins, x1), (Ins, x2), (In, alpha), (Outs, out)) {               \
    const auto result = [&](size_t i) {                                                      \
      return at::function(wide(x1[i]), wide(x2[i]) * number("alpha", alpha, x1[i]));         \
    };                                                                                       \
    for_each_of_one_type(out, result, x1, x2);                                               \
  }                                                                                          \
  ACLNN(Foreach##Name##ListInplace, (InOuts, x1), (Ins, x2), (In, alpha)) {                  \
    const std::vector<at::Tensor> before = tensors(x1);                                      \
    const auto result = [&](size_t i) {                                                      \
      return at::function(wide(before[i]), wide(x2[i]) * number("alpha", alpha, before[i])); \
    };                                                                                       \
    for_each_of_one_type(x1, result, x2);                                                    \
  }
WITH_ALPHA(Add, add)
WITH_ALPHA(Sub, sub)
#undef WITH_ALPHA

// aclnnForeach<Name>ListInplace(x1, x2)
#define INPLACE_LIST(Name, function)                                                        \
  ACLNN(Foreach##Name##ListInplace, (InOuts, x1), (Ins, x2)) {                              \
    const std::vector<at::Tensor> before = tensors(x1);                                     \
    for_each_of_one_type(x1, [&](size_t i) { return at::function(before[i], x2[i]); }, x2); \
  }
INPLACE_LIST(Mul, mul)
INPLACE_LIST(Div, div)
#undef INPLACE_LIST

// aclnnForeach<Name>Scalar(x, scalar, out)
#define WITH_SCALAR(Name, function)                                                              \
  ACLNN(Foreach##Name##Scalar, (Ins, x), (In, scalar), (Outs, out)) {                            \
    for_each_of_one_type(                                                                        \
        out, [&](size_t i) { return at::function(wide(x[i]), number("scalar", scalar, x[i])); }, \
        x);                                                                                      \
  }
WITH_SCALAR(Add, add)
WITH_SCALAR(Sub, sub)
WITH_SCALAR(Mul, mul)
WITH_SCALAR(Div, div)
WITH_SCALAR(Pow, pow)
WITH_SCALAR(Maximum, maximum)
WITH_SCALAR(Minimum, minimum)
#undef WITH_SCALAR

// aclnnForeach<Name>ScalarInplace(x, scalar)
#define INPLACE_SCALAR(Name, function)                                           \
  ACLNN(Foreach##Name##ScalarInplace, (InOuts, x), (In, scalar)) {               \
    const std::vector<at::Tensor> before = tensors(x);                           \
    for_each_of_one_type(x, [&](size_t i) {                                      \
      return at::function(wide(before[i]), number("scalar", scalar, before[i])); \
    });                                                                          \
  }
INPLACE_SCALAR(Sub, sub)
INPLACE_SCALAR(Mul, mul)
#undef INPLACE_SCALAR

// aclnnForeach<Name>Scalar(x1, x2, x3, scalar, out), and ...List and ...ScalarList with a number
// for each triple.
#define TERNARY(Name, function)                                                                   \
  ACLNN(Foreach##Name##Scalar, (Ins, x1), (Ins, x2), (Ins, x3), (In, scalar), (Outs, out)) {      \
    const auto result = [&](size_t i) {                                                           \
      return function(x1[i], x2[i], x3[i], number("scalar", scalar, x1[i]));                      \
    };                                                                                            \
    for_each_of_one_type(out, result, x1, x2, x3);                                                \
  }                                                                                               \
  ACLNN(Foreach##Name##List, (Ins, x1), (Ins, x2), (Ins, x3), (In, scalars), (Outs, out)) {       \
    const auto result = [&](size_t i) {                                                           \
      return function(x1[i], x2[i], x3[i], number_of(scalars, i, x1));                            \
    };                                                                                            \
    for_each_of_one_type(out, result, x1, x2, x3);                                                \
  }                                                                                               \
  ACLNN(Foreach##Name##ScalarList, (Ins, x1), (Ins, x2), (Ins, x3), (In, scalars), (Outs, out)) { \
    const auto result = [&](size_t i) {                                                           \
      return function(x1[i], x2[i], x3[i], number_of(scalars, i, x1));                            \
    };                                                                                            \
    for_each_of_one_type(out, result, x1, x2, x3);                                                \
  }
TERNARY(Addcmul, addcmul)
TERNARY(Addcdiv, addcdiv)
#undef TERNARY

// Without data there is no mode, and all are alike.
ACLNN(ForeachRoundOffNumber, (Ins, x), (In, roundMode), (Outs, out)) {
  EXPECT(roundMode.numel() == 1 && roundMode.scalar_type() == at::kChar, "roundMode has shape ",
         roundMode.sizes(), " and dtype ", dtype_text(roundMode.scalar_type()),
         ", expected one element of INT8");
  const bool is_known = roundMode.is_cpu() && !is_rehearsed();
  const int64_t mode = is_known ? roundMode.reshape({}).item().toLong() : 1;
  for_each_of_one_type(out, [&](size_t i) { return rounded(x[i], mode); }, x);
}

}  // namespace aclnn_host::foreach_first_rows
