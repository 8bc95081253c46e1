// Comparisons, logic on booleans and bits, and choices by them.

#include <ATen/ExpandUtils.h>
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
#include <ATen/ops/isin.h>
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

#include "plumbing/plumbing.h"

using namespace aclnn_host;

ACLNN_BINARY(EqTensor, at::eq)
ACLNN_BINARY(NeTensor, at::ne)
ACLNN_BINARY(GtTensor, at::gt)
ACLNN_BINARY(GeTensor, at::ge)
ACLNN_BINARY(LtTensor, at::lt)
ACLNN_BINARY(LeTensor, at::le)
ACLNN_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_BINARY_NUMBER(GtScalar, at::gt)
ACLNN_BINARY_NUMBER(GeScalar, at::ge)
ACLNN_BINARY_NUMBER(LtScalar, at::lt)
ACLNN_BINARY_NUMBER(LeScalar, at::le)
ACLNN_INPLACE_BINARY(EqTensor, at::eq)
ACLNN_INPLACE_BINARY(NeTensor, at::ne)
ACLNN_INPLACE_BINARY(GtTensor, at::gt)
ACLNN_INPLACE_BINARY(GeTensor, at::ge)
ACLNN_INPLACE_BINARY(LtTensor, at::lt)
ACLNN_INPLACE_BINARY(LeTensor, at::le)
ACLNN_INPLACE_BINARY_NUMBER(EqScalar, at::eq)
ACLNN_INPLACE_BINARY_NUMBER(NeScalar, at::ne)
ACLNN_INPLACE_BINARY_NUMBER(GtScalar, at::gt)
ACLNN_INPLACE_BINARY_NUMBER(GeScalar, at::ge)
ACLNN_INPLACE_BINARY_NUMBER(LtScalar, at::lt)
ACLNN_INPLACE_BINARY_NUMBER(LeScalar, at::le)

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
ACLNN(IsInScalarTensor, (Number, element), (In, testElements), (bool, assumeUnique), (bool, invert),
      (Out, out)) {
  out = at::isin(element, testElements, assumeUnique, invert);
}
ACLNN(IsInTensorScalar, (In, elements), (Number, testElement), (bool, assumeUnique), (bool, invert),
      (Out, out)) {
  out = at::isin(elements, testElement, assumeUnique, invert);
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
  out = at::clamp(self, clipValueMin, clipValueMax);
}
ACLNN(ClampTensor, (In, self), (OptionalIn, clipValueMin), (OptionalIn, clipValueMax), (Out, out)) {
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
  if (self.is_cpu()) out = at::masked_select(self, mask.to(at::kBool));
}
