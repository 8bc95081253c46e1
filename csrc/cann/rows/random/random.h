#pragma once

#include "cann/rows/bits.h"
#include "cann/rows/engine/element_types.h"
#include "cann/rows/random/draws.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// A dropout mask has one bit for each element, eight in a byte from the lowest on, and is padded to
// a multiple of 128 bits.
inline int64_t dropout_mask_bytes(int64_t elements) {
  return (elements + 127) / 128 * 16;
}

inline at::Tensor empty_dropout_mask(const at::Tensor& elements) {
  return at::empty({dropout_mask_bytes(elements.numel())}, elements.options().dtype(at::kByte));
}

inline void check_dropout_mask(const at::Tensor& mask, int64_t elements,
                               const char* name = "mask") {
  const int64_t bytes = dropout_mask_bytes(elements);
  expect_dtype(name, mask, at::kByte);
  EXPECT(mask.numel() == bytes, name, " has ", mask.numel(), " bytes, expected ", bytes, " for ",
         elements, " elements");
}

// The bits of a mask as numbers, in the shape and the type of `like`.
inline at::Tensor unpacked_dropout_mask(const at::Tensor& mask, const at::Tensor& like) {
  check_dropout_mask(mask, like.numel());
  return unpacked_bits(mask.flatten())
      .narrow(0, 0, like.numel())
      .view(like.sizes())
      .to(like.scalar_type());
}

// x scaled where it is kept, and 0 elsewhere, even where x is inf.
inline at::Tensor kept(const at::Tensor& x, const at::Tensor& is_kept, double scale) {
  return at::where(is_kept, wide(x) * scale, c10::Scalar(0.0));
}

// Checks probabilities or weights of categories, in one or two dimensions.
inline void check_distribution(const at::Tensor& self, int64_t numsamples, bool replacement) {
  expect_dims("self", self, 1, 2);
  EXPECT(self.size(-1) > 0, "self has no categories, expected at least one");
  expect_at_least("numsamples", numsamples, 1);
  EXPECT(replacement || numsamples <= self.size(-1), "numsamples is ", numsamples,
         ", expected at most ", self.size(-1), ", the number of categories, as replacement",
         " is false");
  constexpr int64_t kMostCategories = 1 << 24;
  EXPECT(self.size(-1) <= kMostCategories, "self has ", self.size(-1),
         " categories, expected at most ", kMostCategories);
}

}  // namespace aclnn_host
