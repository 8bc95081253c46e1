// ATen's convolution, which calls oneDNN in most cases.
#pragma once

#include "host_cann/ops/convolution/algorithm.h"

namespace aclnn_host {

// Supports every problem and is the last in the list. All operands have one dtype; asymmetric
// padding has been added to src.
class AtenConvolution {
 public:
  static bool supports(const Problem&) { return true; }
  // True if oneDNN multiplies BFLOAT16 in hardware, with FLOAT sums that are rounded once.
  static bool supports_bfloat16(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  AtenConvolution(const Problem& problem, const Form& form, const Passes& passes, Workspace&)
      : geometry_(problem.geometry),
        is_gradient_(problem.is_gradient),
        form_(form),
        passes_(passes) {}

  // Casts operands whose dtype differs from the form's.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionGeometry geometry_;
  bool is_gradient_;
  Form form_;
  Passes passes_;
};

}  // namespace aclnn_host
