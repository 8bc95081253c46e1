#pragma once

#include "cann/rows/row.h"

// Flags of the last dimension, eight in a byte from the lowest bit on.
namespace aclnn_host {

inline at::Tensor packed_bits(const at::Tensor& flags) {
  const int64_t spare = (8 - flags.size(-1) % 8) % 8;
  const at::Tensor whole = at::constant_pad_nd(flags.to(at::kByte), {0, spare});
  const at::Tensor positions = at::arange(8, whole.options());
  return at::bitwise_left_shift(whole.unflatten(-1, {-1, 8}), positions).sum(-1, false, at::kByte);
}
// The bits, each in a byte.
inline at::Tensor unpacked_bits(const at::Tensor& bytes) {
  return bytes.unsqueeze(-1)
      .bitwise_right_shift(at::arange(8, bytes.options()))
      .bitwise_and(1)
      .flatten(-2);
}

}  // namespace aclnn_host
