#include "kernels/rms_norm.h"

#include <type_traits>

#include "kernels/vec_loop.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;

template <class T>
struct Kernels {
  using Real = RealOf<T>;
  using V = VectorOf<T>;
  using Vs = Pair<V>;
  using L = Lanes<T>;

  // Adds up what term(sum, i, count...) makes of a sum and the elements of the step at i. Two pairs
  // of sums: one would make every step wait for the one before.
  template <class Term>
  static double sum_over(int64_t n, Term term) {
    Vs sums[] = {{V(0), V(0)}, {V(0), V(0)}};
    int64_t i = 0;
    for (; i + 2 * L::kCount <= n; i += 2 * L::kCount) {
      sums[0] = term(sums[0], i);
      sums[1] = term(sums[1], i + L::kCount);
    }
    for_each_step<T>(n - i,
                     [&](int64_t k, auto... count) { sums[0] = term(sums[0], i + k, count...); });
    return total_of(sums);
  }

  static double total_of(const Vs (&sums)[2]) {
    const V sum = (sums[0].first + sums[0].second) + (sums[1].first + sums[1].second);
    return at::vec::vec_reduce_all<Real>([](const V& a, const V& b) { return a + b; }, sum);
  }

  static void sum_of_squares(const RmsNormTile& tile, const void* x, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      sums[row * tile.sum_stride] =
          sum_over(tile.columns, [&](const Vs& sum, int64_t i, auto... count) {
            const Vs a = L::load(from + i, count...);
            return Vs{fmadd(a.first, a.first, sum.first), fmadd(a.second, a.second, sum.second)};
          });
    }
  }

  static void normalize(const RmsNormTile& tile, const void* x, const void* rstd, const void* gamma,
                        void* y) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(y) + row * tile.stride;
      const V r = rstd_at(rstd, row);
      for_each_result(to, tile.columns, tile.streaming, [&](int64_t i, auto store, auto... count) {
        if constexpr (store.kStreaming) prefetch(from + i, next);
        const Vs a = L::load(from + i, count...);
        const Vs g = L::load_real(scales + i, count...);
        store(Vs{a.first * r * g.first, a.second * r * g.second}, to + i, count...);
      });
    }
  }

  // Calls body(row, integral_constant of a number of rows) for all rows of a tile: four at a time,
  // which share what there is once for every column, if their results are aligned alike.
  template <class Body>
  static void for_each_rows(const RmsNormTile& tile, Body body) {
    constexpr int64_t kTogether = 4;
    int64_t row = 0;
    if (tile.stride * static_cast<int64_t>(sizeof(T)) % static_cast<int64_t>(sizeof(V)) == 0) {
      for (; row + kTogether <= tile.rows; row += kTogether) {
        body(row, std::integral_constant<int64_t, kTogether>());
      }
    }
    for (; row < tile.rows; ++row) body(row, std::integral_constant<int64_t, 1>());
  }

  static V rstd_at(const void* rstd, int64_t row) {
    return V(with_default_nan(static_cast<const Real*>(rstd)[row]));
  }

  static void sum_of_products(const RmsNormTile& tile, const void* dy, const void* x,
                              const void* rstd, const void* gamma, double* sums) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for_each_rows(tile, [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      V r[kRows];
      for (int64_t k = 0; k < kRows; ++k) r[k] = rstd_at(rstd, row + k);
      // As in sum_over().
      Vs sum[kRows][2];
      for (auto& pair : sum) pair[0] = pair[1] = {V(0), V(0)};
      const auto add = [&](int which, int64_t i, auto... count) {
        const Vs g = L::load_real(scales + i, count...);
        for (int64_t k = 0; k < kRows; ++k) {
          const int64_t at = k * tile.stride + i;
          if (tile.streaming) prefetch(gradient + at, next);
          const Vs d = L::load(gradient + at, count...);
          const Vs a = L::load(value + at, count...);
          Vs& last = sum[k][which];
          const Vs all{fmadd(d.first * g.first, a.first * r[k], last.first),
                       fmadd(d.second * g.second, a.second * r[k], last.second)};
          // Lanes without an element have 0, which an infinite r makes nan.
          last = where_live<T>(all, last, count...);
        }
      };
      int64_t i = 0;
      for (; i + 2 * L::kCount <= tile.columns; i += 2 * L::kCount) {
        add(0, i);
        add(1, i + L::kCount);
      }
      for_each_step<T>(tile.columns - i,
                       [&](int64_t k, auto... count) { add(0, i + k, count...); });
      for (int64_t k = 0; k < kRows; ++k) sums[(row + k) * tile.sum_stride] = total_of(sum[k]);
    });
  }

  static void gradients(const RmsNormTile& tile, const void* dy, const void* x, const void* rstd,
                        const void* gamma, const double* means, void* dx, void* dgamma) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    Real* totals = static_cast<Real*>(dgamma);
    for_each_rows(tile, [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(dx) + row * tile.stride;
      V r[kRows], mean[kRows];
      for (int64_t k = 0; k < kRows; ++k) {
        r[k] = rstd_at(rstd, row + k);
        mean[k] = V(static_cast<Real>(means[(row + k) * tile.sum_stride]));
      }
      for_each_result(to, tile.columns, tile.streaming, [&](int64_t i, auto store, auto... count) {
        const Vs g = L::load_real(scales + i, count...);
        Vs total = L::load_real(totals + i, count...);
        for (int64_t k = 0; k < kRows; ++k) {
          const int64_t at = k * tile.stride + i;
          if constexpr (store.kStreaming) prefetch(value + at, next);
          const Vs d = L::load(gradient + at, count...);
          const Vs a = L::load(value + at, count...);
          const auto dx_of = [&](const V& d, const V& g, const V& xhat) {
            return (d * g - xhat * mean[k]) * r[k];
          };
          const Vs xhat{a.first * r[k], a.second * r[k]};
          store(Vs{dx_of(d.first, g.first, xhat.first), dx_of(d.second, g.second, xhat.second)},
                to + at, count...);
          total = {fmadd(d.first, xhat.first, total.first),
                   fmadd(d.second, xhat.second, total.second)};
        }
        L::store_real(total, totals + i, count...);
      });
    });
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
