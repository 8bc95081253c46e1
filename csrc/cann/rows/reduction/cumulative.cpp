// Cumulative sums, products and extremes along a dimension, and the sums of all its segments.

#include "cann/rows/row.h"

namespace aclnn_host::reduction_cumulative_rows {

namespace {

// Cumulative products. ATen has no kernel for unsigned integers; their products are those of INT64
// modulo the range of the type.
at::Tensor running_product(const at::Tensor& self, int64_t dim) {
  if (!c10::isBarebonesUnsignedType(self.scalar_type())) {
    return at::cumprod(wide(self), dim, wide(self.scalar_type()));
  }
  return at::cumprod(self.to(at::kLong), dim).to(self.scalar_type());
}

at::Tensor flipped(const at::Tensor& self, int64_t dim, bool flips) {
  return flips ? at::flip(self, dim) : self;
}

}  // namespace

ACLNN(Cumsum, (In, self), (int64_t, dim), (aclDataType, dtype), (Out, out)) {
  out = at::cumsum(wide(self), dim, wide(dtype));
}
// An exclusive sum omits the element itself; a reverse one starts at the end.
ACLNN(CumsumV2, (In, self), (int64_t, dim), (bool, exclusive), (bool, reverse),
      (SameDtype<Out>, out, "self")) {
  at::Tensor x = flipped(self.dim() == 0 ? self.reshape({1}) : self, dim, reverse);
  if (exclusive) {
    x = at::roll(x, 1, dim.value());
    x.narrow(dim, 0, std::min<int64_t>(x.size(dim), 1)).zero_();
  }
  const at::Tensor sums = at::cumsum(wide(x), dim, wide(x.scalar_type()));
  out = flipped(sums, dim, reverse);
}
ACLNN(Cumprod, (In, input), (Number, axis), (aclDataType, dtype), (Out, out)) {
  EXPECT(axis.isIntegral(/*includeBool=*/false), "axis is ", axis, ", expected an integer");
  out = at::cumprod(wide(input), axis.toLong(), wide(dtype));
}
ACLNN(InplaceCumprod, (InOut, input), (Number, dim)) {
  EXPECT(dim.isIntegral(/*includeBool=*/false), "dim is ", dim, ", expected an integer");
  input = running_product(input, dim.toLong());
}
ACLNN(Cummax, (In, self), (int64_t, dim), (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::cummax(self, dim);
}
ACLNN(Cummin, (In, self), (int64_t, dim), (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::cummin(self, dim);
}

// Element (i, j) is exp(self[j + 1] + ... + self[i]): 1 for i = j, and 0 for i < j.
ACLNN(ExpSegsum, (Floating<In>, self), (SameDtype<Out>, out, "self")) {
  expect_dims("self", self, 3, 4);
  const int64_t length = self.size(-1);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(length);
  expect_shape("out", out, sizes);
  const at::Tensor columns = at::tril(wide(self).unsqueeze(-1).expand(sizes), -1);
  out = at::tril(at::exp(at::cumsum(columns, -2)));
}
// gradSelf is the result of ExpSegsum.
ACLNN(ExpSegsumBackward, (Floating<In>, gradOutput), (Like<Floating<In>>, gradSelf, "gradOutput"),
      (SameDtype<Out>, gradInput, "gradOutput")) {
  expect_dims("gradOutput", gradOutput, 4, 5);
  EXPECT(gradOutput.size(-1) == gradOutput.size(-2), "gradOutput has shape ", gradOutput.sizes(),
         ", expected two last dimensions of one size");
  expect_shape("gradInput", gradInput,
               gradOutput.sizes().slice(0, static_cast<size_t>(gradOutput.dim() - 1)));
  const at::Tensor product = at::tril(wide(gradOutput) * wide(gradSelf), -1);
  const at::Tensor sums = at::flip(at::cumsum(at::flip(product, {-2}), -2), {-2});
  gradInput = at::tril(sums, -1).sum(-1);
}

}  // namespace aclnn_host::reduction_cumulative_rows
