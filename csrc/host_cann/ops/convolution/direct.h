// Direct loops.
#pragma once

#include <cstdint>

#include "host_cann/ops/convolution/algorithm.h"

namespace aclnn_host {

// Direct loops over channels-first images (kernels/convolution_direct.h), on as many threads as are
// worthwhile, each with its own scratch memory.
class Direct {
 public:
  static bool supports(const Problem&) { return true; }
  static Form form(const Problem& problem, Layout layout, aclDataType dtype);

  Direct(const Problem& problem, const Form& form, const Passes& passes, Workspace& workspace);

  void run(const Operands& operands, Results& results) const;

 protected:
  Direct(const Problem& problem, const DirectKernels& kernels, const Passes& passes,
         Workspace& workspace);

 private:
  using Kernel = decltype(DirectKernels::forward);
  // Runs a kernel on its items, divided among the threads.
  void run_kernel(Kernel kernel, int64_t items, const Operands& operands, void* result) const;

  const DirectKernels* kernels_;
  ConvolutionSizes sizes_;
  Passes passes_;
  int64_t parts_;
  int64_t scratch_size_;
  uint64_t offset_;
};

}  // namespace aclnn_host
