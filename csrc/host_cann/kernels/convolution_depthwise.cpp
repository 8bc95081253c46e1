#include "host_cann/kernels/convolution_depthwise.h"

#include <algorithm>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/depthwise_channels.h"
#include "host_cann/kernels/in_register.h"

namespace aclnn_host {
namespace {

using at::vec::fmadd;

template <class T>
struct Kernels : DepthwiseChannels<T> {
  using Base = DepthwiseChannels<T>;
  using Base::kSegment;
  using Base::kStep;
  using Base::kSteps;
  using Base::kVectors;
  using Base::load;
  using Base::scratch_size;
  using Base::store;
  using Base::with_bias;
  using Base::zeros;
  using typename Base::Real;
  using typename Base::Scratch;
  using typename Base::Step;
  using typename Base::Term;
  using typename Base::V;

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

  // to[c] = the sum of the terms + bias[c], for kCount steps of channels; the last has `rest`.
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

  // Positions of a row computed together: each loaded value is used by one tap of each position.
  static constexpr int64_t kPositions = 4;

  // Adjacent taps of a kernel row.
  struct Neighbours {
    int64_t begin;   // of the first tap, relative to the result
    int64_t factor;  // of the first tap
    int64_t pitch;   // between factors of adjacent taps; negative for reversed taps
    int64_t first;   // first position that all taps cover
    int64_t last;    // one past the last such position
  };

  static bool has_neighbours(const ConvolutionSizes& sizes) {
    const int64_t taps = sizes.kernel[2];
    return sizes.stride[2] == 1 && sizes.dilation[2] == 1 && (taps == 3 || taps == 5 || taps == 7);
  }

  // The inputs of a row of results, of which four adjacent ones are computed together.
  struct Row {
    const Term* terms;  // at the first tap of the row's first position
    int64_t count;
    int64_t factor;  // of the first adjacent tap
    int64_t pitch;   // between factors of adjacent taps
    const Real* bias;
    int64_t channels;  // between positions
    int64_t first;     // first channel
    int64_t last;
  };

  // For kCount steps of channels, of n each. The input of the first result's first tap is `at`
  // elements after the row's.
  template <int64_t kTaps, int64_t kCount>
  static void add_positions(const Row& row, int64_t at, T* to, int64_t c, int64_t n) {
    Step sums[kPositions][kCount];
#pragma GCC unroll 4
    for (auto& position : sums) {
#pragma GCC unroll 2
      for (Step& sum : position) sum = zeros();
    }
    for (int64_t r = 0; r < row.count; ++r) {
      const T* from = row.terms[r].from + at + c;
      const Real* const factors = row.terms[r].factors + row.factor + c;
#pragma GCC unroll 10
      for (int64_t j = 0; j < kPositions + kTaps - 1; ++j, from += row.channels) {
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
              sum = fmadd(value, V::loadu(tap + (j - p) * row.pitch), sum);
            }
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < kPositions; ++p) {
#pragma GCC unroll 2
      for (int64_t s = 0; s < kCount; ++s) {
        store(with_bias(sums[p][s], row.bias + c + s * kStep),
              to + p * row.channels + c + s * kStep, n);
      }
    }
  }

  // The same for the row's channels, in one function: with few taps, calls are expensive.
  template <int64_t kTaps>
  [[gnu::noinline, gnu::flatten]] static void add_all_positions(const Row& shared, int64_t at,
                                                                T* to) {
    const Row row = shared;                   // a copy that stores cannot alias
    constexpr int64_t kCount = 2 / kVectors;  // sums that fit into registers
    int64_t c = row.first;
    for (; c + kCount * kStep <= row.last; c += kCount * kStep) {
      add_positions<kTaps, kCount>(row, at, to, c, kStep);
    }
    for (; c < row.last; c += kStep) {
      add_positions<kTaps, 1>(row, at, to, c, std::min(kStep, row.last - c));
    }
  }

  // A pass's source and destination images.
  struct Images {
    const void* from;
    Values from_sizes;
    void* to;
    Values to_sizes;
  };

  // Collects the terms of a row of the results; returns the number of taps.
  template <class Meet>
  static int64_t meet_row(const ConvolutionSizes& sizes, const Scratch& scratch, const T* source,
                          const Images& images, int64_t row, Meet meet) {
    int64_t count = 0;
    for (int64_t kz = 0; kz < sizes.kernel[0]; ++kz) {
      const int64_t z = meet(0, row / images.to_sizes[1], kz);
      for (int64_t ky = 0; z >= 0 && ky < sizes.kernel[1]; ++ky) {
        const int64_t y = meet(1, row % images.to_sizes[1], ky);
        if (y < 0) continue;
        scratch.terms[count++] = {
            source + index_of({z, y, 0}, images.from_sizes) * sizes.groups,
            scratch.weights + index_of({kz, ky, 0}, sizes.kernel) * scratch.pitch};
      }
    }
    return count;
  }

  // Forward and backward-data: `meet(d, position, k)` maps a result's position and tap k to the
  // source position in dimension d, negative if outside; `taps` does so for dimension 2, for
  // kernels with adjacent taps. The range is over the batch's groups.
  template <class Meet>
  static void convolve(const ConvolutionSizes& sizes, const Scratch& scratch, const Images& images,
                       int64_t begin, int64_t end, const Neighbours& taps, Meet meet) {
    const auto add_together = sizes.kernel[2] == 3   ? add_all_positions<3>
                              : sizes.kernel[2] == 5 ? add_all_positions<5>
                                                     : add_all_positions<7>;
    const int64_t together = has_neighbours(sizes) ? taps.last - kPositions : -1;
    const Values& to_sizes = images.to_sizes;
    for_each_image(sizes, begin, end, [&](int64_t image, int64_t first, int64_t last) {
      const T* const source =
          static_cast<const T*>(images.from) + image * volume(images.from_sizes) * sizes.groups;
      T* out = static_cast<T*>(images.to) + image * volume(to_sizes) * sizes.groups;
      for (int64_t row = 0; row < to_sizes[0] * to_sizes[1]; ++row) {
        // The terms of the row, then those of each position.
        Term* const rows = scratch.terms;
        const int64_t row_count = meet_row(sizes, scratch, source, images, row, meet);
        const Row shared{rows,         row_count,    taps.factor, taps.pitch,
                         scratch.bias, sizes.groups, first,       last};
        for (int64_t at = 0; at < to_sizes[2]; ++at, out += sizes.groups) {
          while (at >= taps.first && at <= together) {
            add_together(shared, (at + taps.begin) * sizes.groups, out);
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

  static void forward(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                      int64_t end, void* dst, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.read_factors(sizes, from);
    const int64_t reach = sizes.kernel[2] - 1;
    const Neighbours taps{-sizes.padding[2], 0, scratch.pitch, sizes.padding[2],
                          std::min(sizes.dst[2], sizes.src[2] + sizes.padding[2] - reach)};
    convolve(sizes, scratch, {from.src, sizes.src, dst, sizes.dst}, begin, end, taps,
             [&](int d, int64_t o, int64_t k) {
               const int64_t at = o * sizes.stride[d] - sizes.padding[d] + k * sizes.dilation[d];
               return at < sizes.src[d] ? at : -1;
             });
  }

  static void backward_data(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                            int64_t begin, int64_t end, void* src, void* memory) {
    const Scratch scratch(sizes, memory);
    scratch.read_factors(sizes, from);
    const int64_t reach = sizes.kernel[2] - 1;
    const Neighbours taps{sizes.padding[2] - reach, reach * scratch.pitch, -scratch.pitch,
                          std::max<int64_t>(reach - sizes.padding[2], 0),
                          std::min(sizes.src[2], sizes.dst[2] - sizes.padding[2])};
    convolve(sizes, scratch, {from.dst, sizes.dst, src, sizes.src}, begin, end, taps,
             [&](int d, int64_t at, int64_t k) -> int64_t {
               const int64_t scaled = at + sizes.padding[d] - k * sizes.dilation[d];
               const int64_t stride = sizes.stride[d];
               if (scaled < 0 || (stride != 1 && scaled % stride != 0)) return -1;
               const int64_t o = stride == 1 ? scaled : scaled / stride;
               return o < sizes.dst[d] ? o : -1;
             });
  }

  static void add_lanes(const Step& step, double* sums) {
    Real lanes[kStep];
    for (int64_t v = 0; v < kVectors; ++v) step.vectors[v].store(lanes + v * V::size());
    for (int64_t k = 0; k < kStep; ++k) sums[k] += lanes[k];
  }

  // Adds the sums over `count` positions of x * y to `sums`, for kCount steps of channels; the last
  // has `rest`.
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
    for (int64_t s = 0; s < kCount; ++s) add_lanes(partial[s], sums + s * kStep);
  }

  [[gnu::always_inline]] static void add(Step& sum, const Step& a, const Step& b) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      sum.vectors[v] = fmadd(a.vectors[v], b.vectors[v], sum.vectors[v]);
    }
  }

  // Rows of both images that a kernel row combines, from a channel on.
  struct RowPair {
    const T* src;
    const T* dst;
    int64_t channels;  // between positions
    int64_t src_count;
    int64_t dst_count;
    int64_t begin;  // in x, the first tap of y's first position
  };

  // Adds the sums over a row's positions of x * y for each tap, for kCount steps of channels; the
  // last has `rest`. Positions whose taps all lie in x are computed together.
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
    // One past those with all taps in x.
    const int64_t last = row.src_count - row.begin - kTaps + 1;
    for (int64_t i = 0; i < row.dst_count;) {
      const T* const y = row.dst + i * row.channels + c;
      const T* const x = row.src + (i + row.begin) * row.channels + c;
      if (i + row.begin >= 0 && i + kPositions <= std::min(row.dst_count, last)) {
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
            if (at < 0 || at >= row.src_count) continue;
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
        add_lanes(partial[s][t], sums + t * pitch + s * kStep);
      }
    }
  }

  // The same for this many channels: as many steps at a time as keep the sums in registers, so that
  // memory is read in long runs.
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

  // A range of channels, and the function for rows with adjacent taps; null if there are none.
  struct Channels {
    int64_t first;
    int64_t count;
    void (*multiply_together)(const RowPair& row, int64_t channels, double* sums, int64_t pitch);
  };

  // Adds, for a range of channels, the products of a row of dst and the elements of src that a row
  // of the kernel's taps, or one tap, combines with it.
  static void multiply_row(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                           const Values& row, const Values& k, const Channels& some, double* sums) {
    using Multiply = void (*)(const T*, int64_t, const T*, int64_t, int64_t, int64_t, double*);
    static constexpr Multiply kMultiply[kSteps] = {multiply<1>, multiply<2>, multiply<3>,
                                                   multiply<4>};
    Values at{row[1], row[2], 0};  // in x, for the row's first position
    for (int d = 0; d < 3; ++d) {
      at[d] = at[d] * sizes.stride[d] - sizes.padding[d] + k[d] * sizes.dilation[d];
    }
    if (at[0] < 0 || at[0] >= sizes.src[0] || at[1] < 0 || at[1] >= sizes.src[1]) return;
    const auto row_at = [&](const void* image, const Values& position, const Values& size) {
      return static_cast<const T*>(image) +
             (row[0] * volume(size) + index_of(position, size)) * sizes.groups + some.first;
    };
    if (some.multiply_together != nullptr) {
      some.multiply_together({row_at(from.src, {at[0], at[1], 0}, sizes.src),
                              row_at(from.dst, {row[1], row[2], 0}, sizes.dst), sizes.groups,
                              sizes.src[2], sizes.dst[2], at[2]},
                             some.count, sums, kSteps * kStep);
      return;
    }
    // The part of the row that this tap maps into x.
    const int64_t stride = sizes.stride[2];
    const int64_t skipped = at[2] < 0 ? divide_up(-at[2], stride) : 0;
    const int64_t x = at[2] + skipped * stride;
    if (x >= sizes.src[2]) return;
    const int64_t count = std::min(sizes.dst[2] - skipped, (sizes.src[2] - x - 1) / stride + 1);
    const T* const src = row_at(from.src, {at[0], at[1], x}, sizes.src);
    const T* const dst = row_at(from.dst, {row[1], row[2], skipped}, sizes.dst);
    const int64_t steps = divide_up(some.count, kStep);
    const int64_t rest = some.count - (steps - 1) * kStep;
    for (int64_t i = 0; i < count; i += kSegment) {
      kMultiply[steps - 1](src + i * stride * sizes.groups, stride * sizes.groups,
                           dst + i * sizes.groups, sizes.groups, std::min(kSegment, count - i),
                           rest, sums);
    }
  }

  static void backward_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                              int64_t begin, int64_t end, void* weight, void* memory) {
    // At most one segment is summed in Real before its sum goes into a double.
    const bool together = has_neighbours(sizes) && sizes.dst[2] <= kSegment;
    const auto multiply_together = sizes.kernel[2] == 3   ? multiply_all_neighbours<3>
                                   : sizes.kernel[2] == 5 ? multiply_all_neighbours<5>
                                                          : multiply_all_neighbours<7>;
    const Scratch scratch(sizes, memory);
    const Values rows{sizes.batch, sizes.dst[0], sizes.dst[1]};
    const Values taps{sizes.kernel[0], sizes.kernel[1], together ? 1 : sizes.kernel[2]};
    for (int64_t first = begin; first < end; first += kSteps * kStep) {
      const Channels some{first, std::min(kSteps * kStep, end - first),
                          together ? multiply_together : nullptr};
      std::fill_n(scratch.sums, scratch.taps * kSteps * kStep, 0.0);
      for_each_position(rows, [&](int64_t, const Values& row) {
        for_each_position(taps, [&](int64_t, const Values& k) {
          multiply_row(sizes, from, row, k, some,
                       scratch.sums + index_of(k, sizes.kernel) * kSteps * kStep);
        });
      });
      for (int64_t c = 0; c < some.count; ++c) {
        Real* const to = static_cast<Real*>(weight) + (first + c) * scratch.taps;
        for (int64_t t = 0; t < scratch.taps; ++t) {
          to[t] = static_cast<Real>(scratch.sums[t * kSteps * kStep + c]);
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
const DirectKernelsByType& convolution_depthwise_kernels<Capability::CPU_CAPABILITY>() noexcept {
  static constexpr DirectKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

}  // namespace aclnn_host
