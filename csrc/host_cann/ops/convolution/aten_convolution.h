// ATen's convolution, which is oneDNN's for nearly all.
#pragma once

#include "host_cann/ops/convolution/algorithm.h"

namespace aclnn_host {

// It computes every problem, and closes the list. All operands have one type; padding that is not
// symmetric has been put around src.
class AtenConvolution {
 public:
  static bool supports(const Problem&) { return true; }
  // Whether oneDNN multiplies BFLOAT16 in units of its own, with sums in FLOAT that are rounded
  // once.
  static bool supports_bfloat16(const Problem& problem);
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  AtenConvolution(const Problem& problem, const Form& form, const Passes& passes, Workspace&)
      : geometry_(problem.geometry),
        is_gradient_(problem.is_gradient),
        form_(form),
        passes_(passes) {}

  // Operands of another type than the form's are cast.
  void run(const Operands& operands, Results& results) const;

 private:
  ConvolutionGeometry geometry_;
  bool is_gradient_;
  Form form_;
  Passes passes_;
};

}  // namespace aclnn_host
