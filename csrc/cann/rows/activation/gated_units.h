#pragma once

#include <ATen/WrapDimUtils.h>

#include "cann/rows/row.h"

// The halves of a tensor, of which one gates the other.
namespace aclnn_host {

struct Halves {
  at::Tensor gate;  // goes through the activation
  at::Tensor up;
};

// Splits a tensor along a dimension, with the gate in the left or the right half.
inline Halves halves(const at::Tensor& x, int64_t dim, bool gate_is_left, const char* name = "x") {
  const int64_t position = at::maybe_wrap_dim(dim, x.dim());
  const int64_t size = x.dim() == 0 ? 1 : x.size(position);
  EXPECT(size % 2 == 0, name, " has shape ", x.sizes(), ", expected an even dimension ", dim,
         ", which is split in halves");
  const at::Tensor left = x.narrow(position, 0, size / 2);
  const at::Tensor right = x.narrow(position, size / 2, size / 2);
  return gate_is_left ? Halves{left, right} : Halves{right, left};
}

// Splits the last dimension, with the gate at the even positions.
inline Halves interleaved_halves(const at::Tensor& x) {
  return {x.slice(-1, 0, std::nullopt, 2), x.slice(-1, 1, std::nullopt, 2)};
}

inline at::Tensor swiglu(const Halves& x) {
  return at::silu(x.gate) * x.up;
}

// Bounds the gate from above, and up from both sides.
inline Halves clamped(const Halves& x, double limit) {
  return {at::clamp_max(x.gate, limit), at::clamp(x.up, -limit, limit)};
}

inline at::Tensor biased_swiglu(const Halves& x, double alpha, double bias) {
  return x.gate * at::sigmoid(x.gate * alpha) * (x.up + bias);
}

// SwiGLU whose gate is clamped after its activation.
inline at::Tensor swiglu_clamped_after(const Halves& x, double limit) {
  const Halves bounded = clamped({at::silu(x.gate), x.up}, limit);
  return bounded.gate * bounded.up;
}

// beta * tanh(gate / beta) * sigmoid(gate) * up. A positive linear_beta bounds up in the same way.
inline at::Tensor situ(const Halves& x, double beta, double linear_beta) {
  const at::Tensor gate = at::tanh(x.gate / beta) * beta * at::sigmoid(x.gate);
  return gate * (linear_beta > 0 ? at::tanh(x.up / linear_beta) * linear_beta : x.up);
}

inline void expect_beta(double beta) {
  EXPECT(beta != 0, "beta is 0, expected another number");
}

}  // namespace aclnn_host
