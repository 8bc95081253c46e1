#include "kernels/cross_entropy_loss.h"

#include <cmath>
#include <limits>

#include "kernels/vec_loop.h"
#include "kernels/vec_math.h"

namespace aclnn_host {
namespace {

// What add(sums, i, count...) makes of a pair of vectors, which begin as `start`, with the steps of
// n elements at i; combine() then joins its lanes. The lanes of a step that have no element stay.
template <class T, class Add, class Combine>
inline RealOf<T> reduce(int64_t n, RealOf<T> start, Add add, Combine combine) {
  using V = VectorOf<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  // Two pairs: one would make every step wait for the one before, and round more.
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

template <class T>
ExponentialSum exponential_sum(const void* x, int64_t n, bool streaming) {
  using V = VectorOf<T>;
  using Real = RealOf<T>;
  constexpr auto kNone = -std::numeric_limits<Real>::infinity();
  const auto* row = static_cast<const T*>(x);
  // The first if the second is nan, which comes with the sum.
  const auto larger = [](const V& a, const V& b) { return at::vec::clamp_min(a, b); };
  const Real max = reduce<T>(
      n, kNone,
      [&](const Pair<V>& sums, int64_t i, auto... count) {
        return map(sums, Lanes<T>::load(row + i, count...), larger);
      },
      larger);
  const V shift(max == kNone ? Real(0) : max);
  const Real sum = reduce<T>(
      n, Real(0),
      [&](const Pair<V>& sums, int64_t i, auto... count) {
        // The arithmetic leaves the memory idle: time for the elements that come after these n.
        if (streaming) prefetch(row + i, n * static_cast<int64_t>(sizeof(T)));
        return map(sums, Lanes<T>::load(row + i, count...), [&](const V& sum, const V& v) {
          return add_exp_of_nonpositive<T>(sum, v - shift);
        });
      },
      plus<V>);
  return {max, max == kNone && !std::isnan(sum) ? 0 : sum};
}

template <class T>
void log_prob(const void* x, double max, double log_sum, void* log_prob, int64_t n,
              bool streaming) {
  using V = VectorOf<T>;
  const V largest(static_cast<RealOf<T>>(max));
  const V logarithm(static_cast<RealOf<T>>(log_sum));
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(log_prob);
  // Without prefetching: exponential_sum() has read the elements just before.
  for_each_result(to, n, streaming, [&](int64_t i, auto store, auto... count) {
    store(map(Lanes<T>::load(from + i, count...),
              [&](const V& v) { return (v - largest) - logarithm; }),
          to + i, count...);
  });
}

template <class T>
double weighted_sum(const void* x, const void* weight, double max, double log_sum, int64_t n) {
  using V = VectorOf<T>;
  const V largest(static_cast<RealOf<T>>(max));
  const V logarithm(static_cast<RealOf<T>>(log_sum));
  const auto* row = static_cast<const T*>(x);
  const auto* weights = static_cast<const RealOf<T>*>(weight);
  const auto value = [&](const V& v) { return (v - largest) - logarithm; };
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
void gradient(const void* log_prob, const void* weight, double factor, double smoothing,
              void* gradient, int64_t n, bool streaming) {
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
  return {exponential_sum<T>, log_prob<T>, weighted_sum<T>, gradient<T>};
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
