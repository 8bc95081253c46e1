// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

namespace aclnn_host {
namespace {

using V = at::vec::Vectorized<float>;
constexpr int64_t kLanes = V::size();

// A tile of the result stays in registers: 24 vectors of 32, or 12 of 16, and the next of the right
// matrix beside them.
#if defined(CPU_CAPABILITY_AVX512) || defined(__aarch64__)
constexpr int64_t kRows = 12;
#else
constexpr int64_t kRows = 6;
#endif
constexpr int64_t kVectors = 2;
constexpr int64_t kColumns = kVectors * kLanes;

// The rows of a right matrix, kColumns elements of each: in segments of one length, in which they
// are `step` apart; `jump` is from segment to segment.
struct TileRows {
  const float* data;
  int64_t segments;
  int64_t length;
  int64_t step;
  int64_t jump;

  // Rows that lie one after the other.
  static TileRows panel(const float* data, int64_t depth) { return {data, 1, depth, kColumns, 0}; }
};

// Some rows and columns of the result: left[depth][rows] x right[depth][columns].
template <int64_t rows, int64_t vectors>
void tile(const float* left, const TileRows& right, float* out, int64_t stride, bool adds) {
  V sums[rows][vectors];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) {
      sums[i][j] = adds ? V::loadu(out + i * stride + j * kLanes) : V(0);
    }
  }
  for (int64_t segment = 0; segment < right.segments; ++segment) {
    const float* from = right.data + segment * right.jump;
    for (int64_t k = 0; k < right.length; ++k, left += rows, from += right.step) {
      V next[vectors];
      for (int64_t j = 0; j < vectors; ++j) next[j] = V::loadu(from + j * kLanes);
#pragma GCC unroll 12
      for (int64_t i = 0; i < rows; ++i) {
        const V factor(left[i]);
        for (int64_t j = 0; j < vectors; ++j) {
          sums[i][j] = at::vec::fmadd(factor, next[j], sums[i][j]);
        }
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) sums[i][j].store(out + i * stride + j * kLanes);
  }
}

using Tile = void (*)(const float*, const TileRows&, float*, int64_t, bool);

// By the number of rows, from 1.
template <int64_t vectors, size_t... rows>
constexpr std::array<Tile, kRows> tiles(std::index_sequence<rows...>) {
  return {tile<rows + 1, vectors>...};
}
constexpr auto kNarrow = tiles<1>(std::make_index_sequence<kRows>());
constexpr auto kWide = tiles<kVectors>(std::make_index_sequence<kRows>());

// The tile for so many rows and columns. It writes whole vectors.
inline Tile tile_for(int64_t rows, int64_t columns) {
  return (columns <= kLanes ? kNarrow : kWide)[static_cast<size_t>(rows - 1)];
}

// to[line][i] = from[i][line], for lines that are `to_stride` apart: elements of one i lie side by
// side in `from`.
[[gnu::flatten]] inline void turn(const float* from, int64_t from_stride, int64_t count,
                                  int64_t lines, float* to, int64_t to_stride) {
  constexpr int64_t kTile = 16;
  for (int64_t i = 0; i < count; i += kTile) {
    const int64_t high = std::min(kTile, count - i);
    for (int64_t line = 0; line < lines; line += kTile) {
      const int64_t wide = std::min(kTile, lines - line);
      const float* const begin = from + i * from_stride + line;
      float* const out = to + line * to_stride + i;
      if (high == kTile && wide == kTile) {
        at::vec::transpose_mxn<float, kTile, kTile>(begin, from_stride, out, to_stride);
      } else {
        at::vec::transpose_mxn<float>(begin, from_stride, out, to_stride, static_cast<int>(high),
                                      static_cast<int>(wide));
      }
    }
  }
}

}  // namespace
}  // namespace aclnn_host
