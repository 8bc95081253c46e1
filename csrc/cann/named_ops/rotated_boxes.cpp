// The overlap of rotated boxes (x, y, width, height, angle in degrees), and non-maximum
// suppression.

#include <numbers>

#include "cann/named_ops/operator.h"
#include "cann/rows/vision/regions.h"
#include "cann/rows/vision/suppression.h"

namespace aclnn_host::named_rotated_boxes {

namespace {

struct Point {
  double x, y;
};
using Polygon = std::vector<Point>;

// A box with a centre and size or, with `has_corners`, with two corners.
struct Rotated {
  double x, y, width, height, angle;

  Rotated(const double* box, bool has_corners) : angle(box[4] * std::numbers::pi / 180) {
    if (has_corners) {
      x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
      width = box[2] - box[0], height = box[3] - box[1];
      angle = -angle;  // the angle of such boxes has the opposite direction
    } else {
      x = box[0], y = box[1], width = box[2], height = box[3];
    }
  }
  double area() const { return width * height; }
  Polygon corners() const {
    const double cosine = std::cos(angle), sine = std::sin(angle);
    Polygon points;
    for (const auto& [right, down] :
         {std::pair(-0.5, -0.5), {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}}) {
      const double dx = right * width, dy = down * height;
      points.push_back({x + dx * cosine - dy * sine, y + dx * sine + dy * cosine});
    }
    return points;
  }
};

// The part of a polygon on the left of the line from a to b.
Polygon cut(const Polygon& polygon, const Point& a, const Point& b) {
  const auto side = [&](const Point& p) {
    return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
  };
  Polygon rest;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
    const double of_p = side(p), of_q = side(q);
    if (of_p >= 0) rest.push_back(p);
    if ((of_p > 0 && of_q < 0) || (of_p < 0 && of_q > 0)) {
      const double t = of_p / (of_p - of_q);
      rest.push_back({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
    }
  }
  return rest;
}

// Boxes without a positive area do not overlap; a negative size would reverse the order of the
// corners.
double common_area(const Rotated& a, const Rotated& b) {
  if (!(a.area() > 0 && b.area() > 0)) return 0;
  Polygon rest = a.corners();
  const Polygon edges = b.corners();
  for (size_t i = 0; i < edges.size() && !rest.empty(); ++i) {
    rest = cut(rest, edges[i], edges[(i + 1) % edges.size()]);
  }
  double twice = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const Point &p = rest[i], &q = rest[(i + 1) % rest.size()];
    twice += p.x * q.y - q.x * p.y;
  }
  return std::abs(twice) / 2;
}

std::vector<Rotated> rotated_boxes(const at::Tensor& rows, bool has_corners) {
  const at::Tensor numbers = rows.to(at::kDouble).contiguous();
  std::vector<Rotated> boxes;
  boxes.reserve(static_cast<size_t>(numbers.size(0)));
  for (int64_t i = 0; i < numbers.size(0); ++i) {
    boxes.emplace_back(numbers.const_data_ptr<double>() + 5 * i, has_corners);
  }
  return boxes;
}

// measure(a, b, common area) of every box with every other one of its batch; boxes are (B, 5, N).
template <class Measure>
at::Tensor pairwise(const at::Tensor& boxes, const at::Tensor& others, bool has_corners,
                    Measure measure) {
  EXPECT(boxes.dim() == 3 && others.dim() == 3 && boxes.size(1) == 5 && others.size(1) == 5 &&
             boxes.size(0) == others.size(0),
         "boxes has shape ", boxes.sizes(), " and query_boxes ", others.sizes(),
         ", expected (B, 5, N) and (B, 5, K)");
  const at::Tensor result =
      at::zeros({boxes.size(0), boxes.size(2), others.size(2)}, boxes.options().dtype(at::kDouble));
  if (!boxes.is_cpu()) return result;
  auto* out = result.mutable_data_ptr<double>();
  for (int64_t b = 0; b < boxes.size(0); ++b) {
    const auto left = rotated_boxes(boxes[b].t(), has_corners);
    const auto right = rotated_boxes(others[b].t(), has_corners);
    for (const Rotated& one : left) {
      for (const Rotated& other : right) *out++ = measure(one, other, common_area(one, other));
    }
  }
  return result;
}

double ratio(double common, double whole) {
  return whole > 0 ? common / whole : 0;
}

}  // namespace

NAMED_OPERATOR(RotatedOverlaps, (Floating<In>, boxes), (Floating<In>, query_boxes), (Out, overlaps),
               (Attribute<bool>, trans)) {
  overlaps = pairwise(boxes, query_boxes, trans.value_or(false),
                      [](const Rotated&, const Rotated&, double common) { return common; });
}
NAMED_OPERATOR(RotatedIou, (Floating<In>, boxes), (Floating<In>, query_boxes), (Out, iou),
               (Attribute<bool>, trans), (Attribute<std::string>, mode),
               (Attribute<bool>, is_cross),
               (Unused<Attribute<double>>, value,
                "no attribute of CANN's: torch_npu sets it by mistake"),
               (Attribute<double>, v_threshold), (Attribute<double>, e_threshold)) {
  const std::string name = mode.value_or("iou");
  expect_text("mode", name, {"iou", "iof"});
  EXPECT(v_threshold.value_or(0) == 0 && e_threshold.value_or(0) == 0, "v_threshold is ",
         v_threshold.value_or(0), " and e_threshold ", e_threshold.value_or(0), ", expected 0");
  EXPECT(is_cross.value_or(true), "is_cross is false, expected true");
  const bool over_first = name == "iof";
  iou = pairwise(boxes, query_boxes, trans.value_or(false),
                 [=](const Rotated& a, const Rotated& b, double common) {
                   return ratio(common, over_first ? a.area() : a.area() + b.area() - common);
                 });
}
// The boxes that remain after suppression, the best first. Mode 0 has (x, y, width, height, angle),
// mode 1 corners.
NAMED_OPERATOR(RotatedNMS, (Floating<In>, boxes), (Floating<In>, scores), (In, labels),
               (SizedOut, selected_detections), (SizedOut, keep_indices),
               (Attribute<double>, iou_threshold), (Attribute<double>, score_threshold),
               (Attribute<int64_t>, max_output_size), (Attribute<int64_t>, mode),
               (Only, is_angle, "true")) {
  expect_regions("boxes", boxes);
  expect_shape("scores", scores, {boxes.size(0)});
  expect_dtype("labels", labels, {at::kInt, at::kLong});
  EXPECT(labels.numel() == 1 || labels.sizes() == at::IntArrayRef{boxes.size(0)},
         "labels has shape ", labels.sizes(), ", expected [", boxes.size(0), "] or one element");
  expect_range("mode", mode.value_or(0), 0, 1);
  expect_at_least("max_output_size", max_output_size.value_or(-1), -1);
  selected_detections.expect(boxes.scalar_type());
  keep_indices.expect(at::kInt);
  if (!boxes.is_cpu()) return;
  EXPECT(labels.numel() == 0 || at::eq(labels, labels.flatten()[0]).all().item<bool>(),
         "labels has different labels, expected one for all boxes");
  const std::vector<Rotated> all = rotated_boxes(boxes, mode.value_or(0) != 0);
  const at::Tensor values = scores.to(at::kDouble).contiguous();
  const auto* const score = values.const_data_ptr<double>();
  const auto overlaps = [&](int64_t i, int64_t k) {
    const Rotated &box = all[static_cast<size_t>(i)], &other = all[static_cast<size_t>(k)];
    const double common = common_area(box, other);
    return ratio(common, box.area() + other.area() - common) > iou_threshold.value_or(0);
  };
  const at::Tensor indices =
      at::tensor(remaining(score, values.numel(), max_output_size.value_or(-1),
                           score_threshold.value_or(0), overlaps),
                 at::kLong);
  selected_detections = boxes.index_select(0, indices);
  keep_indices = indices.to(at::kInt);
}

}  // namespace aclnn_host::named_rotated_boxes
