#include "host_cann/kernels/matmul.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "host_cann/kernels/matmul_double.h"
#include "host_cann/kernels/matmul_tile.h"
#include "host_cann/kernels/scratch.h"

namespace aclnn_host {
namespace {

template <class T>
constexpr bool kIsFloat = std::is_same_v<T, float>;

// A block of the left matrix fits into the L2 cache together with the data that passes through it,
// a panel of one tile's width into the L1 cache; a block of the right matrix into the shared cache.
constexpr int64_t kDepth = kSegmentWords;  // in words
constexpr int64_t kBlockRows = 96;
constexpr int64_t kBlockColumns = 512;
static_assert(kBlockRows % kRows == 0 && kBlockColumns % kColumns == 0);
// Rows of sums in FLOAT, for results of another type.
constexpr int64_t kSumRows = 4 * kBlockRows;
// Distance in lines of the prefetch.
constexpr int64_t kAhead = 4;

template <class T>
int64_t words(int64_t depth) {
  return divide_up(depth, kWord<T>);
}

struct Panels {
  float* right;
  float* left;
  float* sums;  // for results that are not FLOAT
};

template <class Result>
Panels take_panels(ScratchParts& parts) {
  return {parts.take<float>(kBlockColumns * kDepth), parts.take<float>(kBlockRows * kDepth),
          parts.take<float>(kIsFloat<Result> ? 0 : kSumRows * kBlockColumns)};
}

// Prefetches contiguous elements, for reading or, with `kWrites`, for writing.
template <int kWrites, class T>
void ask_for(const T* from, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, kWrites);
}

template <class T>
void compute_tile(int64_t rows, int64_t columns, int64_t depth, const float* left,
                  const float* right, float* out, int64_t stride, bool adds) {
  const Tile run = tile_for<T>(rows, columns);
  const TileRows from = TileRows::panel(right, depth);
  for (int64_t i = 0; i < rows; ++i) ask_for<1>(out + i * stride, columns);
  if (columns == kColumns || columns == kLanes) return run(left, from, out, stride, adds);
  float whole[kRows * kColumns] = {};
  const auto size = static_cast<size_t>(columns) * sizeof(float);
  for (int64_t i = 0; adds && i < rows; ++i)
    std::memcpy(whole + i * kColumns, out + i * stride, size);
  run(left, from, whole, kColumns, adds);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * stride, whole + i * kColumns, size);
}

// to[k][i] = word k of the lines, which are contiguous along the depth.
void transpose_words(const float* from, int64_t stride, int64_t count, int64_t depth, float* to,
                     int64_t to_stride) {
  transpose(from, stride, count, depth, to, to_stride);
}

void transpose_words(const BFloat16* from, int64_t stride, int64_t count, int64_t depth, float* to,
                     int64_t to_stride) {
  const int64_t whole = depth / 2;
  if (stride % 2 == 0 && reinterpret_cast<uintptr_t>(from) % sizeof(float) == 0) {
    transpose(reinterpret_cast<const float*>(from), stride / 2, count, whole, to, to_stride);
  } else {
    // Through aligned lines.
    constexpr int64_t kLines = 16;
    float lines[kLines * kDepth];
    for (int64_t i = 0; i < count; i += kLines) {
      const int64_t some = std::min(kLines, count - i);
      for (int64_t line = 0; line < some; ++line) {
        std::memcpy(lines + line * whole, from + (i + line) * stride,
                    static_cast<size_t>(whole) * sizeof(float));
      }
      transpose(lines, whole, some, whole, to + i, to_stride);
    }
  }
  for (int64_t i = 0; depth % 2 != 0 && i < count; ++i) {
    const uint32_t word = from[i * stride + depth - 1].bits;
    std::memcpy(to + whole * to_stride + i, &word, sizeof(word));
  }
}

// Calls body(line, the next line or null, its word) for the lines of the depth, word by word.
template <class T, class Body>
void for_each_word(const T* line, int64_t stride, int64_t depth, Body body) {
  for (int64_t k = 0; k < depth; k += kWord<T>, line += kWord<T> * stride) {
    body(line, kWord<T> == 2 && k + 1 < depth ? line + stride : nullptr, k / kWord<T>);
  }
}

// Panels of kRows of the left matrix, in lines of words; the last may be narrower.
template <class T>
void pack_left(const MatrixView<T>& from, int64_t rows, int64_t depth, float* to) {
  const int64_t length = words<T>(depth);
  const int64_t whole = rows / kRows * kRows;
  if (from.row_stride != 1) {
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t count = std::min(kRows, rows - i);
      transpose_words(from.from(i, 0).data, from.row_stride, count, depth, to + i * length, count);
    }
    return;
  }
  // All panels together, so that memory is read sequentially.
  for_each_word(from.data, from.column_stride, depth, [&](const T* line, const T* next, int64_t k) {
    const auto after = [&](int64_t i) { return next != nullptr ? next + i : nullptr; };
    for (int64_t i = 0; i < whole; i += kRows) {
      copy_words<kRows>(line + i, after(i), kRows, to + i * length + k * kRows);
    }
    if (whole < rows) {
      const int64_t count = rows - whole;
      copy_words(line + whole, after(whole), count, to + whole * length + k * count);
    }
  });
}

// Panels of kColumns of the right matrix, in lines of words.
template <class T>
void pack_right(const MatrixView<T>& from, int64_t columns, int64_t depth, float* to) {
  const int64_t panel_size = words<T>(depth) * kColumns;
  int64_t packed = 0;
  if (from.column_stride == 1) {
    // All whole panels together, so that memory is read sequentially.
    packed = columns / kColumns * kColumns;
    for_each_word(from.data, from.row_stride, depth, [&](const T* line, const T* next, int64_t k) {
      float* place = to + k * kColumns;
      for (int64_t j = 0; j < packed; j += kColumns, place += panel_size) {
        ask_for<0>(line + kAhead * from.row_stride + j, kColumns);
        if (next != nullptr) ask_for<0>(next + kAhead * from.row_stride + j, kColumns);
        copy_words<kColumns>(line + j, next != nullptr ? next + j : nullptr, kColumns, place);
      }
    });
  }
  for (int64_t j = packed; j < columns; j += kColumns) {
    const int64_t count = std::min(kColumns, columns - j);
    float* const panel = to + j / kColumns * panel_size;
    if (count < kColumns) std::fill_n(panel, panel_size, 0.0f);
    const T* const begin = from.from(0, j).data;
    if (from.column_stride != 1) {
      transpose_words(begin, from.column_stride, count, depth, panel, kColumns);
      continue;
    }
    for_each_word(begin, from.row_stride, depth, [&](const T* line, const T* next, int64_t k) {
      copy_words(line, next, count, panel + k * kColumns);
    });
  }
}

// A part of a matrix that is prefetched piece by piece before it is packed.
class Ahead {
 public:
  Ahead() = default;
  template <class T>
  Ahead(const MatrixView<T>& from, int64_t rows, int64_t columns, int64_t shares) {
    const bool by_rows = from.column_stride == 1;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    line_ = reinterpret_cast<const char*>(from.data);
    lines_ = by_rows ? rows : columns;
    length_ = (by_rows ? columns : rows) * kSize;
    stride_ = (by_rows ? from.row_stride : from.column_stride) * kSize;
    share_ = divide_up(lines_ * divide_up(length_, kLine), shares);
  }

  void ask_for_share() {
    for (int64_t i = 0; i < share_ && lines_ > 0; ++i) {
      __builtin_prefetch(line_ + at_);
      at_ += kLine;
      if (at_ < length_) continue;
      at_ = 0;
      line_ += stride_;
      --lines_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  const char* line_ = nullptr;
  int64_t lines_ = 0;
  int64_t length_ = 0;
  int64_t stride_ = 0;
  int64_t share_ = 0;
  int64_t at_ = 0;  // within a line
};

// Sums in FLOAT; rows are `stride` apart.
struct Sums {
  float* data;
  int64_t stride;

  float* row(int64_t i) const { return data + i * stride; }
};

// One unit of work: some rows and columns, and a segment of their sums.
template <class T>
struct Block {
  MatrixView<T> left;
  MatrixView<T> right;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
  int64_t depth;
  bool adds;  // to the sums of earlier segments
  bool is_last;

  int64_t tiles(int64_t of_rows) const {
    return divide_up(of_rows, kRows) * divide_up(columns, kColumns);
  }
};

// The blocks of a product, in the order in which they are computed.
template <class T, class Result>
class Blocks {
 public:
  explicit Blocks(const MatrixProduct<T, Result>& product)
      : p_(product),
        rows_(kIsFloat<Result> ? p_.rows : std::min(kSumRows, p_.rows)),
        term_segments_(divide_up(p_.depth, kLength)),
        segments_(term_segments_ * p_.terms),
        chunks_(divide_up(p_.rows, rows_)) {}

  int64_t count() const { return divide_up(p_.columns, kBlockColumns) * chunks_ * segments_; }

  Block<T> at(int64_t i) const {
    const int64_t segment = i % segments_;
    const int64_t term = segment / term_segments_;
    const int64_t k = segment % term_segments_ * kLength;
    const int64_t row = i / segments_ % chunks_ * rows_;
    const int64_t column = i / (segments_ * chunks_) * kBlockColumns;
    Block<T> block{.left = p_.left.from(row, k),
                   .right = p_.right.from(k, column),
                   .row = row,
                   .rows = std::min(rows_, p_.rows - row),
                   .column = column,
                   .columns = std::min(kBlockColumns, p_.columns - column),
                   .depth = std::min(kLength, p_.depth - k),
                   .adds = segment > 0 || p_.adds,
                   .is_last = segment == segments_ - 1};
    block.left.data += term * p_.left_term;
    block.right.data += term * p_.right_term;
    return block;
  }

 private:
  static constexpr int64_t kLength = kDepth * kWord<T>;

  const MatrixProduct<T, Result>& p_;
  const int64_t rows_;
  const int64_t term_segments_;
  const int64_t segments_;
  const int64_t chunks_;
};

float value_of(float element) {
  return element;
}
float value_of(BFloat16 element) {
  return std::bit_cast<float>(uint32_t{element.bits} << 16);
}

// Adds its bias to a tile of the result.
template <class Result>
void add_bias(const MatrixView<Result>& bias, int64_t rows, int64_t columns, const Sums& sums) {
  for (int64_t i = 0; i < rows; ++i) {
    float* const row = sums.row(i);
    if (bias.column_stride == 0) {
      const float of_row = value_of(bias.data[i]);
      for (int64_t j = 0; j < columns; ++j) row[j] += of_row;
    } else {
      for (int64_t j = 0; j < columns; ++j) row[j] += value_of(bias.data[j]);
    }
  }
}

// Computes at most kBlockRows rows of the block, and prefetches the next data meanwhile.
template <class T, class Result>
void multiply_rows(const MatrixProduct<T, Result>& p, const Block<T>& block, int64_t row,
                   const Panels& panels, const Sums& sums, Ahead& next_right, Ahead next_left) {
  const int64_t rows = std::min(kBlockRows, block.rows - row);
  const int64_t length = words<T>(block.depth);
  pack_left(block.left.from(row, 0), rows, block.depth, panels.left);
  for (int64_t j = 0; j < block.columns; j += kColumns) {
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t tile_rows = std::min(kRows, rows - i);
      const int64_t tile_columns = std::min(kColumns, block.columns - j);
      const Sums tile{sums.row(row + i) + j, sums.stride};
      compute_tile<T>(tile_rows, tile_columns, length, panels.left + i * length,
                      panels.right + j * length, tile.data, tile.stride, block.adds);
      if (block.is_last && p.bias.data != nullptr) {
        add_bias(p.bias.from(block.row + row + i, block.column + j), tile_rows, tile_columns, tile);
      }
      next_right.ask_for_share();
      next_left.ask_for_share();
    }
  }
}

// Narrows pairs of vectors; memory after the sums may be read. Prefetches `ahead` elements ahead.
void narrow(const float* from, int64_t count, BFloat16* to, int64_t ahead) {
  using Elements = at::vec::Vectorized<c10::BFloat16>;
  for (int64_t i = 0; i < count; i += Elements::size()) {
    __builtin_prefetch(to + i + ahead, 1);
    at::vec::convert_from_float<c10::BFloat16>(V::loadu(from + i), V::loadu(from + i + kLanes))
        .store(to + i, static_cast<int>(std::min<int64_t>(Elements::size(), count - i)));
  }
}

template <class T, class Result>
Result* result_of(const MatrixProduct<T, Result>& p, const Block<T>& block) {
  return p.out + block.row * p.out_stride + block.column;
}

// The memory of a block's sums: the result if it is FLOAT, otherwise separate memory.
template <class T, class Result>
Sums place_of_sums(const MatrixProduct<T, Result>& p, const Block<T>& block, const Panels& panels) {
  if constexpr (kIsFloat<Result>) {
    return {result_of(p, block), p.out_stride};
  } else {
    return {panels.sums, kBlockColumns};
  }
}

template <class T, class Result>
void end_sums(const MatrixProduct<T, Result>& p, const Block<T>& block, const Sums& sums) {
  if constexpr (!kIsFloat<Result>) {
    Result* const out = result_of(p, block);
    for (int64_t i = 0; block.is_last && i < block.rows; ++i) {
      narrow(sums.row(i), block.columns, out + i * p.out_stride, 2 * p.out_stride);
    }
  }
}

template <class T, class Result>
void multiply(const MatrixProduct<T, Result>& p, void* scratch) {
  ScratchParts parts(scratch);
  const Panels panels = take_panels<Result>(parts);
  const Blocks<T, Result> blocks(p);
  Block<T> block = blocks.at(0);
  for (int64_t i = 0, count = blocks.count(); i < count; ++i) {
    const bool follows = i + 1 < count;
    const Block<T> next = follows ? blocks.at(i + 1) : block;
    const Sums sums = place_of_sums(p, block, panels);
    pack_right(block.right, block.columns, block.depth, panels.right);
    Ahead next_right;
    if (follows) next_right = Ahead(next.right, next.depth, next.columns, block.tiles(block.rows));
    for (int64_t row = 0; row < block.rows; row += kBlockRows) {
      const int64_t end = std::min(row + kBlockRows, block.rows);
      const int64_t tiles = block.tiles(end - row);
      Ahead next_left;
      if (end < block.rows) {
        const int64_t rows = std::min(kBlockRows, block.rows - end);
        next_left = Ahead(block.left.from(end, 0), rows, block.depth, tiles);
      } else if (follows) {
        next_left = Ahead(next.left, std::min(kBlockRows, next.rows), next.depth, tiles);
      }
      multiply_rows(p, block, row, panels, sums, next_right, next_left);
    }
    end_sums(p, block, sums);
    block = next;
  }
}

template <class T, class Result = T>
MatmulKernel<T, Result> kernel() {
  ScratchParts parts(nullptr);
  take_panels<Result>(parts);
  return {parts.size(), multiply<T, Result>};
}

}  // namespace

template <>
const MatmulKernels& matmul_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static const MatmulKernels kKernels{kRows,
                                      kColumns,
                                      kernel<float>(),
                                      of_double::kernel(),
                                      kernel<BFloat16>(),
                                      kernel<BFloat16, float>()};
  return kKernels;
}

}  // namespace aclnn_host
