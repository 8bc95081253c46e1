#include "ops/convolution_plan.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/strides.h>

#include "ops/aten.h"
#include "ops/packed.h"

namespace aclnn_host {
namespace {

// Elements that a thread rounds at least.
constexpr int64_t kGrain = 32768;

at::IntArrayRef as_array(const Dims& dims) {
  return {dims.begin(), dims.size()};
}

at::IntArrayRef as_array(const ConvolutionGeometry& geometry,
                         const ConvolutionGeometry::Values& values) {
  return {values.data(), geometry.spatial};
}

bool has_negative_stride(const TensorView& view) {
  return std::any_of(view.strides.begin(), view.strides.end(),
                     [](int64_t stride) { return stride < 0; });
}

// Whether ATen can write to a tensor: no two elements share memory for certain.
bool is_writable_by_aten(const TensorView& view) {
  for (uint64_t d = 0; d < view.shape.size(); ++d) {
    if (view.strides[d] < 0 || (view.strides[d] == 0 && view.shape[d] > 1)) return false;
  }
  return true;
}

TensorView describe(const at::Tensor& tensor, aclDataType dtype) {
  TensorView view;
  view.shape = Dims(tensor.sizes().data(), tensor.dim());
  view.strides = Dims(tensor.strides().data(), tensor.dim());
  view.dtype = dtype;
  view.storage = tensor.data_ptr();
  return view;
}

aclDataType acl_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? ACL_DOUBLE : ACL_FLOAT;
}

// The strides of new memory for a tensor, in the order of dimensions of the one it is made from.
std::vector<int64_t> strides_like(const TensorView& view, const Dims& shape) {
  const at::IntArrayRef sizes = as_array(view.shape);
  const at::IntArrayRef strides = as_array(view.strides);
  if (sizes.size() == 4 && c10::is_channels_last_strides_2d(sizes, strides)) {
    return c10::get_channels_last_strides_2d(as_array(shape));
  }
  if (sizes.size() == 5 && c10::is_channels_last_strides_3d(sizes, strides)) {
    return c10::get_channels_last_strides_3d(as_array(shape));
  }
  const c10::DimVector contiguous = c10::contiguous_strides(as_array(shape));
  return {contiguous.begin(), contiguous.end()};
}

// Rounds the FLOAT elements of a tensor whose memory has no gaps.
void round(const at::Tensor& tensor, RoundingKernel kernel) {
  if (kernel == nullptr) return;
  auto* const values = tensor.mutable_data_ptr<float>();
  at::parallel_for(0, tensor.numel(), kGrain,
                   [&](int64_t begin, int64_t end) { kernel(values + begin, end - begin); });
}

// The part of a tensor that its margins surround.
at::Tensor within(at::Tensor tensor, const Margins& margins, uint64_t spatial) {
  for (uint64_t d = 0; d < spatial; ++d) {
    const int64_t before = margins.before[d];
    const int64_t inside = tensor.size(d + 2) - before - margins.after[d];
    tensor = tensor.narrow(static_cast<int64_t>(d) + 2, before, inside);
  }
  return tensor;
}

// Writes a result to the tensor it belongs to, cast to its type.
void store(const at::Tensor& result, const TensorView& to) {
  if (is_writable_by_aten(to)) {
    aten_tensor(to).copy_(result);
  } else {
    const at::Tensor dense = result.contiguous();
    copy_elements(describe(dense, acl_type(dense)), to);
  }
}

void store_zeros(const TensorView& to) {
  store(at::zeros({1}, aten_type(ACL_FLOAT)).expand(as_array(to.shape)), to);
}

// A bias, or the gradient of one, as a tensor of the rank of `geometry`.
at::Tensor along_channels(const at::Tensor& values, const ConvolutionGeometry& geometry) {
  std::vector<int64_t> shape(geometry.spatial + 2, 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// Asymmetric padding, which ATen lacks.
Margins margins_of(const ConvolutionGeometry& geometry) {
  if (geometry.is_symmetric()) return {};
  return {geometry.padding_before, geometry.padding_after};
}

// What is left to ATen then.
at::IntArrayRef padding_of(const ConvolutionGeometry& geometry) {
  static constexpr ConvolutionGeometry::Values kNone{};
  return as_array(geometry, geometry.is_symmetric() ? geometry.padding_before : kNone);
}

// Whether torch.backends lets oneDNN shorten the factors of FP32 products. The setting is the whole
// process's and its owner's; DOUBLE is out of its reach.
bool must_avoid_fp32() {
  using at::Float32Precision;
  const Float32Precision precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  return precision == Float32Precision::BF16 || precision == Float32Precision::TF32;
}

at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(at::kDouble);
}

at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, const ConvolutionGeometry& geometry) {
  if (input.scalar_type() == at::kFloat && must_avoid_fp32()) {
    const auto wide_bias = bias ? std::optional(widened(*bias)) : std::nullopt;
    return convolve(widened(input), widened(weight), wide_bias, geometry).to(at::kFloat);
  }
  return at::convolution(input, weight, bias, as_array(geometry, geometry.stride),
                         padding_of(geometry), as_array(geometry, geometry.dilation),
                         geometry.transposed, as_array(geometry, geometry.output_padding),
                         geometry.groups);
}

// gradInput and gradWeight; the one that is not wanted is undefined.
std::array<at::Tensor, 2> convolve_backward(const at::Tensor& grad_output, const at::Tensor& input,
                                            const at::Tensor& weight,
                                            const ConvolutionGeometry& geometry,
                                            std::array<bool, 2> wanted) {
  if (input.scalar_type() == at::kFloat && must_avoid_fp32()) {
    auto gradients =
        convolve_backward(widened(grad_output), widened(input), widened(weight), geometry, wanted);
    for (at::Tensor& gradient : gradients) {
      if (gradient.defined()) gradient = gradient.to(at::kFloat);
    }
    return gradients;
  }
  auto [grad_input, grad_weight, none] = at::convolution_backward(
      grad_output, input, weight, std::nullopt, as_array(geometry, geometry.stride),
      padding_of(geometry), as_array(geometry, geometry.dilation), geometry.transposed,
      as_array(geometry, geometry.output_padding), geometry.groups,
      std::array{wanted[0], wanted[1], false});
  return {grad_input, grad_weight};
}

// The type for values that are summed as they are.
ComputeType exact(const ComputeType& type) {
  return {type.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT, nullptr, nullptr};
}

// The kernel that rounds a result to `dtype` before it is cast to the type of the tensor it goes
// to; null if the cast does just that.
RoundingKernel before_cast(RoundingKernel kernel, aclDataType dtype, const TensorView& to) {
  return to.dtype == dtype ? nullptr : kernel;
}

}  // namespace

RoundingKernel rounding_to(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return current_rounding_kernels().half;
    case ACL_BF16: return current_rounding_kernels().bfloat16;
    default: return nullptr;
  }
}

const RoundingKernels& current_rounding_kernels() {
  return select_kernels(
      []<Capability kVersion>() -> auto& { return rounding_kernels<kVersion>(); });
}

ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product) {
  constexpr int8_t kKeep = 0;
  constexpr int8_t kHalf = 2;
  if (promoted == ACL_DOUBLE) return {ACL_DOUBLE, nullptr, nullptr};
  aclDataType dtype = promoted;
  if (cube_math_type == kHalf ||
      (promoted == ACL_FLOAT && cube_math_type != kKeep && !has_fp32_units(product))) {
    dtype = ACL_FLOAT16;
  }
  if (dtype != ACL_FLOAT) return {dtype, rounding_to(dtype), rounding_to(dtype)};
  if (cube_math_type == kKeep) return {ACL_FLOAT, nullptr, nullptr};
  const RoundingKernels& kernels = current_rounding_kernels();
  return {ACL_FLOAT, product == Product::kAscend950 ? kernels.hf32_10 : kernels.hf32_11, nullptr};
}

Operand::Operand(const TensorView& view, const ComputeType& type, Workspace& workspace,
                 const Margins& margins)
    : dtype_(aten_type(type.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT)), margins_(margins) {
  const bool fits = view.dtype == type.dtype && view.dtype != ACL_FLOAT;
  round_ = fits ? nullptr : type.round_input;
  in_place_ = is_exact() && aten_type(view.dtype) == dtype_ && !has_negative_stride(view);
  if (in_place_) return;
  shape_ = view.shape;
  for (uint64_t d = 2; d < shape_.size(); ++d) {
    shape_.begin()[d] += margins.before[d - 2] + margins.after[d - 2];
  }
  const std::vector<int64_t> strides = strides_like(view, shape_);
  strides_ = Dims(strides.data(), strides.size());
  const auto count = static_cast<uint64_t>(element_count(shape_).value_or(0));
  offset_ = workspace.reserve(count * c10::elementSize(dtype_));
}

at::Tensor Operand::shape_of(const TensorView& view, void* workspace) const {
  if (in_place_) return aten_tensor(view);
  return at::from_blob(static_cast<char*>(workspace) + offset_, as_array(shape_),
                       as_array(strides_), dtype_);
}

at::Tensor Operand::read(const TensorView& view, void* workspace) const {
  const at::Tensor all = shape_of(view, workspace);
  if (in_place_) return all;
  at::Tensor inside = all;
  if (margins_ != Margins()) {
    all.zero_();
    inside = within(all, margins_, all.dim() - 2);
  }
  if (has_negative_stride(view)) {
    copy_elements(view, describe(inside, acl_type(inside)));
  } else {
    inside.copy_(aten_tensor(view));
  }
  round(all, round_);
  return all;
}

ConvolutionPlan::ConvolutionPlan(const aclTensor* input, const aclTensor* weight,
                                 const aclTensor* bias, const aclTensor* output,
                                 const ConvolutionGeometry& geometry, const ComputeType& type,
                                 Workspace& workspace)
    : geometry(geometry),
      type(type),
      has_products(!is_empty(input->view) && !is_empty(weight->view)) {
  for (const aclTensor* tensor : {input, weight, bias, output}) {
    if (tensor != nullptr) tensors[tensor_count++] = tensor->view;
  }
  if (is_empty(output->view)) return;
  if (has_products) {
    const Margins margins = margins_of(geometry);
    this->input = Operand(input->view, type, workspace, geometry.transposed ? Margins() : margins);
    this->weight = Operand(weight->view, type, workspace);
  }
  // A bias is no factor of a product, so HF32 leaves it alone.
  if (bias != nullptr) {
    this->bias = Operand(bias->view, type.dtype == ACL_FLOAT ? exact(type) : type, workspace);
  }
}

aclnnStatus ConvolutionPlan::compute(void* workspace) noexcept {
  return computed([&] {
    const TensorView& out = output_view();
    if (is_empty(out)) return OK;
    const AtenScope scope;
    std::optional<at::Tensor> values;
    if (has_bias()) values = bias.read(tensors[2], workspace);
    if (!has_products) {
      if (!values) {
        store_zeros(out);
      } else {
        round(*values, before_cast(type.round_result, type.dtype, out));
        store(along_channels(*values, geometry).expand(as_array(out.shape)), out);
      }
      return OK;
    }
    at::Tensor result = convolve(input.read(tensors[0], workspace),
                                 weight.read(tensors[1], workspace), values, geometry);
    round(result, before_cast(type.round_result, type.dtype, out));
    if (geometry.transposed) result = within(result, margins_of(geometry), geometry.spatial);
    store(result, out);
    return OK;
  });
}

ConvolutionBackwardPlan::ConvolutionBackwardPlan(const aclTensor* grad_output,
                                                 const aclTensor* input, const aclTensor* weight,
                                                 const Gradients& gradients, const bool* wanted,
                                                 const ConvolutionGeometry& geometry,
                                                 const ComputeType& type, Workspace& workspace)
    : geometry(geometry),
      type(type),
      has_products(!is_empty(input->view) && !is_empty(weight->view)) {
  for (const aclTensor* tensor : {grad_output, input, weight}) {
    tensors[tensor_count++] = tensor->view;
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == nullptr) continue;
    if (wanted[i]) positions[i] = tensor_count;
    tensors[tensor_count++] = gradients[i]->view;
  }
  if (!has_products) return;
  if (wants(0) || wants(1)) {
    const Margins margins = margins_of(geometry);
    const bool transposed = geometry.transposed;
    this->grad_output =
        Operand(grad_output->view, type, workspace, transposed ? margins : Margins());
    this->input = Operand(input->view, type, workspace, transposed ? Margins() : margins);
    this->weight = Operand(weight->view, type, workspace);
  }
  const bool shared = (wants(0) || wants(1)) && this->grad_output.is_exact();
  if (wants(2)) {
    bias_source = shared ? this->grad_output : Operand(grad_output->view, exact(type), workspace);
  }
}

void ConvolutionBackwardPlan::compute_gradients(void* workspace) {
  // All are computed before any is written: they may share memory with the inputs.
  at::Tensor grad_bias;
  if (wants(2)) {
    std::vector<int64_t> dims(geometry.spatial + 1);
    for (uint64_t d = 0; d < geometry.spatial; ++d) dims[d + 1] = static_cast<int64_t>(d) + 2;
    const aclDataType dtype = tensors[0].dtype;
    // The other tensors may be DOUBLE, and gradOutput widened with them.
    grad_bias = at::sum(bias_source.read(tensors[0], workspace), dims, false,
                        dtype == ACL_DOUBLE ? at::kDouble : at::kFloat);
    round(grad_bias, before_cast(rounding_to(dtype), dtype, gradient_view(2)));
  }
  if (wants(0) || wants(1)) {
    auto [grad_input, grad_weight] = convolve_backward(
        grad_output.read(tensors[0], workspace),
        wants(1) ? input.read(tensors[1], workspace) : input.shape_of(tensors[1], workspace),
        wants(0) ? weight.read(tensors[2], workspace) : weight.shape_of(tensors[2], workspace),
        geometry, {wants(0), wants(1)});
    if (wants(0)) {
      round(grad_input, before_cast(type.round_result, type.dtype, gradient_view(0)));
      if (!geometry.transposed) {
        grad_input = within(grad_input, margins_of(geometry), geometry.spatial);
      }
      store(grad_input, gradient_view(0));
    }
    if (wants(1)) store(grad_weight, gradient_view(1));
  }
  if (wants(2)) store(grad_bias, gradient_view(2));
}

aclnnStatus ConvolutionBackwardPlan::compute(void* workspace) noexcept {
  return computed([&] {
    const AtenScope scope;
    if (has_products) {
      compute_gradients(workspace);
    } else {
      for (size_t i = 0; i < positions.size(); ++i) {
        if (wants(i) && !is_empty(gradient_view(i))) store_zeros(gradient_view(i));
      }
    }
    return OK;
  });
}

}  // namespace aclnn_host
