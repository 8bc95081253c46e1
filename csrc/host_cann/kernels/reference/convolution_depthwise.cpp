// The reference for the depthwise convolution kernels, product by product, with sums in double.

#include "host_cann/kernels/convolution_depthwise.h"

#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "host_cann/kernels/positions.h"

namespace aclnn_host {
namespace {

// The index in x of tap `tap` at position `o` of y; -1 in the padding.
int64_t meeting(const ConvolutionSizes& sizes, int64_t o, int64_t tap) {
  const Values from = position_of(o, sizes.dst);
  const Values k = position_of(tap, sizes.kernel);
  int64_t index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = from[d] * sizes.stride[d] - sizes.padding[d] + k[d] * sizes.dilation[d];
    if (at < 0 || at >= sizes.src[d]) return -1;
    index = index * sizes.src[d] + at;
  }
  return index;
}

// The reverse: the o whose tap `tap` reads a position of x; -1 if there is none.
int64_t origin(const ConvolutionSizes& sizes, int64_t at, int64_t tap) {
  const Values to = position_of(at, sizes.src);
  const Values k = position_of(tap, sizes.kernel);
  int64_t index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t scaled = to[d] + sizes.padding[d] - k[d] * sizes.dilation[d];
    if (scaled < 0 || scaled % sizes.stride[d] != 0) return -1;
    const int64_t o = scaled / sizes.stride[d];
    if (o >= sizes.dst[d]) return -1;
    index = index * sizes.dst[d] + o;
  }
  return index;
}

template <class T>
struct Kernels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  static double value(const void* elements, int64_t i) {
    return static_cast<double>(static_cast<Real>(static_cast<const T*>(elements)[i]));
  }
  static double bias_of(const ConvolutionTensors& from, int64_t channel) {
    return from.bias != nullptr ? value(from.bias, channel) : 0.0;
  }
  static T rounded(double sum) { return static_cast<T>(static_cast<Real>(sum)); }

  static int64_t scratch_size(const ConvolutionSizes&) { return 0; }

  static void forward(const ConvolutionSizes& sizes, const ConvolutionTensors& from, int64_t begin,
                      int64_t end, void* dst, void*) {
    const int64_t taps = volume(sizes.kernel);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / sizes.groups;
      const int64_t c = item % sizes.groups;
      for (int64_t o = 0; o < volume(sizes.dst); ++o) {
        double sum = 0;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = meeting(sizes, o, t);
          if (at < 0) continue;
          sum += value(from.src, (n * volume(sizes.src) + at) * sizes.groups + c) *
                 value(from.weight, c * taps + t);
        }
        static_cast<T*>(dst)[(n * volume(sizes.dst) + o) * sizes.groups + c] =
            rounded(sum + bias_of(from, c));
      }
    }
  }

  static void backward_data(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                            int64_t begin, int64_t end, void* src, void*) {
    const int64_t taps = volume(sizes.kernel);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / sizes.groups;
      const int64_t c = item % sizes.groups;
      for (int64_t at = 0; at < volume(sizes.src); ++at) {
        double sum = 0;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t o = origin(sizes, at, t);
          if (o < 0) continue;
          sum += value(from.dst, (n * volume(sizes.dst) + o) * sizes.groups + c) *
                 value(from.weight, c * taps + t);
        }
        static_cast<T*>(src)[(n * volume(sizes.src) + at) * sizes.groups + c] =
            rounded(sum + bias_of(from, c));
      }
    }
  }

  static void backward_weight(const ConvolutionSizes& sizes, const ConvolutionTensors& from,
                              int64_t begin, int64_t end, void* weight, void*) {
    const int64_t taps = volume(sizes.kernel);
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        double sum = 0;
        for (int64_t n = 0; n < sizes.batch; ++n) {
          for (int64_t o = 0; o < volume(sizes.dst); ++o) {
            const int64_t at = meeting(sizes, o, t);
            if (at < 0) continue;
            sum += value(from.src, (n * volume(sizes.src) + at) * sizes.groups + c) *
                   value(from.dst, (n * volume(sizes.dst) + o) * sizes.groups + c);
          }
        }
        static_cast<Real*>(weight)[c * taps + t] = static_cast<Real>(sum);
      }
    }
  }

  static constexpr DirectKernels all() {
    return {scratch_size, forward, backward_data, backward_weight};
  }
};

}  // namespace

template <>
const DirectKernelsByType& convolution_depthwise_kernels<Capability::kReference>() noexcept {
  static constexpr DirectKernelsByType kKernels = {Kernels<float>::all(), Kernels<c10::Half>::all(),
                                                   Kernels<c10::BFloat16>::all(),
                                                   Kernels<double>::all()};
  return kKernels;
}

const DirectKernelsByType& convolution_depthwise_kernels() noexcept {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return convolution_depthwise_kernels<kVersion>(); });
}

}  // namespace aclnn_host
