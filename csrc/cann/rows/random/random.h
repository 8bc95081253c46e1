#pragma once

#include <cstdint>

#include "cann/rows/engine/element_types.h"
#include "cann/rows/engine/refusal.h"
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

inline void check_dropout_mask(const at::Tensor& mask, int64_t elements) {
  const int64_t bytes = dropout_mask_bytes(elements);
  EXPECT(mask.scalar_type() == at::kByte, "the mask is of dtype ", dtype_text(mask.scalar_type()),
         ", expected UINT8");
  EXPECT(mask.numel() == bytes, "the mask has ", mask.numel(), " bytes, expected ", bytes, " for ",
         elements, " elements");
}

// The bits of a mask as numbers, in the shape and the type of `like`.
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

// Checks probabilities or weights of categories, in one or two dimensions.
inline void check_distribution(const at::Tensor& self, int64_t numsamples, bool replacement) {
  EXPECT(self.dim() == 1 || self.dim() == 2, "self has shape ", self.sizes(),
         ", expected one or two dimensions");
  EXPECT(self.size(-1) > 0, "self has no categories, expected at least one");
  EXPECT(numsamples > 0, "numsamples is ", numsamples, ", expected 1 or more");
  EXPECT(replacement || numsamples <= self.size(-1), "numsamples is ", numsamples,
         ", expected at most ", self.size(-1), ", the number of categories, as replacement",
         " is false");
  constexpr int64_t kMostCategories = 1 << 24;
  EXPECT(self.size(-1) <= kMostCategories, "self has ", self.size(-1),
         " categories, expected at most ", kMostCategories);
}

}  // namespace aclnn_host
