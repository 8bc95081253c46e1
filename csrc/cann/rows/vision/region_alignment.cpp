#include "cann/rows/vision/region_alignment.h"

#include <algorithm>
#include <cmath>

namespace aclnn_host {
namespace {

constexpr int64_t kMostSamples = 4096;  // for each cell and direction, if the caller gives the
                                        // number
constexpr int64_t kMostOwnSamples = 1 << 20;  // if the size of the box determines the number

// The weights of the elements along one dimension of the image in each cell of a box: [cells,
// elements], from the first to the last sampled element.
struct CellWeights {
  int64_t first;
  at::Tensor matrix;

  at::Tensor elements_of(const at::Tensor& image, int64_t dim) const {
    return image.narrow(dim, first, matrix.size(1));
  }
};

// A sample more than 1 outside the image is 0; otherwise the border elements extend beyond the
// image.
CellWeights cell_weights(const char* name, int64_t box, double low, double high, int64_t cells,
                         int64_t size, const AlignOptions& options) {
  if (options.aligned) low -= 0.5, high -= 0.5;
  const double extent = options.aligned ? high - low : std::max(high - low, 1.0);
  const double cell = extent / static_cast<double>(cells);
  const double samples = options.ratio > 0 ? static_cast<double>(options.ratio) : std::ceil(cell);
  EXPECT(std::isfinite(low) && std::isfinite(cell), name, "[", box, "] begins at ", low,
         " and has cells of ", cell, " elements, expected finite numbers");
  EXPECT(samples <= static_cast<double>(kMostOwnSamples), name, "[", box, "] has cells of ", cell,
         " elements, expected at most ", kMostOwnSamples,
         " of them with samplingRatio 0; pass smaller boxes or a samplingRatio");
  const at::Tensor weights = at::zeros({cells, size}, at::kDouble);
  auto* const data = weights.mutable_data_ptr<double>();
  int64_t first = size, end = 0;
  for (int64_t i = 0; i < cells; ++i) {
    for (double sample = 0; sample < samples; ++sample) {
      double position = low + (static_cast<double>(i) + (sample + 0.5) / samples) * cell;
      if (!(position >= -1 && position <= static_cast<double>(size))) continue;
      position = std::clamp(position, 0.0, static_cast<double>(size - 1));
      const double beyond = position - std::floor(position);
      const auto element = static_cast<int64_t>(position);
      data[i * size + element] += (1 - beyond) / samples;
      if (beyond > 0) data[i * size + element + 1] += beyond / samples;
      first = std::min(first, element);
      end = std::max(end, element + (beyond > 0 ? 2 : 1));
    }
  }
  first = std::min(first, end);  // also if no sample is in the image
  return {first, weights.slice(1, first, end)};
}

// Calls visit(i, image, rows, columns) for every box, where rows and columns are the weights of its
// cells, in the type of a computation.
template <class Visit>
void each_aligned(const char* images_name, at::IntArrayRef images, const char* boxes_name,
                  const at::Tensor& boxes, const AlignOptions& options, at::ScalarType type,
                  Visit visit) {
  expect_images(images_name, images);
  const at::Tensor image = wide(boxes).select(1, 0).floor().contiguous();
  const at::Tensor is_image = (image >= 0).logical_and(image < c10::Scalar(images[0]));
  EXPECT(is_image.all().item<bool>(), boxes_name, " has an image_id outside ", images_name,
         ", expected 0 to ", images[0] - 1);
  const at::Tensor numbers = image.to(at::kLong);
  const at::Tensor scaled = (wide(boxes) * options.scale).to(at::kDouble).contiguous();
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const double* const box = scaled.const_data_ptr<double>() + 5 * i;
    const auto weights = [&](int64_t side, int64_t cells, int64_t size) {
      CellWeights found =
          cell_weights(boxes_name, i, box[side], box[side + 2], cells, size, options);
      found.matrix = found.matrix.to(type);
      return found;
    };
    visit(i, numbers.const_data_ptr<int64_t>()[i], weights(2, options.height, images[2]),
          weights(1, options.width, images[3]));
  }
}

}  // namespace

AlignOptions::AlignOptions(int64_t height, int64_t width, double scale, int64_t ratio, bool aligned,
                           const char* scale_name, const char* ratio_name)
    : height(height), width(width), ratio(ratio), scale(scale), aligned(aligned) {
  EXPECT(scale > 0, scale_name, " is ", scale, ", expected more than 0");
  expect_range(ratio_name, ratio, 0, kMostSamples,
               ", where 0 is as many samples as a cell has elements");
}

void expect_images(const char* name, at::IntArrayRef sizes) {
  EXPECT(sizes[0] > 0 && sizes[2] > 0 && sizes[3] > 0, name, " has shape ", sizes,
         ", expected no 0 but for the channels");
}

at::Tensor aligned_averages(const char* images_name, const at::Tensor& images,
                            const char* boxes_name, const at::Tensor& boxes,
                            const AlignOptions& options) {
  const at::Tensor values = wide(images);
  const at::Tensor result =
      at::zeros({boxes.size(0), images.size(1), options.height, options.width}, values.options());
  if (!has_values(images) || result.numel() == 0) return result;
  each_aligned(images_name, images.sizes(), boxes_name, boxes, options, values.scalar_type(),
               [&](int64_t i, int64_t image, const CellWeights& rows, const CellWeights& columns) {
                 const at::Tensor elements =
                     columns.elements_of(rows.elements_of(values.select(0, image), 1), 2);
                 result.select(0, i).copy_(
                     at::matmul(at::matmul(rows.matrix, elements), columns.matrix.t()));
               });
  return result;
}

at::Tensor aligned_gradients(const char* images_name, at::IntArrayRef images,
                             const at::Tensor& gradients, const char* boxes_name,
                             const at::Tensor& boxes, const AlignOptions& options) {
  const at::Tensor values = wide(gradients);
  const at::Tensor result = at::zeros(images, values.options());
  if (!has_values(gradients) || gradients.numel() == 0) return result;
  each_aligned(images_name, images, boxes_name, boxes, options, values.scalar_type(),
               [&](int64_t i, int64_t image, const CellWeights& rows, const CellWeights& columns) {
                 const at::Tensor lines = at::matmul(rows.matrix.t(), values.select(0, i));
                 columns.elements_of(rows.elements_of(result.select(0, image), 1), 2)
                     .add_(at::matmul(lines, columns.matrix));
               });
  return result;
}

}  // namespace aclnn_host
