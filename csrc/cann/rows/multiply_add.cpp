// Sums of products, and sums and products with a rule of their own.

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::multiply_add_rows {

namespace {

// The only element of a tensor, for products.
at::Tensor factor(const char* name, const at::Tensor& value) {
  EXPECT(value.numel() == 1, name, " has shape ", value.sizes(), ", expected one element");
  return wide(value).reshape({});
}

// The dimension of x in which the channels lie.
int64_t channel_dim(const at::Tensor& x, const std::string& data_format) {
  if (data_format.empty() || data_format == "NHWC" || data_format == "NDHWC") return x.dim() - 1;
  EXPECT(data_format == "NCHW" || data_format == "NCDHW", "dataFormatOptional is \"", data_format,
         "\", expected NCHW, NHWC, NCDHW or NDHWC");
  return x.dim() == 1 ? 0 : 1;
}

}  // namespace

ACLNN(AddMatMatElements, (FloatIn, a), (FloatIn, b), (FloatIn, c), (Number, alpha), (Number, beta),
      (Out, cOut)) {
  expect_like("b", b, a);
  expect_like("c", c, a);
  expect_like("cOut", cOut, a);
  cOut = wide(c) * beta + alpha * (wide(a) * wide(b));
}
ACLNN(AddMatMatElementsPlus, (FloatIn, c), (FloatIn, a), (FloatIn, b), (FloatIn, beta),
      (FloatIn, alpha), (Out, cOut)) {
  expect_dtype("a", a, c);
  expect_dtype("b", b, c);
  expect_dtype("beta", beta, c);
  expect_dtype("alpha", alpha, c);
  expect_dtype(cOut, c);
  cOut = wide(c) * factor("beta", beta) + factor("alpha", alpha) * (wide(a) * wide(b));
}
ACLNN(AxpyV2, (In, self), (In, other), (In, alpha), (Out, out)) {
  expect_shape("other", other, self.sizes());
  out = wide(self) + factor("alpha", alpha) * wide(other);
}
ACLNN(FusedMulAddN, (In, x1), (In, x2), (In, x3), (Out, y)) {
  expect_like("x2", x2, x1);
  expect_dtype("x3", x3, x1);
  expect_like("y", y, x1);
  y = wide(x1) * factor("x3", x3) + wide(x2);
}
ACLNN(AssignSub, (In, var), (In, value), (Out, varOut)) {
  expect_like("value", value, var);
  expect_like("varOut", varOut, var);
  varOut = at::sub(var, value);
}
// The channels are the last dimension of x, or the second one if dataFormatOptional says so.
ACLNN(BiasAdd, (In, x), (In, bias), (char*, dataFormatOptional), (Out, out)) {
  expect_dtype("bias", bias, x);
  expect_like("out", out, x);
  EXPECT(x.dim() > 0, "x has no dimensions, expected at least one");
  const int64_t channels = channel_dim(x, dataFormatOptional);
  expect_shape("bias", bias, {x.size(channels)});
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(channels)] = x.size(channels);
  out = at::add(x, bias.reshape(shape));
}
// Where y is 0 the product is 0, whatever x is.
ACLNN(MulNoNan, (FloatIn, x), (FloatIn, y), (Out, z)) {
  expect_dtype("y", y, x);
  expect_dtype(z, x);
  z = at::mul(x, y).masked_fill(y == 0, 0);
}
// The tensors are broadcast, added from the first to the last and rounded once.
ACLNN(SumV2, (Ins, tensors), (Out, out)) {
  EXPECT(!tensors.empty(), "tensors is empty, expected at least one tensor");
  for (const at::Tensor& tensor : tensors) expect_dtype("a tensor of the list", tensor, out);
  at::Tensor sum = wide(tensors[0]);
  for (size_t i = 1; i < tensors.size(); ++i) sum = at::add(sum, wide(tensors[i]));
  out = sum;
}

}  // namespace aclnn_host::multiply_add_rows
