// Unfolded images: for each position of the small image a row of all elements that the kernel meets
// from there, with which a convolution is one product of matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include "host_cann/kernels/convolution_direct.h"

namespace aclnn_host {

struct Unfolded {
  ConvolutionSizes sizes;
  at::Tensor rows;  // [images, small positions, taps * large channels], FLOAT or DOUBLE
};

// Fills the rows from the large images, which are channels-last and have no padding.
void unfold(const at::Tensor& images, const Unfolded& to);

// The other way: every element becomes the sum of those that it would be unfolded to, in one order
// for any number of threads.
void fold(const Unfolded& from, const at::Tensor& images);

}  // namespace aclnn_host
