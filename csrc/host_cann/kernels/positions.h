// Positions in 3-D images. All names have internal linkage in the including file, because kernels
// are compiled once per CPU capability.
#pragma once

#include <array>
#include <cstdint>

namespace aclnn_host {
namespace {

// A size, or another number, for each spatial dimension.
using Values = std::array<int64_t, 3>;

// The number of elements of an image or a kernel.
constexpr int64_t volume(const Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

constexpr int64_t index_of(const Values& at, const Values& sizes) {
  return (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
}

constexpr Values position_of(int64_t index, const Values& sizes) {
  return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
}

// Calls body(index, position) for every position in order.
template <class Body>
void for_each_position(const Values& sizes, Body body) {
  int64_t index = 0;
  for (int64_t z = 0; z < sizes[0]; ++z) {
    for (int64_t y = 0; y < sizes[1]; ++y) {
      for (int64_t x = 0; x < sizes[2]; ++x) body(index++, Values{z, y, x});
    }
  }
}

}  // namespace
}  // namespace aclnn_host
