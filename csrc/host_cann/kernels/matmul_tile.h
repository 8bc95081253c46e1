// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include "host_cann/kernels/bfloat16.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

using V = at::vec::Vectorized<float>;
constexpr int64_t kLanes = V::size();

// A tile of the result stays in registers: 24 of 32 vectors, or 12 of 16, plus the next vectors of
// the right matrix.
#if defined(CPU_CAPABILITY_AVX512) || defined(__aarch64__)
constexpr int64_t kRows = 12;
#else
constexpr int64_t kRows = 6;
#endif
constexpr int64_t kVectors = 2;
constexpr int64_t kColumns = kVectors * kLanes;

// The unit of multiplication is a 32-bit word: a FLOAT, or two BFLOAT16 adjacent in the depth, the
// first in the low half. Both are held as FLOAT.
template <class T>
constexpr int64_t kWord = sizeof(float) / sizeof(T);

// sum + factor * next.
inline V multiply_add(float, const V& factor, const V& next, const V& sum) {
  return at::vec::fmadd(factor, next, sum);
}

// sum + both products of the words.
inline V multiply_add(BFloat16, const V& factor, const V& next, const V& sum) {
#if defined(CPU_CAPABILITY_AVX512)
  // Assembly, not the intrinsic, so that the compiler does not use AVX512_BF16 elsewhere.
  __m512 result = sum;
  asm("vdpbf16ps %2, %1, %0"
      : "+v"(result)
      : "v"(static_cast<__m512>(factor)), "v"(static_cast<__m512>(next)));
  return result;
#elif defined(__aarch64__)
  // The directive affects the assembler only.
  float32x4_t result = sum;
  asm(".arch_extension bf16\n\tbfdot %0.4s, %1.8h, %2.8h"
      : "+w"(result)
      : "w"(static_cast<float32x4_t>(factor)), "w"(static_cast<float32x4_t>(next)));
  return result;
#else
  using Bits [[gnu::vector_size(sizeof(V))]] = uint32_t;
  const auto low = [](const V& word) { return std::bit_cast<V>(std::bit_cast<Bits>(word) << 16); };
  const auto high = [](const V& word) {
    return std::bit_cast<V>(std::bit_cast<Bits>(word) & 0xffff0000u);
  };
  return at::vec::fmadd(high(factor), high(next), at::vec::fmadd(low(factor), low(next), sum));
#endif
}

// The rows of a right matrix, kColumns words each, in segments of equal length; rows are `step`
// apart, segments `jump`.
struct TileRows {
  const float* data;
  int64_t segments;
  int64_t length;
  int64_t step;
  int64_t jump;

  // Contiguous rows.
  static TileRows panel(const float* data, int64_t depth) { return {data, 1, depth, kColumns, 0}; }
};

// Computes some rows and columns of the result: left[depth][rows] x right[depth][columns], in
// words.
template <class T, int64_t rows, int64_t vectors>
void tile(const float* left, const TileRows& right, float* out, int64_t stride, bool adds) {
  V sums[rows][vectors];
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) sums[i][j] = V(0);
  }
  // One loop over all segments: between two loops the sums would leave the registers.
  const float* from = right.data;
  int64_t rest = right.length;  // in the segment
  for (int64_t k = right.segments * right.length; k > 0; --k, left += rows) {
    V next[vectors];
    for (int64_t j = 0; j < vectors; ++j) next[j] = V::loadu(from + j * kLanes);
    from += right.step;
    if (--rest == 0) {
      rest = right.length;
      from += right.jump - right.length * right.step;
    }
#pragma GCC unroll 12
    for (int64_t i = 0; i < rows; ++i) {
      const V factor(left[i]);
      for (int64_t j = 0; j < vectors; ++j) {
        sums[i][j] = multiply_add(T(), factor, next[j], sums[i][j]);
      }
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < vectors; ++j) {
      float* const to = out + i * stride + j * kLanes;
      // Added last, so that errors do not grow with the length of the whole sum.
      if (adds) sums[i][j] = V::loadu(to) + sums[i][j];
      sums[i][j].store(to);
    }
  }
}

using Tile = void (*)(const float*, const TileRows&, float*, int64_t, bool);

// Indexed by the number of rows, from 1.
template <class T, int64_t vectors, size_t... rows>
constexpr std::array<Tile, kRows> tiles(std::index_sequence<rows...>) {
  return {tile<T, rows + 1, vectors>...};
}
template <class T>
constexpr auto kNarrow = tiles<T, 1>(std::make_index_sequence<kRows>());
template <class T>
constexpr auto kWide = tiles<T, kVectors>(std::make_index_sequence<kRows>());

// The function for this many rows and columns. It writes whole vectors.
template <class T>
Tile tile_for(int64_t rows, int64_t columns) {
  return (columns <= kLanes ? kNarrow<T> : kWide<T>)[static_cast<size_t>(rows - 1)];
}

// The words of elements, together with their neighbours in the depth, if any.
template <int64_t fixed = 0>
void copy_words(const float* line, const float*, int64_t count, float* to) {
  std::memcpy(to, line, static_cast<size_t>(fixed != 0 ? fixed : count) * sizeof(float));
}

template <int64_t fixed = 0>
void copy_words(const BFloat16* line, const BFloat16* next, int64_t count, float* to) {
  if (fixed != 0) count = fixed;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = line[i].bits | (next != nullptr ? uint32_t{next[i].bits} << 16 : 0);
    std::memcpy(to + i, &word, sizeof(word));
  }
}

using Four [[gnu::vector_size(16)]] = float;

// Shuffles the concatenation of two vectors by `places`.
template <int... places>
Four shuffle(Four a, Four b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, places...);
#else  // GCC has that one from 12 on
  using Places [[gnu::vector_size(16)]] = int32_t;
  return __builtin_shuffle(a, b, Places{places...});
#endif
}

// to[line][i] = from[i][line]; rows are `from_stride` apart in `from`, lines `to_stride` in `to`.
inline void turn_4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Four rows[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof(Four));
  const Four low = shuffle<0, 4, 1, 5>(rows[0], rows[1]);
  const Four high = shuffle<2, 6, 3, 7>(rows[0], rows[1]);
  const Four next_low = shuffle<0, 4, 1, 5>(rows[2], rows[3]);
  const Four next_high = shuffle<2, 6, 3, 7>(rows[2], rows[3]);
  const Four lines[4] = {shuffle<0, 1, 4, 5>(low, next_low), shuffle<2, 3, 6, 7>(low, next_low),
                         shuffle<0, 1, 4, 5>(high, next_high),
                         shuffle<2, 3, 6, 7>(high, next_high)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_stride, &lines[i], sizeof(Four));
}

// The same for any size: in squares of 16, then of 4, then single elements.
[[gnu::flatten]] inline void transpose(const float* from, int64_t from_stride, int64_t count,
                                       int64_t lines, float* to, int64_t to_stride) {
  constexpr int64_t kSquare = 16;
  const int64_t wide_rows = count / kSquare * kSquare;
  for (int64_t line = 0; line < lines;) {
    const int64_t step = lines - line >= kSquare ? kSquare : lines - line >= 4 ? 4 : 1;
    const float* const begin = from + line;
    float* const out = to + line * to_stride;
    int64_t i = 0;
    if (step == kSquare) {
      for (; i < wide_rows; i += kSquare) {
        at::vec::transpose_mxn<float, kSquare, kSquare>(begin + i * from_stride, from_stride,
                                                        out + i, to_stride);
      }
    }
    if (step >= 4) {
      for (; i + 4 <= count; i += 4) {
        for (int64_t j = 0; j < step; j += 4) {
          turn_4(begin + i * from_stride + j, from_stride, out + j * to_stride + i, to_stride);
        }
      }
    }
    for (; i < count; ++i) {
      for (int64_t j = 0; j < step; ++j) {
        std::memcpy(out + j * to_stride + i, begin + i * from_stride + j, sizeof(float));
      }
    }
    line += step;
  }
}

}  // namespace
}  // namespace aclnn_host
