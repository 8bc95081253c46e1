// The computations of a convolution by way of ATen.
#pragma once

#include <array>
#include <optional>

#include <ATen/core/Tensor.h>

#include "ops/convolution.h"
#include "ops/convolution_strategy.h"
#include "ops/convolution_unfold.h"

namespace aclnn_host {

// All tensors of one type, and in one layout. Padding that is not symmetric has been put around
// them. `out` is where matrix products put the result; ATen's convolution returns another tensor.
// `unfolded` is memory for Route::kUnfolded, and of no meaning to the others.
at::Tensor convolve(const Choice& choice, const ConvolutionGeometry& geometry,
                    const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, const at::Tensor& out,
                    const Unfolded& unfolded);

// gradInput, likewise, and gradWeight; the one that is not wanted is undefined. Of `input` and
// `weight` only the shape matters without the gradient of the other.
std::array<at::Tensor, 2> convolve_backward(const Choice& choice,
                                            const ConvolutionGeometry& geometry,
                                            const at::Tensor& grad_output, const at::Tensor& input,
                                            const at::Tensor& weight, std::array<bool, 2> wanted,
                                            const at::Tensor& grad_input, const Unfolded& unfolded);

}  // namespace aclnn_host
