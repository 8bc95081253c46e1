// Boxes in images: pooling, overlap, and non-maximum suppression.

#include <numbers>

#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/regions.h"
#include "cann/rows/vision/suppression.h"

namespace aclnn_host::vision_regions_rows {

namespace {

// The product of both extents of boxes, which are [..., 4], or of their intersections.
at::Tensor area(const at::Tensor& low, const at::Tensor& high, double eps) {
  const at::Tensor extents = high - low + eps;
  return extents.select(-1, 0) * extents.select(-1, 1);
}

constexpr int64_t kMostRegions = 1024;  // the limit of functions with argmax
constexpr int64_t kMostSelected = 700;  // for each class

// ---- max pooling

struct PooledSizes {
  int64_t boxes, channels, height, width;
};

struct Span {
  int64_t begin, end;
};
// The elements along one dimension in a cell of a box.
Span cell_span(double low, double high, int64_t cell, int64_t cells, int64_t size) {
  const double step = (high - low) / static_cast<double>(cells);
  const auto clipped = [size](double coordinate) {
    return static_cast<int64_t>(std::clamp(coordinate, 0.0, static_cast<double>(size)));
  };
  return {clipped(std::floor(static_cast<double>(cell) * step + low)),
          clipped(std::ceil(static_cast<double>(cell + 1) * step + low))};
}

// Pools one box (image, x1, y1, x2, y2) of [height, width] images.
void pool_box(const float* box, const at::Tensor& x, double scale_h, double scale_w,
              const PooledSizes& s, float* values, int32_t* indices) {
  const int64_t height = x.size(2), width = x.size(3);
  const double x1 = box[1] * scale_w, y1 = box[2] * scale_h;
  const double x2 = (box[3] + 1.0) * scale_w, y2 = (box[4] + 1.0) * scale_h;
  EXPECT(std::isfinite(x1) && std::isfinite(y1) && std::isfinite(x2) && std::isfinite(y2),
         "rois has a box that is scaled to ", x1, ", ", y1, ", ", x2, " and ", y2,
         ", expected finite numbers");
  const float* const images =
      x.const_data_ptr<float>() + static_cast<int64_t>(box[0]) * s.channels * height * width;
  for (int64_t i = 0; i < s.channels * s.height * s.width; ++i) {
    values[i] = 0;
    indices[i] = -1;
    if (!(x2 > x1 && y2 > y1)) continue;
    const float* const image = images + i / (s.height * s.width) * height * width;
    const Span rows = cell_span(y1, y2, i / s.width % s.height, s.height, height);
    const Span columns = cell_span(x1, x2, i % s.width, s.width, width);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const int64_t pixel = row * width + column;
        if (indices[i] >= 0 && !(image[pixel] > values[i])) continue;
        values[i] = image[pixel];
        indices[i] = static_cast<int32_t>(pixel);
      }
    }
  }
}

// The image index of each box, which is its first number.
at::Tensor images_of(const at::Tensor& rois, int64_t images) {
  const at::Tensor first = wide(rois).select(1, 0);
  if (first.numel() == 0) return first.to(at::kLong);
  const auto [low, high] = at::aminmax(first);  // NaN if one is
  const double least = low.item().toDouble(), most = high.item().toDouble();
  EXPECT(least >= 0 && most < static_cast<double>(images), "rois has images from ", least, " to ",
         most, ", expected 0 to ", images - 1);
  return first.to(at::kLong);
}

// ---- boxes without images

// [4, n] boxes as x1, y1, x2, y2.
at::Tensor corners_of(const at::Tensor& boxes, bool has_centers) {
  const at::Tensor low = boxes.slice(0, 0, 2), high = boxes.slice(0, 2, 4);
  if (!has_centers) return boxes;
  return at::cat({low - high / 2, low + high / 2});
}
at::Tensor extents_of(const at::Tensor& corners) {
  return corners.slice(0, 2, 4) - corners.slice(0, 0, 2);
}

// A box as y1, x1, y2, x2.
struct Box {
  explicit Box(const float* box, bool has_center) {
    for (int i = 0; i < 2; ++i) {
      low[i] = has_center ? box[i] - box[i + 2] / 2 : box[i];
      high[i] = has_center ? box[i] + box[i + 2] / 2 : box[i + 2];
    }
  }
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
  float common(const Box& other) const {
    float product = 1;
    for (int i = 0; i < 2; ++i) {
      product *= std::max(std::min(high[i], other.high[i]) - std::max(low[i], other.low[i]), 0.0f);
    }
    return product;
  }
  float low[2], high[2];
};

// True if the intersection over the union is more than a limit.
bool exceeds(const Box& a, const Box& b, float iou) {
  return a.common(b) > (a.area() + b.area()) * (iou / (1 + iou));
}

float threshold(const char* name, const std::vector<double>& values) {
  const double value = values.empty() ? 0 : values[0];
  EXPECT(value >= 0 && value <= 1, name, " is ", value, ", expected 0 to 1");
  return static_cast<float>(value);
}

}  // namespace

// Intersection over union, or over the area of gtBoxes. eps is added to every extent, including
// that of the intersection.
ACLNN(Iou, (Floating<In>, bBoxes), (SameDtype<Floating<In>>, gtBoxes, "bBoxes"),
      (const char*, mode), (float, eps), (bool, aligned), (SameDtype<Out>, overlap, "bBoxes")) {
  expect_regions("bBoxes", bBoxes, 4);
  expect_regions("gtBoxes", gtBoxes, 4);
  expect_dims("overlap", overlap, 2);
  expect_text("mode", mode, {"iou", "iof"});
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

ACLNN(RoiPoolingWithArgMax, (Image<Floating<In>>, x), (SameDtype<Floating<In>>, rois, "x"),
      (int64_t, pooled_h), (int64_t, pooled_w), (float, spatial_scale_h), (float, spatial_scale_w),
      (SameDtype<Image<Out>>, y, "x"), (Image<Out>, argmax)) {
  expect_dims("x", x, 4);
  expect_regions("rois", rois);
  expect_dtype("argmax", argmax, at::kInt);
  expect_not_double("x", x);
  EXPECT(pooled_h > 0 && pooled_w > 0, "pooled_h is ", pooled_h.value(), " and pooled_w is ",
         pooled_w.value(), ", expected more than 0");
  EXPECT(spatial_scale_h > 0.0 && spatial_scale_w > 0.0, "spatial_scale_h is ",
         spatial_scale_h.value(), " and spatial_scale_w is ", spatial_scale_w.value(),
         ", expected more than 0");
  EXPECT(x.size(0) <= kMostRegions && rois.size(0) <= kMostRegions, "x has ", x.size(0),
         " images and rois has ", rois.size(0), " boxes, expected at most ", kMostRegions);
  EXPECT(x.size(2) * x.size(3) <= std::numeric_limits<int32_t>::max(), "x has shape ", x.sizes(),
         ", expected images of less than 2^31 elements");
  const PooledSizes s{rois.size(0), x.size(1), pooled_h, pooled_w};
  const std::vector<int64_t> shape{s.boxes, s.channels, s.height, s.width};
  expect_shape("y", y, shape);
  expect_shape("argmax", argmax, shape);
  const at::Tensor values = at::zeros(shape, x.options().dtype(at::kFloat));
  const at::Tensor indices = at::full(shape, -1, x.options().dtype(at::kInt));
  if (has_values(x) && values.numel() > 0) {
    images_of(rois, x.size(0));
    const at::Tensor images = wide(x).contiguous(), boxes = wide(rois).contiguous();
    const int64_t each = values.numel() / s.boxes;
    for (int64_t i = 0; i < s.boxes; ++i) {
      pool_box(boxes.const_data_ptr<float>() + 5 * i, images, spatial_scale_h, spatial_scale_w, s,
               values.mutable_data_ptr<float>() + i * each,
               indices.mutable_data_ptr<int32_t>() + i * each);
    }
  }
  y = values;
  argmax = indices;
}
// gradInputRef is overwritten without being read. An argmax of -1 has no gradient.
ACLNN(RoiPoolingGradWithArgMax, (Image<Floating<In>>, gradOutput),
      (SameDtype<Image<Floating<InOut>>>, gradInputRef, "gradOutput"), (Floating<In>, rois),
      (SameShape<Image<In>>, argmax, "gradOutput"), (int64_t, pooledH), (int64_t, pooledW),
      (Unused<double>, spatialScale, "argmax has the positions in the image")) {
  expect_dims("gradOutput", gradOutput, 4);
  expect_dims("gradInputRef", gradInputRef, 4);
  expect_regions("rois", rois);
  expect_dtype("argmax", argmax, at::kInt);
  EXPECT(pooledH > 0 && pooledW > 0, "pooledH is ", pooledH.value(), " and pooledW is ",
         pooledW.value(), ", expected more than 0");
  const at::IntArrayRef images = gradInputRef->sizes();
  expect_shape("gradOutput", gradOutput, {rois.size(0), images[1], pooledH, pooledW});
  EXPECT(rois.size(0) <= kMostRegions, "rois has ", rois.size(0), " boxes, expected at most ",
         kMostRegions);
  const int64_t area = images[2] * images[3];
  const at::Tensor gradients = wide(gradOutput).flatten();
  const at::Tensor result = at::zeros({images[0] * images[1], area}, gradients.options());
  if (has_values(gradOutput) && gradients.numel() > 0) {
    const at::Tensor indices = argmax.to(at::kLong).flatten(2);
    check_bounds("argmax", indices, area, -1);
    const at::Tensor plane = images_of(rois, images[0]).reshape({-1, 1, 1}) * images[1] +
                             at::arange(c10::Scalar(images[1])).reshape({-1, 1});
    const at::Tensor is_used = (indices >= 0).flatten();
    const at::Tensor elements = (plane * area + indices.clamp_min(0)).flatten();
    if (area > 0) result.view(-1).index_add_(0, elements, gradients * is_used);
  }
  gradInputRef = result.view(images);
}

// Behaviour of NonMaxSuppression: Every class of every batch has maxOutputBoxesPerClass lines
// (batch, class, box), the best box first. Lines that are not used are -1.
ACLNN(NonMaxSuppression, (Floating<In>, boxes), (SameDtype<Floating<In>>, scores, "boxes"),
      (Ints, maxOutputBoxesPerClass), (Floats, iouThreshold), (Floats, scoreThreshold),
      (int32_t, centerPointBox), (Out, selectedIndices)) {
  expect_dims("boxes", boxes, 3);
  expect_dims("scores", scores, 3);
  const int64_t batches = boxes.size(0), classes = scores.size(1), count = boxes.size(1);
  expect_shape("scores", scores, {batches, classes, count});
  expect_shape("boxes", boxes, {batches, count, 4});
  expect_dtype("boxes", boxes, {at::kFloat, at::kHalf});
  expect_dtype("selectedIndices", selectedIndices, at::kInt);
  const int64_t most = maxOutputBoxesPerClass.empty() ? 0 : maxOutputBoxesPerClass[0];
  expect_range("maxOutputBoxesPerClass", most, 0, kMostSelected);
  expect_one_of("centerPointBox", centerPointBox, {0, 1}, " (corners, or centre and size)");
  const float iou = threshold("iouThreshold", iouThreshold);
  const float least = threshold("scoreThreshold", scoreThreshold);
  const std::vector<int64_t> shape{batches * classes * most, 3};
  expect_shape("selectedIndices", selectedIndices, shape);
  const at::Tensor result = at::full(shape, -1, boxes.options().dtype(at::kInt));
  if (has_values(boxes)) {
    const at::Tensor corners = boxes.to(at::kFloat).contiguous();
    const at::Tensor values = scores.to(at::kFloat).contiguous();
    for (int64_t i = 0; i < batches * classes; ++i) {
      std::vector<Box> all;
      all.reserve(static_cast<size_t>(count));
      for (int64_t b = 0; b < count; ++b) {
        all.emplace_back(corners.const_data_ptr<float>() + (i / classes * count + b) * 4,
                         centerPointBox == 1);
      }
      int32_t* line = result.mutable_data_ptr<int32_t>() + i * most * 3;
      const auto overlaps = [&](int64_t a, int64_t b) {
        return exceeds(all[static_cast<size_t>(a)], all[static_cast<size_t>(b)], iou);
      };
      for (const int64_t box :
           remaining(values.const_data_ptr<float>() + i * count, count, most, least, overlaps)) {
        *line++ = static_cast<int32_t>(i / classes);
        *line++ = static_cast<int32_t>(i % classes);
        *line++ = static_cast<int32_t>(box);
      }
    }
  }
  selectedIndices = result;
}

// If the boxes have the same proportions, the last term is 0, also where it would be 0 / 0. The
// mode iof divides the intersection by the area of gtBoxes, as in aclnnIou.
ACLNN(CIoU, (Floating<In>, bBoxes), (Like<Floating<In>>, gtBoxes, "bBoxes"), (bool, trans),
      (bool, isCross), (const char*, mode), (SameDtype<Out>, overlap, "bBoxes"),
      (SameDtype<Out>, atanSub, "bBoxes")) {
  EXPECT(!isCross, "isCross is true, expected false");
  expect_text("mode", mode, {"iou", "iof"});
  expect_dims("bBoxes", bBoxes, 2);
  const int64_t count = bBoxes.size(1);
  expect_shape("bBoxes", bBoxes, {4, count});
  EXPECT(count % 1024 == 0, "bBoxes has ", count, " boxes, expected a multiple of 1024");
  const at::Tensor boxes = corners_of(bBoxes.to(at::kDouble), trans);
  const at::Tensor truths = corners_of(gtBoxes.to(at::kDouble), trans);
  const auto low = [](const at::Tensor& x) { return x.slice(0, 0, 2); };
  const auto high = [](const at::Tensor& x) { return x.slice(0, 2, 4); };
  const auto area = [](const at::Tensor& extents) { return extents[0] * extents[1]; };
  const at::Tensor extents = extents_of(boxes), truth_extents = extents_of(truths);
  const at::Tensor common =
      area(at::relu(at::minimum(high(boxes), high(truths)) - at::maximum(low(boxes), low(truths))));
  const at::Tensor whole =
      mode == "iof" ? area(truth_extents) : area(extents) + area(truth_extents) - common;
  const at::Tensor iou = common / whole;
  const at::Tensor span =
      at::maximum(high(boxes), high(truths)) - at::minimum(low(boxes), low(truths));
  const at::Tensor apart = (low(boxes) + high(boxes) - low(truths) - high(truths)) / 2;
  const at::Tensor angle =
      at::atan(truth_extents[0] / truth_extents[1]) - at::atan(extents[0] / extents[1]);
  const at::Tensor v = angle.square() * (4 / (std::numbers::pi * std::numbers::pi));
  const at::Tensor last = at::where(v.eq(0), v, v * v / (1 - iou + v));
  overlap = (iou - apart.square().sum(0) / span.square().sum(0) - last).unsqueeze(0);
  atanSub = angle.unsqueeze(0);
}

}  // namespace aclnn_host::vision_regions_rows
