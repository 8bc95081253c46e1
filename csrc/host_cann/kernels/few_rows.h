// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "host_cann/kernels/matmul_tile.h"

namespace aclnn_host {
namespace {

// A left matrix of at most this many rows multiplies the right one in place: packing a panel would
// take longer. Computes as many sums at a time as a tile has.
constexpr int64_t kFewRows = 4;
constexpr int64_t kMaxVectors = 8;

constexpr int64_t vectors_of(int64_t rows) {
  return std::min(kMaxVectors, kRows * kVectors / rows);
}

// out[rows][count] = left[depth][rows] x right, or added to out; the rows of right begin at
// `places`. The last vector of a row may read elements beyond it, which do not affect the result.
template <class T, int64_t rows, int64_t vectors>
void multiply_few(const float* left, const float* right, std::span<const int64_t> places,
                  int64_t count, float* out, int64_t stride, bool adds) {
  V sums[rows][vectors];
#pragma GCC unroll 8
  for (int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int64_t j = 0; j < vectors; ++j) sums[i][j] = V(0);
  }
  for (const int64_t place : places) {
    V factors[rows];
#pragma GCC unroll 8
    for (int64_t i = 0; i < rows; ++i) factors[i] = V(left[i]);
    left += rows;
#pragma GCC unroll 8
    for (int64_t j = 0; j < vectors; ++j) {
      const V next = V::loadu(right + place + j * kLanes);
#pragma GCC unroll 8
      for (int64_t i = 0; i < rows; ++i) {
        sums[i][j] = multiply_add(T(), factors[i], next, sums[i][j]);
      }
    }
  }
  const int64_t last = count - (vectors - 1) * kLanes;
#pragma GCC unroll 8
  for (int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int64_t j = 0; j < vectors; ++j) {
      float* const to = out + i * stride + j * kLanes;
      const int64_t size = j + 1 < vectors ? kLanes : last;
      if (adds) sums[i][j] = V::loadu(to, size) + sums[i][j];
      sums[i][j].store(to, static_cast<int>(size));
    }
  }
}

using FewRows = void (*)(const float*, const float*, std::span<const int64_t>, int64_t, float*,
                         int64_t, bool);
using FewRowsByVectors = std::array<FewRows, kMaxVectors>;

// Indexed by the number of vectors, from 1.
template <class T, int64_t rows, size_t... vectors>
constexpr FewRowsByVectors few_rows_by_vectors(std::index_sequence<vectors...>) {
  return {multiply_few<T, rows, vectors + 1>...};
}
template <class T, size_t... rows>
constexpr std::array<FewRowsByVectors, kFewRows> few_rows(std::index_sequence<rows...>) {
  return {few_rows_by_vectors<T, rows + 1>(std::make_index_sequence<vectors_of(rows + 1)>())...};
}
template <class T>
constexpr auto kFew = few_rows<T>(std::make_index_sequence<kFewRows>());

// The same for any number of columns.
template <class T>
void multiply_few(int64_t rows, const float* left, const float* right,
                  std::span<const int64_t> places, int64_t count, float* out, int64_t stride,
                  bool adds) {
  const int64_t most = vectors_of(rows) * kLanes;
  for (int64_t column = 0; column < count; column += most) {
    const int64_t size = std::min(most, count - column);
    const auto vectors = static_cast<size_t>(divide_up(size, kLanes));
    kFew<T>[static_cast<size_t>(rows - 1)][vectors - 1](left, right + column, places, size,
                                                        out + column, stride, adds);
  }
}

}  // namespace
}  // namespace aclnn_host
