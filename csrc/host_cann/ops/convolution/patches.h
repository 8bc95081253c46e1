// Kernels that move by their own size, such as patch embeddings: products of matrices.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/matrix_products.h"

namespace aclnn_host {

// Every element of src is met once. So im2col's matrix, which has a row of src for each position of
// dst, is src in another order; it is a copy in the workspace.
class Patches {
 public:
  // The backward passes without groups, in FLOAT or less, where the kernels cover src.
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Patches(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  // Operands lie with the channels outermost or last.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionSizes sizes_;
  Form form_;
  Passes passes_;
  MatrixProducts products_;
  // In the workspace: the matrix, and a row of it for the bias.
  uint64_t patches_ = 0;
  uint64_t bias_ = 0;
};

}  // namespace aclnn_host
