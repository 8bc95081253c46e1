#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// The values of a tensor of integers that has memory, in order.
inline std::vector<int64_t> integers_in(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  const auto* const begin = flat.const_data_ptr<int64_t>();
  return {begin, begin + flat.numel()};
}

// x / other rounded towards 0, for one integer type. The processor traps when the least number is
// divided by -1, so this case is computed separately.
inline at::Tensor truncated_quotient(const at::Tensor& x, const at::Tensor& other) {
  if (!at::isSignedType(x.scalar_type())) return at::div(x, other, "trunc");
  const at::Tensor is_opposite = at::eq(other, -1);
  return at::where(is_opposite, at::neg(x), at::div(x, other.masked_fill(is_opposite, 1), "trunc"));
}

// The remainder with the sign of the divisor. The remainder by an integer 0 is the dividend, as
// CANN documents; ATen raises an error.
inline at::Tensor remainder_or_self(const at::Tensor& self, const at::Tensor& other) {
  if (!at::isIntegralType(at::result_type(self, other), /*includeBool=*/true)) {
    return at::remainder(self, other);
  }
  const at::Tensor is_zero = at::eq(other, 0);
  return at::where(is_zero, self, at::remainder(self, other.masked_fill(is_zero, 1)));
}

// Compares two tensors. ATen cannot order UINT16, UINT32 and UINT64. The first two are compared as
// INT64; UINT64 is compared by its bits with the highest one flipped, which has the order of INT64.
template <class Compare>
at::Tensor compared(at::Tensor self, at::Tensor other, Compare compare) {
  if (self.scalar_type() == at::kUInt64 || other.scalar_type() == at::kUInt64) {
    EXPECT(self.scalar_type() == other.scalar_type(), "a tensor of UINT64 is compared with ",
           "one of another dtype, expected UINT64 for both; cast one of them");
    constexpr int64_t kHighest = std::numeric_limits<int64_t>::min();
    return compare(self.view(at::kLong).bitwise_xor(kHighest),
                   other.view(at::kLong).bitwise_xor(kHighest));
  }
  if (c10::isBarebonesUnsignedType(self.scalar_type())) self = self.to(at::kLong);
  if (c10::isBarebonesUnsignedType(other.scalar_type())) other = other.to(at::kLong);
  return compare(self, other);
}

}  // namespace aclnn_host
