// The reference: what the vector kernels of RmsNorm must compute, element by element. Its sums are
// exact as far as double is; theirs round in Real.

#include "kernels/rms_norm.h"

#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  // Calls body(row, column, position of the element in the matrix).
  template <class Body>
  static void for_each_element(const RmsNormTile& tile, Body body) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      for (int64_t i = 0; i < tile.columns; ++i) body(row, i, row * tile.stride + i);
    }
  }

  static void clear(const RmsNormTile& tile, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) sums[row * tile.sum_stride] = 0;
  }

  static Real element(const void* elements, int64_t at) {
    return static_cast<Real>(static_cast<const T*>(elements)[at]);
  }
  static Real real(const void* elements, int64_t at) {
    return static_cast<const Real*>(elements)[at];
  }

  static void sum_of_squares(const RmsNormTile& tile, const void* x, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t, int64_t at) {
      const double value = element(x, at);
      sums[row * tile.sum_stride] += value * value;
    });
  }

  static void normalize(const RmsNormTile& tile, const void* x, const void* rstd, const void* gamma,
                        void* y) {
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      static_cast<T*>(y)[at] = static_cast<T>(element(x, at) * real(rstd, row) * real(gamma, i));
    });
  }

  static void sum_of_products(const RmsNormTile& tile, const void* dy, const void* x,
                              const void* rstd, const void* gamma, double* sums) {
    clear(tile, sums);
    for_each_element(tile, [&](int64_t row, int64_t i, int64_t at) {
      const double product = element(dy, at) * real(gamma, i);
      sums[row * tile.sum_stride] += product * (element(x, at) * real(rstd, row));
    });
  }

  static void gradients(const RmsNormTile& tile, const void* dy, const void* x, const void* rstd,
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

}  // namespace aclnn_host
