#pragma once

#include <cstdint>

#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// Rounds n floats in place to a narrower format: to nearest even, overflow to inf; inf and NaN are
// kept.
using RoundingKernel = void (*)(float* values, int64_t n);

// One kernel per format. HF32 is FP32 with fewer bits of mantissa: 11 on Atlas A2 and A3, 10 on
// Ascend950.
struct RoundingKernels {
  RoundingKernel half;
  RoundingKernel bfloat16;
  RoundingKernel hf32_11;
  RoundingKernel hf32_10;
};

// The kernels in one version; kernels/rounding.cpp defines it once per CPU capability.
template <Capability>
const RoundingKernels& rounding_kernels() noexcept;

// The version for this CPU.
const RoundingKernels& rounding_kernels() noexcept;

}  // namespace aclnn_host
