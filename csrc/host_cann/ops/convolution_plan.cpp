#include "host_cann/ops/convolution_plan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "host_cann/kernels/layout.h"
#include "host_cann/ops/aten.h"
#include "host_cann/ops/convolution_products.h"
#include "host_cann/ops/packed.h"

namespace aclnn_host {
namespace {

// Rows of a channels-last tensor that are summed at a time.
constexpr int64_t kRows = 512;

TensorView describe(const at::Tensor& tensor) {
  TensorView view;
  view.shape = Dims(tensor.sizes().data(), tensor.dim());
  view.strides = Dims(tensor.strides().data(), tensor.dim());
  view.dtype = acl_type(tensor.scalar_type());
  view.storage = tensor.data_ptr();
  return view;
}

// Asymmetric padding, which ATen lacks.
Margins margins_of(const ConvolutionGeometry& geometry) {
  if (geometry.is_symmetric()) return {};
  return {geometry.padding_before, geometry.padding_after};
}

void store_zeros(const TensorView& to) {
  static constexpr double kZero = 0;  // of any type
  TensorView zeros = dense(to.shape, Layout::kChannelsFirst, to.dtype, const_cast<double*>(&kZero));
  std::fill_n(zeros.strides.begin(), zeros.strides.size(), 0);
  copy_tensor(zeros, to);
}

constexpr ConvolutionGeometry::Values kOnes{1, 1, 1};

// A kernel of one element that moves in steps meets only some elements of the input: without the
// others, a convolution without a stride.
ConvolutionGeometry::Values take_steps(ConvolutionGeometry& geometry, const TensorView& weight) {
  constexpr ConvolutionGeometry::Values kNone{};
  const bool one = std::all_of(weight.shape.begin() + 2, weight.shape.end(),
                               [](int64_t size) { return size == 1; });
  if (!one || geometry.transposed || geometry.padding_before != kNone ||
      geometry.padding_after != kNone) {
    return kOnes;
  }
  ConvolutionGeometry::Values steps = kOnes;
  for (uint64_t d = 0; d < geometry.spatial; ++d) std::swap(steps[d], geometry.stride[d]);
  return steps;
}

bool overlap(const TensorView& a, const TensorView& b) {
  const Region first = region_of(a);
  const Region second = region_of(b);
  const auto* const begin = static_cast<const char*>(first.begin);
  const auto* const other = static_cast<const char*>(second.begin);
  return begin < other + second.size && other < begin + first.size;
}

bool overlaps_any(const TensorView& view, std::span<const TensorView> others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const TensorView& other) { return overlap(view, other); });
}

// Where a result is computed: its place, unless that is the memory of a tensor that it is computed
// from; then in memory of its own.
struct Place {
  TensorView view;
  at::Tensor own;

  Place(const TensorView& view, std::span<const TensorView> sources) : view(view) {
    if (!overlaps_any(view, sources)) return;
    own = at::empty({element_count(view.shape).value()}, aten_type(view.dtype));
    this->view.storage = own.data_ptr();
    this->view.offset = 0;
  }
};

// A result's tensor as a place for ATen's result, which then lies as ATen's own would. Undefined if
// it is of another type or layout, or the memory of a tensor that it is computed from.
at::Tensor place_for_aten(const TensorView& view, const Choice& choice,
                          std::span<const TensorView> sources) {
  const bool fits = view.dtype == choice.dtype && !choice.in_pieces && lies_on_cache_line(view) &&
                    (lies(view, Layout::kChannelsFirst) || lies(view, Layout::kChannelsLast)) &&
                    !overlaps_any(view, sources);
  return fits ? aten_tensor(view) : at::Tensor();
}

// Takes a result to the tensor it belongs to, rounded, then cast to its type.
void finish(const TensorView& result, RoundingKernel kernel, const Margins& margins,
            const TensorView& to) {
  round(result, kernel);
  if (result.data() != to.data()) copy_tensor(within(result, margins), to);
}

// As dimensions of the direct kernels, of which an operator may have fewer.
ConvolutionSizes::Values sizes_of(uint64_t spatial, const int64_t* values, int64_t neutral) {
  ConvolutionSizes::Values sizes;
  sizes.fill(neutral);
  std::copy_n(values, spatial, sizes.end() - spatial);
  return sizes;
}

// `result` is output or gradOutput.
ConvolutionSizes sizes_of(const TensorView& input, const TensorView& weight,
                          const TensorView& result, const ConvolutionGeometry& geometry) {
  const TensorView& large = geometry.transposed ? result : input;
  const TensorView& small = geometry.transposed ? input : result;
  const uint64_t spatial = geometry.spatial;
  ConvolutionSizes sizes;
  sizes.batch = input.shape[0];
  sizes.groups = geometry.groups;
  sizes.large_channels = weight.shape[1];
  sizes.small_channels = weight.shape[0] / geometry.groups;
  sizes.large = sizes_of(spatial, large.shape.begin() + 2, 1);
  sizes.small = sizes_of(spatial, small.shape.begin() + 2, 1);
  sizes.kernel = sizes_of(spatial, weight.shape.begin() + 2, 1);
  sizes.stride = sizes_of(spatial, geometry.stride.data(), 1);
  sizes.padding = sizes_of(spatial, geometry.padding_before.data(), 0);
  sizes.dilation = sizes_of(spatial, geometry.dilation.data(), 1);
  return sizes;
}

// The type for values that are summed as they are.
aclDataType sum_type(const ComputeType& type) {
  return type.dtype == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

// The type of the operands, if it is that of the products for all tensors.
aclDataType common_type(std::span<const TensorView> tensors, const ComputeType& type) {
  const bool common = std::all_of(tensors.begin(), tensors.end(), [&](const TensorView& tensor) {
    return tensor.dtype == type.dtype;
  });
  return common ? type.dtype : sum_type(type);
}

// What rounds a factor's values to the type of the products.
RoundingKernel round_factor(const TensorView& view, const ComputeType& type) {
  return view.dtype == type.dtype && view.dtype != ACL_FLOAT ? nullptr : type.round_input;
}

// oneDNN has orders of its own for weights, so that it does not matter in which it finds them.
Layout weight_layout(const Choice& choice) {
  switch (choice.route) {
    case Route::kAten: return Layout::kAsGiven;
    case Route::kUnfolded: return Layout::kChannelsLast;
    default: return Layout::kChannelsFirst;
  }
}

// MKL's sums depend on where the operands lie within a cache line. It computes DOUBLE, and what
// oneDNN leaves to it: channels that do not fill vectors.
Placement placement_of(const Choice& choice, const ConvolutionSizes& sizes) {
  constexpr int64_t kVector = 16;
  const bool fill = sizes.large_channels % kVector == 0 && sizes.small_channels % kVector == 0;
  const bool may_be_atens = choice.route == Route::kAten ||
                            (choice.route == Route::kWindows && choice.dtype == ACL_FLOAT);
  const bool is_left = may_be_atens && !fill;
  const bool is_double = choice.route != Route::kDirect && choice.dtype == ACL_DOUBLE;
  return is_left || is_double ? Placement::kCacheLine : Placement::kAnywhere;
}

// What computes where windows would make nan of zeros. oneDNN would too, in BFLOAT16.
Choice instead_of_windows(Choice choice) {
  choice.route = Route::kAten;
  choice.dtype = ACL_FLOAT;
  return choice;
}

// The type of a result before it is cast.
aclDataType result_type(const Choice& choice) {
  return choice.route == Route::kWindows ? ACL_FLOAT : choice.dtype;
}

// By kernels of our own.
bool multiplies_matrices(const Choice& choice) {
  const bool products = choice.route == Route::kPointwise || choice.route == Route::kUnfolded;
  return products && MatrixProducts::take(choice.dtype);
}

// The kernel that rounds a result to `dtype` before it is cast to the type of the tensor it goes
// to; null if the cast does just that.
RoundingKernel before_cast(RoundingKernel kernel, aclDataType dtype, const TensorView& to) {
  return to.dtype == dtype ? nullptr : kernel;
}

at::Tensor tensor_of(const TensorView& view, const Choice& choice) {
  return aten_tensor(view).to(aten_type(choice.dtype));
}

std::optional<at::Tensor> tensor_of(const std::optional<TensorView>& view, const Choice& choice) {
  return view ? std::optional(tensor_of(*view, choice)) : std::nullopt;
}

}  // namespace

RoundingKernel rounding_to(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return rounding_kernels().half;
    case ACL_BF16: return rounding_kernels().bfloat16;
    default: return nullptr;
  }
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
  const RoundingKernels& kernels = rounding_kernels();
  return {ACL_FLOAT, product == Product::kAscend950 ? kernels.hf32_10 : kernels.hf32_11, nullptr};
}

// ---- Unfolded images

UnfoldedRows::UnfoldedRows(const ConvolutionSizes& sizes, aclDataType dtype, Workspace& workspace)
    : sizes_(sizes) {
  const auto volume = [](const ConvolutionSizes::Values& of) { return of[0] * of[1] * of[2]; };
  const int64_t shape[] = {sizes.batch, volume(sizes.small),
                           volume(sizes.kernel) * sizes.large_channels};
  rows_ = dense(Dims(shape, 3), Layout::kChannelsFirst, dtype, nullptr);
  offset_ = workspace.reserve(static_cast<uint64_t>(shape[0] * shape[1] * shape[2]) *
                              aclDataTypeSize(dtype));
}

Unfolded UnfoldedRows::place(void* workspace) const {
  if (rows_.shape.size() == 0) return {};
  TensorView rows = rows_;
  rows.storage = static_cast<char*>(workspace) + offset_;
  return {sizes_, aten_tensor(rows)};
}

// ---- Sums of channels

ChannelSums::ChannelSums(const TensorView& view, Workspace& workspace)
    : channels_last_(lies(view, Layout::kChannelsLast) && !lies(view, Layout::kChannelsFirst)),
      channels_(view.shape[1]),
      dtype_(view.dtype) {
  operand_ = Operand(view, dtype_, nullptr,
                     channels_last_ ? Layout::kChannelsLast : Layout::kChannelsFirst, workspace);
  const int64_t rows = element_count(view.shape).value() / channels_;
  parts_ = channels_last_ ? (rows + kRows - 1) / kRows : view.shape[0];
  offset_ = workspace.reserve(static_cast<uint64_t>(parts_ * channels_) * sizeof(double));
}

void ChannelSums::compute(const TensorView& view, void* workspace) const {
  const TensorView from = operand_.read(view, workspace);
  auto* const sums = reinterpret_cast<double*>(static_cast<char*>(workspace) + offset_);
  const LayoutKernels& kernels = layout_kernels().find(dtype_);
  const char* const elements = from.data();
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype_));
  const int64_t rows = element_count(view.shape).value() / channels_;
  constexpr int64_t kElements = 32768;  // for which another thread is worth waking
  if (channels_last_) {
    at::parallel_for(0, parts_, std::max<int64_t>(1, kElements / (kRows * channels_)),
                     [&](int64_t begin, int64_t end) {
                       std::fill(sums + begin * channels_, sums + end * channels_, 0.0);
                       for (int64_t i = begin; i < end; ++i) {
                         kernels.add_rows(elements + i * kRows * channels_ * size,
                                          std::min(kRows, rows - i * kRows), channels_,
                                          sums + i * channels_);
                       }
                     });
  } else {
    const int64_t row = rows / parts_;
    at::parallel_for(0, parts_ * channels_, std::max<int64_t>(1, kElements / row),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         sums[i] = kernels.sum(elements + i * row * size, row);
                       }
                     });
  }
  for (int64_t i = channels_; i < parts_ * channels_; ++i) sums[i % channels_] += sums[i];
}

void ChannelSums::store(const TensorView& to, void* workspace) const {
  void* const memory = static_cast<char*>(workspace) + offset_;
  TensorView sums = dense(to.shape, Layout::kChannelsFirst, ACL_DOUBLE, memory);
  if (to.dtype != dtype_ && dtype_ != ACL_DOUBLE) {
    // Rounded in place: the values of a narrower type, as DOUBLE.
    auto* const values = static_cast<double*>(memory);
    for (int64_t i = 0; i < channels_; ++i) {
      auto value = static_cast<float>(values[i]);
      if (const RoundingKernel kernel = rounding_to(dtype_)) kernel(&value, 1);
      values[i] = value;
    }
  }
  copy_elements(sums, to);
}

// ---- aclnnConvolution

ConvolutionPlan::ConvolutionPlan(const aclTensor* input, const aclTensor* weight,
                                 const aclTensor* bias, const aclTensor* output,
                                 const ConvolutionGeometry& geometry, const ComputeType& type,
                                 Workspace& workspace)
    : geometry(geometry),
      steps(take_steps(this->geometry, weight->view)),
      type(type),
      has_products(!is_empty(input->view) && !is_empty(weight->view)) {
  for (const aclTensor* tensor : {input, weight, bias, output}) {
    if (tensor != nullptr) tensors[tensor_count++] = tensor->view;
  }
  if (is_empty(output->view)) return;
  Layout layout = Layout::kChannelsFirst;
  aclDataType dtype = sum_type(type);
  if (has_products) {
    const TensorView data = every(input->view, steps);
    const ConvolutionSizes sizes = sizes_of(data, weight->view, output->view, this->geometry);
    const Sum sum = geometry.transposed ? Sum::kLarge : Sum::kSmall;
    choice = choose({sizes, this->geometry, sum, false, lies(input->view, Layout::kChannelsLast),
                     common_type({tensors, tensor_count}, type), wants_same_bits()});
    dtype = choice.dtype;
    layout = choice.layout;
    const bool direct = choice.route == Route::kDirect;
    const Margins margins = direct || geometry.transposed ? Margins() : margins_of(geometry);
    const Placement placement = placement_of(choice, sizes);
    this->input =
        Operand(data, dtype, round_factor(data, type), layout, workspace, margins, placement);
    this->weight = Operand(weight->view, dtype, round_factor(weight->view, type),
                           weight_layout(choice), workspace, {}, placement);
    if (choice.route != Route::kAten) {
      this->output =
          Operand(output->view, result_type(choice), nullptr, layout, workspace, {}, placement);
    }
    if (direct) this->direct = DirectProducts(sizes, choice, workspace);
    if (choice.route == Route::kWindows) {
      const auto pass = geometry.transposed ? &WindowKernels::large : &WindowKernels::small;
      windows = WindowProducts(sizes, pass, dtype, workspace);
    }
    if (choice.route == Route::kUnfolded) unfolded = UnfoldedRows(sizes, dtype, workspace);
    if (multiplies_matrices(choice)) {
      matrices = MatrixProducts(product_count(sizes), dtype, workspace);
    }
  }
  // A bias is no factor of a product, so HF32 leaves it alone.
  if (bias != nullptr) {
    const RoundingKernel kernel =
        type.dtype == ACL_FLOAT ? nullptr : round_factor(bias->view, type);
    if (has_products) dtype = result_type(choice);
    this->bias = Operand(bias->view, dtype, kernel, Layout::kChannelsFirst, workspace);
  }
}

RoundingKernel ConvolutionPlan::round_output() const {
  return before_cast(type.round_result, type.dtype, output_view());
}

// The output where there are no products.
void ConvolutionPlan::store_bias(void* workspace) {
  const TensorView& out = output_view();
  if (!has_bias()) return store_zeros(out);
  TensorView values = bias.read(tensors[2], workspace);
  values.strides = values.shape = out.shape;
  std::fill_n(values.strides.begin(), values.strides.size(), 0);
  values.strides.begin()[1] = 1;
  copy_elements(values, out);
}

void ConvolutionPlan::compute_products(void* workspace) {
  const TensorView& out = output_view();
  const TensorView data = input.read(every(tensors[0], steps), workspace);
  const TensorView kernel = weight.read(tensors[1], workspace);
  const std::optional<TensorView> added =
      has_bias() ? std::optional(bias.read(tensors[2], workspace)) : std::nullopt;
  ConvolutionTensors from{nullptr, nullptr, kernel.data(), added ? added->data() : nullptr};
  (geometry.transposed ? from.small : from.large) = data.data();
  Choice route = choice;
  if (route.route == Route::kWindows && !windows.are_exact(from)) route = instead_of_windows(route);
  if (route.route == Route::kAten) {
    const at::Tensor result = convolve(route, geometry, tensor_of(data, route),
                                       tensor_of(kernel, route), tensor_of(added, route),
                                       place_for_aten(out, route, {tensors, tensor_count - 1}), {});
    return finish(describe(result), round_output(),
                  geometry.transposed ? margins_of(geometry) : Margins(), out);
  }
  const Place to(output.place(out, workspace), {tensors, tensor_count - 1});
  if (route.route == Route::kWindows) {
    windows.compute(from, to.view.data(), workspace);
  } else if (route.route != Route::kDirect) {
    convolve(route, geometry, tensor_of(data, route), tensor_of(kernel, route),
             tensor_of(added, route), aten_tensor(to.view),
             {unfolded.place(workspace), matrices.in(workspace)});
  } else {
    const DirectKernels& kernels = direct.kernels();
    direct.run(geometry.transposed ? kernels.large : kernels.small, direct.items(), from,
               to.view.data(), workspace);
  }
  finish(to.view, round_output(), {}, out);
}

aclnnStatus ConvolutionPlan::compute(void* workspace) {
  if (is_empty(output_view())) return OK;
  const AtenScope scope;
  if (has_products) {
    compute_products(workspace);
  } else {
    store_bias(workspace);
  }
  return OK;
}

// ---- aclnnConvolutionBackward

ConvolutionBackwardPlan::ConvolutionBackwardPlan(const aclTensor* grad_output,
                                                 const aclTensor* input, const aclTensor* weight,
                                                 const Outputs& gradients, const bool* wanted,
                                                 const ConvolutionGeometry& geometry,
                                                 const ComputeType& type, Workspace& workspace)
    : geometry(geometry),
      steps(take_steps(this->geometry, weight->view)),
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
  if (wants(2)) this->grad_bias = ChannelSums(grad_output->view, workspace);
  if (!wants(0) && !wants(1)) return;

  const ConvolutionSizes sizes =
      sizes_of(every(input->view, steps), weight->view, grad_output->view, this->geometry);
  aclDataType dtype = common_type({tensors, kInputs}, type);
  // It is FLOAT until it is cast, so that a narrower one must be its own.
  if (wants(1) && gradient_view(1).dtype != dtype) dtype = sum_type(type);
  const auto choice_of = [&](Sum sum) {
    return choose({sizes, this->geometry, sum, true, lies(input->view, Layout::kChannelsLast),
                   dtype, wants_same_bits()});
  };
  std::optional<Choice> of_input;
  std::optional<Choice> of_weight;
  if (wants(0)) of_input = choice_of(geometry.transposed ? Sum::kSmall : Sum::kLarge);
  if (wants(1)) of_weight = choice_of(Sum::kWeight);
  if (of_input == of_weight) {
    products[product_count++] = plan_products(*of_input, {true, true}, sizes, workspace);
    return;
  }
  if (of_weight) {
    products[product_count++] = plan_products(*of_weight, {false, true}, sizes, workspace);
  }
  if (of_input) {
    products[product_count++] = plan_products(*of_input, {true, false}, sizes, workspace);
  }
}

GradientProducts ConvolutionBackwardPlan::plan_products(const Choice& choice,
                                                        std::array<bool, 2> wanted,
                                                        const ConvolutionSizes& sizes,
                                                        Workspace& workspace) const {
  GradientProducts plan;
  plan.wanted = wanted;
  plan.choice = choice;
  const bool direct = choice.route == Route::kDirect;
  const Margins margins = direct ? Margins() : margins_of(geometry);
  if (!geometry.transposed) plan.margins = margins;
  const Placement placement = placement_of(choice, sizes);
  const auto operand = [&](const TensorView& view, Layout layout, const Margins& around) {
    return Operand(view, choice.dtype, round_factor(view, type), layout, workspace, around,
                   placement);
  };
  plan.grad_output = operand(tensors[0], choice.layout, geometry.transposed ? margins : Margins());
  plan.input = operand(every(tensors[1], steps), choice.layout, plan.margins);
  plan.weight = operand(tensors[2], weight_layout(choice), Margins());
  if (wanted[0] && choice.route != Route::kAten) {
    plan.grad_input = Operand(every(gradient_view(0), steps), result_type(choice), nullptr,
                              choice.layout, workspace, {}, placement);
  }
  if (wanted[1] && !direct && choice.route != Route::kAten) {
    plan.grad_weight = Operand(gradient_view(1), result_type(choice), nullptr,
                               weight_layout(choice), workspace, {}, placement);
  }
  switch (choice.route) {
    case Route::kDirect:
      plan.direct = DirectProducts(sizes, choice, workspace);
      if (wanted[1]) {
        const auto count = static_cast<uint64_t>(element_count(tensors[2].shape).value());
        plan.grad_weight_offset = workspace.reserve(count * aclDataTypeSize(sum_type(type)));
      }
      break;
    case Route::kWindows: {
      const auto sum = geometry.transposed ? &WindowKernels::small : &WindowKernels::large;
      if (wanted[0]) plan.input_windows = WindowProducts(sizes, sum, choice.dtype, workspace);
      if (wanted[1]) {
        plan.weight_windows =
            WindowProducts(sizes, &WindowKernels::weight, choice.dtype, workspace);
      }
      break;
    }
    case Route::kUnfolded: plan.unfolded = UnfoldedRows(sizes, choice.dtype, workspace); break;
    default: break;
  }
  if (multiplies_matrices(choice)) {
    plan.matrices = MatrixProducts(aclnn_host::product_count(sizes), choice.dtype, workspace);
  }
  return plan;
}

// A gradient before it is rounded and cast, in its place or in memory that is kept so long.
struct ConvolutionBackwardPlan::Result {
  TensorView view;
  Margins margins;
  std::array<at::Tensor, 2> memory;
};

void ConvolutionBackwardPlan::compute_products(const GradientProducts& plan, Results& results,
                                               void* workspace) const {
  const auto [wants_input, wants_weight] = plan.wanted;
  Choice choice = plan.choice;
  const TensorView gradient = plan.grad_output.read(tensors[0], workspace);
  const TensorView met = every(tensors[1], steps);
  const TensorView data =
      wants_weight ? plan.input.read(met, workspace) : plan.input.place(met, workspace);
  const TensorView kernel = wants_input ? plan.weight.read(tensors[2], workspace)
                                        : plan.weight.place(tensors[2], workspace);
  ConvolutionTensors from{data.data(), gradient.data(), kernel.data(), nullptr};
  if (geometry.transposed) std::swap(from.large, from.small);
  if (choice.route == Route::kWindows &&
      !((!wants_input || plan.input_windows.are_exact(from)) &&
        (!wants_weight || plan.weight_windows.are_exact(from)))) {
    choice = instead_of_windows(choice);
  }
  const auto place = [&](size_t i, const TensorView& view, size_t avoided) {
    Place at(view, {tensors, avoided});
    results[i] = {at.view, {}, {at.own, {}}};
  };
  if (wants_input && choice.route != Route::kAten) {
    // Zeros go around what has been computed in steps, after it.
    place(0, plan.grad_input.place(every(gradient_view(0), steps), workspace),
          steps == kOnes ? kInputs : positions[0] + 1);
  }
  if (wants_weight && choice.route == Route::kDirect) {
    results[1].view = dense(tensors[2].shape, Layout::kChannelsFirst, sum_type(type),
                            static_cast<char*>(workspace) + plan.grad_weight_offset);
  } else if (wants_weight && choice.route != Route::kAten) {
    place(1, plan.grad_weight.place(gradient_view(1), workspace), kInputs);
  }
  if (choice.route == Route::kDirect) {
    const DirectKernels& kernels = plan.direct.kernels();
    if (wants_weight) {
      plan.direct.run(kernels.weight, geometry.groups, from, results[1].view.data(), workspace);
    }
    if (wants_input) {
      plan.direct.run(geometry.transposed ? kernels.small : kernels.large, plan.direct.items(),
                      from, results[0].view.data(), workspace);
    }
  } else if (choice.route == Route::kWindows) {
    if (wants_weight) plan.weight_windows.compute(from, results[1].view.data(), workspace);
    if (wants_input) plan.input_windows.compute(from, results[0].view.data(), workspace);
  } else {
    std::array<at::Tensor, 2> places;
    for (size_t i = 0; i < places.size(); ++i) {
      if (!plan.wanted[i]) continue;
      if (choice.route != Route::kAten) {
        places[i] = aten_tensor(results[i].view);
      } else if (i == 1 || steps == kOnes) {
        places[i] = place_for_aten(gradient_view(i), choice, {tensors, kInputs});
      }
    }
    const Gradients gradients =
        convolve_backward(choice, geometry, tensor_of(gradient, choice), tensor_of(data, choice),
                          tensor_of(kernel, choice), plan.wanted, places,
                          {plan.unfolded.place(workspace), plan.matrices.in(workspace)});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!plan.wanted[i]) continue;
      results[i].view = describe(gradients[i]);
      results[i].memory[1] = gradients[i];
      if (i == 0) results[i].margins = plan.margins;
    }
  }
}

void ConvolutionBackwardPlan::store_products(const Results& results) const {
  if (wants(0)) {
    const TensorView& to = gradient_view(0);
    if (steps != kOnes) store_zeros(to);
    finish(results[0].view, before_cast(type.round_result, type.dtype, to), results[0].margins,
           every(to, steps));
  }
  if (wants(1)) finish(results[1].view, nullptr, {}, gradient_view(1));
}

aclnnStatus ConvolutionBackwardPlan::compute(void* workspace) {
  const AtenScope scope;
  if (!has_products) {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (wants(i) && !is_empty(gradient_view(i))) store_zeros(gradient_view(i));
    }
    return OK;
  }
  if (wants(2)) grad_bias.compute(tensors[0], workspace);
  // All are computed before any is written: they may share memory with the inputs.
  Results results;
  for (size_t i = 0; i < product_count; ++i) compute_products(products[i], results, workspace);
  store_products(results);
  if (wants(2)) grad_bias.store(gradient_view(2), workspace);
  return OK;
}

}  // namespace aclnn_host
