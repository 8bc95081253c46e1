// Division of work among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>

#include "host_cann/kernels/matmul.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {

// The number of parts for this many multiplications: one per thread, if each has enough work to
// justify waking it.
inline int64_t part_count(double products) {
  constexpr double kGrain = 1 << 17;
  return std::clamp<int64_t>(static_cast<int64_t>(products / kGrain), 1, at::get_num_threads());
}

// The beginning of part `part` of `parts` (and the end of the one before): a multiple of `step`.
inline int64_t begin_of(int64_t part, int64_t parts, int64_t size, int64_t step) {
  return std::min(size, divide_up(size, step) * part / parts * step);
}

// A matrix product divided into at most `parts` pieces, along the longer side first. The bits are
// those of the undivided product.
struct ProductPieces {
  int64_t row_parts = 1;
  int64_t column_parts = 1;

  ProductPieces() = default;
  ProductPieces(int64_t rows, int64_t columns, int64_t parts, const MatmulKernels& kernels) {
    const int64_t row_tiles = divide_up(rows, kernels.row_step);
    const int64_t column_tiles = divide_up(columns, kernels.column_step);
    const bool wide = columns >= rows;
    int64_t& first = wide ? column_parts : row_parts;
    int64_t& second = wide ? row_parts : column_parts;
    first = std::min(parts, wide ? column_tiles : row_tiles);
    second = std::min(parts / first, wide ? row_tiles : column_tiles);
  }

  int64_t count() const { return row_parts * column_parts; }

  template <class T, class Result>
  MatrixProduct<T, Result> of(int64_t piece, const MatrixProduct<T, Result>& whole,
                              const MatmulKernels& kernels) const {
    const int64_t i = piece / column_parts;
    const int64_t j = piece % column_parts;
    const int64_t row = begin_of(i, row_parts, whole.rows, kernels.row_step);
    const int64_t column = begin_of(j, column_parts, whole.columns, kernels.column_step);
    MatrixProduct<T, Result> product = whole;
    product.rows = begin_of(i + 1, row_parts, whole.rows, kernels.row_step) - row;
    product.columns = begin_of(j + 1, column_parts, whole.columns, kernels.column_step) - column;
    product.left = whole.left.from(row, 0);
    product.right = whole.right.from(0, column);
    product.bias = whole.bias.from(row, column);
    product.out += row * whole.out_stride + column;
    return product;
  }
};

}  // namespace aclnn_host
