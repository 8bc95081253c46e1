#pragma once

#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

// Shared by quantising functions: the types of results, rounding, and scales from the extremes of
// rows.
namespace aclnn_host {

// The types of quantised results. An INT32 element packs eight INT4.
inline bool is_packed(aclDataType dtype) {
  return dtype == ACL_INT32;
}
inline bool is_floating(aclDataType dtype) {
  return dtype == ACL_FLOAT8_E4M3FN || dtype == ACL_FLOAT8_E5M2 || dtype == ACL_FLOAT4_E2M1;
}

// The largest number of a quantised type.
inline double largest_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT8_E4M3FN: return 448;
    case ACL_FLOAT8_E5M2: return 57344;
    case ACL_FLOAT4_E2M1: return 6;
    case ACL_INT8: return 127;
    default: return 7;
  }
}

// The range of INT8, UINT8 or INT32.
struct Limits {
  double low, high;
};
inline Limits limits_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kChar: return {-128, 127};
    case at::kByte: return {0, 255};
    default: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

// The sizes of the dimensions before the last one.
inline at::IntArrayRef leading(const at::Tensor& x) {
  return x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
}

// Checks that a result has the shape of the values; packed results have eight values in an element.
inline void expect_values(const StoredOutput& y, at::IntArrayRef shape) {
  std::vector<int64_t> expected = shape.vec();
  const int64_t size = shape.empty() ? 0 : shape.back();
  if (is_packed(y.dtype())) {
    EXPECT(!shape.empty() && size % 8 == 0, "the last dimension of the values is ", size,
           ", expected a multiple of 8 as ", y.name(), " is INT32, which holds eight INT4");
    expected.back() /= 8;
  }
  if (y.dtype() == ACL_INT4 || y.dtype() == ACL_FLOAT4_E2M1) {
    EXPECT(!shape.empty() && size % 2 == 0, "the last dimension of ", y.name(), " is ", size,
           ", expected an even number as it is ", dtype_name(y.dtype()));
  }
  expect_shape(y.name(), y, expected);
}
// Checks the scales of rows.
inline void expect_row_scales(const Output& scale, at::IntArrayRef shape) {
  expect_tensor(scale.name(), scale, at::kFloat, shape);
}
inline void expect_row_scales(const StoredOutput& scale, at::IntArrayRef shape) {
  expect_type(scale, {ACL_FLOAT});
  expect_shape(scale.name(), scale, shape);
}

// True for "dynamic", false for "static"; an empty mode is `otherwise`.
inline bool is_dynamic(const char* name, const std::string& mode, const char* otherwise = "") {
  const std::string& chosen = mode.empty() ? otherwise : mode;
  expect_text(name, chosen, {"static", "dynamic"});
  return chosen == "dynamic";
}

// Clamps numbers to the limits; NaN becomes 0. FLOAT represents the limits of INT8.
inline at::Tensor saturated(const at::Tensor& x, double low, double high) {
  return at::clamp(at::nan_to_num(x, 0.0, high, low), low, high);
}
// Rounds to nearest, ties to even, and saturates. NaN becomes 0.
inline at::Tensor rounded_to(const at::Tensor& x, at::ScalarType dtype) {
  const auto [low, high] = limits_of(dtype);
  return saturated(at::round(x.to(at::kDouble)), low, high).to(dtype);
}
inline at::Tensor to_int8(const at::Tensor& x) {
  return rounded_to(x, at::kChar);
}

// Rounds and assigns values. Integers saturate; FLOAT8 types behave as in ATen's casts. NaN becomes
// 0 in types without NaN.
inline void quantize(StoredOutput& y, const at::Tensor& values) {
  if (y.dtype() == ACL_FLOAT4_E2M1) {
    y = values.masked_fill(values.isnan(), 0);
    return;
  }
  if (is_floating(y.dtype())) {
    y = values;
    return;
  }
  const double high = largest_of(y.dtype());
  const at::Tensor integers = saturated(at::round(values), -high - 1, high).to(at::kChar);
  if (is_packed(y.dtype())) {
    y = pack_int4(integers.contiguous()).view(at::kInt).reshape(y->sizes());
  } else {
    y = integers;
  }
}
// As quantize(), but FLOAT8 types saturate, too.
inline void quantize_saturated(StoredOutput& y, const at::Tensor& values) {
  const double high = largest_of(y.dtype());
  quantize(y, is_floating(y.dtype()) ? at::clamp(values, -high, high) : values);
}

// Quantises each row of the last dimension by its largest magnitude. Returns the scales. Rows from
// `end` on, which hold nothing, become 0; with a scale of 0 they would be NaN.
inline at::Tensor quantize_rows(StoredOutput& y, const at::Tensor& values,
                                const std::optional<int64_t>& end = std::nullopt) {
  if (values.numel() == 0) return at::zeros(leading(values), values.options());
  const at::Tensor scale = at::amax(values.abs(), -1, /*keepdim=*/true) / largest_of(y.dtype());
  const at::Tensor quotient = values / scale;
  if (end) quotient.slice(0, *end).zero_();
  quantize(y, quotient);
  return scale.squeeze(-1);
}

}  // namespace aclnn_host
