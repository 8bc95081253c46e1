#pragma once

#include <array>
#include <cstdint>

#include "host_cann/kernels/by_type.h"
#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// The sizes of a convolution, from a source, src or x, read at positions o * stride - padding + k *
// dilation, to a destination, dst or y, at positions o.
//
//   x [batch, groups * src_channels, src...]
//   y [batch, groups * dst_channels, dst...]
//   w [groups * dst_channels, src_channels, kernel...]
//
// There are always three spatial dimensions; the leading ones are 1 if an operator has fewer. A
// transposed convolution goes from dst to src: it is the backward-data pass of the convolution that
// it transposes.
struct ConvolutionSizes {
  using Values = std::array<int64_t, 3>;

  int64_t batch;
  int64_t groups;
  int64_t src_channels;  // per group
  int64_t dst_channels;
  Values src;
  Values dst;
  Values kernel;
  Values stride;
  Values padding;  // before the first element
  Values dilation;
};

// Dense elements in order, all of the kernels' type.
struct ConvolutionTensors {
  const void* src;
  const void* dst;
  const void* weight;
  const void* bias;  // of the forward and backward-data passes; null if absent
};

// Convolutions in direct loops, for elements of one type. They compute in Real (double for DOUBLE,
// otherwise float) and round once.
//
//   y[s] = bias[s] + sum over l, k of x[l][o * stride - padding + k * dilation] * w[s][l][k]
//   x[l] = bias[l] + sum over s, k of y[s][o] * w[s][l][k] where x's position is that of o and k
//   w[s][l][k] = sum over the batch and o of y[s][o] * x[l][o * stride - padding + k * dilation]
//
// The bias is added to the sum of the products, so that partial sums are not rounded at its
// magnitude.
//
// `begin` and `end` are a range of batch * groups for the first two, of groups for the third.
// Results do not depend on the division of work.
struct DirectKernels {
  // Bytes of scratch memory that each call needs, at a multiple of 64.
  int64_t (*scratch_size)(const ConvolutionSizes& sizes);
  void (*forward)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                  int64_t end, void* dst, void* scratch);
  void (*backward_data)(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                        int64_t begin, int64_t end, void* src, void* scratch);
  // The result is of type Real.
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
