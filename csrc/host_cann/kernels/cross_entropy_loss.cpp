#include "host_cann/kernels/cross_entropy_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "host_cann/kernels/vec_loop.h"
#include "host_cann/kernels/vec_math.h"

namespace aclnn_host {
namespace {

// Accumulates with add(sums, i, count...) over steps of n elements at i, starting from a pair of
// vectors of `start`; combine() then reduces the lanes. Lanes without an element in the last step
// are unchanged.
template <class T, class Add, class Combine>
inline RealOf<T> reduce(int64_t n, RealOf<T> start, Add add, Combine combine) {
  using V = VectorOf<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  // Two pairs: with one, every step would wait for the one before, and errors would be larger.
  Pair<V> sums[] = {{V(start), V(start)}, {V(start), V(start)}};
  int64_t i = 0;
  for (; i + 2 * kCount <= n; i += 2 * kCount) {
    sums[0] = add(sums[0], i);
    sums[1] = add(sums[1], i + kCount);
  }
  if (i + kCount <= n) {
    sums[0] = add(sums[0], i);
    i += kCount;
  }
  if (i < n) sums[0] = where_live<T>(add(sums[0], i, n - i), sums[0], n - i);
  const V sum =
      combine(combine(sums[0].first, sums[0].second), combine(sums[1].first, sums[1].second));
  return at::vec::vec_reduce_all<RealOf<T>>([&](const V& a, const V& b) { return combine(a, b); },
                                            sum);
}

template <class V>
inline V plus(const V& a, const V& b) {
  return a + b;
}

// The larger value; the first if the second is NaN, so that NaNs are skipped.
template <class V>
inline V larger(const V& a, const V& b) {
#if defined(__aarch64__)
  return V::blendv(a, b, b > a);  // on NEON, the maximum with a NaN is NaN
#else
  return at::vec::clamp_min(a, b);
#endif
}

template <class T>
inline RealOf<T> largest(const T* row, int64_t n) {
  using V = VectorOf<T>;
  return reduce<T>(
      n, -std::numeric_limits<RealOf<T>>::infinity(),
      [&](const Pair<V>& sums, int64_t i, auto... count) {
        return map(sums, Lanes<T>::load(row + i, count...), larger<V>);
      },
      larger<V>);
}

// The same for 16-bit types with integer compares, half the operations: the greatest word is the
// largest number if one is positive, otherwise the least word, because of sign-magnitude order.
template <Narrow T>
inline float largest_of_words(const T* row, int64_t n) {
  using Words = at::vec::Vectorized<int16_t>;
  constexpr int64_t kCount = Words::size();
  if (n < kCount) return largest(row, n);
  const auto* words = reinterpret_cast<const int16_t*>(row);
  Words most = Words::loadu(words);
  Words least = most;
  const auto add = [&](int64_t i) {
    const Words next = Words::loadu(words + i);
    most = at::vec::maximum(most, next);
    least = at::vec::minimum(least, next);
  };
  for (int64_t i = kCount; i + kCount <= n; i += kCount) add(i);
  add(n - kCount);
  // The choice per lane, then the maximum over lanes as numbers, which propagates a NaN.
  std::array<T, kCount> chosen;
  Words::blendv(least, most, most >= Words(0)).store(chosen.data());
  const Pair<Float> lanes = Lanes<T>::load(chosen.data());
  const auto larger_or_nan = [](const Float& a, const Float& b) { return at::vec::maximum(a, b); };
  const float found =
      at::vec::vec_reduce_all<float>(larger_or_nan, larger_or_nan(lanes.first, lanes.second));
  return std::isnan(found) ? largest(row, n) : found;
}

// ExponentialSum::max
template <class T>
inline RealOf<T> largest_of(const T* row, int64_t n) {
  if constexpr (Narrow<T>) return largest_of_words(row, n);
  return largest(row, n);
}

// exponential_sum() of a row with a known maximum; calls also(i, count...) for every step.
template <class T, class Also>
inline ExponentialSum exponential_sum_and(const T* row, RealOf<T> max, int64_t n, bool streaming,
                                          Also also) {
  using V = VectorOf<T>;
  using Real = RealOf<T>;
  constexpr auto kNone = -std::numeric_limits<Real>::infinity();
  const V shift(max == kNone ? Real(0) : max);
  const Real sum = reduce<T>(
      n, Real(0),
      [=](const Pair<V>& sums, int64_t i, auto... count) {
        // The loop is compute-bound, so prefetch the elements after these n.
        if (streaming) prefetch(row + i, n * static_cast<int64_t>(sizeof(T)));
        const Pair<V> values = Lanes<T>::load(row + i, count...);
        also(i, count...);
        return map(sums, values, [=](const V& sum, const V& v) {
          return add_exp_of_nonpositive<T>(sum, v - shift);
        });
      },
      plus<V>);
  return {max, max == kNone && !std::isnan(sum) ? 0 : sum};
}

// Kernels are flattened (everything is inlined): within its own limits, the compiler leaves calls
// in the hottest loops and with them values in memory, which makes these loops 1.5 times as slow.
template <class T>
[[gnu::flatten]] ExponentialSum exponential_sum(const void* x, int64_t n, bool streaming) {
  const auto* row = static_cast<const T*>(x);
  return exponential_sum_and(row, largest_of(row, n), n, streaming, [](auto...) {});
}

template <class T>
[[gnu::flatten]] void exponential_sums(const void* x, int64_t rows, int64_t n,
                                       ExponentialSum* sums) {
  const auto* from = static_cast<const T*>(x);
  // A short row is a dependency chain. In two passes over several rows, the CPU overlaps their
  // chains.
  for (int64_t row = 0; row < rows; ++row) sums[row].max = largest_of(from + row * n, n);
  for (int64_t row = 0; row < rows; ++row) {
    const auto max = static_cast<RealOf<T>>(sums[row].max);
    sums[row] = exponential_sum_and(from + row * n, max, n, false, [](auto...) {});
  }
}

void logarithms(double* values, int64_t n) {
  for (int64_t i = 0; i < n; i += Double::size()) {
    const auto count = std::min<int64_t>(Double::size(), n - i);
    Double::loadu(values + i, count).log().store(values + i, static_cast<int>(count));
  }
}

// log_prob of one vector of elements.
template <class T>
struct LogProb {
  using V = VectorOf<T>;
  V largest, logarithm;

  LogProb(double max, double log_sum)
      : largest(static_cast<RealOf<T>>(max)), logarithm(static_cast<RealOf<T>>(log_sum)) {}

  V operator()(const V& v) const { return (v - largest) - logarithm; }
};

template <class T>
[[gnu::flatten]] void log_prob(const void* x, double max, double log_sum, void* log_prob, int64_t n,
                               bool streaming) {
  const LogProb<T> function(max, log_sum);
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(log_prob);
  // No prefetching: exponential_sum() has just read the elements.
  for_each_result(to, n, streaming, [=](int64_t i, auto store, auto... count) {
    store(map(Lanes<T>::load(from + i, count...), function), to + i, count...);
  });
}

template <class T>
[[gnu::flatten]] ExponentialSum log_prob_and_next_sum(const void* x, double max, double log_sum,
                                                      void* log_prob, const void* next, int64_t n) {
  const LogProb<T> function(max, log_sum);
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(log_prob);
  if (reinterpret_cast<uintptr_t>(to) % sizeof(VectorOf<T>) != 0) {
    aclnn_host::log_prob<T>(x, max, log_sum, log_prob, n, true);
    return exponential_sum<T>(next, n, true);
  }
  const auto* row = static_cast<const T*>(next);
  return exponential_sum_and(row, largest_of(row, n), n, true, [=](int64_t i, auto... count) {
    const auto result = map(Lanes<T>::load(from + i, count...), function);
    if constexpr (sizeof...(count) == 0) {
      StreamingStores()(result, to + i);
    } else {
      CachedStores()(result, to + i, count...);
    }
  });
}

template <class T>
[[gnu::flatten]] double weighted_sum(const void* x, const void* weight, double max, double log_sum,
                                     int64_t n) {
  using V = VectorOf<T>;
  const LogProb<T> value(max, log_sum);
  const auto* row = static_cast<const T*>(x);
  const auto* weights = static_cast<const RealOf<T>*>(weight);
  return reduce<T>(
      n, RealOf<T>(0),
      [&](const Pair<V>& sums, int64_t i, auto... count) {
        const Pair<V> values = map(Lanes<T>::load(row + i, count...), value);
        if (weights == nullptr) return map(sums, values, plus<V>);
        const Pair<V> w = Lanes<T>::load_real(weights + i, count...);
        return Pair<V>{sums.first + w.first * values.first, sums.second + w.second * values.second};
      },
      plus<V>);
}

template <class T>
[[gnu::flatten]] void probability(const void* x, double max, double factor, void* probability,
                                  int64_t n) {
  using V = VectorOf<T>;
  const auto* row = static_cast<const T*>(x);
  auto* out = static_cast<RealOf<T>*>(probability);
  const V shift(static_cast<RealOf<T>>(max));
  const V scale(static_cast<RealOf<T>>(factor));
  for_each_step<T>(n, [=](int64_t i, auto... count) {
    const auto function = [=](const V& v) { return exp<RealOf<T>>(v - shift) * scale; };
    Lanes<T>::store_real(map(Lanes<T>::load(row + i, count...), function), out + i, count...);
  });
}

template <class T>
[[gnu::flatten]] void gradient(const void* log_prob, const void* weight, double factor,
                               double smoothing, void* gradient, int64_t n, bool streaming) {
  using V = VectorOf<T>;
  const auto* row = static_cast<const T*>(log_prob);
  auto* out = static_cast<T*>(gradient);
  const auto* weights = static_cast<const RealOf<T>*>(weight);
  const V total(static_cast<RealOf<T>>(factor));
  const V subtracted(static_cast<RealOf<T>>(smoothing));
  if (smoothing == 0) {
    loop(row, out, n, streaming, [&](const V& v) { return exp<T>(v) * total; });
  } else if (weights == nullptr) {
    loop(row, out, n, streaming, [&](const V& v) { return exp<T>(v) * total - subtracted; });
  } else {
    for_each_result(out, n, streaming, [&](int64_t i, auto store, auto... count) {
      store(map(Lanes<T>::load(row + i, count...), Lanes<T>::load_real(weights + i, count...),
                [&](const V& v, const V& w) { return exp<T>(v) * total - subtracted * w; }),
            out + i, count...);
    });
  }
}

template <class T>
constexpr CrossEntropyLossKernels kernels_of() {
  return {exponential_sum<T>,       exponential_sums<T>, logarithms,     log_prob<T>,
          log_prob_and_next_sum<T>, weighted_sum<T>,     probability<T>, gradient<T>};
}

}  // namespace

template <>
const CrossEntropyLossKernelSet& cross_entropy_loss_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr CrossEntropyLossKernelSet kKernels = {
      kernels_of<float>(), kernels_of<c10::Half>(), kernels_of<c10::BFloat16>(),
      kernels_of<double>()};
  return kKernels;
}

}  // namespace aclnn_host
