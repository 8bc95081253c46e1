// Interpolation, which resizes images and volumes, and its gradients. A scale that is not positive
// is computed from the sizes.

#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/scale.h"

namespace aclnn_host::vision_upsampling_rows {

ACLNN(UpsampleNearest1d, (Image<In>, self), (Ints, outputSize),
      (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 3);
  out = at::upsample_nearest1d(wide(self), outputSize);
}
ACLNN(UpsampleNearest1dV2, (Image<In>, self), (Ints, outputSize), (float, scaleL),
      (Image<Out>, out)) {
  out = at::upsample_nearest1d(wide(self), outputSize, scale("scaleL", scaleL));
}
ACLNN(UpsampleNearest1dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scales), (Image<Out>, out)) {
  out = at::upsample_nearest1d_backward(wide(gradOut), outputSize, inputSize,
                                        scale("scales", scales));
}

ACLNN(UpsampleNearest2d, (Image<In>, self), (Ints, outputSize),
      (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 4);
  out = at::upsample_nearest2d(wide(self), outputSize);
}
ACLNN(UpsampleNearest2dV2, (Image<In>, self), (Ints, outputSize), (float, scalesH),
      (float, scalesW), (Image<Out>, out)) {
  out = at::upsample_nearest2d(wide(self), outputSize, scale("scalesH", scalesH),
                               scale("scalesW", scalesW));
}
ACLNN(UpsampleNearest2dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  gradInput = at::upsample_nearest2d_backward(wide(gradOut), outputSize, inputSize,
                                              scale("scalesH", scalesH), scale("scalesW", scalesW));
}

ACLNN(UpsampleBilinear2dBackward, (Image<Floating<In>>, gradOut), (Ints, outputSize),
      (Ints, inputSize), (bool, alignCorners), (double, scalesH), (double, scalesW),
      (Image<Out>, out)) {
  if (gradOut.scalar_type() != at::kFloat) expect_dtype("out", out, gradOut);
  out = at::upsample_bilinear2d_backward(wide(gradOut), outputSize, inputSize, alignCorners,
                                         scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleBilinear2d, (Image<In>, self), (Ints, outputSize), (bool, alignCorners),
      (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::upsample_bilinear2d(wide(self), outputSize, alignCorners, scale("scalesH", scalesH),
                                scale("scalesW", scalesW));
}
ACLNN(UpsampleBilinear2dBackwardV2, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::upsample_bilinear2d_backward(wide(gradOut), outputSize, inputSize, alignCorners,
                                         scale("scalesH", scalesH), scale("scalesW", scalesW));
}

ACLNN(UpsampleBicubic2dAA, (Image<Floating<In>>, x), (Ints, outputSize), (bool, alignCorners),
      (double, scalesH), (double, scalesW), (SameDtype<Image<Out>>, out, "x")) {
  expect_dims("x", x, 4);
  const auto [height, width] =
      antialiased_scales(scalesH, scalesW, x.sizes().slice(2), outputSize, alignCorners);
  out = at::_upsample_bicubic2d_aa(wide(x), outputSize, alignCorners, height, width);
}
ACLNN(UpsampleBicubic2dAAGrad, (Image<Floating<In>>, gradOutput), (Ints, outputSize),
      (Ints, inputSize), (bool, alignCorners), (double, scalesH), (double, scalesW),
      (SameDtype<Image<Out>>, out, "gradOutput")) {
  EXPECT(!(scalesH < 0.0) && !(scalesW < 0.0), "scalesH is ", scalesH.value(), " and scalesW is ",
         scalesW.value(), ", expected 0 or more");
  expect_image(inputSize);
  const auto [height, width] =
      antialiased_scales(scalesH, scalesW, inputSize.slice(2), outputSize, alignCorners);
  out = at::_upsample_bicubic2d_aa_backward(wide(gradOutput), outputSize, inputSize, alignCorners,
                                            height, width);
}

ACLNN(UpsampleNearest3d, (Image<In>, self), (Ints, outputSize), (double, scalesD),
      (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::upsample_nearest3d(wide(self), outputSize, scale("scalesD", scalesD),
                               scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleNearest3dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scalesD), (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  gradInput = at::upsample_nearest3d_backward(wide(gradOut), outputSize, inputSize,
                                              scale("scalesD", scalesD), scale("scalesH", scalesH),
                                              scale("scalesW", scalesW));
}

ACLNN(UpsampleNearestExact1d, (Image<In>, self), (Ints, outputSize), (double, scales),
      (Image<Out>, out)) {
  out = at::_upsample_nearest_exact1d(wide(self), outputSize, scale("scales", scales));
}
ACLNN(UpsampleNearestExact1dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scales), (Image<Out>, out)) {
  out = at::_upsample_nearest_exact1d_backward(wide(gradOut), outputSize, inputSize,
                                               scale("scales", scales));
}
ACLNN(UpsampleNearestExact2d, (Image<In>, self), (Ints, outputSize), (double, scalesH),
      (double, scalesW), (Image<Out>, out)) {
  out = at::_upsample_nearest_exact2d(wide(self), outputSize, scale("scalesH", scalesH),
                                      scale("scalesW", scalesW));
}
ACLNN(UpsampleNearestExact2dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  gradInput = at::_upsample_nearest_exact2d_backward(
      wide(gradOut), outputSize, inputSize, scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleNearestExact3d, (Image<In>, self), (Ints, outputSize), (double, scalesD),
      (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::_upsample_nearest_exact3d(wide(self), outputSize, scale("scalesD", scalesD),
                                      scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleNearestExact3dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (double, scalesD), (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  gradInput = at::_upsample_nearest_exact3d_backward(
      wide(gradOut), outputSize, inputSize, scale("scalesD", scalesD), scale("scalesH", scalesH),
      scale("scalesW", scalesW));
}

ACLNN(UpsampleLinear1d, (Image<In>, self), (Ints, outputSize), (bool, alignCorners),
      (double, scales), (Image<Out>, out)) {
  out = at::upsample_linear1d(wide(self), outputSize, alignCorners, scale("scales", scales));
}
ACLNN(UpsampleLinear1dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scales), (Image<Out>, out)) {
  out = at::upsample_linear1d_backward(wide(gradOut), outputSize, inputSize, alignCorners,
                                       scale("scales", scales));
}
ACLNN(UpsampleBicubic2d, (Image<In>, self), (Ints, outputSize), (bool, alignCorners),
      (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::upsample_bicubic2d(wide(self), outputSize, alignCorners, scale("scalesH", scalesH),
                               scale("scalesW", scalesW));
}
ACLNN(UpsampleBicubic2dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  gradInput = at::upsample_bicubic2d_backward(wide(gradOut), outputSize, inputSize, alignCorners,
                                              scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleTrilinear3d, (Image<In>, self), (Ints, outputSize), (bool, alignCorners),
      (double, scalesD), (double, scalesH), (double, scalesW), (Image<Out>, out)) {
  out = at::upsample_trilinear3d(wide(self), outputSize, alignCorners, scale("scalesD", scalesD),
                                 scale("scalesH", scalesH), scale("scalesW", scalesW));
}
ACLNN(UpsampleTrilinear3dBackward, (Image<In>, gradOut), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesD), (double, scalesH), (double, scalesW),
      (Image<Out>, gradInput)) {
  gradInput = at::upsample_trilinear3d_backward(
      wide(gradOut), outputSize, inputSize, alignCorners, scale("scalesD", scalesD),
      scale("scalesH", scalesH), scale("scalesW", scalesW));
}

ACLNN(UpsampleBilinear2dAA, (Image<In>, input), (Ints, outputSize), (bool, alignCorners),
      (double, scalesH), (double, scalesW), (Image<Out>, output)) {
  expect_dims("input", input, 4);
  const auto [height, width] =
      antialiased_scales(scalesH, scalesW, input.sizes().slice(2), outputSize, alignCorners);
  output = at::_upsample_bilinear2d_aa(wide(input), outputSize, alignCorners, height, width);
}
ACLNN(UpsampleBilinear2dAABackward, (Image<In>, gradOutput), (Ints, outputSize), (Ints, inputSize),
      (bool, alignCorners), (double, scalesH), (double, scalesW), (Image<Out>, gradInput)) {
  expect_image(inputSize);
  const auto [height, width] =
      antialiased_scales(scalesH, scalesW, inputSize.slice(2), outputSize, alignCorners);
  gradInput = at::_upsample_bilinear2d_aa_backward(wide(gradOutput), outputSize, inputSize,
                                                   alignCorners, height, width);
}

}  // namespace aclnn_host::vision_upsampling_rows
