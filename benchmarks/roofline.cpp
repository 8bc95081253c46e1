// The memory traffic of an elementwise operator without its arithmetic: two reads or one, and one
// write, with plain or streaming stores. roofline.py builds it for the architecture's baseline; the
// widest available vectors are selected at run time.
#include <omp.h>

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

// Combines `bytes` bytes, a multiple of 64, of a and b, or copies those of a; all addresses are
// aligned to 64 bytes.
using Loop = void (*)(const char* a, const char* b, char* out, int64_t bytes);

#if defined(__x86_64__)

// Integers, so that speed does not depend on bit patterns.
#define DEFINE_LOOP(NAME, TARGET, PREFIX, SUFFIX, VECTOR)                            \
  template <bool kTwoReads, bool kStreaming>                                         \
  TARGET void NAME(const char* a, const char* b, char* out, int64_t bytes) {         \
    for (int64_t i = 0; i < bytes; i += sizeof(VECTOR)) {                            \
      VECTOR value = PREFIX##_load_##SUFFIX(reinterpret_cast<const VECTOR*>(a + i)); \
      if constexpr (kTwoReads)                                                       \
        value = PREFIX##_xor_##SUFFIX(                                               \
            value, PREFIX##_load_##SUFFIX(reinterpret_cast<const VECTOR*>(b + i)));  \
      if constexpr (kStreaming)                                                      \
        PREFIX##_stream_##SUFFIX(reinterpret_cast<VECTOR*>(out + i), value);         \
      else                                                                           \
        PREFIX##_store_##SUFFIX(reinterpret_cast<VECTOR*>(out + i), value);          \
    }                                                                                \
    if constexpr (kStreaming) _mm_sfence();                                          \
  }

DEFINE_LOOP(loop_sse2, , _mm, si128, __m128i)
DEFINE_LOOP(loop_avx2, __attribute__((target("avx2"))), _mm256, si256, __m256i)
DEFINE_LOOP(loop_avx512, __attribute__((target("avx512f"))), _mm512, si512, __m512i)

template <bool kTwoReads, bool kStreaming>
Loop widest_loop() {
  if (__builtin_cpu_supports("avx512f")) return loop_avx512<kTwoReads, kStreaming>;
  if (__builtin_cpu_supports("avx2")) return loop_avx2<kTwoReads, kStreaming>;
  return loop_sse2<kTwoReads, kStreaming>;
}

#else

// Without portable streaming stores, both kinds are plain stores.
template <bool kTwoReads, bool kStreaming>
Loop widest_loop() {
  return [](const char* a, const char* b, char* out, int64_t bytes) {
    for (int64_t i = 0; i < bytes; ++i) out[i] = kTwoReads ? a[i] ^ b[i] : a[i];
  };
}

#endif

}  // namespace

// Runs the loop on as many threads as the caller's other OpenMP regions use. With one read, b is
// ignored.
extern "C" __attribute__((visibility("default"))) void roofline(bool two_reads, bool streaming,
                                                                const char* a, const char* b,
                                                                char* out, int64_t bytes) {
  const Loop loop = two_reads
                        ? (streaming ? widest_loop<true, true>() : widest_loop<true, false>())
                        : (streaming ? widest_loop<false, true>() : widest_loop<false, false>());
#pragma omp parallel
  {
    const int64_t line = 64;
    const int64_t lines = bytes / line;
    const int64_t begin = line * (lines * omp_get_thread_num() / omp_get_num_threads());
    const int64_t end = line * (lines * (omp_get_thread_num() + 1) / omp_get_num_threads());
    loop(a + begin, b + begin, out + begin, end - begin);
  }
}
