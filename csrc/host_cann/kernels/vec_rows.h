// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <type_traits>

#include "host_cann/kernels/row_tile.h"
#include "host_cann/kernels/vec_loop.h"

namespace aclnn_host {
namespace {

// Shared by kernels over rows.
template <class T>
struct RowLoops {
  using Real = RealOf<T>;
  using V = VectorOf<T>;
  using Vs = Pair<V>;
  using L = Lanes<T>;

  // Accumulates term(sum, i, count...) over the steps at i, in two pairs of sums: with one, every
  // step would wait for the one before.
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
    return total_of(Vs{sums[0].first + sums[0].second, sums[1].first + sums[1].second});
  }
  static double total_of(const Vs& sums) {
    const V sum = sums.first + sums.second;
    return at::vec::vec_reduce_all<Real>([](const V& a, const V& b) { return a + b; }, sum);
  }

  // Calls body(row, integral_constant of a number of rows) for all rows of a tile: four at a time
  // if their results are equally aligned, so that they share the loads of per-column values.
  template <class Body>
  static void for_each_rows(const RowTile& tile, Body body) {
    constexpr int64_t kTogether = 4;
    int64_t row = 0;
    if (tile.stride * static_cast<int64_t>(sizeof(T)) % static_cast<int64_t>(sizeof(V)) == 0) {
      for (; row + kTogether <= tile.rows; row += kTogether) {
        body(row, std::integral_constant<int64_t, kTogether>());
      }
    }
    for (; row < tile.rows; ++row) body(row, std::integral_constant<int64_t, 1>());
  }

  // The value of a row, from an array with one per row.
  static V number_at(const void* numbers, int64_t row) {
    return V(with_default_nan(static_cast<const Real*>(numbers)[row]));
  }
};

}  // namespace
}  // namespace aclnn_host
