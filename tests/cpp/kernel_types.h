// Shared by the tests of kernels: the floating-point types of elements, and the versions of a
// kernel that this CPU can run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "host_cann/kernels/capability.h"

namespace aclnn_host {

// A 16-bit floating-point type: its bits, and conversions. Written independently, so that the tests
// do not rely on the kernels' own conversions.
template <int kFractionBits, int kMinExponent, int kMaxExponent>
struct Small {
  uint16_t bits;

  static constexpr int kExponentBits = 15 - kFractionBits;
  static constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;

  double value() const {
    const int fraction = bits & ((1 << kFractionBits) - 1);
    const int exponent = (bits & kInfinity) >> kFractionBits;
    double magnitude = 0;
    if ((bits & kInfinity) == kInfinity) {
      magnitude = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
      magnitude = std::ldexp(fraction, kMinExponent - kFractionBits);
    } else {
      magnitude =
          std::ldexp(fraction + (1 << kFractionBits), exponent - 1 + kMinExponent - kFractionBits);
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }

  // Rounds to nearest, ties to even.
  static double round(double v) {
    if (!std::isfinite(v) || v == 0) return v;
    const int unit = std::max(std::ilogb(v), kMinExponent) - kFractionBits;
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
    return std::abs(rounded) < std::ldexp(1, kMaxExponent + 1) ? rounded
                                                               : std::copysign(INFINITY, v);
  }
};

using Half = Small<10, -14, 15>;
using Brain = Small<7, -126, 127>;

template <class T>
constexpr bool kIsSmall = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

template <class T>
double value_of(T element) {
  if constexpr (kIsSmall<T>) {
    return element.value();
  } else {
    return element;
  }
}

// The type in which an element is computed.
template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls body.operator()<T>() for every floating-point type.
template <class Body>
void for_each_type(Body body) {
  body.template operator()<float>();
  body.template operator()<double>();
  body.template operator()<Half>();
  body.template operator()<Brain>();
}

// The kernel of type T.
template <class T, class Kernels>
const auto& pick(const Kernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return kernels.float64;
  } else if constexpr (std::is_same_v<T, Half>) {
    return kernels.float16;
  } else {
    return kernels.bfloat16;
  }
}

// True if this CPU can run the kernels of a version that multiply BFLOAT16.
template <Capability kCapability>
bool multiplies_bfloat16() {
#if defined(__x86_64__)
  return kCapability != Capability::AVX512 || __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP2) & 1ul << 14) != 0;  // HWCAP2_BF16
#else
  return true;
#endif
}

// Calls body.operator()<kCapability>(its name) for every capability of this CPU, except the plain
// reference.
template <class Body>
void for_each_capability(Body body) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) body.template operator()<Capability::AVX2>("avx2");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    body.template operator()<Capability::AVX512>("avx512");
  }
#else
  body.template operator()<Capability::DEFAULT>("default");
#endif
}

}  // namespace aclnn_host
