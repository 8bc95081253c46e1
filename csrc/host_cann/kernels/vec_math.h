// Included by kernels only: compiled once per CPU capability, all names internal to the file.
//
// Exponentials of v for elements of type T. 16-bit types are computed in float with the fewest
// operations that their precision allows, to come close to the memory bandwidth. Relative errors
// where the result is a normal float, before the rounding to 16 bits; u = 2^-24, and e = |v| 2^-28,
// with FMA:
//
//           float   FLOAT16          BFLOAT16         double
//   exp     2 u     2^-23 + 2 u + e  as FLOAT16       1 ULP, by at::vec
//   expm1   2.5 u   2^-21 + 3 u + e  2^-16 + 3 u + e  1 ULP
//   log1p   3 u     2^-22 + 3 u      2^-16 + 3 u      1 ULP
//
// ScaledExpm1 has no e. docs/precision.md derives these bounds. Without FMA, e is |v| 2^-24.
#pragma once

#include <array>
#include <iterator>
#include <type_traits>

#include "host_cann/kernels/vec_lanes.h"

namespace aclnn_host {
namespace {

using Float = at::vec::Vectorized<float>;
using Double = at::vec::Vectorized<double>;

template <class T>
concept Narrow = sizeof(T) == 2;

// Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits; adding 127 makes it the
// exponent field of a float.
constexpr float kShift = 12582912.0f + 127.0f;

using Int = at::vec::Vectorized<int32_t>;

// The float whose exponent field is the lowest bits of each lane; one constant shift is faster than
// at::vec's shift by a vector.
inline Float power_of_field(const Int& bits) {
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 23));
#elif defined(CPU_CAPABILITY_AVX2)
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
#else
  return at::vec::cast<float>(bits << Int(23));
#endif
}

// Half of a number above 0, rounded down.
inline Int halved(const Int& number) {
#if defined(CPU_CAPABILITY_AVX2)
  return _mm256_srli_epi32(number, 1);
#else
  return number >> Int(1);
#endif
}

// 2^n of n + kShift, for n from -126 to 127.
inline Float power_of_shifted(const Float& shifted) {
  return power_of_field(at::vec::cast<int32_t>(shifted));
}

// 2^n of n + kShift as the product of two powers, for n from -250 to 250: 2^n itself may not be a
// normal float. The fields are the powers' exponent fields.
struct TwoPowers {
  explicit TwoPowers(const Float& shifted) {
    const Int sum = at::vec::cast<int32_t>(shifted) + Int(kBias);
    first_field_ = halved(sum);
    second_field_ = sum - first_field_;
  }

  Float first() const { return power_of_field(first_field_); }
  Float second() const { return power_of_field(second_field_); }
  Float inverse_of_second() const { return power_of_field(Int(2 * kBias) - second_field_); }

 private:
  static constexpr int32_t kBias = 127;

  Int first_field_;
  Int second_field_;
};

// x * 2^n of n + kShift, for n from -160 to 160, rounded once even where the result is subnormal:
// x stays normal after the first factor.
inline Float scale_by_power(const Float& x, const Float& shifted) {
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_scalef_ps(x, shifted - Float(kShift));
#else
  const TwoPowers power(shifted);
  return x * power.first() * power.second();
#endif
}

// k[0] + k[1] r + k[2] r^2 + ...
template <class Coefficients>
inline Float polynomial(const Float& r, const Coefficients& k) {
  Float sum(k[std::size(k) - 1]);
  for (size_t i = std::size(k) - 1; i-- > 0;) sum = at::vec::fmadd(sum, r, Float(k[i]));
  return sum;
}

// v = n ln 2 + r with |r| <= ln(2) / 2.
struct Reduced {
  Float shifted;  // n + kShift
  Float r;
};

// |v| is at most 105; NaN is kept.
template <class T>
inline Reduced reduce(const Float& v) {
  using at::vec::fmadd;
  const Float shifted = fmadd(v, Float(1.44269504f), Float(kShift));
  const Float n = shifted - Float(kShift);
  if constexpr (Narrow<T>) return {shifted, fmadd(n, Float(-0.69314718f), v)};
  // The upper part of ln 2 has 9 bits: its product with n is exact, with or without FMA.
  return {shifted, fmadd(n, Float(2.12194440e-4f), fmadd(n, Float(-0.693359375f), v))};
}

// The coefficients of expm1(r) / r, which minimise the largest relative error: 2^-21 for FLOAT16
// and 2^-16 for BFLOAT16.
template <Narrow T>
constexpr auto kExpm1 =
    std::to_array({0.9999999403953552f, 0.49999377131462097f, 0.1666693538427353f,
                   4.187511280179024e-2f, 8.333321660757065e-3f});
template <>
constexpr auto kExpm1<c10::BFloat16> = std::to_array(
    {0.9999850988388062f, 0.5000125169754028f, 0.16766713559627533f, 4.166658595204353e-2f});

// expm1(r); for float the polynomial is accurate to 2^-26.
template <class T>
inline Float expm1_of_reduced(const Float& r) {
  if constexpr (Narrow<T>) {
    return polynomial(r, kExpm1<T>) * r;
  } else {
    constexpr float kP[] = {0.4999999701976776f, 0.1666654348373413f, 4.166720062494278e-2f,
                            8.366547524929047e-3f, 1.3882516650483012e-3f};
    return at::vec::fmadd(polynomial(r, kP) * r, r, r);
  }
}

// exp(r) for the 16-bit types, accurate to 2^-23.
inline Float exp_of_reduced(const Float& r) {
  constexpr float kP[] = {1.0f,
                          0.9999997019767761f,
                          0.4999915063381195f,
                          0.1666763573884964f,
                          4.189793020486832e-2f,
                          8.290315046906471e-3f};
  return polynomial(r, kP);
}

// Beyond these, exp is 0 or inf in float.
constexpr float kLeastExponent = -105;
constexpr float kGreatestExponent = 90;

// ---- Functions for the kernels ------------------------------------------------------------------

// exp(v) for v <= 90 or NaN; unspecified elsewhere.
template <class T>
inline VectorOf<T> exp_of_nonpositive(const VectorOf<T>& v) {
  if constexpr (std::is_same_v<T, double>) {
    return v.exp();
  } else {
    const Reduced x = reduce<T>(at::vec::clamp_min(v, Float(kLeastExponent)));
    if constexpr (Narrow<T>) return scale_by_power(exp_of_reduced(x.r), x.shifted);
    return scale_by_power(expm1_of_reduced<T>(x.r) + Float(1), x.shifted);
  }
}

// exp(v)
template <class T>
inline VectorOf<T> exp(const VectorOf<T>& v) {
  if constexpr (std::is_same_v<T, double>) {
    return v.exp();
  } else {
    return exp_of_nonpositive<T>(at::vec::clamp_max(v, Float(kGreatestExponent)));
  }
}

// sum + exp(v) for v <= 0 or NaN, for final sums of at least 1: terms below about 2^-126 are
// clamped to it.
template <class T>
inline VectorOf<T> add_exp_of_nonpositive(const VectorOf<T>& sum, const VectorOf<T>& v) {
  if constexpr (std::is_same_v<T, double>) {
    return sum + v.exp();
  } else {
    const Reduced x = reduce<T>(at::vec::clamp_min(v, Float(-87)));
    const Float power = power_of_shifted(x.shifted);
    if constexpr (Narrow<T>) return at::vec::fmadd(exp_of_reduced(x.r), power, sum);
    return sum + at::vec::fmadd(power, expm1_of_reduced<T>(x.r), power);
  }
}

// The coefficients of log1p(e) / e for e from 0 to 1, which minimise the largest relative error:
// 2^-25 for float, 2^-22 for FLOAT16 and 2^-16 for BFLOAT16.
template <class T>
constexpr auto kLog1p =
    std::to_array({1.0f, -0.4999990165233612f, 0.3332996368408203f, -0.24954134225845337f,
                   0.1967593878507614f, -0.15305592119693756f, 0.10603654384613037f,
                   -0.05695952847599983f, 0.019851459190249443f, -0.0032440247014164925f});
template <>
constexpr auto kLog1p<c10::Half> = std::to_array(
    {0.9999998211860657f, -0.4999740421772003f, 0.33275479078292847f, -0.24495463073253632f,
     0.17745241522789001f, -0.10768171399831772f, 0.04408963397145271f, -0.008539210073649883f});
template <>
constexpr auto kLog1p<c10::BFloat16> =
    std::to_array({0.9999915957450867f, -0.4993613660335541f, 0.3252066671848297f,
                   -0.21004867553710938f, 0.10122227668762207f, -0.023869149386882782f});

// sum + log(1 + e) for e from 0 to 1 or NaN.
template <class T>
inline VectorOf<T> add_log1p(const VectorOf<T>& sum, const VectorOf<T>& e) {
  if constexpr (std::is_same_v<T, double>) {
    return sum + e.log1p();
  } else {
    return at::vec::fmadd(polynomial(e, kLog1p<T>), e, sum);
  }
}

// Below this, expm1 is -1 anyway, and 2^n stays normal.
constexpr float kLeastForExpm1 = -20;

// factor * expm1(input_scale * x) without cancellation near 0, for x <= 0 or NaN; unspecified
// elsewhere. input_scale is from 1e-6 to 1e30, and factor finite.
template <class T>
class ScaledExpm1 {
  using V = VectorOf<T>;

 public:
  ScaledExpm1(RealOf<T> factor, RealOf<T> input_scale)
      : factor_(factor), input_scale_(input_scale) {}

  V operator()(const V& x) const {
    const V v = x * input_scale_;
    if constexpr (std::is_same_v<T, double>) {
      return factor_ * v.expm1();
    } else {
      const Reduced reduced = reduce<T>(at::vec::clamp_min(v, Float(kLeastForExpm1)));
      const Float power = power_of_shifted(reduced.shifted);
      return factor_ * at::vec::fmadd(power, expm1_of_reduced<T>(reduced.r), power - Float(1));
    }
  }

 private:
  V factor_;
  V input_scale_;
};

// For 16-bit types, input_scale is merged into the factor that converts powers of e to powers of 2,
// v / ln 2 = n + f, and `factor` into the coefficients: two operations fewer of 16.
template <Narrow T>
class ScaledExpm1<T> {
 public:
  ScaledExpm1(float factor, float input_scale)
      : factor_(factor),
        least_(kLeastForExpm1 / input_scale),
        to_binary_(static_cast<float>(input_scale / kLn2)) {
    double power = factor;
    for (size_t i = 0; i < std::size(kExpm1<T>); ++i) {
      power *= kLn2;
      coefficients_[i] = Float(static_cast<float>(power * kExpm1<T>[i]));
    }
  }

  Float operator()(const Float& x) const {
    const Float v = at::vec::clamp_min(x, least_);
    const Float shifted = at::vec::fmadd(v, to_binary_, Float(kShift));
    const Float f = at::vec::fmsub(v, to_binary_, shifted - Float(kShift));
    const Float power = power_of_shifted(shifted);
    return at::vec::fmadd(power, polynomial(f, coefficients_) * f,
                          at::vec::fmsub(power, factor_, factor_));
  }

 private:
  static constexpr double kLn2 = 0.6931471805599453;

  Float factor_;
  Float least_;
  Float to_binary_;
  std::array<Float, std::size(kExpm1<T>)> coefficients_;
};

// exp(v) - 1 without cancellation near 0
template <class T>
inline VectorOf<T> expm1(const VectorOf<T>& v) {
  if constexpr (std::is_same_v<T, double>) {
    return v.expm1();
  } else {
    const Float least(kLeastExponent), greatest(kGreatestExponent);
    const Reduced x = reduce<T>(at::vec::clamp(v, least, greatest));
    // 2^n (q + 1) - 1, with 2^n applied in two factors, because 2^128 is not a float although
    // exp(v) may be.
    const TwoPowers power(x.shifted);
    const Float first = power.first();
    const Float rest = first - power.inverse_of_second();
    return at::vec::fmadd(first, expm1_of_reduced<T>(x.r), rest) * power.second();
  }
}

// 1 / (1 + exp(-v)) and 1 minus it, both without cancellation.
template <class T>
struct Sigmoid {
  using V = VectorOf<T>;
  V value, complement;

  explicit Sigmoid(const V& v) {
    const V power = exp_of_nonpositive<T>(v.abs().neg());
    const V upper = V(1) / (V(1) + power);
    const V lower = power * upper;
    const V negative = v < V(0);
    value = V::blendv(upper, lower, negative);
    complement = V::blendv(lower, upper, negative);
  }
};

}  // namespace
}  // namespace aclnn_host
