#include "kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "kernels/matmul_tile.h"

namespace aclnn_host {
namespace {

// A block of the left matrix fits into a second-level cache beside what passes through it, a panel
// of one tile's width into the first; a block of the right one into what the threads share.
constexpr int64_t kDepth = MatmulKernels::kDepth;
constexpr int64_t kBlockRows = 96;
constexpr int64_t kBlockColumns = 512;
static_assert(kBlockRows % kRows == 0 && kBlockColumns % kColumns == 0);

void compute_tile(int64_t rows, int64_t columns, int64_t depth, const float* left,
                  const float* right, float* out, int64_t stride, bool adds) {
  const Tile run = tile_for(rows, columns);
  const TileRows from = TileRows::panel(right, depth);
  if (columns == kColumns || columns == kLanes) return run(left, from, out, stride, adds);
  float whole[kRows * kColumns] = {};
  const auto size = static_cast<size_t>(columns) * sizeof(float);
  for (int64_t i = 0; adds && i < rows; ++i)
    std::memcpy(whole + i * kColumns, out + i * stride, size);
  run(left, from, whole, kColumns, adds);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * stride, whole + i * kColumns, size);
}

// Lines of the depth, of some rows of the left matrix.
void pack_left(const MatrixView& from, int64_t rows, int64_t depth, float* to) {
  if (from.row_stride != 1) return turn(from.data, from.row_stride, rows, depth, to, rows);
  const float* line = from.data;
  if (rows == kRows) {  // a constant, for which there is no call
    for (int64_t k = 0; k < depth; ++k, line += from.column_stride, to += kRows) {
      std::memcpy(to, line, kRows * sizeof(float));
    }
  } else {
    const auto size = static_cast<size_t>(rows) * sizeof(float);
    for (int64_t k = 0; k < depth; ++k, line += from.column_stride, to += rows) {
      std::memcpy(to, line, size);
    }
  }
}

// Panels of kColumns of the right matrix, in lines of the depth.
void pack_right(const MatrixView& from, int64_t columns, int64_t depth, float* to) {
  int64_t packed = 0;
  if (from.column_stride == 1) {
    // All whole panels together, so that memory is read in its order.
    packed = columns / kColumns * kColumns;
    for (int64_t k = 0; k < depth; ++k) {
      const float* const line = from.data + k * from.row_stride;
      float* place = to + k * kColumns;
      for (int64_t j = 0; j < packed; j += kColumns, place += depth * kColumns) {
        std::memcpy(place, line + j, kColumns * sizeof(float));
      }
    }
  }
  for (int64_t j = packed; j < columns; j += kColumns) {
    const int64_t count = std::min(kColumns, columns - j);
    float* const panel = to + j * depth;
    if (count < kColumns) std::fill_n(panel, depth * kColumns, 0.0f);
    if (from.column_stride != 1) {
      turn(from.data + j * from.column_stride, from.column_stride, count, depth, panel, kColumns);
      continue;
    }
    const auto size = static_cast<size_t>(count) * sizeof(float);
    for (int64_t k = 0; k < depth; ++k) {
      std::memcpy(panel + k * kColumns, from.data + k * from.row_stride + j, size);
    }
  }
}

void multiply_block(const MatrixProduct& p, const float* right, float* left) {
  for (int64_t i = 0; i < p.rows; i += kRows) {
    const int64_t rows = std::min(kRows, p.rows - i);
    pack_left(p.left.from(i, 0), rows, p.depth, left + i * p.depth);
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
      pack_right(p.right.from(k, column), columns, depth, right);
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
