// Pooling and its gradients.

#include <algorithm>
#include <array>
#include <limits>

#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/_adaptive_avg_pool3d.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/adaptive_max_pool3d.h>
#include <ATen/ops/adaptive_max_pool3d_backward.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/max_pool3d_with_indices_backward.h>
#include <ATen/ops/max_unpool2d.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_rows {

namespace {

// The divisor of an average, 0 for the number of elements in the window.
std::optional<int64_t> divisor_of(int64_t divisor_override) {
  return divisor_override == 0 ? std::nullopt : std::optional(divisor_override);
}

// Places in the last `dims` dimensions of self, as ATen takes them: it trusts them to be inside,
// and some of its functions to lie row by row.
at::Tensor places(const at::Tensor& indices, const at::Tensor& self, int64_t dims) {
  int64_t size = 1;
  for (int64_t dim = self.dim() - dims; dim < self.dim(); ++dim) size *= self.size(dim);
  check_bounds("indices", indices, size);
  return indices.contiguous();
}

void check_values(const char* name, at::IntArrayRef values, int64_t least, int64_t most) {
  EXPECT(std::ranges::all_of(values, [=](int64_t x) { return x >= least && x <= most; }), name,
         " is ", values, ", expected numbers from ", least, " to ", most);
}

// A number for each of two directions: one may stand for both.
std::array<int64_t, 2> pair(at::IntArrayRef values) {
  return {values.front(), values.back()};
}

// What lies around an image: no number is smaller.
c10::Scalar lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
    case at::kBool: return 0;
    case at::kChar: return std::numeric_limits<int8_t>::lowest();
    case at::kShort: return std::numeric_limits<int16_t>::lowest();
    case at::kInt: return std::numeric_limits<int32_t>::lowest();
    case at::kLong: return std::numeric_limits<int64_t>::lowest();
    default: return -std::numeric_limits<double>::infinity();
  }
}

// The size of one direction, its padding, and the window that runs over it.
struct Direction {
  int64_t size;
  int64_t before;
  int64_t after;
  int64_t kernel;
  int64_t stride;

  // How many windows there are; with `ceil`, also one that reaches beyond the padding, unless it
  // starts there.
  int64_t windows(bool ceil) const {
    const int64_t room = size + before + after - kernel;
    EXPECT(room >= 0, "kernelShape has ", kernel, " in a direction of ", size + before + after,
           " elements with the padding, expected at most that");
    int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (count - 1) * stride >= size + before) --count;
    return count;
  }
  // How many elements they cover together.
  int64_t covered(bool ceil) const { return (windows(ceil) - 1) * stride + kernel; }
  // The padding at the end that makes it so many windows; negative for elements in none.
  int64_t end(bool ceil) const { return covered(ceil) - size - before; }
};

// The last `dims` dimensions as one.
at::Tensor flat(const at::Tensor& tensor, int64_t dims) {
  return tensor.flatten(tensor.dim() - dims);
}

// Refuses images of which the padding is nearly all, as it is in memory here.
void check_padded(const at::Tensor& self, const Direction& height, const Direction& width,
                  bool ceil) {
  constexpr double kManyElements = 1 << 28;
  double elements =
      static_cast<double>(height.covered(ceil)) * static_cast<double>(width.covered(ceil));
  for (const int64_t size : self.sizes().slice(0, static_cast<size_t>(self.dim() - 2))) {
    elements *= static_cast<double>(size);
  }
  EXPECT(elements <= std::max(kManyElements, 16 * static_cast<double>(self.numel())),
         "self has shape ", self.sizes(), " and would have ", elements,
         " elements with the padding, expected at most 2^28 or 16 times those of self; pass "
         "a smaller kernelShape and smaller pads");
}

// Refuses another image than one of self's sizes with outputSize in the last `dims` dimensions,
// before there is memory for it.
void check_image(const at::Tensor& self, at::IntArrayRef output_size, const char* name,
                 const at::Tensor& image, int64_t dims) {
  EXPECT(self.dim() == dims + 1 || self.dim() == dims + 2, "self has shape ", self.sizes(),
         ", expected ", dims + 1, " or ", dims + 2, " dimensions");
  EXPECT(output_size.size() == static_cast<size_t>(dims), "outputSize is ", output_size,
         ", expected ", dims, " numbers");
  expect_shape(name, image, with_places(self, dims, output_size));
}

// What the inverse of pooling over `dims` dimensions takes: an index for each element of self, and
// the sizes of the larger image.
void check_unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size,
                  const char* name, const at::Tensor& image, int64_t dims) {
  check_image(self, output_size, name, image, dims);
  expect_shape("indices", indices, self.sizes());
  expect_dtype(name, image, self);
}

// The same in three dimensions, where the windows count as well.
void check_unpool3d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size,
                    at::IntArrayRef stride, at::IntArrayRef padding, const char* name,
                    const at::Tensor& image) {
  check_unpool(self, indices, output_size, name, image, 3);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT(stride.size() == 3 && padding.size() == 3, "stride is ", stride, " and padding is ",
         padding, ", expected 3 numbers each");
  check_values("stride", stride, 1, kMost);
  check_values("the sizes of self", self.sizes().slice(1), 1, kMost);
  check_values("outputSize", output_size, 1, kMost);
  EXPECT(self.size(0) == 0 || image.numel() >= self.numel(), "outputSize is ", output_size,
         ", expected as many places as self has, ", self.sizes().slice(self.dim() - 3));
}

// What stands in the windows at its places of an image, the rest of which is 0.
at::Tensor unpooled(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef sizes,
                    int64_t dims) {
  return moved(self, [&](const at::Tensor& x) {
    const at::Tensor empty = at::zeros(sizes, x.options());
    return at::scatter(flat(empty, dims), -1, flat(indices, dims), flat(x, dims)).view(sizes);
  });
}

at::Tensor picked(const at::Tensor& image, const at::Tensor& indices, int64_t dims) {
  return moved(image, [&](const at::Tensor& x) {
    return at::gather(flat(x, dims), -1, flat(indices, dims)).view(indices.sizes());
  });
}

}  // namespace

ACLNN(AvgPool2d, (Image<In>, self), (Ints, kernelSize), (Ints, strides), (Ints, paddings),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride), (int8_t, cubeMathType),
      (Image<Out>, out)) {
  out = at::avg_pool2d(wide(self), kernelSize, strides, paddings, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool2dBackward, (Image<In>, gradOutput), (Image<In>, self), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (bool, ceilMode), (bool, countIncludePad),
      (int64_t, divisorOverride), (int8_t, cubeMathType), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  gradInput = at::avg_pool2d_backward(wide(gradOutput), wide(self), kernelSize, stride, padding,
                                      ceilMode, countIncludePad, divisor_of(divisorOverride));
}
ACLNN(AvgPool3d, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride), (Image<Out>, out)) {
  out = at::avg_pool3d(wide(self), kernelSize, stride, padding, ceilMode, countIncludePad,
                       divisor_of(divisorOverride));
}
ACLNN(AvgPool3dBackward, (Image<In>, gradOuput), (Image<In>, self), (Ints, kernelSize),
      (Ints, stride), (Ints, padding), (bool, ceilMode), (bool, countIncludePad),
      (int64_t, divisorOverride), (Image<Out>, output)) {
  expect_planes("gradOuput", gradOuput, self.sizes(), 3);
  output = at::avg_pool3d_backward(wide(gradOuput), wide(self), kernelSize, stride, padding,
                                   ceilMode, countIncludePad, divisor_of(divisorOverride));
}

ACLNN(AdaptiveAvgPool2d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  check_image(self, outputSize, "out", out, 2);
  out = at::_adaptive_avg_pool2d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool2dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<Out>, out)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  out = at::_adaptive_avg_pool2d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveAvgPool3d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  check_image(self, outputSize, "out", out, 3);
  out = at::_adaptive_avg_pool3d(wide(self), outputSize);
}
ACLNN(AdaptiveAvgPool3dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<Out>, out)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  out = at::_adaptive_avg_pool3d_backward(wide(gradOutput), wide(self));
}
ACLNN(AdaptiveMaxPool2d, (Image<In>, self), (Ints, outputSize), (Image<Out>, outputOut),
      (Image<Out>, indicesOut)) {
  check_values("outputSize", outputSize, 1, std::numeric_limits<int32_t>::max());
  const auto [values, indices] = at::adaptive_max_pool2d(self, outputSize);
  outputOut = values;
  indicesOut = indices;
}
ACLNN(AdaptiveMaxPool2dBackward, (Image<In>, gradOutput), (Image<In>, self),
      (Image<IndexIn>, indices), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  expect_shape("indices", indices, gradOutput.sizes());
  gradInput =
      at::adaptive_max_pool2d_backward(wide(gradOutput), wide(self), places(indices, self, 2));
}
ACLNN(AdaptiveMaxPool3d, (Image<In>, self), (Ints, outputSize), (Image<Out>, outputOut),
      (Image<Out>, indicesOut)) {
  const auto [values, indices] = at::adaptive_max_pool3d(self, outputSize);
  outputOut = values;
  indicesOut = indices;
}
ACLNN(AdaptiveMaxPool3dBackward, (Image<In>, gradOutput), (Image<In>, self),
      (Image<IndexIn>, indices), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  expect_shape("indices", indices, gradOutput.sizes());
  gradInput =
      at::adaptive_max_pool3d_backward(wide(gradOutput), wide(self), places(indices, self, 3));
}

ACLNN(MaxPool2dWithIndices, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  const auto [values, where] =
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
  out = values;
  indices = where;
}
ACLNN(MaxPool2dWithIndicesBackward, (Image<In>, gradOutput), (Image<In>, self),
      (Image<IndexIn>, indices), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  expect_shape("indices", indices, gradOutput.sizes());
  gradInput =
      at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                           padding, dilation, ceilMode, places(indices, self, 2));
}
// The mask is CANN's own affair: one that is all zeros here, because the backward pass finds the
// maxima again.
ACLNN(MaxPool2dWithMask, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  out = std::get<0>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  indices = at::zeros_like(indices);
}
ACLNN(MaxPool2dWithMaskBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<In>, indices),
      (Ints, kernelSize), (Ints, stride), (Ints, padding), (Ints, dilation), (bool, ceilMode),
      (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 2);
  const at::Tensor where = std::get<1>(
      at::max_pool2d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode));
  gradInput = at::max_pool2d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                                   padding, dilation, ceilMode, where);
}
ACLNN(MaxPool3dWithArgmax, (Image<In>, self), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, out), (Image<Out>, indices)) {
  const auto [values, where] =
      at::max_pool3d_with_indices(self, kernelSize, stride, padding, dilation, ceilMode);
  out = values;
  indices = where;
}
ACLNN(MaxPool3dWithArgmaxBackward, (Image<In>, gradOutput), (Image<In>, self),
      (Image<IndexIn>, indices), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (bool, ceilMode), (Image<Out>, gradInput)) {
  expect_planes("gradOutput", gradOutput, self.sizes(), 3);
  expect_shape("indices", indices, gradOutput.sizes());
  gradInput =
      at::max_pool3d_with_indices_backward(wide(gradOutput), wide(self), kernelSize, stride,
                                           padding, dilation, ceilMode, places(indices, self, 3));
}
ACLNN(MaxUnpool2d, (Image<In>, self), (Image<IndexIn>, indices), (Ints, outputSize),
      (Image<Out>, out)) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  check_unpool(self, indices, outputSize, "out", out, 2);
  check_values("the sizes of self", self.sizes().slice(1), 1, kMost);
  check_values("outputSize", outputSize, 1, kMost);
  EXPECT(outputSize[0] * outputSize[1] >= self.size(-2) * self.size(-1), "outputSize is ",
         outputSize, ", expected as many places as self has, ", self.sizes().slice(self.dim() - 2));
  out = at::isIntegralType(self.scalar_type(), /*includeBool=*/false)
            ? unpooled(self, indices, out->sizes(), 2)
            : at::max_unpool2d(self, indices.contiguous(), outputSize);
}

// Without strides they are 1. The padding is that of both directions, of each (top and bottom, left
// and right), or top, left, bottom and right.
ACLNN(MaxPool, (Image<In>, self), (Ints, kernelShape), (Ints, strides), (int64_t, autoPad),
      (Ints, pads), (Ints, dilations), (int64_t, ceilMode), (Image<Out>, out)) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  expect_dtype("out", out, self);
  EXPECT(self.dim() == 3 || self.dim() == 4, "self has shape ", self.sizes(),
         ", expected three or four dimensions");
  EXPECT(autoPad == 0, "autoPad is ", autoPad, ", expected 0 (NOTSET)");
  EXPECT(kernelShape.size() == 1 || kernelShape.size() == 2, "kernelShape is ", kernelShape,
         ", expected one or two numbers");
  EXPECT(strides.size() <= 2, "strides is ", strides, ", expected at most two numbers");
  EXPECT(pads.size() <= 4 && pads.size() != 3, "pads is ", pads, ", expected 0, 1, 2 or 4 numbers");
  EXPECT(dilations.size() <= 4 && dilations.size() != 3, "dilations is ", dilations,
         ", expected 0, 1, 2 or 4 numbers");
  check_values("kernelShape", kernelShape, 1, kMost);
  check_values("strides", strides, 1, kMost);
  check_values("pads", pads, 0, kMost);
  check_values("dilations", dilations, 1, 1);
  const auto kernel = pair(kernelShape);
  const auto stride = strides.empty() ? std::array<int64_t, 2>{1, 1} : pair(strides);
  const auto before = pads.empty() ? std::array<int64_t, 2>{0, 0}
                                   : pair(pads.slice(0, std::min<size_t>(pads.size(), 2)));
  const auto after = pads.size() == 4 ? pair(pads.slice(2)) : before;
  const auto direction = [&](size_t i) {
    EXPECT(before[i] + after[i] <= kernel[i], "pads is ", pads, ", expected a sum of at most ",
           kernel[i], ", the size of the window");
    return Direction{self.size(i == 0 ? -2 : -1), before[i], after[i], kernel[i], stride[i]};
  };
  const Direction height = direction(0);
  const Direction width = direction(1);
  const bool ceil = ceilMode != 0;
  check_padded(self, height, width, ceil);
  const auto dtype = self.scalar_type();
  const bool is_unsigned = dtype == at::kUInt16 || dtype == at::kUInt32;
  const at::Tensor x = is_unsigned ? self.to(at::kLong) : self;
  const at::Tensor padded = at::constant_pad_nd(
      x, {width.before, width.end(ceil), height.before, height.end(ceil)}, lowest(x.scalar_type()));
  out = at::amax(padded.unfold(-2, kernel[0], stride[0]).unfold(-2, kernel[1], stride[1]), {-2, -1})
            .to(dtype);
}

ACLNN(MaxUnpool2dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<IndexIn>, indices),
      (Ints, outputSize), (Image<Out>, out)) {
  check_unpool(self, indices, outputSize, "gradOutput", gradOutput, 2);
  EXPECT(self.numel() == 0 || gradOutput.numel() > 0,
         "gradOutput has no elements, expected some because self has shape ", self.sizes());
  out = picked(gradOutput, indices, 2);
}
ACLNN(MaxUnpool3d, (Image<In>, self), (Image<IndexIn>, indices), (Ints, outputSize), (Ints, stride),
      (Ints, padding), (Image<Out>, outRef)) {
  check_unpool3d(self, indices, outputSize, stride, padding, "outRef", outRef);
  outRef = unpooled(self, indices, outRef->sizes(), 3);
}
ACLNN(MaxUnpool3dBackward, (Image<In>, gradOutput), (Image<In>, self), (Image<IndexIn>, indices),
      (Ints, outputSize), (Ints, stride), (Ints, padding), (Image<Out>, out)) {
  check_unpool3d(self, indices, outputSize, stride, padding, "gradOutput", gradOutput);
  expect_dtype("out", out, self);
  out = picked(gradOutput, indices, 3);
}

}  // namespace aclnn_host::pooling_rows
