// Quantisation to integers, which saturate. Roundings are to the nearest integer, halves to the
// even one, unless a mode says otherwise. NaN becomes 0.

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

void expect_int8(const char* name, const at::Tensor& y, int64_t dtype) {
  TORCH_CHECK(dtype == 2, "dstType is ", dtype,
              ", expected 2 (INT8), the only one that the host CANN emulates");
  expect_dtype(name, y, at::kChar);
}

int64_t from_start(int64_t axis, const at::Tensor& x) {
  return axis < 0 ? axis + x.dim() : axis;
}

at::Tensor rounded(const at::Tensor& x, const std::string& mode) {
  if (mode == "ceil") return at::ceil(x);
  if (mode == "trunc") return at::trunc(x);
  if (mode == "floor") return at::floor(x);
  TORCH_CHECK(mode == "round", "roundMode is \"", mode,
              "\", expected \"round\", \"ceil\", \"trunc\" or \"floor\"");
  return at::round(x);
}

template <class Integer>
at::Tensor saturated_to(const at::Tensor& x) {
  constexpr double low = std::numeric_limits<Integer>::min();
  constexpr double high = std::numeric_limits<Integer>::max();
  return at::clamp(at::nan_to_num(x.to(at::kDouble), 0.0, high, low), low, high)
      .to(c10::CppTypeToScalarType<Integer>::value);
}
at::Tensor saturated(const at::Tensor& x, at::ScalarType type) {
  switch (type) {
    case at::kChar: return saturated_to<int8_t>(x);
    case at::kByte: return saturated_to<uint8_t>(x);
    default: return saturated_to<int32_t>(x);
  }
}

// Parameters along one dimension of x, or a single one: of one dimension, or of as many as x has.
at::Tensor along(const char* name, const at::Tensor& parameters, const at::Tensor& x,
                 int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = parameters.numel();
  const bool is_one = parameters.dim() == 1 || parameters.sizes() == shape;
  TORCH_CHECK(is_one && (parameters.numel() == 1 || parameters.numel() == x.size(axis)), name,
              " has shape ", parameters.sizes(), ", expected 1 or ", x.size(axis),
              " elements along dimension ", axis, " of x");
  return wide(parameters).reshape(shape);
}

// x as parameters of the tokens scale it before it is quantised, one row for each token.
at::Tensor smoothed(const at::Tensor& x, const std::optional<at::Tensor>& scales,
                    const std::optional<at::Tensor>& groups) {
  TORCH_CHECK(x.dim() >= 2, "x has ", x.dim(), " dimensions, expected 2 or more");
  const int64_t size = x.size(-1);
  at::Tensor rows = wide(x).flatten(0, -2);
  TORCH_CHECK(scales || !groups,
              "smoothScalesOptional is null, expected a tensor as groupIndexOptional is");
  if (!scales) return rows;
  expect_dtype("smoothScalesOptional", *scales, x.scalar_type());
  if (!groups) {
    expect_shape("smoothScalesOptional", *scales, {size});
    return rows * wide(*scales);
  }
  TORCH_CHECK(groups->scalar_type() == at::kInt || groups->scalar_type() == at::kLong,
              "groupIndexOptional has dtype ", dtype_text(groups->scalar_type()),
              ", expected INT32 or INT64");
  TORCH_CHECK(groups->dim() == 1 && groups->size(0) > 0, "groupIndexOptional has shape ",
              groups->sizes(), ", expected one dimension with elements");
  expect_shape("smoothScalesOptional", *scales, {groups->size(0), size});
  // A group ends before the row that groupIndexOptional says.
  const at::Tensor row = at::arange(rows.size(0), rows.options().dtype(at::kLong)).unsqueeze(1);
  const at::Tensor group = at::ge(row, groups->to(at::kLong)).sum(1);
  if (!is_rehearsed()) check_bounds("the group of a row", group, groups->size(0));
  return rows * wide(*scales).index_select(0, group.clamp_max(groups->size(0) - 1));
}

// Scales, and offsets if there is an output for them, by the extremes of each row.
void quantize_rows(const at::Tensor& x, const at::Tensor& rows, Output& y, Output& scale_out,
                   OptionalOutput& offset_out) {
  expect_dtype("scaleOut", scale_out, at::kFloat);
  const at::IntArrayRef shape = x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
  expect_shape("yOut", y, x.sizes());
  expect_shape("scaleOut", scale_out, shape);
  TORCH_CHECK(x.size(-1) > 0 || rows.size(0) == 0, "x has shape ", x.sizes(),
              ", expected elements in its rows");
  if (x.numel() == 0) return;
  at::Tensor scale = at::amax(rows.abs(), -1, /*keepdim=*/true) / 127;
  at::Tensor result;
  if (offset_out) {
    const at::Tensor high = at::amax(rows, -1, /*keepdim=*/true);
    scale = (high - at::amin(rows, -1, /*keepdim=*/true)) / 255;
    const at::Tensor offset = 127 - high / scale;
    result = rows / scale + offset;
    offset_out = offset.reshape(shape);
  } else {
    result = rows / scale;
  }
  y = saturated(at::round(result), at::kChar).reshape(x.sizes());
  scale_out = scale.reshape(shape);
}

// (x * scale [* scale]) + offset, rounded.
at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale,
                  const std::optional<at::Tensor>& offset, bool sqrt, const std::string& mode,
                  int64_t axis) {
  const at::Tensor factor = along("scale", scale, x, axis);
  at::Tensor result = wide(x) * factor;
  if (sqrt) result = result * factor;
  if (offset) {
    expect_dtype("offset", *offset, scale.scalar_type());
    expect_shape("offset", *offset, scale.sizes());
    result = result + along("offset", *offset, x, axis);
  }
  return saturated(rounded(result, mode), at::kChar);
}

void check_limits(int64_t low, int64_t high) {
  TORCH_CHECK(low <= high, "quantMin is ", low, ", expected at most quantMax, which is ", high);
}

// Rounds to a grid and back; the mask says which elements lie on the grid.
void fake_quantize(const at::Tensor& self, const at::Tensor& scale, const at::Tensor& zero,
                   int64_t low, int64_t high, Output& out, Output& mask) {
  check_limits(low, high);
  const at::Tensor place = at::round(wide(self) / scale).to(at::kDouble) + zero;
  out = ((at::clamp(place, low, high) - zero) * scale);
  mask = (place >= low) & (place <= high);
}
void check_fake(const at::Tensor& self, const at::Tensor& zero, const Output& out,
                const Output& mask) {
  expect_dtype("zeroPoint", zero, at::kInt);
  expect_dtype("out", out, self.scalar_type());
  expect_dtype("mask", mask, at::kBool);
}

}  // namespace

ACLNN(DynamicQuant, (FloatIn, x), (OptionalIn, smoothScalesOptional), (Out, yOut),
      (Out, scaleOut)) {
  expect_int8("yOut", yOut, 2);
  OptionalOutput none;
  quantize_rows(x, smoothed(x, smoothScalesOptional, std::nullopt), yOut, scaleOut, none);
}
// Without offsetOut the quantisation is symmetric.
ACLNN(DynamicQuantV2, (FloatIn, x), (OptionalIn, smoothScalesOptional),
      (OptionalIn, groupIndexOptional), (int64_t, dstType), (Out, yOut), (Out, scaleOut),
      (OptionalOut, offsetOut)) {
  expect_int8("yOut", yOut, dstType);
  quantize_rows(x, smoothed(x, smoothScalesOptional, groupIndexOptional), yOut, scaleOut,
                offsetOut);
}

ACLNN(AscendQuant, (FloatIn, x), (FloatIn, scale), (OptionalIn, offset), (bool, sqrtMode),
      (const char*, roundMode), (int32_t, dstType), (Out, y)) {
  TORCH_CHECK(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  expect_int8("y", y, dstType);
  if (x.scalar_type() != at::kFloat) expect_dtype("scale", scale, x.scalar_type());
  y = scaled(x, scale, offset, sqrtMode, roundMode, x.dim() - 1);
}
// axis is one of the last two dimensions.
ACLNN(AscendQuantV3, (FloatIn, x), (FloatIn, scale), (OptionalIn, offset), (bool, sqrtMode),
      (const char*, roundMode), (int32_t, dstType), (int32_t, axis), (Out, y)) {
  TORCH_CHECK(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  const int64_t place = from_start(axis, x);
  TORCH_CHECK(place >= 0 && place >= x.dim() - 2 && place < x.dim(), "axis is ", axis.value(),
              ", expected one of the last two dimensions of x, which has ", x.dim());
  expect_int8("y", y, dstType);
  expect_dtype("scale", scale, x.scalar_type());
  y = scaled(x, scale, offset, sqrtMode, roundMode, place);
}
// Adds the offset first.
ACLNN(AscendAntiQuant, (In, x), (FloatIn, scale), (OptionalIn, offset), (int64_t, dstType),
      (bool, sqrtMode), (Out, y)) {
  TORCH_CHECK(x.scalar_type() == at::kChar, "x has dtype ", dtype_text(x.scalar_type()),
              ", expected INT8; the host CANN does not emulate INT4");
  TORCH_CHECK(dstType == 1 || dstType == 27, "dstType is ", dstType.value(),
              ", expected 1 (FLOAT16) or 27 (BFLOAT16)");
  expect_dtype("y", y, dstType == 1 ? at::kHalf : at::kBFloat16);
  const int64_t size = x.dim() > 0 ? x.size(-1) : 1;
  TORCH_CHECK(scale.dim() == 1 && (scale.size(0) == 1 || scale.size(0) == size), "scale has shape ",
              scale.sizes(), ", expected 1 or ", size, " elements");
  at::Tensor result = x.to(wide(scale.scalar_type()));
  if (offset) {
    expect_dtype("offset", *offset, scale.scalar_type());
    expect_shape("offset", *offset, scale.sizes());
    result = result + wide(*offset);
  }
  result = result * wide(scale);
  if (sqrtMode) result = result * wide(scale);
  y = result.reshape(x.sizes());
}

// A scale of 0 is 1. Where a tensor is empty, nothing is written.
ACLNN(Quantize, (FloatIn, x), (FloatIn, scales), (OptionalIn, zeroPoints), (aclDataType, dtype),
      (int32_t, axis), (Out, out)) {
  TORCH_CHECK(dtype == at::kChar || dtype == at::kByte || dtype == at::kInt, "dtype is ", dtype,
              ", expected INT8, UINT8 or INT32");
  expect_dtype("out", out, dtype);
  expect_shape("out", out, x.sizes());
  TORCH_CHECK(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  TORCH_CHECK(scales.numel() <= 1 || (axis >= -x.dim() && axis < x.dim()), "axis is ", axis.value(),
              ", expected ", -x.dim(), " to ", x.dim() - 1);
  TORCH_CHECK(scales.dim() == 1, "scales has ", scales.dim(), " dimensions, expected 1");
  if (zeroPoints) expect_shape("zeroPoints", *zeroPoints, scales.sizes());
  const auto is_bfloat16 = [](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kBFloat16;
  };
  const bool any = is_bfloat16(scales) || (zeroPoints && is_bfloat16(*zeroPoints));
  TORCH_CHECK(
      !any || (is_bfloat16(x) && is_bfloat16(scales) && (!zeroPoints || is_bfloat16(*zeroPoints))),
      "scales or zeroPoints is BFLOAT16, expected x, scales and zeroPoints to be BFLOAT16");
  if (scales.numel() == 0 || x.numel() == 0) return;
  const int64_t place = scales.numel() == 1 ? 0 : from_start(axis, x);
  const at::Tensor scale = along("scales", scales, x, place);
  at::Tensor result = wide(x) / at::where(scale == 0, at::ones_like(scale), scale);
  if (zeroPoints) result = result + along("zeroPoints", *zeroPoints, x, place);
  out = saturated(at::round(result), dtype);
}

// Below 1, fakeQuantEnabled leaves self as it is.
ACLNN(FakeQuantPerTensorAffineCachemask, (FloatIn, self), (FloatIn, scale), (In, zeroPoint),
      (float, fakeQuantEnabled), (int64_t, quantMin), (int64_t, quantMax), (Out, out),
      (Out, mask)) {
  check_fake(self, zeroPoint, out, mask);
  TORCH_CHECK(scale.numel() == 1 && zeroPoint.numel() == 1, "scale has ", scale.numel(),
              " elements and zeroPoint has ", zeroPoint.numel(), ", expected 1");
  check_limits(quantMin, quantMax);
  if (fakeQuantEnabled >= 1.0) {
    fake_quantize(self, wide(scale).reshape({}), zeroPoint.reshape({}), quantMin, quantMax, out,
                  mask);
  } else {
    out = self;
    mask = at::ones_like(self, self.options().dtype(at::kBool));
  }
}
ACLNN(FakeQuantPerChannelAffineCachemask, (FloatIn, self), (FloatIn, scale), (In, zeroPoint),
      (int64_t, axis), (int64_t, quantMin), (int64_t, quantMax), (Out, out), (Out, mask)) {
  check_fake(self, zeroPoint, out, mask);
  TORCH_CHECK(self.dim() > 0 && axis >= -self.dim() && axis < self.dim(), "axis is ", axis.value(),
              ", expected ", -self.dim(), " to ", self.dim() - 1);
  const int64_t place = from_start(axis, self);
  expect_shape("scale", scale, {self.size(place)});
  expect_shape("zeroPoint", zeroPoint, {self.size(place)});
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(place)] = self.size(place);
  fake_quantize(self, wide(scale).reshape(shape), zeroPoint.reshape(shape), quantMin, quantMax, out,
                mask);
}
