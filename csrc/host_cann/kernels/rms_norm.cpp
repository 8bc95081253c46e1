#include "host_cann/kernels/rms_norm.h"

#include <type_traits>

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

  static void sum_of_squares(const RowTile& tile, const void* x, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      sums[row * tile.sum_stride] =
          sum_over(tile.columns, [&](const Vs& sum, int64_t i, auto... count) {
            const Vs a = L::load(from + i, count...);
            return Vs{fmadd(a.first, a.first, sum.first), fmadd(a.second, a.second, sum.second)};
          });
    }
  }

  static void normalize(const RowTile& tile, const void* x, const void* rstd, const void* gamma,
                        void* y) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for (int64_t row = 0; row < tile.rows; ++row) {
      const T* from = static_cast<const T*>(x) + row * tile.stride;
      T* to = static_cast<T*>(y) + row * tile.stride;
      const V r = number_at(rstd, row);
      for_each_result(to, tile.columns, tile.streaming, [&](int64_t i, auto store, auto... count) {
        if constexpr (store.kStreaming) prefetch(from + i, next);
        const Vs a = L::load(from + i, count...);
        const Vs g = L::load_real(scales + i, count...);
        store(Vs{a.first * r * g.first, a.second * r * g.second}, to + i, count...);
      });
    }
  }

  static void sum_of_products(const RowTile& tile, const void* dy, const void* x, const void* rstd,
                              const void* gamma, double* sums) {
    const Real* scales = static_cast<const Real*>(gamma);
    const int64_t next = tile.next_bytes<T>();
    for_each_rows(tile, [&]<int64_t kRows>(int64_t row, std::integral_constant<int64_t, kRows>) {
      const T* gradient = static_cast<const T*>(dy) + row * tile.stride;
      const T* value = static_cast<const T*>(x) + row * tile.stride;
      V r[kRows];
      for (int64_t k = 0; k < kRows; ++k) r[k] = number_at(rstd, row + k);
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
          // Lanes without an element hold 0, which an infinite r turns into NaN.
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

  static void gradients(const RowTile& tile, const void* dy, const void* x, const void* rstd,
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
        r[k] = number_at(rstd, row + k);
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
