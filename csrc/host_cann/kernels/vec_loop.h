// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host_cann/kernels/tuning.h"
#include "host_cann/kernels/vec_lanes.h"

namespace aclnn_host {
namespace {

// Prefetches the step `bytes` after the one at `from`: with much arithmetic between loads, the
// hardware prefetcher, which stops at page boundaries, is too slow. Past the end of the memory this
// has no effect.
template <class T>
inline void prefetch(const T* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < Lanes<T>::kCount * static_cast<int64_t>(sizeof(T)); i += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(from) + bytes + i);
  }
}

// Calls body(i, count...) for the steps of n elements, which begin at i; only the last step may
// have a count, all others are whole.
template <class T, class Body>
inline void for_each_step(int64_t n, Body body) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) body(i);
  if (i < n) body(i, n - i);
}

// Two ways to store results: store(pair, to, count...).
struct CachedStores {
  static constexpr bool kStreaming = false;
  template <class T>
  void operator()(const Pair<VectorOf<T>>& pair, T* to, auto... count) const {
    Lanes<T>::store(pair, to, count...);
  }
};
struct StreamingStores {
  static constexpr bool kStreaming = true;
  template <class T>
  void operator()(const Pair<VectorOf<T>>& pair, T* to) const {
    Lanes<T>::stream(pair, to);
  }
};

// Calls body(i, store, count...) for steps whose results go to `to` + i. With `streaming`, whole
// steps bypass the caches, and the first may have a count, up to where `to` is aligned.
template <class T, class Body>
inline void for_each_result(T* to, int64_t n, bool streaming, Body body) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  constexpr uintptr_t kAlignment = sizeof(VectorOf<T>);
  int64_t i = 0;
  const auto misaligned = reinterpret_cast<uintptr_t>(to) % kAlignment;
  // Misaligned elements never reach an aligned address.
  if (!streaming || misaligned % sizeof(T) != 0) {
    for (; i + kCount <= n; i += kCount) body(i, CachedStores());
  } else {
    if (misaligned != 0) {
      i = std::min<int64_t>(n, static_cast<int64_t>((kAlignment - misaligned) / sizeof(T)));
      body(int64_t{0}, CachedStores(), i);
    }
    for (; i + kCount <= n; i += kCount) body(i, StreamingStores());
  }
  if (i < n) body(i, CachedStores(), n - i);
}

// out[i] = f(a[i], b[i]) for n contiguous elements, f a function of vectors.
template <class T, class F>
inline void loop(const T* a, const T* b, T* out, int64_t n, bool streaming, F f) {
  for_each_result(out, n, streaming, [=](int64_t i, auto store, auto... count) {
    if constexpr (store.kStreaming) {
      prefetch(a + i, kPrefetchBytes);
      prefetch(b + i, kPrefetchBytes);
    }
    store(map(Lanes<T>::load(a + i, count...), Lanes<T>::load(b + i, count...), f), out + i,
          count...);
  });
}

// out[i] = f(a[i])
template <class T, class F>
inline void loop(const T* a, T* out, int64_t n, bool streaming, F f) {
  for_each_result(out, n, streaming, [=](int64_t i, auto store, auto... count) {
    if constexpr (store.kStreaming) prefetch(a + i, kPrefetchBytes);
    store(map(Lanes<T>::load(a + i, count...), f), out + i, count...);
  });
}

}  // namespace
}  // namespace aclnn_host
