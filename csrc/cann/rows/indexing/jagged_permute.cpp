// The permutation of elements that a permutation of their segments implies.

#include <numeric>

#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_jagged_permute_rows {

namespace {

// Writes start, start + 1, ... to the indices of each segment.
void write_indices(const at::Tensor& permute, const at::Tensor& input, const at::Tensor& output,
                   const at::Tensor& indices) {
  check_bounds("permute", permute, permute.numel());
  const std::vector<int64_t> order = integers_in(permute);
  const std::vector<int64_t> starts = integers_in(input), ends = integers_in(output);
  EXPECT(ends.front() >= 0 && ends.back() == indices.numel(), "outputOffset goes from ",
         ends.front(), " to ", ends.back(), ", expected an end of ", indices.numel(),
         ", outputSize");
  const auto drop = std::ranges::is_sorted_until(ends);
  EXPECT(drop == ends.end(), "outputOffset has ", drop[-1], " before ", drop[0],
         ", expected values that grow");
  auto* const to = reinterpret_cast<uint64_t*>(indices.mutable_data_ptr<int64_t>());  // may wrap
  for (size_t i = 0; i < order.size(); ++i) {
    std::iota(to + ends[i], to + ends[i + 1],
              static_cast<uint64_t>(starts[static_cast<size_t>(order[i])]));
  }
}

}  // namespace

ACLNN(ExpandIntoJaggedPermute, (In, permute), (SameDtype<In>, inputOffset, "permute"),
      (SameDtype<In>, outputOffset, "permute"), (int64_t, outputSize),
      (SameDtype<Out>, outputPermuteOut, "permute")) {
  expect_dtype("permute", permute, {at::kInt, at::kLong});
  expect_dims("permute", permute, 1);
  expect_shape("inputOffset", inputOffset, {permute.numel() + 1});
  expect_shape("outputOffset", outputOffset, {permute.numel() + 1});
  expect_at_least("outputSize", outputSize, 0);
  expect_shape("outputPermuteOut", outputPermuteOut, {outputSize.value()});
  const at::Tensor indices = at::zeros({outputSize.value()}, permute.options().dtype(at::kLong));
  if (has_values(permute)) write_indices(permute, inputOffset, outputOffset, indices);
  outputPermuteOut = indices.to(permute.scalar_type());
}

}  // namespace aclnn_host::indexing_jagged_permute_rows
