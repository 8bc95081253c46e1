#pragma once

#include <cstdint>

#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// Layout kernels for one element type: transposition of images between channels-first and
// channels-last, and sums along either side of a matrix.
struct LayoutKernels {
  // The rows of `from` and `to` are `from_stride` and `to_stride` elements apart:
  // to[column][row] = from[row][column].
  void (*transpose)(const void* from, int64_t from_stride, void* to, int64_t to_stride,
                    int64_t rows, int64_t columns);
  // Sums n elements; and adds a matrix's rows to sums of its columns.
  double (*sum)(const void* from, int64_t n);
  void (*add_rows)(const void* from, int64_t rows, int64_t columns, double* sums);
};

using LayoutKernelsByType = KernelsByType<LayoutKernels>;

// The kernels in one version; kernels/layout.cpp defines it once per CPU capability.
template <Capability>
const LayoutKernelsByType& layout_kernels() noexcept;

// The version for this CPU.
const LayoutKernelsByType& layout_kernels() noexcept;

}  // namespace aclnn_host
