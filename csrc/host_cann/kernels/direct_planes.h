// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/kernels/positions.h"
#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/sizes.h"
#include "host_cann/kernels/tap_columns.h"

namespace aclnn_host {
namespace {

// The layout of channels for the loops: planes, in which every kernel tap is a constant offset, so
// that a whole channel is one long vector loop whatever its row length.
//
// x is padded with zeros, and split by the remainder of its positions modulo the stride: o and tap
// k correspond to the element o + k * dilation / stride of the plane with remainder k * dilation %
// stride. Planes have at least the extents of y plus the largest offset. y has the same pitch,
// zeros in its gaps, and enough zeros in front that o - offset stays within memory.
struct Planes {
  Values extents;
  Values remainders;  // number of planes per dimension, for the first taps' remainders
  int64_t plane;      // elements of one plane
  int64_t dst;        // elements from the first to the last of y
  int64_t reach;      // at least the largest offset

  // Rows are multiples of `lanes` for loops that take several rows at a time.
  Planes(const ConvolutionSizes& sizes, int64_t lanes) {
    for (int d = 0; d < 3; ++d) {
      const int64_t period = sizes.stride[d] / std::gcd(sizes.stride[d], sizes.dilation[d]);
      remainders[d] = std::min(sizes.kernel[d], period);
      extents[d] = sizes.dst[d] + (sizes.kernel[d] - 1) * sizes.dilation[d] / sizes.stride[d];
    }
    extents[2] = round_up(extents[2], lanes);
    plane = extents[0] * extents[1] * extents[2];
    dst = index({sizes.dst[0] - 1, sizes.dst[1] - 1, sizes.dst[2] - 1}) + 1;
    reach = plane - dst;
  }
  int64_t index(const Values& at) const {
    return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
  }
  int64_t count() const { return remainders[0] * remainders[1] * remainders[2]; }
};

// Positions of one dimension of a plane that are in x: plane[first + i] is x[from + i * stride].
struct Span {
  int64_t first;
  int64_t from;
  int64_t count;

  Span(const ConvolutionSizes& sizes, const Planes& planes, int d, int64_t remainder) {
    const int64_t stride = sizes.stride[d];
    const int64_t start = remainder * sizes.dilation[d] % stride - sizes.padding[d];
    first = start < 0 ? divide_up(-start, stride) : 0;
    from = start + first * stride;
    const int64_t inside = from < sizes.src[d] ? (sizes.src[d] - from - 1) / stride + 1 : 0;
    count = std::clamp<int64_t>(planes.extents[d] - first, 0, inside);
  }
};

// The operations for one element type: planes of channels in scratch memory, and conversions.
template <class T>
struct DirectPlanes {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = at::vec::Vectorized<Real>;
  static constexpr int64_t kLanes = V::size();
  // Sums of a weight's gradient that a loop keeps in registers.
  static constexpr int64_t kMaxSums = 8;
  // Elements after which the sums go into a double; their planes fit into the L1 cache together.
  static constexpr int64_t kSegment = 4096;

  // A factor and the elements that it multiplies.
  struct Term {
    const Real* from;
    Real factor;
  };
  struct Tap {
    int64_t plane;
    int64_t offset;
  };

  using Columns = TapColumns<Real>;
  using Column = typename Columns::Column;

  // True if several rows are computed at a time: there are several, their taps form columns, and
  // vectors waste little beyond a row's end.
  static bool has_columns(const ConvolutionSizes& sizes) {
    if (sizes.dst[1] < 2 || sizes.stride[1] != 1 || sizes.dilation[1] != 1 ||
        !Columns::has(sizes.kernel[1])) {
      return false;
    }
    return 2 * Planes(sizes, kLanes).extents[2] <= 3 * Planes(sizes, 1).extents[2];
  }

  // The scratch memory of a call.
  struct Scratch {
    bool in_columns;
    Planes planes;
    int64_t taps;
    int64_t src_pitch;  // between planes
    int64_t dst_pitch;  // between channels
    Tap* tap;
    Term* terms;
    Column* columns;
    const Real** bases;  // of the taps of a kernel row
    double* sums;
    Real* result;
    Real* src;
    Real* dst;
    int64_t size;

    // Vectors may extend past the last element.
    static int64_t padded(int64_t count) { return count / kLanes * kLanes + 2 * kLanes; }

    Scratch(const ConvolutionSizes& sizes, void* memory)
        : in_columns(has_columns(sizes)),
          planes(sizes, in_columns ? kLanes : 1),
          taps(volume(sizes.kernel)) {
      // Several rows at a time extend past the last one.
      const int64_t behind = in_columns ? Columns::kRows * planes.extents[2] : 0;
      src_pitch = padded(planes.plane + behind);
      dst_pitch = padded(planes.reach + planes.plane + behind);
      ScratchParts parts(memory);
      tap = parts.take<Tap>(taps);
      const int64_t channels = std::max(sizes.src_channels, sizes.dst_channels);
      terms = parts.take<Term>(in_columns ? 0 : channels * taps);
      columns = parts.take<Column>(in_columns ? channels * sizes.kernel[0] * sizes.kernel[2] : 0);
      bases = parts.take<const Real*>(in_columns ? sizes.kernel[2] : 0);
      sums = parts.take<double>(sizes.dst_channels * sizes.src_channels * taps);
      result = parts.take<Real>(src_pitch);
      src = parts.take<Real>(sizes.src_channels * planes.count() * src_pitch);
      dst = parts.take<Real>(sizes.dst_channels * dst_pitch);
      size = parts.size();
      if (memory == nullptr) return;
      for (int64_t z = 0, i = 0; z < sizes.kernel[0]; ++z) {
        for (int64_t y = 0; y < sizes.kernel[1]; ++y) {
          for (int64_t x = 0; x < sizes.kernel[2]; ++x, ++i) tap[i] = tap_at(sizes, {z, y, x});
        }
      }
    }

    Tap tap_at(const ConvolutionSizes& sizes, const Values& k) const {
      Values offset;
      int64_t plane = 0;
      for (int d = 0; d < 3; ++d) {
        plane = plane * planes.remainders[d] + k[d] % planes.remainders[d];
        offset[d] = k[d] * sizes.dilation[d] / sizes.stride[d];
      }
      return {plane, planes.index(offset)};
    }

    Real* src_plane(int64_t channel, int64_t plane) const {
      return src + (channel * planes.count() + plane) * src_pitch;
    }
    Real* dst_plane(int64_t channel) const { return dst + channel * dst_pitch + planes.reach; }

    // Elements outside x or y stay zero for all items.
    void clear_src(const ConvolutionSizes& sizes) const {
      std::fill_n(src, sizes.src_channels * planes.count() * src_pitch, Real(0));
    }
    void clear_dst(const ConvolutionSizes& sizes) const {
      std::fill_n(dst, sizes.dst_channels * dst_pitch, Real(0));
    }
  };

  static int64_t scratch_size(const ConvolutionSizes& sizes) {
    return Scratch(sizes, nullptr).size;
  }

  // Elements converted at a time.
  static constexpr int64_t kStep = std::is_same_v<T, Real> ? kLanes : 2 * kLanes;

  static void widen_step(const T* from, Real* to) {
    if constexpr (std::is_same_v<T, Real>) {
      V::loadu(from).store(to);
    } else {
      const auto [first, second] =
          at::vec::convert_to_float<T>(at::vec::Vectorized<T>::loadu(from));
      first.store(to);
      second.store(to + kLanes);
    }
  }

  static void narrow_step(const Real* from, T* to) {
    if constexpr (std::is_same_v<T, Real>) {
      V::loadu(from).store(to);
    } else {
      at::vec::convert_from_float<T>(V::loadu(from), V::loadu(from + kLanes)).store(to);
    }
  }

  // Calls step(i) for steps that cover n >= kStep elements; the last two may overlap.
  template <class Step>
  static void for_each_step(int64_t n, Step step) {
    for (int64_t i = 0; i + kStep <= n; i += kStep) step(i);
    if (n % kStep != 0) step(n - kStep);
  }

  static void widen(const T* from, int64_t stride, Real* to, int64_t n) {
    if (stride == 1 && n >= kStep) {
      for_each_step(n, [&](int64_t i) { widen_step(from + i, to + i); });
    } else if (stride == 2) {  // a constant, so that the compiler vectorises
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Real>(from[i * 2]);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Real>(from[i * stride]);
    }
  }

  static void narrow(const Real* from, T* to, int64_t n) {
    if (n >= kStep) {
      for_each_step(n, [&](int64_t i) { narrow_step(from + i, to + i); });
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
    }
  }

  static void narrow(const Real* from, T* to, int64_t stride, int64_t n) {
    if (stride == 1) return narrow(from, to, n);
    constexpr int64_t kChunk = 128;
    T chunk[kChunk];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t count = std::min(kChunk, n - i);
      narrow(from + i, chunk, count);
      for (int64_t k = 0; k < count; ++k) to[(i + k) * stride] = chunk[k];
    }
  }

  // Calls body(plane, position in it, position in a channel of x, count) for the rows of x in its
  // planes.
  template <class Body>
  static void for_each_src_row(const ConvolutionSizes& sizes, const Planes& planes, Body body) {
    int64_t plane = 0;
    for (int64_t rz = 0; rz < planes.remainders[0]; ++rz) {
      const Span z(sizes, planes, 0, rz);
      for (int64_t ry = 0; ry < planes.remainders[1]; ++ry) {
        const Span y(sizes, planes, 1, ry);
        for (int64_t rx = 0; rx < planes.remainders[2]; ++rx, ++plane) {
          const Span x(sizes, planes, 2, rx);
          for (int64_t i = 0; i < z.count; ++i) {
            for (int64_t j = 0; j < y.count; ++j) {
              const int64_t row =
                  (z.from + i * sizes.stride[0]) * sizes.src[1] + y.from + j * sizes.stride[1];
              body(plane, planes.index({z.first + i, y.first + j, x.first}),
                   row * sizes.src[2] + x.from, x.count);
            }
          }
        }
      }
    }
  }

  // The same for the rows of y.
  template <class Body>
  static void for_each_dst_row(const ConvolutionSizes& sizes, const Planes& planes, Body body) {
    for (int64_t z = 0; z < sizes.dst[0]; ++z) {
      for (int64_t y = 0; y < sizes.dst[1]; ++y) {
        body(planes.index({z, y, 0}), (z * sizes.dst[1] + y) * sizes.dst[2], sizes.dst[2]);
      }
    }
  }

  // Prefetches the next item, unless `next` is not before `end`; the hardware prefetcher does not
  // predict the jump from one image of a channel to the next.
  static void prefetch(const T* from, int64_t count, int64_t item, int64_t next, int64_t end) {
    if (next >= end) return;
    constexpr int64_t kLine = 64 / sizeof(T);
    from += (next - item) * count;
    for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, 0, 2);
  }

  // Item `next`, if it is before `end`, will be read after this one.
  static void read_src(const ConvolutionSizes& sizes, const Scratch& scratch, const void* src,
                       int64_t item, int64_t next, int64_t end) {
    const int64_t count = sizes.src_channels * volume(sizes.src);
    const T* from = static_cast<const T*>(src) + item * count;
    prefetch(from, count, item, next, end);
    for (int64_t l = 0; l < sizes.src_channels; ++l, from += volume(sizes.src)) {
      for_each_src_row(sizes, scratch.planes,
                       [&](int64_t plane, int64_t at, int64_t row, int64_t n) {
                         widen(from + row, sizes.stride[2], scratch.src_plane(l, plane) + at, n);
                       });
    }
  }

  static void read_dst(const ConvolutionSizes& sizes, const Scratch& scratch, const void* dst,
                       int64_t item, int64_t next, int64_t end) {
    const int64_t count = sizes.dst_channels * volume(sizes.dst);
    const T* from = static_cast<const T*>(dst) + item * count;
    prefetch(from, count, item, next, end);
    for (int64_t s = 0; s < sizes.dst_channels; ++s, from += volume(sizes.dst)) {
      for_each_dst_row(sizes, scratch.planes, [&](int64_t at, int64_t row, int64_t n) {
        widen(from + row, 1, scratch.dst_plane(s) + at, n);
      });
    }
  }
};

}  // namespace
}  // namespace aclnn_host
