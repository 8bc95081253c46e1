// Deformable convolution and attention: bilinear samples of images at positions that are inputs.

#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "cann/rows/vision/deformable_sampling.h"

namespace aclnn_host::vision_deformable_rows {

namespace {

// Columns as a matrix for each group, and the weight.
at::Tensor by_group(const Geometry& g, const at::Tensor& columns) {
  return columns.reshape({g.batch, g.groups, g.channels / g.groups * g.kernel(), g.outputs()});
}
at::Tensor weight_by_group(const Geometry& g, const at::Tensor& weight) {
  return in_floats(weight).view(
      {g.groups, g.out_channels / g.groups, g.channels / g.groups * g.kernel()});
}

// ---- attention

struct AttentionSizes {
  int64_t batch, keys, heads, channels, queries, levels, points;
};

AttentionSizes attention_sizes(const at::Tensor& value, const at::Tensor& shapes,
                               const at::Tensor& starts, const at::Tensor& location,
                               const at::Tensor& weight, int64_t least_queries) {
  expect_dims("value", value, 4);
  expect_dims("spatialShape", shapes, 2);
  expect_dims("levelStartIndex", starts, 1);
  expect_dims("location", location, 6);
  expect_dims("attnWeight", weight, 5);
  for (const auto& [name, tensor] : {std::pair("value", &value), std::pair("location", &location),
                                     std::pair("attnWeight", &weight)}) {
    expect_sampled_type(name, *tensor);
  }
  const AttentionSizes s{value.size(0),    value.size(1),    value.size(2),   value.size(3),
                         location.size(1), location.size(3), location.size(4)};
  expect_shape("spatialShape", shapes, {s.levels, 2});
  expect_shape("levelStartIndex", starts, {s.levels});
  expect_shape("location", location, {s.batch, s.queries, s.heads, s.levels, s.points, 2});
  expect_shape("attnWeight", weight, {s.batch, s.queries, s.heads, s.levels, s.points});
  EXPECT(s.channels % 8 == 0 && s.channels <= 256, "value has ", s.channels,
         " channels, expected a multiple of 8 of at most 256");
  EXPECT(s.queries >= least_queries && s.queries < 500000, "location has ", s.queries,
         " queries, expected ", least_queries, " to 499999");
  EXPECT(s.heads <= 16, "value has ", s.heads, " heads, expected at most 16");
  EXPECT(s.levels <= 16, "location has ", s.levels, " levels, expected at most 16");
  EXPECT(s.points <= 16, "location has ", s.points, " points, expected at most 16");
  return s;
}

// The keys contain the images of the levels, one after the other.
void check_levels(const AttentionSizes& s, const at::Tensor& shapes, const at::Tensor& starts) {
  const auto* const sizes = shapes.const_data_ptr<int64_t>();
  const auto* const first = starts.const_data_ptr<int64_t>();
  for (int64_t level = 0; level < s.levels; ++level) {
    const int64_t height = sizes[2 * level], width = sizes[2 * level + 1];
    int64_t area = 0;
    const bool fits = height >= 0 && width >= 0 && first[level] >= 0 && first[level] <= s.keys &&
                      !__builtin_mul_overflow(height, width, &area) &&
                      area <= s.keys - first[level];
    EXPECT(fits, "level ", level, " begins at ", first[level], " with ", height, " by ", width,
           " elements, expected it within the ", s.keys, " keys of value");
  }
}

// Calls visit(first, weight index, sample, height, width) for every sample of every head; `first`
// is the element of value with the head's first key of the level.
template <class Visit>
void each_attention_sample(const AttentionSizes& s, const at::Tensor& shapes,
                           const at::Tensor& starts, const at::Tensor& location, Visit visit) {
  check_levels(s, shapes, starts);
  const auto* const sizes = shapes.const_data_ptr<int64_t>();
  const auto* const first = starts.const_data_ptr<int64_t>();
  const auto* const positions = location.const_data_ptr<float>();
  const int64_t each = s.levels * s.points;
  for (int64_t i = 0; i < location.numel() / 2; ++i) {
    const int64_t head = i / each % s.heads;
    const int64_t n = i / each / s.heads / s.queries;
    const int64_t level = i / s.points % s.levels;
    const int64_t height = sizes[2 * level], width = sizes[2 * level + 1];
    const double x = static_cast<double>(positions[2 * i]) * static_cast<double>(width) - 0.5;
    const double y = static_cast<double>(positions[2 * i + 1]) * static_cast<double>(height) - 0.5;
    visit(((n * s.keys + first[level]) * s.heads + head) * s.channels, i,
          Sample(y, x, height, width), height, width);
  }
}

}  // namespace

// offset has the offsets along x, those along y and the masks, each [deformableGroups, kernel].
ACLNN(DeformableConv2d, (Image<Floating<In>>, x), (SameDtype<Floating<In>>, weight, "x"),
      (SameDtype<Image<Floating<In>>>, offset, "x"), (SameDtype<Optional<In>>, biasOptional, "x"),
      (Ints, kernelSize), (Ints, stride), (Ints, padding), (Ints, dilation), (int64_t, groups),
      (int64_t, deformableGroups), (bool, modulated), (SameDtype<Image<Out>>, out, "x"),
      (SameDtype<Image<Optional<Out>>>, deformOutOptional, "x")) {
  const Geometry g("x", x, weight, kernelSize, stride, padding, dilation, groups, deformableGroups,
                   modulated);
  expect_shape("offset", offset, g.offsets());
  expect_shape("out", out, g.result());
  if (biasOptional) expect_shape("biasOptional", *biasOptional, {g.out_channels});
  if (deformOutOptional) expect_shape("deformOutOptional", *deformOutOptional, g.samples());
  const at::Tensor columns = sampled(g, in_floats(x), in_floats(offset));
  at::Tensor result =
      at::matmul(weight_by_group(g, weight), by_group(g, columns)).reshape(g.result());
  if (biasOptional) result = result + wide(*biasOptional).reshape({-1, 1, 1});
  deformOutOptional = as_points(g, columns);
  out = result;
}
// offsetOut has the samples of the forward pass, from which the gradient of weight is computed.
ACLNN(DeformableConv2dBackward, (Image<Floating<In>>, input),
      (SameDtype<Image<Floating<In>>>, gradOutput, "input"),
      (SameDtype<Image<Floating<In>>>, offsetOut, "input"),
      (SameDtype<Floating<In>>, weight, "input"), (SameDtype<Image<Floating<In>>>, offset, "input"),
      (Ints, kernelSize), (Ints, stride), (Ints, padding), (Ints, dilation), (int64_t, groups),
      (int64_t, deformableGroups), (bool, modulated), (Like<Image<Out>>, gradInput, "input"),
      (Like<Out>, gradWeight, "weight"), (Like<Image<Out>>, gradOffset, "offset"),
      (SameDtype<Out>, gradBias, "input")) {
  const Geometry g("input", input, weight, kernelSize, stride, padding, dilation, groups,
                   deformableGroups, modulated);
  expect_shape("gradOutput", gradOutput, g.result());
  expect_shape("offsetOut", offsetOut, g.samples());
  expect_shape("offset", offset, g.offsets());
  expect_shape("gradBias", gradBias, {g.out_channels});
  const at::Tensor images = in_floats(input), offsets = in_floats(offset);
  const at::Tensor gradients =
      in_floats(gradOutput).view({g.batch, g.groups, g.out_channels / g.groups, g.outputs()});
  const at::Tensor points = by_group(g, as_columns(g, in_floats(offsetOut)));
  const at::Tensor of_weight = at::matmul(gradients, points.transpose(2, 3)).sum(0);
  const at::Tensor of_samples =
      at::matmul(weight_by_group(g, weight).transpose(1, 2), gradients).contiguous();
  const at::Tensor of_images = at::zeros(input.sizes(), images.options());
  const at::Tensor of_offsets = at::zeros(offset.sizes(), images.options());
  if (has_values(images)) {
    sample_gradients(g, images, offsets, of_samples, of_images, of_offsets);
  }
  const at::Tensor of_bias = wide(gradOutput).sum({0, 2, 3});
  gradInput = of_images;
  gradWeight = of_weight.reshape(weight.sizes());
  gradOffset = of_offsets;
  gradBias = of_bias;
}

// The last dimension of location is x, y, as fractions of the width and the height.
ACLNN(MultiScaleDeformableAttnFunction, (Floating<In>, value), (IndexIn, spatialShape),
      (IndexIn, levelStartIndex), (SameDtype<Floating<In>>, location, "value"),
      (SameDtype<Floating<In>>, attnWeight, "value"), (SameDtype<Out>, output, "value")) {
  const AttentionSizes s =
      attention_sizes(value, spatialShape, levelStartIndex, location, attnWeight, 32);
  const DeformableSizes shape{s.batch, s.queries, s.heads * s.channels};
  expect_shape("output", output, shape);
  const at::Tensor result = at::zeros(shape, value.options().dtype(at::kDouble));
  if (has_values(value)) {
    const at::Tensor values = in_floats(value), weights = in_floats(attnWeight);
    const auto* const data = values.const_data_ptr<float>();
    const auto* const factors = weights.const_data_ptr<float>();
    auto* const out = result.mutable_data_ptr<double>();
    each_attention_sample(
        s, spatialShape.contiguous(), levelStartIndex.contiguous(), in_floats(location),
        [&](int64_t first, int64_t i, const Sample& sample, int64_t, int64_t) {
          double* const query = out + i / (s.levels * s.points) * s.channels;
          for (const auto& corner : sample) {
            const double factor = corner.share * factors[i];
            const float* const key = data + first + corner.pixel * s.heads * s.channels;
            for (int64_t c = 0; c < s.channels; ++c) {
              query[c] += factor * key[c];
            }
          }
        });
  }
  output = result;
}
ACLNN(MultiScaleDeformableAttentionGrad, (Floating<In>, value), (IndexIn, spatialShape),
      (IndexIn, levelStartIndex), (Floating<In>, location), (Floating<In>, attnWeight),
      (Floating<In>, gradOutput), (Out, gradValue), (Out, gradLocation), (Out, gradAttnWeight)) {
  const AttentionSizes s =
      attention_sizes(value, spatialShape, levelStartIndex, location, attnWeight, 0);
  expect_sampled_type("gradOutput", gradOutput);
  expect_shape("gradOutput", gradOutput, {s.batch, s.queries, s.heads * s.channels});
  const auto options = value.options().dtype(at::kDouble);
  const at::Tensor of_value = at::zeros(value.sizes(), options);
  const at::Tensor of_location = at::zeros(location.sizes(), options);
  const at::Tensor of_weight = at::zeros(attnWeight.sizes(), options);
  if (has_values(value)) {
    const at::Tensor values = in_floats(value), weights = in_floats(attnWeight);
    const at::Tensor gradients = in_floats(gradOutput);
    auto* const value_out = of_value.mutable_data_ptr<double>();
    auto* const location_out = of_location.mutable_data_ptr<double>();
    auto* const weight_out = of_weight.mutable_data_ptr<double>();
    each_attention_sample(
        s, spatialShape.contiguous(), levelStartIndex.contiguous(), in_floats(location),
        [&](int64_t first, int64_t i, const Sample& sample, int64_t height, int64_t width) {
          const float* const query =
              gradients.const_data_ptr<float>() + i / (s.levels * s.points) * s.channels;
          const double weight = weights.const_data_ptr<float>()[i];
          double along_x = 0, along_y = 0, total = 0;
          for (const auto& corner : sample) {
            const int64_t element = first + corner.pixel * s.heads * s.channels;
            const float* const key = values.const_data_ptr<float>() + element;
            double product = 0;
            for (int64_t c = 0; c < s.channels; ++c) {
              product += static_cast<double>(query[c]) * key[c];
              value_out[element + c] += corner.share * weight * query[c];
            }
            along_x += corner.along_x * product;
            along_y += corner.along_y * product;
            total += corner.share * product;
          }
          location_out[2 * i] = along_x * weight * static_cast<double>(width);
          location_out[2 * i + 1] = along_y * weight * static_cast<double>(height);
          weight_out[i] = total;
        });
  }
  gradValue = of_value;
  gradLocation = of_location;
  gradAttnWeight = of_weight;
}

}  // namespace aclnn_host::vision_deformable_rows
