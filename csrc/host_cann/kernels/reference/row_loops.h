// Included by the references of kernels over rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/row_tile.h"

namespace aclnn_host {
namespace {

// Shared by those references.
template <class T>
struct RowLoops {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  // Calls body(row, column, position of the element in the matrix).
  template <class Body>
  static void for_each_element(const RowTile& tile, Body body) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      for (int64_t i = 0; i < tile.columns; ++i) body(row, i, row * tile.stride + i);
    }
  }

  static void clear(const RowTile& tile, double* sums) {
    for (int64_t row = 0; row < tile.rows; ++row) sums[row * tile.sum_stride] = 0;
  }

  static Real element(const void* elements, int64_t at) {
    return static_cast<Real>(static_cast<const T*>(elements)[at]);
  }
  static Real real(const void* elements, int64_t at) {
    return static_cast<const Real*>(elements)[at];
  }
};

}  // namespace
}  // namespace aclnn_host
