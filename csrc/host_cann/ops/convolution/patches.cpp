#include "host_cann/ops/convolution/patches.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "host_cann/arguments/aten.h"

namespace aclnn_host {
namespace {

// A view whose dimensions are in the order of the matrix of patches: the batch and dst's positions,
// then a patch in the order of a weight row. `view` has src's dimensions; each spatial one is split
// into the position and the offset in the patch.
TensorView by_patch(const TensorView& view, const ConvolutionSizes& sizes, Layout layout) {
  const uint64_t spatial = view.shape.size() - 2;
  const size_t unused = sizes.kernel.size() - spatial;
  TensorView result = view;
  int64_t* const shape = result.shape.resize(2 * spatial + 2);
  int64_t* const strides = result.strides.resize(2 * spatial + 2);
  uint64_t next = 0;
  const auto add = [&](int64_t size, int64_t stride) {
    shape[next] = size;
    strides[next++] = stride;
  };
  add(view.shape[0], view.strides[0]);
  for (uint64_t d = 0; d < spatial; ++d) {
    add(sizes.dst[unused + d], view.strides[d + 2] * sizes.kernel[unused + d]);
  }
  const bool last = layout == Layout::kChannelsLast;
  if (!last) add(view.shape[1], view.strides[1]);
  for (uint64_t d = 0; d < spatial; ++d) add(sizes.kernel[unused + d], view.strides[d + 2]);
  if (last) add(view.shape[1], view.strides[1]);
  return result;
}

}  // namespace

bool Patches::supports(const Problem& problem) {
  const ConvolutionSizes& sizes = problem.sizes;
  if (problem.pass == Pass::kForward || sizes.groups != 1 || problem.dtype == ACL_DOUBLE ||
      !problem.geometry.is_symmetric()) {
    return false;
  }
  for (size_t d = 0; d < sizes.kernel.size(); ++d) {
    const bool covers = sizes.stride[d] == sizes.kernel[d] && sizes.padding[d] == 0 &&
                        (sizes.dilation[d] == 1 || sizes.kernel[d] == 1) &&
                        sizes.src[d] == sizes.dst[d] * sizes.kernel[d];
    if (!covers) return false;
  }
  return true;
}

Form Patches::form(const Problem& problem, Layout layout, aclDataType dtype) {
  if (MatrixProducts::supports(problem.dtype)) dtype = problem.dtype;
  const bool last = layout == Layout::kChannelsLast;
  return {.layout = layout,
          .weight_layout = last ? Layout::kChannelsLast : Layout::kChannelsFirst,
          .dtype = dtype,
          .image_dtype = dtype,
          .weight_dtype = dtype};
}

Patches::Patches(const Problem& problem, const Form& form, const Passes& passes,
                 Workspace& workspace)
    : sizes_(problem.sizes),
      form_(form),
      passes_(passes),
      products_(product_count(problem.sizes), form.dtype, workspace) {
  const int64_t count = sizes_.batch * sizes_.src_channels * volume(sizes_.src);
  const uint64_t size = aclDataTypeSize(form.dtype);
  patches_ = workspace.reserve(static_cast<uint64_t>(count) * size);
  if (passes.image) {
    bias_ = workspace.reserve(static_cast<uint64_t>(sizes_.src_channels * volume(sizes_.kernel)) *
                              size);
  }
}

void Patches::run(const Operands& operands, Results& results) const {
  const MatrixProducts products = products_.in(operands.workspace);
  const bool last = form_.layout == Layout::kChannelsLast;
  const int64_t positions = sizes_.batch * volume(sizes_.dst);
  const int64_t channels = sizes_.dst_channels;
  const int64_t taps = volume(sizes_.kernel);
  const int64_t elements = sizes_.src_channels * taps;  // per patch
  void* const memory = static_cast<char*>(operands.workspace) + patches_;

  const auto matrix = [dtype = aten_type(form_.dtype)](void* data, int64_t rows, int64_t columns) {
    return at::from_blob(data, {rows, columns}, dtype);
  };
  const auto weight = [&](const TensorView& view) {
    return matrix(view.data(), channels, elements);
  };
  const auto dst = [&](const TensorView& view) {  // [channels, positions]
    return last ? matrix(view.data(), positions, channels).t()
                : matrix(view.data(), channels, positions);
  };
  const at::Tensor patches = matrix(memory, positions, elements);
  const auto copy_of = [&](const TensorView& src) {
    return dense(src.shape, Layout::kChannelsFirst, form_.dtype, memory);
  };

  if (passes_.weight) {
    const TensorView src = by_patch(operands.src, sizes_, form_.layout);
    copy_tensor(src, copy_of(src));
    products.multiply(dst(operands.dst), patches, {}, weight(results.weight.view));
  }
  if (!passes_.image) return;
  // For a transposed convolution: every element of a patch has its channel's bias.
  at::Tensor bias;
  if (operands.bias.storage != nullptr) {
    const at::Tensor given = aten_tensor(operands.bias);
    void* const row = static_cast<char*>(operands.workspace) + bias_;
    bias = last ? matrix(row, taps, sizes_.src_channels).copy_(given)
                : matrix(row, sizes_.src_channels, taps).copy_(given.unsqueeze(1));
    bias = bias.view({elements});
  }
  products.multiply(dst(operands.dst).t(), weight(operands.weight), bias, patches);
  const TensorView src = by_patch(results.image.view, sizes_, form_.layout);
  copy_tensor(copy_of(src), src);
}

}  // namespace aclnn_host
