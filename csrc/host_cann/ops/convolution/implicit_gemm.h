// Convolutions as matrix products, without storing the matrix of all windows.
#pragma once

#include <cstdint>

#include "host_cann/kernels/convolution_implicit_gemm.h"
#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/aten_convolution.h"

namespace aclnn_host {

// A dense BFLOAT16 tensor [outer, count, inner] in VNNI packing along `count`
// (kernels/convolution_implicit_gemm.h), in a workspace; empty if there is no tensor.
class VnniPacked {
 public:
  VnniPacked() = default;
  VnniPacked(int64_t outer, int64_t count, int64_t inner, Workspace& workspace);

  // Packs the tensor.
  const float* pack(const void* tensor, void* workspace) const;

 private:
  int64_t outer_ = 0;
  int64_t count_ = 0;
  int64_t inner_ = 0;
  uint64_t offset_ = 0;
};

// One pass of kernels/convolution_implicit_gemm.h, on as many threads as are worthwhile.
class ImplicitGemmProducts {
 public:
  ImplicitGemmProducts() = default;
  ImplicitGemmProducts(const ConvolutionSizes& sizes, Pass pass, aclDataType dtype,
                       Workspace& workspace);

  // True if no inf or NaN is multiplied by the zeros around an image.
  bool are_exact(const ConvolutionTensors& from) const;
  void compute(const ConvolutionTensors& from, void* to, void* workspace) const;

 private:
  const ImplicitGemmKernels& kernels() const;
  bool are_finite(const void* values, int64_t count) const;
  // Reserves memory for the pass's packed operands and stores their sizes.
  void book_packed(Workspace& workspace);
  ConvolutionTensors packed(const ConvolutionTensors& from, void* workspace) const;

  ConvolutionSizes sizes_{};   // of the operands
  ConvolutionSizes packed_{};  // the same, or those of packed operands
  Pass pass_ = Pass::kForward;
  aclDataType dtype_ = ACL_FLOAT;
  VnniPacked src_;
  VnniPacked dst_;
  VnniPacked weight_;
  int64_t parts_ = 0;
  int64_t scratch_size_ = 0;
  uint64_t shared_ = 0;   // in the workspace
  uint64_t scratch_ = 0;  // of the first part
};

// Operands are FLOAT or BFLOAT16, channels-first; bias and results are FLOAT.
class ImplicitGemm {
 public:
  // True if the block of windows in memory is small. Large kernels, dilation, strides and, for
  // gradWeight, many channels enlarge it.
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  ImplicitGemm(const Problem& problem, const Form& form, const Passes& passes,
               Workspace& workspace);

  void run(const Operands& operands, Results& results) const;

 private:
  Passes passes_;
  ImplicitGemmProducts image_;
  ImplicitGemmProducts weight_;
  // Computes in FLOAT where zeros would become NaN. oneDNN in BFLOAT16 makes NaN of them, too.
  AtenConvolution exact_;
};

}  // namespace aclnn_host
