#pragma once

#include <cstdint>

#include "kernels/capability.h"

namespace aclnn_host {

// A matrix of FLOAT. One of the strides is 1.
struct MatrixView {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;

  MatrixView from(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

// out = left x right, or added to it; in rows of `out` the columns lie side by side.
struct MatrixProduct {  // no size is 0
  int64_t rows;
  int64_t columns;
  int64_t depth;  // columns of left, rows of right
  MatrixView left;
  MatrixView right;
  float* out;
  int64_t out_stride;
  bool adds;
};

// Every sum is made in the order of the depth, in segments of kDepth, wherever a product is divided
// by rows and columns: so its bits depend on nothing else.
struct MatmulKernels {
  static constexpr int64_t kDepth = 256;

  // Into how many rows and columns a product is best divided: multiples of these.
  int64_t row_step;
  int64_t column_step;
  int64_t scratch_size;  // bytes that `multiply` needs, aligned to 64
  void (*multiply)(const MatrixProduct& product, void* scratch);
};

// The kernels in one version; kernels/matmul.cpp defines it once per CPU capability.
template <Capability>
const MatmulKernels& matmul_kernels() noexcept;

}  // namespace aclnn_host
