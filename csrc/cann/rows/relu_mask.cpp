// The rectified linear unit with a mask of the elements that are positive.

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/relu.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::relu_mask_rows {

namespace {

// Eight marks in a byte, the first in the lowest bit.
at::Tensor packed(const at::Tensor& marks) {
  const int64_t spare = (8 - marks.size(-1) % 8) % 8;
  const at::Tensor whole = at::constant_pad_nd(marks.to(at::kByte), {0, spare});
  const at::Tensor bits = at::arange(8, whole.options());
  return at::bitwise_left_shift(whole.unflatten(-1, {-1, 8}), bits).sum(-1, false, at::kByte);
}

void expect_format(const char* name, aclFormat format) {
  EXPECT(format == ACL_FORMAT_ND || format == ACL_FORMAT_NC1HWC0, name, " has format ",
         static_cast<int>(format), ", expected NC1HWC0 (3) or ND (2)");
}

}  // namespace

// x has the shape of the blocks of NC1HWC0. The vendor's sample has eight marks in each element of
// maskOut, the document one: both shapes are taken.
ACLNN(ReluV3, (StoredIn, x), (StoredOut, yOut), (Out, maskOut)) {
  const at::Tensor& values = x.elements;
  expect_dims("x", values, 5);
  expect_format("x", x.format);
  expect_format("yOut", yOut.format());
  EXPECT(x.dtype == yOut.dtype(), "yOut has dtype ", dtype_name(yOut.dtype()), ", expected ",
         dtype_name(x.dtype), " as x has");
  EXPECT(x.dtype == ACL_FLOAT || x.dtype == ACL_FLOAT16 || x.dtype == ACL_BF16 ||
             x.dtype == ACL_INT32 || x.dtype == ACL_INT8 || x.dtype == ACL_UINT8,
         "x has dtype ", dtype_name(x.dtype),
         ", expected FLOAT16, FLOAT, INT32, INT8, UINT8 or BFLOAT16");
  expect_dtype("maskOut", maskOut, at::kByte);
  const at::Tensor marks = values > 0;
  yOut = at::relu(values);
  if (maskOut->sizes() == values.sizes()) {
    maskOut = marks.to(at::kByte);
    return;
  }
  std::vector<int64_t> shape = values.sizes().vec();
  shape.back() = (shape.back() + 7) / 8;
  expect_shape("maskOut", maskOut, shape);
  maskOut = packed(marks);
}

}  // namespace aclnn_host::relu_mask_rows
