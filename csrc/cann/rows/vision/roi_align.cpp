// RoiAlign: averages of bilinear samples in boxes of images.

#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/region_alignment.h"
#include "cann/rows/vision/regions.h"

namespace aclnn_host::vision_roi_align_rows {

// Boxes are at least 1 wide and high, and not shifted by half an element.
// Limit of RoiAlign: The mode is "avg"; "max" is refused with 161002.
ACLNN(RoiAlign, (Image<Floating<In>>, self), (SameDtype<Floating<In>>, rois, "self"),
      (IndexIn, batchIndices), (const char*, mode), (int, outputHeight), (int, outputWidth),
      (int, samplingRatio), (float, spatialScale), (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 4);
  expect_regions("rois", rois, 4);
  expect_shape("batchIndices", batchIndices, {rois.size(0)});
  EXPECT(mode != "max",
         "mode is \"max\", expected \"avg\"; the host CANN does not emulate the other");
  expect_text("mode", mode, {"avg", "max"});
  const AlignOptions options(outputHeight, outputWidth, spatialScale, samplingRatio,
                             /*aligned=*/false);
  expect_shape("out", out, {rois.size(0), self.size(1), outputHeight, outputWidth});
  if (self.numel() == 0) {
    out = at::zeros(out->sizes(), self.options());
    return;
  }
  check_bounds("batchIndices", batchIndices, self.size(0));
  const at::Tensor boxes =
      at::cat({batchIndices.unsqueeze(1).to(wide(rois).scalar_type()), wide(rois)}, 1);
  out = aligned_averages("self", self, "rois", boxes, options);
}
// Without aligned, boxes are at least 1 wide and high, and not shifted by half an element.
ACLNN(RoiAlignV2, (Image<Floating<In>>, self), (SameDtype<Floating<In>>, boxes, "self"),
      (int64_t, pooledHeight), (int64_t, pooledWidth), (float, spatialScale),
      (int64_t, samplingRatio), (bool, aligned), (SameDtype<Image<Out>>, out, "self")) {
  const AlignOptions options(pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned);
  expect_dims("self", self, 4);
  expect_not_double("self", self);
  expect_images("self", self.sizes());
  expect_regions("boxes", boxes);
  expect_shape("out", out, {boxes.size(0), self.size(1), options.height, options.width});
  out = aligned_averages("self", self, "boxes", boxes, options);
}
ACLNN(RoiAlignV2Backward, (Image<Floating<In>>, gradOutput),
      (SameDtype<Floating<In>>, boxes, "gradOutput"), (Ints, inputShape), (int64_t, pooledHeight),
      (int64_t, pooledWidth), (float, spatialScale), (int64_t, samplingRatio), (bool, aligned),
      (SameDtype<Image<Out>>, gradInput, "gradOutput")) {
  const AlignOptions options(pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned);
  EXPECT(inputShape.size() == 4 && inputShape[0] > 0 && inputShape[1] >= 0 && inputShape[2] > 0 &&
             inputShape[3] > 0,
         "inputShape is ", inputShape, ", expected four sizes, no 0 but for the channels");
  expect_regions("boxes", boxes);
  expect_not_double("gradOutput", gradOutput);
  expect_shape("gradInput", gradInput, inputShape);
  expect_shape("gradOutput", gradOutput,
               {boxes.size(0), inputShape[1], options.height, options.width});
  gradInput = aligned_gradients("inputShape", inputShape, gradOutput, "boxes", boxes, options);
}

}  // namespace aclnn_host::vision_roi_align_rows
