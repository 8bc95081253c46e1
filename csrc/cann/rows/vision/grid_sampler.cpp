// Samples images at the positions of a grid.

#include "cann/rows/images.h"
#include "cann/rows/row.h"

namespace aclnn_host::vision_grid_sampler_rows {

namespace {

// The sampling positions. With a padding other than zeros ATen assumes that every position has been
// moved into the image, which does not move NaN: NaN samples the first element here.
at::Tensor positions_of(const at::Tensor& grid, int64_t padding) {
  constexpr double kFar = 1e6;  // in image sizes; limits the number of reflections of a position
  if (padding == 0) return wide(grid);
  return wide(grid).nan_to_num(-1, kFar, -kFar).clamp(-kFar, kFar);
}

void check_planes(int64_t interpolation, int64_t padding) {
  expect_one_of("interpolationMode", interpolation, {0, 1, 2}, " (bilinear, nearest or bicubic)");
  expect_one_of("paddingMode", padding, {0, 1, 2}, " (zeros, border or reflection)");
}
void check_volumes(int64_t interpolation, int64_t padding) {
  expect_one_of("interpolationMode", interpolation, {0, 1}, " (bilinear or nearest)");
  expect_one_of("paddingMode", padding, {0, 1, 2}, " (zeros, border or reflection)");
}

// ATen does not check that a gradient has the shape of the samples, and some of its checks ignore
// empty tensors.
void expect_sampled(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& grid,
                    int64_t dims) {
  expect_dims("input", input, dims);
  expect_dims("grid", grid, dims);
  std::vector<int64_t> expected = grid.sizes().vec();
  expected.pop_back();
  expected.insert(expected.begin() + 1, input.size(1));
  expected[0] = input.size(0);
  expect_shape("gradOutput", gradient, expected);
}

// Requires the outputs that outputMask requests.
void check_mask(const std::vector<bool>& mask, const OptionalOutput& input_grad,
                const OptionalOutput& grid_grad) {
  EXPECT(mask.size() == 2, "outputMask has ", mask.size(), " values, expected 2");
  require_asked("inputGrad", input_grad, "outputMask[0]", mask[0]);
  require_asked("gridGrad", grid_grad, "outputMask[1]", mask[1]);
}

}  // namespace

ACLNN(AffineGrid, (In, theta), (Ints, size), (bool, alignCorners), (Out, out)) {
  out = at::affine_grid_generator(wide(theta), size, alignCorners);
}
ACLNN(GridSampler2D, (Image<In>, input), (Image<In>, grid), (int64_t, interpolationMode),
      (int64_t, paddingMode), (bool, alignCorners), (Image<Out>, out)) {
  check_planes(interpolationMode, paddingMode);
  out = at::grid_sampler_2d(wide(input), positions_of(grid, paddingMode), interpolationMode,
                            paddingMode, alignCorners);
}
ACLNN(GridSampler2DBackward, (Image<In>, gradOutput), (Image<In>, input), (Image<In>, grid),
      (int64_t, interpolationMode), (int64_t, paddingMode), (bool, alignCorners),
      (Bools, outputMask), (Image<Optional<Out>>, inputGrad), (Image<Optional<Out>>, gridGrad)) {
  check_mask(outputMask, inputGrad, gridGrad);
  check_planes(interpolationMode, paddingMode);
  expect_sampled(gradOutput, input, grid, 4);
  const auto [input_gradient, grid_gradient] = at::grid_sampler_2d_backward(
      wide(gradOutput), wide(input), positions_of(grid, paddingMode), interpolationMode,
      paddingMode, alignCorners, {outputMask[0], outputMask[1]});
  if (outputMask[0]) inputGrad = input_gradient;
  if (outputMask[1]) gridGrad = grid_gradient;
}

ACLNN(GridSampler3D, (Image<Floating<In>>, input), (SameDtype<Image<Floating<In>>>, grid, "input"),
      (int64_t, interpolationMode), (int64_t, paddingMode), (bool, alignCorners),
      (SameDtype<Image<Out>>, out, "input")) {
  check_volumes(interpolationMode, paddingMode);
  out = at::grid_sampler_3d(wide(input), positions_of(grid, paddingMode), interpolationMode,
                            paddingMode, alignCorners);
}
ACLNN(GridSampler3DBackward, (SameDtype<Image<Floating<In>>>, gradOutput, "input"),
      (Image<Floating<In>>, input), (SameDtype<Image<Floating<In>>>, grid, "input"),
      (int64_t, interpolationMode), (int64_t, paddingMode), (bool, alignCorners),
      (Bools, outputMask), (Image<Optional<Out>>, inputGrad), (Image<Optional<Out>>, gridGrad)) {
  check_mask(outputMask, inputGrad, gridGrad);
  check_volumes(interpolationMode, paddingMode);
  expect_sampled(gradOutput, input, grid, 5);
  const auto [input_gradient, grid_gradient] = at::grid_sampler_3d_backward(
      wide(gradOutput), wide(input), positions_of(grid, paddingMode), interpolationMode,
      paddingMode, alignCorners, {outputMask[0], outputMask[1]});
  if (outputMask[0]) inputGrad = input_gradient;
  if (outputMask[1]) gridGrad = grid_gradient;
}

}  // namespace aclnn_host::vision_grid_sampler_rows
