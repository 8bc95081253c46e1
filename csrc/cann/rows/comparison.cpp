// Comparisons, logic on booleans and bits, and choices by them.

#include <cmath>
#include <limits>

#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/where.h>

#include "cann/rows/checks.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::comparison_rows {

namespace {

using aclnn_host::compared;
template <class Compare>
at::Tensor compared(const at::Tensor& self, const c10::Scalar& other, Compare compare) {
  at::Tensor number = at::native::wrapped_scalar_tensor(other);
  if (self.scalar_type() == at::kUInt64) {
    EXPECT(other.isIntegral(/*includeBool=*/true) &&
               (other.type() == at::kUInt64 || other.toLong() >= 0),
           "other is ", other,
           ", expected an integer of 0 or more, because the tensor has dtype UINT64");
    number = number.to(at::kUInt64);
  }
  return compared(self, number, compare);
}

// The comparisons, of a tensor with a tensor or a number.
#define COMPARISON(name, function)                                                                \
  template <class Other>                                                                          \
  at::Tensor name(const at::Tensor& self, const Other& other) {                                   \
    return compared(self, other,                                                                  \
                    [](const at::Tensor& a, const at::Tensor& b) { return at::function(a, b); }); \
  }
COMPARISON(is_greater, gt)
COMPARISON(is_greater_equal, ge)
COMPARISON(is_less, lt)
COMPARISON(is_less_equal, le)
#undef COMPARISON

}  // namespace

ACLNN_BINARY(EqTensor, at::eq)
ACLNN_BINARY(NeTensor, at::ne)
ACLNN_BINARY(GtTensor, is_greater)
ACLNN_BINARY(GeTensor, is_greater_equal)
ACLNN_BINARY(LtTensor, is_less)
ACLNN_BINARY(LeTensor, is_less_equal)
ACLNN_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_BINARY_NUMBER(GtScalar, is_greater)
ACLNN_BINARY_NUMBER(GeScalar, is_greater_equal)
ACLNN_BINARY_NUMBER(LtScalar, is_less)
ACLNN_BINARY_NUMBER(LeScalar, is_less_equal)
ACLNN_INPLACE_BINARY(EqTensor, at::eq)
ACLNN_INPLACE_BINARY(NeTensor, at::ne)
ACLNN_INPLACE_BINARY(GtTensor, is_greater)
ACLNN_INPLACE_BINARY(GeTensor, is_greater_equal)
ACLNN_INPLACE_BINARY(LtTensor, is_less)
ACLNN_INPLACE_BINARY(LeTensor, is_less_equal)
ACLNN_INPLACE_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_INPLACE_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_INPLACE_BINARY_NUMBER(GtScalar, is_greater)
ACLNN_INPLACE_BINARY_NUMBER(GeScalar, is_greater_equal)
ACLNN_INPLACE_BINARY_NUMBER(LtScalar, is_less)
ACLNN_INPLACE_BINARY_NUMBER(LeScalar, is_less_equal)

// Whether two tensors have the same elements. (at::equal gives a bool, which a tensor without
// memory cannot.)
ACLNN(Equal, (In, self), (In, other), (Out, out)) {
  out = self.sizes() == other.sizes() ? at::eq(self, other).all()
                                      : at::full({}, false, self.options().dtype(at::kBool));
}
ACLNN(IsClose, (In, self), (In, other), (double, rtol), (double, atol), (bool, equalNan),
      (Out, out)) {
  out = at::isclose(self, other, rtol, atol, equalNan);
}
// Whether a number is among the elements of a tensor. (The document gives out the shape of
// testElements; CANN refuses that, and so does ATen: there is one answer.)
ACLNN(IsInScalarTensor, (Number, element), (In, testElements), (bool, assumeUnique), (bool, invert),
      (Out, out)) {
  const at::Tensor found = at::eq(testElements, element).any();
  out = invert ? found.logical_not() : found;
}
// Whether each element is a number.
ACLNN(IsInTensorScalar, (In, elements), (Number, testElement), (bool, assumeUnique), (bool, invert),
      (Out, out)) {
  out = invert ? at::ne(elements, testElement) : at::eq(elements, testElement);
}

ACLNN_BINARY(LogicalAnd, at::logical_and)
ACLNN_BINARY(LogicalOr, at::logical_or)
ACLNN_BINARY(LogicalXor, at::logical_xor)
ACLNN_INPLACE_BINARY(LogicalAnd, at::logical_and)
ACLNN_INPLACE_BINARY(LogicalOr, at::logical_or)

ACLNN_BINARY_OF(IntegralIn, IntegralIn, BitwiseAndTensor, at::bitwise_and)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, BitwiseOrTensor, at::bitwise_or)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, BitwiseXorTensor, at::bitwise_xor)
ACLNN_BINARY_OF(IntegralIn, Number, BitwiseAndScalar, at::bitwise_and)
ACLNN_BINARY_OF(IntegralIn, Number, BitwiseOrScalar, at::bitwise_or)
ACLNN_BINARY_OF(IntegralIn, Number, BitwiseXorScalar, at::bitwise_xor)
ACLNN_INPLACE_BINARY_OF(IntegralInOut, IntegralIn, BitwiseAndTensor, at::bitwise_and)
ACLNN_INPLACE_BINARY_OF(IntegralInOut, IntegralIn, BitwiseXorTensor, at::bitwise_xor)
ACLNN_INPLACE_BINARY_OF(IntegralInOut, Number, BitwiseAndScalar, at::bitwise_and)
ACLNN_INPLACE_BINARY_OF(IntegralInOut, Number, BitwiseXorScalar, at::bitwise_xor)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, LeftShift, at::bitwise_left_shift)
ACLNN_BINARY_OF(IntegralIn, Number, LeftShifts, at::bitwise_left_shift)
ACLNN_BINARY_OF(IntegralIn, IntegralIn, RightShift, at::bitwise_right_shift)

ACLNN_BINARY(Maximum, at::maximum)
ACLNN_BINARY(Minimum, at::minimum)

ACLNN(Clamp, (In, self), (OptionalNumber, clipValueMin), (OptionalNumber, clipValueMax),
      (Out, out)) {
  require_given(clipValueMin || clipValueMax,
                "clipValueMin and clipValueMax are null, expected a number for one of them");
  out = at::clamp(self, clipValueMin, clipValueMax);
}
ACLNN(ClampTensor, (In, self), (OptionalIn, clipValueMin), (OptionalIn, clipValueMax), (Out, out)) {
  require_given(clipValueMin || clipValueMax,
                "clipValueMin and clipValueMax are null, expected a tensor for one of them");
  out = at::clamp(self, clipValueMin, clipValueMax);
}
ACLNN_BINARY_NUMBER(ClampMin, at::clamp_min)
ACLNN_BINARY_NUMBER(ClampMax, at::clamp_max)
ACLNN_BINARY(ClampMinTensor, at::clamp_min)
ACLNN_BINARY(ClampMaxTensor, at::clamp_max)
ACLNN_INPLACE_BINARY_NUMBER(ClampMax, at::clamp_max)
ACLNN_INPLACE_BINARY(ClampMinTensor, at::clamp_min)
ACLNN_INPLACE_BINARY(ClampMaxTensor, at::clamp_max)

ACLNN(SWhere, (In, condition), (In, self), (In, other), (Out, out)) {
  out = at::where(condition.to(at::kBool), self, other);
}
ACLNN(InplaceMaskedFillScalar, (InOut, selfRef), (In, mask), (Number, value)) {
  selfRef = at::masked_fill(selfRef, mask.to(at::kBool), value);
}
ACLNN(InplaceMaskedFillTensor, (InOut, selfRef), (In, mask), (In, value)) {
  selfRef = at::masked_fill(selfRef, mask.to(at::kBool), value.reshape({}));
}
ACLNN(MaskedSelect, (In, self), (In, mask), (SizedOut, out)) {
  out.expect(self.scalar_type());
  at::infer_size(self.sizes(), mask.sizes());
  if (!self.is_cpu()) return;
  out = moved(self, [&](const at::Tensor& x) { return at::masked_select(x, mask.to(at::kBool)); });
}

ACLNN(ApproximateEqual, (FloatIn, x1), (FloatIn, x2), (float, tolerance), (Out, y)) {
  EXPECT(std::isfinite(tolerance.value()) && tolerance >= 0, "tolerance is ", tolerance.value(),
         ", expected a finite number that is not negative");
  expect_like("x2", x2, x1);
  expect_dtype("y", y, at::kBool);
  expect_shape("y", y, x1.sizes());
  y = at::abs(wide(x1) - wide(x2)) < tolerance.value();
}

}  // namespace aclnn_host::comparison_rows
