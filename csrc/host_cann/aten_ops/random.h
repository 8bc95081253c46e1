#pragma once

#include <cstdint>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>

#include "host_cann/aten_ops/engine/element_types.h"

namespace aclnn_host {

// The numbers that belong to a seed and an offset. Neighbouring seeds and offsets have nothing in
// common (the mixing function is that of SplitMix64).
inline at::Generator generator_of(uint64_t seed, uint64_t offset) {
  uint64_t mixed = seed + 0x9e3779b97f4a7c15 * (offset + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return at::detail::createCPUGenerator(mixed ^ (mixed >> 31));
}
inline at::Generator generator_of(int64_t seed, int64_t offset) {
  return generator_of(static_cast<uint64_t>(seed), static_cast<uint64_t>(offset));
}

// A dropout mask has a bit per element, eight in a byte from the lowest on, and is padded to a
// multiple of 128 bits.
inline int64_t dropout_mask_bytes(int64_t elements) {
  return (elements + 127) / 128 * 16;
}

inline at::Tensor empty_dropout_mask(const at::Tensor& elements) {
  return at::empty({dropout_mask_bytes(elements.numel())}, elements.options().dtype(at::kByte));
}

inline void check_dropout_mask(const at::Tensor& mask, int64_t elements) {
  const int64_t bytes = dropout_mask_bytes(elements);
  TORCH_CHECK(mask.scalar_type() == at::kByte, "the mask is of dtype ",
              dtype_text(mask.scalar_type()), ", expected UINT8");
  TORCH_CHECK(mask.numel() == bytes, "the mask has ", mask.numel(), " bytes, expected ", bytes,
              " for ", elements, " elements");
}

// A mask with the layout of `like` in which a bit is 1 with probability `keep`.
inline at::Tensor dropout_mask(const at::Tensor& like, double keep, int64_t seed, int64_t offset) {
  at::Tensor bits = at::empty({like.numel(), 8}, like.options());
  if (bits.is_cpu()) bits.bernoulli_(keep, generator_of(seed, offset));
  const at::Tensor places = at::arange(8, like.options());
  return bits.bitwise_left_shift(places).sum(1, /*keepdim=*/false, at::kByte).view(like.sizes());
}

// The bits of a mask as numbers in the shape of `like` and of its type.
inline at::Tensor unpacked_dropout_mask(const at::Tensor& mask, const at::Tensor& like) {
  check_dropout_mask(mask, like.numel());
  return mask.reshape({-1, 1})
      .bitwise_right_shift(at::arange(8, mask.options()))
      .bitwise_and(1)
      .flatten()
      .narrow(0, 0, like.numel())
      .view(like.sizes())
      .to(like.scalar_type());
}

// A tensor like `like` that fill(tensor) has filled; without memory there is nothing to fill. Its
// numbers do not depend on strides.
template <class Fill>
at::Tensor filled(const at::Tensor& like, Fill fill) {
  at::Tensor numbers = at::empty(like.sizes(), like.options());
  if (numbers.is_cpu()) fill(numbers);
  return numbers;
}

// A tensor like `like` of a type that has fractions: FLOAT for integers, which are cut off.
inline at::Tensor with_fractions(const at::Tensor& like) {
  const bool is_integer = at::isIntegralType(like.scalar_type(), /*includeBool=*/true);
  return is_integer ? at::empty_like(like, like.options().dtype(at::kFloat)) : like;
}

// Of probabilities or weights of categories, in one or two dimensions.
inline void check_distribution(const at::Tensor& self, int64_t numsamples, bool replacement) {
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "self has shape ", self.sizes(),
              ", expected one or two dimensions");
  TORCH_CHECK(self.size(-1) > 0, "self has no categories, expected at least one");
  TORCH_CHECK(numsamples > 0, "numsamples is ", numsamples, ", expected 1 or more");
  TORCH_CHECK(replacement || numsamples <= self.size(-1), "numsamples is ", numsamples,
              ", expected at most ", self.size(-1), ", the number of categories, as replacement",
              " is false");
  constexpr int64_t kMostCategories = 1 << 24;
  TORCH_CHECK(self.size(-1) <= kMostCategories, "self has ", self.size(-1),
              " categories, expected at most ", kMostCategories);
}

}  // namespace aclnn_host
