#pragma once

#include <array>

#include "cann/rows/row.h"

namespace aclnn_host {

// Checks that the gradient has the batch and the channels of self, and that the last `pooled`
// dimensions are not empty. ATen's gradients of pooling and padding rely on it.
inline void expect_planes(const char* name, const at::Tensor& grad, at::IntArrayRef self,
                          int64_t pooled, const char* self_name = "self") {
  const auto dims = static_cast<int64_t>(self.size());
  EXPECT(dims == pooled + 1 || dims == pooled + 2, self_name, " has ", dims,
         " dimensions, expected ", pooled + 1, " or ", pooled + 2);
  expect_dims(name, grad, dims);
  const auto kept = static_cast<size_t>(dims - pooled);
  EXPECT(grad.sizes().slice(0, kept) == self.slice(0, kept), name, " has shape ", grad.sizes(),
         ", expected ", self.slice(0, kept), " in the leading dimensions");
  EXPECT(grad.numel() == 0 || c10::multiply_integers(self) > 0, self_name, " has shape ", self,
         ", expected sizes of 1 or more");
}

// The shape of a tensor with the sizes of its last `dims` dimensions replaced by `last`.
inline std::vector<int64_t> with_last_sizes(const at::Tensor& tensor, int64_t dims,
                                            at::IntArrayRef last) {
  std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end() - dims);
  sizes.insert(sizes.end(), last.begin(), last.end());
  return sizes;
}

// Requires two numbers, each at least `least` and within 32 bits.
inline void check_pair(const char* name, at::IntArrayRef values, int64_t least) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT(values.size() == 2 &&
             std::ranges::all_of(
                 values, [least](int64_t value) { return value >= least && value <= kMost; }),
         name, " is ", values, ", expected two numbers from ", least, " on");
}

// The number of windows along each of the last two dimensions of an image: (size + 2 padding -
// dilation (kernel - 1) - 1) / stride + 1. The arguments are checked pairs.
inline std::array<int64_t, 2> windows_in(const at::Tensor& image, at::IntArrayRef kernel,
                                         at::IntArrayRef stride, at::IntArrayRef padding,
                                         at::IntArrayRef dilation) {
  std::array<int64_t, 2> counts;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = image.size(static_cast<int64_t>(i) - 2);
    const int64_t rest = size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    EXPECT(rest >= 0, "kernelSize is ", kernel, ", expected windows that fit into self, ",
           image.sizes(), ", with padding ", padding, " and dilation ", dilation);
    counts[i] = rest / stride[i] + 1;
  }
  return counts;
}

}  // namespace aclnn_host
