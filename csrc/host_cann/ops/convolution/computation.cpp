#include "host_cann/ops/convolution/computation.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "host_cann/arguments/aten.h"

namespace aclnn_host {
namespace {

// The asymmetric part of the padding, which ATen does not support.
Padding padding_of(const ConvolutionGeometry& geometry) {
  if (geometry.is_symmetric()) return {};
  return {geometry.padding_before, geometry.padding_after};
}

bool overlap(const TensorView& a, const TensorView& b) {
  const Region first = region_of(a);
  const Region second = region_of(b);
  const auto* const begin = static_cast<const char*>(first.begin);
  const auto* const other = static_cast<const char*>(second.begin);
  return begin < other + second.size && other < begin + first.size;
}

// Chooses a result's memory: its tensor, or newly allocated memory if that overlaps a source.
Result place_of(const TensorView& view, std::span<const TensorView> sources) {
  Result result{view, {}, {}};
  const bool overlaps = std::any_of(sources.begin(), sources.end(), [&](const TensorView& source) {
    return overlap(view, source);
  });
  if (!overlaps) return result;
  result.memory = at::empty({element_count(view.shape).value()}, aten_type(view.dtype));
  result.view.storage = result.memory.data_ptr();
  result.view.offset = 0;
  return result;
}

// Extends values to the kernels' number of dimensions; an operator may have fewer.
ConvolutionSizes::Values sizes_of(uint64_t spatial, const int64_t* values, int64_t neutral) {
  ConvolutionSizes::Values sizes;
  sizes.fill(neutral);
  std::copy_n(values, spatial, sizes.end() - spatial);
  return sizes;
}

}  // namespace

Computation::Computation(const Choice& choice, const Problem& problem, const Passes& passes,
                         const CallerTensors& tensors, const ComputeType& type,
                         Workspace& workspace)
    : passes_(passes),
      form_(choice.form),
      padding_(form_.pads_src ? padding_of(problem.geometry) : Padding()),
      algorithm_(choice.make(problem, form_, passes, workspace)) {
  const auto operand = [&](const TensorView& view, Layout layout, const Padding& padding) {
    return Operand(view, form_.dtype, round_factor(view, type), layout, workspace, padding,
                   form_.placement);
  };
  const auto result = [&](const TensorView& view, aclDataType dtype, Layout layout) {
    return Operand(view, dtype, nullptr, layout, workspace, {}, form_.placement);
  };
  if (tensors.src != nullptr) src_ = operand(*tensors.src, form_.layout, padding_);
  if (tensors.dst != nullptr) dst_ = operand(*tensors.dst, form_.layout, {});
  weight_ = operand(*tensors.weight, form_.weight_layout, {});
  if (tensors.bias != nullptr) {
    bias_ = Operand(*tensors.bias, form_.image_dtype, tensors.round_bias, Layout::kChannelsFirst,
                    workspace);
  }
  if (form_.allocates) return;
  if (passes.image) image_ = result(*tensors.image, form_.image_dtype, form_.layout);
  if (passes.weight) {
    weight_gradient_ = result(*tensors.weight_gradient, form_.weight_dtype, form_.weight_layout);
  }
}

void Computation::run(const CallerTensors& tensors, const Sources& sources, Results& results,
                      void* workspace) const {
  const auto read = [&](const Operand& operand, const TensorView* view, bool is_read) {
    if (view == nullptr) return TensorView();
    return is_read ? operand.read(*view, workspace) : operand.place(*view, workspace);
  };
  const Operands operands{read(src_, tensors.src, passes_.read_src()),
                          read(dst_, tensors.dst, passes_.read_dst()),
                          read(weight_, tensors.weight, passes_.image.has_value()),
                          read(bias_, tensors.bias, true), workspace};
  if (passes_.image && !form_.allocates) {
    results.image = place_of(image_.place(*tensors.image, workspace), sources.of_image);
  }
  if (passes_.weight && !form_.allocates) {
    results.weight =
        place_of(weight_gradient_.place(*tensors.weight_gradient, workspace), sources.of_weight);
  }
  std::visit([&](const auto& algorithm) { algorithm.run(operands, results); }, algorithm_);
  if (passes_.image == Pass::kBackwardData) results.image.padding = padding_;
}

RoundingKernel round_factor(const TensorView& view, const ComputeType& type) {
  return view.dtype == type.dtype && view.dtype != ACL_FLOAT ? nullptr : type.round_input;
}

RoundingKernel round_bias(const TensorView& view, const ComputeType& type, bool transposed,
                          Product product) {
  const bool adds_in_float =
      transposed || (type.dtype == ACL_BF16 && product != Product::kAscend950);
  if (has_fp32_units(product) && adds_in_float) return nullptr;
  return view.dtype == type.dtype ? nullptr : type.round_result;
}

aclDataType common_type(std::span<const TensorView> tensors, const ComputeType& type) {
  const bool common = std::all_of(tensors.begin(), tensors.end(), [&](const TensorView& tensor) {
    return tensor.dtype == type.dtype;
  });
  return common ? type.dtype : sum_type(type.dtype);
}

ConvolutionGeometry::Values take_steps(ConvolutionGeometry& geometry, const TensorView& weight) {
  constexpr ConvolutionGeometry::Values kNone{};
  const bool one = std::all_of(weight.shape.begin() + 2, weight.shape.end(),
                               [](int64_t size) { return size == 1; });
  ConvolutionGeometry::Values steps = kNoSteps;
  if (!one || geometry.transposed || geometry.padding_before != kNone ||
      geometry.padding_after != kNone) {
    return steps;
  }
  for (uint64_t d = 0; d < geometry.spatial; ++d) std::swap(steps[d], geometry.stride[d]);
  return steps;
}

ConvolutionSizes sizes_of(const TensorView& input, const TensorView& weight,
                          const TensorView& result, const ConvolutionGeometry& geometry) {
  const TensorView& src = geometry.transposed ? result : input;
  const TensorView& dst = geometry.transposed ? input : result;
  const uint64_t spatial = geometry.spatial;
  ConvolutionSizes sizes;
  sizes.batch = input.shape[0];
  sizes.groups = geometry.groups;
  sizes.src_channels = weight.shape[1];
  sizes.dst_channels = weight.shape[0] / geometry.groups;
  sizes.src = sizes_of(spatial, src.shape.begin() + 2, 1);
  sizes.dst = sizes_of(spatial, dst.shape.begin() + 2, 1);
  sizes.kernel = sizes_of(spatial, weight.shape.begin() + 2, 1);
  sizes.stride = sizes_of(spatial, geometry.stride.data(), 1);
  sizes.padding = sizes_of(spatial, geometry.padding_before.data(), 0);
  sizes.dilation = sizes_of(spatial, geometry.dilation.data(), 1);
  return sizes;
}

void finish(const Result& result, RoundingKernel kernel, const TensorView& to) {
  round(result.view, kernel);
  if (result.view.data() != to.data()) copy_tensor(within(result.view, result.padding), to);
}

void store_zeros(const TensorView& to) {
  static constexpr double kZero = 0;  // zero in any dtype
  TensorView zeros = dense(to.shape, Layout::kChannelsFirst, to.dtype, const_cast<double*>(&kZero));
  std::fill_n(zeros.strides.begin(), zeros.strides.size(), 0);
  copy_tensor(zeros, to);
}

}  // namespace aclnn_host
