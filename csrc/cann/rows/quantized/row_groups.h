#pragma once

#include "cann/rows/integers.h"
#include "cann/rows/row.h"

// Rows in groups, such as the rows of experts.
namespace aclnn_host {

inline void expect_group_list(const char* name, const at::Tensor& groups) {
  expect_dtype(name, groups, {at::kInt, at::kLong});
  EXPECT(groups.dim() == 1 && groups.size(0) > 0, name, " has shape ", groups.sizes(),
         ", expected one dimension with elements");
}

// The ends of the groups of rows. They do not decrease, and each is from `least` to `rows`.
inline std::vector<int64_t> group_ends(const char* name, const at::Tensor& groups, int64_t rows,
                                       int64_t least = 0) {
  std::vector<int64_t> ends = integers_in(groups);
  int64_t before = 0;
  for (const int64_t end : ends) {
    EXPECT(end >= before && end >= least && end <= rows, name, " has ", end, " after ", before,
           ", expected numbers from ", least, " to ", rows, " that do not decrease");
    before = end;
  }
  return ends;
}

// The ends of groups of these sizes. Each size is 0 or more, and their sum is at most `rows`.
inline at::Tensor ends_of_sizes(const char* name, const at::Tensor& sizes, int64_t rows) {
  if (has_values(sizes)) {
    int64_t end = 0;
    for (const int64_t size : integers_in(sizes)) {
      EXPECT(size >= 0 && size <= rows - end, name, " has a group of ", size, " rows from row ",
             end, " on, expected 0 to ", rows - end, " rows");
      end += size;
    }
  }
  return sizes.cumsum(0);
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
