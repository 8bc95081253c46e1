#include "host_cann/kernels/convolution_direct.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/tap_columns.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;
using at::vec::Vectorized;
using Values = ConvolutionSizes::Values;

// How channels are laid out for the loops: as planes, in which every tap of the kernel is a plain
// offset, so that a whole channel is one long vector loop whatever its rows' length.
//
// x is padded with zeros, and split by the remainder of its positions by the stride: o and tap k
// meet in the plane of remainder k * dilation % stride at o + k * dilation / stride. Planes have
// the extents of y, and of the largest offset behind it, or more. y has the same pitch, zeros in
// its gaps, and so many zeros in front that o - offset stays within memory.
struct Planes {
  Values extents;
  Values remainders;  // how many there are in each dimension, the remainders of the first taps
  int64_t plane;      // elements of one
  int64_t small;      // elements from the first to the last of y
  int64_t reach;      // at least the largest offset

  // Rows are multiples of `lanes` for those who take several at a time.
  Planes(const ConvolutionSizes& sizes, int64_t lanes) {
    for (int d = 0; d < 3; ++d) {
      const int64_t period = sizes.stride[d] / std::gcd(sizes.stride[d], sizes.dilation[d]);
      remainders[d] = std::min(sizes.kernel[d], period);
      extents[d] = sizes.small[d] + (sizes.kernel[d] - 1) * sizes.dilation[d] / sizes.stride[d];
    }
    extents[2] = (extents[2] + lanes - 1) / lanes * lanes;
    plane = extents[0] * extents[1] * extents[2];
    small = index({sizes.small[0] - 1, sizes.small[1] - 1, sizes.small[2] - 1}) + 1;
    reach = plane - small;
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
    first = start < 0 ? (-start + stride - 1) / stride : 0;
    from = start + first * stride;
    const int64_t inside = from < sizes.large[d] ? (sizes.large[d] - from - 1) / stride + 1 : 0;
    count = std::clamp<int64_t>(planes.extents[d] - first, 0, inside);
  }
};

int64_t volume(const Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = Vectorized<Real>;
  static constexpr int64_t kLanes = V::size();
  // Sums of a weight's gradient that a loop has in registers.
  static constexpr int64_t kMaxSums = 8;
  // Elements after which these go to double; their planes fit the L1 cache together.
  static constexpr int64_t kSegment = 4096;

  // A factor and what it is multiplied with, element by element.
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

  // Whether rows are taken several at a time: there are some, their taps lie one below the other,
  // and what vectors have behind a row's end is little.
  static bool has_columns(const ConvolutionSizes& sizes) {
    if (sizes.small[1] < 2 || sizes.stride[1] != 1 || sizes.dilation[1] != 1 ||
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
    int64_t large_pitch;  // from plane to plane
    int64_t small_pitch;  // from channel to channel
    Tap* tap;
    Term* terms;
    Column* columns;
    const Real** bases;  // of the taps of a row of the kernel
    double* sums;
    Real* result;
    Real* large;
    Real* small;
    int64_t size;

    // Vectors may reach past the last element.
    static int64_t padded(int64_t count) { return count / kLanes * kLanes + 2 * kLanes; }

    Scratch(const ConvolutionSizes& sizes, void* memory)
        : in_columns(has_columns(sizes)),
          planes(sizes, in_columns ? kLanes : 1),
          taps(volume(sizes.kernel)) {
      // Several rows at a time reach past the last one.
      const int64_t behind = in_columns ? Columns::kRows * planes.extents[2] : 0;
      large_pitch = padded(planes.plane + behind);
      small_pitch = padded(planes.reach + planes.plane + behind);
      ScratchParts parts(memory);
      tap = parts.take<Tap>(taps);
      const int64_t channels = std::max(sizes.large_channels, sizes.small_channels);
      terms = parts.take<Term>(in_columns ? 0 : channels * taps);
      columns = parts.take<Column>(in_columns ? channels * sizes.kernel[0] * sizes.kernel[2] : 0);
      bases = parts.take<const Real*>(in_columns ? sizes.kernel[2] : 0);
      sums = parts.take<double>(sizes.small_channels * sizes.large_channels * taps);
      result = parts.take<Real>(large_pitch);
      large = parts.take<Real>(sizes.large_channels * planes.count() * large_pitch);
      small = parts.take<Real>(sizes.small_channels * small_pitch);
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

    Real* large_plane(int64_t channel, int64_t plane) const {
      return large + (channel * planes.count() + plane) * large_pitch;
    }
    Real* small_plane(int64_t channel) const {
      return small + channel * small_pitch + planes.reach;
    }

    // What is not in x or y stays zero from item to item.
    void clear_large(const ConvolutionSizes& sizes) const {
      std::fill_n(large, sizes.large_channels * planes.count() * large_pitch, Real(0));
    }
    void clear_small(const ConvolutionSizes& sizes) const {
      std::fill_n(small, sizes.small_channels * small_pitch, Real(0));
    }
  };

  static int64_t scratch_size(const ConvolutionSizes& sizes) {
    return Scratch(sizes, nullptr).size;
  }

  // Elements that are converted at a time.
  static constexpr int64_t kStep = std::is_same_v<T, Real> ? kLanes : 2 * kLanes;

  static void widen_step(const T* from, Real* to) {
    if constexpr (std::is_same_v<T, Real>) {
      V::loadu(from).store(to);
    } else {
      const auto [first, second] = at::vec::convert_to_float<T>(Vectorized<T>::loadu(from));
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
    } else if (stride == 2) {  // a constant, which the compiler can make vectors of
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
  static void for_each_large_row(const ConvolutionSizes& sizes, const Planes& planes, Body body) {
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
                  (z.from + i * sizes.stride[0]) * sizes.large[1] + y.from + j * sizes.stride[1];
              body(plane, planes.index({z.first + i, y.first + j, x.first}),
                   row * sizes.large[2] + x.from, x.count);
            }
          }
        }
      }
    }
  }

  // The same for the rows of y.
  template <class Body>
  static void for_each_small_row(const ConvolutionSizes& sizes, const Planes& planes, Body body) {
    for (int64_t z = 0; z < sizes.small[0]; ++z) {
      for (int64_t y = 0; y < sizes.small[1]; ++y) {
        body(planes.index({z, y, 0}), (z * sizes.small[1] + y) * sizes.small[2], sizes.small[2]);
      }
    }
  }

  // Asks for what is read next, item `next` or nothing if that is not before `end`; the hardware
  // does not foresee the leap from one image of a channel to the next.
  static void prefetch(const T* from, int64_t count, int64_t item, int64_t next, int64_t end) {
    if (next >= end) return;
    constexpr int64_t kLine = 64 / sizeof(T);
    from += (next - item) * count;
    for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, 0, 2);
  }

  // Item `next`, if it is before `end`, is read after this one.
  static void read_large(const ConvolutionSizes& sizes, const Scratch& scratch, const void* large,
                         int64_t item, int64_t next, int64_t end) {
    const int64_t count = sizes.large_channels * volume(sizes.large);
    const T* from = static_cast<const T*>(large) + item * count;
    prefetch(from, count, item, next, end);
    for (int64_t l = 0; l < sizes.large_channels; ++l, from += volume(sizes.large)) {
      for_each_large_row(
          sizes, scratch.planes, [&](int64_t plane, int64_t at, int64_t row, int64_t n) {
            widen(from + row, sizes.stride[2], scratch.large_plane(l, plane) + at, n);
          });
    }
  }

  static void read_small(const ConvolutionSizes& sizes, const Scratch& scratch, const void* small,
                         int64_t item, int64_t next, int64_t end) {
    const int64_t count = sizes.small_channels * volume(sizes.small);
    const T* from = static_cast<const T*>(small) + item * count;
    prefetch(from, count, item, next, end);
    for (int64_t s = 0; s < sizes.small_channels; ++s, from += volume(sizes.small)) {
      for_each_small_row(sizes, scratch.planes, [&](int64_t at, int64_t row, int64_t n) {
        widen(from + row, 1, scratch.small_plane(s) + at, n);
      });
    }
  }

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

  // to[i] = sum over the terms of from[i] * factor, and the bias; writes up to a vector past n. As
  // many vectors at a time as keep the multipliers busy; not inlined, which costs GCC its
  // registers.
  [[gnu::noinline]] static void add_up(const Term* terms, int64_t count, Real bias, Real* to,
                                       int64_t n) {
    int64_t i = 0;
    for (; i + 8 * kLanes <= n; i += 8 * kLanes) add_block<8>(terms, count, bias, i, to);
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) add_block<4>(terms, count, bias, i, to);
    for (; i < n; i += kLanes) add_block<1>(terms, count, bias, i, to);
  }

  // Adds the sums over i of small[i] * from[t][i] to sums[t].
  template <int64_t kTaps>
  static void multiply(const Real* small, const Real* const* taps, int64_t n, double* sums) {
    const Real* from[kTaps];
    V partial[kTaps];
    for (int64_t t = 0; t < kTaps; ++t) {
      from[t] = taps[t];
      partial[t] = V(Real(0));
    }
    for (int64_t i = 0; i < n; i += kLanes) {
      const V factor = V::loadu(small + i);
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
    return static_cast<const T*>(from.weight) + channel * sizes.large_channels * taps;
  }

  static void small(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                    int64_t end, void* small, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.clear_large(sizes);
    for (int64_t item = begin; item < end; ++item) {
      read_large(sizes, scratch, from.large, item, item + 1, end);
      T* to = static_cast<T*>(small) + item * sizes.small_channels * volume(sizes.small);
      for (int64_t s = 0; s < sizes.small_channels; ++s, to += volume(sizes.small)) {
        const int64_t channel = item % sizes.groups * sizes.small_channels + s;
        const T* const factors = weight_of(sizes, from, channel, scratch.taps);
        const Real bias = bias_of(from, channel);
        if (scratch.in_columns) {
          const int64_t count = small_columns(sizes, scratch, factors);
          if (stores_rows(sizes.small)) {
            add_to_image(sizes, scratch, count, bias, sizes.small, {0, 0, 0}, to);
            continue;
          }
          add_to_plane(sizes, scratch, count, bias, small_rows(sizes, scratch));
        } else {
          const int64_t count = small_terms(sizes, scratch, factors);
          add_up(scratch.terms, count, bias, scratch.result, scratch.planes.small);
        }
        for_each_small_row(sizes, scratch.planes, [&](int64_t at, int64_t row, int64_t n) {
          narrow(scratch.result + at, to + row, 1, n);
        });
      }
    }
  }

  // What channel s of y is the sum of, given its factors; returns how many.
  static int64_t small_terms(const ConvolutionSizes& sizes, const Scratch& scratch,
                             const T* factors) {
    Term* term = scratch.terms;
    for (int64_t l = 0; l < sizes.large_channels; ++l) {
      for (int64_t t = 0; t < scratch.taps; ++t) {
        const Tap& tap = scratch.tap[t];
        *term++ = {scratch.large_plane(l, tap.plane) + tap.offset, static_cast<Real>(*factors++)};
      }
    }
    return term - scratch.terms;
  }

  static int64_t small_columns(const ConvolutionSizes& sizes, const Scratch& scratch,
                               const T* factors) {
    Column* column = scratch.columns;
    for (int64_t l = 0; l < sizes.large_channels; ++l, factors += scratch.taps) {
      for_each_column(sizes, [&](int64_t first) {
        const Tap& tap = scratch.tap[first];
        column->from = scratch.large_plane(l, tap.plane) + tap.offset;
        for (int64_t j = 0; j < sizes.kernel[1]; ++j) {
          column->factors[j] = static_cast<Real>(factors[first + j * sizes.kernel[2]]);
        }
        ++column;
      });
    }
    return column - scratch.columns;
  }

  // Whether images' rows are long enough for results to go there at once.
  static bool stores_rows(const Values& image) {
    return std::is_same_v<T, Real> && image[1] >= Columns::kRows && image[2] >= kLanes;
  }

  // Adds up columns for the rows of an image, whose first position is at `begin` of the plane.
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

  // The same for the first rows of the plane, into the result's.
  static void add_to_plane(const ConvolutionSizes& sizes, const Scratch& scratch, int64_t count,
                           Real bias, int64_t rows) {
    const int64_t pitch = scratch.planes.extents[2];
    Columns::add(sizes.kernel[1], scratch.columns, count, bias, pitch,
                 {0, scratch.result, pitch, Columns::round_up(rows), pitch});
  }

  // Calls body(tap) for the first of each column of taps.
  template <class Body>
  static void for_each_column(const ConvolutionSizes& sizes, Body body) {
    for (int64_t z = 0; z < sizes.kernel[0]; ++z) {
      for (int64_t x = 0; x < sizes.kernel[2]; ++x) {
        body(z * sizes.kernel[1] * sizes.kernel[2] + x);
      }
    }
  }

  // Rows of a plane that y has.
  static int64_t small_rows(const ConvolutionSizes& sizes, const Scratch& scratch) {
    return (sizes.small[0] - 1) * scratch.planes.extents[1] + sizes.small[1];
  }

  // Kernels without zeros between the rows, which an inf or nan would make nan.
  static const DirectKernels& exact() {
    const DirectKernelsByType& kernels = convolution_direct_kernels<Capability::kReference>();
    if constexpr (std::is_same_v<T, float>) return kernels.float32;
    if constexpr (std::is_same_v<T, double>) return kernels.float64;
    if constexpr (std::is_same_v<T, c10::Half>) return kernels.float16;
    return kernels.bfloat16;
  }

  // Whether every position of x is in a plane.
  static bool covers(const ConvolutionSizes& sizes, const Planes& planes) {
    for (int d = 0; d < 3; ++d) {
      if (planes.remainders[d] != sizes.stride[d] ||
          planes.extents[d] * sizes.stride[d] < sizes.large[d] + sizes.padding[d]) {
        return false;
      }
    }
    return true;
  }

  static bool is_finite(const T* values, int64_t n) {
    return std::all_of(values, values + n,
                       [](T value) { return std::isfinite(static_cast<Real>(value)); });
  }

  static void large(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                    int64_t end, void* large, void* memory) {
    const Scratch scratch(sizes, memory);
    const Planes& planes = scratch.planes;
    const int64_t group_weights = sizes.small_channels * sizes.large_channels * scratch.taps;
    scratch.clear_small(sizes);
    const bool covered = covers(sizes, planes);
    const bool stores_now = scratch.in_columns && covered && stores_rows(sizes.large) &&
                            sizes.stride == Values{1, 1, 1};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % sizes.groups;
      const T* weight = weight_of(sizes, from, group * sizes.small_channels, scratch.taps);
      if (!is_finite(weight, group_weights)) {
        exact().large(sizes, from, item, item + 1, large, nullptr);
        continue;
      }
      read_small(sizes, scratch, from.small, item, item + 1, end);
      T* to = static_cast<T*>(large) + item * sizes.large_channels * volume(sizes.large);
      for (int64_t l = 0; l < sizes.large_channels; ++l, to += volume(sizes.large)) {
        const Real bias = bias_of(from, group * sizes.large_channels + l);
        if (stores_now) {
          const int64_t count = large_columns(sizes, scratch, weight, l, 0);
          add_to_image(sizes, scratch, count, bias, sizes.large, sizes.padding, to);
          continue;
        }
        if (!covered) std::fill_n(to, volume(sizes.large), static_cast<T>(bias));
        int64_t ready = -1;
        for_each_large_row(sizes, planes, [&](int64_t plane, int64_t at, int64_t row, int64_t n) {
          if (plane != ready) {
            if (scratch.in_columns) {
              const int64_t count = large_columns(sizes, scratch, weight, l, plane);
              add_to_plane(sizes, scratch, count, bias, planes.extents[0] * planes.extents[1]);
            } else {
              const int64_t count = large_terms(sizes, scratch, weight, l, plane);
              add_up(scratch.terms, count, bias, scratch.result, planes.plane);
            }
            ready = plane;
          }
          narrow(scratch.result + at, to + row, sizes.stride[2], n);
        });
      }
    }
  }

  // The terms of a plane of channel l of x; returns how many.
  static int64_t large_terms(const ConvolutionSizes& sizes, const Scratch& scratch, const T* weight,
                             int64_t l, int64_t plane) {
    Term* term = scratch.terms;
    for (int64_t s = 0; s < sizes.small_channels; ++s) {
      const T* const factors = weight + (s * sizes.large_channels + l) * scratch.taps;
      for (int64_t t = 0; t < scratch.taps; ++t) {
        if (scratch.tap[t].plane != plane) continue;
        *term++ = {scratch.small_plane(s) - scratch.tap[t].offset, static_cast<Real>(factors[t])};
      }
    }
    return term - scratch.terms;
  }

  // From the last tap of a column to the first, for what they read lies the other way round.
  static int64_t large_columns(const ConvolutionSizes& sizes, const Scratch& scratch,
                               const T* weight, int64_t l, int64_t plane) {
    Column* column = scratch.columns;
    for (int64_t s = 0; s < sizes.small_channels; ++s) {
      const T* const factors = weight + (s * sizes.large_channels + l) * scratch.taps;
      for_each_column(sizes, [&](int64_t first) {
        const int64_t last = first + (sizes.kernel[1] - 1) * sizes.kernel[2];
        if (scratch.tap[last].plane != plane) return;
        column->from = scratch.small_plane(s) - scratch.tap[last].offset;
        for (int64_t j = 0; j < sizes.kernel[1]; ++j) {
          column->factors[j] = static_cast<Real>(factors[last - j * sizes.kernel[2]]);
        }
        ++column;
      });
    }
    return column - scratch.columns;
  }

  static void weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                     int64_t end, void* weight, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.clear_large(sizes);
    scratch.clear_small(sizes);
    const int64_t channel_weights = sizes.large_channels * scratch.taps;
    const int64_t group_weights = sizes.small_channels * channel_weights;
    for (int64_t group = begin; group < end; ++group) {
      Real* const to = static_cast<Real*>(weight) + group * group_weights;
      double* const sums = scratch.sums;
      std::fill_n(sums, group_weights, 0.0);
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const int64_t item = n * sizes.groups + group;
        const int64_t next = item + sizes.groups;
        read_large(sizes, scratch, from.large, item, next, sizes.batch * sizes.groups);
        read_small(sizes, scratch, from.small, item, next, sizes.batch * sizes.groups);
        for (int64_t s = 0; s < sizes.small_channels; ++s) {
          for (int64_t l = 0; l < sizes.large_channels; ++l) {
            double* const to_sums = sums + s * channel_weights + l * scratch.taps;
            if (scratch.in_columns) {
              multiply_columns(sizes, scratch, s, l, to_sums);
            } else {
              multiply_all(scratch, s, l, to_sums);
            }
          }
        }
      }
      // An inf or nan may have met a zero between the rows.
      if (std::all_of(sums, sums + group_weights, [](double sum) { return std::isfinite(sum); })) {
        std::copy_n(sums, group_weights, to);
      } else {
        exact().weight(sizes, from, group, group + 1, weight, nullptr);
      }
    }
  }

  // The sums of the taps of one channel of y and one of x.
  static void multiply_all(const Scratch& scratch, int64_t s, int64_t l, double* sums) {
    using Multiply = void (*)(const Real*, const Real* const*, int64_t, double*);
    static constexpr Multiply kMultiply[kMaxSums] = {multiply<1>, multiply<2>, multiply<3>,
                                                     multiply<4>, multiply<5>, multiply<6>,
                                                     multiply<7>, multiply<8>};
    const int64_t blocks = (scratch.taps + kMaxSums - 1) / kMaxSums;
    for (int64_t i = 0; i < scratch.planes.small; i += kSegment) {
      const int64_t n = std::min(kSegment, scratch.planes.small - i);
      for (int64_t block = 0; block < blocks; ++block) {
        // As many in each as evenly as can be.
        const int64_t begin = block * scratch.taps / blocks;
        const int64_t count = (block + 1) * scratch.taps / blocks - begin;
        const Real* from[kMaxSums];
        for (int64_t t = 0; t < count; ++t) {
          const Tap& tap = scratch.tap[begin + t];
          from[t] = scratch.large_plane(l, tap.plane) + tap.offset + i;
        }
        kMultiply[count - 1](scratch.small_plane(s) + i, from, n, sums + begin);
      }
    }
  }

  static void multiply_columns(const ConvolutionSizes& sizes, const Scratch& scratch, int64_t s,
                               int64_t l, double* sums) {
    const int64_t pitch = scratch.planes.extents[2];
    const int64_t rows = Columns::round_up(small_rows(sizes, scratch));
    // A segment: a piece of so many rows.
    const int64_t width = std::min(pitch, kSegment / Columns::kRows);
    const int64_t count = kSegment / width / Columns::kRows * Columns::kRows;
    for (int64_t row = 0; row < rows; row += count) {
      for (int64_t i = 0; i < pitch; i += width) {
        for (int64_t z = 0; z < sizes.kernel[0]; ++z) {
          const int64_t at = row * pitch + i;
          const int64_t first = z * sizes.kernel[1] * sizes.kernel[2];
          for (int64_t x = 0; x < sizes.kernel[2]; ++x) {
            const Tap& tap = scratch.tap[first + x];
            scratch.bases[x] = scratch.large_plane(l, tap.plane) + tap.offset + at;
          }
          Columns::multiply(sizes.kernel[1],
                            {scratch.small_plane(s) + at, scratch.bases, pitch,
                             std::min(count, rows - row), std::min(width, pitch - i)},
                            sizes.kernel[2], sums + first);
        }
      }
    }
  }

  static constexpr DirectKernels all() { return {scratch_size, small, large, weight}; }
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
