// im2col and matrix products, for small images without padding.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/matrix_products.h"

namespace aclnn_host {

// im2col's matrix has a row for each position of dst, with all elements of src that the kernel
// reads there. It is built in the workspace, so that a pass is one matrix product for all images.
class Im2col {
 public:
  // No groups or padding; FLOAT or narrower. Zeros of the padding could meet an inf or NaN of the
  // other factor, so other algorithms handle it.
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Im2col(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  // Operands are channels-last.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionSizes sizes_;
  Passes passes_;
  MatrixProducts products_;
  uint64_t matrix_ = 0;  // in the workspace
};

}  // namespace aclnn_host
