// Comparisons, signs, and tests for NaN and infinities.

#include <ATen/ScalarOps.h>

#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_comparison_rows {

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

// Comparisons of a tensor with a tensor or a number.
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
ACLNN_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_INPLACE_BINARY(EqTensor, at::eq)
ACLNN_INPLACE_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_BINARY(NeTensor, at::ne)
ACLNN_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_INPLACE_BINARY(NeTensor, at::ne)
ACLNN_INPLACE_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_BINARY(GtTensor, is_greater)
ACLNN_BINARY_NUMBER(GtScalar, is_greater)
ACLNN_INPLACE_BINARY(GtTensor, is_greater)
ACLNN_INPLACE_BINARY_NUMBER(GtScalar, is_greater)
ACLNN_BINARY(GeTensor, is_greater_equal)
ACLNN_BINARY_NUMBER(GeScalar, is_greater_equal)
ACLNN_INPLACE_BINARY(GeTensor, is_greater_equal)
ACLNN_INPLACE_BINARY_NUMBER(GeScalar, is_greater_equal)
ACLNN_BINARY(LtTensor, is_less)
ACLNN_BINARY_NUMBER(LtScalar, is_less)
ACLNN_INPLACE_BINARY(LtTensor, is_less)
ACLNN_INPLACE_BINARY_NUMBER(LtScalar, is_less)
ACLNN_BINARY(LeTensor, is_less_equal)
ACLNN_BINARY_NUMBER(LeScalar, is_less_equal)
ACLNN_INPLACE_BINARY(LeTensor, is_less_equal)
ACLNN_INPLACE_BINARY_NUMBER(LeScalar, is_less_equal)

// True if both tensors have the same shape and elements. (at::equal returns a bool, for which a
// tensor without memory has no value.)
ACLNN(Equal, (In, self), (In, other), (Out, out)) {
  out = self.sizes() == other.sizes() ? at::eq(self, other).all()
                                      : at::full({}, false, self.options().dtype(at::kBool));
}
ACLNN(IsClose, (In, self), (In, other), (double, rtol), (double, atol), (bool, equalNan),
      (Out, out)) {
  out = at::isclose(self, other, rtol, atol, equalNan);
}

ACLNN(ApproximateEqual, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"), (float, tolerance),
      (SameShape<Out>, y, "x1")) {
  EXPECT(std::isfinite(tolerance.value()) && tolerance >= 0, "tolerance is ", tolerance.value(),
         ", expected a finite number that is not negative");
  expect_dtype("y", y, at::kBool);
  y = at::abs(wide(x1) - wide(x2)) < tolerance.value();
}
// Tests whether a number is one of the elements of a tensor.
// Behaviour of IsInScalarTensor: out has no dimensions, as CANN's check requires and torch_npu
// passes it. The document gives it the shape of testElements.
ACLNN(IsInScalarTensor, (Number, element), (In, testElements),
      (Unused<bool>, assumeUnique, "CANN does not read it"), (bool, invert), (Out, out)) {
  const at::Tensor found = at::eq(testElements, element).any();
  out = invert ? found.logical_not() : found;
}
// Tests for each element whether it equals a number.
ACLNN(IsInTensorScalar, (In, elements), (Number, testElement),
      (Unused<bool>, assumeUnique, "CANN does not read it"), (bool, invert), (Out, out)) {
  out = invert ? at::ne(elements, testElement) : at::eq(elements, testElement);
}

ACLNN_UNARY(IsFinite, at::isfinite)

// Deviation of IsInf: out may have any type that BOOL can be cast to.
ACLNN(IsInf, (In, x), (Out, out)) {
  out = at::isinf(x);
}

ACLNN_UNARY(IsNegInf, at::isneginf)
ACLNN_UNARY(IsPosInf, at::isposinf)
ACLNN_UNARY(Sign, at::sgn)  // also for complex numbers
ACLNN_UNARY(Signbit, at::signbit)

}  // namespace aclnn_host::elementwise_comparison_rows
