#include "host_cann/ops/convolution/aten_convolution.h"

#include <optional>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include "host_cann/arguments/aten.h"
#include "host_cann/arguments/aten_versions.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/ops/convolution/pieces.h"

namespace aclnn_host {
namespace {

// Another dtype's factors are never shortened.
bool must_avoid(const at::Tensor& factor) {
  return factor.scalar_type() == at::kFloat && shortens_convolution_factors();
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::kDouble) : tensor;
}

AtenOperands widened(const AtenOperands& operands) {
  AtenOperands wide = operands;
  for (at::Tensor* tensor : {&wide.src, &wide.dst, &wide.weight, &wide.bias}) {
    *tensor = widened(*tensor);
  }
  return wide;
}

AtenResults narrowed(AtenResults results) {
  for (at::Tensor* tensor : {&results.image, &results.weight}) {
    if (tensor->defined()) *tensor = tensor->to(at::kFloat);
  }
  return results;
}

// The parameters in ATen's form. oneDNN has no 1-D channels-last layout, so a line becomes an image
// of one row there.
struct Parameters {
  using Values = ConvolutionGeometry::Values;

  bool adds_row;
  uint64_t count;
  Values stride;
  Values padding;
  Values dilation;
  Values output_padding;

  Parameters(const ConvolutionGeometry& geometry, Layout layout)
      : adds_row(layout == Layout::kChannelsLast && geometry.spatial == 1),
        count(geometry.spatial + adds_row),
        stride(extended(geometry.stride, 1)),
        padding(extended(geometry.is_symmetric() ? geometry.padding_before : Values{}, 0)),
        dilation(extended(geometry.dilation, 1)),
        output_padding(extended(geometry.output_padding, 0)) {}

  Values extended(const Values& values, int64_t neutral) const {
    return adds_row ? Values{neutral, values[0]} : values;
  }
  at::IntArrayRef array(const Values& values) const { return {values.data(), count}; }
  at::Tensor with_row(const at::Tensor& tensor) const {
    return adds_row ? tensor.unsqueeze(2) : tensor;
  }
  at::Tensor without_row(const at::Tensor& tensor) const {
    return adds_row && tensor.defined() ? tensor.squeeze(2) : tensor;
  }
};

// Reshapes a bias to broadcast over images with this many dimensions.
at::Tensor beside(const at::Tensor& bias, int64_t dimensions) {
  std::vector<int64_t> sizes(static_cast<size_t>(dimensions), 1);
  sizes[1] = bias.size(0);
  return bias.view(sizes);
}

// aclnnConvolution. ATen and oneDNN start most sums with the bias, so that every partial sum would
// be rounded at its magnitude. The bias is therefore added to the result, except in 16 bits, where
// sums have more precision and are rounded once.
AtenResults convolve(const ConvolutionGeometry& geometry, Layout layout,
                     const AtenOperands& operands) {
  const at::Tensor& input = geometry.transposed ? operands.dst : operands.src;
  if (must_avoid(input)) return narrowed(convolve(geometry, layout, widened(operands)));
  const Parameters p(geometry, layout);
  const at::Tensor& bias = operands.bias;
  const bool adds = bias.defined() && input.element_size() > 2;
  const at::Tensor result =
      at::convolution(p.with_row(input), p.with_row(operands.weight),
                      bias.defined() && !adds ? std::optional(bias) : std::nullopt,
                      p.array(p.stride), p.array(p.padding), p.array(p.dilation),
                      geometry.transposed, p.array(p.output_padding), geometry.groups);
  const at::Tensor image = p.without_row(result);
  if (adds) image.add_(beside(bias, image.dim()));
  return {image, {}};
}

// aclnnConvolutionBackward.
AtenResults convolve_backward(const ConvolutionGeometry& geometry, Layout layout,
                              const Passes& passes, const AtenOperands& operands) {
  if (must_avoid(operands.weight)) {
    return narrowed(convolve_backward(geometry, layout, passes, widened(operands)));
  }
  const Parameters p(geometry, layout);
  const at::Tensor& input = geometry.transposed ? operands.dst : operands.src;
  const at::Tensor& grad_output = geometry.transposed ? operands.src : operands.dst;
  const auto [grad_input, grad_weight, none] = at::convolution_backward(
      p.with_row(grad_output), p.with_row(input), p.with_row(operands.weight), std::nullopt,
      p.array(p.stride), p.array(p.padding), p.array(p.dilation), geometry.transposed,
      p.array(p.output_padding), geometry.groups,
      std::array{passes.image.has_value(), passes.weight, false});
  return {p.without_row(grad_input), p.without_row(grad_weight)};
}

// True if a transposed convolution pads its output by less than a stride. ATen computes other cases
// without oneDNN and rounds more than once.
bool has_common_output_padding(const ConvolutionGeometry& geometry) {
  for (uint64_t d = 0; geometry.transposed && d < geometry.spatial; ++d) {
    if (geometry.output_padding[d] >= geometry.stride[d]) return false;
  }
  return true;
}

}  // namespace

// ATen hands convolutions of several images to oneDNN, but rounds some of those of a single image
// more than once. Pieces of gradWeight would each be rounded.
bool AtenConvolution::supports_bfloat16(const Problem& problem) {
  // For a strided output of a single column, oneDNN reads memory outside the image.
  const bool is_strided_column = problem.sizes.dst[2] == 1 && problem.sizes.stride[2] > 1;
  return problem.dtype == ACL_BF16 && !problem.deterministic && problem.geometry.is_symmetric() &&
         problem.sizes.batch > 1 && !is_strided_column &&
         has_common_output_padding(problem.geometry) && has_avx512_bf16() &&
         at::globalContext().userEnabledMkldnn();
}

// oneDNN reorders weights itself, so it accepts them in either layout. MKL's sums depend on the
// operands' alignment within a cache line. MKL computes DOUBLE, and cases that oneDNN passes to it:
// channel counts that are not a multiple of the vector length.
Form AtenConvolution::form(const Problem& problem, Layout layout, aclDataType dtype) {
  constexpr int64_t kVector = 16;
  const bool fill =
      problem.sizes.src_channels % kVector == 0 && problem.sizes.dst_channels % kVector == 0;
  return {.layout = layout,
          .weight_layout = Layout::kAsGiven,
          .dtype = dtype,
          .image_dtype = dtype,
          .weight_dtype = dtype,
          .placement = fill && dtype != ACL_DOUBLE ? Placement::kAnywhere : Placement::kCacheLine,
          .pads_src = true,
          .allocates = true,
          .in_pieces = problem.deterministic};
}

void AtenConvolution::run(const Operands& operands, Results& results) const {
  const AtenOperands tensors(operands, form_.dtype);
  const auto compute = [this](const AtenOperands& some) {
    return is_gradient_ ? convolve_backward(geometry_, form_.layout, passes_, some)
                        : convolve(geometry_, form_.layout, some);
  };
  take(form_.in_pieces ? compute_in_pieces(tensors, passes_, compute) : compute(tensors), results);
}

}  // namespace aclnn_host
