#pragma once

#include <algorithm>

#include "cann/rows/engine/refusal.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// Refuses indices outside [least, limit). Some functions of ATen do not check their indices and
// would read or write outside the tensor. (A device does not refuse: it accesses other memory.)
// Tensors without memory have no values to check.
inline void check_bounds(const char* name, const at::Tensor& indices, int64_t limit,
                         int64_t least = 0) {
  if (!indices.is_cpu() || indices.numel() == 0) return;
  const auto [low, high] = at::aminmax(indices);
  EXPECT(low.item().toLong() >= least && high.item().toLong() < limit, name, " has values from ",
         low.item().toLong(), " to ", high.item().toLong(), ", expected ", least, " to ",
         limit - 1);
}

inline void expect_sizes_from_0(const char* name, at::IntArrayRef sizes) {
  EXPECT(std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }), name, " is ", sizes,
         ", expected sizes of 0 or more");
}

// The product of sizes, for functions of ATen that do not check it. That of the sizes beside a 0
// may be too large.
inline int64_t product(at::IntArrayRef sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) {
    EXPECT(!__builtin_mul_overflow(result, size, &result), "the product of the sizes ", sizes,
           " is more than INT64 holds, expected smaller ones");
  }
  return result;
}

}  // namespace aclnn_host
