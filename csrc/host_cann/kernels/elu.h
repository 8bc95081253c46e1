#pragma once

#include "host_cann/kernels/capability.h"
#include "host_cann/kernels/elementwise.h"

namespace aclnn_host {

// Coefficients of the ELU and SELU kernels; Real is double for DOUBLE tensors, else float.
template <class Real>
struct EluCoefficients {
  Real scale;           // of the branch x > 0
  Real negative_scale;  // alpha * scale
  Real input_scale;
};

// The formulas of CANN's documents; 0 belongs to the second line, NaN to the first.
struct EluKernels {
  // x > 0 : scale * x
  // x <= 0: negative_scale * expm1(input_scale * x). Both give 0 for 0 if negative_scale is
  //         finite, and the first one keeps the sign of 0.
  FloatKernels forward;
  // x > 0 : scale * x
  // x <= 0: -negative_scale. The limit of ELU if alpha or input_scale is inf or NaN.
  FloatKernels threshold;
  // x > 0 : g * scale
  // x <= 0: g * input_scale * negative_scale * exp(x * input_scale)
  FloatKernels backward_from_input;
  // y > 0 : g * scale
  // y <= 0: g * input_scale * (y + negative_scale)
  FloatKernels backward_from_result;
};

// The kernels in one version; kernels/elu.cpp defines it once per CPU capability.
template <Capability>
const EluKernels& elu_kernels() noexcept;

// The version for this CPU.
const EluKernels& elu_kernels() noexcept;

}  // namespace aclnn_host
