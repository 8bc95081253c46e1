#include "host_cann/kernels/layer_norm.h"

#include <cmath>

#include "host_cann/kernels/vec_rows.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;

template <class T>
struct Kernels : RowLoops<T> {
  using typename RowLoops<T>::Real;
  using typename RowLoops<T>::V;
  using typename RowLoops<T>::Vs;
  using typename RowLoops<T>::L;
  using RowLoops<T>::sum_over;
  using RowLoops<T>::total_of;
  using RowLoops<T>::for_each_rows;
  using RowLoops<T>::number_at;

  // Large finite elements have a finite mean even if their sum overflows in float.
  static void sum(const RowTile& tile, const void* x, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      double total = sum_over(tile.columns, [&](const Vs& sum, int64_t i, auto... count) {
        const Vs a = L::load(from + i, count...);
        return Vs{a.first + sum.first, a.second + sum.second};
      });
      if (!std::isfinite(total)) {
        total = 0;
        for (int64_t i = 0; i < tile.columns; ++i) total += static_cast<double>(from[i]);
      }
      sums[row * tile.sum_stride] = total;
    }
  }

  static void sum_of_squares(const RowTile& tile, const void* x, const void* mean, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      const V m = number_at(mean, row);
      sums[row * tile.sum_stride] =
          sum_over(tile.columns, [&](const Vs& sum, int64_t i, auto... count) {
            const Vs a = L::load(from + i, count...);
            const Vs d{a.first - m, a.second - m};
            const Vs all{fmadd(d.first, d.first, sum.first), fmadd(d.second, d.second, sum.second)};
            return where_live<T>(all, sum, count...);
          });
    }
  }

  static void normalize(const RowTile& tile, const void* x, const void* mean, const void* rstd,
                        const void* gamma, const void* beta, void* y) {
    const Real* scales = static_cast<const Real*>(gamma);
    const Real* shifts = static_cast<const Real*>(beta);
    const int64_t next = tile.next_bytes<T>();
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(y) + row * tile.stride;
      const V m = number_at(mean, row), r = number_at(rstd, row);
      for_each_result(to, tile.columns, tile.streaming, [&](int64_t i, auto store, auto... count) {
        if constexpr (store.kStreaming) prefetch(from + i, next);
        const Vs a = L::load(from + i, count...);
        const Vs g = L::load_real(scales + i, count...);
        const Vs b = L::load_real(shifts + i, count...);
        store(Vs{fmadd((a.first - m) * r, g.first, b.first),
                 fmadd((a.second - m) * r, g.second, b.second)},
              to + i, count...);
      });
    }
  }

  static void sums_of_products(const RowTile& tile, const void* dy, const void* x, const void* mean,
                               const void* rstd, const void* gamma, double* sums,
                               double* products) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for_each_rows(tile, [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      V m[kRows], r[kRows];
      // One pair per sum, so that the sums of four rows stay in registers; they are independent
      // chains.
      Vs sum[kRows], product[kRows];
      for (int64_t k = 0; k < kRows; ++k) {
        m[k] = number_at(mean, row + k);
        r[k] = number_at(rstd, row + k);
        sum[k] = product[k] = {V(0), V(0)};
      }
      for_each_step<T>(tile.columns, [&](int64_t i, auto... count) {
        const Vs g = L::load_real(scales + i, count...);
        for (int64_t k = 0; k < kRows; ++k) {
          const int64_t at = k * tile.stride + i;
          if (tile.streaming) prefetch(gradient + at, next);
          const Vs d = L::load(gradient + at, count...);
          const Vs v = L::load(value + at, count...);
          const Vs a{d.first * g.first, d.second * g.second};
          const Vs xhat{(v.first - m[k]) * r[k], (v.second - m[k]) * r[k]};
          const Vs all{fmadd(a.first, xhat.first, product[k].first),
                       fmadd(a.second, xhat.second, product[k].second)};
          // Lanes without an element hold 0, which an infinite r turns into NaN.
          product[k] = where_live<T>(all, product[k], count...);
          sum[k] = {sum[k].first + a.first, sum[k].second + a.second};
        }
      });
      for (int64_t k = 0; k < kRows; ++k) {
        sums[(row + k) * tile.sum_stride] = total_of(sum[k]);
        products[(row + k) * tile.sum_stride] = total_of(product[k]);
      }
    });
  }

  static void gradient(const RowTile& tile, const void* dy, const void* x, const void* mean,
                       const void* rstd, const void* gamma, const double* means,
                       const double* mean_products, void* dx) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(dx) + row * tile.stride;
      const V m = number_at(mean, row), r = number_at(rstd, row);
      const V sum(static_cast<Real>(means[row * tile.sum_stride]));
      const V product(static_cast<Real>(mean_products[row * tile.sum_stride]));
      for_each_result(to, tile.columns, tile.streaming, [&](int64_t i, auto store, auto... count) {
        if constexpr (store.kStreaming) prefetch(value + i, next);
        const Vs d = L::load(gradient + i, count...);
        const Vs v = L::load(value + i, count...);
        const Vs g = L::load_real(scales + i, count...);
        const auto dx_of = [&](const V& d, const V& g, const V& v) {
          return (d * g - sum - (v - m) * r * product) * r;
        };
        store(Vs{dx_of(d.first, g.first, v.first), dx_of(d.second, g.second, v.second)}, to + i,
              count...);
      });
    }
  }

  static void weight_gradients(const RowTile& tile, const void* dy, const void* x, const void* mean,
                               const void* rstd, void* dgamma, void* dbeta) {
    Real* of_gamma = static_cast<Real*>(dgamma);
    Real* of_beta = static_cast<Real*>(dbeta);
    for_each_rows(tile, [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      V m[kRows], r[kRows];
      for (int64_t k = 0; k < kRows; ++k) {
        m[k] = number_at(mean, row + k);
        r[k] = number_at(rstd, row + k);
      }
      for_each_step<T>(tile.columns, [&](int64_t i, auto... count) {
        Vs scale = L::load_real(of_gamma + i, count...);
        Vs shift = L::load_real(of_beta + i, count...);
        for (int64_t k = 0; k < kRows; ++k) {
          const int64_t at = k * tile.stride + i;
          const Vs d = L::load(gradient + at, count...);
          const Vs v = L::load(value + at, count...);
          scale = {fmadd(d.first, (v.first - m[k]) * r[k], scale.first),
                   fmadd(d.second, (v.second - m[k]) * r[k], scale.second)};
          shift = {shift.first + d.first, shift.second + d.second};
        }
        L::store_real(scale, of_gamma + i, count...);
        L::store_real(shift, of_beta + i, count...);
      });
    });
  }

  static constexpr LayerNormKernels all() {
    return {sum, sum_of_squares, normalize, sums_of_products, gradient, weight_gradients};
  }
};

}  // namespace

template <>
const LayerNormKernelsByType& layer_norm_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr LayerNormKernelsByType kKernels = {
      Kernels<float>::all(), Kernels<c10::Half>::all(), Kernels<c10::BFloat16>::all(),
      Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
