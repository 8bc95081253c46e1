// Kernels of one element, as matrix products.
#pragma once

#include "host_cann/ops/convolution/algorithm.h"
#include "host_cann/ops/convolution/matrix_products.h"

namespace aclnn_host {

// One matrix product with the weight, for all images or for each, by the project's kernels
// (matrix_products.h) or ATen's.
class Pointwise {
 public:
  static bool supports(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Pointwise(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  void run(const Operands& operands, Results& results) const;

 private:
  Form form_;
  Passes passes_;
  MatrixProducts products_;
};

}  // namespace aclnn_host
