#include "kernels/convolution_windows.h"

#include <cstdlib>
#include <numeric>

#include "kernels/matmul_tile.h"

namespace aclnn_host {
namespace {

using Values = ConvolutionSizes::Values;

// The images of a block of windows fit into a second-level cache beside what passes through it, a
// panel of windows into the first: so many columns, and about so many rows.
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kBlockDepth = 256;
static_assert(kBlockColumns % kColumns == 0);
// Elements behind them, over which vectors may reach.
constexpr int64_t kSlack = 16;
static_assert(kLanes <= kSlack);

int64_t volume(const Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

int64_t index_of(const Values& at, const Values& sizes) {
  return (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
}

// Calls body(index, position) for every position in order.
template <class Body>
void for_each_position(const Values& sizes, Body body) {
  int64_t index = 0;
  for (int64_t z = 0; z < sizes[0]; ++z) {
    for (int64_t y = 0; y < sizes[1]; ++y) {
      for (int64_t x = 0; x < sizes[2]; ++x) body(index++, Values{z, y, x});
    }
  }
}

struct Range {
  int64_t begin;
  int64_t end;
};

// A part's share of items, of which it takes whole steps.
Range share(int64_t items, int64_t part, int64_t parts, int64_t step = 1) {
  const int64_t steps = divide_up(items, step);
  return {steps * part / parts * step, std::min(items, steps * (part + 1) / parts * step)};
}

// Parts of a memory, one after the other; of none to find its size.
class Parts {
 public:
  explicit Parts(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int64_t count) {
    T* const part = memory_ != nullptr ? reinterpret_cast<T*>(memory_ + size_) : nullptr;
    size_ += divide_up(count * static_cast<int64_t>(sizeof(T)), 64) * 64;
    return part;
  }
  int64_t size() const { return size_; }

 private:
  char* memory_;
  int64_t size_ = 0;
};

// ---- Images

// The elements of a kernel that meet an image, in each dimension: first, first + step, ...; and
// where they meet it, beside a window's begin: offset, offset + offset_step, ...
struct Taps {
  Values first{};
  Values step{1, 1, 1};
  Values count;
  Values offset;
  Values offset_step;

  int64_t least_offset(int d) const {
    return std::min(offset[d], offset[d] + (count[d] - 1) * offset_step[d]);
  }
  // From the least to the greatest.
  int64_t reach(int d) const { return (count[d] - 1) * std::abs(offset_step[d]); }
  int64_t beyond_least(int d, int64_t i) const {
    return offset[d] + i * offset_step[d] - least_offset(d);
  }
};

// Channels of images become others: out[row] = sum over channel, tap of weight[row][channel][tap] *
// image[channel][position * stride + offset of the tap].
struct Correlation {
  int64_t channels;  // of a group
  int64_t rows;      // of a group
  Values image;
  Values stride;
  Values positions;
  Taps taps;
  // Where the positions are in the result.
  Values out;
  Values out_first;
  Values out_step;
  // Elements of the weight from a row to the next, and from a channel.
  int64_t weight_row;
  int64_t weight_channel;

  int64_t tap_count() const { return volume(taps.count); }
  int64_t depth() const { return channels * tap_count(); }
};

Correlation to_small(const ConvolutionSizes& sizes) {
  const int64_t taps = volume(sizes.kernel);
  Taps all{.count = sizes.kernel, .offset = {}, .offset_step = sizes.dilation};
  for (int d = 0; d < 3; ++d) all.offset[d] = -sizes.padding[d];
  return {.channels = sizes.large_channels,
          .rows = sizes.small_channels,
          .image = sizes.large,
          .stride = sizes.stride,
          .positions = sizes.small,
          .taps = all,
          .out = sizes.small,
          .out_first = {},
          .out_step = {1, 1, 1},
          .weight_row = sizes.large_channels * taps,
          .weight_channel = taps};
}

// Of the large image every so many positions, by the stride, from `phase` on: they meet the same
// elements of the kernel.
Correlation to_large(const ConvolutionSizes& sizes, const Values& phase) {
  const int64_t taps = volume(sizes.kernel);
  Correlation c{.channels = sizes.small_channels,
                .rows = sizes.large_channels,
                .image = sizes.small,
                .stride = {1, 1, 1},
                .positions = {},
                .taps = {.count = {}, .offset = {}, .offset_step = {}},
                .out = sizes.large,
                .out_first = phase,
                .out_step = sizes.stride,
                .weight_row = taps,
                .weight_channel = sizes.large_channels * taps};
  for (int d = 0; d < 3; ++d) {
    const int64_t stride = sizes.stride[d];
    c.positions[d] = divide_up(sizes.large[d] - phase[d], stride);
    const int64_t origin = phase[d] + sizes.padding[d];
    const int64_t period = stride / std::gcd(stride, sizes.dilation[d]);
    int64_t first = 0;
    while (first < std::min(period, sizes.kernel[d]) &&
           (origin - first * sizes.dilation[d]) % stride != 0) {
      ++first;
    }
    c.taps.first[d] = first;
    c.taps.step[d] = period;
    c.taps.count[d] =
        first < std::min(period, sizes.kernel[d]) ? (sizes.kernel[d] - 1 - first) / period + 1 : 0;
    c.taps.offset[d] = c.taps.count[d] > 0 ? (origin - first * sizes.dilation[d]) / stride : 0;
    c.taps.offset_step[d] = -(period * sizes.dilation[d] / stride);
  }
  return c;
}

// Calls body(correlation, weight) for those that make an image, and where their weight is packed.
template <class Body>
void for_each_correlation(const ConvolutionSizes& sizes, bool small, Body body) {
  if (small) return body(to_small(sizes), int64_t{0});
  int64_t weight = 0;
  Values phases;
  for (int d = 0; d < 3; ++d) phases[d] = std::min(sizes.stride[d], sizes.large[d]);
  for_each_position(phases, [&](int64_t, const Values& phase) {
    const Correlation c = to_large(sizes, phase);
    body(c, weight);
    weight += sizes.groups * c.rows * c.depth();
  });
}

// ---- Weights

// Some rows of a weight as a left matrix, [depth][rows].
void pack_rows(const ConvolutionSizes& sizes, const Correlation& c, const float* weight,
               int64_t rows, float* to) {
  if (c.taps.count == sizes.kernel && c.weight_channel == c.tap_count()) {
    return turn(weight, c.weight_row, rows, c.depth(), to, rows);
  }
  for (int64_t channel = 0; channel < c.channels; ++channel, weight += c.weight_channel) {
    if (c.taps.count == sizes.kernel) {
      turn(weight, c.weight_row, rows, c.tap_count(), to, rows);
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

template <bool kSmall>
int64_t weight_size(const ConvolutionSizes& sizes) {
  int64_t size = 0;
  for_each_correlation(sizes, kSmall, [&](const Correlation& c, int64_t begin) {
    size = begin + sizes.groups * c.rows * c.depth();
  });
  return divide_up(size * static_cast<int64_t>(sizeof(float)), 64) * 64;
}

// Weights are packed by tiles of rows, group after group.
template <bool kSmall>
void prepare_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, void* shared) {
  const auto* const weight = static_cast<const float*>(from.weight);
  const int64_t group_size = sizes.small_channels * sizes.large_channels * volume(sizes.kernel);
  for_each_correlation(sizes, kSmall, [&](const Correlation& c, int64_t begin) {
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

// ---- Windows

// Channels between the one that is read and the one that memory is asked for.
constexpr int64_t kAhead = 3;

// Copies elements that lie side by side, a few at a time, which a call would take longer for.
inline void copy(const float* from, float* to, int64_t count) {
  if (count < kLanes) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) V::loadu(from + i).store(to + i);
  V::loadu(from + count - kLanes).store(to + count - kLanes);
}

// Windows of one line that are columns of one panel.
struct Run {
  int64_t column;  // in the block
  int64_t count;
  int64_t out;  // its place in the result, beside a channel's
};

// A vector of them, which may reach over the next.
struct Move {
  int64_t from;  // in the lines
  int64_t to;    // in the panel
};

// Windows of one plane of an image, from a line on.
struct Plane {
  int64_t image;
  int64_t z;
  int64_t y;
  int64_t lines;
};

// The lines of images, with the zeros around them, that a block of windows is made of. Those of one
// plane of windows and one plane of taps lie together; in a line, elements that are one stride
// apart lie side by side.
struct LineSizes {
  int64_t remainders;  // by the stride
  int64_t pitch;       // of the elements of one remainder
  int64_t lines;       // of a plane of taps
  int64_t tap_planes;
  int64_t planes;  // of windows

  explicit LineSizes(const Correlation& c) {
    const int64_t width = std::min(kBlockColumns, c.positions[2]);
    const int64_t rows = kBlockColumns / width + 2;
    const int64_t rows_of_plane = std::min(rows, c.positions[1]);
    remainders = std::min(c.stride[2], c.taps.reach(2) + 1);
    pitch = width + c.taps.reach(2) / c.stride[2];
    lines = (rows_of_plane - 1) * c.stride[1] + c.taps.reach(1) + 1;
    tap_planes = c.taps.count[0];
    planes = rows / rows_of_plane + 2;
  }
  int64_t line() const { return remainders * pitch; }
  int64_t tap_plane() const { return lines * line(); }
  int64_t plane() const { return tap_planes * tap_plane(); }
  int64_t count() const { return planes * plane(); }
};

// Some windows, in the order of the images and positions, as a right matrix: in panels of kColumns,
// each [channel, tap][column], made one at a time.
class WindowBlock {
 public:
  WindowBlock(const Correlation& c, int64_t groups, Parts& parts)
      : c_(c),
        groups_(groups),
        sizes_(c),
        channels_(std::clamp<int64_t>(kBlockDepth / c.tap_count(), 1, c.channels)),
        lines_(parts.take<float>(channels_ * sizes_.count() + kSlack)),
        panel_(parts.take<float>(channels_ * c.tap_count() * kColumns + kSlack)),
        taps_(parts.take<int64_t>(c.tap_count())),
        planes_(parts.take<Plane>(sizes_.planes)),
        runs_(parts.take<Run>(kBlockColumns)),
        moves_(parts.take<Move>(kBlockColumns)),
        move_begins_(parts.take<int64_t>(kBlockColumns / kColumns + 1)) {}

  // How many channels it has at a time.
  int64_t channels() const { return channels_; }
  int64_t columns() const { return columns_; }

  // Becomes the windows from `begin` on, all before `end` or as many as it holds; returns where
  // they end.
  int64_t place(int64_t begin, int64_t end) {
    const int64_t width = c_.positions[2];
    // Of long lines it is a part of one.
    const bool long_lines = width >= kBlockColumns;
    end = std::min({end, begin + kBlockColumns,
                    long_lines ? (begin / width + 1) * width : begin + kBlockColumns});
    first_x_ = long_lines ? begin % width : 0;
    columns_ = end - begin;
    plane_count_ = 0;
    run_count_ = 0;
    move_count_ = 0;
    for_each_position(c_.taps.count, [&](int64_t tap, const Values& at) {
      const int64_t x = c_.taps.beyond_least(2, at[2]);
      taps_[tap] = at[0] * sizes_.tap_plane() + c_.taps.beyond_least(1, at[1]) * sizes_.line() +
                   x % c_.stride[2] * sizes_.pitch + x / c_.stride[2];
    });
    for (int64_t at = begin; at < end;) at += place_line(at, at - begin, end - at);
    move_begins_[divide_up(columns_, kColumns)] = move_count_;
    return end;
  }

  // Reads so many channels of the images.
  void read(const float* images, int64_t count) {
    read_ = count;
    for (int64_t i = 0; i < count; ++i) {
      fill_lines(images + i * volume(c_.image), lines_ + i * sizes_.count());
    }
  }

  // The panel of the columns from this one on.
  TileRows panel(int64_t column) {
    const int64_t taps = c_.tap_count();
    if (columns_ - column < kColumns) std::fill_n(panel_, read_ * taps * kColumns, 0.0f);
    const int64_t index = column / kColumns;
    const Move* const moves = moves_ + move_begins_[index];
    const int64_t count = move_begins_[index + 1] - move_begins_[index];
    switch (count) {
      case 2: move<2>(moves, count); break;
      case 3: move<3>(moves, count); break;
      case 4: move<4>(moves, count); break;
      default: move<0>(moves, count); break;
    }
    return TileRows::panel(panel_, read_ * taps);
  }

  // Takes a row of the result to its place in a channel.
  void store(const float* row, float* channel) const {
    for (const Run* run = runs_; run < runs_ + run_count_; ++run) {
      const float* const from = row + run->column;
      float* const to = channel + run->out;
      __builtin_prefetch(to + kAhead * volume(c_.out), 1);
      if (c_.out_step[2] == 1) {
        copy(from, to, run->count);
      } else {
        for (int64_t i = 0; i < run->count; ++i) to[i * c_.out_step[2]] = from[i];
      }
    }
  }

 private:
  // Windows of one line from `at` on, at most so many; returns their count.
  int64_t place_line(int64_t at, int64_t column, int64_t most) {
    const int64_t x = at % c_.positions[2];
    const int64_t y = at / c_.positions[2] % c_.positions[1];
    const int64_t z = at / (c_.positions[2] * c_.positions[1]) % c_.positions[0];
    const int64_t image = at / volume(c_.positions);
    const int64_t count = std::min(most, c_.positions[2] - x);
    if (column == 0 || y == 0) planes_[plane_count_++] = {image, z, y, 0};
    Plane& plane = planes_[plane_count_ - 1];
    const int64_t from = (plane_count_ - 1) * sizes_.plane() +
                         plane.lines++ * c_.stride[1] * sizes_.line() - first_x_;
    Values to{z, y, x};
    for (int d = 0; d < 3; ++d) to[d] = c_.out_first[d] + to[d] * c_.out_step[d];
    const int64_t out = image * groups_ * c_.rows * volume(c_.out) + index_of(to, c_.out);
    for (int64_t i = 0; i < count;) {
      const int64_t in_panel = (column + i) % kColumns;
      const int64_t length = std::min(count - i, kColumns - in_panel);
      if (in_panel == 0) move_begins_[(column + i) / kColumns] = move_count_;
      for (int64_t k = 0; k < length; k += kLanes) {
        moves_[move_count_++] = {from + x + i + k, in_panel + k};
      }
      runs_[run_count_++] = {column + i, length, out + i * c_.out_step[2]};
      i += length;
    }
    return count;
  }

  // Reads one channel, given of the first image.
  void fill_lines(const float* channel, float* lines) const {
    const int64_t image_size = groups_ * c_.channels * volume(c_.image);
    for (int64_t i = 0; i < plane_count_; ++i) {
      const Plane& plane = planes_[i];
      for (int64_t tap = 0; tap < sizes_.tap_planes; ++tap) {
        const int64_t z = plane.z * c_.stride[0] + c_.taps.offset[0] + tap * c_.taps.offset_step[0];
        const int64_t y = plane.y * c_.stride[1] + c_.taps.least_offset(1);
        const int64_t count = (plane.lines - 1) * c_.stride[1] + c_.taps.reach(1) + 1;
        float* to = lines + i * sizes_.plane() + tap * sizes_.tap_plane();
        for (int64_t line = 0; line < count; ++line, to += sizes_.line()) {
          if (z < 0 || z >= c_.image[0] || y + line < 0 || y + line >= c_.image[1]) {
            std::fill_n(to, sizes_.line(), 0.0f);
          } else {
            const float* const from =
                channel + plane.image * image_size + index_of({z, y + line, 0}, c_.image);
            prefetch(from + kAhead * volume(c_.image));
            fill_line(from, to);
          }
        }
      }
    }
  }

  // A line's elements that a block reads.
  void prefetch(const float* line) const {
    const int64_t count = std::min(c_.image[2], sizes_.pitch * c_.stride[2]);
    const float* const first = line + first_x_ * c_.stride[2];
    for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(first + i);
  }

  void fill_line(const float* line, float* to) const {
    const int64_t stride = c_.stride[2];
    const int64_t begin = first_x_ * stride + c_.taps.least_offset(2);
    if (stride == 1) return fill_line<1>(line, begin, 1, to);
    for (int64_t remainder = 0; remainder < sizes_.remainders; ++remainder, to += sizes_.pitch) {
      if (stride == 2) {  // a constant, which the compiler can make vectors of
        fill_line<2>(line, begin + remainder, 2, to);
      } else {
        fill_line<0>(line, begin + remainder, stride, to);
      }
    }
  }

  // Elements of a line that are a stride apart, from `first` on, which may be before or behind it.
  // 0 stands for any stride.
  template <int kStride>
  void fill_line(const float* line, int64_t first, int64_t any, float* to) const {
    const int64_t stride = kStride == 0 ? any : kStride;
    const int64_t pitch = sizes_.pitch;
    const int64_t before = std::min(pitch, divide_up(std::max<int64_t>(-first, 0), stride));
    const int64_t inside = divide_up(std::max<int64_t>(c_.image[2] - first, 0), stride);
    const int64_t end = std::clamp(inside, before, pitch);
    for (int64_t i = 0; i < before; ++i) to[i] = 0;
    const float* const from = line + first;
    if constexpr (kStride == 1) {
      copy(from + before, to + before, end - before);
    } else {
      for (int64_t i = before; i < end; ++i) to[i] = from[i * stride];
    }
    for (int64_t i = end; i < pitch; ++i) to[i] = 0;
  }

  // What a vector reaches over is written after it. 0 stands for any count.
  template <int kCount>
  void move(const Move* moves, int64_t any) const {
    const int64_t count = kCount == 0 ? any : kCount;
    const int64_t taps = c_.tap_count();
    float* to = panel_;
    for (int64_t channel = 0; channel < read_; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap, to += kColumns) {
        const float* const from = lines_ + channel * sizes_.count() + taps_[tap];
        for (int64_t i = 0; i < count; ++i) V::loadu(from + moves[i].from).store(to + moves[i].to);
      }
    }
  }

  const Correlation& c_;
  const int64_t groups_;
  const LineSizes sizes_;
  const int64_t channels_;
  float* const lines_;
  float* const panel_;
  int64_t* const taps_;
  Plane* const planes_;
  Run* const runs_;
  Move* const moves_;
  int64_t* const move_begins_;  // of each panel
  int64_t first_x_ = 0;         // of all runs, in long lines
  int64_t columns_ = 0;
  int64_t read_ = 0;  // channels
  int64_t plane_count_ = 0;
  int64_t run_count_ = 0;
  int64_t move_count_ = 0;
};

// ---- Images from images

// Rows of a block of results; not a power of two, so that they do not share places in a cache.
constexpr int64_t kResultPitch = kBlockColumns + 16;

struct CorrelationMemory {
  WindowBlock block;
  float* results;
  int64_t size;

  CorrelationMemory(const Correlation& c, int64_t groups, void* memory)
      : CorrelationMemory(c, groups, Parts(memory)) {}

 private:
  CorrelationMemory(const Correlation& c, int64_t groups, Parts parts)
      : block(c, groups, parts), results(parts.take<float>(c.rows * kResultPitch)) {
    size = parts.size();
  }
};

template <bool kSmall>
int64_t correlation_scratch_size(const ConvolutionSizes& sizes) {
  int64_t size = 0;
  for_each_correlation(sizes, kSmall, [&](const Correlation& c, int64_t) {
    if (c.tap_count() > 0) size = std::max(size, CorrelationMemory(c, sizes.groups, nullptr).size);
  });
  return size;
}

// Adds the products of some channels, from the first `depth` rows of the whole on, to rows of a
// block of results.
void multiply(const Correlation& c, const float* weight, const Range& rows, int64_t depth,
              bool adds, CorrelationMemory& memory) {
  const int64_t columns = memory.block.columns();
  for (int64_t column = 0; column < columns; column += kColumns) {
    const TileRows right = memory.block.panel(column);
    for (int64_t row = rows.begin; row < rows.end; row += kRows) {
      const int64_t tile_rows = std::min(kRows, c.rows - row);
      tile_for(tile_rows, columns - column)(weight + row * c.depth() + depth * tile_rows, right,
                                            memory.results + row * kResultPitch + column,
                                            kResultPitch, adds);
    }
  }
}

// Some rows and columns of one group's results.
void correlate(const Correlation& c, const float* weight, const float* images, const float* bias,
               const Range& rows, const Range& columns, float* out, CorrelationMemory& memory) {
  for (int64_t at = columns.begin; at < columns.end;) {
    at = memory.block.place(at, columns.end);
    for (int64_t row = rows.begin; bias != nullptr && row < rows.end; ++row) {
      std::fill_n(memory.results + row * kResultPitch, kBlockColumns, bias[row]);
    }
    for (int64_t channel = 0; channel < c.channels; channel += memory.block.channels()) {
      const int64_t count = std::min(memory.block.channels(), c.channels - channel);
      memory.block.read(images + channel * volume(c.image), count);
      multiply(c, weight, rows, channel * c.tap_count(), bias != nullptr || channel > 0, memory);
    }
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      memory.block.store(memory.results + row * kResultPitch, out + row * volume(c.out));
    }
  }
}

// How the results are divided: groups, tiles of their rows, panels of their columns.
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

// Images to which no element of the kernel comes.
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

template <bool kSmall>
void compute_images(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, const void* shared, void* out, void* scratch) {
  const auto* const images = static_cast<const float*>(kSmall ? from.large : from.small);
  const auto* const bias = static_cast<const float*>(from.bias);
  for_each_correlation(sizes, kSmall, [&](const Correlation& c, int64_t begin) {
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
      correlate(c, weight + group * c.rows * c.depth(),
                images + group * c.channels * volume(c.image),
                bias != nullptr ? bias + group * c.rows : nullptr,
                share(c.rows, row, division.row_parts, kRows),
                share(columns, column, division.column_parts, kColumns),
                static_cast<float*>(out) + group * c.rows * volume(c.out), memory);
    }
  });
}

// ---- The weight's gradient

// Positions whose products are summed in one go.
struct Positions {
  int64_t lines;
  int64_t width;

  explicit Positions(const ConvolutionSizes& sizes)
      : lines(std::clamp<int64_t>(kBlockDepth / sizes.small[2], 1, sizes.small[1])),
        width(std::min(kBlockDepth, sizes.small[2])) {}
};

// What these meet of kColumns channels of the large images, with the zeros around them: channels
// side by side, so that each tap has a right matrix in it.
struct LargeBlock {
  int64_t planes;
  int64_t lines;
  int64_t width;

  LargeBlock(const ConvolutionSizes& sizes, const Positions& positions)
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
  const int64_t count = sizes.batch * sizes.groups * sizes.small_channels * volume(sizes.small);
  return divide_up(count * static_cast<int64_t>(sizeof(float)), 64) * 64;
}

int64_t weight_scratch_size(const ConvolutionSizes& sizes) {
  Parts parts(nullptr);
  parts.take<float>(LargeBlock(sizes, Positions(sizes)).count());
  parts.take<float>(volume(sizes.kernel) * sizes.small_channels * kColumns);
  return parts.size();
}

// The small images as left matrices, tile by tile of their channels: [position][channel].
void prepare_gradient(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                      int64_t parts, void* shared) {
  const auto* const small = static_cast<const float*>(from.small);
  const int64_t positions = volume(sizes.small);
  const int64_t tiles = divide_up(sizes.small_channels, kRows);
  const Range range = share(sizes.batch * sizes.groups * tiles, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t channel = i % tiles * kRows;
    const int64_t begin = (i / tiles * sizes.small_channels + channel) * positions;
    const int64_t rows = std::min(kRows, sizes.small_channels - channel);
    turn(small + begin, positions, rows, positions, static_cast<float*>(shared) + begin, rows);
  }
}

class WeightSums {
 public:
  WeightSums(const ConvolutionSizes& sizes, const ConvolutionTensors& from, const void* shared,
             void* scratch)
      : sizes_(sizes),
        positions_(sizes),
        block_(sizes, positions_),
        large_(static_cast<const float*>(from.large)),
        gradient_(static_cast<const float*>(shared)) {
    Parts parts(scratch);
    panel_ = parts.take<float>(block_.count());
    sums_ = parts.take<float>(volume(sizes.kernel) * sizes.small_channels * kColumns);
  }

  // Some rows of a group's result, from one of its channels on as many as the panel has.
  void compute(int64_t group, int64_t channel, const Range& rows, float* weight) {
    const int64_t channels = std::min(kColumns, sizes_.large_channels - channel);
    std::fill_n(panel_, block_.count(), 0.0f);
    bool adds = false;
    for (int64_t image = 0; image < sizes_.batch; ++image) {
      const int64_t item = image * sizes_.groups + group;
      const float* const large =
          large_ + (item * sizes_.large_channels + channel) * volume(sizes_.large);
      const float* const gradient = gradient_ + item * sizes_.small_channels * volume(sizes_.small);
      for_each_block([&](const Values& at, int64_t lines, int64_t width) {
        fill(large, channels, at, lines, width);
        multiply(gradient, index_of(at, sizes_.small), channels, rows, lines, width, adds);
        adds = true;
      });
    }
    const int64_t taps = volume(sizes_.kernel);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t out = ((group * sizes_.small_channels + row) * sizes_.large_channels + channel);
      turn(sums_ + row * kColumns, sizes_.small_channels * kColumns, taps, channels,
           weight + out * taps, taps);
    }
  }

 private:
  // Calls body(first position, lines, width).
  template <class Body>
  void for_each_block(Body body) const {
    for (int64_t z = 0; z < sizes_.small[0]; ++z) {
      for (int64_t y = 0; y < sizes_.small[1]; y += positions_.lines) {
        for (int64_t x = 0; x < sizes_.small[2]; x += positions_.width) {
          body(Values{z, y, x}, std::min(positions_.lines, sizes_.small[1] - y),
               std::min(positions_.width, sizes_.small[2] - x));
        }
      }
    }
  }

  void fill(const float* large, int64_t channels, const Values& at, int64_t lines, int64_t width) {
    Values begin;
    for (int d = 0; d < 3; ++d) begin[d] = at[d] * sizes_.stride[d] - sizes_.padding[d];
    const int64_t line_count =
        (lines - 1) * sizes_.stride[1] + (sizes_.kernel[1] - 1) * sizes_.dilation[1] + 1;
    const int64_t line_width =
        (width - 1) * sizes_.stride[2] + (sizes_.kernel[2] - 1) * sizes_.dilation[2] + 1;
    const int64_t before = std::clamp<int64_t>(-begin[2], 0, line_width);
    const int64_t end = std::clamp(sizes_.large[2] - begin[2], before, line_width);
    for (int64_t plane = 0; plane < block_.planes; ++plane) {
      const int64_t z = begin[0] + plane * sizes_.dilation[0];
      for (int64_t line = 0; line < line_count; ++line) {
        const int64_t y = begin[1] + line;
        float* const to = panel_ + plane * block_.plane() + line * block_.line();
        if (z < 0 || z >= sizes_.large[0] || y < 0 || y >= sizes_.large[1]) {
          std::fill_n(to, line_width * kColumns, 0.0f);
          continue;
        }
        std::fill_n(to, before * kColumns, 0.0f);
        turn(large + index_of({z, y, begin[2] + before}, sizes_.large), volume(sizes_.large),
             channels, end - before, to + before * kColumns, kColumns);
        std::fill(to + end * kColumns, to + line_width * kColumns, 0.0f);
      }
    }
  }

  void multiply(const float* gradient, int64_t position, int64_t channels, const Range& rows,
                int64_t lines, int64_t width, bool adds) {
    for (int64_t row = rows.begin; row < rows.end; row += kRows) {
      const int64_t tile_rows = std::min(kRows, sizes_.small_channels - row);
      const float* const left = gradient + row * volume(sizes_.small) + position * tile_rows;
      const Tile tile = tile_for(tile_rows, channels);
      for_each_position(sizes_.kernel, [&](int64_t tap, const Values& k) {
        const float* const right = panel_ + k[0] * block_.plane() +
                                   k[1] * sizes_.dilation[1] * block_.line() +
                                   k[2] * sizes_.dilation[2] * kColumns;
        tile(left,
             {right, lines, width, sizes_.stride[2] * kColumns, sizes_.stride[1] * block_.line()},
             sums_ + (tap * sizes_.small_channels + row) * kColumns, kColumns, adds);
      });
    }
  }

  const ConvolutionSizes& sizes_;
  const Positions positions_;
  const LargeBlock block_;
  const float* const large_;
  const float* const gradient_;
  float* panel_;
  float* sums_;  // [tap][row][channel]
};

void compute_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t part,
                    int64_t parts, const void* shared, void* out, void* scratch) {
  WeightSums sums(sizes, from, shared, scratch);
  const int64_t blocks = divide_up(sizes.large_channels, kColumns);
  const int64_t tiles = divide_up(sizes.small_channels, kRows);
  const Range range = share(sizes.groups * blocks * tiles, part, parts);
  for (int64_t at = range.begin; at < range.end;) {
    const int64_t block = at / tiles;
    const int64_t end = std::min(range.end, (block + 1) * tiles);
    const Range rows{(at - block * tiles) * kRows,
                     std::min(sizes.small_channels, (end - block * tiles) * kRows)};
    sums.compute(block / blocks, block % blocks * kColumns, rows, static_cast<float*>(out));
    at = end;
  }
}

bool are_finite(const float* values, int64_t count) {
  V zeros(0.0f);  // or nan, once a value is not finite
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

}  // namespace

template <>
const WindowKernels& convolution_window_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr WindowKernels kKernels = {
      {weight_size<true>, correlation_scratch_size<true>, prepare_weight<true>,
       compute_images<true>},
      {weight_size<false>, correlation_scratch_size<false>, prepare_weight<false>,
       compute_images<false>},
      {gradient_size, weight_scratch_size, prepare_gradient, compute_weight},
      are_finite};
  return kKernels;
}

}  // namespace aclnn_host
