// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

// The compute type for elements of type T.
template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
using VectorOf = at::vec::Vectorized<RealOf<T>>;

// The step of every loop: two vectors of the compute type, which is one vector of a 16-bit type.
template <class V>
struct Pair {
  V first;
  V second;
};

template <class V, class F>
inline Pair<V> map(const Pair<V>& a, F f) {
  return {f(a.first), f(a.second)};
}
template <class V, class F>
inline Pair<V> map(const Pair<V>& a, const Pair<V>& b, F f) {
  return {f(a.first, b.first), f(a.second, b.second)};
}

// A store that bypasses the caches where the CPU supports it; `to` must be aligned. See
// streaming.h.
template <class V>
inline void store_streaming(const V& value, void* to) {
#if defined(CPU_CAPABILITY_AVX512)
  __m512i bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  _mm512_stream_si512(static_cast<__m512i*>(to), bits);
#elif defined(CPU_CAPABILITY_AVX2)
  __m256i bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  _mm256_stream_si256(static_cast<__m256i*>(to), bits);
#else
  value.store(to);
#endif
}

// The same value; a NaN becomes the canonical one, with zero lower bits.
inline float with_default_nan(float value) {
  return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
}
inline double with_default_nan(double value) {
  return value;  // not needed for types that are never narrowed
}
#if defined(CPU_CAPABILITY_AVX512)
inline at::vec::Vectorized<float> with_default_nan(const at::vec::Vectorized<float>& value) {
  const __mmask16 nans = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(value, nans, _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN()));
}
#elif defined(CPU_CAPABILITY_AVX2)
inline at::vec::Vectorized<float> with_default_nan(const at::vec::Vectorized<float>& value) {
  const __m256 nans = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  return _mm256_blendv_ps(value, _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN()), nans);
}
#endif

// Conversion of a step of elements to the compute type, and rounding back. For one T, the mapping
// of elements to lanes is the same for everything loaded or stored: the elements themselves, and
// values of the compute type (`_real`) that belong to them.
template <class T>
struct Lanes {
  using V = VectorOf<T>;
  static constexpr int64_t kCount = 2 * V::size();

  static Pair<V> load(const T* from) { return load_real(from); }
  static Pair<V> load(const T* from, int64_t count) { return load_real(from, count); }
  static void store(const Pair<V>& pair, T* to) { store_real(pair, to); }
  static void store(const Pair<V>& pair, T* to, int64_t count) { store_real(pair, to, count); }
  static void stream(const Pair<V>& pair, T* to) {
    store_streaming(pair.first, to);
    store_streaming(pair.second, to + V::size());
  }

  static Pair<V> load_real(const T* from) { return {V::loadu(from), V::loadu(from + V::size())}; }
  static Pair<V> load_real(const T* from, int64_t count) {
    if (count <= V::size()) return {V::loadu(from, count), V(0)};
    return {V::loadu(from), V::loadu(from + V::size(), count - V::size())};
  }
  static void store_real(const Pair<V>& pair, T* to) {
    pair.first.store(to);
    pair.second.store(to + V::size());
  }
  static void store_real(const Pair<V>& pair, T* to, int64_t count) {
    pair.first.store(to, std::min<int64_t>(count, V::size()));
    if (count > V::size()) pair.second.store(to + V::size(), count - V::size());
  }
};

// 16-bit elements fill one vector; `Order` widens and narrows it, and permutes values accordingly.
template <class T, class Order>
struct NarrowLanes {
  using V = at::vec::Vectorized<float>;
  using Elements = at::vec::Vectorized<T>;
  using Wide = Lanes<float>;
  static constexpr int64_t kCount = 2 * V::size();
  static_assert(Elements::size() == kCount);

  static Pair<V> load(const T* from) { return Order::widen(Elements::loadu(from)); }
  static Pair<V> load(const T* from, int64_t count) {
    return Order::widen(Elements::loadu(from, count));
  }
  static void store(const Pair<V>& pair, T* to) { Order::narrow(pair).store(to); }
  static void store(const Pair<V>& pair, T* to, int64_t count) {
    Order::narrow(pair).store(to, count);
  }
  static void stream(const Pair<V>& pair, T* to) { store_streaming(Order::narrow(pair), to); }

  static Pair<V> load_real(const float* from) { return Order::arrange(Wide::load(from)); }
  static Pair<V> load_real(const float* from, int64_t count) {
    return Order::arrange(Wide::load(from, count));
  }
  static void store_real(const Pair<V>& pair, float* to) { Wide::store(Order::in_order(pair), to); }
  static void store_real(const Pair<V>& pair, float* to, int64_t count) {
    Wide::store(Order::in_order(pair), to, count);
  }
};

// The first vector has the first half.
template <class T>
struct InOrder {
  using V = at::vec::Vectorized<float>;

  static Pair<V> widen(const at::vec::Vectorized<T>& elements) {
    const auto [first, second] = at::vec::convert_to_float<T>(elements);
    return {first, second};
  }
  static at::vec::Vectorized<T> narrow(const Pair<V>& pair) {
    return at::vec::convert_from_float<T>(pair.first, pair.second);
  }
  static Pair<V> arrange(const Pair<V>& pair) { return pair; }
  static Pair<V> in_order(const Pair<V>& pair) { return pair; }
};

#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
// Loads and widens each half: splitting a loaded vector costs more.
template <>
struct Lanes<c10::Half> : NarrowLanes<c10::Half, InOrder<c10::Half>> {
  using NarrowLanes::load;
  static Pair<V> load(const c10::Half* from) {
    const auto half = [](const c10::Half* at) {
#if defined(CPU_CAPABILITY_AVX512)
      return V(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))));
#else
      return V(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
#endif
    };
    return {half(from), half(from + V::size())};
  }
};

// The first vector has the even elements, the second the odd ones. Two BFLOAT16 share a 32-bit
// lane: a shift and a mask convert them to float, which is cheaper than widening in order.
struct EvenOdd {
  using V = at::vec::Vectorized<float>;
  using Elements = at::vec::Vectorized<c10::BFloat16>;

#if defined(CPU_CAPABILITY_AVX512)
  static Pair<V> widen(const Elements& elements) {
    const __m512i pair = elements;
    return {V(_mm512_castsi512_ps(_mm512_slli_epi32(pair, 16))),
            V(_mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32(0xffff0000))))};
  }

  // Rounds to nearest even, in the upper half of the lane; the lower half is garbage. A NaN stays
  // NaN only because its lower bits are zero: the kernels' NaNs come from BFLOAT16 inputs, from
  // operations (the default NaN), or from floats canonicalised by with_default_nan() or stage 1.
  static __m512i round(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16));
    const __m512i if_even = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(if_even, odd, bits, _mm512_set1_epi32(0x8000));
  }

  static Elements narrow(const Pair<V>& pair) {
    // odd & 0xffff0000 | even >> 16, with the truth table of c ? a : b.
    return Elements(_mm512_ternarylogic_epi32(round(pair.second),
                                              _mm512_srli_epi32(round(pair.first), 16),
                                              _mm512_set1_epi32(0xffff0000), 0xe4));
  }

  static Pair<V> arrange(const Pair<V>& pair) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    return {with_default_nan(V(_mm512_permutex2var_ps(pair.first, even, pair.second))),
            with_default_nan(V(_mm512_permutex2var_ps(pair.first, odd, pair.second)))};
  }
  static Pair<V> in_order(const Pair<V>& pair) {
    const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i upper = _mm512_or_si512(lower, _mm512_set1_epi32(8));
    return {V(_mm512_permutex2var_ps(pair.first, lower, pair.second)),
            V(_mm512_permutex2var_ps(pair.first, upper, pair.second))};
  }
#else
  static Pair<V> widen(const Elements& elements) {
    const __m256i pair = elements;
    return {V(_mm256_castsi256_ps(_mm256_slli_epi32(pair, 16))),
            V(_mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32(0xffff0000))))};
  }

  // As with AVX512.
  static __m256i round(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  }

  static Elements narrow(const Pair<V>& pair) {
    constexpr int kOddWords = 0xaa;
    return Elements(_mm256_blend_epi16(_mm256_srli_epi32(round(pair.first), 16), round(pair.second),
                                       kOddWords));
  }

  static Pair<V> arrange(const Pair<V>& pair) {
    // Within 128 bits, a shuffle of both; then the middle quarters change places.
    const auto ordered = [](__m256 shuffled) {
      return V(_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(shuffled), 0xd8)));
    };
    return {with_default_nan(ordered(_mm256_shuffle_ps(pair.first, pair.second, 0x88))),
            with_default_nan(ordered(_mm256_shuffle_ps(pair.first, pair.second, 0xdd)))};
  }
  static Pair<V> in_order(const Pair<V>& pair) {
    const __m256 outer = _mm256_unpacklo_ps(pair.first, pair.second);
    const __m256 inner = _mm256_unpackhi_ps(pair.first, pair.second);
    return {V(_mm256_permute2f128_ps(outer, inner, 0x20)),
            V(_mm256_permute2f128_ps(outer, inner, 0x31))};
  }
#endif
};

template <>
struct Lanes<c10::BFloat16> : NarrowLanes<c10::BFloat16, EvenOdd> {};
#else
template <>
struct Lanes<c10::Half> : NarrowLanes<c10::Half, InOrder<c10::Half>> {};
template <>
struct Lanes<c10::BFloat16> : NarrowLanes<c10::BFloat16, InOrder<c10::BFloat16>> {};
#endif

// 1 in the lanes of the first `count` elements of a step, else 0.
template <class T>
inline Pair<VectorOf<T>> live_lanes(int64_t count) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  static constexpr auto kOnesAndZeros = [] {
    std::array<RealOf<T>, 2 * kCount> numbers{};
    std::fill_n(numbers.begin(), kCount, RealOf<T>(1));
    return numbers;
  }();
  return Lanes<T>::load_real(kOnesAndZeros.data() + (kCount - count));
}

// `next` in those lanes, `last` in the others.
template <class T>
inline Pair<VectorOf<T>> where_live(const Pair<VectorOf<T>>& next, const Pair<VectorOf<T>>& last,
                                    int64_t count) {
  using V = VectorOf<T>;
  const Pair<V> live = live_lanes<T>(count);
  return {V::blendv(last.first, next.first, live.first != V(0)),
          V::blendv(last.second, next.second, live.second != V(0))};
}
template <class T>
inline Pair<VectorOf<T>> where_live(const Pair<VectorOf<T>>& next, const Pair<VectorOf<T>>&) {
  return next;
}

}  // namespace
}  // namespace aclnn_host
