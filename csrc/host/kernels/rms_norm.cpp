#include "kernels/rms_norm.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

using at::vec::fmadd;
using at::vec::Vectorized;

// Two vectors of the compute type: as many elements as one vector of a 16-bit type has.
template <class Real>
struct Pair {
  using V = Vectorized<Real>;
  static constexpr int64_t kSize = 2 * V::size();
  V first;
  V second;
};

// A pair that is there to its end; the last of a row has a count of elements instead.
struct Whole {};

template <class Real, class T>
inline Pair<Real> load(const T* from, Whole) {
  using V = Vectorized<Real>;
  if constexpr (std::is_same_v<Real, T>) {
    return {V::loadu(from), V::loadu(from + V::size())};
  } else {
    const auto [first, second] = at::vec::convert_to_float<T>(Vectorized<T>::loadu(from));
    return {first, second};
  }
}

// Zeros stand in for what is missing.
template <class Real, class T>
inline Pair<Real> load(const T* from, int64_t count) {
  T elements[Pair<Real>::kSize] = {};
  std::copy_n(from, count, elements);
  return load<Real>(elements, Whole{});
}

template <class Real, class T>
inline void store(const Pair<Real>& pair, T* to, Whole) {
  if constexpr (std::is_same_v<Real, T>) {
    pair.first.store(to);
    pair.second.store(to + Vectorized<Real>::size());
  } else {
    at::vec::convert_from_float<T>(pair.first, pair.second).store(to);
  }
}

template <class Real, class T>
inline void store(const Pair<Real>& pair, T* to, int64_t count) {
  T elements[Pair<Real>::kSize];
  store(pair, elements, Whole{});
  std::copy_n(elements, count, to);
}

// Calls body(i, Whole or count) for the pairs of a row that begin at its elements i.
template <class Real, class Body>
inline void for_each_pair(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + Pair<Real>::kSize <= n; i += Pair<Real>::kSize) body(i, Whole{});
  if (i < n) body(i, n - i);
}

// The lanes are added in pairs, then the pairs, ...
template <class Real>
inline double sum_of(const Pair<Real>& pair) {
  using V = Vectorized<Real>;
  Real lanes[V::size()];
  (pair.first + pair.second).store(lanes);
  for (int64_t n = V::size() / 2; n > 0; n /= 2) {
    for (int64_t i = 0; i < n; ++i) lanes[i] += lanes[i + n];
  }
  return lanes[0];
}

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = Vectorized<Real>;

  static void sum_of_squares(const RmsNormTile& tile, const void* x, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      Pair<Real> sum{V(0), V(0)};
      for_each_pair<Real>(tile.columns, [&](int64_t i, auto extent) {
        const auto [a, b] = load<Real>(from + i, extent);
        sum = {fmadd(a, a, sum.first), fmadd(b, b, sum.second)};
      });
      sums[row * tile.sum_stride] = sum_of(sum);
    }
  }

  static void normalize(const RmsNormTile& tile, const void* x, const void* rstd, const void* gamma,
                        void* y) {
    const Real* scales = static_cast<const Real*>(gamma);
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(y) + row * tile.stride;
      const V r(static_cast<const Real*>(rstd)[row]);
      for_each_pair<Real>(tile.columns, [&](int64_t i, auto extent) {
        const auto a = load<Real>(from + i, extent);
        const auto g = load<Real>(scales + i, extent);
        store(Pair<Real>{a.first * r * g.first, a.second * r * g.second}, to + i, extent);
      });
    }
  }

  static void sum_of_products(const RmsNormTile& tile, const void* dy, const void* x,
                              const void* rstd, const void* gamma, double* sums) {
    const Real* scales = static_cast<const Real*>(gamma);
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      const V r(static_cast<const Real*>(rstd)[row]);
      Pair<Real> sum{V(0), V(0)};
      for_each_pair<Real>(tile.columns, [&](int64_t i, auto extent) {
        const auto d = load<Real>(gradient + i, extent);
        const auto a = load<Real>(value + i, extent);
        const auto g = load<Real>(scales + i, extent);
        sum = {fmadd(d.first * g.first, a.first * r, sum.first),
               fmadd(d.second * g.second, a.second * r, sum.second)};
      });
      sums[row * tile.sum_stride] = sum_of(sum);
    }
  }

  static void gradients(const RmsNormTile& tile, const void* dy, const void* x, const void* rstd,
                        const void* gamma, const double* means, void* dx, void* dgamma) {
    const Real* scales = static_cast<const Real*>(gamma);
    Real* totals = static_cast<Real*>(dgamma);
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(dx) + row * tile.stride;
      const V r(static_cast<const Real*>(rstd)[row]);
      const V mean(static_cast<Real>(means[row * tile.sum_stride]));
      const auto dx_of = [&](const V& d, const V& g, const V& xhat) {
        return (d * g - xhat * mean) * r;
      };
      for_each_pair<Real>(tile.columns, [&](int64_t i, auto extent) {
        const auto d = load<Real>(gradient + i, extent);
        const auto a = load<Real>(value + i, extent);
        const auto g = load<Real>(scales + i, extent);
        const auto total = load<Real>(totals + i, extent);
        const Pair<Real> xhat{a.first * r, a.second * r};
        store(
            Pair<Real>{dx_of(d.first, g.first, xhat.first), dx_of(d.second, g.second, xhat.second)},
            to + i, extent);
        store(Pair<Real>{fmadd(d.first, xhat.first, total.first),
                         fmadd(d.second, xhat.second, total.second)},
              totals + i, extent);
      });
    }
  }

  static constexpr RmsNormKernels all() {
    return {sum_of_squares, normalize, sum_of_products, gradients};
  }
};

}  // namespace

template <>
const RmsNormKernelsByType& rms_norm_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr RmsNormKernelsByType kKernels = {
      Kernels<float>::all(), Kernels<c10::Half>::all(), Kernels<c10::BFloat16>::all(),
      Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
