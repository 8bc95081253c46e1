#pragma once

#include <cstdint>

#include "host_cann/kernels/bfloat16.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/convolution_direct.h"

namespace aclnn_host {

// Convolutions as implicit GEMM: products of the weight and a matrix of windows, i.e. the elements
// under the kernel at each position of an image. Only a cache-sized block of that matrix exists at
// a time.
//
// The work is divided into any number of parts; every sum has one order, so its bits do not depend
// on the division. Zeros around an image are multiplied like its elements: an inf or NaN in the
// other factor makes them NaN.
struct ImplicitGemmPass {
  // Bytes of memory for all parts, and of scratch memory for each; both at a multiple of 64.
  int64_t (*shared_size)(const ConvolutionSizes& sizes);
  int64_t (*scratch_size)(const ConvolutionSizes& sizes);
  // Must be completed by all parts before any of them computes.
  void (*prepare)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                  int64_t parts, void* shared);
  void (*compute)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                  int64_t parts, const void* shared, void* out, void* scratch);
};

// The computations of DirectKernels, in float.
struct ImplicitGemmKernels {
  ImplicitGemmPass forward;
  ImplicitGemmPass backward_data;
  ImplicitGemmPass backward_weight;
  bool (*are_finite)(const void* values, int64_t count);
};

// BFLOAT16 is VNNI-packed: pairs of elements in 32-bit words; the two products of two such words
// are added to one sum. A pair is of two channels for images, and of two images for weights, padded
// with zeros; it counts as one channel or image in the sizes of a pass. Bias and results are FLOAT.
struct ImplicitGemmKernelsByType {
  ImplicitGemmKernels float32;
  ImplicitGemmKernels bfloat16;  // for the same CPUs as MatmulKernels'; null in the reference
  // Packs a range of pairs of a tensor [outer, count, inner] along `count`; null in the reference.
  void (*pack)(const BFloat16* tensor, int64_t count, int64_t inner, int64_t begin, int64_t end,
               float* packed);
};

// The kernels in one version; kernels/convolution_implicit_gemm.cpp defines it once per CPU
// capability.
template <Capability>
const ImplicitGemmKernelsByType& convolution_implicit_gemm_kernels() noexcept;

// The version for this CPU.
const ImplicitGemmKernelsByType& convolution_implicit_gemm_kernels() noexcept;

}  // namespace aclnn_host
