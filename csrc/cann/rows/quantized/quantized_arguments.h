#pragma once

#include <initializer_list>
#include <string>

#include "cann/rows/checks.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

// The arguments that select the quantisation of an activation.
namespace aclnn_host {

inline at::IntArrayRef leading(const at::Tensor& x) {
  return x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
}

inline void expect_mode(const char* name, const std::string& mode) {
  EXPECT(mode == "static" || mode == "dynamic", name, " is \"", mode,
         "\", expected \"static\" or \"dynamic\"");
}
inline void expect_type(const char* name, int64_t dtype, const StoredOutput& y,
                        std::initializer_list<aclDataType> allowed) {
  expect_quantized(y, allowed);
  EXPECT(dtype == int64_t{y.dtype()}, name, " is ", dtype, ", expected ", int64_t{y.dtype()},
         " as ", y.name(), " is ", dtype_name(y.dtype()));
}
inline void expect_rint(const char* name, const std::string& mode) {
  EXPECT(mode.empty() || mode == "rint", name, " is \"", mode, "\", expected \"rint\"");
}
inline void expect_row_scales(const Output& scale, at::IntArrayRef shape) {
  expect_dtype(scale.name(), scale, at::kFloat);
  expect_shape(scale.name(), scale, shape);
}

inline bool is_dynamic(const std::string& mode, const char* otherwise) {
  const std::string chosen = mode.empty() ? otherwise : mode;
  expect_mode("quantModeOptional", chosen);
  return chosen == "dynamic";
}

}  // namespace aclnn_host
