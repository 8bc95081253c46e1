// The reference for the layout kernels, element by element, with sums in double.

#include "host_cann/kernels/layout.h"

#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  static double value(const void* from, int64_t i) {
    return static_cast<Real>(static_cast<const T*>(from)[i]);
  }

  static void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride,
                        int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        static_cast<T*>(to)[column * to_stride + row] =
            static_cast<const T*>(from)[row * from_stride + column];
      }
    }
  }

  static double sum(const void* from, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += value(from, i);
    return total;
  }

  static void add_rows(const void* from, int64_t rows, int64_t columns, double* sums) {
    for (int64_t i = 0; i < rows * columns; ++i) sums[i % columns] += value(from, i);
  }

  static constexpr LayoutKernels all() { return {transpose, sum, add_rows}; }
};

}  // namespace

template <>
const LayoutKernelsByType& layout_kernels<Capability::kReference>() noexcept {
  static constexpr LayoutKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

const LayoutKernelsByType& layout_kernels() noexcept {
  return select_kernels([]<Capability kVersion>() -> auto& { return layout_kernels<kVersion>(); });
}

}  // namespace aclnn_host
