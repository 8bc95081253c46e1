// Convolutions by kernels of our own, divided among threads.
#pragma once

#include <cstdint>

#include "kernels/convolution_direct.h"
#include "kernels/convolution_windows.h"
#include "ops/convolution_strategy.h"
#include "ops/plan.h"

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

// One of the three sums (kernels/convolution_direct.h) by products of windows, likewise.
class WindowProducts {
 public:
  using Pass = WindowPass WindowKernels::*;

  WindowProducts() = default;
  WindowProducts(const ConvolutionSizes& sizes, Pass pass, Workspace& workspace);

  // The pass that computes a sum.
  static Pass pass_of(Sum sum);
  // Whether a block of windows is small, which a kernel of many elements, dilation, strides and
  // for gradWeight many channels can be against.
  static bool fit(const ConvolutionSizes& sizes, Pass pass);
  // Whether the zeros around an image meet no inf or nan.
  bool are_exact(const ConvolutionTensors& from) const;
  void compute(const ConvolutionTensors& from, void* to, void* workspace) const;

 private:
  ConvolutionSizes sizes_{};
  Pass pass_ = nullptr;
  int64_t parts_ = 0;
  int64_t scratch_size_ = 0;
  uint64_t shared_ = 0;   // in the workspace
  uint64_t scratch_ = 0;  // of the first part
};

}  // namespace aclnn_host
