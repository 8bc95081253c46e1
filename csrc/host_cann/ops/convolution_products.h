// The computations of a convolution by way of ATen.
#pragma once

#include <array>
#include <optional>

#include <ATen/core/Tensor.h>

#include "host_cann/ops/convolution.h"
#include "host_cann/ops/convolution_strategy.h"
#include "host_cann/ops/convolution_unfold.h"
#include "host_cann/ops/matrix_products.h"

namespace aclnn_host {

// What Route::kUnfolded needs, and products of matrices by kernels of our own, if any.
struct ProductMemory {
  Unfolded unfolded;
  MatrixProducts products;
};

// All tensors of one type, and in one layout. Padding that is not symmetric has been put around
// them. `out` is where matrix products put the result. ATen's convolution puts it there if it can;
// it needs no `out`, nor `memory`, and returns the result where it is.
at::Tensor convolve(const Choice& choice, const ConvolutionGeometry& geometry,
                    const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, const at::Tensor& out,
                    const ProductMemory& memory);

// gradInput and gradWeight, each undefined if it is not wanted.
using Gradients = std::array<at::Tensor, 2>;

// Likewise. Of `input` and `weight` only the shape matters without the gradient of the other.
Gradients convolve_backward(const Choice& choice, const ConvolutionGeometry& geometry,
                            const at::Tensor& grad_output, const at::Tensor& input,
                            const at::Tensor& weight, std::array<bool, 2> wanted,
                            const Gradients& out, const ProductMemory& memory);

}  // namespace aclnn_host
