/* FLOAT4_E2M1 as a C++ number, for programs that fill host memory with it. */
#ifndef ACLNN_TORCH_OPDEV_FLOAT4_E2M1_H_
#define ACLNN_TORCH_OPDEV_FLOAT4_E2M1_H_

#include <cmath>
#include <cstdint>

namespace op {

/* The number's bits are in the lower half of `value`. Rounds to nearest even; larger values and NaN
 * become 6. */
struct Float4E2M1 {
  uint8_t value = 0;

  Float4E2M1() = default;
  Float4E2M1(float number) {
    static const float middles[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const float magnitude = std::fabs(number);
    for (const float middle : middles) {
      /* Ties go up if the upper neighbour's bits are even. */
      const bool is_up = value % 2 == 1 ? !(magnitude < middle) : !(magnitude <= middle);
      if (!is_up) break;
      ++value;
    }
    if (std::signbit(number)) value |= 8;
  }
  operator float() const {
    static const float magnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    const float magnitude = magnitudes[value & 7];
    return (value & 8) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace op

#endif
