#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The formulas of CANN's documents, without coefficients.
struct HardswishKernels {
  // x >= 3 : x
  // x <= -3: -0, as in PyTorch
  // else   : x * (x + 3) / 6
  FloatKernels forward;
  // g * slope; a NaN has slope 1.
  // x < -3       : slope 0
  // -3 <= x <= 3 : slope x / 3 + 0.5, as (x + 1.5) / 3, which avoids cancellation
  // else         : slope 1
  FloatKernels backward;
  // The same, but slope 0 at -3 and 1 at 3.
  FloatKernels backward_v2;
};

// The kernels in one version; kernels/hardswish.cpp defines it once per CPU capability.
template <Capability>
const HardswishKernels& hardswish_kernels() noexcept;

// The version for this CPU.
const HardswishKernels& hardswish_kernels() noexcept;

}  // namespace aclnn_host
