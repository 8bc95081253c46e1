#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// Coefficients of the Softplus kernels; Real is double for DOUBLE tensors, else float.
template <class Real>
struct SoftplusCoefficients {
  Real beta;
  Real threshold;
};

// The formulas of CANN's documents, with v = beta * x; a NaN takes the second line.
struct SoftplusKernels {
  // v > threshold: x
  // else         : log(1 + exp(v)) / beta, as (max(v, 0) + log1p(exp(-|v|))) / beta
  FloatKernels forward;
  // v > threshold: g
  // else         : g / (1 + exp(-v))
  FloatKernels backward;
};

// The kernels in one version; kernels/softplus.cpp defines it once per CPU capability.
template <Capability>
const SoftplusKernels& softplus_kernels() noexcept;

// The version for this CPU.
const SoftplusKernels& softplus_kernels() noexcept;

}  // namespace aclnn_host
