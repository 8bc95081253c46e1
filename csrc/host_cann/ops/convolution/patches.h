// Kernels whose stride equals their size, such as patch embeddings, as matrix products.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/matrix_products.h"

namespace aclnn_host {

// The kernel reads every element of src once. So im2col's matrix, with a row of src elements for
// each position of dst, is a permutation of src; it is copied to the workspace.
class Patches {
 public:
  // The backward passes, without groups, in FLOAT or narrower, if the kernels cover src.
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Patches(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  // Operands have the channels outermost or last.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionSizes sizes_;
  Form form_;
  Passes passes_;
  MatrixProducts products_;
  // In the workspace: the matrix, and a row for the bias.
  uint64_t patches_ = 0;
  uint64_t bias_ = 0;
};

}  // namespace aclnn_host
