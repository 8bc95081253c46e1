// Pooling with a separate padding for each side of the image, and gradients of it.

#include <array>

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/pooling/pooling_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_padded_pooling_rows {

namespace {

// The numbers for two directions; one number applies to both.
std::array<int64_t, 2> pair(at::IntArrayRef values) {
  return {values.front(), values.back()};
}

// The value of the padding: the least number of the type.
c10::Scalar lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
    case at::kBool: return 0;
    case at::kChar: return std::numeric_limits<int8_t>::lowest();
    case at::kShort: return std::numeric_limits<int16_t>::lowest();
    case at::kInt: return std::numeric_limits<int32_t>::lowest();
    case at::kLong: return std::numeric_limits<int64_t>::lowest();
    default: return -std::numeric_limits<double>::infinity();
  }
}

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// The size of one direction of an image, its padding, and the windows.
struct Direction {
  int64_t size = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;
  int64_t windows = 1;

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // The number of elements that the windows span.
  int64_t covered() const { return (windows - 1) * stride + extent(); }
  // The padding at the end for these windows; negative if elements are in no window.
  int64_t end() const { return covered() - size - before; }

  void set_padding(const char* name, at::IntArrayRef pads, size_t i) {
    before = pads[2 * i];
    after = pads[2 * i + 1];
    check_values(name, {before, after}, 0, kMost);
  }
  // Counts the windows within the padding; with `ceil`, also one that extends beyond it, unless it
  // starts there.
  void count(const char* kernel_name, bool ceil) {
    const int64_t room = size + before + after - extent();
    EXPECT(room >= 0, kernel_name, " spans ", extent(), " elements in a direction of ",
           size + before + after, " elements with the padding, expected at most that");
    windows = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (windows - 1) * stride >= size + before) --windows;
  }
  // Sets one window for each stride, and the padding that they need on both sides.
  void cover_all() {
    windows = (size + stride - 1) / stride;
    const int64_t padding = std::max<int64_t>(covered() - size, 0);
    before = padding / 2;
    after = padding - before;
  }
};

// Depth, height and width.
using Directions = std::array<Direction, 3>;

// Refuses images with excessive padding, because the host allocates memory for it.
void check_padded(const char* name, int64_t images, const Directions& directions) {
  constexpr double kManyElements = 1 << 28;
  double padded = static_cast<double>(images);
  double elements = padded;
  for (const Direction& each : directions) {
    padded *= static_cast<double>(each.covered());
    elements *= static_cast<double>(each.size);
  }
  EXPECT(padded <= std::max(kManyElements, 16 * elements), name, " would have ", padded,
         " elements with the padding, expected at most 2^28 or 16 times those without; pass "
         "smaller windows and paddings");
}

// The maxima of x, which is (samples, channels, depth, height, width).
at::Tensor maxima(const at::Tensor& x, const Directions& directions) {
  check_padded("x", x.size(0) * x.size(1), directions);
  std::vector<int64_t> padding;
  std::vector<int64_t> kernel, stride, dilation;
  for (const Direction& each : directions) {
    padding.insert(padding.begin(), {each.before, each.end()});
    kernel.push_back(each.kernel);
    stride.push_back(each.stride);
    dilation.push_back(each.dilation);
  }
  const at::Tensor padded =
      at::constant_pad_nd(wide(x), padding, -std::numeric_limits<double>::infinity());
  return std::get<0>(at::max_pool3d_with_indices(padded, kernel, stride, 0, dilation));
}

// ---- aclnnMaxPool3D

// The numbers for depth, height and width: one for all, one for each, or one for each dimension.
std::array<int64_t, 3> spatial(const char* name, at::IntArrayRef values, bool channels_last,
                               bool checks_others) {
  EXPECT(values.size() == 1 || values.size() == 3 || values.size() == 5, name, " is ", values,
         ", expected 1, 3 or 5 numbers");
  check_values(name, values, 1, kMost);
  if (values.size() == 1) return {values[0], values[0], values[0]};
  if (values.size() == 3) return {values[0], values[1], values[2]};
  const size_t depth = channels_last ? 1 : 2;
  EXPECT(!checks_others || (values[0] == 1 && values[channels_last ? 4 : 1] == 1), name, " is ",
         values, ", expected 1 for the samples and the channels");
  return {values[depth], values[depth + 1], values[depth + 2]};
}

void place_windows(Directions& directions, const std::string& mode,
                   const at::OptionalIntArrayRef& pads, bool ceil) {
  expect_text("padding", mode, {"VALID", "SAME", "CALCULATED"});
  const bool is_calculated = mode == "CALCULATED" && pads;
  EXPECT(!is_calculated || pads->size() == 6, "padsOptional is ", *pads, ", expected six numbers");
  for (size_t i = 0; i < directions.size(); ++i) {
    Direction& direction = directions[i];
    if (mode == "SAME") {
      direction.cover_all();
      continue;
    }
    if (is_calculated) direction.set_padding("padsOptional", *pads, i);
    direction.count("ksize", ceil && mode == "CALCULATED");
  }
}

// ---- aclnnAveragePoolingGrad

// The number of image elements in each window.
at::Tensor element_counts(const Direction& direction, const at::Tensor& like) {
  const at::Tensor start =
      at::arange(direction.windows, like.options().dtype(at::kLong)) * direction.stride -
      direction.before;
  const at::Tensor end = (start + direction.kernel).clamp_max(direction.size);
  return (end - start.clamp_min(0)).to(like.scalar_type());
}

at::Tensor divisors(const Direction& height, const Direction& width, bool counts_padding,
                    int64_t divisor, const at::Tensor& like) {
  if (divisor != 0 || counts_padding) {
    const double number =
        divisor != 0 ? static_cast<double>(divisor)
                     : static_cast<double>(height.kernel) * static_cast<double>(width.kernel);
    return at::zeros({}, like.options()).fill_(number);
  }
  return element_counts(height, like).unsqueeze(1) * element_counts(width, like);
}

// Requires elements for an output with elements.
void expect_elements_for(const Output& out, const at::Tensor& x) {
  EXPECT(x.numel() != 0 || out->numel() == 0, "out has shape ", out->sizes(),
         ", expected no elements as x has shape ", x.sizes());
}

}  // namespace

// Without strides they are 1. The padding has one number for both directions, one for each (top and
// bottom, left and right), or top, left, bottom and right.
ACLNN(MaxPool, (Image<In>, self), (Ints, kernelShape), (Ints, strides), (int64_t, autoPad),
      (Ints, pads), (Ints, dilations), (int64_t, ceilMode), (SameDtype<Image<Out>>, out, "self")) {
  expect_dims("self", self, 3, 4);
  expect_one_of("autoPad", autoPad, {0}, " (NOTSET)");
  EXPECT(kernelShape.size() == 1 || kernelShape.size() == 2, "kernelShape is ", kernelShape,
         ", expected one or two numbers");
  EXPECT(strides.size() <= 2, "strides is ", strides, ", expected at most two numbers");
  EXPECT(pads.size() <= 4 && pads.size() != 3, "pads is ", pads, ", expected 0, 1, 2 or 4 numbers");
  EXPECT(dilations.size() <= 4 && dilations.size() != 3, "dilations is ", dilations,
         ", expected 0, 1, 2 or 4 numbers");
  check_values("kernelShape", kernelShape, 1, kMost);
  check_values("strides", strides, 1, kMost);
  check_values("pads", pads, 0, kMost);
  check_values("dilations", dilations, 1, 1);
  const auto kernel = pair(kernelShape);
  const auto stride = strides.empty() ? std::array<int64_t, 2>{1, 1} : pair(strides);
  const auto before = pads.empty() ? std::array<int64_t, 2>{0, 0}
                                   : pair(pads.slice(0, std::min<size_t>(pads.size(), 2)));
  const auto after = pads.size() == 4 ? pair(pads.slice(2)) : before;
  Directions directions;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT(before[i] + after[i] <= kernel[i], "pads is ", pads, ", expected a sum of at most ",
           kernel[i], ", the size of the window");
    Direction& direction = directions[i + 1];
    direction = {self.size(static_cast<int64_t>(i) - 2), kernel[i], stride[i]};
    direction.before = before[i];
    direction.after = after[i];
    direction.count("kernelShape", ceilMode != 0);
  }
  const Direction &height = directions[1], &width = directions[2];
  check_padded("self", product(self.sizes().slice(0, self.sizes().size() - 2)), directions);
  const auto dtype = self.scalar_type();
  const bool is_unsigned = dtype == at::kUInt16 || dtype == at::kUInt32;
  const at::Tensor x = is_unsigned ? self.to(at::kLong) : self;
  const at::Tensor padded = at::constant_pad_nd(
      x, {width.before, width.end(), height.before, height.end()}, lowest(x.scalar_type()));
  out = at::amax(padded.unfold(-2, kernel[0], stride[0]).unfold(-2, kernel[1], stride[1]), {-2, -1})
            .to(dtype);
}
// x is (samples, channels, height, width). The padding is top, bottom, left, right.
ACLNN(MaxPoolV3, (Image<Floating<In>>, x), (Ints, ksize), (Ints, strides), (Optional<Ints>, pads),
      (Optional<Number>, ceilMode), (SameDtype<Image<Out>>, out, "x")) {
  expect_dims("x", x, 4);
  expect_dims("out", out, 4);
  EXPECT(ksize.size() == 4 && ksize[0] == 1 && ksize[1] == 1, "ksize is ", ksize,
         ", expected 1, 1 and two sizes of a window");
  EXPECT(strides.size() == 4 && strides[0] == 1 && strides[1] == 1, "strides is ", strides,
         ", expected 1, 1 and two strides");
  EXPECT(!pads || pads->empty() || pads->size() == 4, "pads is ", *pads, ", expected four numbers");
  expect_elements_for(out, x);
  if (out->numel() == 0) return;
  check_values("ksize", ksize, 1, kMost);
  check_values("strides", strides, 1, kMost);
  Directions directions;
  for (size_t i = 0; i < 2; ++i) {
    Direction& direction = directions[i + 1];
    direction = {x.size(static_cast<int64_t>(i) + 2), ksize[i + 2], strides[i + 2]};
    if (pads && !pads->empty()) direction.set_padding("pads", *pads, i);
    direction.count("ksize", ceilMode && ceilMode->toLong() != 0);
  }
  out = maxima(x.unsqueeze(2), directions).squeeze(2);
}

// Depth, height and width precede the channels, or follow them with NCDHW. padsOptional and
// ceilMode are read with CALCULATED padding only.
ACLNN(MaxPool3D, (Floating<In>, x), (Ints, ksize), (Ints, strides), (const char*, padding),
      (Optional<Ints>, padsOptional), (Optional<Ints>, dilationOptional), (int64_t, ceilMode),
      (char*, dataFormatOptional), (SameDtype<Out>, out, "x")) {
  expect_dims("x", x, 5);
  expect_dims("out", out, 5);
  const bool channels_last = dataFormatOptional.empty() || dataFormatOptional == "NDHWC";
  if (!channels_last) expect_text("dataFormatOptional", dataFormatOptional, {"NCDHW", "NDHWC"});
  const auto kernel = spatial("ksize", ksize, channels_last, true);
  const auto stride = spatial("strides", strides, channels_last, true);
  const auto dilation =
      spatial("dilationOptional", dilationOptional ? *dilationOptional : at::IntArrayRef(1),
              channels_last, false);
  expect_elements_for(out, x);
  if (out->numel() == 0) return;
  const at::Tensor image = channels_last ? x.permute({0, 4, 1, 2, 3}) : x;
  Directions directions;
  for (size_t i = 0; i < directions.size(); ++i) {
    directions[i] = {image.size(static_cast<int64_t>(i) + 2), kernel[i], stride[i], dilation[i]};
  }
  place_windows(directions, padding, padsOptional, ceilMode != 0);
  const at::Tensor result = maxima(image, directions);
  out = channels_last ? result.permute({0, 2, 3, 4, 1}) : result;
}

// y has the maxima of the windows of x.
ACLNN(MaxPoolingGrad, (Image<Floating<In>>, dy), (Like<Image<Floating<In>>>, x, "dy"),
      (Like<Image<Floating<In>>>, y, "dy"), (Like<Image<Out>>, dx, "dy")) {
  dx = dy.masked_fill(x != y, 0);
}

// A divisor counts all elements of a window, including the padding, also where the window extends
// beyond the padding.
ACLNN(AveragePoolingGrad, (Ints, origInputShape), (Image<Floating<In>>, gradOutput),
      (int64_t, kernelH), (int64_t, kernelW), (int64_t, strideH), (int64_t, strideW),
      (int64_t, padTop), (int64_t, padBottom), (int64_t, padLeft), (int64_t, padRight),
      (bool, ceilMode), (bool, countIncludePad), (int64_t, divisorOverride),
      (SameDtype<Image<Out>>, out, "gradOutput")) {
  expect_dims("gradOutput", gradOutput, 4);
  EXPECT(origInputShape.size() == 4 &&
             std::ranges::all_of(origInputShape, [](int64_t size) { return size > 0; }),
         "origInputShape is ", origInputShape, ", expected four sizes");
  expect_shape("out", out, origInputShape);
  expect_at_least("divisorOverride", divisorOverride, 0);
  Directions directions;
  expect_range("kernelH", kernelH, 1, kMost);
  expect_range("kernelW", kernelW, 1, kMost);
  expect_range("strideH", strideH, 1, kMost);
  expect_range("strideW", strideW, 1, kMost);
  check_values("padTop, padBottom", {padTop, padBottom}, 0, kMost);
  check_values("padLeft, padRight", {padLeft, padRight}, 0, kMost);
  Direction &height = directions[1], &width = directions[2];
  height = {origInputShape[2], kernelH, strideH, 1, padTop, padBottom};
  width = {origInputShape[3], kernelW, strideW, 1, padLeft, padRight};
  EXPECT(2 * std::max(height.before, height.after) <= height.kernel, "padTop is ", height.before,
         " and padBottom ", height.after, ", expected at most half of kernelH, ", height.kernel);
  EXPECT(2 * std::max(width.before, width.after) <= width.kernel, "padLeft is ", width.before,
         " and padRight ", width.after, ", expected at most half of kernelW, ", width.kernel);
  height.count("kernelH", ceilMode);
  width.count("kernelW", ceilMode);
  expect_shape("gradOutput", gradOutput,
               {origInputShape[0], origInputShape[1], height.windows, width.windows});
  check_padded("out", out->size(0) * out->size(1), directions);
  const at::Tensor gradient = wide(gradOutput);
  const at::Tensor shares =
      gradient / divisors(height, width, countIncludePad, divisorOverride, gradient);
  const at::Tensor padded = at::avg_pool2d_backward(
      shares,
      at::zeros({out->size(0), out->size(1), height.covered(), width.covered()},
                gradient.options()),
      {height.kernel, width.kernel}, {height.stride, width.stride}, {0, 0}, /*ceil_mode=*/false,
      /*count_include_pad=*/true, /*divisor_override=*/1);
  // The padding is cropped, and elements in no window get 0.
  out = at::constant_pad_nd(padded, {-width.before, -width.end(), -height.before, -height.end()});
}

}  // namespace aclnn_host::pooling_padded_pooling_rows
