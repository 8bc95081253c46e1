#include "host_cann/ops/convolution_unfold.h"

#include <algorithm>
#include <cstring>

#include <ATen/Parallel.h>

namespace aclnn_host {
namespace {

// Elements that a thread moves at least.
constexpr int64_t kGrain = 32768;

// Calls body(position in the image, position in its rows, count) for the elements of an image that
// lie side by side in both.
template <class Body>
void for_each_run(const ConvolutionSizes& sizes, Body body) {
  const int64_t channels = sizes.large_channels;
  const int64_t line = sizes.large[2] * channels;
  // Neighbouring taps of a line meet neighbours.
  const bool together = sizes.dilation[2] == 1;
  const int64_t runs = together ? 1 : sizes.kernel[2];
  const int64_t run = sizes.kernel[2] / runs * channels;
  int64_t at = 0;
  for (int64_t z = 0; z < sizes.small[0]; ++z) {
    for (int64_t y = 0; y < sizes.small[1]; ++y) {
      for (int64_t x = 0; x < sizes.small[2]; ++x) {
        for (int64_t kz = 0; kz < sizes.kernel[0]; ++kz) {
          const int64_t plane = (z * sizes.stride[0] + kz * sizes.dilation[0]) * sizes.large[1];
          for (int64_t ky = 0; ky < sizes.kernel[1]; ++ky) {
            const int64_t row = plane + y * sizes.stride[1] + ky * sizes.dilation[1];
            for (int64_t kx = 0; kx < runs; ++kx, at += run) {
              const int64_t column = x * sizes.stride[2] + kx * sizes.dilation[2];
              body(row * line + column * channels, at, run);
            }
          }
        }
      }
    }
  }
}

// Calls body(n) for each image.
template <class Body>
void for_each_image(const at::Tensor& rows, Body body) {
  const int64_t batch = rows.size(0);
  at::parallel_for(0, batch, std::max<int64_t>(1, kGrain * batch / rows.numel()),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; ++n) body(n);
                   });
}

template <class T>
void unfold_as(const at::Tensor& images, const Unfolded& unfolded) {
  const T* const from = images.const_data_ptr<T>();
  T* const to = unfolded.rows.mutable_data_ptr<T>();
  for_each_image(unfolded.rows, [&](int64_t n) {
    const T* const image = from + n * images.stride(0);
    T* const rows = to + n * unfolded.rows.stride(0);
    for_each_run(unfolded.sizes, [=](int64_t position, int64_t at, int64_t count) {
      std::memcpy(rows + at, image + position, static_cast<size_t>(count) * sizeof(T));
    });
  });
}

template <class T>
void fold_as(const Unfolded& unfolded, const at::Tensor& images) {
  const T* const from = unfolded.rows.const_data_ptr<T>();
  T* const to = images.mutable_data_ptr<T>();
  for_each_image(unfolded.rows, [&](int64_t n) {
    const T* const rows = from + n * unfolded.rows.stride(0);
    T* const image = to + n * images.stride(0);
    std::fill_n(image, images.stride(0), T(0));
    for_each_run(unfolded.sizes, [=](int64_t position, int64_t at, int64_t count) {
      const T* __restrict const added = rows + at;
      T* __restrict const sums = image + position;
      for (int64_t i = 0; i < count; ++i) sums[i] += added[i];
    });
  });
}

}  // namespace

void unfold(const at::Tensor& images, const Unfolded& to) {
  const bool wide = images.scalar_type() == at::kDouble;
  (wide ? unfold_as<double> : unfold_as<float>)(images, to);
}

void fold(const Unfolded& from, const at::Tensor& images) {
  const bool wide = images.scalar_type() == at::kDouble;
  (wide ? fold_as<double> : fold_as<float>)(from, images);
}

}  // namespace aclnn_host
