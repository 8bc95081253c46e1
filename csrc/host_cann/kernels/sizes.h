// Arithmetic of sizes, for kernels and their callers. All names have internal linkage in the
// including file, because kernels are compiled once per CPU capability.
#pragma once

#include <cstdint>

namespace aclnn_host {
namespace {

// n / size, rounded up; n may be any size of an empty tensor, up to the largest number.
constexpr int64_t divide_up(int64_t n, int64_t size) {
  return n / size + (n % size != 0);
}

// Rounds up to a multiple of a size.
constexpr int64_t round_up(int64_t n, int64_t size) {
  return divide_up(n, size) * size;
}

}  // namespace
}  // namespace aclnn_host
