// Arithmetic on lists of tensors. The first versions take numbers as tensors.

#include <ATen/ScalarOps.h>

#include "cann/rows/foreach/foreach.h"
#include "cann/rows/row.h"

namespace aclnn_host::foreach_arithmetic_rows {

namespace {

// The only element of `value`, for computations with x.
at::Tensor number(const char* name, const at::Tensor& value, const at::Tensor& x) {
  EXPECT(value.numel() == 1, name, " has shape ", value.sizes(), ", expected one element");
  EXPECT(c10::canCast(value.scalar_type(), x.scalar_type()), name, " has dtype ",
         dtype_text(value.scalar_type()), ", expected one that converts to ",
         dtype_text(x.scalar_type()), ", the dtype of the lists; cast it");
  return value.reshape({}).to(wide(x.scalar_type()));
}

// Element i of a tensor that has one number for each tensor of a list.
at::Tensor number_of(const at::Tensor& scalars, size_t i, const std::vector<at::Tensor>& list) {
  EXPECT(scalars.numel() == static_cast<int64_t>(list.size()), "scalars has shape ",
         scalars.sizes(), ", expected ", list.size(), " elements, one for each tensor of x1");
  EXPECT(scalars.scalar_type() == list[i].scalar_type(), "scalars has dtype ",
         dtype_text(scalars.scalar_type()), ", expected ", dtype_text(list[i].scalar_type()),
         " as x1 has; cast it");
  return number("scalars", scalars.reshape({-1}).select(0, static_cast<int64_t>(i)), list[i]);
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

// ---- The first versions, with numbers in tensors

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
#define WITH_TENSOR(Name, function)                                                              \
  ACLNN(Foreach##Name##Scalar, (Ins, x), (In, scalar), (Outs, out)) {                            \
    for_each_of_one_type(                                                                        \
        out, [&](size_t i) { return at::function(wide(x[i]), number("scalar", scalar, x[i])); }, \
        x);                                                                                      \
  }
WITH_TENSOR(Add, add)
WITH_TENSOR(Sub, sub)
WITH_TENSOR(Mul, mul)
WITH_TENSOR(Div, div)
WITH_TENSOR(Pow, pow)
WITH_TENSOR(Maximum, maximum)
WITH_TENSOR(Minimum, minimum)
#undef WITH_TENSOR

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

// ---- Versions with aclScalar numbers

// aclnnForeach<Name>ScalarV2(x, scalar, out) and ...ScalarList(x, scalars, out)
#define WITH_SCALAR(Name, Kind, function)                                                      \
  ACLNN(Foreach##Name##ScalarV2, (Ins, x), (Kind, scalar), (Outs, out)) {                      \
    for_each(out, [&](size_t i) { return at::function(wide(x[i]), scalar); }, x);              \
  }                                                                                            \
  ACLNN(Foreach##Name##ScalarList, (Ins, x), (Kind##s, scalars), (Outs, out)) {                \
    for_each(out, [&](size_t i) { return at::function(wide(x[i]), scalars[i]); }, x, scalars); \
  }
WITH_SCALAR(Pow, Number, pow)
WITH_SCALAR(Maximum, AnyNumber, clamp_min)
WITH_SCALAR(Minimum, AnyNumber, clamp_max)
#undef WITH_SCALAR

// The same two functions for ATen's functions of tensors; the scalar becomes a tensor. ATen then
// multiplies and divides 16-bit numbers by the unrounded scalar; sums are computed in FLOAT
// instead.
#define WRITE_WITH_OPERAND(function, read, scalar)                                   \
  for_each_elementwise(                                                              \
      out, [&](size_t i) { return read(at::result_type(x[i], scalar)); },            \
      [&](size_t i) { return at::function(read(x[i]), scalar); },                    \
      [&](size_t i, at::Tensor& result) {                                            \
        at::function##_out(result, x[i], at::native::wrapped_scalar_tensor(scalar)); \
      },                                                                             \
      x)
#define WITH_OPERAND(Name, function, read)                                         \
  ACLNN(Foreach##Name##ScalarV2, (Ins, x), (AnyNumber, scalar), (Outs, out)) {     \
    WRITE_WITH_OPERAND(function, read, scalar);                                    \
  }                                                                                \
  ACLNN(Foreach##Name##ScalarList, (Ins, x), (AnyNumbers, scalars), (Outs, out)) { \
    check_lengths(out, scalars);                                                   \
    WRITE_WITH_OPERAND(function, read, scalars[i]);                                \
  }
WITH_OPERAND(Add, add, wide)
WITH_OPERAND(Sub, sub, wide)
WITH_OPERAND(Mul, mul, )
WITH_OPERAND(Div, div, )
#undef WITH_OPERAND
#undef WRITE_WITH_OPERAND

// aclnnForeach<Name>List(x1, x2, out)
#define WITH_LIST(Name, function)                                                \
  ACLNN(Foreach##Name##List, (Ins, x1), (Ins, x2), (Outs, out)) {                \
    for_each(out, [&](size_t i) { return at::function(x1[i], x2[i]); }, x1, x2); \
  }
WITH_LIST(Mul, mul)
WITH_LIST(Div, div)
WITH_LIST(Pow, pow)
WITH_LIST(Maximum, maximum)
WITH_LIST(Minimum, minimum)
#undef WITH_LIST

ACLNN(ForeachAddListV2, (Ins, x1), (Ins, x2), (AnyNumber, alpha), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::add(wide(x1[i]), wide(x2[i]), alpha); }, x1, x2);
}
ACLNN(ForeachSubListV2, (Ins, x1), (Ins, x2), (AnyNumber, alpha), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::sub(wide(x1[i]), wide(x2[i]), alpha); }, x1, x2);
}
ACLNN(ForeachLerpScalar, (Ins, x1), (Ins, x2), (AnyNumber, weight), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::lerp(x1[i], x2[i], weight); },
      [&](size_t i, at::Tensor& result) { at::lerp_out(result, x1[i], x2[i], weight); }, x1, x2);
}
ACLNN(ForeachLerpList, (Ins, x1), (Ins, x2), (Ins, weight), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::lerp(x1[i], x2[i], weight[i]); }, x1, x2, weight);
}
ACLNN(ForeachAddcmulScalarV2, (Ins, x1), (Ins, x2), (Ins, x3), (AnyNumber, scalar), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::addcmul(x1[i], x2[i], x3[i], scalar); },
      [&](size_t i, at::Tensor& result) { at::addcmul_out(result, x1[i], x2[i], x3[i], scalar); },
      x1, x2, x3);
}
ACLNN(ForeachAddcdivScalarV2, (Ins, x1), (Ins, x2), (Ins, x3), (AnyNumber, scalar), (Outs, out)) {
  for_each_elementwise(
      out, [&](size_t i) { return x1[i].scalar_type(); },
      [&](size_t i) { return at::addcdiv(x1[i], x2[i], x3[i], scalar); },
      [&](size_t i, at::Tensor& result) { at::addcdiv_out(result, x1[i], x2[i], x3[i], scalar); },
      x1, x2, x3);
}
ACLNN(ForeachPowScalarAndTensor, (Number, scalar), (Ins, x), (Outs, out)) {
  for_each(out, [&](size_t i) { return at::pow(scalar, wide(x[i])); }, x);
}

}  // namespace aclnn_host::foreach_arithmetic_rows
