#include "host_cann/kernels/convolution_implicit_gemm.h"

#include <algorithm>

#include "host_cann/kernels/few_rows.h"
#include "host_cann/kernels/matmul_tile.h"
#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/window_block.h"
#include "host_cann/kernels/window_correlation.h"

namespace aclnn_host {
namespace {

// ---- Weights

// Packs some rows of a weight as a left matrix, [depth][rows].
void pack_rows(const ConvolutionSizes& sizes, const Correlation& c, const float* weight,
               int64_t rows, float* to) {
  if (c.taps.count == sizes.kernel && c.weight_channel == c.tap_count()) {
    return transpose(weight, c.weight_row, rows, c.depth(), to, rows);
  }
  for (int64_t channel = 0; channel < c.channels; ++channel, weight += c.weight_channel) {
    if (c.taps.count == sizes.kernel) {
      transpose(weight, c.weight_row, rows, c.tap_count(), to, rows);
      to += c.tap_count() * rows;
      continue;
    }
    for_each_position(c.taps.count, [&](int64_t, const Values& tap) {
      Values element;
      for (int d = 0; d < 3; ++d) element[d] = c.taps.first[d] + tap[d] * c.taps.step[d];
      const float* const from = weight + index_of(element, sizes.kernel);
      for (int64_t i = 0; i < rows; ++i) *to++ = from[i * c.weight_row];
    });
  }
}

template <bool kForward>
int64_t weight_size(const ConvolutionSizes& sizes) {
  int64_t size = 0;
  for_each_correlation(sizes, kForward, [&](const Correlation& c, int64_t begin) {
    size = begin + sizes.groups * c.rows * c.depth();
  });
  return round_up(size * static_cast<int64_t>(sizeof(float)), 64);
}

// Packs weights by tiles of rows, group by group.
template <bool kForward>
void prepare_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, void* shared) {
  const auto* const weight = static_cast<const float*>(from.weight);
  const int64_t group_size = sizes.dst_channels * sizes.src_channels * volume(sizes.kernel);
  for_each_correlation(sizes, kForward, [&](const Correlation& c, int64_t begin) {
    const int64_t tiles = divide_up(c.rows, kRows);
    const Range range = share(sizes.groups * tiles, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t group = i / tiles;
      const int64_t row = i % tiles * kRows;
      pack_rows(sizes, c, weight + group * group_size + row * c.weight_row,
                std::min(kRows, c.rows - row),
                static_cast<float*>(shared) + begin + (group * c.rows + row) * c.depth());
    }
  });
}

// ---- Images from images

// The row pitch of a block of results; not a power of two, which would cause cache conflicts.
constexpr int64_t kResultPitch = kBlockColumns + 16;

struct CorrelationMemory {
  WindowBlock block;
  float* results;
  int64_t size;

  CorrelationMemory(const Correlation& c, int64_t groups, void* memory)
      : CorrelationMemory(c, groups, ScratchParts(memory)) {}

 private:
  CorrelationMemory(const Correlation& c, int64_t groups, ScratchParts parts)
      : block(c, groups, parts), results(parts.take<float>(c.rows * kResultPitch)) {
    size = parts.size();
  }
};

template <bool kForward>
int64_t correlation_scratch_size(const ConvolutionSizes& sizes) {
  int64_t size = 0;
  for_each_correlation(sizes, kForward, [&](const Correlation& c, int64_t) {
    if (c.tap_count() > 0) size = std::max(size, CorrelationMemory(c, sizes.groups, nullptr).size);
  });
  return size;
}

// Adds the products of some channels, whose first row of the whole depth is `depth`, to rows of a
// block of results.
template <class T>
void multiply(const Correlation& c, const float* weight, const Range& rows, int64_t depth,
              bool adds, CorrelationMemory& memory) {
  if (c.rows <= kFewRows) {  // a single tile, which is never divided
    for (const LineWindows& windows : memory.block.line_windows()) {
      multiply_few<T>(c.rows, weight + depth * c.rows, memory.block.lines() + windows.from,
                      memory.block.places(), windows.count, memory.results + windows.column,
                      kResultPitch, adds);
    }
    return;
  }
  const int64_t columns = memory.block.columns();
  for (int64_t column = 0; column < columns; column += kColumns) {
    const TileRows right = memory.block.panel(column);
    for (int64_t row = rows.begin; row < rows.end; row += kRows) {
      const int64_t tile_rows = std::min(kRows, c.rows - row);
      tile_for<T>(tile_rows, columns - column)(weight + row * c.depth() + depth * tile_rows, right,
                                               memory.results + row * kResultPitch + column,
                                               kResultPitch, adds);
    }
  }
}

// Computes some rows and columns of one group's results.
template <class T>
void correlate(const Correlation& c, const float* weight, const float* images, const float* bias,
               const Range& rows, const Range& columns, float* out, CorrelationMemory& memory) {
  for (int64_t at = columns.begin; at < columns.end;) {
    at = memory.block.place(at, columns.end);
    for (int64_t channel = 0; channel < c.channels; channel += memory.block.channels()) {
      const int64_t count = std::min(memory.block.channels(), c.channels - channel);
      memory.block.read(images + channel * volume(c.image), count);
      multiply<T>(c, weight, rows, channel * c.tap_count(), channel > 0, memory);
    }
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      memory.block.store(memory.results + row * kResultPitch, bias != nullptr ? bias[row] : 0.0f,
                         out + row * volume(c.out));
    }
  }
}

// The division of the results: groups, tiles of their rows, panels of their columns.
struct Division {
  int64_t row_parts = 1;
  int64_t column_parts = 1;
  int64_t pieces;

  Division(const ConvolutionSizes& sizes, int64_t row_tiles, int64_t panels, int64_t parts) {
    if (sizes.groups % parts != 0 && sizes.groups < 4 * parts) {
      column_parts = std::min(parts, panels);
      row_parts = std::min(std::max<int64_t>(1, parts / column_parts), row_tiles);
    }
    pieces = sizes.groups * row_parts * column_parts;
  }
};

// Writes images that no kernel element contributes to.
void store_bias(const ConvolutionSizes& sizes, const Correlation& c, const float* bias,
                const Range& images, float* out) {
  for (int64_t i = images.begin; i < images.end; ++i) {
    for (int64_t row = 0; row < c.rows; ++row) {
      const int64_t channel = i % sizes.groups * c.rows + row;
      float* const to = out + (i * c.rows + row) * volume(c.out);
      for_each_position(c.positions, [&](int64_t, Values at) {
        for (int d = 0; d < 3; ++d) at[d] = c.out_first[d] + at[d] * c.out_step[d];
        to[index_of(at, c.out)] = bias != nullptr ? bias[channel] : 0.0f;
      });
    }
  }
}

template <bool kForward, class T>
void compute_images(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, const void* shared, void* out, void* scratch) {
  const auto* const images = static_cast<const float*>(kForward ? from.src : from.dst);
  const auto* const bias = static_cast<const float*>(from.bias);
  for_each_correlation(sizes, kForward, [&](const Correlation& c, int64_t begin) {
    if (c.tap_count() == 0) {
      return store_bias(sizes, c, bias, share(sizes.batch * sizes.groups, part, parts),
                        static_cast<float*>(out));
    }
    const auto* const weight = static_cast<const float*>(shared) + begin;
    CorrelationMemory memory(c, sizes.groups, scratch);
    const int64_t columns = sizes.batch * volume(c.positions);
    const Division division(sizes, divide_up(c.rows, kRows), divide_up(columns, kColumns), parts);
    const Range pieces = share(division.pieces, part, parts);
    for (int64_t piece = pieces.begin; piece < pieces.end; ++piece) {
      const int64_t column = piece % division.column_parts;
      const int64_t row = piece / division.column_parts % division.row_parts;
      const int64_t group = piece / (division.column_parts * division.row_parts);
      correlate<T>(c, weight + group * c.rows * c.depth(),
                   images + group * c.channels * volume(c.image),
                   bias != nullptr ? bias + group * c.rows : nullptr,
                   share(c.rows, row, division.row_parts, kRows),
                   share(columns, column, division.column_parts, kColumns),
                   static_cast<float*>(out) + group * c.rows * volume(c.out), memory);
    }
  });
}

// ---- The weight's gradient

// Positions whose products are summed in one pass.
struct Positions {
  int64_t lines;
  int64_t width;

  explicit Positions(const ConvolutionSizes& sizes)
      : lines(std::clamp<int64_t>(kBlockDepth / sizes.dst[2], 1, sizes.dst[1])),
        width(std::min(kBlockDepth, sizes.dst[2])) {}
};

// The elements of kColumns channels of src for these positions, with the zeros around them:
// channels are contiguous, so that each tap has a right matrix in the block.
struct SrcBlock {
  int64_t planes;
  int64_t lines;
  int64_t width;

  SrcBlock(const ConvolutionSizes& sizes, const Positions& positions)
      : planes(sizes.kernel[0]),
        lines((positions.lines - 1) * sizes.stride[1] + (sizes.kernel[1] - 1) * sizes.dilation[1] +
              1),
        width((positions.width - 1) * sizes.stride[2] + (sizes.kernel[2] - 1) * sizes.dilation[2] +
              1) {}
  int64_t line() const { return width * kColumns; }
  int64_t plane() const { return lines * line(); }
  int64_t count() const { return planes * plane(); }
};

int64_t gradient_size(const ConvolutionSizes& sizes) {
  const int64_t count = sizes.batch * sizes.groups * sizes.dst_channels * volume(sizes.dst);
  return round_up(count * static_cast<int64_t>(sizeof(float)), 64);
}

int64_t weight_scratch_size(const ConvolutionSizes& sizes) {
  ScratchParts parts(nullptr);
  parts.take<float>(SrcBlock(sizes, Positions(sizes)).count());
  parts.take<float>(volume(sizes.kernel) * sizes.dst_channels * kColumns);
  return parts.size();
}

// Packs dst as left matrices, by tiles of channels: [position][channel].
void prepare_gradient(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                      int64_t parts, void* shared) {
  const auto* const dst = static_cast<const float*>(from.dst);
  const int64_t positions = volume(sizes.dst);
  const int64_t tiles = divide_up(sizes.dst_channels, kRows);
  const Range range = share(sizes.batch * sizes.groups * tiles, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t channel = i % tiles * kRows;
    const int64_t begin = (i / tiles * sizes.dst_channels + channel) * positions;
    const int64_t rows = std::min(kRows, sizes.dst_channels - channel);
    transpose(dst + begin, positions, rows, positions, static_cast<float*>(shared) + begin, rows);
  }
}

template <class T>
class WeightSums {
 public:
  WeightSums(const ConvolutionSizes& sizes, const ConvolutionTensors& from, const void* shared,
             void* scratch)
      : sizes_(sizes),
        positions_(sizes),
        block_(sizes, positions_),
        src_(static_cast<const float*>(from.src)),
        gradient_(static_cast<const float*>(shared)) {
    ScratchParts parts(scratch);
    panel_ = parts.take<float>(block_.count());
    sums_ = parts.take<float>(volume(sizes.kernel) * sizes.dst_channels * kColumns);
  }

  // Computes some rows of a group's result, from a channel on, for the width of a panel.
  void compute(int64_t group, int64_t channel, const Range& rows, float* weight) {
    const int64_t channels = std::min(kColumns, sizes_.src_channels - channel);
    std::fill_n(panel_, block_.count(), 0.0f);
    bool adds = false;
    for (int64_t image = 0; image < sizes_.batch; ++image) {
      const int64_t item = image * sizes_.groups + group;
      const float* const src = src_ + (item * sizes_.src_channels + channel) * volume(sizes_.src);
      const float* const gradient = gradient_ + item * sizes_.dst_channels * volume(sizes_.dst);
      for_each_block([&](const Values& at, int64_t lines, int64_t width) {
        fill(src, channels, at, lines, width);
        multiply(gradient, index_of(at, sizes_.dst), channels, rows, lines, width, adds);
        adds = true;
      });
    }
    const int64_t taps = volume(sizes_.kernel);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t out = ((group * sizes_.dst_channels + row) * sizes_.src_channels + channel);
      transpose(sums_ + row * kColumns, sizes_.dst_channels * kColumns, taps, channels,
                weight + out * taps, taps);
    }
  }

 private:
  // Calls body(first position, lines, width).
  template <class Body>
  void for_each_block(Body body) const {
    for (int64_t z = 0; z < sizes_.dst[0]; ++z) {
      for (int64_t y = 0; y < sizes_.dst[1]; y += positions_.lines) {
        for (int64_t x = 0; x < sizes_.dst[2]; x += positions_.width) {
          body(Values{z, y, x}, std::min(positions_.lines, sizes_.dst[1] - y),
               std::min(positions_.width, sizes_.dst[2] - x));
        }
      }
    }
  }

  void fill(const float* src, int64_t channels, const Values& at, int64_t lines, int64_t width) {
    Values begin;
    for (int d = 0; d < 3; ++d) begin[d] = at[d] * sizes_.stride[d] - sizes_.padding[d];
    const int64_t line_count =
        (lines - 1) * sizes_.stride[1] + (sizes_.kernel[1] - 1) * sizes_.dilation[1] + 1;
    const int64_t line_width =
        (width - 1) * sizes_.stride[2] + (sizes_.kernel[2] - 1) * sizes_.dilation[2] + 1;
    const int64_t before = std::clamp<int64_t>(-begin[2], 0, line_width);
    const int64_t end = std::clamp(sizes_.src[2] - begin[2], before, line_width);
    for (int64_t plane = 0; plane < block_.planes; ++plane) {
      const int64_t z = begin[0] + plane * sizes_.dilation[0];
      for (int64_t line = 0; line < line_count; ++line) {
        const int64_t y = begin[1] + line;
        float* const to = panel_ + plane * block_.plane() + line * block_.line();
        if (z < 0 || z >= sizes_.src[0] || y < 0 || y >= sizes_.src[1]) {
          std::fill_n(to, line_width * kColumns, 0.0f);
          continue;
        }
        std::fill_n(to, before * kColumns, 0.0f);
        transpose(src + index_of({z, y, begin[2] + before}, sizes_.src), volume(sizes_.src),
                  channels, end - before, to + before * kColumns, kColumns);
        std::fill(to + end * kColumns, to + line_width * kColumns, 0.0f);
      }
    }
  }

  void multiply(const float* gradient, int64_t position, int64_t channels, const Range& rows,
                int64_t lines, int64_t width, bool adds) {
    for (int64_t row = rows.begin; row < rows.end; row += kRows) {
      const int64_t tile_rows = std::min(kRows, sizes_.dst_channels - row);
      const float* const left = gradient + row * volume(sizes_.dst) + position * tile_rows;
      const Tile tile = tile_for<T>(tile_rows, channels);
      for_each_position(sizes_.kernel, [&](int64_t tap, const Values& k) {
        const float* const right = panel_ + k[0] * block_.plane() +
                                   k[1] * sizes_.dilation[1] * block_.line() +
                                   k[2] * sizes_.dilation[2] * kColumns;
        tile(left,
             {right, lines, width, sizes_.stride[2] * kColumns, sizes_.stride[1] * block_.line()},
             sums_ + (tap * sizes_.dst_channels + row) * kColumns, kColumns, adds);
      });
    }
  }

  const ConvolutionSizes& sizes_;
  const Positions positions_;
  const SrcBlock block_;
  const float* const src_;
  const float* const gradient_;
  float* panel_;
  float* sums_;  // [tap][row][channel]
};

template <class T>
void compute_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, const void* shared, void* out, void* scratch) {
  WeightSums<T> sums(sizes, from, shared, scratch);
  const int64_t blocks = divide_up(sizes.src_channels, kColumns);
  const int64_t tiles = divide_up(sizes.dst_channels, kRows);
  const Range range = share(sizes.groups * blocks * tiles, part, parts);
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t block = at / tiles;
    const int64_t end = std::min(range.end, (block + 1) * tiles);
    const Range rows{(at - block * tiles) * kRows,
                     std::min(sizes.dst_channels, (end - block * tiles) * kRows)};
    sums.compute(block / blocks, block % blocks * kColumns, rows, static_cast<float*>(out));
    at = end;
  }
}

bool are_finite(const float* values, int64_t count) {
  V zeros(0.0f);  // or NaN, once a value is not finite
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    zeros = at::vec::fmadd(V::loadu(values + i), V(0.0f), zeros);
  }
  float lanes[kLanes];
  zeros.store(lanes);
  bool finite = std::all_of(lanes, lanes + kLanes, [](float lane) { return lane == 0; });
  for (; i < count; ++i) finite = finite && values[i] * 0.0f == 0;
  return finite;
}

bool are_finite(const BFloat16* values, int64_t count) {
  constexpr uint16_t kInfinity = 0x7f80;
  uint16_t any = 0;  // lets the compiler vectorise
  for (int64_t i = 0; i < count; ++i) any |= (values[i].bits & kInfinity) == kInfinity ? 1 : 0;
  return any == 0;
}

template <class T>
bool are_all_finite(const void* values, int64_t count) {
  return are_finite(static_cast<const T*>(values), count);
}

void pack(const BFloat16* tensor, int64_t count, int64_t inner, int64_t begin, int64_t end,
          float* packed) {
  const int64_t pairs = divide_up(count, 2);
  const int64_t item = begin / inner;
  int64_t index = item % pairs;  // along `count`
  int64_t at = begin % inner;
  const BFloat16* from = tensor + (item / pairs * count + index * 2) * inner;
  while (begin < end) {
    const int64_t size = std::min(inner - at, end - begin);
    const bool has_next = index * 2 + 1 < count;
    copy_words(from + at, has_next ? from + inner + at : nullptr, size, packed + begin);
    begin += size;
    from += (has_next ? 2 : 1) * inner;
    at = 0;
    index = index + 1 < pairs ? index + 1 : 0;
  }
}

template <class T>
constexpr ImplicitGemmKernels kKernels = {
    {weight_size<true>, correlation_scratch_size<true>, prepare_weight<true>,
     compute_images<true, T>},
    {weight_size<false>, correlation_scratch_size<false>, prepare_weight<false>,
     compute_images<false, T>},
    {gradient_size, weight_scratch_size, prepare_gradient, compute_weight<T>},
    are_all_finite<T>};

}  // namespace

template <>
const ImplicitGemmKernelsByType&
convolution_implicit_gemm_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr ImplicitGemmKernelsByType kAll = {kKernels<float>, kKernels<BFloat16>, pack};
  return kAll;
}

}  // namespace aclnn_host
