// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include "host_cann/kernels/matmul.h"
#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/sizes.h"

// Products of DOUBLE. Their bits must not depend on the division among threads, which no BLAS
// guarantees. DOUBLE is used for gradient checks more than for training, so there is one tile
// shape; edge tiles are computed in full and stored in part.
namespace aclnn_host {
namespace {
namespace of_double {

using V = at::vec::Vectorized<double>;
constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 2 * V::size();
constexpr int64_t kDepth = kSegmentWords / 2;
constexpr int64_t kBlockColumns = 256;
static_assert(kBlockColumns % kColumns == 0);

struct Panels {
  double* right;
  double* left;
};

inline Panels take_panels(ScratchParts& parts) {
  return {parts.take<double>(kBlockColumns * kDepth), parts.take<double>(kRows * kDepth)};
}

// to[k][i] = from[i][k] for i up to `width`; 0 from `count` on.
inline void pack(const double* from, int64_t stride, int64_t step, int64_t count, int64_t width,
                 int64_t depth, double* to) {
  for (int64_t k = 0; k < depth; ++k, to += width) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride + k * step];
    std::fill(to + count, to + width, 0.0);
  }
}

// out = left[depth][kRows] x right[depth][kColumns]; `adds` accumulates.
inline void tile(const double* left, const double* right, int64_t depth, double* out,
                 int64_t stride, bool adds) {
  V sums[kRows][2];
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = V(0);
  for (int64_t k = 0; k < depth; ++k, left += kRows, right += kColumns) {
    const V next[2] = {V::loadu(right), V::loadu(right + V::size())};
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
      const V factor(left[i]);
      sums[i][0] = at::vec::fmadd(factor, next[0], sums[i][0]);
      sums[i][1] = at::vec::fmadd(factor, next[1], sums[i][1]);
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      double* const to = out + i * stride + j * V::size();
      (adds ? V::loadu(to) + sums[i][j] : sums[i][j]).store(to);
    }
  }
}

// The same for fewer rows and columns.
inline void part_of_tile(int64_t rows, int64_t columns, const double* left, const double* right,
                         int64_t depth, double* out, int64_t stride, bool adds) {
  if (rows == kRows && columns == kColumns) return tile(left, right, depth, out, stride, adds);
  double whole[kRows * kColumns] = {};
  for (int64_t i = 0; adds && i < rows; ++i) {
    std::copy_n(out + i * stride, columns, whole + i * kColumns);
  }
  tile(left, right, depth, whole, kColumns, adds);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(whole + i * kColumns, columns, out + i * stride);
}

inline void multiply(const MatrixProduct<double>& p, void* scratch) {
  ScratchParts parts(scratch);
  const Panels panels = take_panels(parts);
  for (int64_t column = 0; column < p.columns; column += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, p.columns - column);
    bool adds = p.adds;
    for (int64_t term = 0; term < p.terms; ++term) {
      for (int64_t k = 0; k < p.depth; k += kDepth, adds = true) {
        const int64_t depth = std::min(kDepth, p.depth - k);
        for (int64_t j = 0; j < columns; j += kColumns) {
          const MatrixView<double> from = p.right.from(k, column + j);
          pack(from.data + term * p.right_term, from.column_stride, from.row_stride,
               std::min(kColumns, columns - j), kColumns, depth, panels.right + j * depth);
        }
        for (int64_t row = 0; row < p.rows; row += kRows) {
          const int64_t rows = std::min(kRows, p.rows - row);
          const MatrixView<double> from = p.left.from(row, k);
          pack(from.data + term * p.left_term, from.row_stride, from.column_stride, rows, kRows,
               depth, panels.left);
          for (int64_t j = 0; j < columns; j += kColumns) {
            part_of_tile(rows, std::min(kColumns, columns - j), panels.left,
                         panels.right + j * depth, depth, p.out + row * p.out_stride + column + j,
                         p.out_stride, adds);
          }
        }
      }
    }
  }
  if (p.bias.data == nullptr) return;
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) p.out[i * p.out_stride + j] += *p.bias.from(i, j).data;
  }
}

inline MatmulKernel<double> kernel() {
  ScratchParts parts(nullptr);
  take_panels(parts);
  return {parts.size(), multiply};
}

}  // namespace of_double
}  // namespace
}  // namespace aclnn_host
