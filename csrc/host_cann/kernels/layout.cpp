#include "host_cann/kernels/layout.h"

#include <algorithm>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace aclnn_host {
namespace {

using at::vec::Vectorized;

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = Vectorized<Real>;
  static constexpr int64_t kLanes = V::size();
  // Terms summed in Real before the sum goes into a double.
  static constexpr int64_t kSegment = 64;
  // A tile's rows are a cache line.
  static constexpr int kTile = 64 / sizeof(T);

  // Calls body(begin, count) for one side, tile by tile. (at::vec's mask of 31 lanes overflows.)
  template <class Body>
  static void for_each_step(int64_t size, Body body) {
    for (int64_t i = 0, count; i < size; i += count) {
      count = size - i == 31 ? 16 : std::min<int64_t>(kTile, size - i);
      body(i, count);
    }
  }

  // Flattened, so that at::vec's functions, compiled here for wide vectors, leave no symbols.
  [[gnu::flatten]] static void transpose(const void* from, int64_t from_stride, void* to,
                                         int64_t to_stride, int64_t rows, int64_t columns) {
    const auto* const source = static_cast<const T*>(from);
    auto* const target = static_cast<T*>(to);
    const auto tile = [&](int64_t row, int64_t column, int64_t high, int64_t wide) {
      const T* const begin = source + row * from_stride + column;
      T* const out = target + column * to_stride + row;
      if (high == kTile && wide == kTile) {
        at::vec::transpose_mxn<T, kTile, kTile>(begin, from_stride, out, to_stride);
      } else {
        at::vec::transpose_mxn<T>(begin, from_stride, out, to_stride, static_cast<int>(high),
                                  static_cast<int>(wide));
      }
    };
    // Iterates along the side with the larger stride, so that the other side's rows stay cached.
    if (from_stride > to_stride) {
      for_each_step(rows, [&](int64_t row, int64_t high) {
        for_each_step(columns,
                      [&](int64_t column, int64_t wide) { tile(row, column, high, wide); });
      });
    } else {
      for_each_step(columns, [&](int64_t column, int64_t wide) {
        for_each_step(rows, [&](int64_t row, int64_t high) { tile(row, column, high, wide); });
      });
    }
  }

  // Two vectors of Real.
  struct Pair {
    V first;
    V second;
  };
  static constexpr int64_t kPair = 2 * kLanes;

  static Pair load(const T* from) {
    if constexpr (std::is_same_v<T, Real>) {
      return {V::loadu(from), V::loadu(from + kLanes)};
    } else {
      const auto [first, second] = at::vec::convert_to_float<T>(Vectorized<T>::loadu(from));
      return {first, second};
    }
  }

  static double sum(const void* from, int64_t n) {
    const auto* const all = static_cast<const T*>(from);
    double total = 0;
    int64_t i = 0;
    while (i + kPair <= n) {
      const int64_t end = std::min(i + 2 * kSegment * kPair, n);
      Pair sums[2] = {{V(0), V(0)}, {V(0), V(0)}};
      for (; i + 2 * kPair <= end; i += 2 * kPair) {
        for (int k = 0; k < 2; ++k) {
          const Pair next = load(all + i + k * kPair);
          sums[k] = {sums[k].first + next.first, sums[k].second + next.second};
        }
      }
      for (; i + kPair <= end; i += kPair) {
        const Pair next = load(all + i);
        sums[0] = {sums[0].first + next.first, sums[0].second + next.second};
      }
      Real lanes[kPair];
      (sums[0].first + sums[0].second).store(lanes);
      (sums[1].first + sums[1].second).store(lanes + kLanes);
      // Several sums at a time: in sequence they take longer than a short row.
      constexpr int64_t kParts = kPair < 8 ? kPair : 8;
      double parts[kParts] = {};
      for (int64_t k = 0; k < kPair; k += kParts) {
        for (int64_t part = 0; part < kParts; ++part) parts[part] += lanes[k + part];
      }
      for (const double part : parts) total += part;
    }
    for (; i < n; ++i) total += static_cast<Real>(all[i]);
    return total;
  }

  static void add_rows(const void* from, int64_t rows, int64_t columns, double* sums) {
    const auto* const all = static_cast<const T*>(from);
    int64_t column = 0;
    for (; column + kPair <= columns; column += kPair) {
      for (int64_t row = 0; row < rows; row += kSegment) {
        Pair sum{V(0), V(0)};
        for (int64_t i = row; i < std::min(row + kSegment, rows); ++i) {
          const Pair next = load(all + i * columns + column);
          sum = {sum.first + next.first, sum.second + next.second};
        }
        Real lanes[kPair];
        sum.first.store(lanes);
        sum.second.store(lanes + kLanes);
        for (int64_t k = 0; k < kPair; ++k) sums[column + k] += lanes[k];
      }
    }
    for (; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        sums[column] += static_cast<Real>(all[row * columns + column]);
      }
    }
  }

  static constexpr LayoutKernels all() { return {transpose, sum, add_rows}; }
};

}  // namespace

template <>
const LayoutKernelsByType& layout_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr LayoutKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
