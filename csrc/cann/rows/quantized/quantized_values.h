#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/engine/stored.h"
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

// Refuses a result of a type that is not in `allowed`.
inline void expect_quantized(const StoredOutput& y, std::initializer_list<aclDataType> allowed) {
  std::string expected;
  for (const aclDataType dtype : allowed) {
    if (dtype == y.dtype()) return;
    expected += (expected.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  }
  EXPECT(false, y.name(), " has dtype ", dtype_name(y.dtype()), ", expected ", expected);
}

// Checks that a result has the shape of the values; packed results have eight values in an element.
inline void expect_values(const StoredOutput& y, at::IntArrayRef shape) {
  std::vector<int64_t> expected = shape.vec();
  if (is_packed(y.dtype())) {
    EXPECT(!shape.empty() && shape.back() % 8 == 0, "the last dimension of the values is ",
           shape.empty() ? 0 : shape.back(), ", expected a multiple of 8 as ", y.name(),
           " is INT32, which holds eight INT4");
    expected.back() /= 8;
  }
  if (y.dtype() == ACL_INT4 || y.dtype() == ACL_FLOAT4_E2M1) {
    EXPECT(!shape.empty() && shape.back() % 2 == 0, "the last dimension of ", y.name(), " is ",
           shape.empty() ? 0 : shape.back(), ", expected an even number as it is ",
           dtype_name(y.dtype()));
  }
  EXPECT(y->sizes() == expected, y.name(), " has shape ", y->sizes(), ", expected ", expected);
}

// Clamps numbers to the limits; NaN becomes 0. FLOAT represents all limits.
inline at::Tensor saturated(const at::Tensor& x, double low, double high) {
  return at::clamp(at::nan_to_num(x, 0.0, high, low), low, high);
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

// Quantises each row of the last dimension by its largest magnitude. Returns the scales, with a
// last dimension of 1; nothing if there are no values.
inline std::optional<at::Tensor> quantize_rows(StoredOutput& y, const at::Tensor& values,
                                               std::optional<double> type_most = std::nullopt) {
  EXPECT(values.size(-1) > 0 || values.numel() == 0, "a row has no elements");
  if (values.numel() == 0) return std::nullopt;
  const double most = type_most.value_or(largest_of(y.dtype()));
  const at::Tensor scale = at::amax(values.abs(), -1, /*keepdim=*/true) / most;
  quantize(y, values / scale);
  return scale;
}

}  // namespace aclnn_host
