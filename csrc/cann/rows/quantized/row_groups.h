#pragma once

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

// Rows in groups, such as the rows of experts.
namespace aclnn_host {

inline void expect_group_list(const char* name, const at::Tensor& groups) {
  const at::ScalarType dtype = groups.scalar_type();
  EXPECT(dtype == at::kInt || dtype == at::kLong, name, " has dtype ", dtype_text(dtype),
         ", expected INT32 or INT64");
  EXPECT(groups.dim() == 1 && groups.size(0) > 0, name, " has shape ", groups.sizes(),
         ", expected one dimension with elements");
}

// The group of each of `rows` rows; `ends` has the end of each group. Rows after the last group
// count as part of it.
inline at::Tensor group_of_rows(const at::Tensor& ends, int64_t rows) {
  const at::Tensor row = at::arange(rows, ends.options().dtype(at::kLong)).unsqueeze(1);
  return at::ge(row, ends.to(at::kLong)).sum(1).clamp_max(ends.size(0) - 1);
}

// The number of rows before a dimension, or of the last one.
inline int64_t rows_before(const at::Tensor& x, int64_t dim) {
  return c10::multiply_integers(x.sizes().slice(0, static_cast<size_t>(dim)));
}

}  // namespace aclnn_host
