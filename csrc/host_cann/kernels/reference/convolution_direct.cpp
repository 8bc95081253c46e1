// The reference for the direct convolution kernels, product by product, with sums in double. The
// vector kernels call it where zeros between the rows could be multiplied by an inf.

#include "host_cann/kernels/convolution_direct.h"

#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/positions.h"

namespace aclnn_host {
namespace {

// The index of tap k at position o; -1 in the padding.
int64_t meeting(const ConvolutionSizes& sizes, const Values& o, const Values& k) {
  Values at;
  for (int d = 0; d < 3; ++d) {
    at[d] = o[d] * sizes.stride[d] - sizes.padding[d] + k[d] * sizes.dilation[d];
    if (at[d] < 0 || at[d] >= sizes.src[d]) return -1;
  }
  return index_of(at, sizes.src);
}

// The reverse: the o whose tap k reads a position of x; -1 if there is none.
int64_t origin(const ConvolutionSizes& sizes, const Values& at, const Values& k) {
  Values o;
  for (int d = 0; d < 3; ++d) {
    const int64_t scaled = at[d] + sizes.padding[d] - k[d] * sizes.dilation[d];
    if (scaled < 0 || scaled % sizes.stride[d] != 0) return -1;
    o[d] = scaled / sizes.stride[d];
    if (o[d] >= sizes.dst[d]) return -1;
  }
  return index_of(o, sizes.dst);
}

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  // Elements as double; channel `channel` of a group, with `volume` elements per channel.
  struct Channels {
    const void* elements;
    int64_t first;  // channel of the group
    int64_t volume;
    double operator()(int64_t channel, int64_t at) const {
      const T* all = static_cast<const T*>(elements);
      return static_cast<double>(static_cast<Real>(all[(first + channel) * volume + at]));
    }
  };

  static int64_t scratch_size(const ConvolutionSizes&) { return 0; }

  static double bias_of(const ConvolutionTensors& from, int64_t channel) {
    return from.bias != nullptr ? Channels{from.bias, 0, 1}(channel, 0) : 0.0;
  }
  static T rounded(double value) { return static_cast<T>(static_cast<Real>(value)); }

  static void forward(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                      int64_t end, void* dst, void*) {
    const int64_t out = volume(sizes.dst);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % sizes.groups;
      const Channels x{from.src, item * sizes.src_channels, volume(sizes.src)};
      for (int64_t s = 0; s < sizes.dst_channels; ++s) {
        const int64_t channel = group * sizes.dst_channels + s;
        const Channels w{from.weight, channel * sizes.src_channels, volume(sizes.kernel)};
        T* const to = static_cast<T*>(dst) + (item * sizes.dst_channels + s) * out;
        for_each_position(sizes.dst, [&](int64_t, const Values& o) {
          double sum = 0;
          for (int64_t l = 0; l < sizes.src_channels; ++l) {
            for_each_position(sizes.kernel, [&](int64_t, const Values& k) {
              const int64_t at = meeting(sizes, o, k);
              sum += (at < 0 ? 0.0 : x(l, at)) * w(l, index_of(k, sizes.kernel));
            });
          }
          to[index_of(o, sizes.dst)] = rounded(sum + bias_of(from, channel));
        });
      }
    }
  }

  static void backward_data(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                            int64_t begin, int64_t end, void* src, void*) {
    const int64_t out = volume(sizes.src);
    const int64_t taps = volume(sizes.kernel);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t group = item % sizes.groups;
      const Channels y{from.dst, item * sizes.dst_channels, volume(sizes.dst)};
      const int64_t first = group * sizes.dst_channels * sizes.src_channels;
      const Channels w{from.weight, first, taps};
      for (int64_t l = 0; l < sizes.src_channels; ++l) {
        T* const to = static_cast<T*>(src) + (item * sizes.src_channels + l) * out;
        for_each_position(sizes.src, [&](int64_t, const Values& at) {
          double sum = 0;
          for (int64_t s = 0; s < sizes.dst_channels; ++s) {
            for_each_position(sizes.kernel, [&](int64_t, const Values& k) {
              const int64_t o = origin(sizes, at, k);
              if (o < 0) return;
              sum += y(s, o) * w(s * sizes.src_channels + l, index_of(k, sizes.kernel));
            });
          }
          to[index_of(at, sizes.src)] =
              rounded(sum + bias_of(from, group * sizes.src_channels + l));
        });
      }
    }
  }

  static void backward_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                              int64_t begin, int64_t end, void* weight, void*) {
    const int64_t taps = volume(sizes.kernel);
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t s = 0; s < sizes.dst_channels; ++s) {
        const int64_t channel = group * sizes.dst_channels + s;
        for (int64_t l = 0; l < sizes.src_channels; ++l) {
          Real* const to = static_cast<Real*>(weight) + (channel * sizes.src_channels + l) * taps;
          for_each_position(sizes.kernel, [&](int64_t, const Values& k) {
            double sum = 0;
            for (int64_t n = 0; n < sizes.batch; ++n) {
              const int64_t item = n * sizes.groups + group;
              const Channels x{from.src, item * sizes.src_channels, volume(sizes.src)};
              const Channels y{from.dst, item * sizes.dst_channels, volume(sizes.dst)};
              for_each_position(sizes.dst, [&](int64_t, const Values& o) {
                const int64_t at = meeting(sizes, o, k);
                if (at >= 0) sum += y(s, index_of(o, sizes.dst)) * x(l, at);
              });
            }
            to[index_of(k, sizes.kernel)] = static_cast<Real>(sum);
          });
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
const DirectKernelsByType& convolution_direct_kernels<Capability::kReference>() noexcept {
  static constexpr DirectKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

const DirectKernelsByType& convolution_direct_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return convolution_direct_kernels<kVersion>(); });
}

}  // namespace aclnn_host
