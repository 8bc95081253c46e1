// The permutation of elements that a permutation of their segments implies.

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_jagged_permute_rows {

namespace {

// Writes start, start + 1, ... to the elements from `first` to `end` of each segment.
void write_places(const at::Tensor& permute, const at::Tensor& input, const at::Tensor& output,
                  const at::Tensor& places) {
  check_bounds("permute", permute, permute.numel());
  const at::Tensor order = permute.to(at::kLong).contiguous();
  const at::Tensor starts = input.to(at::kLong).contiguous();
  const at::Tensor ends = output.to(at::kLong).contiguous();
  const int64_t* segment = order.const_data_ptr<int64_t>();
  const int64_t* start = starts.const_data_ptr<int64_t>();
  const int64_t* end = ends.const_data_ptr<int64_t>();
  auto* place = places.mutable_data_ptr<int64_t>();
  const int64_t count = permute.numel();
  EXPECT(end[0] >= 0 && end[count] == places.numel(), "outputOffset goes from ", end[0], " to ",
         end[count], ", expected an end of ", places.numel(), ", outputSize");
  for (int64_t i = 0; i < count; ++i) {
    EXPECT(end[i] <= end[i + 1], "outputOffset has ", end[i], " before ", end[i + 1],
           ", expected values that grow");
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = end[i]; j < end[i + 1]; ++j) {
      place[j] = static_cast<int64_t>(static_cast<uint64_t>(start[segment[i]]) +
                                      static_cast<uint64_t>(j - end[i]));
    }
  }
}

}  // namespace

ACLNN(ExpandIntoJaggedPermute, (In, permute), (SameDtype<In>, inputOffset, "permute"),
      (SameDtype<In>, outputOffset, "permute"), (int64_t, outputSize),
      (SameDtype<Out>, outputPermuteOut, "permute")) {
  EXPECT(permute.scalar_type() == at::kInt || permute.scalar_type() == at::kLong,
         "permute has dtype ", dtype_text(permute.scalar_type()), ", expected INT32");
  expect_dims("permute", permute, 1);
  expect_shape("inputOffset", inputOffset, {permute.numel() + 1});
  expect_shape("outputOffset", outputOffset, {permute.numel() + 1});
  EXPECT(outputSize >= 0, "outputSize is ", outputSize.value(), ", expected 0 or more");
  expect_shape("outputPermuteOut", outputPermuteOut, {outputSize.value()});
  const at::Tensor places = at::zeros({outputSize.value()}, permute.options().dtype(at::kLong));
  if (has_values(permute)) {
    write_places(permute, inputOffset, outputOffset, places);
  }
  outputPermuteOut = places.to(permute.scalar_type());
}

}  // namespace aclnn_host::indexing_jagged_permute_rows
