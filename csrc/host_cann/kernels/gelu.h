#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// The formulas of CANN's documents, without coefficients. Phi is the distribution function of the
// normal distribution and phi its density.
struct GeluKernels {
  FloatKernels forward;   // x * Phi(x)
  FloatKernels backward;  // g * (Phi(x) + x * phi(x))
  // With 2 u = sqrt(8 / pi) * (x + 0.044715 x^3) and s = 1 / (1 + exp(-2 u)) = (1 + tanh(u)) / 2:
  FloatKernels tanh_forward;   // x * s
  FloatKernels tanh_backward;  // g * (s + x * s * (1 - s) * d 2u/dx)
};

// 2 u = x * (kGeluLinear + kGeluCubic * x^2)
constexpr double kGeluLinear = 1.5957691216057307117597842397375;
constexpr double kGeluCubic = 0.044715 * kGeluLinear;

// For a larger x^2, 1 - s or s is 0 in every type.
constexpr double kGeluGreatestSquare = 1e6;

// The kernels in one version; kernels/gelu.cpp defines it once per CPU capability.
template <Capability>
const GeluKernels& gelu_kernels() noexcept;

// The version for this CPU.
const GeluKernels& gelu_kernels() noexcept;

}  // namespace aclnn_host
