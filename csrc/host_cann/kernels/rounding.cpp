#include "host_cann/kernels/rounding.h"

#include <bit>

namespace aclnn_host {
namespace {

// Branch-free scalar code, which the compiler vectorises for the capability.

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7f800000;

// Rounds away the lowest kDropped bits of a float, to nearest even. A carry out of the mantissa
// correctly gives the next power of two, or inf.
template <int kDropped>
inline uint32_t drop(uint32_t bits) {
  const uint32_t odd = (bits >> kDropped) & 1;
  const uint32_t rounded = (bits + (1u << (kDropped - 1)) - 1 + odd) & ~((1u << kDropped) - 1);
  return (bits & kInfinity) == kInfinity ? bits : rounded;
}

template <int kDropped>
void round_dropping(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    values[i] = std::bit_cast<float>(drop<kDropped>(std::bit_cast<uint32_t>(values[i])));
  }
}

// FP16 has 10 bits of mantissa down to 2^-14, and multiples of 2^-24 (the ulp of floats in [0.5,
// 1)) below; values from 65520 on overflow.
void round_half(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t magnitude = bits & ~kSign;
    const uint32_t normal = drop<13>(magnitude);
    const float small = std::bit_cast<float>(magnitude) + 0.5f - 0.5f;
    uint32_t rounded =
        magnitude < std::bit_cast<uint32_t>(0x1p-14f) ? std::bit_cast<uint32_t>(small) : normal;
    // Inf and NaN are not below kInfinity here.
    if (rounded > std::bit_cast<uint32_t>(65504.0f) && rounded < kInfinity) rounded = kInfinity;
    values[i] = std::bit_cast<float>(rounded | (bits & kSign));
  }
}

}  // namespace

template <>
const RoundingKernels& rounding_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr RoundingKernels kKernels = {round_half, round_dropping<16>, round_dropping<12>,
                                               round_dropping<13>};
  return kKernels;
}

}  // namespace aclnn_host
