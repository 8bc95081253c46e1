#pragma once

#include <cstdint>

#include "cann/rows/checks.h"
#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// A seed and an offset in tensors of one element, and a number that is added to the offset. INT64
// and UINT64 are equivalent.
class Seed {
 public:
  Seed(const at::Tensor& seed, const at::Tensor& offset, int64_t added)
      : seed_(bits("seedTensor", seed)),
        offset_(bits("offsetTensor", offset) + static_cast<uint64_t>(added)) {}

  Source source() const { return {seed_, offset_}; }

 private:
  static uint64_t bits(const char* name, const at::Tensor& tensor) {
    EXPECT(tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kUInt64, name,
           " has dtype ", dtype_text(tensor.scalar_type()), ", expected INT64 or UINT64");
    EXPECT(tensor.numel() == 1, name, " has shape ", tensor.sizes(), ", expected [1]");
    return tensor.is_cpu() ? static_cast<uint64_t>(tensor.view(at::kLong).item().toLong()) : 0;
  }

  uint64_t seed_;
  uint64_t offset_;
};

}  // namespace aclnn_host
