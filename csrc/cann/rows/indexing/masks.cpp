// Elements selected and filled by masks, and the coordinates of nonzero elements.

#include <ATen/ExpandUtils.h>

#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_masks_rows {

namespace {

// Refuses a mask to which `self` would have to be broadcast.
void expect_mask_of(const Output& self, const at::Tensor& mask) {
  const std::vector<int64_t> both = at::infer_size(self->sizes(), mask.sizes());
  EXPECT(self->sizes() == both, self.name(), " has shape ", self->sizes(), ", expected ", both,
         ", the shape of the result");
}

template <class Value>
void fill_masked(Output& self, const at::Tensor& mask, const Value& value) {
  expect_mask_of(self, mask);
  const at::Tensor result = self.editable();
  result.masked_fill_(mask.to(at::kBool), value);
  self = result;
}

}  // namespace

ACLNN(SWhere, (In, condition), (In, self), (In, other), (Out, out)) {
  out = at::where(condition.to(at::kBool), self, other);
}
ACLNN(MaskedSelect, (In, self), (In, mask), (SizedOut, out)) {
  out.expect(self.scalar_type());
  at::infer_size(self.sizes(), mask.sizes());
  if (!self.is_cpu()) return;
  out = moved(self, [&](const at::Tensor& x) { return at::masked_select(x, mask.to(at::kBool)); });
}

ACLNN(InplaceMaskedScatter, (InOut, selfRef), (In, mask), (In, source)) {
  expect_mask_of(selfRef, mask);
  const bool is_certain =
      !has_values(mask) || mask.scalar_type() != at::kBool ||
      at::count_nonzero(mask.expand(selfRef->sizes())).item().toLong() <= source.numel();
  const at::Tensor result = selfRef.editable(is_certain);
  result.masked_scatter_(mask, source);
  selfRef = result;
}

ACLNN(InplaceMaskedFillScalar, (InOut, selfRef), (In, mask), (Number, value)) {
  fill_masked(selfRef, mask, value);
}
ACLNN(InplaceMaskedFillTensor, (InOut, selfRef), (In, mask), (In, value)) {
  fill_masked(selfRef, mask, value.reshape({}));
}

ACLNN(Nonzero, (In, self), (SizedOut, out)) {
  out.expect(at::kLong);
  if (self.is_cpu()) out = at::nonzero(as_movable(self));
}
// nonzero with a row for each dimension instead of a row for each element.
ACLNN(NonzeroV2, (In, self), (SizedOut, out)) {
  out.expect(at::kLong);
  if (self.is_cpu()) out = at::nonzero(as_movable(self)).t();
}

}  // namespace aclnn_host::indexing_masks_rows
