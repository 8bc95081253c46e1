#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "kernels/capability.h"

namespace aclnn_host {

// What turns a matrix, for elements of one type: images between channels-first and channels-last;
// and sums along either side of one.
struct LayoutKernels {
  // Rows of `from` and of `to` are `from_stride` and `to_stride` elements apart:
  // to[column][row] = from[row][column].
  void (*transpose)(const void* from, int64_t from_stride, void* to, int64_t to_stride,
                    int64_t rows, int64_t columns);
  // Sums of n elements, and of a matrix' columns, to which its rows are added.
  double (*sum)(const void* from, int64_t n);
  void (*add_rows)(const void* from, int64_t rows, int64_t columns, double* sums);
};

struct LayoutKernelsByType {
  LayoutKernels float32;
  LayoutKernels float16;
  LayoutKernels bfloat16;
  LayoutKernels float64;

  const LayoutKernels& find(aclDataType dtype) const {
    switch (dtype) {
      case ACL_FLOAT16: return float16;
      case ACL_BF16: return bfloat16;
      case ACL_DOUBLE: return float64;
      default: return float32;
    }
  }
};

// The kernels in one version; kernels/layout.cpp defines it once per CPU capability.
template <Capability>
const LayoutKernelsByType& layout_kernels() noexcept;

}  // namespace aclnn_host
