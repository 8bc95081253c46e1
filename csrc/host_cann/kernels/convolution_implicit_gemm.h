#pragma once

#include <cstdint>

#include "host_cann/kernels/bfloat16.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/convolution_direct.h"

namespace aclnn_host {

// Convolutions as implicit GEMM: products of the weight and a matrix of windows, which are what the
// kernel meets at the positions of an image. Only a block of that matrix exists at a time, in a
// cache.
//
// The work is divided into as many parts as the caller likes, and every sum is made in one order,
// so that its bits do not depend on the division. Zeros around an image are multiplied like its
// elements: an inf or nan in the other factor makes nan of them.
struct ImplicitGemmPass {
  // Bytes of memory for all parts, and of scratch memory for each; both at a multiple of 64.
  int64_t (*shared_size)(const ConvolutionSizes& sizes);
  int64_t (*scratch_size)(const ConvolutionSizes& sizes);
  // To be done by all parts before one of them computes.
  void (*prepare)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                  int64_t parts, void* shared);
  void (*compute)(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                  int64_t parts, const void* shared, void* out, void* scratch);
};

// The sums of DirectKernels, in float.
struct ImplicitGemmKernels {
  ImplicitGemmPass forward;
  ImplicitGemmPass backward_data;
  ImplicitGemmPass backward_weight;
  bool (*are_finite)(const void* values, int64_t count);
};

// BFLOAT16 comes in VNNI packing: pairs of elements, a pair in 32 bits, that are multiplied with
// another such pair, both products of which belong to one sum. A pair is of two channels for
// images, and of two images for weights, with zeros where there is no second; it counts as one
// channel or image in the sizes of a pass. Bias and results are FLOAT.
struct ImplicitGemmKernelsByType {
  ImplicitGemmKernels float32;
  ImplicitGemmKernels bfloat16;  // as MatmulKernels'; null in the reference
  // Packs a tensor [outer, count, inner] along `count`, from one pair to another; null in the
  // reference.
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
