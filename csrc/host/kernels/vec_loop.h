// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <algorithm>

#include <c10/util/Half.h>
#include <c10/util/BFloat16.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

namespace aclnn_host {
namespace {

constexpr int64_t kPrefetchBytes = 1024;

// Writes past the caches where the CPU can; `to` is aligned to the vector.
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

// Asks for what comes later: with much arithmetic between the loads, the CPU's own prefetching,
// which ends with every page, leaves the memory waiting. Beyond the end it does nothing.
template <class T>
inline void prefetch(const T* from) {
  __builtin_prefetch(reinterpret_cast<const char*>(from) + kPrefetchBytes);
}

// Orders streaming stores before whatever tells another thread that they are done.
inline void end_streaming() {
#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
  _mm_sfence();
#endif
}

// How elements of type T are computed with: `widen` gives the vectors of the compute type, `narrow`
// rounds them back.
template <class T>
struct Lanes {
  using Vec = at::vec::Vectorized<T>;
  using Compute = Vec;
  static constexpr bool kCoarse = false;

  template <class F>
  static Vec map(const Vec& a, const Vec& b, F f) {
    return f(a, b);
  }
};

template <class T>
  requires(sizeof(T) == 2)
struct Lanes<T> {
  using Vec = at::vec::Vectorized<T>;
  using Compute = at::vec::Vectorized<float>;
  static constexpr bool kCoarse = true;

  template <class F>
  static Vec map(const Vec& a, const Vec& b, F f) {
    const auto [a0, a1] = at::vec::convert_to_float<T>(a);
    const auto [b0, b1] = at::vec::convert_to_float<T>(b);
    return at::vec::convert_from_float<T>(f(a0, b0), f(a1, b1));
  }
};

#if defined(CPU_CAPABILITY_AVX512)
// Two BFLOAT16 share a 32-bit lane: shifting and masking separates them into floats more cheaply
// than widening in order does, and one mask joins the results.
template <>
struct Lanes<c10::BFloat16> {
  using Vec = at::vec::Vectorized<c10::BFloat16>;
  using Compute = at::vec::Vectorized<float>;
  static constexpr bool kCoarse = true;

  static __m512 low(__m512i pair) { return _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)); }
  static __m512 high(__m512i pair) {
    return _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32(0xffff0000)));
  }

  // To nearest even, in the upper half of the lane; the lower half is left over. A nan stays one
  // because its lower bits are zero: the kernels' nans come from BFLOAT16 inputs, from operations
  // (the default nan), or from coefficients, which stage 1 makes canonical.
  static __m512i round(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
  }

  template <class F>
  static Vec map(const Vec& a, const Vec& b, F f) {
    const __m512i even = round(f(Compute(low(a)), Compute(low(b))));
    const __m512i odd = round(f(Compute(high(a)), Compute(high(b))));
    // even >> 16 | odd & 0xffff0000, the latter by the truth table of a ? b : c.
    return Vec(_mm512_ternarylogic_epi32(_mm512_set1_epi32(0xffff0000), odd,
                                         _mm512_srli_epi32(even, 16), 0xca));
  }
};
#endif

// out[i] = f(a[i], b[i]) for n contiguous elements, f a function of compute vectors; with b null,
// its second argument is not meaningful.
template <class T, class F>
inline void loop(const T* a, const T* b, T* out, int64_t n, bool streaming, F f) {
  using Vec = typename Lanes<T>::Vec;
  constexpr int64_t kLanes = Vec::size();
  const auto partial = [&](int64_t i, int64_t count) {
    const Vec first = Vec::loadu(a + i, count);
    Lanes<T>::map(first, b ? Vec::loadu(b + i, count) : first, f).store(out + i, count);
  };
  int64_t i = 0;
  // Streaming stores need aligned addresses, which elements that straddle their size never reach.
  const auto misaligned = reinterpret_cast<uintptr_t>(out) % sizeof(Vec);
  if (streaming && misaligned % sizeof(T) == 0) {
    if (misaligned != 0) {
      i = std::min<int64_t>(n, (sizeof(Vec) - misaligned) / sizeof(T));
      partial(0, i);
    }
    if (b != nullptr) {
      for (; i + kLanes <= n; i += kLanes) {
        prefetch(a + i);
        prefetch(b + i);
        store_streaming(Lanes<T>::map(Vec::loadu(a + i), Vec::loadu(b + i), f), out + i);
      }
    } else {
      for (; i + kLanes <= n; i += kLanes) {
        prefetch(a + i);
        const Vec first = Vec::loadu(a + i);
        store_streaming(Lanes<T>::map(first, first, f), out + i);
      }
    }
    end_streaming();
  } else if (b != nullptr) {
    for (; i + kLanes <= n; i += kLanes) {
      Lanes<T>::map(Vec::loadu(a + i), Vec::loadu(b + i), f).store(out + i);
    }
  } else {
    for (; i + kLanes <= n; i += kLanes) {
      const Vec first = Vec::loadu(a + i);
      Lanes<T>::map(first, first, f).store(out + i);
    }
  }
  if (i < n) partial(i, n - i);
}

}  // namespace
}  // namespace aclnn_host
