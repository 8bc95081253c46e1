#include "kernels/cross_entropy_loss.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "kernels/vec_loop.h"
#include "kernels/vec_math.h"

namespace aclnn_host {
namespace {

template <class T>
using Vec = typename Lanes<T>::Vec;
template <class T>
using Compute = typename Lanes<T>::Compute;
template <class T>
using Real = typename Compute<T>::value_type;

// Compute vectors that one vector of elements widens to.
template <class T>
constexpr int kParts = sizeof(Real<T>) / sizeof(T);

// The elements' values, in order.
template <class T>
inline std::array<Compute<T>, kParts<T>> widen(const Vec<T>& elements) {
  if constexpr (kParts<T> == 2) {
    const auto [low, high] = at::vec::convert_to_float<T>(elements);
    return {low, high};
  } else {
    return {elements};
  }
}

// Combines term(v, i, count) of all compute vectors v, which begin at element i and have `count`
// elements, lane by lane and then the lanes. The lanes without an element have the term `neutral`.
template <class T, class Term, class Combine>
inline Real<T> reduce(const T* x, int64_t n, Real<T> neutral, Term term, Combine combine) {
  using V = Compute<T>;
  constexpr int64_t kLanes = V::size();
  // Several accumulators: one would make every step wait for the one before, and round more.
  constexpr int kAccumulators = 4;
  V sums[kAccumulators] = {V(neutral), V(neutral), V(neutral), V(neutral)};
  const auto take = [&](int64_t i, int first) {
    const auto parts = widen<T>(Vec<T>::loadu(x + i));
    for (int p = 0; p < kParts<T>; ++p) {
      sums[first + p] = combine(sums[first + p], term(parts[p], i + p * kLanes, kLanes));
    }
  };
  int64_t i = 0;
  for (; i + kAccumulators * kLanes <= n; i += kAccumulators * kLanes) {
    for (int k = 0; k < kAccumulators; k += kParts<T>) take(i + k * kLanes, k);
  }
  for (; i + kParts<T> * kLanes <= n; i += kParts<T> * kLanes) take(i, 0);
  if (i < n) {
    const auto parts = widen<T>(Vec<T>::loadu(x + i, n - i));
    for (int p = 0; p < kParts<T> && i < n; ++p, i += kLanes) {
      const int64_t count = std::min(n - i, kLanes);
      sums[p] = combine(sums[p], V::set(V(neutral), term(parts[p], i, count), count));
    }
  }
  const V sum = combine(combine(sums[0], sums[1]), combine(sums[2], sums[3]));
  return at::vec::vec_reduce_all<Real<T>>([&](V& a, V& b) { return combine(a, b); }, sum);
}

template <class T>
ExponentialSum exponential_sum(const void* x, int64_t n) {
  using V = Compute<T>;
  constexpr auto kNone = -std::numeric_limits<Real<T>>::infinity();
  const auto* row = static_cast<const T*>(x);
  // The maximum that a nan does not enter; it comes with the sum.
  const Real<T> max = reduce(
      row, n, kNone, [](const V& v, int64_t, int64_t) { return v; },
      [](const V& a, const V& b) { return at::vec::clamp_min(a, b); });
  const V shift(max == kNone ? Real<T>(0) : max);
  const Real<T> sum = reduce(
      row, n, Real<T>(0),
      [&](const V& v, int64_t, int64_t) { return exp<Lanes<T>::kCoarse>(v - shift); },
      [](const V& a, const V& b) { return a + b; });
  return {max, sum};
}

template <class T>
void log_prob(const void* x, double max, double log_sum, void* log_prob, int64_t n,
              bool streaming) {
  using V = Compute<T>;
  const V largest(static_cast<Real<T>>(max));
  const V logarithm(static_cast<Real<T>>(log_sum));
  loop(static_cast<const T*>(x), static_cast<const T*>(nullptr), static_cast<T*>(log_prob), n,
       streaming, [&](const V& v, const V&) { return (v - largest) - logarithm; });
}

template <class T>
double weighted_sum(const void* x, const void* weight, double max, double log_sum, int64_t n) {
  using V = Compute<T>;
  const V largest(static_cast<Real<T>>(max));
  const V logarithm(static_cast<Real<T>>(log_sum));
  const auto* weights = static_cast<const Real<T>*>(weight);
  return reduce(
      static_cast<const T*>(x), n, Real<T>(0),
      [&](const V& v, int64_t i, int64_t count) {
        const V value = (v - largest) - logarithm;
        return weights ? V::loadu(weights + i, count) * value : value;
      },
      [](const V& a, const V& b) { return a + b; });
}

// The weights are in the compute type, so the elements are widened and narrowed in their order.
template <class T>
void weighted_gradient(const T* log_prob, const Real<T>* weights, const Compute<T>& factor,
                       const Compute<T>& smoothing, T* out, int64_t n) {
  using V = Compute<T>;
  const auto part = [&](const V& v, int64_t i) {
    const int64_t begin = std::min(i, n);
    const V w = V::loadu(weights + begin, std::min<int64_t>(n - begin, V::size()));
    return exp<Lanes<T>::kCoarse>(v) * factor - smoothing * w;
  };
  for (int64_t i = 0; i < n; i += Vec<T>::size()) {
    const int64_t count = std::min<int64_t>(n - i, Vec<T>::size());
    const auto parts = widen<T>(Vec<T>::loadu(log_prob + i, count));
    if constexpr (kParts<T> == 2) {
      at::vec::convert_from_float<T>(part(parts[0], i), part(parts[1], i + V::size()))
          .store(out + i, count);
    } else {
      part(parts[0], i).store(out + i, count);
    }
  }
}

template <class T>
void gradient(const void* log_prob, const void* weight, double factor, double smoothing,
              void* gradient, int64_t n, bool streaming) {
  using V = Compute<T>;
  constexpr bool kCoarse = Lanes<T>::kCoarse;
  const auto* row = static_cast<const T*>(log_prob);
  auto* out = static_cast<T*>(gradient);
  const V total(static_cast<Real<T>>(factor));
  const V subtracted(static_cast<Real<T>>(smoothing));
  const T* const none = nullptr;
  if (smoothing == 0) {
    loop(row, none, out, n, streaming,
         [&](const V& v, const V&) { return exp<kCoarse>(v) * total; });
  } else if (weight == nullptr) {
    loop(row, none, out, n, streaming,
         [&](const V& v, const V&) { return exp<kCoarse>(v) * total - subtracted; });
  } else {
    weighted_gradient(row, static_cast<const Real<T>*>(weight), total, subtracted, out, n);
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
