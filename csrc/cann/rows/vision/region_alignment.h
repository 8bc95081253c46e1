#pragma once

#include <algorithm>
#include <cmath>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

// The weights of image elements in the cells of boxes (RoiAlign).
namespace aclnn_host {

inline constexpr int64_t kMostRegionSamples = 4096;       // for each cell and direction, if the
                                                          // caller gives the number
inline constexpr double kMostOwnRegionSamples = 1 << 20;  // if the size of the box determines the
                                                          // number

struct AlignOptions {
  AlignOptions(int64_t height, int64_t width, double scale, int64_t ratio, bool aligned)
      : height(height), width(width), ratio(ratio), scale(scale), aligned(aligned) {
    EXPECT(scale > 0, "spatialScale is ", scale, ", expected more than 0");
    EXPECT(ratio >= 0 && ratio <= kMostRegionSamples, "samplingRatio is ", ratio,
           ", expected 0 (as many samples as a cell has elements) to ", kMostRegionSamples);
  }
  int64_t height, width, ratio;
  double scale;
  bool aligned;
};

// The weights of the elements along one dimension of the image in each cell of a box: [cells,
// size]. A sample more than 1 outside the image is 0; otherwise the border elements extend beyond
// the image.
inline at::Tensor cell_weights(double low, double high, int64_t cells, int64_t size,
                               const AlignOptions& options) {
  if (options.aligned) low -= 0.5, high -= 0.5;
  const double extent = options.aligned ? high - low : std::max(high - low, 1.0);
  const double cell = extent / static_cast<double>(cells);
  const double samples = options.ratio > 0 ? static_cast<double>(options.ratio) : std::ceil(cell);
  EXPECT(std::isfinite(low) && std::isfinite(cell), "a box begins at ", low, " and has cells of ",
         cell, " elements, expected finite numbers");
  EXPECT(samples <= kMostOwnRegionSamples, "a box has cells of ", cell,
         " elements, expected at most ", kMostOwnRegionSamples,
         " of them with samplingRatio 0; pass smaller boxes or a samplingRatio");
  const at::Tensor weights = at::zeros({cells, size}, at::kDouble);
  auto* const data = weights.mutable_data_ptr<double>();
  for (int64_t i = 0; i < cells; ++i) {
    for (double sample = 0; sample < samples; ++sample) {
      double place = low + (static_cast<double>(i) + (sample + 0.5) / samples) * cell;
      if (!(place >= -1 && place <= static_cast<double>(size))) continue;
      place = std::clamp(place, 0.0, static_cast<double>(size - 1));
      const double beyond = place - std::floor(place);
      double* const element = data + i * size + static_cast<int64_t>(place);
      element[0] += (1 - beyond) / samples;
      if (beyond > 0) element[1] += beyond / samples;
    }
  }
  return weights.to(at::kFloat);
}

// Calls visit(i, image, rows, columns) for every box (image, x1, y1, x2, y2), where rows and
// columns are the weights of its cells.
template <class Visit>
void each_aligned(const at::Tensor& boxes, at::IntArrayRef images, const AlignOptions& options,
                  Visit visit) {
  EXPECT(images[0] > 0 && images[2] > 0 && images[3] > 0, "the images have shape ", images,
         ", expected no 0 but for the channels");
  const at::Tensor numbers = wide(boxes).to(at::kFloat).contiguous();
  const at::Tensor image = numbers.select(1, 0).floor();
  EXPECT(image.numel() == 0 || (image >= 0).all().item<bool>(),
         "boxes has an image_id of less than 0 or nan, expected 0 to ", images[0] - 1);
  EXPECT(image.numel() == 0 || (image < c10::Scalar(images[0])).all().item<bool>(),
         "boxes has an image_id of ", images[0], " or more, expected 0 to ", images[0] - 1);
  const auto* const data = numbers.const_data_ptr<float>();
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const float* const box = data + 5 * i;
    const auto weights = [&](int64_t side, int64_t cells, int64_t size) {
      const auto scale = static_cast<float>(options.scale);
      return cell_weights(box[side] * scale, box[side + 2] * scale, cells, size, options);
    };
    visit(i, static_cast<int64_t>(box[0]), weights(2, options.height, images[2]),
          weights(1, options.width, images[3]));
  }
}

}  // namespace aclnn_host
