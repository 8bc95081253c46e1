// Direct loops over channels-last images.
#pragma once

#include "host_cann/kernels/convolution_depthwise.h"
#include "host_cann/ops/convolution/direct.h"

namespace aclnn_host {

// Depthwise convolutions with one channel per group on either side, vectorised over channels
// (kernels/convolution_depthwise.h).
class DepthwiseChannelsLast : public Direct {
 public:
  static bool supports(const Problem& problem) {
    return problem.sizes.src_channels == 1 && problem.sizes.dst_channels == 1;
  }

  DepthwiseChannelsLast(const Problem& problem, const Form& form, const Passes& passes,
                        Workspace& workspace)
      : Direct(problem, convolution_depthwise_kernels().find(form.dtype), passes, workspace) {}
};

}  // namespace aclnn_host
