#pragma once

#include <optional>

#include <c10/util/ArrayRef.h>

#include "cann/rows/engine/refusal.h"

namespace aclnn_host {

// How many times as large an image becomes along a dimension, as ATen takes it: CANN has 0 and less
// for none. ATen computes places from its reciprocal and trusts that they are integers.
inline std::optional<double> scale(double factor) {
  constexpr double kLeast = 1.0 / (1 << 24);
  if (!(factor > 0)) return std::nullopt;
  EXPECT(factor >= kLeast, "a scale is ", factor, ", expected at least ", kLeast,
         ", or 0 for none");
  return factor;
}

// The same for interpolation with antialiasing, where the reciprocal says of how many elements of
// `size` one is computed.
inline std::optional<double> scale(double factor, int64_t size) {
  if (!(factor > 0)) return std::nullopt;
  EXPECT(1 / factor <= static_cast<double>(size) + 1, "a scale is ", factor, " for ", size,
         " elements, expected at least their reciprocal, or 0 for none");
  return factor;
}

// Refuses sizes that are not those of images: batch, channels, height, width.
inline void expect_image(c10::IntArrayRef input_size) {
  EXPECT(input_size.size() == 4, "inputSize is ", input_size, ", expected four sizes");
}

}  // namespace aclnn_host
