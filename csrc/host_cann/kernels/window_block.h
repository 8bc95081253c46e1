// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "host_cann/kernels/matmul_tile.h"
#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/window_correlation.h"

namespace aclnn_host {
namespace {

// The images of a block of windows fit into the L2 cache together with the data that passes through
// it, a panel of windows into the L1 cache: this many columns, and about this many rows.
constexpr int64_t kBlockColumns = 512;
constexpr int64_t kBlockDepth = 256;
static_assert(kBlockColumns % kColumns == 0);
// Elements after them, which vectors may overwrite.
constexpr int64_t kSlack = 16;
static_assert(kLanes <= kSlack);

// Prefetch distance in channels.
constexpr int64_t kAhead = 3;

// Copies a few contiguous elements; a call of memcpy would take longer.
inline void copy(const float* from, float* to, int64_t count) {
  if (count < kLanes) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) V::loadu(from + i).store(to + i);
  V::loadu(from + count - kLanes).store(to + count - kLanes);
}

// The same, adding a number to each.
inline void copy_plus(float number, const float* from, float* to, int64_t count) {
  if (count < kLanes) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] + number;
    return;
  }
  const V all(number);
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) (V::loadu(from + i) + all).store(to + i);
  (V::loadu(from + count - kLanes) + all).store(to + count - kLanes);
}

// Consecutive windows of one line in one panel.
struct Run {
  int64_t column;  // in the block
  int64_t count;
  int64_t out;  // offset in the result's channel
};

// Windows of one line: the elements for one kernel element are contiguous.
struct LineWindows {
  int64_t column;  // in the block
  int64_t count;
  int64_t from;  // offset in the lines
};

// A vector to copy, which may extend over the next.
struct VectorCopy {
  int64_t from;  // offset in the lines
  int64_t to;    // offset in the panel
};

// Windows of one plane of an image, starting at a line.
struct Plane {
  int64_t image;
  int64_t z;
  int64_t y;
  int64_t lines;
};

// The image lines, with surrounding zeros, that a block of windows is built from. Lines of one
// plane of windows and one plane of taps are adjacent; within a line, elements one stride apart are
// contiguous.
struct LineSizes {
  int64_t remainders;  // modulo the stride
  int64_t pitch;       // between remainders
  int64_t lines;       // per plane of taps
  int64_t tap_planes;
  int64_t planes;  // planes of windows

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

// A range of windows, in the order of images and positions, as a right matrix: in panels of
// kColumns, each [channel, tap][column], built one at a time.
class WindowBlock {
 public:
  WindowBlock(const Correlation& c, int64_t groups, ScratchParts& parts)
      : c_(c),
        groups_(groups),
        sizes_(c),
        channels_(std::clamp<int64_t>(kBlockDepth / c.tap_count(), 1, c.channels)),
        lines_(parts.take<float>(channels_ * sizes_.count() + kSlack)),
        panel_(parts.take<float>(channels_ * c.tap_count() * kColumns + kSlack)),
        places_(parts.take<int64_t>(channels_ * c.tap_count())),
        planes_(parts.take<Plane>(sizes_.planes)),
        runs_(parts.take<Run>(kBlockColumns)),
        line_windows_(parts.take<LineWindows>(kBlockColumns)),
        copies_(parts.take<VectorCopy>(kBlockColumns)),
        copy_begins_(parts.take<int64_t>(kBlockColumns / kColumns + 1)) {}

  // The number of channels in memory at a time.
  int64_t channels() const { return channels_; }
  int64_t columns() const { return columns_; }
  std::span<const LineWindows> line_windows() const { return {line_windows_, line_window_count_}; }
  // Offsets in the lines, relative to the first of the windows, of the elements for each channel
  // and kernel element. Vectors may extend past them.
  std::span<const int64_t> places() const {
    return {places_, static_cast<size_t>(read_ * c_.tap_count())};
  }
  const float* lines() const { return lines_; }

  // Moves to the windows from `begin` on, up to `end` or as many as fit; returns their end.
  int64_t place(int64_t begin, int64_t end) {
    const int64_t width = c_.positions[2];
    // A part of one line, if lines are long.
    const bool long_lines = width >= kBlockColumns;
    end = std::min({end, begin + kBlockColumns,
                    long_lines ? (begin / width + 1) * width : begin + kBlockColumns});
    first_x_ = long_lines ? begin % width : 0;
    columns_ = end - begin;
    plane_count_ = 0;
    run_count_ = 0;
    line_window_count_ = 0;
    copy_count_ = 0;
    const int64_t taps = c_.tap_count();
    for_each_position(c_.taps.count, [&](int64_t tap, const Values& at) {
      const int64_t x = c_.taps.beyond_min(2, at[2]);
      places_[tap] = at[0] * sizes_.tap_plane() + c_.taps.beyond_min(1, at[1]) * sizes_.line() +
                     x % c_.stride[2] * sizes_.pitch + x / c_.stride[2];
    });
    for (int64_t i = taps; i < channels_ * taps; ++i) {
      places_[i] = places_[i - taps] + sizes_.count();
    }
    for (int64_t at = begin; at < end;) at += place_line(at, at - begin, end - at);
    copy_begins_[divide_up(columns_, kColumns)] = copy_count_;
    return end;
  }

  // Reads this many channels of the images.
  void read(const float* images, int64_t count) {
    read_ = count;
    for (int64_t i = 0; i < count; ++i) {
      fill_lines(images + i * volume(c_.image), lines_ + i * sizes_.count());
    }
  }

  // The panel of the columns starting here.
  TileRows panel(int64_t column) {
    const int64_t taps = c_.tap_count();
    if (columns_ - column < kColumns) std::fill_n(panel_, read_ * taps * kColumns, 0.0f);
    const int64_t index = column / kColumns;
    const VectorCopy* const copies = copies_ + copy_begins_[index];
    const int64_t count = copy_begins_[index + 1] - copy_begins_[index];
    switch (count) {
      case 2: copy_vectors<2>(copies, count); break;
      case 3: copy_vectors<3>(copies, count); break;
      case 4: copy_vectors<4>(copies, count); break;
      default: copy_vectors<0>(copies, count); break;
    }
    return TileRows::panel(panel_, read_ * taps);
  }

  // Stores a row of the result, plus its bias, in a channel.
  void store(const float* row, float bias, float* channel) const {
    for (const Run* run = runs_; run < runs_ + run_count_; ++run) {
      const float* const from = row + run->column;
      float* const to = channel + run->out;
      __builtin_prefetch(to + kAhead * volume(c_.out), 1);
      if (c_.out_step[2] == 1) {
        copy_plus(bias, from, to, run->count);
      } else {
        for (int64_t i = 0; i < run->count; ++i) to[i * c_.out_step[2]] = from[i] + bias;
      }
    }
  }

 private:
  // Adds at most `most` windows of one line from `at` on; returns their number.
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
    line_windows_[line_window_count_++] = {column, count, from + x};
    for (int64_t i = 0; i < count;) {
      const int64_t in_panel = (column + i) % kColumns;
      const int64_t length = std::min(count - i, kColumns - in_panel);
      if (in_panel == 0) copy_begins_[(column + i) / kColumns] = copy_count_;
      for (int64_t k = 0; k < length; k += kLanes) {
        copies_[copy_count_++] = {from + x + i + k, in_panel + k};
      }
      runs_[run_count_++] = {column + i, length, out + i * c_.out_step[2]};
      i += length;
    }
    return count;
  }

  // Reads one channel, given that of the first image.
  void fill_lines(const float* channel, float* lines) const {
    const int64_t image_size = groups_ * c_.channels * volume(c_.image);
    for (int64_t i = 0; i < plane_count_; ++i) {
      const Plane& plane = planes_[i];
      for (int64_t tap = 0; tap < sizes_.tap_planes; ++tap) {
        const int64_t z = plane.z * c_.stride[0] + c_.taps.offset[0] + tap * c_.taps.offset_step[0];
        const int64_t y = plane.y * c_.stride[1] + c_.taps.min_offset(1);
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

  // Prefetches the elements of a line that a block reads.
  void prefetch(const float* line) const {
    const int64_t count = std::min(c_.image[2], sizes_.pitch * c_.stride[2]);
    const float* const first = line + first_x_ * c_.stride[2];
    for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(first + i);
  }

  void fill_line(const float* line, float* to) const {
    const int64_t stride = c_.stride[2];
    const int64_t begin = first_x_ * stride + c_.taps.min_offset(2);
    if (stride == 1) return fill_line<1>(line, begin, 1, to);
    for (int64_t remainder = 0; remainder < sizes_.remainders; ++remainder, to += sizes_.pitch) {
      if (stride == 2) {  // a constant, so that the compiler vectorises
        fill_line<2>(line, begin + remainder, 2, to);
      } else {
        fill_line<0>(line, begin + remainder, stride, to);
      }
    }
  }

  // Copies elements of a line that are a stride apart, from `first` on, which may lie outside the
  // line. kStride 0 means any stride.
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

  // Elements that a vector overwrites are written afterwards. kCount 0 means any count.
  template <int kCount>
  void copy_vectors(const VectorCopy* copies, int64_t any) const {
    const int64_t count = kCount == 0 ? any : kCount;
    float* to = panel_;
    for (const int64_t place : places()) {
      const float* const from = lines_ + place;
      for (int64_t i = 0; i < count; ++i) V::loadu(from + copies[i].from).store(to + copies[i].to);
      to += kColumns;
    }
  }

  const Correlation& c_;
  const int64_t groups_;
  const LineSizes sizes_;
  const int64_t channels_;
  float* const lines_;
  float* const panel_;
  int64_t* const places_;
  Plane* const planes_;
  Run* const runs_;
  LineWindows* const line_windows_;
  VectorCopy* const copies_;
  int64_t* const copy_begins_;  // per panel
  int64_t first_x_ = 0;         // of all runs, for long lines
  int64_t columns_ = 0;
  int64_t read_ = 0;  // number of channels read
  int64_t plane_count_ = 0;
  int64_t run_count_ = 0;
  size_t line_window_count_ = 0;
  int64_t copy_count_ = 0;
};

}  // namespace
}  // namespace aclnn_host
