#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The formulas of CANN's documents; they have no coefficients.
struct HardsigmoidKernels {
  // x >= 3 : 1
  // x <= -3: 0
  // else   : x / 6 + 1/2, as (x + 3) / 6, which does not cancel
  FloatKernels forward;
  // -3 < x < 3: g / 6
  // else      : 0, also of a nan
  FloatKernels backward;
};

// The kernels in one version; kernels/hardsigmoid.cpp defines it once per CPU capability.
template <Capability>
const HardsigmoidKernels& hardsigmoid_kernels() noexcept;

// The version for this CPU.
const HardsigmoidKernels& hardsigmoid_kernels() noexcept;

// The ElementwiseKernel of INT32: the forward formula, truncated, which is 1 from 3 on and else 0.
void hardsigmoid_int32(const void* coefficients, const void* first, const void* second, void* out,
                       int64_t n, bool streaming);

}  // namespace aclnn_host
