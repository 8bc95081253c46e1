#pragma once

#include <array>
#include <cstdint>

#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// A convolution by its numbers. It goes from a source, src or x, read at positions
// o * stride - padding + k * dilation, to a destination, dst or y, at positions o.
//
//   x [batch, groups * src_channels, src...]
//   y [batch, groups * dst_channels, dst...]
//   w [groups * dst_channels, src_channels, kernel...]
//
// There are always three spatial dimensions, the first of them 1 where an operator has fewer. A
// transposed convolution goes from dst to src: it is the backward-data pass of the convolution that
// it transposes.
struct ConvolutionSizes {
  using Values = std::array<int64_t, 3>;

  int64_t batch;
  int64_t groups;
  int64_t src_channels;  // of a group
  int64_t dst_channels;
  Values src;
  Values dst;
  Values kernel;
  Values stride;
  Values padding;  // before the first element
  Values dilation;
};

// Elements in order and without gaps, all of the kernels' type.
struct ConvolutionTensors {
  const void* src;
  const void* dst;
  const void* weight;
  const void* bias;  // of the forward and backward-data passes; null if there is none
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
  void (*forward)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                  int64_t end, void* dst, void* scratch);
  void (*backward_data)(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                        int64_t begin, int64_t end, void* src, void* scratch);
  // Of type Real.
  void (*backward_weight)(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                          int64_t begin, int64_t end, void* weight, void* scratch);
};

using DirectKernelsByType = KernelsByType<DirectKernels>;

// The kernels in one version; kernels/convolution_direct.cpp defines it once per CPU capability.
template <Capability>
const DirectKernelsByType& convolution_direct_kernels() noexcept;

// The version for this CPU.
const DirectKernelsByType& convolution_direct_kernels() noexcept;

}  // namespace aclnn_host
