// Functions of boxes in images: RoiAlign, position-sensitive pooling, deformable offsets.

#include "cann/rows/vision/regions.h"
#include "cann/named_ops/operator.h"
#include "cann/rows/vision/deformable_sampling.h"
#include "cann/rows/vision/region_alignment.h"

namespace aclnn_host::named_regions {

namespace {

// ---- RoiAlign

// roi_end_mode 0 takes boxes unchanged, 1 includes their last point, 2 shifts them by half an
// element.
AlignOptions align_options(const std::optional<double>& scale, const std::optional<int64_t>& height,
                           const std::optional<int64_t>& width,
                           const std::optional<int64_t>& samples, int64_t mode) {
  expect_range("roi_end_mode", mode, 0, 2);
  constexpr int64_t kMostCells = 1 << 12;
  expect_range("pooled_height", height.value_or(0), 1, kMostCells);
  expect_range("pooled_width", width.value_or(0), 1, kMostCells);
  return {*height,   *width,          scale.value_or(1), samples.value_or(2),
          mode == 2, "spatial_scale", "sample_num"};
}

at::Tensor with_ends(const at::Tensor& rois, int64_t mode) {
  expect_regions("rois", rois);
  const at::Tensor boxes = rois.to(at::kFloat);
  if (mode != 1) return boxes;
  const at::Tensor more = at::arange(5, boxes.options()) > 2;
  return boxes + more.to(at::kFloat);
}

// ---- position-sensitive pooling

// A cell of a box, with the elements of one channel of an image.
struct Cell {
  int64_t result;  // index in the result
  int64_t image, channel, top, bottom, left, right;
  int64_t area() const {
    return std::max<int64_t>(bottom - top, 0) * std::max<int64_t>(right - left, 0);
  }
};

struct Pooling {
  double scale;
  int64_t group, outputs;
  int64_t channels() const { return outputs * group * group; }
};

Pooling pooling_of(const std::optional<double>& scale, const std::optional<int64_t>& output_dim,
                   const std::optional<int64_t>& group_size, const at::Tensor& rois) {
  constexpr int64_t kMost = 1 << 10;
  constexpr double kMostScale = 1e6;  // its product with a FLOAT does not overflow
  const Pooling pooling{scale.value_or(1), group_size.value_or(1), output_dim.value_or(1)};
  expect_range("group_size", pooling.group, 1, kMost);
  expect_range("output_dim", pooling.outputs, 1, kMost);
  EXPECT(std::abs(pooling.scale) <= kMostScale, "spatial_scale is ", pooling.scale, ", expected ",
         -kMostScale, " to ", kMostScale);
  EXPECT(rois.dim() == 3 && rois.size(1) == 5, "rois has shape ", rois.sizes(),
         ", expected (B, 5, N)");
  return pooling;
}

// Calls visit(cell) for every cell of every box (., x1, y1, x2, y2) of its batch, in the order of
// the result (B * N, output_dim, group_size, group_size).
template <class Visit>
void each_cell(const at::Tensor& rois, const Pooling& pooling, int64_t height, int64_t width,
               Visit visit) {
  const at::Tensor boxes = rois.to(at::kDouble).transpose(1, 2).contiguous();
  const auto* box = boxes.const_data_ptr<double>();
  int64_t result = 0;
  for (int64_t i = 0; i < rois.size(0) * rois.size(2); ++i, box += 5) {
    EXPECT(std::all_of(box + 1, box + 5, [](double side) { return std::isfinite(side); }),
           "rois has a box with the sides ", box[1], ", ", box[2], ", ", box[3], " and ", box[4],
           ", expected finite numbers");
    const double x = std::round(box[1]) * pooling.scale, y = std::round(box[2]) * pooling.scale;
    const double cell_width = std::max((std::round(box[3]) + 1) * pooling.scale - x, 0.1) /
                              static_cast<double>(pooling.group);
    const double cell_height = std::max((std::round(box[4]) + 1) * pooling.scale - y, 0.1) /
                               static_cast<double>(pooling.group);
    const auto bound = [](double coordinate, int64_t size) {
      return static_cast<int64_t>(std::clamp(coordinate, 0.0, static_cast<double>(size)));
    };
    for (int64_t out = 0; out < pooling.outputs; ++out) {
      for (int64_t row = 0; row < pooling.group; ++row) {
        for (int64_t column = 0; column < pooling.group; ++column) {
          const auto r = static_cast<double>(row), c = static_cast<double>(column);
          visit(Cell{result++, i / rois.size(2),
                     (out * pooling.group + row) * pooling.group + column,
                     bound(std::floor(r * cell_height + y), height),
                     bound(std::ceil((r + 1) * cell_height + y), height),
                     bound(std::floor(c * cell_width + x), width),
                     bound(std::ceil((c + 1) * cell_width + x), width)});
        }
      }
    }
  }
}

// ---- deformable offsets

void expect_numbers(const char* name, const std::optional<Integers>& list, size_t count) {
  EXPECT(list && list->size() == count, name, " has ", list ? list->size() : 0,
         " numbers, expected ", count);
}

// The geometry of images (N, H, W, C), with a weight of one number for each kernel position.
Geometry geometry_of(const at::Tensor& images, const std::optional<Integers>& strides,
                     const std::optional<Integers>& pads, const std::optional<Integers>& ksize,
                     const std::optional<Integers>& dilations,
                     const std::optional<int64_t>& deformable_groups, bool modulated) {
  expect_numbers("strides", strides, 4);
  expect_numbers("pads", pads, 4);
  expect_numbers("ksize", ksize, 2);
  if (dilations) expect_numbers("dilations", dilations, 4);
  expect_dims("X", images, 4);
  constexpr int64_t kMostSize = 2048;
  check_values("ksize", *ksize, 1, kMostSize);
  const auto channels_second = [](const Integers& list) {
    return Integers{list[0], list[3], list[1], list[2]};
  };
  const at::Tensor x = images.permute({0, 3, 1, 2});
  const at::Tensor weight =
      at::zeros({x.size(1), 1, 1, 1}, x.options()).expand({x.size(1), 1, (*ksize)[0], (*ksize)[1]});
  return Geometry("X", x, weight, *ksize, channels_second(*strides), *pads,
                  channels_second(dilations.value_or(Integers{1, 1, 1, 1})), x.size(1),
                  deformable_groups.value_or(1), modulated);
}

at::Tensor planes_of(const at::Tensor& images) {
  return in_floats(images.permute({0, 3, 1, 2}));
}

}  // namespace

NAMED_OPERATOR(ROIAlign, (Floating<In>, features), (Floating<In>, rois),
               (Unused<Optional<In>>, rois_n, "reserved"), (Out, y),
               (Attribute<double>, spatial_scale), (Attribute<int64_t>, pooled_height),
               (Attribute<int64_t>, pooled_width), (Attribute<int64_t>, sample_num),
               (Attribute<int64_t>, roi_end_mode), (Only, pool_mode, "avg")) {
  const int64_t mode = roi_end_mode.value_or(1);
  const AlignOptions options =
      align_options(spatial_scale, pooled_height, pooled_width, sample_num, mode);
  expect_dims("features", features, 4);
  y = aligned_averages("features", features, "rois", with_ends(rois, mode), options);
}
NAMED_OPERATOR(ROIAlignGrad, (Floating<In>, ydiff), (Floating<In>, rois),
               (Unused<Optional<In>>, rois_n, "each box has the number of its image"), (Out, xdiff),
               (Attribute<Integers>, xdiff_shape), (Attribute<int64_t>, pooled_width),
               (Attribute<int64_t>, pooled_height), (Attribute<double>, spatial_scale),
               (Attribute<int64_t>, sample_num), (Attribute<int64_t>, roi_end_mode)) {
  expect_repeats("xdiff_shape", xdiff_shape, "xdiff", xdiff);
  const int64_t mode = roi_end_mode.value_or(1);
  const AlignOptions options =
      align_options(spatial_scale, pooled_height, pooled_width, sample_num, mode);
  expect_dims("xdiff", xdiff, 4);
  const at::Tensor boxes = with_ends(rois, mode);
  expect_shape("ydiff", ydiff, {boxes.size(0), xdiff->size(1), options.height, options.width});
  xdiff = aligned_gradients("xdiff", xdiff->sizes(), ydiff, "rois", boxes, options);
}
NAMED_OPERATOR(PSROIPoolingV2, (Floating<In>, x), (Floating<In>, rois), (Out, y),
               (Attribute<double>, spatial_scale), (Attribute<int64_t>, output_dim),
               (Attribute<int64_t>, group_size)) {
  const Pooling pooling = pooling_of(spatial_scale, output_dim, group_size, rois);
  expect_dims("x", x, 4);
  expect_shape("x", x, {rois.size(0), pooling.channels(), x.size(2), x.size(3)});
  const at::Tensor images = x.to(at::kFloat);
  const at::Tensor result =
      at::zeros({rois.size(0) * rois.size(2), pooling.outputs, pooling.group, pooling.group},
                images.options());
  if (has_values(x)) {
    each_cell(rois, pooling, x.size(2), x.size(3), [&](const Cell& cell) {
      if (cell.area() <= 0) return;
      const at::Tensor part = images[cell.image][cell.channel]
                                  .slice(0, cell.top, cell.bottom)
                                  .slice(1, cell.left, cell.right);
      result.mutable_data_ptr<float>()[cell.result] = part.mean().item<float>();
    });
  }
  y = result;
}
NAMED_OPERATOR(PSROIPoolingGradV2D, (Floating<In>, x), (Floating<In>, rois), (Out, y),
               (Attribute<double>, spatial_scale), (Attribute<int64_t>, output_dim),
               (Attribute<int64_t>, group_size), (Attribute<Integers>, input_size)) {
  expect_repeats("input_size", input_size, "y", y);
  const Pooling pooling = pooling_of(spatial_scale, output_dim, group_size, rois);
  expect_shape("x", x,
               {rois.size(0) * rois.size(2), pooling.outputs, pooling.group, pooling.group});
  expect_dims("y", y, 4);
  expect_shape("y", y, {rois.size(0), pooling.channels(), y->size(2), y->size(3)});
  const at::Tensor gradients = x.to(at::kFloat).contiguous();
  const at::Tensor result = at::zeros(y->sizes(), gradients.options());
  if (has_values(x)) {
    each_cell(rois, pooling, result.size(2), result.size(3), [&](const Cell& cell) {
      if (cell.area() <= 0) return;
      const float gradient = gradients.const_data_ptr<float>()[cell.result];
      result[cell.image][cell.channel]
          .slice(0, cell.top, cell.bottom)
          .slice(1, cell.left, cell.right)
          .add_(gradient / static_cast<float>(cell.area()));
    });
  }
  y = result;
}
NAMED_OPERATOR(DeformableOffsets, (Floating<In>, X), (Floating<In>, offsets), (Out, y),
               (Attribute<Integers>, strides), (Attribute<Integers>, pads),
               (Attribute<Integers>, ksize), (Attribute<Integers>, dilations),
               (Stated, data_format, "NHWC"), (Attribute<int64_t>, deformable_groups),
               (Attribute<bool>, modulated)) {
  const Geometry g =
      geometry_of(X, strides, pads, ksize, dilations, deformable_groups, modulated.value_or(true));
  expect_dims("offsets", offsets, 4);
  const at::Tensor offset_planes = planes_of(offsets);
  expect_shape("offsets, channels second,", offset_planes, g.offsets());
  y = as_points(g, sampled(g, planes_of(X), offset_planes)).permute({0, 2, 3, 1});
}
NAMED_OPERATOR(DeformableOffsetsGrad, (Floating<In>, grad), (Floating<In>, X),
               (Floating<In>, offsets), (Out, grad_X), (Out, grad_offsets),
               (Attribute<Integers>, strides), (Attribute<Integers>, pads),
               (Attribute<Integers>, ksize), (Attribute<Integers>, dilations),
               (Stated, data_format, "NHWC"), (Attribute<int64_t>, deformable_groups),
               (Attribute<bool>, modulated)) {
  const Geometry g =
      geometry_of(X, strides, pads, ksize, dilations, deformable_groups, modulated.value_or(true));
  expect_dims("grad", grad, 4);
  expect_dims("offsets", offsets, 4);
  const at::Tensor images = planes_of(X), offset_planes = planes_of(offsets),
                   points = planes_of(grad);
  expect_shape("offsets, channels second,", offset_planes, g.offsets());
  expect_shape("grad, channels second,", points, g.samples());
  const at::Tensor of_images = at::zeros(images.sizes(), images.options());
  const at::Tensor of_offsets = at::zeros(offset_planes.sizes(), images.options());
  if (has_values(images)) {
    sample_gradients(g, images, offset_planes, as_columns(g, points).contiguous(), of_images,
                     of_offsets);
  }
  grad_X = of_images.permute({0, 2, 3, 1});
  grad_offsets = of_offsets.permute({0, 2, 3, 1});
}

}  // namespace aclnn_host::named_regions
