#include "host_cann/kernels/convolution_direct.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/direct_planes.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;

template <class T>
struct Kernels : DirectPlanes<T> {
  using Base = DirectPlanes<T>;
  using Base::for_each_dst_row;
  using Base::for_each_src_row;
  using Base::kLanes;
  using Base::kMaxSums;
  using Base::kSegment;
  using Base::narrow;
  using Base::read_dst;
  using Base::read_src;
  using Base::scratch_size;
  using typename Base::Column;
  using typename Base::Columns;
  using typename Base::Real;
  using typename Base::Scratch;
  using typename Base::Tap;
  using typename Base::Term;
  using typename Base::V;

  template <int kVectors>
  static void add_block(const Term* terms, int64_t count, Real bias, int64_t i, Real* to) {
    V sums[kVectors];
    for (V& sum : sums) sum = V(Real(0));
    for (int64_t t = 0; t < count; ++t) {
      const V factor(terms[t].factor);
      const Real* const from = terms[t].from + i;
      for (int v = 0; v < kVectors; ++v) {
        sums[v] = fmadd(V::loadu(from + v * kLanes), factor, sums[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) (sums[v] + V(bias)).store(to + i + v * kLanes);
  }

  // to[i] = sum over the terms of from[i] * factor, and the bias; writes up to a vector past n.
  // Processes as many vectors at a time as keep the multipliers busy. Not inlined: inlining makes
  // GCC spill registers.
  [[gnu::noinline]] static void add_up(const Term* terms, int64_t count, Real bias, Real* to,
                                       int64_t n) {
    int64_t i = 0;
    for (; i + 8 * kLanes <= n; i += 8 * kLanes) add_block<8>(terms, count, bias, i, to);
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) add_block<4>(terms, count, bias, i, to);
    for (; i < n; i += kLanes) add_block<1>(terms, count, bias, i, to);
  }

  // Adds the sums over i of dst[i] * from[t][i] to sums[t].
  template <int64_t kTaps>
  static void multiply(const Real* dst, const Real* const* taps, int64_t n, double* sums) {
    const Real* from[kTaps];
    V partial[kTaps];
    for (int64_t t = 0; t < kTaps; ++t) {
      from[t] = taps[t];
      partial[t] = V(Real(0));
    }
    for (int64_t i = 0; i < n; i += kLanes) {
      const V factor = V::loadu(dst + i);
      for (int64_t t = 0; t < kTaps; ++t) {
        partial[t] = fmadd(V::loadu(from[t] + i), factor, partial[t]);
      }
    }
    for (int64_t t = 0; t < kTaps; ++t) {
      Real lanes[kLanes];
      partial[t].store(lanes);
      for (const Real lane : lanes) sums[t] += lane;
    }
  }

  static Real bias_of(const ConvolutionTensors& from, int64_t channel) {
    return from.bias != nullptr ? static_cast<Real>(static_cast<const T*>(from.bias)[channel]) : 0;
  }

  static const T* weight_of(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                            int64_t channel, int64_t taps) {
    return static_cast<const T*>(from.weight) + channel * sizes.src_channels * taps;
  }

  static void forward(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                      int64_t end, void* dst, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.clear_src(sizes);
    for (int64_t item = begin; item < end; ++item) {
      read_src(sizes, scratch, from.src, item, item + 1, end);
      T* to = static_cast<T*>(dst) + item * sizes.dst_channels * volume(sizes.dst);
      for (int64_t s = 0; s < sizes.dst_channels; ++s, to += volume(sizes.dst)) {
        const int64_t channel = item % sizes.groups * sizes.dst_channels + s;
        const T* const factors = weight_of(sizes, from, channel, scratch.taps);
        const Real bias = bias_of(from, channel);
        if (scratch.in_columns) {
          const int64_t count = dst_columns(sizes, scratch, factors);
          if (stores_rows(sizes.dst)) {
            add_to_image(sizes, scratch, count, bias, sizes.dst, {0, 0, 0}, to);
            continue;
          }
          add_to_plane(sizes, scratch, count, bias, dst_rows(sizes, scratch));
        } else {
          const int64_t count = dst_terms(sizes, scratch, factors);
          add_up(scratch.terms, count, bias, scratch.result, scratch.planes.dst);
        }
        for_each_dst_row(sizes, scratch.planes, [&](int64_t at, int64_t row, int64_t n) {
          narrow(scratch.result + at, to + row, 1, n);
        });
      }
    }
  }

  // Collects the terms of channel s of y, given its factors; returns their number.
  static int64_t dst_terms(const ConvolutionSizes& sizes, const Scratch& scratch,
                           const T* factors) {
    Term* term = scratch.terms;
    for (int64_t l = 0; l < sizes.src_channels; ++l) {
      for (int64_t t = 0; t < scratch.taps; ++t) {
        const Tap& tap = scratch.tap[t];
        *term++ = {scratch.src_plane(l, tap.plane) + tap.offset, static_cast<Real>(*factors++)};
      }
    }
    return term - scratch.terms;
  }

  static int64_t dst_columns(const ConvolutionSizes& sizes, const Scratch& scratch,
                             const T* factors) {
    Column* column = scratch.columns;
    for (int64_t l = 0; l < sizes.src_channels; ++l, factors += scratch.taps) {
      for_each_column(sizes, [&](int64_t first) {
        const Tap& tap = scratch.tap[first];
        column->from = scratch.src_plane(l, tap.plane) + tap.offset;
        for (int64_t j = 0; j < sizes.kernel[1]; ++j) {
          column->factors[j] = static_cast<Real>(factors[first + j * sizes.kernel[2]]);
        }
        ++column;
      });
    }
    return column - scratch.columns;
  }

  // True if an image's rows are long enough to store results directly.
  static bool stores_rows(const Values& image) {
    return std::is_same_v<T, Real> && image[1] >= Columns::kRows && image[2] >= kLanes;
  }

  // Accumulates columns for the rows of an image; the first position is at `begin` of the plane.
  static void add_to_image(const ConvolutionSizes& sizes, const Scratch& scratch, int64_t count,
                           Real bias, const Values& image, const Values& begin, T* to) {
    if constexpr (std::is_same_v<T, Real>) {
      for (int64_t z = 0; z < image[0]; ++z, to += image[1] * image[2]) {
        const int64_t at = scratch.planes.index({begin[0] + z, begin[1], begin[2]});
        Columns::add(sizes.kernel[1], scratch.columns, count, bias, scratch.planes.extents[2],
                     {at, to, image[2], image[1], image[2]});
      }
    }
  }

  // The same for the first rows of the plane, into the result's rows.
  static void add_to_plane(const ConvolutionSizes& sizes, const Scratch& scratch, int64_t count,
                           Real bias, int64_t rows) {
    const int64_t pitch = scratch.planes.extents[2];
    Columns::add(sizes.kernel[1], scratch.columns, count, bias, pitch,
                 {0, scratch.result, pitch, round_up(rows, Columns::kRows), pitch});
  }

  // Calls body(tap) for the first tap of each column.
  template <class Body>
  static void for_each_column(const ConvolutionSizes& sizes, Body body) {
    for (int64_t z = 0; z < sizes.kernel[0]; ++z) {
      for (int64_t x = 0; x < sizes.kernel[2]; ++x) {
        body(z * sizes.kernel[1] * sizes.kernel[2] + x);
      }
    }
  }

  // The number of a plane's rows that belong to y.
  static int64_t dst_rows(const ConvolutionSizes& sizes, const Scratch& scratch) {
    return (sizes.dst[0] - 1) * scratch.planes.extents[1] + sizes.dst[1];
  }

  // Kernels without zeros between the rows, which turn an inf or NaN into NaN.
  static const DirectKernels& exact() {
    const DirectKernelsByType& kernels = convolution_direct_kernels<Capability::kReference>();
    if constexpr (std::is_same_v<T, float>) return kernels.float32;
    if constexpr (std::is_same_v<T, double>) return kernels.float64;
    if constexpr (std::is_same_v<T, c10::Half>) return kernels.float16;
    return kernels.bfloat16;
  }

  // True if every position of x is in a plane.
  static bool covers(const ConvolutionSizes& sizes, const Planes& planes) {
    for (int d = 0; d < 3; ++d) {
      if (planes.remainders[d] != sizes.stride[d] ||
          planes.extents[d] * sizes.stride[d] < sizes.src[d] + sizes.padding[d]) {
        return false;
      }
    }
    return true;
  }

  static bool is_finite(const T* values, int64_t n) {
    return std::all_of(values, values + n,
                       [](T value) { return std::isfinite(static_cast<Real>(value)); });
  }

  static void backward_data(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                            int64_t begin, int64_t end, void* src, void* memory) {
    const Scratch scratch(sizes, memory);
    const Planes& planes = scratch.planes;
    const int64_t group_weights = sizes.dst_channels * sizes.src_channels * scratch.taps;
    scratch.clear_dst(sizes);
    const bool covered = covers(sizes, planes);
    const bool stores_now =
        scratch.in_columns && covered && stores_rows(sizes.src) && sizes.stride == Values{1, 1, 1};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % sizes.groups;
      const T* weight = weight_of(sizes, from, group * sizes.dst_channels, scratch.taps);
      if (!is_finite(weight, group_weights)) {
        exact().backward_data(sizes, from, item, item + 1, src, nullptr);
        continue;
      }
      read_dst(sizes, scratch, from.dst, item, item + 1, end);
      T* to = static_cast<T*>(src) + item * sizes.src_channels * volume(sizes.src);
      for (int64_t l = 0; l < sizes.src_channels; ++l, to += volume(sizes.src)) {
        const Real bias = bias_of(from, group * sizes.src_channels + l);
        if (stores_now) {
          const int64_t count = src_columns(sizes, scratch, weight, l, 0);
          add_to_image(sizes, scratch, count, bias, sizes.src, sizes.padding, to);
          continue;
        }
        if (!covered) std::fill_n(to, volume(sizes.src), static_cast<T>(bias));
        int64_t ready = -1;
        for_each_src_row(sizes, planes, [&](int64_t plane, int64_t at, int64_t row, int64_t n) {
          if (plane != ready) {
            if (scratch.in_columns) {
              const int64_t count = src_columns(sizes, scratch, weight, l, plane);
              add_to_plane(sizes, scratch, count, bias, planes.extents[0] * planes.extents[1]);
            } else {
              const int64_t count = src_terms(sizes, scratch, weight, l, plane);
              add_up(scratch.terms, count, bias, scratch.result, planes.plane);
            }
            ready = plane;
          }
          narrow(scratch.result + at, to + row, sizes.stride[2], n);
        });
      }
    }
  }

  // Collects the terms of a plane of channel l of x; returns their number.
  static int64_t src_terms(const ConvolutionSizes& sizes, const Scratch& scratch, const T* weight,
                           int64_t l, int64_t plane) {
    Term* term = scratch.terms;
    for (int64_t s = 0; s < sizes.dst_channels; ++s) {
      const T* const factors = weight + (s * sizes.src_channels + l) * scratch.taps;
      for (int64_t t = 0; t < scratch.taps; ++t) {
        if (scratch.tap[t].plane != plane) continue;
        *term++ = {scratch.dst_plane(s) - scratch.tap[t].offset, static_cast<Real>(factors[t])};
      }
    }
    return term - scratch.terms;
  }

  // From a column's last tap to its first, because it reads in reverse.
  static int64_t src_columns(const ConvolutionSizes& sizes, const Scratch& scratch, const T* weight,
                             int64_t l, int64_t plane) {
    Column* column = scratch.columns;
    for (int64_t s = 0; s < sizes.dst_channels; ++s) {
      const T* const factors = weight + (s * sizes.src_channels + l) * scratch.taps;
      for_each_column(sizes, [&](int64_t first) {
        const int64_t last = first + (sizes.kernel[1] - 1) * sizes.kernel[2];
        if (scratch.tap[last].plane != plane) return;
        column->from = scratch.dst_plane(s) - scratch.tap[last].offset;
        for (int64_t j = 0; j < sizes.kernel[1]; ++j) {
          column->factors[j] = static_cast<Real>(factors[last - j * sizes.kernel[2]]);
        }
        ++column;
      });
    }
    return column - scratch.columns;
  }

  static void backward_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                              int64_t begin, int64_t end, void* weight, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.clear_src(sizes);
    scratch.clear_dst(sizes);
    const int64_t channel_weights = sizes.src_channels * scratch.taps;
    const int64_t group_weights = sizes.dst_channels * channel_weights;
    for (int64_t group = begin; group < end; ++group) {
      Real* const to = static_cast<Real*>(weight) + group * group_weights;
      double* const sums = scratch.sums;
      std::fill_n(sums, group_weights, 0.0);
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const int64_t item = n * sizes.groups + group;
        const int64_t next = item + sizes.groups;
        read_src(sizes, scratch, from.src, item, next, sizes.batch * sizes.groups);
        read_dst(sizes, scratch, from.dst, item, next, sizes.batch * sizes.groups);
        for (int64_t s = 0; s < sizes.dst_channels; ++s) {
          for (int64_t l = 0; l < sizes.src_channels; ++l) {
            double* const to_sums = sums + s * channel_weights + l * scratch.taps;
            if (scratch.in_columns) {
              multiply_columns(sizes, scratch, s, l, to_sums);
            } else {
              multiply_all(scratch, s, l, to_sums);
            }
          }
        }
      }
      // An inf or NaN may have been multiplied by a zero between the rows.
      if (std::all_of(sums, sums + group_weights, [](double sum) { return std::isfinite(sum); })) {
        std::copy_n(sums, group_weights, to);
      } else {
        exact().backward_weight(sizes, from, group, group + 1, weight, nullptr);
      }
    }
  }

  // Computes the sums of the taps of one channel of y and one of x.
  static void multiply_all(const Scratch& scratch, int64_t s, int64_t l, double* sums) {
    using Multiply = void (*)(const Real*, const Real* const*, int64_t, double*);
    static constexpr Multiply kMultiply[kMaxSums] = {multiply<1>, multiply<2>, multiply<3>,
                                                     multiply<4>, multiply<5>, multiply<6>,
                                                     multiply<7>, multiply<8>};
    const int64_t blocks = divide_up(scratch.taps, kMaxSums);
    for (int64_t i = 0; i < scratch.planes.dst; i += kSegment) {
      const int64_t n = std::min(kSegment, scratch.planes.dst - i);
      for (int64_t block = 0; block < blocks; ++block) {
        // Distributes the taps evenly.
        const int64_t begin = block * scratch.taps / blocks;
        const int64_t count = (block + 1) * scratch.taps / blocks - begin;
        const Real* from[kMaxSums];
        for (int64_t t = 0; t < count; ++t) {
          const Tap& tap = scratch.tap[begin + t];
          from[t] = scratch.src_plane(l, tap.plane) + tap.offset + i;
        }
        kMultiply[count - 1](scratch.dst_plane(s) + i, from, n, sums + begin);
      }
    }
  }

  static void multiply_columns(const ConvolutionSizes& sizes, const Scratch& scratch, int64_t s,
                               int64_t l, double* sums) {
    const int64_t pitch = scratch.planes.extents[2];
    const int64_t rows = round_up(dst_rows(sizes, scratch), Columns::kRows);
    // A segment: a piece of this many rows.
    const int64_t width = std::min(pitch, kSegment / Columns::kRows);
    const int64_t count = kSegment / width / Columns::kRows * Columns::kRows;
    for (int64_t row = 0; row < rows; row += count) {
      for (int64_t i = 0; i < pitch; i += width) {
        for (int64_t z = 0; z < sizes.kernel[0]; ++z) {
          const int64_t at = row * pitch + i;
          const int64_t first = z * sizes.kernel[1] * sizes.kernel[2];
          for (int64_t x = 0; x < sizes.kernel[2]; ++x) {
            const Tap& tap = scratch.tap[first + x];
            scratch.bases[x] = scratch.src_plane(l, tap.plane) + tap.offset + at;
          }
          Columns::multiply(sizes.kernel[1],
                            {scratch.dst_plane(s) + at, scratch.bases, pitch,
                             std::min(count, rows - row), std::min(width, pitch - i)},
                            sizes.kernel[2], sums + first);
        }
      }
    }
  }

  static constexpr DirectKernels all() {
    return {scratch_size, forward, backward_data, backward_weight};
  }
};

}  // namespace

template <>
const DirectKernelsByType& convolution_direct_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr DirectKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
