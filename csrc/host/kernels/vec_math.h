// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <ATen/cpu/vec/vec.h>

namespace aclnn_host {
namespace {

using Float = at::vec::Vectorized<float>;
using Double = at::vec::Vectorized<double>;

// x * 2^n for integral n in [-160, 160], rounded once even where the result is subnormal.
inline Float scale_by_power(const Float& x, const Float& n) {
#if defined(CPU_CAPABILITY_AVX512)
  return _mm512_scalef_ps(x, n);
#else
  // 2^n may itself be out of range, so it is applied in two halves: x stays normal after the first.
  using Int = at::vec::Vectorized<int32_t>;
  const auto power = [](const Float& k) {
    const Int biased = at::vec::convert_to_int_of_same_size(k) + Int(127);
    return at::vec::cast<float>(biased << Int(23));
  };
  const Float half = (n * Float(0.5f)).floor();
  return x * power(half) * power(n - half);
#endif
}

// What exp and expm1 share: v = n ln 2 + r with |r| <= ln(2) / 2, and q = expm1(r), by a polynomial
// r + r^2 P(r) whose coefficients minimise the largest relative error.
struct Reduced {
  Float shifted;  // n + kShift
  Float n;
  Float q;
};

// Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits; 127 makes it the
// exponent of a float there.
constexpr float kShift = 12582912.0f + 127.0f;

// |v| is at most 105; nan stays nan. With kCoarse, q is good to 2^-21 (2^-9 of the last place of
// FLOAT16), enough for 16-bit results; else to 2^-26.
template <bool kCoarse>
inline Reduced reduce(const Float& v) {
  using at::vec::fmadd;
  const Float shifted = fmadd(v, Float(1.44269504f), Float(kShift));
  const Float n = shifted - Float(kShift);
  if constexpr (kCoarse) {
    const Float r = fmadd(n, Float(-0.69314718f), v);
    Float p(8.338076062500477e-3f);
    p = fmadd(p, r, Float(4.18727733194828e-2f));
    p = fmadd(p, r, Float(0.16666831076145172f));
    p = fmadd(p, r, Float(0.4999940097332001f));
    return {shifted, n, fmadd(p * r, r, r)};
  } else {
    // The upper part of ln 2 has 9 bits: its product with n is exact, with or without FMA.
    Float r = fmadd(n, Float(-0.693359375f), v);
    r = fmadd(n, Float(2.12194440e-4f), r);
    Float p(1.3882516650483012e-3f);
    p = fmadd(p, r, Float(8.366547524929047e-3f));
    p = fmadd(p, r, Float(4.166720062494278e-2f));
    p = fmadd(p, r, Float(0.1666654348373413f));
    p = fmadd(p, r, Float(0.4999999701976776f));
    return {shifted, n, fmadd(p * r, r, r)};
  }
}

// Beyond these, exp is 0 or inf in float.
inline Float clamp_exponent(const Float& v) {
  return at::vec::clamp(v, Float(-105.0f), Float(90.0f));
}

template <bool kCoarse>
inline Float exp(const Float& v) {
  const Reduced x = reduce<kCoarse>(clamp_exponent(v));
  return scale_by_power(x.q + Float(1.0f), x.n);
}

// exp(v) - 1 without cancellation near 0, for v <= 0 or nan; elsewhere any value.
template <bool kCoarse>
inline Float expm1_of_nonpositive(const Float& v) {
  using Int = at::vec::Vectorized<int32_t>;
  // Below -20 the result is -1 anyway, and 2^n stays within the normal numbers.
  const Reduced x = reduce<kCoarse>(at::vec::clamp_min(v, Float(-20.0f)));
  const Float power = at::vec::cast<float>(at::vec::cast<int32_t>(x.shifted) << Int(23));
  return at::vec::fmadd(power, x.q, power - Float(1.0f));
}

// The same for any v.
template <bool kCoarse>
inline Float expm1(const Float& v) {
  const Reduced x = reduce<kCoarse>(clamp_exponent(v));
  // 2^n (q + 1) - 1 with 2^n taken out in two factors, because 2^128 is not a float although
  // exp(v) may be.
  const Float half = (x.n * Float(0.5f)).floor();
  const Float rest = x.n - half;
  const Float one(1.0f);
  const Float first = scale_by_power(one, half);
  const Float second = scale_by_power(one, rest);
  const Float inverse = scale_by_power(one, rest.neg());
  return at::vec::fmadd(first, x.q, first - inverse) * second;
}

template <bool kCoarse>
inline Double exp(const Double& v) {
  return v.exp();
}
template <bool kCoarse>
inline Double expm1_of_nonpositive(const Double& v) {
  return v.expm1();
}
template <bool kCoarse>
inline Double expm1(const Double& v) {
  return v.expm1();
}

}  // namespace
}  // namespace aclnn_host
