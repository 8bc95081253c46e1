#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
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

// A block of the left matrix fits into a second-level cache beside what passes through it, a panel
// of one tile's width into the first; a block of the right one into what the threads share.
constexpr int64_t kDepth = MatmulKernels::kDepth;
constexpr int64_t kBlockRows = 96;
constexpr int64_t kBlockColumns = 512;
static_assert(kBlockRows % kRows == 0 && kBlockColumns % kColumns == 0);

// Some rows and columns of the result: left[depth][rows] x right[depth][kColumns].
template <int64_t rows, int64_t vectors>
void tile(int64_t depth, const float* left, const float* right, float* out, int64_t stride,
          bool adds) {
  V sums[rows][vectors];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) {
      sums[i][j] = adds ? V::loadu(out + i * stride + j * kLanes) : V(0);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    V next[vectors];
    for (int64_t j = 0; j < vectors; ++j) next[j] = V::loadu(right + k * kColumns + j * kLanes);
#pragma GCC unroll 12
    for (int64_t i = 0; i < rows; ++i) {
      const V factor(left[k * rows + i]);
      for (int64_t j = 0; j < vectors; ++j) {
        sums[i][j] = at::vec::fmadd(factor, next[j], sums[i][j]);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) sums[i][j].store(out + i * stride + j * kLanes);
  }
}

using Tile = void (*)(int64_t, const float*, const float*, float*, int64_t, bool);

// By the number of rows, from 1.
template <int64_t vectors, size_t... rows>
constexpr std::array<Tile, kRows> tiles(std::index_sequence<rows...>) {
  return {tile<rows + 1, vectors>...};
}
constexpr auto kNarrow = tiles<1>(std::make_index_sequence<kRows>());
constexpr auto kWide = tiles<kVectors>(std::make_index_sequence<kRows>());

void compute_tile(int64_t rows, int64_t columns, int64_t depth, const float* left,
                  const float* right, float* out, int64_t stride, bool adds) {
  const Tile run = (columns <= kLanes ? kNarrow : kWide)[static_cast<size_t>(rows - 1)];
  if (columns == kColumns || columns == kLanes) {
    return run(depth, left, right, out, stride, adds);
  }
  float whole[kRows * kColumns] = {};
  const auto size = static_cast<size_t>(columns) * sizeof(float);
  for (int64_t i = 0; adds && i < rows; ++i)
    std::memcpy(whole + i * kColumns, out + i * stride, size);
  run(depth, left, right, whole, kColumns, adds);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * stride, whole + i * kColumns, size);
}

// to[line][i] = from[i][line], for lines that are `to_stride` apart: elements of one i lie side by
// side in `from`.
[[gnu::flatten]] void turn(const float* from, int64_t from_stride, int64_t count, int64_t lines,
                           float* to, int64_t to_stride) {
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

// Lines of the depth, `width` apart, of as many rows of the left matrix or columns of the right.
void pack(const float* from, int64_t depth_stride, int64_t other_stride, int64_t count,
          int64_t depth, float* to, int64_t width) {
  if (other_stride == 1) {
    const auto size = static_cast<size_t>(count) * sizeof(float);
    for (int64_t k = 0; k < depth; ++k) std::memcpy(to + k * width, from + k * depth_stride, size);
  } else {
    turn(from, other_stride, count, depth, to, width);
  }
}

void multiply_block(const MatrixProduct& p, const float* right, float* left) {
  for (int64_t i = 0; i < p.rows; i += kRows) {
    const int64_t rows = std::min(kRows, p.rows - i);
    pack(p.left.from(i, 0).data, p.left.column_stride, p.left.row_stride, rows, p.depth,
         left + i * p.depth, rows);
  }
  for (int64_t j = 0; j < p.columns; j += kColumns) {
    const int64_t columns = std::min(kColumns, p.columns - j);
    for (int64_t i = 0; i < p.rows; i += kRows) {
      compute_tile(std::min(kRows, p.rows - i), columns, p.depth, left + i * p.depth,
                   right + j * p.depth, p.out + i * p.out_stride + j, p.out_stride, p.adds);
    }
  }
}

void multiply(const MatrixProduct& p, void* scratch) {
  auto* const right = static_cast<float*>(scratch);
  float* const left = right + kBlockColumns * kDepth;
  for (int64_t column = 0; column < p.columns; column += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, p.columns - column);
    for (int64_t k = 0; k < p.depth; k += kDepth) {
      const int64_t depth = std::min(kDepth, p.depth - k);
      for (int64_t j = 0; j < columns; j += kColumns) {
        const int64_t count = std::min(kColumns, columns - j);
        float* const panel = right + j * depth;
        if (count < kColumns) std::fill_n(panel, depth * kColumns, 0.0f);
        const MatrixView from = p.right.from(k, column + j);
        pack(from.data, from.row_stride, from.column_stride, count, depth, panel, kColumns);
      }
      for (int64_t row = 0; row < p.rows; row += kBlockRows) {
        multiply_block(
            {std::min(kBlockRows, p.rows - row), columns, depth, p.left.from(row, k), p.right,
             p.out + row * p.out_stride + column, p.out_stride, p.adds || k > 0},
            right, left);
      }
    }
  }
}

}  // namespace

template <>
const MatmulKernels& matmul_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr MatmulKernels kKernels = {
      kRows, kColumns, (kBlockColumns + kBlockRows) * kDepth * static_cast<int64_t>(sizeof(float)),
      multiply};
  return kKernels;
}

}  // namespace aclnn_host
