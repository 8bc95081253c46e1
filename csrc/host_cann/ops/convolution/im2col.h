// Small images without padding: im2col, and products of matrices.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/matrix_products.h"

namespace aclnn_host {

// im2col's matrix has a row for each position of dst, with all elements of src that the kernel
// meets there. It is made in the workspace, so that a pass is one product of matrices for all
// images.
class Im2col {
 public:
  // Without groups or padding, in FLOAT or less. Zeros around images are left to others: an inf or
  // nan in the other factor could meet them.
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Im2col(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  // Operands lie with the channels last.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionSizes sizes_;
  Passes passes_;
  MatrixProducts products_;
  uint64_t matrix_ = 0;  // in the workspace
};

}  // namespace aclnn_host
