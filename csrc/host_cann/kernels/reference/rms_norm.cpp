// The reference for the RmsNorm vector kernels, element by element. Its sums are in double, theirs
// are rounded in Real.

#include "host_cann/kernels/rms_norm.h"

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

  static void sum_of_squares(const RowTile& tile, const void* x, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t, int64_t at) {
      const double value = element(x, at);
      sums[row * tile.sum_stride] += value * value;
    });
  }

  static void normalize(const RowTile& tile, const void* x, const void* rstd, const void* gamma,
                        void* y) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      static_cast<T*>(y)[at] = static_cast<T>(element(x, at) * real(rstd, row) * real(gamma, i));
    });
  }

  static void sum_of_products(const RowTile& tile, const void* dy, const void* x, const void* rstd,
                              const void* gamma, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      const double product = element(dy, at) * real(gamma, i);
      sums[row * tile.sum_stride] += product * (element(x, at) * real(rstd, row));
    });
  }

  static void gradients(const RowTile& tile, const void* dy, const void* x, const void* rstd,
                        const void* gamma, const double* means, void* dx, void* dgamma) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      const Real mean = static_cast<Real>(means[row * tile.sum_stride]);
      const Real gradient = element(dy, at);
      const Real xhat = element(x, at) * real(rstd, row);
      static_cast<T*>(dx)[at] =
          static_cast<T>((gradient * real(gamma, i) - xhat * mean) * real(rstd, row));
      static_cast<Real*>(dgamma)[i] += gradient * xhat;
    });
  }

  static constexpr RmsNormKernels all() {
    return {sum_of_squares, normalize, sum_of_products, gradients};
  }
};

}  // namespace

template <>
const RmsNormKernelsByType& rms_norm_kernels<Capability::kReference>() noexcept {
  static constexpr RmsNormKernelsByType kKernels = {
      Kernels<float>::all(), Kernels<c10::Half>::all(), Kernels<c10::BFloat16>::all(),
      Kernels<double>::all()};
  return kKernels;
}

const RmsNormKernelsByType& rms_norm_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return rms_norm_kernels<kVersion>(); });
}

}  // namespace aclnn_host
