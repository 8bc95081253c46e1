// Quantisation to integers with saturation. Values round to the nearest integer, ties to even,
// unless a mode selects another rounding. NaN becomes 0.

#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantization_rows {

namespace {

int64_t from_start(int64_t axis, const at::Tensor& x) {
  return axis < 0 ? axis + x.dim() : axis;
}

at::Tensor rounded(const at::Tensor& x, const std::string& mode) {
  expect_text("roundMode", mode, {"round", "ceil", "trunc", "floor"});
  if (mode == "ceil") return at::ceil(x);
  if (mode == "trunc") return at::trunc(x);
  return mode == "floor" ? at::floor(x) : at::round(x);
}

// Parameters along one dimension of x, or a single one: a vector, or a tensor of x's rank.
at::Tensor along(const char* name, const at::Tensor& parameters, const at::Tensor& x,
                 int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = parameters.numel();
  const bool is_one = parameters.dim() == 1 || parameters.sizes() == shape;
  EXPECT(is_one && (parameters.numel() == 1 || parameters.numel() == x.size(axis)), name,
         " has shape ", parameters.sizes(), ", expected 1 or ", x.size(axis),
         " elements along dimension ", axis, " of x");
  return wide(parameters).reshape(shape);
}

// Quantises (x * scale [* scale]) + offset. FLOAT8 types round as ATen's casts do.
void quantize_scaled(StoredOutput& y, const at::Tensor& x, const at::Tensor& scale,
                     const std::optional<at::Tensor>& offset, bool sqrt, const std::string& mode,
                     int64_t axis) {
  const at::Tensor factor = along("scale", scale, x, axis);
  at::Tensor result = wide(x) * factor;
  if (sqrt) result = result * factor;
  if (offset) result = result + along("offset", *offset, x, axis);
  const at::Tensor integers = rounded(result, mode);
  expect_values(y, x.sizes());
  quantize(y, is_floating(y.dtype()) ? result : integers);
}

void check_limits(int64_t low, int64_t high) {
  EXPECT(low <= high, "quantMin is ", low, ", expected at most quantMax, which is ", high);
}

// Quantises and dequantises; the mask marks the elements within the quantised range.
void fake_quantize(const at::Tensor& self, const at::Tensor& scale, const at::Tensor& zero,
                   int64_t low, int64_t high, Output& out, Output& mask) {
  check_limits(low, high);
  const at::Tensor quantized = at::round(wide(self) / scale).to(at::kDouble) + zero;
  out = ((at::clamp(quantized, low, high) - zero) * scale);
  mask = (quantized >= low) & (quantized <= high);
}
void check_fake(const at::Tensor& zero, const Output& mask) {
  expect_dtype("zeroPoint", zero, at::kInt);
  expect_dtype("mask", mask, at::kBool);
}

}  // namespace

// Behaviour of AscendQuant*: Elements are rounded half to even and saturated, to INT8, INT4 or
// eight elements of 4 bits in an INT32; those of AscendQuantV3 also to FLOAT8_E4M3FN and
// FLOAT8_E5M2.
// Limit of AscendQuant*: HIFLOAT8 is refused with 161002.
ACLNN(AscendQuant, (Floating<In>, x), (Floating<In>, scale), (Like<Optional<In>>, offset, "scale"),
      (bool, sqrtMode), (const char*, roundMode), (int32_t, dstType), (Stored<Out>, y)) {
  EXPECT(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  expect_type("dstType", dstType, y, {ACL_INT8, ACL_INT32, ACL_INT4});
  if (x.scalar_type() != at::kFloat) expect_dtype("scale", scale, x.scalar_type());
  quantize_scaled(y, x, scale, offset, sqrtMode, roundMode, x.dim() - 1);
}
// axis is one of the last two dimensions.
ACLNN(AscendQuantV3, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (Like<Optional<In>>, offset, "scale"), (bool, sqrtMode), (const char*, roundMode),
      (int32_t, dstType), (int32_t, axis), (Stored<Out>, y)) {
  EXPECT(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  const int64_t dim = from_start(axis, x);
  EXPECT(dim >= 0 && dim >= x.dim() - 2 && dim < x.dim(), "axis is ", axis.value(),
         ", expected one of the last two dimensions of x, which has ", x.dim());
  expect_type("dstType", dstType, y,
              {ACL_INT8, ACL_INT32, ACL_INT4, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  quantize_scaled(y, x, scale, offset, sqrtMode, roundMode, dim);
}
// Adds the offset first. There is one scale for all elements, for each element of the last
// dimension, or for each of the one before it.
ACLNN(AscendAntiQuant, (Stored<In>, x), (Floating<In>, scale),
      (Like<Optional<In>>, offset, "scale"), (int64_t, dstType), (bool, sqrtMode), (Out, y)) {
  expect_type("x", x, {ACL_INT8, ACL_INT4, ACL_INT32, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_format("x", x);
  EXPECT(!is_float8(x.dtype) || !sqrtMode, "sqrtMode is true, expected false as x is ",
         dtype_name(x.dtype));
  if (is_float8(x.dtype)) expect_dtype("scale", scale, at::kFloat);
  EXPECT(dstType == 1 || dstType == 27, "dstType is ", dstType.value(),
         ", expected 1 (FLOAT16) or 27 (BFLOAT16)");
  expect_dtype("y", y, dstType == 1 ? at::kHalf : at::kBFloat16);
  const at::Tensor values = is_packed(x.dtype) ? unpacked_rows(x.elements) : x.elements;
  std::vector<int64_t> shape(static_cast<size_t>(scale.dim()), 1);
  const auto fits = [&](int64_t dim) {
    const bool is_short = scale.dim() == 1;
    if (values.dim() < -dim || (!is_short && scale.dim() != values.dim())) return false;
    shape.assign(static_cast<size_t>(is_short ? -dim : scale.dim()), 1);
    *(shape.end() + dim) = values.size(dim);
    return is_short ? scale.size(0) == values.size(dim) : scale.sizes() == shape;
  };
  const bool is_one = scale.numel() == 1 && (scale.dim() == 1 || scale.dim() == values.dim());
  EXPECT(is_one || fits(-1) || fits(-2), "scale has shape ", scale.sizes(),
         ", expected 1 element, or those of one of the last two dimensions of ", values.sizes());
  const auto factor = [&](const at::Tensor& tensor) {
    return wide(is_one ? tensor.reshape({}) : tensor.reshape(shape));
  };
  at::Tensor result = values.to(wide(scale.scalar_type()));
  if (offset) result = result + factor(*offset);
  result = result * factor(scale);
  if (sqrtMode) result = result * factor(scale);
  y = result;
}

// A scale of 0 counts as 1. If a tensor is empty, nothing is written.
// Behaviour of Quantize: Elements are rounded half to even and saturated, to INT8, UINT8 or INT32;
// other types are 161002.
ACLNN(Quantize, (Floating<In>, x), (Floating<In>, scales),
      (SameShape<Optional<In>>, zeroPoints, "scales"), (aclDataType, dtype), (int32_t, axis),
      (SameShape<Out>, out, "x")) {
  EXPECT(dtype == at::kChar || dtype == at::kByte || dtype == at::kInt, "dtype is ", dtype,
         ", expected INT8, UINT8 or INT32");
  expect_dtype("out", out, dtype);
  EXPECT(x.dim() > 0, "x has no dimensions, expected 1 to 8");
  EXPECT(scales.numel() <= 1 || (axis >= -x.dim() && axis < x.dim()), "axis is ", axis.value(),
         ", expected ", -x.dim(), " to ", x.dim() - 1);
  expect_dims("scales", scales, 1);
  const auto is_bfloat16 = [](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kBFloat16;
  };
  const bool any = is_bfloat16(scales) || (zeroPoints && is_bfloat16(*zeroPoints));
  EXPECT(
      !any || (is_bfloat16(x) && is_bfloat16(scales) && (!zeroPoints || is_bfloat16(*zeroPoints))),
      "scales or zeroPoints is BFLOAT16, expected x, scales and zeroPoints to be BFLOAT16");
  if (scales.numel() == 0 || x.numel() == 0) return;
  const int64_t dim = scales.numel() == 1 ? 0 : from_start(axis, x);
  const at::Tensor scale = along("scales", scales, x, dim);
  at::Tensor result = wide(x) / at::where(scale == 0, at::ones_like(scale), scale);
  if (zeroPoints) result = result + along("zeroPoints", *zeroPoints, x, dim);
  out = rounded_to(result, dtype);
}

// If fakeQuantEnabled is below 1, self is copied.
ACLNN(FakeQuantPerTensorAffineCachemask, (Floating<In>, self), (Floating<In>, scale),
      (In, zeroPoint), (float, fakeQuantEnabled), (int64_t, quantMin), (int64_t, quantMax),
      (SameDtype<Out>, out, "self"), (Out, mask)) {
  check_fake(zeroPoint, mask);
  EXPECT(scale.numel() == 1 && zeroPoint.numel() == 1, "scale has ", scale.numel(),
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
ACLNN(FakeQuantPerChannelAffineCachemask, (Floating<In>, self), (Floating<In>, scale),
      (In, zeroPoint), (int64_t, axis), (int64_t, quantMin), (int64_t, quantMax),
      (SameDtype<Out>, out, "self"), (Out, mask)) {
  check_fake(zeroPoint, mask);
  expect_dims("self", self, 1, 8);
  expect_range("axis", axis, -self.dim(), self.dim() - 1);
  const int64_t dim = from_start(axis, self);
  expect_shape("scale", scale, {self.size(dim)});
  expect_shape("zeroPoint", zeroPoint, {self.size(dim)});
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(dim)] = self.size(dim);
  fake_quantize(self, wide(scale).reshape(shape), zeroPoint.reshape(shape), quantMin, quantMax, out,
                mask);
}

}  // namespace aclnn_host::quantized_quantization_rows
