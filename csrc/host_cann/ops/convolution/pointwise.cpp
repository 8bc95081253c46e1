#include "host_cann/ops/convolution/pointwise.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

#include "host_cann/ops/convolution/pieces.h"

namespace aclnn_host {
namespace {

// Images as matrices: [batch, channels, positions]; or one matrix of all images: [batch *
// positions, channels] for channels-last, [channels, batch * positions] with the channels
// outermost.
at::Tensor matrices(const at::Tensor& images, Layout layout) {
  const int64_t batch = images.size(0);
  const int64_t channels = images.size(1);
  const int64_t positions = images.numel() / (batch * channels);
  if (layout == Layout::kChannelsLast) {
    return images.as_strided({batch * positions, channels}, {channels, 1});
  }
  if (layout == Layout::kChannelsOutermost) {
    return images.as_strided({channels, batch * positions}, {images.stride(1), 1});
  }
  return images.as_strided({batch, channels, positions}, {channels * positions, positions, 1});
}

// out = matrix x images + bias. Without the project's kernels ATen multiplies: in DOUBLE the bias
// is added last, so that partial sums are not rounded at its magnitude; in 16 bits all images are
// one matrix, whose sums and bias are rounded once.
void multiply(const at::Tensor& matrix, const at::Tensor& images, const at::Tensor& bias,
              at::Tensor out, Layout layout, const MatrixProducts& products) {
  const bool last = layout == Layout::kChannelsLast;
  const at::Tensor& left = last ? images : matrix;
  const at::Tensor right = last ? matrix.t() : images;
  const at::Tensor added = !bias.defined() || last ? bias : bias.unsqueeze(1);
  if (products) return products.multiply(left, right, added, out);
  if (bias.defined() && out.scalar_type() != at::kDouble) {
    at::addmm_out(out, added, left, right);
    return;
  }
  if (layout == Layout::kChannelsFirst) {
    at::bmm_out(out, left.expand({right.size(0), -1, -1}), right);
  } else {
    at::mm_out(out, left, right);
  }
  if (bias.defined()) out.add_(added);
}

// sum = the products of two images' channels, summed over the positions.
void multiply_channels(const at::Tensor& rows, const at::Tensor& columns, at::Tensor sum,
                       Layout layout, const MatrixProducts& products) {
  const bool last = layout == Layout::kChannelsLast;
  const at::Tensor left = last ? rows.t() : rows;
  const at::Tensor right = last ? columns : columns.transpose(-2, -1);
  if (products) {
    products.multiply(left, right, {}, sum);
  } else if (layout != Layout::kChannelsFirst) {
    at::mm_out(sum, left, right);
  } else {
    sum.zero_();
    for (int64_t n = 0; n < left.size(0); ++n) sum.addmm_(left[n], right[n]);
  }
}

AtenResults compute(const AtenOperands& operands, Layout layout, const Passes& passes,
                    const MatrixProducts& products) {
  if (passes.weight) {
    multiply_channels(matrices(operands.dst, layout), matrices(operands.src, layout),
                      operands.weight_gradient.flatten(1), layout, products);
  }
  if (passes.image) {
    const at::Tensor weight = operands.weight.flatten(1);  // [dst channels, src channels]
    const bool forward = passes.image == Pass::kForward;
    multiply(forward ? weight : weight.t(), matrices(forward ? operands.src : operands.dst, layout),
             operands.bias, matrices(operands.image, layout), layout, products);
  }
  return {operands.image, operands.weight_gradient};
}

}  // namespace

bool Pointwise::supports(const Problem& problem) {
  constexpr ConvolutionSizes::Values kOnes{1, 1, 1};
  const ConvolutionSizes& sizes = problem.sizes;
  return sizes.groups == 1 && sizes.kernel == kOnes && sizes.stride == kOnes &&
         sizes.dst == sizes.src && sizes.padding == ConvolutionSizes::Values{};
}

// Operands of the project's kernels need not be widened. MKL's DOUBLE sums depend on the operands'
// alignment within a cache line.
Form Pointwise::form(const Problem& problem, Layout layout, aclDataType dtype) {
  if (MatrixProducts::supports(problem.dtype)) dtype = problem.dtype;
  return {.layout = layout,
          .weight_layout = Layout::kChannelsFirst,
          .dtype = dtype,
          .image_dtype = dtype,
          .weight_dtype = dtype,
          .placement = dtype == ACL_DOUBLE ? Placement::kCacheLine : Placement::kAnywhere,
          .in_pieces = problem.deterministic && !MatrixProducts::supports(dtype)};
}

Pointwise::Pointwise(const Problem& problem, const Form& form, const Passes& passes,
                     Workspace& workspace)
    : form_(form), passes_(passes) {
  if (MatrixProducts::supports(form.dtype)) {
    products_ = MatrixProducts(product_count(problem.sizes), form.dtype, workspace);
  }
}

void Pointwise::run(const Operands& operands, Results& results) const {
  const AtenOperands tensors(operands, results, form_.dtype);
  const auto compute = [&, products = products_.in(operands.workspace)](const AtenOperands& some) {
    return aclnn_host::compute(some, form_.layout, passes_, products);
  };
  take(form_.in_pieces ? compute_in_pieces(tensors, passes_, compute) : compute(tensors), results);
}

}  // namespace aclnn_host
