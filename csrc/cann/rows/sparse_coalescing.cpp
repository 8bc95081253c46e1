// Sparse tensors whose places are made unique.

#include <ATen/TensorOperators.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::sparse_coalescing_rows {

// uniqueIndices tells where each of the places and values goes, and uniqueLen by its shape how many
// unique places there are. What is in newValuesOut counts: the caller fills it with zeros.
ACLNN(CoalesceSparse, (IndexIn, uniqueLen), (IndexIn, uniqueIndices), (IndexIn, indices),
      (In, values), (InOut, newIndicesOut), (InOut, newValuesOut)) {
  expect_dims("uniqueLen", uniqueLen, 1);
  expect_dims("uniqueIndices", uniqueIndices, 1);
  const int64_t count = uniqueIndices.size(0);
  expect_dims("indices", indices, 2);
  expect_shape("indices", indices, {count, indices.size(1)});
  EXPECT(values.dim() > 0 && values.size(0) == count, "values has shape ", values.sizes(),
         ", expected ", count, " rows as uniqueIndices has elements");
  expect_dtype(newValuesOut, values);
  expect_dims("newIndicesOut", newIndicesOut, 2);
  const int64_t places = newIndicesOut->size(0);
  expect_shape("newIndicesOut", newIndicesOut, {places, indices.size(1)});
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = places;
  expect_shape("newValuesOut", newValuesOut, shape);
  check_bounds("uniqueIndices", uniqueIndices, places);
  const at::Tensor old_places = static_cast<const at::Tensor&>(newIndicesOut).to(at::kLong);
  const at::Tensor sums = wide(newValuesOut).index_add(0, uniqueIndices, wide(values));
  newIndicesOut = old_places.index_copy(0, uniqueIndices, indices);
  newValuesOut = sums;
}

}  // namespace aclnn_host::sparse_coalescing_rows
