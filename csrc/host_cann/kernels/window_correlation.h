// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/kernels/matmul_tile.h"
#include "host_cann/kernels/positions.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

struct Range {
  int64_t begin;
  int64_t end;
};

// A part's share of the items, in whole steps.
inline Range share(int64_t items, int64_t part, int64_t parts, int64_t step = 1) {
  const int64_t steps = divide_up(items, step);
  return {steps * part / parts * step, std::min(items, steps * (part + 1) / parts * step)};
}

// The kernel elements that apply to an image, in each dimension: first, first + step, ...; and
// their offsets from a window's begin: offset, offset + offset_step, ...
struct Taps {
  Values first{};
  Values step{1, 1, 1};
  Values count;
  Values offset;
  Values offset_step;

  int64_t min_offset(int d) const {
    return std::min(offset[d], offset[d] + (count[d] - 1) * offset_step[d]);
  }
  // The distance from the smallest to the largest offset.
  int64_t reach(int d) const { return (count[d] - 1) * std::abs(offset_step[d]); }
  int64_t beyond_min(int d, int64_t i) const {
    return offset[d] + i * offset_step[d] - min_offset(d);
  }
};

// Channels of images become others: out[row] = sum over channel, tap of weight[row][channel][tap] *
// image[channel][position * stride + offset of the tap].
struct Correlation {
  int64_t channels;  // per group
  int64_t rows;      // per group
  Values image;
  Values stride;
  Values positions;
  Taps taps;
  // Where the positions are in the result.
  Values out;
  Values out_first;
  Values out_step;
  // Strides of the weight between rows, and between channels.
  int64_t weight_row;
  int64_t weight_channel;

  int64_t tap_count() const { return volume(taps.count); }
  int64_t depth() const { return channels * tap_count(); }
};

inline Correlation forward_correlation(const ConvolutionSizes& sizes) {
  const int64_t taps = volume(sizes.kernel);
  Taps all{.count = sizes.kernel, .offset = {}, .offset_step = sizes.dilation};
  for (int d = 0; d < 3; ++d) all.offset[d] = -sizes.padding[d];
  return {.channels = sizes.src_channels,
          .rows = sizes.dst_channels,
          .image = sizes.src,
          .stride = sizes.stride,
          .positions = sizes.dst,
          .taps = all,
          .out = sizes.dst,
          .out_first = {},
          .out_step = {1, 1, 1},
          .weight_row = sizes.src_channels * taps,
          .weight_channel = taps};
}

// Every stride-th position of src from `phase` on: they use the same kernel elements.
inline Correlation backward_data_correlation(const ConvolutionSizes& sizes, const Values& phase) {
  const int64_t taps = volume(sizes.kernel);
  Correlation c{.channels = sizes.dst_channels,
                .rows = sizes.src_channels,
                .image = sizes.dst,
                .stride = {1, 1, 1},
                .positions = {},
                .taps = {.count = {}, .offset = {}, .offset_step = {}},
                .out = sizes.src,
                .out_first = phase,
                .out_step = sizes.stride,
                .weight_row = taps,
                .weight_channel = sizes.src_channels * taps};
  for (int d = 0; d < 3; ++d) {
    const int64_t stride = sizes.stride[d];
    c.positions[d] = divide_up(sizes.src[d] - phase[d], stride);
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

// Calls body(correlation, location of its packed weight) for the correlations that make an image.
template <class Body>
void for_each_correlation(const ConvolutionSizes& sizes, bool forward, Body body) {
  if (forward) return body(forward_correlation(sizes), int64_t{0});
  int64_t weight = 0;
  Values phases;
  for (int d = 0; d < 3; ++d) phases[d] = std::min(sizes.stride[d], sizes.src[d]);
  for_each_position(phases, [&](int64_t, const Values& phase) {
    const Correlation c = backward_data_correlation(sizes, phase);
    body(c, weight);
    weight += sizes.groups * c.rows * c.depth();
  });
}

}  // namespace
}  // namespace aclnn_host
