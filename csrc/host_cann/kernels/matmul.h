#pragma once

#include <cstdint>

#include "host_cann/kernels/bfloat16.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// A matrix. One of the strides is 1.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride;
  int64_t column_stride;

  MatrixView from(int64_t row, int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

// out = left x right + bias; rows of `out` are contiguous. Several terms are summed: the matrices
// of the next one are left_term and right_term elements further on. The bias is added to the sum of
// the products, so that partial sums are not rounded at its magnitude. With `adds`, for FLOAT and
// DOUBLE results, everything is added to `out`, like further terms.
template <class T, class Result = T>
struct MatrixProduct {  // no size is 0
  int64_t rows;
  int64_t columns;
  int64_t depth;  // columns of left, rows of right
  MatrixView<T> left;
  MatrixView<T> right;
  Result* out;
  int64_t out_stride;
  // For a bias per row or column, the stride of the other dimension is 0. No bias if data is null.
  MatrixView<Result> bias{};
  int64_t terms = 1;
  int64_t left_term = 0;
  int64_t right_term = 0;
  bool adds = false;
};

// Every sum follows the order of the terms and the depth, in segments of this many 32-bit words,
// however a product is divided by rows and columns, so its bits depend on nothing else. BFLOAT16 is
// summed in FLOAT, and rounded once if the result is BFLOAT16.
constexpr int64_t kSegmentWords = 256;

template <class T, class Result = T>
struct MatmulKernel {
  int64_t scratch_size;  // bytes that `multiply` needs, aligned to 64
  void (*multiply)(const MatrixProduct<T, Result>& product, void* scratch);
};

struct MatmulKernels {
  // Products are best divided at multiples of this many rows and columns.
  int64_t row_step;
  int64_t column_step;
  MatmulKernel<float> float32;
  MatmulKernel<double> float64;
  // With AVX512 and on aarch64, only for CPUs that also have AVX512_BF16 or FEAT_BF16
  // (has_bfloat16_products). Other versions multiply in FLOAT and are called by tests only.
  MatmulKernel<BFloat16> bfloat16;
  MatmulKernel<BFloat16, float> bfloat16_sums;
};

// The kernels in one version; kernels/matmul.cpp defines it once per CPU capability.
template <Capability>
const MatmulKernels& matmul_kernels() noexcept;

// The version for this CPU.
const MatmulKernels& matmul_kernels() noexcept;

}  // namespace aclnn_host
