#pragma once

#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host {

// The shape of x with dimension `dim` halved.
inline std::vector<int64_t> half_shape(const at::Tensor& x, int64_t dim) {
  std::vector<int64_t> shape = x.sizes().vec();
  int64_t& size = shape[static_cast<size_t>(dim)];
  EXPECT(size % 2 == 0, "x has ", size, " elements in dimension ", dim,
         ", expected an even number");
  size /= 2;
  return shape;
}
// Requires the dtype of x, and its shape with dimension `dim` halved.
inline void expect_halved(const char* name, const at::Tensor& tensor, const at::Tensor& x,
                          int64_t dim) {
  expect_dtype(name, tensor, x);
  expect_shape(name, tensor, half_shape(x, dim));
}

// A column of flags, one for each of `rows` rows: true before the sum of the groups' counts.
inline at::Tensor is_in_groups(const at::Tensor& groups, int64_t rows) {
  expect_dtype("groupIndexOptional", groups, at::kLong);
  expect_group_list("groupIndexOptional", groups);
  return at::lt(at::arange(rows, groups.options()), groups.sum()).unsqueeze(1);
}

// x as a matrix whose columns are dim and all dimensions after it.
inline at::Tensor as_matrix(const at::Tensor& x, int64_t dim) {
  return x.reshape({rows_before(x, dim), c10::multiply_integers(x.sizes().slice(dim))});
}

}  // namespace aclnn_host
