#include "host_cann/kernels/convolution_depthwise.h"

#include <algorithm>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/in_register.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;
using at::vec::Vectorized;
using Values = ConvolutionSizes::Values;

int64_t volume(const Values& sizes) {
  return sizes[0] * sizes[1] * sizes[2];
}

int64_t index_of(const Values& at, const Values& sizes) {
  return (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
}

// Calls body(position) for every position in order.
template <class Body>
void for_each_position(const Values& sizes, Body body) {
  for (int64_t z = 0; z < sizes[0]; ++z) {
    for (int64_t y = 0; y < sizes[1]; ++y) {
      for (int64_t x = 0; x < sizes[2]; ++x) body(Values{z, y, x});
    }
  }
}

// Channels are what vectors hold: every position is a few of them, multiplied with those of the
// weights that meet it and of nothing else.
template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = Vectorized<Real>;
  static constexpr int64_t kVectors = std::is_same_v<T, Real> ? 1 : 2;
  static constexpr int64_t kStep = kVectors * V::size();
  // Steps of channels that are summed at a time, for a weight's gradient.
  static constexpr int64_t kSteps = 4;
  // Numbers that are added to one in Real, before double takes over.
  static constexpr int64_t kSegment = 1024;

  // A step of channels.
  struct Step {
    V vectors[kVectors];
  };

  // `n` is how many channels there are, up to a step.
  static Step load(const T* from, int64_t n) {
    if constexpr (std::is_same_v<T, Real>) {
      return {{n == kStep ? V::loadu(from) : V::loadu(from, n)}};
    } else {
      const auto elements = n == kStep ? Vectorized<T>::loadu(from) : Vectorized<T>::loadu(from, n);
      const auto [first, second] = at::vec::convert_to_float<T>(elements);
      return {{first, second}};
    }
  }

  static void store(const Step& step, T* to, int64_t n) {
    if constexpr (std::is_same_v<T, Real>) {
      step.vectors[0].store(to, n);
    } else {
      at::vec::convert_from_float<T>(step.vectors[0], step.vectors[1]).store(to, n);
    }
  }

  // What meets a position: channels of the other tensor, and weights.
  struct Term {
    const T* from;
    const Real* factors;
  };

  // The scratch memory of a call.
  struct Scratch {
    int64_t taps;
    int64_t pitch;  // from tap to tap
    Real* weights;  // [taps, channels]
    Real* bias;     // zeros if there is none
    double* sums;   // [taps, channels of a few steps]
    Term* terms;    // of a row, then of a position
    int64_t size;

    Scratch(const ConvolutionSizes& sizes, void* memory)
        : taps(volume(sizes.kernel)), pitch((sizes.groups + kStep - 1) / kStep * kStep) {
      auto* const begin = static_cast<char*>(memory);
      size = 0;
      const auto take = [&](int64_t bytes) {
        char* const part = begin != nullptr ? begin + size : nullptr;
        size += (bytes + 63) / 64 * 64;
        return part;
      };
      // A step of the last row may begin within it, and end behind it.
      const int64_t count = taps * pitch + kStep;
      weights = reinterpret_cast<Real*>(take(count * static_cast<int64_t>(sizeof(Real))));
      bias = reinterpret_cast<Real*>(take((pitch + kStep) * static_cast<int64_t>(sizeof(Real))));
      sums = reinterpret_cast<double*>(
          take(taps * kSteps * kStep * static_cast<int64_t>(sizeof(double))));
      terms = reinterpret_cast<Term*>(take(2 * taps * static_cast<int64_t>(sizeof(Term))));
    }

    void read_weights(const ConvolutionSizes& sizes, const void* from) const {
      const auto* const all = static_cast<const T*>(from);
      for (int64_t t = 0; t < taps; ++t) {
        Real* const row = weights + t * pitch;
        for (int64_t c = 0; c < sizes.groups; ++c) row[c] = static_cast<Real>(all[c * taps + t]);
        std::fill(row + sizes.groups, row + pitch, Real(0));
      }
      std::fill_n(weights + taps * pitch, kStep, Real(0));
    }

    void read_bias(const ConvolutionSizes& sizes, const void* from) const {
      const auto* const all = static_cast<const T*>(from);
      std::fill_n(bias, pitch + kStep, Real(0));
      for (int64_t c = 0; all != nullptr && c < sizes.groups; ++c) {
        bias[c] = static_cast<Real>(all[c]);
      }
    }
  };

  static int64_t scratch_size(const ConvolutionSizes& sizes) {
    return Scratch(sizes, nullptr).size;
  }

  // Calls body(image, first channel, last) for the images of a range of items.
  template <class Body>
  static void for_each_image(const ConvolutionSizes& sizes, int64_t begin, int64_t end, Body body) {
    while (begin < end) {
      const int64_t first = begin % sizes.groups;
      const int64_t last = std::min(sizes.groups, first + end - begin);
      body(begin / sizes.groups, first, last);
      begin += last - first;
    }
  }

  static Step zeros() {
    Step step;
    for (V& vector : step.vectors) vector = V(Real(0));
    return step;
  }

  // At last, so that the products' sum has no roundings of its size.
  static Step with_bias(const Step& sum, const Real* bias) {
    Step all;
    for (int64_t v = 0; v < kVectors; ++v) {
      all.vectors[v] = sum.vectors[v] + V::loadu(bias + v * V::size());
    }
    return all;
  }

  // to[c] = the sum of the terms + bias[c], of so many steps of channels; the last has `rest`.
  template <int64_t kCount>
  static void add_block(const Term* terms, int64_t count, const Real* bias, int64_t c, int64_t rest,
                        T* to) {
    const auto channels = [rest](int64_t s) { return s + 1 < kCount ? kStep : rest; };
    Step sums[kCount];
#pragma GCC unroll 4
    for (Step& sum : sums) sum = zeros();
    for (int64_t t = 0; t < count; ++t) {
#pragma GCC unroll 4
      for (int64_t s = 0; s < kCount; ++s) {
        const Step values = load(terms[t].from + c + s * kStep, channels(s));
        const Real* const factors = terms[t].factors + c + s * kStep;
        for (int64_t v = 0; v < kVectors; ++v) {
          sums[s].vectors[v] =
              fmadd(values.vectors[v], V::loadu(factors + v * V::size()), sums[s].vectors[v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t s = 0; s < kCount; ++s) {
      store(with_bias(sums[s], bias + c + s * kStep), to + c + s * kStep, channels(s));
    }
  }

  static void add_up(const Term* terms, int64_t count, const Real* bias, int64_t first,
                     int64_t last, T* to) {
    int64_t c = first;
    for (; c + 4 * kStep <= last; c += 4 * kStep) add_block<4>(terms, count, bias, c, kStep, to);
    for (; c + 2 * kStep <= last; c += 2 * kStep) add_block<2>(terms, count, bias, c, kStep, to);
    for (; c < last; c += kStep) {
      add_block<1>(terms, count, bias, c, std::min(kStep, last - c), to);
    }
  }

  // Positions of a row that are computed together: what is loaded meets a tap of each.
  static constexpr int64_t kPositions = 4;

  // The taps of a row of the kernel that lie next to one another.
  struct Neighbours {
    int64_t begin;   // of the first tap, seen from the result
    int64_t factor;  // of the first tap
    int64_t pitch;   // from a tap's factors to the next one's; negative from the last tap on
    int64_t first;   // position that all taps meet
    int64_t last;    // behind the last of those
  };

  static bool has_neighbours(const ConvolutionSizes& sizes) {
    const int64_t taps = sizes.kernel[2];
    return sizes.stride[2] == 1 && sizes.dilation[2] == 1 && (taps == 3 || taps == 5 || taps == 7);
  }

  // Four results, of so many steps of channels: `rows` are what meets their row, at the first tap
  // of the first of them. Each step has n channels.
  template <int64_t kTaps, int64_t kCount>
  static void add_positions(const Term* rows, int64_t count, const Neighbours& taps,
                            const Real* bias, int64_t at, int64_t channels, int64_t c, int64_t n,
                            T* to) {
    Step sums[kPositions][kCount];
#pragma GCC unroll 4
    for (auto& position : sums) {
#pragma GCC unroll 2
      for (Step& sum : position) sum = zeros();
    }
    for (int64_t r = 0; r < count; ++r) {
      const T* from = rows[r].from + at + c;
      const Real* const factors = rows[r].factors + taps.factor + c;
#pragma GCC unroll 10
      for (int64_t j = 0; j < kPositions + kTaps - 1; ++j, from += channels) {
#pragma GCC unroll 2
        for (int64_t s = 0; s < kCount; ++s) {
          const Step values = load(from + s * kStep, n);
#pragma GCC unroll 2
          for (int64_t v = 0; v < kVectors; ++v) {
            const V value = in_register(values.vectors[v]);
            const Real* const tap = factors + s * kStep + v * V::size();
#pragma GCC unroll 4
            for (int64_t p = 0; p < kPositions; ++p) {
              if (j < p || j - p >= kTaps) continue;
              V& sum = sums[p][s].vectors[v];
              sum = fmadd(value, V::loadu(tap + (j - p) * taps.pitch), sum);
            }
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPositions; ++p) {
#pragma GCC unroll 2
      for (int64_t s = 0; s < kCount; ++s) {
        store(with_bias(sums[p][s], bias + c + s * kStep), to + p * channels + c + s * kStep, n);
      }
    }
  }

  // The same of channels [first, last), all in one function: calls take long beside few taps.
  template <int64_t kTaps>
  [[gnu::noinline, gnu::flatten]] static void add_all_positions(const Term* rows, int64_t count,
                                                                const Neighbours& taps,
                                                                const Real* bias, int64_t at,
                                                                int64_t channels, int64_t first,
                                                                int64_t last, T* to) {
    constexpr int64_t kCount = 2 / kVectors;  // whose sums stay in registers
    int64_t c = first;
    for (; c + kCount * kStep <= last; c += kCount * kStep) {
      add_positions<kTaps, kCount>(rows, count, taps, bias, at, channels, c, kStep, to);
    }
    for (; c < last; c += kStep) {
      const int64_t n = std::min(kStep, last - c);
      add_positions<kTaps, 1>(rows, count, taps, bias, at, channels, c, n, to);
    }
  }

  // Both directions: `meet(d, position, k)` is where tap k takes a position of the results to in
  // dimension d, or negative; `taps` says the same of dimension 2, for those with neighbours.
  template <class Meet>
  static void convolve(const ConvolutionSizes& sizes, const void* weight, const void* bias,
                       const void* from, const Values& from_sizes, void* to, const Values& to_sizes,
                       int64_t begin, int64_t end, void* memory, const Neighbours& taps,
                       Meet meet) {
    const Scratch scratch(sizes, memory);
    const auto add_together = sizes.kernel[2] == 3   ? add_all_positions<3>
                              : sizes.kernel[2] == 5 ? add_all_positions<5>
                                                     : add_all_positions<7>;
    const int64_t together = has_neighbours(sizes) ? taps.last - kPositions : -1;
    scratch.read_weights(sizes, weight);
    scratch.read_bias(sizes, bias);
    for_each_image(sizes, begin, end, [&](int64_t image, int64_t first, int64_t last) {
      const T* const source =
          static_cast<const T*>(from) + image * volume(from_sizes) * sizes.groups;
      T* out = static_cast<T*>(to) + image * volume(to_sizes) * sizes.groups;
      for (int64_t row = 0; row < to_sizes[0] * to_sizes[1]; ++row) {
        // What meets the row, then what of it meets each position.
        Term* const rows = scratch.terms;
        int64_t row_count = 0;
        for (int64_t kz = 0; kz < sizes.kernel[0]; ++kz) {
          const int64_t z = meet(0, row / to_sizes[1], kz);
          for (int64_t ky = 0; z >= 0 && ky < sizes.kernel[1]; ++ky) {
            const int64_t y = meet(1, row % to_sizes[1], ky);
            if (y < 0) continue;
            rows[row_count++] = {
                source + index_of({z, y, 0}, from_sizes) * sizes.groups,
                scratch.weights + index_of({kz, ky, 0}, sizes.kernel) * scratch.pitch};
          }
        }
        for (int64_t at = 0; at < to_sizes[2]; ++at, out += sizes.groups) {
          while (at >= taps.first && at <= together) {
            add_together(rows, row_count, taps, scratch.bias, (at + taps.begin) * sizes.groups,
                         sizes.groups, first, last, out);
            at += kPositions;
            out += kPositions * sizes.groups;
          }
          if (at == to_sizes[2]) break;
          Term* const terms = rows + row_count;
          int64_t count = 0;
          for (int64_t kx = 0; kx < sizes.kernel[2]; ++kx) {
            const int64_t x = meet(2, at, kx);
            for (int64_t r = 0; x >= 0 && r < row_count; ++r) {
              terms[count++] = {rows[r].from + x * sizes.groups,
                                rows[r].factors + kx * scratch.pitch};
            }
          }
          add_up(terms, count, scratch.bias, first, last, out);
        }
      }
    });
  }

  static void small(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                    int64_t end, void* small, void* memory) {
    const int64_t reach = sizes.kernel[2] - 1;
    const int64_t pitch = Scratch(sizes, nullptr).pitch;
    const Neighbours taps{-sizes.padding[2], 0, pitch, sizes.padding[2],
                          std::min(sizes.small[2], sizes.large[2] + sizes.padding[2] - reach)};
    convolve(sizes, from.weight, from.bias, from.large, sizes.large, small, sizes.small, begin, end,
             memory, taps, [&](int d, int64_t o, int64_t k) {
               const int64_t at = o * sizes.stride[d] - sizes.padding[d] + k * sizes.dilation[d];
               return at < sizes.large[d] ? at : -1;
             });
  }

  static void large(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                    int64_t end, void* large, void* memory) {
    const int64_t reach = sizes.kernel[2] - 1;
    const int64_t pitch = Scratch(sizes, nullptr).pitch;
    const Neighbours taps{sizes.padding[2] - reach, reach * pitch, -pitch,
                          std::max<int64_t>(reach - sizes.padding[2], 0),
                          std::min(sizes.large[2], sizes.small[2] - sizes.padding[2])};
    convolve(sizes, from.weight, from.bias, from.small, sizes.small, large, sizes.large, begin, end,
             memory, taps, [&](int d, int64_t at, int64_t k) -> int64_t {
               const int64_t scaled = at + sizes.padding[d] - k * sizes.dilation[d];
               const int64_t stride = sizes.stride[d];
               if (scaled < 0 || (stride != 1 && scaled % stride != 0)) return -1;
               const int64_t o = stride == 1 ? scaled : scaled / stride;
               return o < sizes.small[d] ? o : -1;
             });
  }

  // Adds the sums over `count` positions of x * y to sums, for so many steps of channels, of which
  // the last has `rest`.
  template <int64_t kCount>
  static void multiply(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count,
                       int64_t rest, double* sums) {
    Step partial[kCount];
    for (Step& step : partial) step = zeros();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t s = 0; s < kCount; ++s) {
        const int64_t n = s + 1 < kCount ? kStep : rest;
        const Step a = load(x + i * x_step + s * kStep, n);
        const Step b = load(y + i * y_step + s * kStep, n);
        for (int64_t v = 0; v < kVectors; ++v) {
          partial[s].vectors[v] = fmadd(a.vectors[v], b.vectors[v], partial[s].vectors[v]);
        }
      }
    }
    Real lanes[kCount * kStep];
    for (int64_t s = 0; s < kCount; ++s) {
      for (int64_t v = 0; v < kVectors; ++v) {
        partial[s].vectors[v].store(lanes + s * kStep + v * V::size());
      }
    }
    for (int64_t c = 0; c < kCount * kStep; ++c) sums[c] += lanes[c];
  }

  // What a row of the kernel meets of a row of either image, from these channels on.
  struct RowPair {
    const T* large;
    const T* small;
    int64_t channels;  // from position to position
    int64_t large_count;
    int64_t small_count;
    int64_t begin;  // the first tap of the first position of y, in x
  };

  // Adds the sums over a row's positions of x * y for each tap, of so many steps of channels, of
  // which the last has `rest`. Positions whose taps are all in x are taken together.
  template <int64_t kTaps, int64_t kCount>
  static void multiply_neighbours(const RowPair& row, int64_t c, int64_t rest, double* sums,
                                  int64_t pitch) {
    const auto channels = [rest](int64_t s) { return s + 1 < kCount ? kStep : rest; };
    Step partial[kCount][kTaps];
#pragma GCC unroll 4
    for (auto& steps : partial) {
#pragma GCC unroll 7
      for (Step& step : steps) {
        for (V& vector : step.vectors) vector = V(Real(0));
      }
    }
    const auto add = [](Step& sum, const Step& a, const Step& b) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) {
        sum.vectors[v] = fmadd(a.vectors[v], b.vectors[v], sum.vectors[v]);
      }
    };
    const int64_t last = row.large_count - row.begin - kTaps + 1;  // behind those with all taps
    for (int64_t i = 0; i < row.small_count;) {
      const T* const y = row.small + i * row.channels + c;
      const T* const x = row.large + (i + row.begin) * row.channels + c;
      if (i + row.begin >= 0 && i + kPositions <= std::min(row.small_count, last)) {
#pragma GCC unroll 4
        for (int64_t s = 0; s < kCount; ++s) {
          Step factors[kPositions];
#pragma GCC unroll 4
          for (int64_t p = 0; p < kPositions; ++p) {
            factors[p] = load(y + p * row.channels + s * kStep, channels(s));
          }
#pragma GCC unroll 10
          for (int64_t j = 0; j < kPositions + kTaps - 1; ++j) {
            Step value = load(x + j * row.channels + s * kStep, channels(s));
#pragma GCC unroll 2
            for (V& vector : value.vectors) vector = in_register(vector);
#pragma GCC unroll 4
            for (int64_t p = 0; p < kPositions; ++p) {
              if (j >= p && j - p < kTaps) add(partial[s][j - p], value, factors[p]);
            }
          }
        }
        i += kPositions;
      } else {
#pragma GCC unroll 4
        for (int64_t s = 0; s < kCount; ++s) {
          const Step factor = load(y + s * kStep, channels(s));
#pragma GCC unroll 7
          for (int64_t t = 0; t < kTaps; ++t) {
            const int64_t at = i + row.begin + t;
            if (at < 0 || at >= row.large_count) continue;
            add(partial[s][t], load(x + t * row.channels + s * kStep, channels(s)), factor);
          }
        }
        ++i;
      }
    }
#pragma GCC unroll 4
    for (int64_t s = 0; s < kCount; ++s) {
#pragma GCC unroll 7
      for (int64_t t = 0; t < kTaps; ++t) {
        Real lanes[kStep];
        for (int64_t v = 0; v < kVectors; ++v) {
          partial[s][t].vectors[v].store(lanes + v * V::size());
        }
        for (int64_t k = 0; k < kStep; ++k) sums[t * pitch + s * kStep + k] += lanes[k];
      }
    }
  }

  // The same of so many channels: as many steps at a time as leave the sums in registers, so that
  // memory is read in long pieces.
  template <int64_t kTaps>
  [[gnu::noinline]] static void multiply_all_neighbours(const RowPair& row, int64_t channels,
                                                        double* sums, int64_t pitch) {
    constexpr int64_t kSums = sizeof(V) == 64 ? 14 : 8;
    constexpr int64_t kCount = std::max<int64_t>(kSums / (kTaps * kVectors), 1);
    int64_t c = 0;
    for (; c + kCount * kStep <= channels; c += kCount * kStep) {
      multiply_neighbours<kTaps, kCount>(row, c, kStep, sums + c, pitch);
    }
    for (; c < channels; c += kStep) {
      multiply_neighbours<kTaps, 1>(row, c, std::min(kStep, channels - c), sums + c, pitch);
    }
  }

  static void weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                     int64_t end, void* weight, void* memory) {
    using Multiply = void (*)(const T*, int64_t, const T*, int64_t, int64_t, int64_t, double*);
    static constexpr Multiply kMultiply[kSteps] = {multiply<1>, multiply<2>, multiply<3>,
                                                   multiply<4>};
    const auto multiply_together = sizes.kernel[2] == 3   ? multiply_all_neighbours<3>
                                   : sizes.kernel[2] == 5 ? multiply_all_neighbours<5>
                                                          : multiply_all_neighbours<7>;
    // No more than a segment of numbers meets before double takes over.
    const bool together = has_neighbours(sizes) && sizes.small[2] <= kSegment;
    const Scratch scratch(sizes, memory);
    for (int64_t first = begin; first < end; first += kSteps * kStep) {
      const int64_t channels = std::min(kSteps * kStep, end - first);
      const int64_t steps = (channels + kStep - 1) / kStep;
      const int64_t rest = channels - (steps - 1) * kStep;
      std::fill_n(scratch.sums, scratch.taps * kSteps * kStep, 0.0);
      const Values rows{sizes.batch, sizes.small[0], sizes.small[1]};
      for_each_position(rows, [&](const Values& row) {
        const Values taps{sizes.kernel[0], sizes.kernel[1], together ? 1 : sizes.kernel[2]};
        for_each_position(taps, [&](const Values& k) {
          Values at{row[1], row[2], 0};  // of the row's first position, in x
          for (int d = 0; d < 3; ++d) {
            at[d] = at[d] * sizes.stride[d] - sizes.padding[d] + k[d] * sizes.dilation[d];
          }
          if (at[0] < 0 || at[0] >= sizes.large[0] || at[1] < 0 || at[1] >= sizes.large[1]) return;
          const auto row_at = [&](const void* image, const Values& position, const Values& size) {
            return static_cast<const T*>(image) +
                   (row[0] * volume(size) + index_of(position, size)) * sizes.groups + first;
          };
          double* const sums = scratch.sums + index_of(k, sizes.kernel) * kSteps * kStep;
          if (together) {
            multiply_together({row_at(from.large, {at[0], at[1], 0}, sizes.large),
                               row_at(from.small, {row[1], row[2], 0}, sizes.small), sizes.groups,
                               sizes.large[2], sizes.small[2], at[2]},
                              channels, sums, kSteps * kStep);
            return;
          }
          // The part of the row that this tap takes into x.
          const int64_t stride = sizes.stride[2];
          const int64_t skipped = at[2] < 0 ? (-at[2] + stride - 1) / stride : 0;
          const int64_t x = at[2] + skipped * stride;
          if (x >= sizes.large[2]) return;
          const int64_t count =
              std::min(sizes.small[2] - skipped, (sizes.large[2] - x - 1) / stride + 1);
          const T* const large = row_at(from.large, {at[0], at[1], x}, sizes.large);
          const T* const small = row_at(from.small, {row[1], row[2], skipped}, sizes.small);
          for (int64_t i = 0; i < count; i += kSegment) {
            kMultiply[steps - 1](large + i * stride * sizes.groups, stride * sizes.groups,
                                 small + i * sizes.groups, sizes.groups,
                                 std::min(kSegment, count - i), rest, sums);
          }
        });
      });
      for (int64_t c = 0; c < channels; ++c) {
        Real* const to = static_cast<Real*>(weight) + (first + c) * scratch.taps;
        for (int64_t t = 0; t < scratch.taps; ++t) {
          to[t] = static_cast<Real>(scratch.sums[t * kSteps * kStep + c]);
        }
      }
    }
  }

  static constexpr DirectKernels all() { return {scratch_size, small, large, weight}; }
};

}  // namespace

template <>
const DirectKernelsByType& convolution_depthwise_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr DirectKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
