#pragma once

#include <array>
#include <cstdint>

#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// A convolution by its numbers. It goes from a large tensor x, read at positions
// o * stride - padding + k * dilation, to a small one y at positions o; transposed, from y to x.
//
//   x [batch, groups * large_channels, large...]
//   y [batch, groups * small_channels, small...]
//   w [groups * small_channels, large_channels, kernel...]
//
// There are always three spatial dimensions, the first of them 1 where an operator has fewer.
struct ConvolutionSizes {
  using Values = std::array<int64_t, 3>;

  int64_t batch;
  int64_t groups;
  int64_t large_channels;  // of a group
  int64_t small_channels;
  Values large;
  Values small;
  Values kernel;
  Values stride;
  Values padding;  // before the first element
  Values dilation;
};

// Elements in order and without gaps, all of the kernels' type.
struct ConvolutionTensors {
  const void* large;
  const void* small;
  const void* weight;
  const void* bias;  // null if there is none
};

// Convolutions in direct loops, for elements of one type. They compute in Real, double for DOUBLE
// and float for the others, and round once.
//
//   y[s] = bias[s] + sum over l, k of x[l][o * stride - padding + k * dilation] * w[s][l][k]
//   x[l] = bias[l] + sum over s, k of y[s][o] * w[s][l][k] where x's position is that of o and k
//   w[s][l][k] = sum over the batch and o of y[s][o] * x[l][o * stride - padding + k * dilation]
//
// A bias is added to what the products come to, so that their sum has no roundings of its size.
//
// `begin` and `end` are a range of batch * groups for the first two, of the groups for the third:
// results do not depend on how the work is divided.
struct DirectKernels {
  // Bytes of scratch memory that each call needs, at a multiple of 64.
  int64_t (*scratch_size)(const ConvolutionSizes& sizes);
  void (*small)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                int64_t end, void* small, void* scratch);
  void (*large)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                int64_t end, void* large, void* scratch);
  // Of type Real.
  void (*weight)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                 int64_t end, void* weight, void* scratch);
};

using DirectKernelsByType = KernelsByType<DirectKernels>;

// The kernels in one version; kernels/convolution_direct.cpp defines it once per CPU capability.
template <Capability>
const DirectKernelsByType& convolution_direct_kernels() noexcept;

// The version for this CPU.
const DirectKernelsByType& convolution_direct_kernels() noexcept;

}  // namespace aclnn_host
