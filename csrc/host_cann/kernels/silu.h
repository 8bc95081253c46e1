#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The formulas of CANN's documents, with s = 1 / (1 + exp(-x)), without coefficients.
struct SiluKernels {
  FloatKernels forward;   // x * s
  FloatKernels backward;  // g * s * (1 + x * (1 - s))
};

// The kernels in one version; kernels/silu.cpp defines it once per CPU capability.
template <Capability>
const SiluKernels& silu_kernels() noexcept;

// The version for this CPU.
const SiluKernels& silu_kernels() noexcept;

}  // namespace aclnn_host
