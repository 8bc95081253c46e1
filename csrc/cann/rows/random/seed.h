#pragma once

#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host {

inline uint64_t seed_bits(const char* name, const at::Tensor& tensor) {
  expect_dtype(name, tensor, {at::kLong, at::kUInt64});
  EXPECT(tensor.numel() == 1, name, " has shape ", tensor.sizes(), ", expected [1]");
  return tensor.is_cpu() ? static_cast<uint64_t>(tensor.view(at::kLong).item().toLong()) : 0;
}

// A seed and an offset in tensors of one element, and a number that is added to the offset. INT64
// and UINT64 are equivalent.
inline Source source_of(const at::Tensor& seed, const at::Tensor& offset, int64_t added) {
  return {seed_bits("seedTensor", seed),
          seed_bits("offsetTensor", offset) + static_cast<uint64_t>(added)};
}

}  // namespace aclnn_host
