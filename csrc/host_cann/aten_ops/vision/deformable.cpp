// Deformable convolution and attention: bilinear samples of images at places that are inputs.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

using DeformableSizes = std::vector<int64_t>;

// A bilinear sample of an image: the elements around a place, each with its share in the sample and
// with the derivative of that share along both directions. What is beside the image counts as 0.
class Sample {
 public:
  struct Corner {
    int64_t place;  // row * width + column
    double share, along_y, along_x;
  };

  Sample(double y, double x, int64_t height, int64_t width) {
    const bool is_near =
        y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width);
    if (!is_near) return;  // nor is nan
    const double down = y - std::floor(y), right = x - std::floor(x);
    const auto top = static_cast<int64_t>(std::floor(y));
    const auto left = static_cast<int64_t>(std::floor(x));
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = top + i / 2, column = left + i % 2;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      const double of_row = i / 2 == 1 ? down : 1 - down;
      const double of_column = i % 2 == 1 ? right : 1 - right;
      corners_[count_++] = {row * width + column, of_row * of_column,
                            i / 2 == 1 ? of_column : -of_column, i % 2 == 1 ? of_row : -of_row};
    }
  }
  const Corner* begin() const { return corners_.data(); }
  const Corner* end() const { return corners_.data() + count_; }

 private:
  std::array<Corner, 4> corners_{};
  size_t count_ = 0;
};

// Whether the tensors have values: not where stage 1 has no memory, or scratch memory.
bool has_samples(const at::Tensor& tensor) {
  return tensor.is_cpu() && !is_rehearsed();
}

void expect_sampled_type(const char* name, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() != at::kDouble, name,
              " has dtype DOUBLE, expected FLOAT, FLOAT16 or BFLOAT16");
}

at::Tensor in_floats(const at::Tensor& tensor) {
  return tensor.to(at::kFloat).contiguous();
}

// ---- convolution

// The sizes and steps of a deformable convolution, checked.
struct Geometry {
  Geometry(const char* x_name, const at::Tensor& x, const at::Tensor& weight,
           at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
           at::IntArrayRef dilation, int64_t groups, int64_t deformable_groups, bool modulated)
      : groups(groups), deformable_groups(deformable_groups) {
    expect_sampled_type(x_name, x);
    expect_dims(x_name, x, 4);
    expect_dims("weight", weight, 4);
    TORCH_CHECK(modulated, "modulated is false, expected true");
    check_steps("stride", stride, 1);
    check_steps("dilation", dilation, 1);
    check_steps("padding", padding, 0);
    TORCH_CHECK(kernel.size() == 2 && kernel[0] > 0 && kernel[1] > 0 && kernel[0] <= kMostPlaces &&
                    kernel[0] * kernel[1] <= kMostPlaces && kernel[1] <= kMostPlaces,
                "kernelSize is ", kernel, ", expected two sizes with a product of 1 to ",
                kMostPlaces);
    batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
    out_channels = weight.size(0);
    TORCH_CHECK(groups > 0 && channels % groups == 0 && out_channels % groups == 0, "groups is ",
                groups, ", expected a divisor of ", channels, " and ", out_channels,
                ", the numbers of channels");
    TORCH_CHECK(deformable_groups > 0 && channels % deformable_groups == 0, "deformableGroups is ",
                deformable_groups, ", expected a divisor of ", channels,
                ", the number of channels");
    TORCH_CHECK(kernel[0] * kernel[1] <= kMostProducts / std::max<int64_t>(channels / groups, 1),
                "kernelSize is ", kernel, " with ", channels / groups,
                " channels per group, expected a product of at most ", kMostProducts);
    rows = kernel[0], columns = kernel[1];
    step_y = stride[2], step_x = stride[3], before_y = padding[0], before_x = padding[2];
    apart_y = dilation[2], apart_x = dilation[3];
    out_height = results(height + padding[0] + padding[1], rows, apart_y, step_y);
    out_width = results(width + padding[2] + padding[3], columns, apart_x, step_x);
    TORCH_CHECK(out_height > 0 && out_width > 0, x_name, " has shape ", x.sizes(),
                ", expected at least as many elements as the kernel spans");
    expect_like("weight", weight, x, {out_channels, channels / groups, rows, columns});
  }

  int64_t kernel() const { return rows * columns; }
  int64_t places() const { return out_height * out_width; }
  DeformableSizes result() const { return {batch, out_channels, out_height, out_width}; }
  DeformableSizes offsets() const {
    return {batch, 3 * deformable_groups * kernel(), out_height, out_width};
  }
  DeformableSizes samples() const {
    return {batch, channels, out_height * rows, out_width * columns};
  }
  static void expect_like(const char* name, const at::Tensor& tensor, const at::Tensor& like,
                          at::IntArrayRef shape) {
    expect_dtype(name, tensor, like);
    expect_shape(name, tensor, shape);
  }

  int64_t batch, channels, height, width, out_channels, out_height, out_width, rows, columns;
  int64_t step_y, step_x, before_y, before_x, apart_y, apart_x, groups, deformable_groups;

 private:
  static constexpr int64_t kMostPlaces = 2048;
  static constexpr int64_t kMostProducts = 65535;
  static constexpr int64_t kMostStep = std::numeric_limits<int32_t>::max();

  static void check_steps(const char* name, at::IntArrayRef steps, int64_t least) {
    TORCH_CHECK(steps.size() == 4, name, " is ", steps, ", expected four numbers");
    for (const int64_t step : steps) {
      TORCH_CHECK(step >= least && step <= kMostStep, name, " is ", steps, ", expected numbers of ",
                  least, " to ", kMostStep);
    }
    TORCH_CHECK(least == 0 || (steps[0] == 1 && steps[1] == 1), name, " is ", steps,
                ", expected 1 for the batch and the channels");
  }
  static int64_t results(int64_t size, int64_t kernel, int64_t apart, int64_t step) {
    const int64_t span = (kernel - 1) * apart + 1;
    return size < span ? 0 : (size - span) / step + 1;
  }
};

// Calls visit(n, group, column, at, sample) for every place of the kernel in every result: `column`
// counts [kernel, results], `at` has the places of the offsets along x and y and of the mask.
template <class Visit>
void each_sample(const Geometry& g, const at::Tensor& offset, Visit visit) {
  const auto* const offsets = offset.const_data_ptr<float>();
  const int64_t part = g.deformable_groups * g.kernel() * g.places();
  for (int64_t i = 0; i < g.batch * part; ++i) {
    const int64_t n = i / part;
    const int64_t group = i % part / (g.kernel() * g.places());
    const int64_t column = i % (g.kernel() * g.places());
    const int64_t k = column / g.places(), result = column % g.places();
    const std::array<int64_t, 3> at{i + 2 * n * part, i + (2 * n + 1) * part,
                                    i + (2 * n + 2) * part};
    const int64_t y = result / g.out_width * g.step_y + k / g.columns * g.apart_y - g.before_y;
    const int64_t x = result % g.out_width * g.step_x + k % g.columns * g.apart_x - g.before_x;
    visit(n, group, column, at,
          Sample(static_cast<double>(y) + offsets[at[1]], static_cast<double>(x) + offsets[at[0]],
                 g.height, g.width));
  }
}

// The samples times their masks: [batch, channels, kernel * results].
at::Tensor sampled(const Geometry& g, const at::Tensor& images, const at::Tensor& offset) {
  const at::Tensor result =
      at::zeros({g.batch, g.channels, g.kernel() * g.places()}, images.options());
  if (!has_samples(images)) return result;
  const auto* const data = images.const_data_ptr<float>();
  const auto* const masks = offset.const_data_ptr<float>();
  auto* const out = result.mutable_data_ptr<float>();
  const int64_t share = g.channels / g.deformable_groups;
  each_sample(g, offset,
              [&](int64_t n, int64_t group, int64_t column, const std::array<int64_t, 3>& at,
                  const Sample& sample) {
                for (int64_t c = group * share; c < (group + 1) * share; ++c) {
                  const float* const image = data + (n * g.channels + c) * g.height * g.width;
                  double sum = 0;
                  for (const auto& corner : sample) sum += corner.share * image[corner.place];
                  out[(n * g.channels + c) * g.kernel() * g.places() + column] =
                      static_cast<float>(sum * masks[at[2]]);
                }
              });
  return result;
}

// Between columns, as above, and what the functions call the sampled points: the kernel at each
// result, side by side.
at::Tensor as_points(const Geometry& g, const at::Tensor& columns) {
  return columns.view({g.batch, g.channels, g.rows, g.columns, g.out_height, g.out_width})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape(g.samples());
}
at::Tensor as_columns(const Geometry& g, const at::Tensor& points) {
  return points.view({g.batch, g.channels, g.out_height, g.rows, g.out_width, g.columns})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape({g.batch, g.channels, g.kernel() * g.places()});
}
// Columns as a matrix per group, and the weight.
at::Tensor by_group(const Geometry& g, const at::Tensor& columns) {
  return columns.reshape({g.batch, g.groups, g.channels / g.groups * g.kernel(), g.places()});
}
at::Tensor weight_by_group(const Geometry& g, const at::Tensor& weight) {
  return in_floats(weight).view(
      {g.groups, g.out_channels / g.groups, g.channels / g.groups * g.kernel()});
}

// The gradients of the images and the offsets, given those of the samples.
void sample_gradients(const Geometry& g, const at::Tensor& images, const at::Tensor& offset,
                      const at::Tensor& columns, const at::Tensor& grad_images,
                      const at::Tensor& grad_offset) {
  const auto* const data = images.const_data_ptr<float>();
  const auto* const masks = offset.const_data_ptr<float>();
  const auto* const gradients = columns.const_data_ptr<float>();
  auto* const image_out = grad_images.mutable_data_ptr<float>();
  auto* const offset_out = grad_offset.mutable_data_ptr<float>();
  const int64_t share = g.channels / g.deformable_groups;
  each_sample(g, offset,
              [&](int64_t n, int64_t group, int64_t column, const std::array<int64_t, 3>& at,
                  const Sample& sample) {
                std::array<double, 3> sums{};
                for (int64_t c = group * share; c < (group + 1) * share; ++c) {
                  const int64_t image = (n * g.channels + c) * g.height * g.width;
                  const double gradient =
                      gradients[(n * g.channels + c) * g.kernel() * g.places() + column];
                  for (const auto& corner : sample) {
                    const double value = gradient * data[image + corner.place];
                    sums[0] += value * corner.along_x;
                    sums[1] += value * corner.along_y;
                    sums[2] += value * corner.share;
                    image_out[image + corner.place] +=
                        static_cast<float>(gradient * masks[at[2]] * corner.share);
                  }
                }
                offset_out[at[0]] = static_cast<float>(sums[0] * masks[at[2]]);
                offset_out[at[1]] = static_cast<float>(sums[1] * masks[at[2]]);
                offset_out[at[2]] = static_cast<float>(sums[2]);
              });
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
  TORCH_CHECK(s.channels % 8 == 0 && s.channels <= 256, "value has ", s.channels,
              " channels, expected a multiple of 8 of at most 256");
  TORCH_CHECK(s.queries >= least_queries && s.queries < 500000, "location has ", s.queries,
              " queries, expected ", least_queries, " to 499999");
  TORCH_CHECK(s.heads <= 16, "value has ", s.heads, " heads, expected at most 16");
  TORCH_CHECK(s.levels <= 16, "location has ", s.levels, " levels, expected at most 16");
  TORCH_CHECK(s.points <= 16, "location has ", s.points, " points, expected at most 16");
  return s;
}

// The images of the levels lie one after the other among the keys.
void check_levels(const AttentionSizes& s, const at::Tensor& shapes, const at::Tensor& starts) {
  const auto* const sizes = shapes.const_data_ptr<int64_t>();
  const auto* const first = starts.const_data_ptr<int64_t>();
  for (int64_t level = 0; level < s.levels; ++level) {
    const int64_t height = sizes[2 * level], width = sizes[2 * level + 1];
    int64_t area = 0;
    const bool fits = height >= 0 && width >= 0 && first[level] >= 0 && first[level] <= s.keys &&
                      !__builtin_mul_overflow(height, width, &area) &&
                      area <= s.keys - first[level];
    TORCH_CHECK(fits, "level ", level, " begins at ", first[level], " with ", height, " by ", width,
                " elements, expected it within the ", s.keys, " keys of value");
  }
}

// Calls visit(first, weight place, sample, height, width) for every sample of every head: `first`
// is the element of value at which the head's first key of the level is.
template <class Visit>
void each_attention_sample(const AttentionSizes& s, const at::Tensor& shapes,
                           const at::Tensor& starts, const at::Tensor& location, Visit visit) {
  check_levels(s, shapes, starts);
  const auto* const sizes = shapes.const_data_ptr<int64_t>();
  const auto* const first = starts.const_data_ptr<int64_t>();
  const auto* const places = location.const_data_ptr<float>();
  const int64_t each = s.levels * s.points;
  for (int64_t i = 0; i < location.numel() / 2; ++i) {
    const int64_t head = i / each % s.heads;
    const int64_t n = i / each / s.heads / s.queries;
    const int64_t level = i / s.points % s.levels;
    const int64_t height = sizes[2 * level], width = sizes[2 * level + 1];
    const double x = static_cast<double>(places[2 * i]) * static_cast<double>(width) - 0.5;
    const double y = static_cast<double>(places[2 * i + 1]) * static_cast<double>(height) - 0.5;
    visit(((n * s.keys + first[level]) * s.heads + head) * s.channels, i,
          Sample(y, x, height, width), height, width);
  }
}

}  // namespace

// offset has the offsets along x, those along y and the masks, each [deformableGroups, kernel].
ACLNN(DeformableConv2d, (FloatIn, x), (FloatIn, weight), (FloatIn, offset),
      (OptionalIn, biasOptional), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (int64_t, groups), (int64_t, deformableGroups), (bool, modulated),
      (Out, out), (OptionalOut, deformOutOptional)) {
  const Geometry g("x", x, weight, kernelSize, stride, padding, dilation, groups, deformableGroups,
                   modulated);
  Geometry::expect_like("offset", offset, x, g.offsets());
  Geometry::expect_like("out", out, x, g.result());
  if (biasOptional) {
    Geometry::expect_like("biasOptional", *biasOptional, x, {g.out_channels});
  }
  if (deformOutOptional) {
    Geometry::expect_like("deformOutOptional", *deformOutOptional, x, g.samples());
  }
  const at::Tensor columns = sampled(g, in_floats(x), in_floats(offset));
  at::Tensor result =
      at::matmul(weight_by_group(g, weight), by_group(g, columns)).reshape(g.result());
  if (biasOptional) result = result + wide(*biasOptional).reshape({-1, 1, 1});
  deformOutOptional = as_points(g, columns);
  out = result;
}
// offsetOut is what the forward pass sampled; the gradient of weight is of that.
ACLNN(DeformableConv2dBackward, (FloatIn, input), (FloatIn, gradOutput), (FloatIn, offsetOut),
      (FloatIn, weight), (FloatIn, offset), (Ints, kernelSize), (Ints, stride), (Ints, padding),
      (Ints, dilation), (int64_t, groups), (int64_t, deformableGroups), (bool, modulated),
      (Out, gradInput), (Out, gradWeight), (Out, gradOffset), (Out, gradBias)) {
  const Geometry g("input", input, weight, kernelSize, stride, padding, dilation, groups,
                   deformableGroups, modulated);
  Geometry::expect_like("gradOutput", gradOutput, input, g.result());
  Geometry::expect_like("offsetOut", offsetOut, input, g.samples());
  Geometry::expect_like("offset", offset, input, g.offsets());
  Geometry::expect_like("gradInput", gradInput, input, input.sizes());
  Geometry::expect_like("gradWeight", gradWeight, input, weight.sizes());
  Geometry::expect_like("gradOffset", gradOffset, input, g.offsets());
  Geometry::expect_like("gradBias", gradBias, input, {g.out_channels});
  const at::Tensor images = in_floats(input), offsets = in_floats(offset);
  const at::Tensor gradients =
      in_floats(gradOutput).view({g.batch, g.groups, g.out_channels / g.groups, g.places()});
  const at::Tensor points = by_group(g, as_columns(g, in_floats(offsetOut)));
  const at::Tensor of_weight = at::matmul(gradients, points.transpose(2, 3)).sum(0);
  const at::Tensor of_samples =
      at::matmul(weight_by_group(g, weight).transpose(1, 2), gradients).contiguous();
  const at::Tensor of_images = at::zeros(input.sizes(), images.options());
  const at::Tensor of_offsets = at::zeros(offset.sizes(), images.options());
  if (has_samples(images)) {
    sample_gradients(g, images, offsets, of_samples, of_images, of_offsets);
  }
  const at::Tensor of_bias = wide(gradOutput).sum({0, 2, 3});
  gradInput = of_images;
  gradWeight = of_weight.reshape(weight.sizes());
  gradOffset = of_offsets;
  gradBias = of_bias;
}

// The last dimension of location is x, y, as parts of the width and the height.
ACLNN(MultiScaleDeformableAttnFunction, (FloatIn, value), (IndexIn, spatialShape),
      (IndexIn, levelStartIndex), (FloatIn, location), (FloatIn, attnWeight), (Out, output)) {
  const AttentionSizes s =
      attention_sizes(value, spatialShape, levelStartIndex, location, attnWeight, 32);
  expect_dtype("location", location, value);
  expect_dtype("attnWeight", attnWeight, value);
  expect_dtype("output", output, value);
  const DeformableSizes shape{s.batch, s.queries, s.heads * s.channels};
  expect_shape("output", output, shape);
  const at::Tensor result = at::zeros(shape, value.options().dtype(at::kDouble));
  if (has_samples(value)) {
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
            const float* const key = data + first + corner.place * s.heads * s.channels;
            for (int64_t c = 0; c < s.channels; ++c) {
              query[c] += factor * key[c];
            }
          }
        });
  }
  output = result;
}
ACLNN(MultiScaleDeformableAttentionGrad, (FloatIn, value), (IndexIn, spatialShape),
      (IndexIn, levelStartIndex), (FloatIn, location), (FloatIn, attnWeight), (FloatIn, gradOutput),
      (Out, gradValue), (Out, gradLocation), (Out, gradAttnWeight)) {
  const AttentionSizes s =
      attention_sizes(value, spatialShape, levelStartIndex, location, attnWeight, 0);
  expect_sampled_type("gradOutput", gradOutput);
  expect_shape("gradOutput", gradOutput, {s.batch, s.queries, s.heads * s.channels});
  const auto options = value.options().dtype(at::kDouble);
  const at::Tensor of_value = at::zeros(value.sizes(), options);
  const at::Tensor of_location = at::zeros(location.sizes(), options);
  const at::Tensor of_weight = at::zeros(attnWeight.sizes(), options);
  if (has_samples(value)) {
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
            const int64_t place = first + corner.place * s.heads * s.channels;
            const float* const key = values.const_data_ptr<float>() + place;
            double product = 0;
            for (int64_t c = 0; c < s.channels; ++c) {
              product += static_cast<double>(query[c]) * key[c];
              value_out[place + c] += corner.share * weight * query[c];
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
