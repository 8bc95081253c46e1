// Unique elements, and coalescing of sparse tensors.

#include <ATen/WrapDimUtils.h>

#include "cann/rows/row.h"

namespace aclnn_host::sorting_unique_rows {

// Outputs that are not requested keep their values.
// Deviation of Unique: The input may be strided.
ACLNN(Unique, (In, self), (bool, sorted), (bool, returnInverse), (SizedOut, valueOut),
      (SizedOut, inverseOut)) {
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  if (!self.is_cpu()) return;
  const auto [values, inverse, counts] = at::_unique2(self, sorted, returnInverse, false);
  valueOut = values;
  if (returnInverse) inverseOut = inverse;
}

// Outputs that are not requested keep their values.
ACLNN(Unique2, (In, self), (bool, sorted), (bool, returnInverse), (bool, returnCounts),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  if (returnCounts) countsOut.expect(at::kLong);
  if (!self.is_cpu()) return;
  const auto [values, inverse, counts] = at::_unique2(self, sorted, returnInverse, returnCounts);
  valueOut = values;
  if (returnInverse) inverseOut = inverse;
  if (returnCounts) countsOut = counts;
}
ACLNN(UniqueDim, (In, self), (bool, sorted), (bool, returnInverse), (int64_t, dim),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  countsOut.expect(at::kLong);
  at::maybe_wrap_dim(dim, self.dim());
  if (!self.is_cpu()) return;
  const auto [values, inverse, counts] =
      at::unique_dim(self, dim, sorted, returnInverse, /*return_counts=*/true);
  valueOut = values;
  if (returnInverse) inverseOut = inverse;
  countsOut = counts;
}
// dim is kNoDim to compare the elements of all dimensions.
ACLNN(UniqueConsecutive, (In, self), (bool, returnInverse), (bool, returnCounts), (int64_t, dim),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  constexpr int64_t kNoDim = 1000;
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  if (returnCounts) countsOut.expect(at::kLong);
  const bool is_flat = dim == kNoDim;
  const int64_t along = is_flat ? 0 : at::maybe_wrap_dim(dim, self.dim());
  if (!self.is_cpu()) return;
  // ATen compares real numbers only, but also slices, such as the two parts of a complex number.
  const at::Tensor from = is_flat ? self.flatten() : self;
  const bool is_complex = self.is_complex();
  const auto [values, inverse, counts] = at::unique_consecutive(
      is_complex ? at::view_as_real(from) : from, returnInverse, returnCounts,
      is_flat && !is_complex ? std::nullopt : std::optional(along));
  valueOut = is_complex ? at::view_as_complex(values) : values;
  if (returnInverse) inverseOut = is_flat ? inverse.view(self.sizes()) : inverse;
  if (returnCounts) countsOut = counts;
}

// uniqueIndices has the destination of each index and value; the shape of uniqueLen is the number
// of unique indices. Values are added to newValuesOut, which the caller fills with zeros.
ACLNN(CoalesceSparse, (IndexIn, uniqueLen), (IndexIn, uniqueIndices), (IndexIn, indices),
      (In, values), (InOut, newIndicesOut), (SameDtype<InOut>, newValuesOut, "values")) {
  expect_dims("uniqueLen", uniqueLen, 1);
  expect_dims("uniqueIndices", uniqueIndices, 1);
  const int64_t count = uniqueIndices.size(0);
  expect_dims("indices", indices, 2);
  expect_shape("indices", indices, {count, indices.size(1)});
  EXPECT(values.dim() > 0 && values.size(0) == count, "values has shape ", values.sizes(),
         ", expected ", count, " rows as uniqueIndices has elements");
  expect_dims("newIndicesOut", newIndicesOut, 2);
  const int64_t count_of_unique = newIndicesOut->size(0);
  expect_shape("newIndicesOut", newIndicesOut, {count_of_unique, indices.size(1)});
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = count_of_unique;
  expect_shape("newValuesOut", newValuesOut, shape);
  check_bounds("uniqueIndices", uniqueIndices, count_of_unique);
  const at::Tensor old_indices = static_cast<const at::Tensor&>(newIndicesOut).to(at::kLong);
  const at::Tensor sums = wide(newValuesOut).index_add(0, uniqueIndices, wide(values));
  newIndicesOut = old_indices.index_copy(0, uniqueIndices, indices);
  newValuesOut = sums;
}

}  // namespace aclnn_host::sorting_unique_rows
