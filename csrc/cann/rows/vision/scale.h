#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

// The scales of height and width for interpolation with antialiasing, where the reciprocal is the
// number of elements from which one is computed; `input` is the image's height and width. ATen
// reads elements around every position, which must not lie farther beyond the image than linear
// interpolation reaches.
inline std::array<std::optional<double>, 2> antialiased_scales(double height, double width,
                                                               c10::IntArrayRef input,
                                                               c10::IntArrayRef output_size,
                                                               bool align_corners) {
  EXPECT(output_size.size() == 2, "outputSize is ", output_size, ", expected two sizes");
  std::array<std::optional<double>, 2> result;
  for (size_t i = 0; i < 2; ++i) {
    const double factor = i == 0 ? height : width;
    if (!(factor > 0)) continue;
    const char* name = i == 0 ? "scalesH" : "scalesW";
    const auto size = static_cast<double>(input[i]);
    const double step = 1 / factor;
    EXPECT(step <= size + 1, name, " is ", factor, " for ", input[i],
           " elements, expected at least their reciprocal, or 0 for none");
    const double first_read =
        (static_cast<double>(output_size[i]) - 0.5) * step - std::max(step, 1.0) + 0.5;
    EXPECT(align_corners || first_read < size, name, " is ", factor, " and outputSize is ",
           output_size, ", expected results that lie within the ", input[i],
           " elements of the input");
    result[i] = factor;
  }
  return result;
}

// Requires four sizes: batch, channels, height, width.
inline void expect_image(c10::IntArrayRef input_size) {
  EXPECT(input_size.size() == 4, "inputSize is ", input_size, ", expected four sizes");
}

}  // namespace aclnn_host
