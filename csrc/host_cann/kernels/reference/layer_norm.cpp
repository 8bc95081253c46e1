// The reference for the LayerNorm vector kernels, element by element. Its sums are in double,
// theirs are rounded in Real.

#include "host_cann/kernels/layer_norm.h"

#include "host_cann/kernels/reference/row_loops.h"

namespace aclnn_host {
namespace {

template <class T>
struct Kernels : RowLoops<T> {
  using typename RowLoops<T>::Real;
  using RowLoops<T>::for_each_element;
  using RowLoops<T>::clear;
  using RowLoops<T>::element;
  using RowLoops<T>::real;

  // (x - mean) * rstd
  static Real xhat(const void* x, const void* mean, const void* rstd, int64_t row, int64_t at) {
    return (element(x, at) - real(mean, row)) * real(rstd, row);
  }

  static void sum(const RowTile& tile, const void* x, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t, int64_t at) {
      sums[row * tile.sum_stride] += element(x, at);
    });
  }

  static void sum_of_squares(const RowTile& tile, const void* x, const void* mean, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t, int64_t at) {
      const double difference = element(x, at) - real(mean, row);
      sums[row * tile.sum_stride] += difference * difference;
    });
  }

  static void normalize(const RowTile& tile, const void* x, const void* mean, const void* rstd,
                        const void* gamma, const void* beta, void* y) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      static_cast<T*>(y)[at] =
          static_cast<T>(xhat(x, mean, rstd, row, at) * real(gamma, i) + real(beta, i));
    });
  }

  static void sums_of_products(const RowTile& tile, const void* dy, const void* x, const void* mean,
                               const void* rstd, const void* gamma, double* sums,
                               double* products) {
    clear(tile, sums);
    clear(tile, products);
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      const double a = element(dy, at) * real(gamma, i);
      sums[row * tile.sum_stride] += a;
      products[row * tile.sum_stride] += a * xhat(x, mean, rstd, row, at);
    });
  }

  static void gradient(const RowTile& tile, const void* dy, const void* x, const void* mean,
                       const void* rstd, const void* gamma, const double* means,
                       const double* mean_products, void* dx) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      const Real sum = static_cast<Real>(means[row * tile.sum_stride]);
      const Real product = static_cast<Real>(mean_products[row * tile.sum_stride]);
      const Real a = element(dy, at) * real(gamma, i);
      static_cast<T*>(dx)[at] =
          static_cast<T>((a - sum - xhat(x, mean, rstd, row, at) * product) * real(rstd, row));
    });
  }

  static void weight_gradients(const RowTile& tile, const void* dy, const void* x, const void* mean,
                               const void* rstd, void* dgamma, void* dbeta) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      static_cast<Real*>(dgamma)[i] += element(dy, at) * xhat(x, mean, rstd, row, at);
      static_cast<Real*>(dbeta)[i] += element(dy, at);
    });
  }

  static constexpr LayerNormKernels all() {
    return {sum, sum_of_squares, normalize, sums_of_products, gradient, weight_gradients};
  }
};

}  // namespace

template <>
const LayerNormKernelsByType& layer_norm_kernels<Capability::kReference>() noexcept {
  static constexpr LayerNormKernelsByType kKernels = {
      Kernels<float>::all(), Kernels<c10::Half>::all(), Kernels<c10::BFloat16>::all(),
      Kernels<double>::all()};
  return kKernels;
}

const LayerNormKernelsByType& layer_norm_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return layer_norm_kernels<kVersion>(); });
}

}  // namespace aclnn_host
