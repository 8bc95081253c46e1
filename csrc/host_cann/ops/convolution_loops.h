// Convolutions by kernels of our own, divided among threads.
#pragma once

#include <cstdint>

#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/kernels/convolution_windows.h"
#include "host_cann/ops/convolution_strategy.h"
#include "host_cann/ops/plan.h"

namespace aclnn_host {

// The direct loops on as many threads as pay, each with scratch memory of its own.
class DirectProducts {
 public:
  DirectProducts() = default;
  DirectProducts(const ConvolutionSizes& sizes, const Choice& choice, Workspace& workspace);

  using Kernel = void (*)(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                          int64_t begin, int64_t end, void* to, void* scratch);
  const DirectKernels& kernels() const;
  // Runs one of the kernels on its items, of which items() is the count but for weights.
  void run(Kernel kernel, int64_t items, const ConvolutionTensors& from, void* to,
           void* workspace) const;

  int64_t items() const { return sizes.batch * sizes.groups; }

  ConvolutionSizes sizes{};

 private:
  Choice choice_{};
  int64_t parts_ = 1;
  int64_t scratch_size_ = 0;
  uint64_t offset_ = 0;
};

// A dense tensor of BFLOAT16 [outer, count, inner] as pairs of what follows each other in `count`
// (kernels/convolution_windows.h), in a workspace; of no tensor if it has no elements.
class Pairs {
 public:
  Pairs() = default;
  Pairs(int64_t outer, int64_t count, int64_t inner, Workspace& workspace);

  // Makes them.
  const float* of(const void* tensor, void* workspace) const;

 private:
  int64_t outer_ = 0;
  int64_t count_ = 0;
  int64_t inner_ = 0;
  uint64_t offset_ = 0;
};

// One of the three sums (kernels/convolution_direct.h) by products of windows, likewise. Operands
// are FLOAT or BFLOAT16, bias and results FLOAT.
class WindowProducts {
 public:
  using Pass = WindowPass WindowKernels::*;

  WindowProducts() = default;
  WindowProducts(const ConvolutionSizes& sizes, Pass pass, aclDataType dtype, Workspace& workspace);

  // The pass that computes a sum.
  static Pass pass_of(Sum sum);
  // Whether a block of windows is small, which a kernel of many elements, dilation, strides and
  // for gradWeight many channels can be against.
  static bool fit(const ConvolutionSizes& sizes, Pass pass);
  // Whether the zeros around an image meet no inf or nan.
  bool are_exact(const ConvolutionTensors& from) const;
  void compute(const ConvolutionTensors& from, void* to, void* workspace) const;

 private:
  const WindowKernels& kernels() const;
  bool are_finite(const void* values, int64_t count) const;
  // Makes pairs of the sizes and the operands.
  void make_pairs(Workspace& workspace);
  ConvolutionTensors paired(const ConvolutionTensors& from, void* workspace) const;

  ConvolutionSizes sizes_{};  // of the operands
  ConvolutionSizes words_{};  // the same, or those of their pairs
  Pass pass_ = nullptr;
  aclDataType dtype_ = ACL_FLOAT;
  Pairs large_;
  Pairs small_;
  Pairs weight_;
  int64_t parts_ = 0;
  int64_t scratch_size_ = 0;
  uint64_t shared_ = 0;   // in the workspace
  uint64_t scratch_ = 0;  // of the first part
};

}  // namespace aclnn_host
