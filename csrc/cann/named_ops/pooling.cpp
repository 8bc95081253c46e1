// Pooling and its gradients. ksize and strides have one number for each dimension.

#include "cann/named_ops/operator.h"
#include "cann/rows/planes.h"

namespace aclnn_host::named_pooling {

namespace {

// `count` numbers of a list from the i-th on.
Integers part(const char* name, const std::optional<Integers>& list, size_t size, size_t first,
              size_t count) {
  EXPECT(list && list->size() == size, name, " has ", list ? list->size() : 0,
         " numbers, expected ", size);
  return Integers(list->begin() + static_cast<int64_t>(first),
                  list->begin() + static_cast<int64_t>(first + count));
}

// The numbers of a list for D, H and W; the list may have numbers for N and C, too.
Integers volume(const char* name, const std::optional<Integers>& list) {
  return list && list->size() == 5 ? part(name, list, 5, 2, 3) : part(name, list, 3, 0, 3);
}

// The padding before each dimension. More padding after it results from ceil_mode, which ATen
// handles.
Integers first_sides(const std::optional<Integers>& pads, size_t dims) {
  const Integers both = part("pads", pads, 2 * dims, 0, 2 * dims);
  Integers first;
  for (size_t i = 0; i < dims; ++i) first.push_back(both[2 * i]);
  return first;
}

std::optional<int64_t> divisor_of(const std::optional<int64_t>& divisor) {
  return divisor.value_or(0) == 0 ? std::nullopt : divisor;
}

// The numbers of a two-dimensional pool whose lists are (1, H, W, 1).
struct Planes {
  Integers ksize, strides, pads, dilation;

  Planes(const std::optional<Integers>& k, const std::optional<Integers>& s,
         const std::optional<Integers>& p, const std::optional<Integers>& d)
      : ksize(part("ksize", k, 4, 1, 2)),
        strides(part("strides", s, 4, 1, 2)),
        pads(part("pads", p, 4, 1, 2)),
        dilation(d ? part("dilation", d, 4, 1, 2) : Integers{1, 1}) {}
};

}  // namespace

NAMED_OPERATOR(AvgPoolV2, (Floating<In>, x), (Out, y), (Attribute<Integers>, ksize),
               (Attribute<Integers>, strides), (Only, padding_mode, "CALCULATED"),
               (Attribute<Integers>, pads), (Only, data_format, "NCHW"),
               (Only, global_pooling, "false"), (Attribute<bool>, ceil_mode),
               (Attribute<bool>, exclusive), (Attribute<int64_t>, divisor_override)) {
  y = at::avg_pool2d(wide(x), part("ksize", ksize, 4, 2, 2), part("strides", strides, 4, 2, 2),
                     first_sides(pads, 2), ceil_mode.value_or(false), !exclusive.value_or(true),
                     divisor_of(divisor_override));
}
NAMED_OPERATOR(AvgPoolV2Grad, (HostInts, orig_input_shape), (Floating<In>, input_grad),
               (Out, out_grad), (Attribute<Integers>, ksize), (Attribute<Integers>, strides),
               (Only, padding_mode, "CALCULATED"), (Attribute<Integers>, pads),
               (Only, data_format, "NCHW"), (Only, global_pooling, "false"),
               (Attribute<bool>, ceil_mode), (Attribute<bool>, exclusive),
               (Attribute<int64_t>, divisor_override)) {
  expect_repeats("orig_input_shape", orig_input_shape, "out_grad", out_grad);
  expect_planes("input_grad", input_grad, out_grad->sizes(), 2, "out_grad");
  const at::Tensor grads = wide(input_grad);
  out_grad = at::avg_pool2d_backward(
      grads, grads.new_zeros(out_grad->sizes()), part("ksize", ksize, 4, 2, 2),
      part("strides", strides, 4, 2, 2), first_sides(pads, 2), ceil_mode.value_or(false),
      !exclusive.value_or(true), divisor_of(divisor_override));
}
NAMED_OPERATOR(AvgPool3D, (Floating<In>, x), (Out, y), (Attribute<Integers>, ksize),
               (Attribute<Integers>, strides), (Attribute<Integers>, pads),
               (Attribute<bool>, ceil_mode), (Attribute<bool>, count_include_pad),
               (Attribute<int64_t>, divisor_override), (Stated, data_format, "NCDHW")) {
  y = at::avg_pool3d(wide(x), volume("ksize", ksize), volume("strides", strides),
                     first_sides(pads, 3), ceil_mode.value_or(false),
                     count_include_pad.value_or(true), divisor_of(divisor_override));
}
NAMED_OPERATOR(AvgPool3DGrad, (HostInts, orig_input_shape), (Floating<In>, grads), (Out, output),
               (Attribute<Integers>, ksize), (Attribute<Integers>, strides),
               (Attribute<Integers>, pads), (Attribute<bool>, ceil_mode),
               (Attribute<bool>, count_include_pad), (Attribute<int64_t>, divisor_override),
               (Stated, data_format, "NCDHW")) {
  expect_planes("grads", grads, output->sizes(), 3, "output");
  expect_repeats("orig_input_shape", orig_input_shape, "output", output);
  const at::Tensor gradients = wide(grads);
  output = at::avg_pool3d_backward(gradients, gradients.new_zeros(output->sizes()),
                                   volume("ksize", ksize), volume("strides", strides),
                                   first_sides(pads, 3), ceil_mode.value_or(false),
                                   count_include_pad.value_or(true), divisor_of(divisor_override));
}
NAMED_OPERATOR(AdaptiveAvgPool2d, (Floating<In>, x), (Out, y), (Attribute<Integers>, output_size)) {
  y = at::_adaptive_avg_pool2d(wide(x), part("output_size", output_size, 2, 0, 2));
}
NAMED_OPERATOR(AdaptiveAvgPool2dGrad, (Floating<In>, input_grad), (Out, output_grad),
               (Attribute<Integers>, orig_input_shape)) {
  expect_repeats("orig_input_shape", orig_input_shape, "output_grad", output_grad);
  expect_planes("input_grad", input_grad, output_grad->sizes(), 2, "output_grad");
  const at::Tensor grads = wide(input_grad);
  output_grad = at::_adaptive_avg_pool2d_backward(grads, grads.new_zeros(output_grad->sizes()));
}
// The contents of argmax are internal to CANN. Here they are zeros, because the gradient computes
// the maxima again.
NAMED_OPERATOR(MaxPoolWithArgmaxV1, (Floating<In>, x), (Out, y), (Out, argmax),
               (Attribute<Integers>, ksize), (Attribute<Integers>, strides),
               (Attribute<Integers>, pads),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of argmax says it"),
               (Attribute<Integers>, dilation), (Attribute<bool>, ceil_mode)) {
  const Planes planes(ksize, strides, pads, dilation);
  y = std::get<0>(at::max_pool2d_with_indices(wide(x), planes.ksize, planes.strides, planes.pads,
                                              planes.dilation, ceil_mode.value_or(false)));
  argmax = at::zeros_like(argmax);
}
NAMED_OPERATOR(MaxPoolGradWithArgmaxV1, (Floating<In>, x), (Floating<In>, grad),
               (Unused<In>, argmax, "the maxima are found again in x"), (Out, y),
               (Attribute<Integers>, ksize), (Attribute<Integers>, strides),
               (Attribute<Integers>, pads),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of argmax says it"),
               (Attribute<Integers>, dilation), (Attribute<Integers>, dilations),
               (Attribute<bool>, ceil_mode)) {
  expect_planes("grad", grad, x.sizes(), 2, "x");
  const Planes planes(ksize, strides, pads, dilations ? dilations : dilation);
  const bool ceil = ceil_mode.value_or(false);
  const at::Tensor where = std::get<1>(at::max_pool2d_with_indices(
      wide(x), planes.ksize, planes.strides, planes.pads, planes.dilation, ceil));
  y = at::max_pool2d_with_indices_backward(wide(grad), wide(x), planes.ksize, planes.strides,
                                           planes.pads, planes.dilation, ceil, where);
}
NAMED_OPERATOR(MaxPool3D, (Floating<In>, x), (Out, y), (Attribute<Integers>, ksize),
               (Attribute<Integers>, strides), (Stated, padding, "CALCULATED"),
               (Attribute<Integers>, pads), (Attribute<Integers>, dilation),
               (Attribute<int64_t>, ceil_mode), (Stated, data_format, "NCDHW")) {
  y = at::max_pool3d(wide(x), volume("ksize", ksize), volume("strides", strides),
                     first_sides(pads, 3), dilation ? volume("dilation", dilation) : Integers{1},
                     ceil_mode.value_or(0) != 0);
}
// The second tensor is the result of the forward pass, which is not read.
NAMED_OPERATOR(MaxPool3DGrad, (Floating<In>, orig_x),
               (Unused<Floating<In>>, orig_y, "the maxima are found again in orig_x"),
               (Floating<In>, grads), (Out, y), (Attribute<Integers>, ksize),
               (Attribute<Integers>, strides), (Stated, padding, "CALCULATED"),
               (Attribute<Integers>, pads), (Stated, data_format, "NCDHW")) {
  expect_planes("grads", grads, orig_x.sizes(), 3, "orig_x");
  const Integers k = volume("ksize", ksize), s = volume("strides", strides);
  const Integers p = first_sides(pads, 3), d{1, 1, 1};
  // The sizes of the gradient show whether the forward pass rounded up.
  const auto maxima = [&](bool ceil) {
    return std::get<1>(at::max_pool3d_with_indices(wide(orig_x), k, s, p, d, ceil));
  };
  at::Tensor where = maxima(false);
  const bool ceil = where.sizes() != grads.sizes();
  if (ceil) where = maxima(true);
  y = at::max_pool3d_with_indices_backward(wide(grads), wide(orig_x), k, s, p, d, ceil, where);
}

}  // namespace aclnn_host::named_pooling
