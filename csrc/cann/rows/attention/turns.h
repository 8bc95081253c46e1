#pragma once

#include "cann/rows/row.h"

// Rotations by 90 degrees, the part of a rotary position embedding that sin scales: each pair
// (a, b) of elements of the last dimension becomes (-b, a). Applied twice, a turn is a negation, so
// its transpose is its negation.
namespace aclnn_host {

inline at::Tensor every_second(const at::Tensor& x, int64_t first) {
  return x.slice(-1, first, std::nullopt, 2);
}
inline at::Tensor interleaved(const at::Tensor& even, const at::Tensor& odd) {
  return at::stack({even, odd}, -1).flatten(-2);
}
// The elements of a pair are neighbours.
inline at::Tensor turned_neighbours(const at::Tensor& x) {
  return interleaved(-every_second(x, 1), every_second(x, 0));
}
// Each half has one element of every pair.
inline at::Tensor turned_halves(const at::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return at::cat({-halves[1], halves[0]}, -1);
}

}  // namespace aclnn_host
