// Resizes images and volumes, and computes the gradients.

#include <array>

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_resizing {

namespace {

// The sizes of an image, or volume, without batch and channels. Operators take them from the
// output, because the order in the call's attribute depends on its framework's format.
Integers last_sizes(const char* name, const at::Tensor& x, int64_t count) {
  expect_dims(name, x, count + 2);
  return Integers(x.sizes().begin() + 2, x.sizes().end());
}

enum class Interpolation { kNearest, kLinear, kCubic };

Interpolation interpolation_of(const std::optional<std::string>& mode) {
  const std::string name = mode.value_or("nearest");
  expect_text("mode", name, {"nearest", "linear", "cubic"});
  return name == "nearest"  ? Interpolation::kNearest
         : name == "linear" ? Interpolation::kLinear
                            : Interpolation::kCubic;
}

// True if corners are aligned, for one attribute that gives the coordinate mode. For the mode
// nearest ATen takes the element before the position.
bool aligns_corners(const std::optional<std::string>& mode, Interpolation how,
                    const std::optional<std::string>& nearest = std::nullopt) {
  const std::string name = mode.value_or("half_pixel");
  if (how == Interpolation::kNearest) {
    expect_text("nearest_mode", nearest.value_or("round_prefer_floor"), {"floor"});
    expect_text("coordinate_transformation_mode", name, {"pytorch_half_pixel", "asymmetric"},
                " where mode is nearest");
    return false;
  }
  expect_text("coordinate_transformation_mode", name,
              {"half_pixel", "pytorch_half_pixel", "align_corners"});
  return name == "align_corners";
}
// True if corners are aligned, for two attributes that give the coordinate mode.
bool aligns_corners(const std::optional<bool>& corners, const std::optional<bool>& centers) {
  EXPECT(corners.value_or(false) != centers.value_or(false),
         "align_corners and half_pixel_centers are both ", corners.value_or(false),
         ", expected one to be true");
  return corners.value_or(false);
}

// ATen computes the ratio of the sizes unless a scale is given.
at::Tensor resized(const at::Tensor& x, at::IntArrayRef size, Interpolation how, bool align) {
  switch (how) {
    case Interpolation::kNearest: return at::upsample_nearest2d(x, size);
    case Interpolation::kLinear: return at::upsample_bilinear2d(x, size, align);
    default: return at::upsample_bicubic2d(x, size, align);
  }
}
at::Tensor gradient(const at::Tensor& grads, at::IntArrayRef shape, Interpolation how, bool align) {
  const Integers size = last_sizes("grads", grads, 2);
  switch (how) {
    case Interpolation::kNearest: return at::upsample_nearest2d_backward(grads, size, shape);
    case Interpolation::kLinear: return at::upsample_bilinear2d_backward(grads, size, shape, align);
    default: return at::upsample_bicubic2d_backward(grads, size, shape, align);
  }
}

}  // namespace

NAMED_OPERATOR(ResizeBilinearV2, (Floating<In>, x), (HostInts, size), (Out, y),
               (Attribute<bool>, align_corners), (Attribute<bool>, half_pixel_centers),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of y says it")) {
  expect_repeats("size", size, "y", y);
  y = resized(wide(x), last_sizes("y", y, 2), Interpolation::kLinear,
              aligns_corners(align_corners, half_pixel_centers));
}
NAMED_OPERATOR(ResizeBilinearV2Grad, (Floating<In>, grads), (In, original_image), (Out, y),
               (Attribute<bool>, align_corners), (Attribute<bool>, half_pixel_centers)) {
  y = gradient(wide(grads), original_image.sizes(), Interpolation::kLinear,
               aligns_corners(align_corners, half_pixel_centers));
}
NAMED_OPERATOR(ResizeNearestNeighborV2, (In, x), (HostInts, size), (Out, y),
               (Only, align_corners, "false"), (Only, half_pixel_centers, "false")) {
  expect_repeats("size", size, "y", y);
  y = resized(x, last_sizes("y", y, 2), Interpolation::kNearest, false);
}
NAMED_OPERATOR(ResizeNearestNeighborV2Grad, (Floating<In>, grads), (HostInts, size), (Out, y),
               (Only, align_corners, "false"), (Only, half_pixel_centers, "false")) {
  expect_repeats("size", size, "y", y);
  y = gradient(wide(grads), y->sizes(), Interpolation::kNearest, false);
}
NAMED_OPERATOR(Resize, (In, x),
               (Unused<HostFloats>, roi, "only tf_crop_and_resize reads it, which is refused"),
               (Unused<HostFloats>, scales, "the sizes of the tensors say it"), (HostInts, sizes),
               (Out, y), (Attribute<std::string>, coordinate_transformation_mode),
               (Only, cubic_coeff_a, "-0.75"), (Only, exclude_outside, "0"),
               (Unused<Attribute<double>>, extrapolation_value,
                "only tf_crop_and_resize reads it, which is refused"),
               (Attribute<std::string>, mode), (Attribute<std::string>, nearest_mode)) {
  expect_repeats("sizes", sizes, "y", y);
  const Interpolation how = interpolation_of(mode);
  y = resized(x, last_sizes("y", y, 2), how,
              aligns_corners(coordinate_transformation_mode, how, nearest_mode));
}
NAMED_OPERATOR(ResizeGrad, (Floating<In>, grads),
               (Unused<HostFloats>, roi, "only tf_crop_and_resize reads it, which is refused"),
               (Unused<HostFloats>, scales, "the sizes of the tensors say it"),
               (HostInts, original_size), (Out, y),
               (Attribute<std::string>, coordinate_transformation_mode),
               (Only, cubic_coeff_a, "-0.75"), (Only, exclude_outside, "0"),
               (Unused<Attribute<double>>, extrapolation_value,
                "only tf_crop_and_resize reads it, which is refused"),
               (Attribute<std::string>, mode), (Attribute<std::string>, nearest_mode)) {
  expect_repeats("original_size", original_size, "y", y);
  const Interpolation how = interpolation_of(mode);
  y = gradient(wide(grads), y->sizes(), how,
               aligns_corners(coordinate_transformation_mode, how, nearest_mode));
}
NAMED_OPERATOR(ResizeD, (Floating<In>, X), (Out, y), (Attribute<Integers>, sizes),
               (Unused<Attribute<Numerals>>, scales, "the sizes of the tensors say it"),
               (Unused<Attribute<Integers>>, roi,
                "only tf_crop_and_resize reads it, which is refused"),
               (Attribute<std::string>, coordinate_transformation_mode),
               (Only, cubic_coeff_a, "-0.75"), (Only, exclude_outside, "0"),
               (Unused<Attribute<double>>, extrapolation_value,
                "only tf_crop_and_resize reads it, which is refused"),
               (Attribute<std::string>, mode), (Attribute<std::string>, nearest_mode),
               (Only, data_format, "NCHW")) {
  expect_repeats("sizes", sizes, "y", y);
  const Interpolation how = interpolation_of(mode);
  y = resized(wide(X), last_sizes("y", y, 2), how,
              aligns_corners(coordinate_transformation_mode, how, nearest_mode));
}
// In HWNC the gradients have shape (H, W, N, C), and the elements of y this order in memory,
// although its shape is that of NCHW. original_size is (N, C, H, W) in any case.
NAMED_OPERATOR(ResizeGradD, (Floating<In>, grads), (Out, y), (Attribute<Integers>, original_size),
               (Unused<Attribute<Integers>>, roi,
                "only tf_crop_and_resize reads it, which is refused"),
               (Unused<Attribute<Numerals>>, scales, "the sizes of the tensors say it"),
               (Attribute<std::string>, coordinate_transformation_mode),
               (Only, cubic_coeff_a, "-0.75"), (Only, exclude_outside, "0"),
               (Unused<Attribute<double>>, extrapolation_value,
                "only tf_crop_and_resize reads it, which is refused"),
               (Attribute<std::string>, mode), (Attribute<std::string>, nearest_mode),
               (Attribute<std::string>, data_format)) {
  const Interpolation how = interpolation_of(mode);
  const bool align = aligns_corners(coordinate_transformation_mode, how, nearest_mode);
  const std::string format = data_format.value_or("NCHW");
  if (format == "NCHW") {
    y = gradient(wide(grads), y->sizes(), how, align);
    return;
  }
  expect_text("data_format", format, {"NCHW", "HWNC"});
  EXPECT(original_size && original_size->size() == 4, "original_size has ",
         original_size ? original_size->size() : 0, " numbers, expected 4");
  expect_dims("grads", grads, 4);
  constexpr std::array<int64_t, 4> to_nchw{2, 3, 0, 1};  // and back
  const at::Tensor result = gradient(wide(grads).permute(to_nchw), *original_size, how, align);
  y = result.permute(to_nchw).reshape(y->sizes());
}
NAMED_OPERATOR(UpsampleNearest3d, (Floating<In>, x), (Out, y), (Attribute<Integers>, output_size)) {
  expect_repeats("output_size", output_size, "y", y);
  y = at::upsample_nearest3d(wide(x), last_sizes("y", y, 3));
}
NAMED_OPERATOR(UpsampleNearest3dGrad, (Floating<In>, grad_output), (Out, y),
               (Attribute<Integers>, input_size), (Attribute<Integers>, output_size)) {
  expect_repeats("output_size", output_size, "grad_output", grad_output);
  expect_repeats("input_size", input_size, "y", y);
  y = at::upsample_nearest3d_backward(wide(grad_output), last_sizes("grad_output", grad_output, 3),
                                      y->sizes());
}
NAMED_OPERATOR(UpsampleTrilinear3d, (Floating<In>, x), (Out, y), (Attribute<Integers>, output_size),
               (Attribute<bool>, align_corners)) {
  expect_repeats("output_size", output_size, "y", y);
  y = at::upsample_trilinear3d(wide(x), last_sizes("y", y, 3), align_corners.value_or(false));
}
NAMED_OPERATOR(UpsampleTrilinear3dGrad, (Floating<In>, grad_output), (Out, y),
               (Attribute<Integers>, input_size), (Attribute<Integers>, output_size),
               (Attribute<bool>, align_corners)) {
  expect_repeats("output_size", output_size, "grad_output", grad_output);
  expect_repeats("input_size", input_size, "y", y);
  y = at::upsample_trilinear3d_backward(wide(grad_output),
                                        last_sizes("grad_output", grad_output, 3), y->sizes(),
                                        align_corners.value_or(false));
}

}  // namespace aclnn_host::named_resizing
