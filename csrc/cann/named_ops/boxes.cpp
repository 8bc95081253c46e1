// Boxes for training: encoding by anchors and decoding, assignment, and overlap.

#include <numbers>

#include "cann/named_ops/operator.h"
#include "cann/rows/planes.h"
#include "cann/rows/vision/regions.h"

namespace aclnn_host::named_boxes {

namespace {

// The numbers of an attribute, one for each side of a box.
Numerals numbers_of(const char* name, const std::optional<Numerals>& attribute, size_t count,
                    double otherwise) {
  const Numerals numbers = attribute.value_or(Numerals(count, otherwise));
  EXPECT(numbers.size() == count, name, " has ", numbers.size(), " numbers, expected ", count);
  return numbers;
}
at::Tensor sides(const char* name, const std::optional<Numerals>& numbers, double otherwise,
                 const at::Tensor& like) {
  return at::tensor(numbers_of(name, numbers, 4, otherwise), like.options().dtype(at::kDouble))
      .to(at::kFloat);
}

// Rounds to FLOAT16, in which the vendor computes for every type.
at::Tensor in_half(const at::Tensor& x) {
  return x.to(at::kHalf).to(at::kFloat);
}

// The centre and the size of boxes (x1, y1, x2, y2), which include the last point.
struct Centred {
  at::Tensor x, y, width, height;

  explicit Centred(const at::Tensor& boxes, double last = 1) {
    const auto side = [&](int64_t i) { return boxes.select(1, i).to(at::kFloat); };
    x = (side(0) + side(2)) * 0.5, y = (side(1) + side(3)) * 0.5;
    width = side(2) - side(0) + last, height = side(3) - side(1) + last;
  }
};

double radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

// Boxes (B, 5, N) with corners and an angle in degrees.
struct Rotated {
  at::Tensor x, y, width, height, tangent;

  Rotated(const char* name, const at::Tensor& boxes) {
    EXPECT(boxes.dim() == 3 && boxes.size(1) == 5, name, " has shape ", boxes.sizes(),
           ", expected (B, 5, N)");
    const auto row = [&](int64_t i) { return boxes.select(1, i).to(at::kFloat); };
    x = (row(0) + row(2)) * 0.5, y = (row(1) + row(3)) * 0.5;
    width = row(2) - row(0), height = row(3) - row(1);
    tangent = at::tan(row(4) * radians(1));
  }
};

}  // namespace

// (x, y, width, height) relative to the anchor: distances in units of its size, logarithms of
// ratios.
NAMED_OPERATOR(BoundingBoxEncode, (Floating<In>, anchor_box), (Floating<In>, ground_truth_box),
               (Out, delats), (Attribute<Numerals>, means), (Attribute<Numerals>, stds)) {
  expect_regions("anchor_box", anchor_box, 4);
  expect_like("ground_truth_box", ground_truth_box, anchor_box);
  const Centred anchor(anchor_box), truth(ground_truth_box);
  const at::Tensor deltas =
      at::stack({(truth.x - anchor.x) / anchor.width, (truth.y - anchor.y) / anchor.height,
                 at::log(truth.width / anchor.width), at::log(truth.height / anchor.height)},
                1);
  delats = in_half((in_half(deltas) - sides("means", means, 0, deltas)) /
                   sides("stds", stds, 1, deltas));
}
NAMED_OPERATOR(BoundingBoxDecode, (Floating<In>, rois), (Floating<In>, deltas), (Out, bboxes),
               (Attribute<Numerals>, means), (Attribute<Numerals>, stds),
               (Attribute<Integers>, max_shape), (Attribute<double>, wh_ratio_clip)) {
  expect_regions("rois", rois, 4);
  expect_like("deltas", deltas, rois);
  EXPECT(!max_shape || max_shape->empty() || max_shape->size() == 2, "max_shape has ",
         max_shape->size(), " numbers, expected a height and a width, or none");
  const Centred roi(rois);
  const at::Tensor scaled =
      deltas.to(at::kFloat) * sides("stds", stds, 1, deltas) + sides("means", means, 0, deltas);
  const double most = std::abs(std::log(wh_ratio_clip.value_or(0.016)));
  const auto grown = [&](const at::Tensor& size, int64_t i) {
    return size * at::exp(scaled.select(1, i).clamp(-most, most));
  };
  const at::Tensor x = roi.x + roi.width * scaled.select(1, 0);
  const at::Tensor y = roi.y + roi.height * scaled.select(1, 1);
  const at::Tensor half_width = grown(roi.width, 2) * 0.5 - 0.5;
  const at::Tensor half_height = grown(roi.height, 3) * 0.5 - 0.5;
  const bool is_clipped = max_shape && max_shape->size() == 2;
  const auto clipped = [&](const at::Tensor& position, size_t i) {
    return is_clipped ? position.clamp(0, static_cast<double>((*max_shape)[i]) - 1) : position;
  };
  bboxes = at::stack({clipped(x - half_width, 1), clipped(y - half_height, 0),
                      clipped(x + half_width, 1), clipped(y + half_height, 0)},
                     1);
}
// eps is added to every side of the boxes, but not to those of the intersection.
NAMED_OPERATOR(Iou, (Floating<In>, bboxes), (Floating<In>, gtboxes), (Out, overlap),
               (Attribute<std::string>, mode), (Attribute<double>, eps),
               (Attribute<bool>, aligned)) {
  expect_regions("bboxes", bboxes, 4);
  expect_regions("gtboxes", gtboxes, 4);
  EXPECT(!aligned.value_or(false), "aligned is true, expected false");
  const std::string name = mode.value_or("iou");
  expect_text("mode", name, {"iou", "iof"});
  const at::Tensor a = bboxes.to(at::kFloat).unsqueeze(0);
  const at::Tensor b = gtboxes.to(at::kFloat).unsqueeze(1);
  const double longer = eps.value_or(1);
  const auto extent = [](const at::Tensor& low, const at::Tensor& high, double more) {
    const at::Tensor sizes = high.slice(-1, 2, 4) - low.slice(-1, 0, 2) + more;
    return sizes.clamp_min(0).prod(-1);
  };
  const at::Tensor common = extent(at::maximum(a, b), at::minimum(a, b), 0);
  const at::Tensor of_b = extent(b, b, longer);
  overlap = common / (name == "iof" ? of_b : extent(a, a, longer) + of_b - common);
}
NAMED_OPERATOR(RotatedBoxEncode, (Floating<In>, anchor_box), (Floating<In>, gt_box), (Out, y),
               (Attribute<Numerals>, weight)) {
  const Numerals w = numbers_of("weight", weight, 5, 1);
  expect_like("gt_box", gt_box, anchor_box);
  const Rotated anchor("anchor_box", anchor_box), truth("gt_box", gt_box);
  y = at::stack(
      {(truth.x - anchor.x) / anchor.width * w[0], (truth.y - anchor.y) / anchor.height * w[1],
       at::log(truth.width / anchor.width) * w[2], at::log(truth.height / anchor.height) * w[3],
       (truth.tangent - anchor.tangent) * w[4]},
      1);
}
NAMED_OPERATOR(RotatedBoxDecode, (Floating<In>, anchor_box), (Floating<In>, deltas), (Out, y),
               (Attribute<Numerals>, weight)) {
  const Numerals w = numbers_of("weight", weight, 5, 1);
  expect_like("deltas", deltas, anchor_box);
  const Rotated anchor("anchor_box", anchor_box);
  const auto delta = [&](int64_t i) {
    return deltas.select(1, i).to(at::kFloat) / w[static_cast<size_t>(i)];
  };
  const at::Tensor x = delta(0) * anchor.width + anchor.x;
  const at::Tensor row = delta(1) * anchor.height + anchor.y;
  const at::Tensor half_width = at::exp(delta(2)) * anchor.width * 0.5;
  const at::Tensor half_height = at::exp(delta(3)) * anchor.height * 0.5;
  const at::Tensor angle = at::atan(delta(4) + anchor.tangent) / radians(1);
  y = at::stack({x - half_width, row - half_height, x + half_width, row + half_height, angle}, 1);
}
// The position relative to the corner of a grid cell, in cells, and the logarithms of the sizes'
// ratios.
NAMED_OPERATOR(YoloBoxesEncode, (Floating<In>, anchor_boxes), (Floating<In>, gt_bboxes),
               (In, stride), (Out, encoded_bboxes),
               (Unused<Attribute<std::string>>, performance_mode,
                "chooses speed or precision; the host is precise")) {
  constexpr double kLeast = 1e-6;
  expect_regions("anchor_boxes", anchor_boxes, 4);
  expect_like("gt_bboxes", gt_bboxes, anchor_boxes);
  expect_shape("stride", stride, {anchor_boxes.size(0)});
  const Centred anchor(anchor_boxes, 0), truth(gt_bboxes, 0);
  const at::Tensor step = stride.to(at::kFloat);
  const auto position = [&](const at::Tensor& distance) {
    return (distance / step + 0.5).clamp(kLeast, 1 - kLeast);
  };
  encoded_bboxes = at::stack({position(truth.x - anchor.x), position(truth.y - anchor.y),
                              at::log((truth.width / anchor.width).clamp_min(kLeast)),
                              at::log((truth.height / anchor.height).clamp_min(kLeast))},
                             1);
}
// Flags the grid cells that contain the centre of a box, once for each base anchor.
NAMED_OPERATOR(AnchorResponseFlags, (Floating<In>, gt_bboxes), (Out, flags),
               (Attribute<Integers>, featmap_size), (Attribute<Integers>, strides),
               (Attribute<int64_t>, num_base_anchors)) {
  expect_regions("gt_bboxes", gt_bboxes, 4);
  check_pair("featmap_size", featmap_size.value_or(Integers()), 0);
  check_pair("strides", strides.value_or(Integers()), 1);
  const int64_t height = (*featmap_size)[0], width = (*featmap_size)[1];
  const int64_t anchors = num_base_anchors.value_or(1);
  expect_at_least("num_base_anchors", anchors, 0);
  const double count =
      static_cast<double>(height) * static_cast<double>(width) * static_cast<double>(anchors);
  EXPECT(count == static_cast<double>(flags->numel()), "flags has ", flags->numel(),
         " elements, expected ", height, " * ", width, " * ", anchors);
  if (count == 0) {
    flags = at::zeros({0}, gt_bboxes.options().dtype(at::kByte));
    return;
  }
  const Centred truth(gt_bboxes, 0);
  const at::Tensor column = at::floor(truth.x / static_cast<double>((*strides)[0])).to(at::kLong);
  const at::Tensor row = at::floor(truth.y / static_cast<double>((*strides)[1])).to(at::kLong);
  const auto is_here = [](const at::Tensor& positions, int64_t size) {
    return positions.unsqueeze(1) == at::arange(size, positions.options());  // (N, size)
  };
  const at::Tensor marks =
      (is_here(row, height).unsqueeze(2) & is_here(column, width).unsqueeze(1)).any(0);
  flags = marks.unsqueeze(2).expand({height, width, anchors}).reshape({-1}).to(at::kByte);
}
// Assigns to every responsible box the number, from 1, of the truth that it overlaps most, if the
// overlap exceeds a threshold. Then assigns every truth to the box, or all boxes, that it overlaps
// most.
NAMED_OPERATOR(GridAssignPositive, (Floating<In>, assigned_gt_inds), (Floating<In>, overlaps),
               (In, box_responsible_flags), (Floating<In>, max_overlaps),
               (IndexIn, argmax_overlaps), (Floating<In>, gt_max_overlaps),
               (IndexIn, gt_argmax_overlaps), (In, num_gts), (Out, assigned_gt_inds_pos),
               (Attribute<double>, pos_iou_thr), (Attribute<double>, min_pos_iou),
               (Attribute<bool>, gt_max_assign_all)) {
  expect_dims("overlaps", overlaps, 2);
  const int64_t truths = overlaps.size(0), boxes = overlaps.size(1);
  expect_shape("assigned_gt_inds", assigned_gt_inds, {boxes});
  expect_shape("max_overlaps", max_overlaps, {boxes});
  expect_shape("box_responsible_flags", box_responsible_flags, {boxes});
  expect_shape("argmax_overlaps", argmax_overlaps, {boxes});
  expect_shape("gt_max_overlaps", gt_max_overlaps, {truths});
  expect_shape("gt_argmax_overlaps", gt_argmax_overlaps, {truths});
  const at::Tensor is_responsible = box_responsible_flags.ne(0);
  const at::Tensor first = is_responsible & (max_overlaps > pos_iou_thr.value_or(0.5));
  at::Tensor result =
      at::where(first, (argmax_overlaps + 1).to(assigned_gt_inds.scalar_type()), assigned_gt_inds);
  const at::Tensor positions = at::arange(boxes, argmax_overlaps.options());
  for (int64_t i = 0; i < truths; ++i) {
    const at::Tensor is_best = gt_max_assign_all.value_or(true)
                                   ? overlaps[i] == gt_max_overlaps[i]
                                   : positions == gt_argmax_overlaps[i];
    const at::Tensor is_claimed = is_responsible & is_best &
                                  (gt_max_overlaps[i] > min_pos_iou.value_or(0)) &
                                  (num_gts.reshape({}) > i);
    result = at::where(is_claimed, c10::Scalar(static_cast<double>(i + 1)), result)
                 .to(assigned_gt_inds.scalar_type());
  }
  assigned_gt_inds_pos = result;
}

}  // namespace aclnn_host::named_boxes
