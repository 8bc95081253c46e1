// Elements selected and filled by masks, and the coordinates of nonzero elements.

#include <ATen/ExpandUtils.h>

#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_masks_rows {

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
  selfRef = at::masked_scatter(selfRef, mask, source);
}

ACLNN(InplaceMaskedFillScalar, (InOut, selfRef), (In, mask), (Number, value)) {
  selfRef = at::masked_fill(selfRef, mask.to(at::kBool), value);
}
ACLNN(InplaceMaskedFillTensor, (InOut, selfRef), (In, mask), (In, value)) {
  selfRef = at::masked_fill(selfRef, mask.to(at::kBool), value.reshape({}));
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
