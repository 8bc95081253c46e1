#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>

namespace aclnn_host {

// The values of a tensor of integers that has some, in order.
inline std::vector<int64_t> integers_in(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  const auto* const begin = flat.const_data_ptr<int64_t>();
  return {begin, begin + flat.numel()};
}

// x / other rounded towards 0, of one integer type. The processor refuses to divide the least
// number by -1, so that this is a case of its own.
inline at::Tensor truncated_quotient(const at::Tensor& x, const at::Tensor& other) {
  if (!at::isSignedType(x.scalar_type())) return at::div(x, other, "trunc");
  const at::Tensor is_opposite = at::eq(other, -1);
  return at::where(is_opposite, at::neg(x), at::div(x, other.masked_fill(is_opposite, 1), "trunc"));
}

}  // namespace aclnn_host
