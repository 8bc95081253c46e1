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

// out = left x right + bias; in rows of `out` the columns lie side by side. Of several terms the
// products are added up: the matrices of the next one are so many elements further on. The bias is
// added to what they come to, so that their sum has no roundings of its size. With `adds`, which
// results of FLOAT and DOUBLE may have, all is added to what `out` has, as further terms would be.
template <class T, class Result = T>
struct MatrixProduct {  // no size is 0
  int64_t rows;
  int64_t columns;
  int64_t depth;  // columns of left, rows of right
  MatrixView<T> left;
  MatrixView<T> right;
  Result* out;
  int64_t out_stride;
  // For each row or column one, the stride of the other dimension is 0; without data there is none.
  MatrixView<Result> bias{};
  int64_t terms = 1;
  int64_t left_term = 0;
  int64_t right_term = 0;
  bool adds = false;
};

// Every sum is made in the order of the terms and the depth, in segments of so many words of 32
// bits, wherever a product is divided by rows and columns: so its bits depend on nothing else. Sums
// of BFLOAT16 are made in FLOAT, and rounded once if the result is BFLOAT16, too.
constexpr int64_t kSegmentWords = 256;

template <class T, class Result = T>
struct MatmulKernel {
  int64_t scratch_size;  // bytes that `multiply` needs, aligned to 64
  void (*multiply)(const MatrixProduct<T, Result>& product, void* scratch);
};

struct MatmulKernels {
  // Into how many rows and columns a product is best divided: multiples of these.
  int64_t row_step;
  int64_t column_step;
  MatmulKernel<float> float32;
  MatmulKernel<double> float64;
  // With AVX512 and on aarch64 only for CPUs that have AVX512_BF16 or FEAT_BF16 too
  // (has_bfloat16_products). The other versions multiply it in FLOAT, and only tests call them.
  MatmulKernel<BFloat16> bfloat16;
  MatmulKernel<BFloat16, float> bfloat16_sums;
};

// The kernels in one version; kernels/matmul.cpp defines it once per CPU capability.
template <Capability>
const MatmulKernels& matmul_kernels() noexcept;

// The version for this CPU.
const MatmulKernels& matmul_kernels() noexcept;

}  // namespace aclnn_host
