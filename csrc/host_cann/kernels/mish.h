#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The formulas of CANN's documents; they have no coefficients. With e = exp(-|x|), t = tanh(log(1 +
// exp(x))) and its derivative are fractions without overflow or cancellation:
//
//            t = n / d            t' = m / d^2
//   x <= 0   n = e (e + 2)        m = 4 e (1 + e)      d = n + 2
//   x > 0    n = 1 + 2 e          m = 4 e^2 (1 + e)    d = n + 2 e^2
struct MishKernels {
  // x t
  FloatKernels forward;
  // g (t + x t')
  FloatKernels backward;
};

// The kernels in one version; kernels/mish.cpp defines it once per CPU capability.
template <Capability>
const MishKernels& mish_kernels() noexcept;

// The version for this CPU.
const MishKernels& mish_kernels() noexcept;

}  // namespace aclnn_host
