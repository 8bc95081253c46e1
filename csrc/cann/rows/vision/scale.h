#pragma once

#include <optional>

#include <c10/util/ArrayRef.h>

#include "cann/rows/engine/refusal.h"

namespace aclnn_host {

// The scale of an image along a dimension, as ATen takes it; in CANN 0 and less mean no scale. ATen
// computes positions from the reciprocal and assumes that they fit into integers.
inline std::optional<double> scale(const char* name, double factor) {
  constexpr double kLeast = 1.0 / (1 << 24);
  if (!(factor > 0)) return std::nullopt;
  EXPECT(factor >= kLeast, name, " is ", factor, ", expected at least ", kLeast, ", or 0 for none");
  return factor;
}

// The same for interpolation with antialiasing, where the reciprocal is the number of elements of
// `size` from which one is computed.
inline std::optional<double> scale(const char* name, double factor, int64_t size) {
  if (!(factor > 0)) return std::nullopt;
  EXPECT(1 / factor <= static_cast<double>(size) + 1, name, " is ", factor, " for ", size,
         " elements, expected at least their reciprocal, or 0 for none");
  return factor;
}

// Requires four sizes: batch, channels, height, width.
inline void expect_image(c10::IntArrayRef input_size) {
  EXPECT(input_size.size() == 4, "inputSize is ", input_size, ", expected four sizes");
}

}  // namespace aclnn_host
