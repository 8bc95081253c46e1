// Images: padding by their own elements, sampling at places.

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>
#include <ATen/ops/grid_sampler_3d.h>
#include <ATen/ops/grid_sampler_3d_backward.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/reflection_pad3d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/replication_pad1d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/replication_pad3d.h>
#include <ATen/ops/upsample_bilinear2d_backward.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/scale.h"

namespace aclnn_host::vision_sampling_rows {

namespace {

// A padding before and after each dimension of the function's name, such as ReflectionPad2d.
void expect_pairs(at::IntArrayRef padding, std::string_view function) {
  const auto count = static_cast<size_t>(function[function.size() - 2] - '0') * 2;
  EXPECT(padding.size() == count, "padding has ", padding.size(), " numbers, expected ", count);
}

// The places where an image is sampled. With a padding other than zeros ATen takes it that every
// place has been brought into the image, which nothing brings NaN into: it is the first element.
at::Tensor places_of(const at::Tensor& grid, int64_t padding) {
  constexpr double kFar = 1e6;  // of images, of which a place is reflected so often at most
  if (padding == 0) return wide(grid);
  return wide(grid).nan_to_num(-1, kFar, -kFar).clamp(-kFar, kFar);
}

void check_sampling(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation,
                    int64_t padding) {
  expect_dtype("grid", grid, input);
  EXPECT(interpolation == 0 || interpolation == 1, "interpolationMode is ", interpolation,
         ", expected 0 (bilinear) or 1 (nearest)");
  EXPECT(padding >= 0 && padding <= 2, "paddingMode is ", padding,
         ", expected 0 (zeros), 1 (border) or 2 (reflection)");
}

// The product of the two extents of boxes, which are [..., 4], or of their overlaps.
at::Tensor area(const at::Tensor& low, const at::Tensor& high, double eps) {
  const at::Tensor extents = high - low + eps;
  return extents.select(-1, 0) * extents.select(-1, 1);
}

// ATen trusts that a gradient has the shape of what input gives at the places of grid, and some of
// its checks see no tensor that is empty.
void expect_sampled(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& grid) {
  std::vector<int64_t> expected{input.size(0), input.size(1)};
  const at::IntArrayRef places = grid.sizes().slice(1, static_cast<size_t>(grid.dim()) - 2);
  expected.insert(expected.end(), places.begin(), places.end());
  EXPECT(gradient.sizes() == expected, "gradOutput has shape ", gradient.sizes(), ", expected ",
         expected, " as input and grid have");
}

}  // namespace

// aclnn<Name>(self, padding, out) and aclnn<Name>Backward(gradOutput, self, padding, gradInput)
#define PADDING(Name, function)                                                            \
  ACLNN(Name, (In, self), (Ints, padding), (Out, out)) {                                   \
    out = moved(self, [&](const at::Tensor& x) { return at::function(x, padding); });      \
  }                                                                                        \
  ACLNN(Name##Backward, (In, gradOutput), (In, self), (Ints, padding), (Out, gradInput)) { \
    expect_pairs(padding, #Name);                                                          \
    expect_planes("gradOutput", gradOutput, self.sizes(),                                  \
                  static_cast<int64_t>(padding.size() / 2));                               \
    gradInput = at::function##_backward(wide(gradOutput), wide(self), padding);            \
  }
PADDING(ReflectionPad1d, reflection_pad1d)
PADDING(ReflectionPad2d, reflection_pad2d)
PADDING(ReflectionPad3d, reflection_pad3d)
PADDING(ReplicationPad1d, replication_pad1d)
PADDING(ReplicationPad2d, replication_pad2d)
PADDING(ReplicationPad3d, replication_pad3d)
#undef PADDING

ACLNN(AffineGrid, (In, theta), (Ints, size), (bool, alignCorners), (Out, out)) {
  out = at::affine_grid_generator(wide(theta), size, alignCorners);
}
ACLNN(GridSampler2D, (Image<In>, input), (Image<In>, grid), (int64_t, interpolationMode),
      (int64_t, paddingMode), (bool, alignCorners), (Image<Out>, out)) {
  out = at::grid_sampler_2d(wide(input), places_of(grid, paddingMode), interpolationMode,
                            paddingMode, alignCorners);
}
ACLNN(GridSampler2DBackward, (Image<In>, gradOutput), (Image<In>, input), (Image<In>, grid),
      (int64_t, interpolationMode), (int64_t, paddingMode), (bool, alignCorners),
      (Bools, outputMask), (Image<OptionalOut>, inputGrad), (Image<OptionalOut>, gridGrad)) {
  EXPECT(outputMask.size() == 2, "outputMask has ", outputMask.size(), " values, expected 2");
  expect_dims("input", input, 4);
  expect_dims("grid", grid, 4);
  expect_sampled(gradOutput, input, grid);
  const auto [input_gradient, grid_gradient] = at::grid_sampler_2d_backward(
      wide(gradOutput), wide(input), places_of(grid, paddingMode), interpolationMode, paddingMode,
      alignCorners, {outputMask[0], outputMask[1]});
  if (outputMask[0]) inputGrad = input_gradient;
  if (outputMask[1]) gridGrad = grid_gradient;
}

ACLNN(UpsampleNearest1d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  expect_dims("self", self, 3);
  expect_dtype("out", out, self);
  out = at::upsample_nearest1d(wide(self), outputSize);
}
ACLNN(UpsampleNearest2d, (Image<In>, self), (Ints, outputSize), (Image<Out>, out)) {
  expect_dims("self", self, 4);
  expect_dtype("out", out, self);
  out = at::upsample_nearest2d(wide(self), outputSize);
}
ACLNN(UpsampleBilinear2dBackward, (Image<FloatIn>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  if (gradOut.scalar_type() != at::kFloat) expect_dtype("out", out, gradOut);
  out = at::upsample_bilinear2d_backward(wide(gradOut), outputSize, inputSize, alignCorners,
                                         scale(scalesH), scale(scalesW));
}
ACLNN(UpsampleBicubic2dAA, (Image<FloatIn>, x), (Ints, outputSize), (bool, alignCorners),
      (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  expect_dtype("out", out, x);
  expect_dims("x", x, 4);
  out = at::_upsample_bicubic2d_aa(wide(x), outputSize, alignCorners, scale(scalesH, x.size(2)),
                                   scale(scalesW, x.size(3)));
}
ACLNN(UpsampleBicubic2dAAGrad, (Image<FloatIn>, gradOutput), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  expect_dtype("out", out, gradOutput);
  EXPECT(!(scalesH < 0.0) && !(scalesW < 0.0), "scalesH is ", scalesH.value(), " and scalesW is ",
         scalesW.value(), ", expected 0 or more");
  expect_image(inputSize);
  out = at::_upsample_bicubic2d_aa_backward(wide(gradOutput), outputSize, inputSize, alignCorners,
                                            scale(scalesH, inputSize[2]),
                                            scale(scalesW, inputSize[3]));
}

ACLNN(GridSampler3D, (Image<FloatIn>, input), (Image<FloatIn>, grid), (int64_t, interpolationMode),
      (int64_t, paddingMode), (bool, alignCorners), (Image<Out>, out)) {
  check_sampling(input, grid, interpolationMode, paddingMode);
  expect_dtype("out", out, input);
  out = at::grid_sampler_3d(wide(input), places_of(grid, paddingMode), interpolationMode,
                            paddingMode, alignCorners);
}
ACLNN(GridSampler3DBackward, (Image<FloatIn>, gradOutput), (Image<FloatIn>, input),
      (Image<FloatIn>, grid), (int64_t, interpolationMode), (int64_t, paddingMode),
      (bool, alignCorners), (Bools, outputMask), (Image<OptionalOut>, inputGrad),
      (Image<OptionalOut>, gridGrad)) {
  EXPECT(outputMask.size() == 2, "outputMask has ", outputMask.size(), " values, expected 2");
  check_sampling(input, grid, interpolationMode, paddingMode);
  expect_dtype("gradOutput", gradOutput, input);
  expect_dims("input", input, 5);
  expect_dims("grid", grid, 5);
  expect_sampled(gradOutput, input, grid);
  const auto [input_gradient, grid_gradient] = at::grid_sampler_3d_backward(
      wide(gradOutput), wide(input), places_of(grid, paddingMode), interpolationMode, paddingMode,
      alignCorners, {outputMask[0], outputMask[1]});
  if (outputMask[0]) inputGrad = input_gradient;
  if (outputMask[1]) gridGrad = grid_gradient;
}

// Intersection over union, or over the area of gtBoxes. eps is added to every extent, that of the
// intersection too.
ACLNN(Iou, (FloatIn, bBoxes), (FloatIn, gtBoxes), (const char*, mode), (float, eps),
      (bool, aligned), (Out, overlap)) {
  for (const at::Tensor* boxes : {&bBoxes, &gtBoxes}) {
    EXPECT(boxes->dim() == 2 && boxes->size(1) == 4, boxes == &bBoxes ? "bBoxes" : "gtBoxes",
           " has shape ", boxes->sizes(), ", expected two dimensions, the second 4");
  }
  expect_dtype("gtBoxes", gtBoxes, bBoxes);
  expect_dtype("overlap", overlap, bBoxes);
  expect_dims("overlap", overlap, 2);
  EXPECT(mode == "iou" || mode == "iof", "mode is \"", mode, "\", expected \"iou\" or \"iof\"");
  EXPECT(eps >= 0.0, "eps is ", eps.value(), ", expected 0 or more");
  EXPECT(!aligned || bBoxes.size(0) == gtBoxes.size(0), "aligned is true, bBoxes has ",
         bBoxes.size(0), " boxes and gtBoxes has ", gtBoxes.size(0), ", expected as many");
  const at::Tensor boxes = wide(bBoxes).unsqueeze(1);
  const at::Tensor truths = wide(gtBoxes).unsqueeze(aligned ? 1 : 0);
  const auto low = [](const at::Tensor& x) { return x.slice(-1, 0, 2); };
  const auto high = [](const at::Tensor& x) { return x.slice(-1, 2, 4); };
  const at::Tensor extents = at::relu(at::minimum(high(boxes), high(truths)) + eps.value() -
                                      at::maximum(low(boxes), low(truths)));
  const at::Tensor common = extents.select(-1, 0) * extents.select(-1, 1);
  const at::Tensor truth_area = area(low(truths), high(truths), eps);
  overlap = mode == "iof" ? common / truth_area
                          : common / (area(low(boxes), high(boxes), eps) + truth_area - common);
}

// Adds each gradient, times its three weights, at its three points. grad_x and grad_y may have a
// fourth dimension of size 1.
ACLNN(ThreeInterpolateBackward, (FloatIn, grad_x), (IndexIn, idx), (FloatIn, weight), (int, m),
      (Out, grad_y)) {
  EXPECT(grad_x.dim() == 3 || (grad_x.dim() == 4 && grad_x.size(3) == 1), "grad_x has shape ",
         grad_x.sizes(), ", expected three dimensions, or a fourth of 1");
  EXPECT(m >= 0, "m is ", m.value(), ", expected 0 or more");
  const at::Tensor gradient = wide(grad_x).flatten(2);
  const int64_t batch = gradient.size(0), channels = gradient.size(1), points = gradient.size(2);
  const std::vector<int64_t> expected{batch, points, 3};
  EXPECT(idx.sizes() == expected, "idx has shape ", idx.sizes(), ", expected ", expected);
  EXPECT(weight.sizes() == expected, "weight has shape ", weight.sizes(), ", expected ", expected);
  expect_dtype("weight", weight, grad_x);
  expect_dtype("grad_y", grad_y, grad_x);
  check_bounds("idx", idx, m);
  const at::Tensor parts = gradient.unsqueeze(-1) * wide(weight).unsqueeze(1);  // [b, c, n, 3]
  const at::Tensor places = idx.unsqueeze(1).expand({batch, channels, points, 3});
  const at::Tensor sums = at::zeros({batch, channels, m.value()}, gradient.options())
                              .scatter_add(2, places.flatten(2), parts.flatten(2));
  grad_y = grad_x.dim() == 4 ? sums.unsqueeze(-1) : sums;
}

}  // namespace aclnn_host::vision_sampling_rows
