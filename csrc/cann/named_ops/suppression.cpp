// Non-maximum suppression of boxes.

#include <numeric>

#include "cann/named_ops/operator.h"
#include "cann/rows/engine/frame.h"
#include "cann/rows/vision/regions.h"
#include "cann/rows/vision/suppression.h"

namespace aclnn_host::named_suppression {

namespace {

struct Box {
  float x1, y1, x2, y2;

  explicit Box(const float* sides)
      : x1(std::min(sides[0], sides[2])),
        y1(std::min(sides[1], sides[3])),
        x2(std::max(sides[0], sides[2])),
        y2(std::max(sides[1], sides[3])) {}
  float area() const { return (x2 - x1) * (y2 - y1); }
  float overlap(const Box& other) const {
    const float width = std::min(x2, other.x2) - std::max(x1, other.x1);
    const float height = std::min(y2, other.y2) - std::max(y1, other.y1);
    const float common = std::max(width, 0.0f) * std::max(height, 0.0f);
    const float whole = area() + other.area() - common;
    return whole > 0 ? common / whole : 0;
  }
};

std::vector<Box> boxes_of(const float* sides, int64_t count, int64_t stride) {
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) boxes.emplace_back(sides + i * stride);
  return boxes;
}

// The boxes that remain, at most `most`, of those with a score above the threshold.
std::vector<int64_t> selected(const std::vector<Box>& boxes, const std::vector<float>& scores,
                              int64_t most, float least_score, float iou) {
  return remaining(scores.data(), static_cast<int64_t>(boxes.size()), most, least_score,
                   [&](int64_t i, int64_t k) {
                     return boxes[static_cast<size_t>(i)].overlap(boxes[static_cast<size_t>(k)]) >
                            iou;
                   });
}

void expect_absent(const char* name, const std::optional<at::Tensor>& tensor) {
  EXPECT(!tensor, name, " is given, expected none: the host CANN does not emulate it");
}

float number_in(const char* name, const at::Tensor& tensor) {
  expect_one(name, tensor);
  return has_values(tensor) ? tensor.item().to<float>() : 0.0f;
}

std::vector<float> floats_in(const at::Tensor& tensor) {
  const at::Tensor floats = tensor.to(at::kFloat).contiguous();
  const auto* const begin = floats.const_data_ptr<float>();
  return {begin, begin + floats.numel()};
}

}  // namespace

// The boxes in their order, and flags of those that remain; a box is suppressed by the ones before
// it.
NAMED_OPERATOR(NMSWithMask, (Floating<In>, box_scores), (Out, selected_boxes), (Out, selected_idx),
               (Out, selected_mask), (Attribute<double>, iou_threshold)) {
  expect_regions("box_scores", box_scores);
  const int64_t count = box_scores.size(0);
  const at::Tensor mask = at::zeros({count}, box_scores.options().dtype(at::kByte));
  if (has_values(box_scores)) {
    const std::vector<float> rows = floats_in(box_scores);
    std::vector<float> in_order(static_cast<size_t>(count));
    std::iota(in_order.rbegin(), in_order.rend(), 1.0f);
    for (const int64_t i : selected(boxes_of(rows.data(), count, 5), in_order, count, 0,
                                    static_cast<float>(iou_threshold.value_or(0.5)))) {
      mask.mutable_data_ptr<uint8_t>()[i] = 1;
    }
  }
  selected_boxes = box_scores;
  selected_idx = at::arange(count, box_scores.options().dtype(at::kInt));
  selected_mask = mask;
}
NAMED_OPERATOR(NonMaxSuppressionV4, (Floating<In>, boxes), (Floating<In>, scores),
               (In, max_output_size), (Floating<In>, iou_threshold),
               (Floating<In>, score_threshold), (Out, selected_indices), (Out, valid_outputs),
               (Unused<Attribute<bool>>, pad_to_max_output_size,
                "selected_indices has one size; what is left of it is 0")) {
  expect_regions("boxes", boxes, 4);
  expect_shape("scores", scores, {boxes.size(0)});
  expect_dtype("max_output_size", max_output_size, at::kInt);
  expect_one("max_output_size", max_output_size);
  expect_dims("selected_indices", selected_indices, 1);
  const float iou = number_in("iou_threshold", iou_threshold);
  const float least = number_in("score_threshold", score_threshold);
  const at::Tensor indices = at::zeros(selected_indices->sizes(), boxes.options().dtype(at::kInt));
  int64_t count = 0;
  if (has_values(boxes)) {
    const int64_t most = max_output_size.item().toLong();
    expect_range("max_output_size", most, 0, indices.numel(), ", the size of selected_indices");
    const std::vector<float> sides = floats_in(boxes);
    for (const int64_t i :
         selected(boxes_of(sides.data(), boxes.size(0), 4), floats_in(scores), most, least, iou)) {
      indices.mutable_data_ptr<int32_t>()[count++] = static_cast<int32_t>(i);
    }
  }
  selected_indices = indices;
  expect_one("valid_outputs", valid_outputs);
  valid_outputs = at::full(valid_outputs->sizes(), count, boxes.options().dtype(at::kInt));
}
// Suppresses in each class, then selects the best of all classes. The rest of the outputs is 0.
NAMED_OPERATOR(BatchMultiClassNonMaxSuppression, (Floating<In>, boxes), (Floating<In>, scores),
               (Optional<In>, clip_window), (Optional<In>, num_valid_boxes), (Out, nmsed_boxes),
               (Out, nmsed_scores), (Out, nmsed_classes), (Out, nmsed_num),
               (Attribute<double>, score_threshold), (Attribute<double>, iou_threshold),
               (Attribute<int64_t>, max_size_per_class), (Attribute<int64_t>, max_total_size),
               (Attribute<bool>, change_coordinate_frame), (Attribute<bool>, transpose_box)) {
  expect_absent("clip_window", clip_window);
  expect_absent("num_valid_boxes", num_valid_boxes);
  EXPECT(!change_coordinate_frame.value_or(false),
         "change_coordinate_frame is true, expected false, which alone the host CANN emulates");
  expect_dims("boxes", boxes, 4);
  expect_dims("scores", scores, 3);
  const at::Tensor all = transpose_box.value_or(false) ? boxes.permute({0, 3, 1, 2}) : boxes;
  const int64_t batches = scores.size(0), count = scores.size(1), classes = scores.size(2);
  EXPECT(all.size(0) == batches && all.size(1) == count && all.size(3) == 4 &&
             (all.size(2) == 1 || all.size(2) == classes),
         "boxes has shape ", boxes.sizes(), ", expected (B, N, 1 or C, 4) for scores of shape ",
         scores.sizes());
  const int64_t most = max_total_size.value_or(0);
  expect_at_least("max_size_per_class", max_size_per_class.value_or(0), 0);
  expect_at_least("max_total_size", most, 0);
  expect_shape("nmsed_boxes", nmsed_boxes, {batches, most, 4});
  const auto type = boxes.options().dtype(at::kFloat);
  const at::Tensor found_boxes = at::zeros({batches, most, 4}, type);
  const at::Tensor found_scores = at::zeros({batches, most}, type);
  const at::Tensor found_classes = at::zeros({batches, most}, type);
  const at::Tensor found = at::zeros({batches}, type.dtype(at::kInt));
  for (int64_t b = 0; has_values(boxes) && b < batches; ++b) {
    struct Find {
      float score;
      int64_t box, of_class;
    };
    std::vector<Find> finds;
    for (int64_t c = 0; c < classes; ++c) {
      const std::vector<float> sides = floats_in(all[b].select(1, all.size(2) == 1 ? 0 : c));
      const std::vector<float> values = floats_in(scores[b].select(1, c));
      for (const int64_t i :
           selected(boxes_of(sides.data(), count, 4), values, max_size_per_class.value_or(0),
                    static_cast<float>(score_threshold.value_or(0)),
                    static_cast<float>(iou_threshold.value_or(0)))) {
        finds.push_back({values[static_cast<size_t>(i)], i, c});
      }
    }
    std::stable_sort(finds.begin(), finds.end(),
                     [](const Find& x, const Find& y) { return x.score > y.score; });
    const int64_t number = std::min(most, static_cast<int64_t>(finds.size()));
    for (int64_t i = 0; i < number; ++i) {
      const Find& find = finds[static_cast<size_t>(i)];
      found_boxes[b][i].copy_(all[b][find.box][all.size(2) == 1 ? 0 : find.of_class]);
      found_scores[b][i].fill_(find.score);
      found_classes[b][i].fill_(static_cast<double>(find.of_class));
    }
    found[b].fill_(number);
  }
  nmsed_boxes = found_boxes;
  nmsed_scores = found_scores;
  nmsed_classes = found_classes;
  nmsed_num = found;
}

}  // namespace aclnn_host::named_suppression
