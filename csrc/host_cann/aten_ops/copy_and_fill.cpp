// Copies, casts and constant fills.

#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

// Any type is cast to any other, and src is broadcast.
ACLNN(InplaceCopy, (InOut, selfRef), (In, src)) {
  selfRef.copy(src.expand(selfRef->sizes()));
}
ACLNN(Cast, (In, self), (aclDataType, dtype), (Out, out)) {
  out.copy(self.to(dtype));
}

ACLNN(InplaceZero, (InOut, selfRef)) {
  selfRef = at::zeros_like(selfRef);
}
ACLNN(InplaceOne, (InOut, selfRef)) {
  selfRef = at::ones_like(selfRef);
}
ACLNN(InplaceFillScalar, (InOut, selfRef), (Number, value)) {
  selfRef = at::full_like(selfRef, value);
}
ACLNN(InplaceFillTensor, (InOut, selfRef), (In, value)) {
  TORCH_CHECK(value.numel() == 1, "value has shape ", value.sizes(), ", expected one element");
  selfRef.copy(value.reshape({}).expand(selfRef->sizes()));
}

ACLNN(CastV3, (In, x), (int64_t, dstType), (Out, y)) {
  const aclDataType dtype = acl_type(y->scalar_type());
  TORCH_CHECK(dstType == static_cast<int64_t>(dtype), "dstType is ", dstType, ", expected ",
              static_cast<int64_t>(dtype), " (", dtype_name(dtype), "), the dtype of y");
  expect_shape("y", y, x.sizes());
  y.copy(x.to(y->scalar_type()));
}
ACLNN(TensorMove, (In, x), (Out, y)) {
  expect_like("y", y, x);
  y = x;
}
