// Searches in sorted tensors, and histograms.

#include "cann/rows/row.h"

namespace aclnn_host::sorting_searches_and_histograms_rows {

ACLNN(SearchSorted, (In, sortedSequence), (In, self), (bool, outInt32), (bool, right),
      (Optional<In>, sorter), (Out, out)) {
  out = at::searchsorted(sortedSequence, self, outInt32, right, std::nullopt, sorter);
}
ACLNN(SearchSorteds, (In, sortedSequence), (Number, self), (bool, outInt32), (bool, right),
      (Optional<In>, sorter), (Out, out)) {
  out = at::searchsorted(sortedSequence, self, outInt32, right, std::nullopt, sorter);
}
ACLNN(Bucketize, (In, self), (In, boundaries), (bool, outInt32), (bool, right), (Out, out)) {
  out = at::bucketize(self, boundaries, outInt32, right);
}

ACLNN(Bincount, (In, self), (Optional<In>, weights), (int64_t, minlength), (Out, out)) {
  expect_at_least("minlength", minlength, 0);
  // ATen allocates bins up to the largest value, so it is checked first.
  const int64_t room = out->numel();
  EXPECT(minlength.value() <= room, "minlength is ", minlength.value(), ", expected at most ", room,
         ", the elements of out");
  const int64_t most = has_values(self) && self.numel() > 0 ? self.max().item().toLong() : 0;
  EXPECT(most < room || self.numel() == 0, "self has a value ", most, ", expected less than ", room,
         ", the elements of out");
  out = at::bincount(self, weights, is_rehearsed() ? room : minlength.value());
}
ACLNN(Histc, (In, self), (int64_t, bins), (Number, min), (Number, max), (Out, out)) {
  expect_shape("out", out, {bins.value()});
  // ATen counts only floating-point elements, and in their type: FLOAT16 is exact up to 2,048 only.
  const bool is_integer = at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  out.copy(at::histc(is_integer ? self.to(at::kDouble) : wide(self), bins, min, max));
}

}  // namespace aclnn_host::sorting_searches_and_histograms_rows
