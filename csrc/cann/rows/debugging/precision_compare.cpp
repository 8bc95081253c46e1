// Compares a device's results with expected ones.

#include "cann/rows/row.h"

namespace aclnn_host::debugging_precision_compare_rows {

// Writes 0 if all elements are equal, 503 if not. NaN equals NaN.
ACLNN(PrecisionCompare, (Floating<In>, golden), (Like<Floating<In>>, realdata, "golden"),
      (Out, out)) {
  constexpr int64_t kDifferent = 503;
  expect_dims("golden", golden, 0, 8);
  expect_dtype("out", out, at::kUInt32);
  expect_dims("out", out, 0);
  const at::Tensor is_same =
      at::eq(golden, realdata).logical_or(at::isnan(golden).logical_and(at::isnan(realdata))).all();
  out = is_same.logical_not().to(at::kLong).mul(kDifferent).to(at::kUInt32);
}

}  // namespace aclnn_host::debugging_precision_compare_rows
