#include "host_cann/kernels/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace aclnn_host {
namespace {

// Rounds to the nearest multiple of the format's spacing at the value.
template <int kMantissaBits, int kMinExponent, int kMaxExponent>
void round_to_format(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = values[i];
    if (value == 0 || !std::isfinite(value)) continue;
    const int unit = std::max(std::ilogb(value), kMinExponent) - kMantissaBits;
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(double{value}, -unit)), unit);
    values[i] = std::abs(rounded) < std::ldexp(1.0, kMaxExponent + 1)
                    ? static_cast<float>(rounded)
                    : std::copysign(std::numeric_limits<float>::infinity(), value);
  }
}

}  // namespace

template <>
const RoundingKernels& rounding_kernels<Capability::kReference>() noexcept {
  static constexpr RoundingKernels kKernels = {
      round_to_format<10, -14, 15>, round_to_format<7, -126, 127>, round_to_format<11, -126, 127>,
      round_to_format<10, -126, 127>};
  return kKernels;
}

const RoundingKernels& rounding_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return rounding_kernels<kVersion>(); });
}

}  // namespace aclnn_host
