// Pooling with a padding for each side of the image, and gradients of it.

#include <algorithm>
#include <array>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/zeros.h>

#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/row.h"

namespace aclnn_host::padded_pooling_rows {

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

void check_number(const char* name, int64_t value, int64_t least) {
  EXPECT(value >= least && value <= kMost, name, " has ", value, ", expected numbers from ", least,
         " to ", kMost);
}

// One direction of an image, its padding, and the windows that run over it.
struct Direction {
  int64_t size = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;
  int64_t windows = 1;

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // How many elements the windows cover together.
  int64_t covered() const { return (windows - 1) * stride + extent(); }

  // Windows within the padding; with `ceil`, also one that reaches beyond it, unless it starts
  // there.
  void count(bool ceil) {
    const int64_t room = size + before + after - extent();
    EXPECT(room >= 0, "a window reaches over ", extent(), " elements in a direction of ",
           size + before + after, " elements with the padding, expected at most that");
    windows = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (windows - 1) * stride >= size + before) --windows;
  }
  // As many windows as strides, with the padding that they need on both sides.
  void cover_all() {
    windows = (size + stride - 1) / stride;
    const int64_t padding = std::max<int64_t>(covered() - size, 0);
    before = padding / 2;
    after = padding - before;
  }
};

// Depth, height and width.
using Directions = std::array<Direction, 3>;

// Refuses images of which the padding is nearly all, as it is in memory here.
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

// The maxima of x of five dimensions: samples, channels, depth, height, width.
at::Tensor maxima(const at::Tensor& x, const Directions& directions) {
  check_padded("x", x.size(0) * x.size(1), directions);
  std::vector<int64_t> padding;
  std::vector<int64_t> kernel, stride, dilation;
  for (const Direction& each : directions) {
    // Elements in no window are cut off.
    padding.insert(padding.begin(), {each.before, each.covered() - each.size - each.before});
    kernel.push_back(each.kernel);
    stride.push_back(each.stride);
    dilation.push_back(each.dilation);
  }
  const at::Tensor padded =
      at::constant_pad_nd(wide(x), padding, -std::numeric_limits<double>::infinity());
  return std::get<0>(at::max_pool3d_with_indices(padded, kernel, stride, 0, dilation));
}

// ---- aclnnMaxPool3D

// Numbers for depth, height and width: one for all, one for each, or one for each dimension.
std::array<int64_t, 3> spatial(const char* name, at::IntArrayRef values, bool channels_last,
                               bool checks_others) {
  EXPECT(values.size() == 1 || values.size() == 3 || values.size() == 5, name, " is ", values,
         ", expected 1, 3 or 5 numbers");
  for (const int64_t value : values) check_number(name, value, 1);
  if (values.size() == 1) return {values[0], values[0], values[0]};
  if (values.size() == 3) return {values[0], values[1], values[2]};
  const size_t depth = channels_last ? 1 : 2;
  EXPECT(!checks_others || (values[0] == 1 && values[channels_last ? 4 : 1] == 1), name, " is ",
         values, ", expected 1 for the samples and the channels");
  return {values[depth], values[depth + 1], values[depth + 2]};
}

void place_windows(Directions& directions, const std::string& mode,
                   const at::OptionalIntArrayRef& pads, bool ceil) {
  EXPECT(mode == "VALID" || mode == "SAME" || mode == "CALCULATED", "padding is \"", mode,
         "\", expected VALID, SAME or CALCULATED");
  const bool is_calculated = mode == "CALCULATED" && pads;
  EXPECT(!is_calculated || pads->size() == 6, "padsOptional is ", *pads, ", expected six numbers");
  for (size_t i = 0; i < directions.size(); ++i) {
    Direction& direction = directions[i];
    if (mode == "SAME") {
      direction.cover_all();
      continue;
    }
    if (is_calculated) {
      direction.before = (*pads)[2 * i];
      direction.after = (*pads)[2 * i + 1];
      check_number("padsOptional", direction.before, 0);
      check_number("padsOptional", direction.after, 0);
    }
    direction.count(ceil && mode == "CALCULATED");
  }
}

// ---- aclnnAveragePoolingGrad

// How many elements of the image each window has.
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

}  // namespace

// Depth, height and width lie before the channels, or after them with NCDHW. Only CALCULATED
// padding takes padsOptional and ceilMode. A tensor without elements leaves out alone.
ACLNN(MaxPool3D, (FloatIn, x), (Ints, ksize), (Ints, strides), (const char*, padding),
      (OptionalInts, padsOptional), (OptionalInts, dilationOptional), (int64_t, ceilMode),
      (char*, dataFormatOptional), (Out, out)) {
  expect_dtype(out, x);
  expect_dims("x", x, 5);
  expect_dims("out", out, 5);
  const bool channels_last = dataFormatOptional.empty() || dataFormatOptional == "NDHWC";
  EXPECT(channels_last || dataFormatOptional == "NCDHW", "dataFormatOptional is \"",
         dataFormatOptional, "\", expected NCDHW or NDHWC");
  const auto kernel = spatial("ksize", ksize, channels_last, true);
  const auto stride = spatial("strides", strides, channels_last, true);
  const auto dilation =
      spatial("dilationOptional", dilationOptional ? *dilationOptional : at::IntArrayRef(1),
              channels_last, false);
  if (x.numel() == 0 || out->numel() == 0) return;
  const at::Tensor image = channels_last ? x.permute({0, 4, 1, 2, 3}) : x;
  Directions directions;
  for (size_t i = 0; i < directions.size(); ++i) {
    directions[i] = {image.size(static_cast<int64_t>(i) + 2), kernel[i], stride[i], dilation[i]};
  }
  place_windows(directions, padding, padsOptional, ceilMode != 0);
  const at::Tensor result = maxima(image, directions);
  out = channels_last ? result.permute({0, 2, 3, 4, 1}) : result;
}

// Samples, channels, height, width. The padding is that of the top, bottom, left and right.
ACLNN(MaxPoolV3, (Image<FloatIn>, x), (Ints, ksize), (Ints, strides), (OptionalInts, pads),
      (OptionalNumber, ceilMode), (Image<Out>, out)) {
  expect_dtype(out, x);
  expect_dims("x", x, 4);
  expect_dims("out", out, 4);
  EXPECT(ksize.size() == 4 && ksize[0] == 1 && ksize[1] == 1, "ksize is ", at::IntArrayRef(ksize),
         ", expected 1, 1 and two sizes of a window");
  EXPECT(strides.size() == 4 && strides[0] == 1 && strides[1] == 1, "strides is ",
         at::IntArrayRef(strides), ", expected 1, 1 and two strides");
  EXPECT(!pads || pads->empty() || pads->size() == 4, "pads is ", *pads, ", expected four numbers");
  if (x.numel() == 0 || out->numel() == 0) return;
  Directions directions;
  for (size_t i = 0; i < 2; ++i) {
    check_number("ksize", ksize[i + 2], 1);
    check_number("strides", strides[i + 2], 1);
    Direction direction{x.size(static_cast<int64_t>(i) + 2), ksize[i + 2], strides[i + 2]};
    if (pads && !pads->empty()) {
      direction.before = (*pads)[2 * i];
      direction.after = (*pads)[2 * i + 1];
      check_number("pads", direction.before, 0);
      check_number("pads", direction.after, 0);
    }
    direction.count(ceilMode && ceilMode->toLong() != 0);
    directions[i + 1] = direction;
  }
  out = maxima(x.unsqueeze(2), directions).squeeze(2);
}

// y has the maximum of its window at each element of x.
ACLNN(MaxPoolingGrad, (Image<FloatIn>, dy), (Image<FloatIn>, x), (Image<FloatIn>, y),
      (Image<Out>, dx)) {
  expect_like("x", x, dy);
  expect_like("y", y, dy);
  expect_like("dx", dx, dy);
  dx = dy.masked_fill(x != y, 0);
}

// A divisor counts the padding as whole windows, also where one reaches beyond the padding.
ACLNN(AveragePoolingGrad, (Ints, origInputShape), (Image<FloatIn>, gradOutput), (int64_t, kernelH),
      (int64_t, kernelW), (int64_t, strideH), (int64_t, strideW), (int64_t, padTop),
      (int64_t, padBottom), (int64_t, padLeft), (int64_t, padRight), (bool, ceilMode),
      (bool, countIncludePad), (int64_t, divisorOverride), (Image<Out>, out)) {
  expect_dtype(out, gradOutput);
  expect_dims("gradOutput", gradOutput, 4);
  EXPECT(origInputShape.size() == 4 &&
             std::ranges::all_of(origInputShape, [](int64_t size) { return size > 0; }),
         "origInputShape is ", at::IntArrayRef(origInputShape), ", expected four sizes");
  expect_shape("out", out, origInputShape);
  EXPECT(divisorOverride >= 0, "divisorOverride is ", divisorOverride, ", expected at least 0");
  Directions directions;
  directions[1] = {origInputShape[2], kernelH.value(),  strideH.value(), 1,
                   padTop.value(),    padBottom.value()};
  directions[2] = {origInputShape[3], kernelW.value(), strideW.value(), 1,
                   padLeft.value(),   padRight.value()};
  for (size_t i = 1; i < directions.size(); ++i) {
    Direction& each = directions[i];
    check_number("the kernel", each.kernel, 1);
    check_number("the stride", each.stride, 1);
    check_number("the padding", each.before, 0);
    check_number("the padding", each.after, 0);
    EXPECT(2 * std::max(each.before, each.after) <= each.kernel, "the padding is ", each.before,
           " and ", each.after, ", expected at most half of the kernel, ", each.kernel);
    each.count(ceilMode);
  }
  const Direction& height = directions[1];
  const Direction& width = directions[2];
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
  // The padding is cut off, and elements in no window get 0.
  out =
      at::constant_pad_nd(padded, {-width.before, width.size + width.before - width.covered(),
                                   -height.before, height.size + height.before - height.covered()});
}

}  // namespace aclnn_host::padded_pooling_rows
