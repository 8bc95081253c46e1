// Arithmetic of sizes, for kernels and for what calls them. All names are internal to the file that
// includes this one, because kernels are compiled once per CPU capability.
#pragma once

#include <cstdint>

namespace aclnn_host {
namespace {

// How many parts of a size make n; n may be any size of an empty tensor, up to the largest number.
constexpr int64_t divide_up(int64_t n, int64_t size) {
  return n / size + (n % size != 0);
}

// The next multiple of a size.
constexpr int64_t round_up(int64_t n, int64_t size) {
  return divide_up(n, size) * size;
}

}  // namespace
}  // namespace aclnn_host
