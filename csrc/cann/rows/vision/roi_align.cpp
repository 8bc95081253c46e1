// RoiAlign: averages of bilinear samples in boxes of images.

#include <algorithm>
#include <cmath>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/region_alignment.h"
#include "cann/rows/vision/regions.h"

namespace aclnn_host::vision_roi_align_rows {

namespace {

constexpr int64_t kMostSamples = 4096;  // for each cell and direction, if the caller gives the
                                        // number
constexpr int64_t kMostOwnSamples = 1 << 20;  // if the size of the box determines the number

// The sample positions in one dimension of a box, the same number for each cell.
struct Samples {
  Samples(double low, double high, int64_t cells, int64_t ratio)
      : low(low), cell(std::max(high - low, 1.0) / static_cast<double>(cells)) {
    per_cell = ratio > 0 ? static_cast<double>(ratio) : std::ceil(cell);
  }
  double place(int64_t i, double sample) const {
    return low + (static_cast<double>(i) + (sample + 0.5) / per_cell) * cell;
  }
  double low, cell, per_cell;
};

// The weights of the elements along one dimension of the image in each cell of a box: [cells,
// elements], from the first to the last sampled element.
struct Weights {
  Weights(const Samples& samples, int64_t cells, int64_t size, at::ScalarType dtype)
      : first_(element(samples.place(0, 0), size)),
        count_(std::min(element(samples.place(cells - 1, samples.per_cell - 1), size) + 2, size) -
               first_) {
    at::Tensor weights = at::zeros({cells, count_}, at::kFloat);
    auto* const data = weights.mutable_data_ptr<float>();
    for (int64_t cell = 0; cell < cells; ++cell) {
      for (double sample = 0; sample < samples.per_cell; ++sample) {
        add(data + cell * count_, size, samples.place(cell, sample), 1 / samples.per_cell);
      }
    }
    matrix_ = weights.to(dtype);
  }
  const at::Tensor& matrix() const { return matrix_; }
  // Selects the elements of an image [channels, height, width].
  at::Tensor of(const at::Tensor& image, int64_t dim) const {
    return image.narrow(dim, first_, count_);
  }

 private:
  // The last element not after a position, or the first element.
  static int64_t element(double place, int64_t size) {
    return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(size - 1)));
  }
  // Adds a weighted sample to the weights of the elements around it. A sample more than 1 outside
  // the image is 0; otherwise the border elements extend beyond the image.
  void add(float* weights, int64_t size, double place, double weight) const {
    if (!(place >= -1 && place <= static_cast<double>(size))) return;
    place = std::clamp(place, 0.0, static_cast<double>(size - 1));
    const int64_t before = element(place, size);
    const double beyond = place - static_cast<double>(before);
    weights[before - first_] += static_cast<float>(weight * (1 - beyond));
    if (beyond > 0) weights[before - first_ + 1] += static_cast<float>(weight * beyond);
  }

  int64_t first_;
  int64_t count_;
  at::Tensor matrix_;
};

// The samples of box `i`, (x1, y1, x2, y2), along y or x.
Samples samples_of(const double* box, int64_t i, bool along_y, int64_t cells, int64_t ratio) {
  const int64_t side = along_y ? 1 : 0;
  const Samples samples(box[side], box[side + 2], cells, ratio);
  EXPECT(std::isfinite(samples.low) && std::isfinite(samples.cell), "rois[", i, "] begins at ",
         samples.low, " and has cells of ", samples.cell, " elements, expected finite numbers");
  EXPECT(samples.per_cell <= static_cast<double>(kMostOwnSamples), "rois[", i, "] has cells of ",
         samples.cell, " elements, expected at most ", kMostOwnSamples,
         " of them with samplingRatio 0; pass smaller boxes or a samplingRatio");
  return samples;
}

}  // namespace

// Boxes are at least 1 wide and high, and not shifted by half an element.
// Limit of RoiAlign: The mode is "avg"; "max" is refused with 161002.
ACLNN(RoiAlign, (Image<Floating<In>>, self), (SameDtype<Floating<In>>, rois, "self"),
      (IndexIn, batchIndices), (const char*, mode), (int, outputHeight), (int, outputWidth),
      (int, samplingRatio), (float, spatialScale), (SameDtype<Image<Out>>, out, "self")) {
  EXPECT(self.dim() == 4, "self has ", self.dim(), " dimensions, expected 4");
  EXPECT(rois.dim() == 2 && rois.size(1) == 4, "rois has shape ", rois.sizes(),
         ", expected two dimensions, the second 4");
  EXPECT(batchIndices.dim() == 1 && batchIndices.size(0) == rois.size(0), "batchIndices has shape ",
         batchIndices.sizes(), ", expected ", rois.size(0), " elements in one dimension");
  EXPECT(mode != "max",
         "mode is \"max\", expected \"avg\"; the host CANN does not emulate the other");
  EXPECT(mode == "avg", "mode is \"", mode, "\", expected \"avg\" or \"max\"");
  EXPECT(samplingRatio >= 0 && samplingRatio <= kMostSamples, "samplingRatio is ",
         samplingRatio.value(), ", expected 0 (as many samples as a cell has elements) to ",
         kMostSamples);
  EXPECT(spatialScale > 0.0, "spatialScale is ", spatialScale.value(), ", expected more than 0");
  const std::vector<int64_t> shape{rois.size(0), self.size(1), outputHeight, outputWidth};
  expect_shape("out", out, shape);
  if (self.numel() == 0 || out->numel() == 0 || !self.is_cpu()) {
    out = at::zeros(shape, self.options());
    return;
  }
  check_bounds("batchIndices", batchIndices, self.size(0));
  const at::Tensor images = wide(self);
  const at::Tensor boxes = (wide(rois) * spatialScale.value()).to(at::kDouble).contiguous();
  const at::Tensor batches = batchIndices.contiguous();
  const at::Tensor result = at::empty(shape, images.options());
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const auto along = [&](bool is_y, int64_t cells) {
      const double* const box = boxes.const_data_ptr<double>() + 4 * i;
      return Weights(samples_of(box, i, is_y, cells, samplingRatio), cells, self.size(is_y ? 2 : 3),
                     images.scalar_type());
    };
    const Weights rows = along(true, outputHeight);
    const Weights columns = along(false, outputWidth);
    const at::Tensor image = images.select(0, batches.const_data_ptr<int64_t>()[i]);
    const at::Tensor lines = at::matmul(rows.matrix(), columns.of(rows.of(image, 1), 2));
    result.select(0, i).copy_(at::matmul(lines, columns.matrix().t()));
  }
  out = result;
}
// Without aligned, boxes are at least 1 wide and high, and not shifted by half an element.
ACLNN(RoiAlignV2, (Image<Floating<In>>, self), (SameDtype<Floating<In>>, boxes, "self"),
      (int64_t, pooledHeight), (int64_t, pooledWidth), (float, spatialScale),
      (int64_t, samplingRatio), (bool, aligned), (SameDtype<Image<Out>>, out, "self")) {
  const AlignOptions options(pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned);
  expect_dims("self", self, 4);
  expect_not_double("self", self);
  EXPECT(self.size(0) > 0 && self.size(2) > 0 && self.size(3) > 0, "self has shape ", self.sizes(),
         ", expected no 0 but for the channels");
  expect_regions("boxes", boxes);
  const std::vector<int64_t> shape{boxes.size(0), self.size(1), options.height, options.width};
  expect_shape("out", out, shape);
  const at::Tensor images = wide(self);
  const at::Tensor result = at::zeros(shape, images.options());
  if (has_values(self) && result.numel() > 0) {
    each_aligned(boxes, self.sizes(), options,
                 [&](int64_t i, int64_t image, const at::Tensor& rows, const at::Tensor& columns) {
                   const auto type = images.scalar_type();
                   const at::Tensor lines = at::matmul(rows.to(type), images.select(0, image));
                   result.select(0, i).copy_(at::matmul(lines, columns.to(type).t()));
                 });
  }
  out = result;
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
  const at::Tensor gradients = wide(gradOutput);
  const at::Tensor result = at::zeros(inputShape, gradients.options());
  if (has_values(gradOutput) && gradOutput.numel() > 0) {
    each_aligned(boxes, inputShape, options,
                 [&](int64_t i, int64_t image, const at::Tensor& rows, const at::Tensor& columns) {
                   const auto type = gradients.scalar_type();
                   const at::Tensor lines = at::matmul(gradients.select(0, i), columns.to(type));
                   result.select(0, image).add_(at::matmul(rows.to(type).t(), lines));
                 });
  }
  gradInput = result;
}

}  // namespace aclnn_host::vision_roi_align_rows
