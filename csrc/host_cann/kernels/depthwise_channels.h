// Included by kernels only: compiled once per CPU capability, all names internal to the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include "host_cann/kernels/convolution_direct.h"
#include "host_cann/kernels/positions.h"
#include "host_cann/kernels/scratch.h"
#include "host_cann/kernels/sizes.h"

namespace aclnn_host {
namespace {

// Vectors hold channels: a position is a few vectors, multiplied by the vectors of the weights that
// apply to it.
template <class T>
struct DepthwiseChannels {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using V = at::vec::Vectorized<Real>;
  static constexpr int64_t kVectors = std::is_same_v<T, Real> ? 1 : 2;
  static constexpr int64_t kStep = kVectors * V::size();
  // Steps of channels that are summed together, for a weight's gradient.
  static constexpr int64_t kSteps = 4;
  // Terms summed in Real before the sum goes into a double.
  static constexpr int64_t kSegment = 1024;

  // A step of channels.
  struct Step {
    V vectors[kVectors];
  };

  // `n` is the number of channels, at most a step.
  static Step load(const T* from, int64_t n) {
    if constexpr (std::is_same_v<T, Real>) {
      return {{n == kStep ? V::loadu(from) : V::loadu(from, n)}};
    } else {
      const auto elements =
          n == kStep ? at::vec::Vectorized<T>::loadu(from) : at::vec::Vectorized<T>::loadu(from, n);
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

  // A term of a position: channels of the other tensor, and weights.
  struct Term {
    const T* from;
    const Real* factors;
  };

  // The scratch memory of a call.
  struct Scratch {
    int64_t taps;
    int64_t pitch;  // between taps
    Real* weights;  // [taps, channels]
    Real* bias;     // zeros if absent
    double* sums;   // [taps, channels of kSteps steps]
    Term* terms;    // for a row, then for a position
    int64_t size;

    Scratch(const ConvolutionSizes& sizes, void* memory)
        : taps(volume(sizes.kernel)), pitch(round_up(sizes.groups, kStep)) {
      ScratchParts parts(memory);
      // A step of the last row may begin within it and end after it.
      weights = parts.take<Real>(taps * pitch + kStep);
      bias = parts.take<Real>(pitch + kStep);
      sums = parts.take<double>(taps * kSteps * kStep);
      terms = parts.take<Term>(2 * taps);
      size = parts.size();
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

    void read_factors(const ConvolutionSizes& sizes, const ConvolutionTensors& from) const {
      read_weights(sizes, from.weight);
      read_bias(sizes, from.bias);
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

  static Step zeros() {
    Step step;
    for (V& vector : step.vectors) vector = V(Real(0));
    return step;
  }

  // Added last, so that partial sums are not rounded at the bias's magnitude.
  static Step with_bias(const Step& sum, const Real* bias) {
    Step all;
    for (int64_t v = 0; v < kVectors; ++v) {
      all.vectors[v] = sum.vectors[v] + V::loadu(bias + v * V::size());
    }
    return all;
  }
};

}  // namespace
}  // namespace aclnn_host
