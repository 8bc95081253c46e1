// GIoU, DIoU and CIoU of boxes, and their gradients. Boxes are columns of (4, N).

#include <array>
#include <numbers>

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_box_overlap {

namespace {

constexpr double kEpsilon = 1e-9;
constexpr int kCoordinates = 8;  // of the two boxes

// A number and its derivatives with respect to the coordinates of both boxes.
struct Dual {
  double value = 0;
  std::array<double, kCoordinates> by{};

  Dual() = default;
  Dual(double constant) : value(constant) {}
  static Dual variable(double value, int i) {
    Dual result(value);
    result.by[static_cast<size_t>(i)] = 1;
    return result;
  }
  // f(value), where `result` is the value and `derivative` the derivative of f.
  Dual through(double result, double derivative) const {
    Dual mapped(result);
    for (size_t i = 0; i < kCoordinates; ++i) mapped.by[i] = derivative * by[i];
    return mapped;
  }
};

// Combines a and b; by_a and by_b are the derivatives of the result with respect to them.
Dual joined(const Dual& a, const Dual& b, double result, double by_a, double by_b) {
  Dual both(result);
  for (size_t i = 0; i < kCoordinates; ++i) both.by[i] = by_a * a.by[i] + by_b * b.by[i];
  return both;
}
Dual operator+(const Dual& a, const Dual& b) {
  return joined(a, b, a.value + b.value, 1, 1);
}
Dual operator-(const Dual& a, const Dual& b) {
  return joined(a, b, a.value - b.value, 1, -1);
}
Dual operator*(const Dual& a, const Dual& b) {
  return joined(a, b, a.value * b.value, b.value, a.value);
}
Dual operator/(const Dual& a, const Dual& b) {
  return joined(a, b, a.value / b.value, 1 / b.value, -a.value / (b.value * b.value));
}
Dual larger(const Dual& a, const Dual& b) {
  return a.value >= b.value ? a : b;
}
Dual smaller(const Dual& a, const Dual& b) {
  return a.value <= b.value ? a : b;
}
Dual positive(const Dual& a) {
  return a.value > 0 ? a : Dual();
}
Dual square(const Dual& a) {
  return a * a;
}
Dual arctangent(const Dual& a) {
  return a.through(std::atan(a.value), 1 / (1 + a.value * a.value));
}

enum class Measure { kGeneral, kDistance, kComplete };

struct Options {
  bool is_centred;  // boxes are (x, y, width, height) with the centre, not two corners
  bool is_cross;    // pair every box with every other one
  bool over_truth;  // divide the intersection by the area of the second box, not by the union
};

Options options_of(const std::optional<bool>& trans, const std::optional<bool>& is_cross,
                   const std::optional<std::string>& mode) {
  const std::string name = mode.value_or("iou");
  expect_text("mode", name, {"iou", "iof"});
  return {trans.value_or(false), is_cross.value_or(true), name == "iof"};
}

struct Corners {
  Dual x1, y1, x2, y2;

  Corners(const double* box, int first, bool is_centred) {
    const auto at = [&](int i) { return Dual::variable(box[i], first + i); };
    if (is_centred) {
      const Dual half_width = at(2) * Dual(0.5), half_height = at(3) * Dual(0.5);
      x1 = at(0) - half_width, x2 = at(0) + half_width;
      y1 = at(1) - half_height, y2 = at(1) + half_height;
    } else {
      x1 = at(0), y1 = at(1), x2 = at(2), y2 = at(3);
    }
  }
  Dual width() const { return x2 - x1; }
  Dual height() const { return y2 - y1; }
  Dual area() const { return width() * height(); }
};

struct Overlap {
  Dual value;
  double angle;  // the difference of atan(width / height) of both boxes
};

Overlap overlap_of(Measure kind, const double* box, const double* truth, const Options& options) {
  const Corners a(box, 0, options.is_centred), b(truth, 4, options.is_centred);
  const Dual common = positive(smaller(a.x2, b.x2) - larger(a.x1, b.x1)) *
                      positive(smaller(a.y2, b.y2) - larger(a.y1, b.y1));
  const Dual whole =
      (options.over_truth ? b.area() : a.area() + b.area() - common) + Dual(kEpsilon);
  const Dual iou = common / whole;
  const Dual width = larger(a.x2, b.x2) - smaller(a.x1, b.x1);
  const Dual height = larger(a.y2, b.y2) - smaller(a.y1, b.y1);
  if (kind == Measure::kGeneral) {
    const Dual outer = width * height;
    return {iou - (outer - whole) / (outer + Dual(kEpsilon)), 0};
  }
  const Dual diagonal = square(width) + square(height) + Dual(kEpsilon);
  const Dual apart = square(b.x1 + b.x2 - a.x1 - a.x2) + square(b.y1 + b.y2 - a.y1 - a.y2);
  const Dual distance = iou - apart * Dual(0.25) / diagonal;
  if (kind == Measure::kDistance) return {distance, 0};
  const Dual angle = arctangent(b.width() / (b.height() + Dual(kEpsilon))) -
                     arctangent(a.width() / (a.height() + Dual(kEpsilon)));
  const Dual v = square(angle) * Dual(4 / (std::numbers::pi * std::numbers::pi));
  // The gradient takes the weight of v as a constant.
  const double weight = v.value / (1 + kEpsilon - iou.value + v.value);
  return {distance - v * Dual(weight), angle.value};
}

void check_boxes(const at::Tensor& boxes, const at::Tensor& truths, const Options& options) {
  expect_dims("bboxes", boxes, 2);
  expect_dims("gtboxes", truths, 2);
  EXPECT(boxes.size(0) == 4 && truths.size(0) == 4, "bboxes has shape ", boxes.sizes(),
         " and gtboxes ", truths.sizes(), ", expected (4, N) and (4, M)");
  EXPECT(options.is_cross || boxes.size(1) == truths.size(1), "bboxes has ", boxes.size(1),
         " boxes and gtboxes ", truths.size(1), ", expected as many, as is_cross is false");
}

// Calls visit(row, column, box, truth) for the elements of the result. If all pairs are computed,
// the rows are the second boxes.
template <class Visit>
void each_pair(int64_t boxes, int64_t truths, const Options& options, Visit visit) {
  for (int64_t row = 0; row < (options.is_cross ? truths : 1); ++row) {
    for (int64_t box = 0; box < boxes; ++box) visit(row, box, box, options.is_cross ? row : box);
  }
}

// Boxes as rows of four numbers.
at::Tensor rows_of(const at::Tensor& boxes) {
  return boxes.to(at::kDouble).t().contiguous();
}

struct Overlaps {
  at::Tensor values;
  at::Tensor angles;
};

Overlaps overlaps(Measure kind, const at::Tensor& boxes, const at::Tensor& truths,
                  const Options& options) {
  check_boxes(boxes, truths, options);
  const std::vector<int64_t> shape{options.is_cross ? truths.size(1) : 1, boxes.size(1)};
  const auto type = boxes.options().dtype(at::kDouble);
  Overlaps result{at::zeros(shape, type), at::zeros(shape, type)};
  if (!boxes.is_cpu()) return result;
  const at::Tensor a = rows_of(boxes), b = rows_of(truths);
  auto* const values = result.values.mutable_data_ptr<double>();
  auto* const angles = result.angles.mutable_data_ptr<double>();
  each_pair(boxes.size(1), truths.size(1), options,
            [&](int64_t row, int64_t column, int64_t box, int64_t truth) {
              const Overlap each = overlap_of(kind, a.const_data_ptr<double>() + 4 * box,
                                              b.const_data_ptr<double>() + 4 * truth, options);
              values[row * boxes.size(1) + column] = each.value.value;
              angles[row * boxes.size(1) + column] = each.angle;
            });
  return result;
}

// The gradients of both boxes, (4, N) and (4, M).
std::pair<at::Tensor, at::Tensor> gradients(Measure kind, const at::Tensor& dy,
                                            const at::Tensor& boxes, const at::Tensor& truths,
                                            const Options& options) {
  check_boxes(boxes, truths, options);
  const int64_t count = boxes.size(1);
  const int64_t rows = options.is_cross ? truths.size(1) : 1;
  EXPECT(dy.numel() == rows * count, "dy has shape ", dy.sizes(), ", expected ", rows * count,
         " elements");
  const auto type = boxes.options().dtype(at::kDouble);
  const at::Tensor by_boxes = at::zeros({count, 4}, type);
  const at::Tensor by_truths = at::zeros({truths.size(1), 4}, type);
  if (boxes.is_cpu()) {
    const at::Tensor a = rows_of(boxes), b = rows_of(truths);
    const at::Tensor weights = dy.to(at::kDouble).contiguous();
    each_pair(count, truths.size(1), options,
              [&](int64_t row, int64_t column, int64_t box, int64_t truth) {
                const Overlap each = overlap_of(kind, a.const_data_ptr<double>() + 4 * box,
                                                b.const_data_ptr<double>() + 4 * truth, options);
                const double weight = weights.const_data_ptr<double>()[row * count + column];
                for (int i = 0; i < 4; ++i) {
                  const auto side = static_cast<size_t>(i);
                  by_boxes.mutable_data_ptr<double>()[4 * box + i] += weight * each.value.by[side];
                  by_truths.mutable_data_ptr<double>()[4 * truth + i] +=
                      weight * each.value.by[side + 4];
                }
              });
  }
  return {by_boxes.t(), by_truths.t()};
}

}  // namespace

#define NAMED_OVERLAP(Name, kind)                                                                 \
  NAMED_OPERATOR(Name, (Floating<In>, bboxes), (Floating<In>, gtboxes), (Out, overlap),           \
                 (Attribute<bool>, trans), (Attribute<bool>, is_cross),                           \
                 (Attribute<std::string>, mode)) {                                                \
    overlap = overlaps(kind, bboxes, gtboxes, options_of(trans, is_cross, mode)).values;          \
  }                                                                                               \
  NAMED_OPERATOR(Name##Grad, (Floating<In>, dy), (Floating<In>, bboxes), (Floating<In>, gtboxes), \
                 (Out, dbboxes), (Out, dgtboxes), (Attribute<bool>, trans),                       \
                 (Attribute<bool>, is_cross), (Attribute<std::string>, mode)) {                   \
    std::tie(dbboxes, dgtboxes) =                                                                 \
        gradients(kind, dy, bboxes, gtboxes, options_of(trans, is_cross, mode));                  \
  }

NAMED_OVERLAP(GIoU, Measure::kGeneral)
NAMED_OVERLAP(DIoU, Measure::kDistance)

NAMED_OPERATOR(CIoU, (Floating<In>, bboxes), (Floating<In>, gtboxes), (Out, overlap),
               (Optional<Out>, atan_sub), (Attribute<bool>, trans), (Attribute<bool>, is_cross),
               (Attribute<std::string>, mode),
               (Unused<Attribute<bool>>, atan_sub_flag,
                "CANN takes it as true: atan_sub is always written")) {
  const Overlaps result =
      overlaps(Measure::kComplete, bboxes, gtboxes, options_of(trans, is_cross, mode));
  overlap = result.values;
  atan_sub = result.angles;
}
NAMED_OPERATOR(CIoUGrad, (Floating<In>, dy), (Floating<In>, bboxes), (Floating<In>, gtboxes),
               (Unused<Optional<In>>, atan_sub, "is computed again from the boxes"), (Out, dbboxes),
               (Out, dgtboxes), (Attribute<bool>, trans), (Attribute<bool>, is_cross),
               (Attribute<std::string>, mode)) {
  std::tie(dbboxes, dgtboxes) =
      gradients(Measure::kComplete, dy, bboxes, gtboxes, options_of(trans, is_cross, mode));
}

}  // namespace aclnn_host::named_box_overlap
