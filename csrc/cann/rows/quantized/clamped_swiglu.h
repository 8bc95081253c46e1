#pragma once

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/row.h"

// The variants of SwiGLU that bound their operands.
namespace aclnn_host {

// The gate in the even positions of the last dimension, up in the odd ones.
inline Halves interleaved_halves(const at::Tensor& x) {
  return {x.slice(-1, 0, std::nullopt, 2), x.slice(-1, 1, std::nullopt, 2)};
}

// Bounds the gate from above, and up from both sides.
inline Halves clamped(const Halves& x, double limit) {
  return {at::clamp_max(x.gate, limit), at::clamp(x.up, -limit, limit)};
}

inline at::Tensor biased_swiglu(const Halves& x, double alpha, double bias) {
  return x.gate * at::sigmoid(x.gate * alpha) * (x.up + bias);
}

}  // namespace aclnn_host
