#pragma once

#include "host_cann/kernels/convolution_direct.h"

namespace aclnn_host {

// The kernels of convolution_direct.h for depthwise convolutions (one channel per group on either
// side) in channels-last order: x is [batch, src..., groups], y is [batch, dst..., groups].
template <Capability>
const DirectKernelsByType& convolution_depthwise_kernels() noexcept;

// The version for this CPU.
const DirectKernelsByType& convolution_depthwise_kernels() noexcept;

}  // namespace aclnn_host
