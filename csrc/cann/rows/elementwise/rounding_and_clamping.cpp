// Rounding to integers or to a number of decimals, and clamping.

#include "cann/rows/elementwise/write_elementwise.h"
#include "cann/rows/row.h"

namespace aclnn_host::elementwise_rounding_and_clamping_rows {

namespace {

bool is_integer(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
}

// The fraction of an integer is 0; at::frac refuses integers.
at::Tensor fraction(const at::Tensor& self) {
  return is_integer(self) ? at::zeros_like(self) : at::frac(self);
}

// Rounds to a number of decimals; integers change only if it is negative.
at::Tensor rounded(const at::Tensor& self, int64_t decimals) {
  if (!is_integer(self)) return at::round(wide(self), decimals);
  if (decimals >= 0) return self;
  return at::round(self.to(at::kDouble), decimals).to(self.scalar_type());
}

}  // namespace

ACLNN_ELEMENTWISE(Ceil, at::ceil)
ACLNN_ELEMENTWISE(Floor, at::floor)
ACLNN_UNARY(Frac, fraction)
ACLNN_INPLACE_UNARY(Frac, fraction)
ACLNN_ELEMENTWISE(Round, at::round)

ACLNN(RoundDecimals, (In, self), (int64_t, decimals), (Out, out)) {
  out = rounded(self, decimals);
}
ACLNN(InplaceRoundDecimals, (InOut, selfRef), (int64_t, decimals)) {
  selfRef = rounded(selfRef, decimals);
}
ACLNN_ELEMENTWISE(Trunc, at::trunc)

ACLNN(Clamp, (In, self), (Optional<Number>, clipValueMin), (Optional<Number>, clipValueMax),
      (Out, out)) {
  require_given(clipValueMin || clipValueMax,
                "clipValueMin and clipValueMax are null, expected a number for one of them");
  out = at::clamp(self, clipValueMin, clipValueMax);
}
ACLNN(ClampTensor, (In, self), (Optional<In>, clipValueMin), (Optional<In>, clipValueMax),
      (Out, out)) {
  require_given(clipValueMin || clipValueMax,
                "clipValueMin and clipValueMax are null, expected a tensor for one of them");
  out = at::clamp(self, clipValueMin, clipValueMax);
}
ACLNN_BINARY_NUMBER(ClampMin, at::clamp_min)
ACLNN_BINARY(ClampMinTensor, at::clamp_min)
ACLNN_INPLACE_BINARY(ClampMinTensor, at::clamp_min)
ACLNN_BINARY_NUMBER(ClampMax, at::clamp_max)
ACLNN_INPLACE_BINARY_NUMBER(ClampMax, at::clamp_max)
ACLNN_BINARY(ClampMaxTensor, at::clamp_max)
ACLNN_INPLACE_BINARY(ClampMaxTensor, at::clamp_max)
ACLNN_BINARY(Maximum, at::maximum)
ACLNN_BINARY(Minimum, at::minimum)

ACLNN(NanToNum, (In, self), (float, nan), (float, posinf), (float, neginf), (Out, out)) {
  out = at::nan_to_num(self, nan, posinf, neginf);
}
ACLNN(InplaceNanToNum, (InOut, selfRef), (float, nan), (float, posinf), (float, neginf)) {
  selfRef = at::nan_to_num(selfRef, nan, posinf, neginf);
}

}  // namespace aclnn_host::elementwise_rounding_and_clamping_rows
