// RoiAlign: averages of bilinear samples in boxes of images.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// The places of the samples in one dimension of a box: so many for each of its cells.
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

// Adds a sample, which is weighted, to the weights of the elements around it. More than 1 beside
// the image it is 0; otherwise the elements at the image's borders continue.
void add(float* weights, int64_t size, double place, double weight) {
  if (!(place >= -1 && place <= static_cast<double>(size))) return;
  place = std::clamp(place, 0.0, static_cast<double>(size - 1));
  const auto element = static_cast<int64_t>(place);
  const double beyond = place - static_cast<double>(element);
  weights[element] += static_cast<float>(weight * (1 - beyond));
  if (beyond > 0) weights[element + 1] += static_cast<float>(weight * beyond);
}

// What each cell of each box takes of the elements along one dimension: [boxes, cells, size].
at::Tensor weights_of(const at::Tensor& low, const at::Tensor& high, int64_t cells, int64_t size,
                      int64_t ratio) {
  const int64_t boxes = low.size(0);
  at::Tensor result = at::zeros({boxes, cells, size}, low.options().dtype(at::kFloat));
  if (!low.is_cpu() || result.numel() == 0) return result;
  const at::Tensor lows = low.to(at::kDouble).contiguous();
  const at::Tensor highs = high.to(at::kDouble).contiguous();
  for (int64_t box = 0; box < boxes; ++box) {
    const Samples samples(lows.const_data_ptr<double>()[box], highs.const_data_ptr<double>()[box],
                          cells, ratio);
    TORCH_CHECK(std::isfinite(samples.low) && samples.per_cell <= 1 << 24, "box ", box,
                " of rois begins at ", samples.low, " and has cells of ", samples.cell,
                ", expected finite ones");
    for (int64_t cell = 0; cell < cells; ++cell) {
      float* const weights = result.mutable_data_ptr<float>() + (box * cells + cell) * size;
      for (double sample = 0; sample < samples.per_cell; ++sample) {
        add(weights, size, samples.place(cell, sample), 1 / samples.per_cell);
      }
    }
  }
  return result;
}

}  // namespace

// Boxes are at least 1 wide and high, and not moved by half an element.
ACLNN(RoiAlign, (FloatIn, self), (FloatIn, rois), (IndexIn, batchIndices), (const char*, mode),
      (int, outputHeight), (int, outputWidth), (int, samplingRatio), (float, spatialScale),
      (Out, out)) {
  TORCH_CHECK(self.dim() == 4, "self has ", self.dim(), " dimensions, expected 4");
  TORCH_CHECK(rois.dim() == 2 && rois.size(1) == 4, "rois has shape ", rois.sizes(),
              ", expected two dimensions, the second 4");
  TORCH_CHECK(batchIndices.dim() == 1 && batchIndices.size(0) == rois.size(0),
              "batchIndices has shape ", batchIndices.sizes(), ", expected ", rois.size(0),
              " elements in one dimension");
  TORCH_CHECK(mode != "max",
              "mode is \"max\", expected \"avg\"; the host CANN does not emulate the other");
  TORCH_CHECK(mode == "avg", "mode is \"", mode, "\", expected \"avg\" or \"max\"");
  TORCH_CHECK(samplingRatio >= 0 && spatialScale > 0.0, "samplingRatio is ", samplingRatio.value(),
              " and spatialScale is ", spatialScale.value(),
              ", expected 0 or more, and more than 0");
  for (const at::Tensor& tensor : {rois, static_cast<const at::Tensor&>(out)}) {
    TORCH_CHECK(tensor.scalar_type() == self.scalar_type(), "rois or out has dtype ",
                tensor.scalar_type(), ", expected ", self.scalar_type(), " as self has");
  }
  const std::vector<int64_t> shape{rois.size(0), self.size(1), outputHeight, outputWidth};
  TORCH_CHECK(out->sizes() == shape, "out has shape ", out->sizes(), ", expected ", shape);
  if (self.numel() == 0 || rois.numel() == 0) {
    out = at::zeros(shape, self.options());
    return;
  }
  check_bounds("batchIndices", batchIndices, self.size(0));
  const at::Tensor boxes = wide(rois) * spatialScale.value();
  const auto side = [&](int64_t i, int64_t cells) {
    return weights_of(boxes.select(1, i), boxes.select(1, i + 2), cells, self.size(3 - i),
                      samplingRatio)
        .to(wide(self.scalar_type()))
        .unsqueeze(1);
  };
  const at::Tensor images = wide(self).index_select(0, batchIndices);
  out = at::matmul(at::matmul(side(1, outputHeight), images), side(0, outputWidth).transpose(2, 3));
}
