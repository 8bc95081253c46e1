// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/cpu/vec/vec.h>

#include "host_cann/kernels/in_register.h"

namespace aclnn_host {
namespace {

// Sums over columns of kernel taps, for four rows of results at a time: each loaded row is used for
// all of them that it contributes to. Rows begin at multiples of `pitch`, a multiple of the vector
// length.
template <class Real>
struct TapColumns {
  using V = at::vec::Vectorized<Real>;
  static constexpr int64_t kLanes = V::size();
  static constexpr int64_t kRows = 4;
  static constexpr int64_t kMaxTaps = 7;
  // Vectors for sums: as many as leave registers for a few rows and a factor.
  static constexpr int64_t kSums = sizeof(V) == 64 ? 21 : 10;

  static constexpr bool has(int64_t taps) { return taps == 3 || taps == 5 || taps == 7; }

  // For sums of results: tap j reads `from`, j rows further down.
  struct Column {
    const Real* from;
    Real factors[kMaxTaps];
  };

  // Rows of results: at least kRows of them, each of at least a vector.
  struct Rows {
    int64_t begin;  // of the first one, in the columns' memory
    Real* to;
    int64_t pitch;
    int64_t count;
    int64_t width;
  };

  // Result x of row y is the sum over the columns and their taps of
  // from[begin + x + (y + j) * pitch] * factors[j], and then the bias.
  static void add(int64_t taps, const Column* columns, int64_t count, Real bias, int64_t pitch,
                  const Rows& rows) {
    switch (taps) {
      case 3: return add_rows<3>(columns, count, bias, pitch, rows);
      case 5: return add_rows<5>(columns, count, bias, pitch, rows);
      default: return add_rows<7>(columns, count, bias, pitch, rows);
    }
  }

  // Corresponding rows of two images; `columns` belong to the other image, one per column of taps.
  struct RowPairs {
    const Real* dst;
    const Real* const* columns;
    int64_t pitch;
    int64_t count;
    int64_t width;  // a multiple of the vector length
  };

  // Adds the sum over x and y of dst[i] * columns[c][i + j * pitch], where i = x + y * pitch, to
  // sums[j][c].
  static void multiply(int64_t taps, const RowPairs& rows, int64_t columns, double* sums) {
    switch (taps) {
      case 3: return multiply_columns<3>(rows, columns, sums);
      case 5: return multiply_columns<5>(rows, columns, sums);
      default: return multiply_columns<7>(rows, columns, sums);
    }
  }

 private:
  // The last rows and vectors overlap earlier ones. Not inlined: inlining makes GCC spill
  // registers.
  template <int64_t kTaps>
  [[gnu::noinline]] static void add_rows(const Column* columns, int64_t count, Real bias,
                                         int64_t pitch, const Rows& rows) {
    for (int64_t next = 0; next < rows.count; next += kRows) {
      const int64_t row = std::min(next, rows.count - kRows);
      const int64_t from = rows.begin + row * pitch;
      Real* const to = rows.to + row * rows.pitch;
      int64_t x = 0;
      for (; x + 2 * kLanes <= rows.width; x += 2 * kLanes) {
        add_block<kTaps, 2>(columns, count, bias, pitch, from + x, to + x, rows.pitch);
      }
      for (; x < rows.width; x += kLanes) {
        const int64_t last = std::min(x, rows.width - kLanes);
        add_block<kTaps, 1>(columns, count, bias, pitch, from + last, to + last, rows.pitch);
      }
    }
  }

  // Computes rows of results from `to` on, reading from `at` on.
  template <int64_t kTaps, int64_t kVectors>
  static void add_block(const Column* columns, int64_t count, Real bias, int64_t pitch, int64_t at,
                        Real* to, int64_t to_pitch) {
    V sums[kRows][kVectors];
#pragma GCC unroll 4
    for (auto& row : sums) {
#pragma GCC unroll 2
      for (V& sum : row) sum = V(Real(0));
    }
    for (int64_t c = 0; c < count; ++c) {
      const Real* from = columns[c].from + at;
#pragma GCC unroll 10
      for (int64_t j = 0; j < kRows + kTaps - 1; ++j, from += pitch) {
        V values[kVectors];
#pragma GCC unroll 2
        for (int64_t v = 0; v < kVectors; ++v) values[v] = in_register(V::loadu(from + v * kLanes));
#pragma GCC unroll 4
        for (int64_t r = 0; r < kRows; ++r) {
          if (j < r || j - r >= kTaps) continue;
          const V factor(columns[c].factors[j - r]);
#pragma GCC unroll 2
          for (int64_t v = 0; v < kVectors; ++v) {
            sums[r][v] = at::vec::fmadd(values[v], factor, sums[r][v]);
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) {
        (sums[r][v] + V(bias)).store(to + r * to_pitch + v * kLanes);
      }
    }
  }

  // As many columns at a time as keep their sums in registers.
  template <int64_t kTaps>
  static void multiply_columns(const RowPairs& rows, int64_t columns, double* sums) {
    constexpr int64_t kMost = std::min<int64_t>(kSums / kTaps, 3);
    int64_t c = 0;
    for (; c + kMost <= columns; c += kMost) {
      multiply_rows<kTaps, kMost>(rows, c, columns, sums + c);
    }
    for (; c < columns; ++c) multiply_rows<kTaps, 1>(rows, c, columns, sums + c);
  }

  // The columns from `first` on. Not inlined, for the same reason.
  template <int64_t kTaps, int64_t kColumns>
  [[gnu::noinline]] static void multiply_rows(const RowPairs& rows, int64_t first, int64_t columns,
                                              double* to) {
    V sums[kTaps][kColumns];
#pragma GCC unroll 7
    for (auto& row : sums) {
#pragma GCC unroll 3
      for (V& sum : row) sum = V(Real(0));
    }
    const Real* from[kColumns];
#pragma GCC unroll 3
    for (int64_t c = 0; c < kColumns; ++c) from[c] = rows.columns[first + c];
    const int64_t pitch = rows.pitch;
    for (int64_t row = 0; row < rows.count; row += kRows) {
      for (int64_t i = row * pitch; i < row * pitch + rows.width; i += kLanes) {
        V factors[kRows];
#pragma GCC unroll 4
        for (int64_t r = 0; r < kRows; ++r)
          factors[r] = in_register(V::loadu(rows.dst + i + r * pitch));
#pragma GCC unroll 10
        for (int64_t j = 0; j < kRows + kTaps - 1; ++j) {
#pragma GCC unroll 3
          for (int64_t c = 0; c < kColumns; ++c) {
            const V value = in_register(V::loadu(from[c] + i + j * pitch));
#pragma GCC unroll 4
            for (int64_t r = 0; r < kRows; ++r) {
              if (j < r || j - r >= kTaps) continue;
              sums[j - r][c] = at::vec::fmadd(value, factors[r], sums[j - r][c]);
            }
          }
        }
      }
    }
    for (int64_t j = 0; j < kTaps; ++j) {
      for (int64_t c = 0; c < kColumns; ++c) {
        Real lanes[kLanes];
        sums[j][c].store(lanes);
        for (const Real lane : lanes) to[j * columns + c] += lane;
      }
    }
  }
};

}  // namespace
}  // namespace aclnn_host
