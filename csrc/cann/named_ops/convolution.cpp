// Convolutions and their gradients. Attributes have a number for each of the dimensions N, C, (D,)
// H, W; pads have one for each side of D, H, W.

#include "cann/named_ops/operator.h"
#include "cann/named_ops/precision.h"

namespace aclnn_host::named_convolution {

namespace {

constexpr int64_t kMostGap = 1 << 20;

// The attributes of a convolution in ATen's form.
struct Window {
  Integers stride;
  Integers dilation;
  Integers before;  // the padding before each dimension
  Integers after;
  Integers output_padding;
  int64_t groups;

  bool is_symmetric() const { return before == after; }
  void expect_symmetric() const {
    EXPECT(is_symmetric(), "pads has ", before, " before the dimensions and ", after,
           " after them, expected the same numbers, which alone the host CANN emulates in "
           "gradients and transposed convolutions");
  }
};

// The numbers for the last dimensions, from a list for all dimensions.
Integers spatial(const char* name, const std::optional<Integers>& values, size_t dims,
                 int64_t least, int64_t otherwise) {
  if (!values) return Integers(dims, otherwise);
  EXPECT(values->size() == dims + 2, name, " has ", values->size(), " numbers, expected ",
         dims + 2);
  const Integers last(values->begin() + 2, values->end());
  check_values(name, last, least, kMostGap);
  return last;
}

Window window_of(int64_t rank, const std::optional<Integers>& strides,
                 const std::optional<Integers>& pads, const std::optional<Integers>& dilations,
                 const std::optional<Integers>& output_padding, std::optional<int64_t> groups) {
  const size_t dims = static_cast<size_t>(rank) - 2;
  Window window{spatial("strides", strides, dims, 1, 1),
                spatial("dilations", dilations, dims, 1, 1),
                {},
                {},
                spatial("output_padding", output_padding, dims, 0, 0),
                groups.value_or(1)};
  const Integers both = pads.value_or(Integers(2 * dims, 0));
  EXPECT(both.size() == 2 * dims, "pads has ", both.size(), " numbers, expected ", 2 * dims);
  check_values("pads", both, 0, kMostGap);
  for (size_t i = 0; i < dims; ++i) {
    window.before.push_back(both[2 * i]);
    window.after.push_back(both[2 * i + 1]);
  }
  expect_at_least("groups", window.groups, 1);
  return window;
}

// A shape, with the name of its argument.
struct Shape {
  const char* name;
  at::IntArrayRef sizes;
};

// The shape of the convolution of x with filter: along each dimension
// (size + pads - dilation (kernel - 1) - 1) / stride + 1. Both shapes have N, C and the dimensions
// of the window.
Integers shape_of_result(const Shape& x, const Shape& filter, const Window& window) {
  const int64_t channels = x.sizes[1], groups = window.groups;
  EXPECT(channels % groups == 0 && filter.sizes[1] == channels / groups &&
             filter.sizes[0] % groups == 0,
         filter.name, " has shape ", filter.sizes, ", expected filters of the ", channels,
         " channels of ", x.name, " in ", groups, " groups");
  check_values(filter.name, filter.sizes.slice(2), 1, kMostGap);
  Integers shape{x.sizes[0], filter.sizes[0]};
  for (size_t i = 0; i < window.stride.size(); ++i) {
    const int64_t rest = x.sizes[i + 2] + window.before[i] + window.after[i] -
                         window.dilation[i] * (filter.sizes[i + 2] - 1) - 1;
    EXPECT(rest >= 0, filter.name, " has shape ", filter.sizes, ", expected sizes that, with ",
           window.dilation, " as dilations, fit into the padded ", x.name, " of shape ", x.sizes);
    shape.push_back(rest / window.stride[i] + 1);
  }
  return shape;
}

// Requires a tensor of the shape of the convolution of x with filter.
void expect_result(const char* name, const at::Tensor& result, const Shape& x, const Shape& filter,
                   const Window& window) {
  expect_shape(name, result, shape_of_result(x, filter, window));
}

// Applies the asymmetric part of the padding explicitly; the remaining padding is symmetric.
at::Tensor evened(const at::Tensor& x, Window& window) {
  if (window.is_symmetric()) return x;
  Integers paddings;
  for (size_t i = window.before.size(); i-- > 0;) {
    paddings.insert(paddings.end(), {window.before[i], window.after[i]});
  }
  window.before.assign(window.before.size(), 0);
  return at::constant_pad_nd(x, paddings);
}

at::Tensor convolved(const at::Tensor& x, const at::Tensor& filter,
                     const std::optional<at::Tensor>& bias, Window window, bool transposed) {
  const MatrixUnits units(cube_math_type_by_name(), x, filter);
  const at::Tensor input = transposed ? x : evened(x, window);
  const at::Tensor result = at::convolution(units.read(input), units.read(filter),
                                            bias ? std::optional(units.widen(*bias)) : std::nullopt,
                                            window.stride, window.before, window.dilation,
                                            transposed, window.output_padding, window.groups);
  return units.result(result);
}

// The gradient of one operand of the convolution of x with filter. ATen does not check that grads
// has the shape of the convolution.
at::Tensor gradient(const at::Tensor& grads, const at::Tensor& x, const at::Tensor& filter,
                    const Window& window, bool by_filter) {
  const MatrixUnits units(cube_math_type_by_name(), grads, by_filter ? x : filter);
  const auto [grad_x, grad_filter, grad_bias] = at::convolution_backward(
      units.read(grads), units.read(x), units.read(filter), at::OptionalIntArrayRef(),
      window.stride, window.before, window.dilation, /*transposed=*/false, window.output_padding,
      window.groups, {!by_filter, by_filter, false});
  return units.result(by_filter ? grad_filter : grad_x);
}

// The number of channels, which are dimension 1.
int64_t channels_of(const char* name, const at::Tensor& tensor) {
  EXPECT(tensor.size(1) > 0, name, " has shape ", tensor.sizes(),
         ", expected channels in dimension 1");
  return tensor.size(1);
}

// Reshapes the filter of a depthwise convolution (M, C, H, W), with M outputs for each channel, to
// (C * M, 1, H, W).
at::Tensor grouped_filter(const at::Tensor& filter) {
  return filter.transpose(0, 1).flatten(0, 1).unsqueeze(1);
}

}  // namespace

#define NAMED_CONVOLUTION(Name, rank, format)                                                   \
  NAMED_OPERATOR(Name, (In, x), (In, filter), (Optional<In>, bias), (Out, y),                   \
                 (Attribute<Integers>, strides), (Attribute<Integers>, pads),                   \
                 (Attribute<Integers>, dilations), (Attribute<int64_t>, groups),                \
                 (Stated, data_format, format), (Only, offset_x, "0")) {                        \
    expect_dims("x", x, rank);                                                                  \
    expect_dims("filter", filter, rank);                                                        \
    const Window window = window_of(rank, strides, pads, dilations, std::nullopt, groups);      \
    expect_result("y", y, {"x", x.sizes()}, {"filter", filter.sizes()}, window);                \
    y = convolved(x, filter, bias, window, false);                                              \
  }                                                                                             \
  NAMED_OPERATOR(Name##Transpose, (HostInts, input_size), (In, x), (In, filter),                \
                 (Optional<In>, bias), (Out, y), (Attribute<Integers>, strides),                \
                 (Attribute<Integers>, pads), (Attribute<Integers>, dilations),                 \
                 (Attribute<int64_t>, groups), (Stated, data_format, format),                   \
                 (Attribute<Integers>, output_padding), (Only, offset_x, "0")) {                \
    expect_repeats("input_size", input_size, "y", y);                                           \
    expect_dims("x", x, rank);                                                                  \
    expect_dims("filter", filter, rank);                                                        \
    const Window window = window_of(rank, strides, pads, dilations, output_padding, groups);    \
    window.expect_symmetric();                                                                  \
    y = convolved(x, filter, bias, window, true);                                               \
  }                                                                                             \
  NAMED_OPERATOR(Name##BackpropInput, (HostInts, input_size), (In, filter), (In, out_backprop), \
                 (Out, y), (Attribute<Integers>, strides), (Attribute<Integers>, pads),         \
                 (Attribute<Integers>, dilations), (Attribute<int64_t>, groups),                \
                 (Stated, data_format, format)) {                                               \
    expect_repeats("input_size", input_size, "y", y);                                           \
    expect_dims("filter", filter, rank);                                                        \
    expect_dims("out_backprop", out_backprop, rank);                                            \
    expect_dims("y", y, rank);                                                                  \
    const Window window = window_of(rank, strides, pads, dilations, std::nullopt, groups);      \
    window.expect_symmetric();                                                                  \
    expect_result("out_backprop", out_backprop, {"y", y->sizes()}, {"filter", filter.sizes()},  \
                  window);                                                                      \
    y = gradient(out_backprop, out_backprop.new_zeros(y->sizes()), filter, window, false);      \
  }                                                                                             \
  NAMED_OPERATOR(Name##BackpropFilter, (In, x), (HostInts, filter_size), (In, out_backprop),    \
                 (Out, y), (Attribute<Integers>, strides), (Attribute<Integers>, pads),         \
                 (Attribute<Integers>, dilations), (Attribute<int64_t>, groups),                \
                 (Stated, data_format, format)) {                                               \
    expect_repeats("filter_size", filter_size, "y", y);                                         \
    expect_dims("x", x, rank);                                                                  \
    expect_dims("out_backprop", out_backprop, rank);                                            \
    expect_dims("y", y, rank);                                                                  \
    const Window window = window_of(rank, strides, pads, dilations, std::nullopt, groups);      \
    window.expect_symmetric();                                                                  \
    expect_result("out_backprop", out_backprop, {"x", x.sizes()}, {"y", y->sizes()}, window);   \
    y = gradient(out_backprop, x, x.new_zeros(y->sizes()), window, true);                       \
  }

NAMED_CONVOLUTION(Conv2D, 4, "NCHW")
NAMED_CONVOLUTION(Conv3D, 5, "NCDHW")

NAMED_OPERATOR(DepthwiseConv2D, (In, x), (In, filter), (Optional<In>, bias), (Out, y),
               (Attribute<Integers>, strides), (Attribute<Integers>, pads),
               (Attribute<Integers>, dilations), (Stated, data_format, "NCHW"),
               (Only, offset_x, "0")) {
  expect_dims("x", x, 4);
  expect_dims("filter", filter, 4);
  const Window window =
      window_of(4, strides, pads, dilations, std::nullopt, channels_of("filter", filter));
  const at::Tensor grouped = grouped_filter(filter);
  expect_result("y", y, {"x", x.sizes()}, {"filter as (C * M, 1, H, W)", grouped.sizes()}, window);
  y = convolved(x, grouped, bias, window, false);
}
NAMED_OPERATOR(DepthwiseConv2DBackpropInput, (HostInts, input_size), (In, filter),
               (In, out_backprop), (Out, input_grad), (Attribute<Integers>, strides),
               (Attribute<Integers>, pads), (Attribute<Integers>, dilations),
               (Stated, data_format, "NCHW")) {
  expect_repeats("input_size", input_size, "input_grad", input_grad);
  expect_dims("filter", filter, 4);
  expect_dims("out_backprop", out_backprop, 4);
  expect_dims("input_grad", input_grad, 4);
  const Window window =
      window_of(4, strides, pads, dilations, std::nullopt, channels_of("filter", filter));
  window.expect_symmetric();
  const at::Tensor grouped = grouped_filter(filter);
  expect_result("out_backprop", out_backprop, {"input_grad", input_grad->sizes()},
                {"filter as (C * M, 1, H, W)", grouped.sizes()}, window);
  input_grad =
      gradient(out_backprop, out_backprop.new_zeros(input_grad->sizes()), grouped, window, false);
}
// filter_grad has the shape of the filter, (M, C, H, W) or, as torch_npu passes it,
// (C * M, 1, H, W).
NAMED_OPERATOR(DepthwiseConv2DBackpropFilter, (In, input), (HostInts, filter_size),
               (In, out_backprop), (Out, filter_grad), (Attribute<Integers>, strides),
               (Attribute<Integers>, pads), (Attribute<Integers>, dilations),
               (Stated, data_format, "NCHW")) {
  expect_dims("input", input, 4);
  expect_dims("out_backprop", out_backprop, 4);
  expect_dims("filter_grad", filter_grad, 4);
  EXPECT(filter_size.size() == 4, "filter_size has ", filter_size.size(), " numbers, expected 4");
  expect_repeats("filter_size", filter_size, "filter_grad", filter_grad);
  const int64_t channels = channels_of("input", input), outputs = out_backprop.size(1);
  const Window window = window_of(4, strides, pads, dilations, std::nullopt, channels);
  window.expect_symmetric();
  const Integers grouped{outputs, 1, filter_size[2], filter_size[3]};
  expect_result("out_backprop", out_backprop, {"input", input.sizes()},
                {"filter_grad as (C * M, 1, H, W)", grouped}, window);
  const Integers split{channels, outputs / channels, grouped[2], grouped[3]};  // (C, M, H, W)
  const Integers filter{split[1], split[0], split[2], split[3]};
  EXPECT(filter_grad->sizes() == at::IntArrayRef(grouped) ||
             filter_grad->sizes() == at::IntArrayRef(filter),
         "filter_grad has shape ", filter_grad->sizes(), ", expected ", filter, " or ", grouped);
  const at::Tensor grads = gradient(out_backprop, input, input.new_zeros(grouped), window, true);
  filter_grad = filter_grad->sizes() == at::IntArrayRef(grouped)
                    ? grads
                    : grads.reshape(split).transpose(0, 1);
}

}  // namespace aclnn_host::named_convolution
