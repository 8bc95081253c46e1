// Packs the signs of numbers, eight in a byte from the lowest bit on: 1 for 0 and more, 0 below.

#include "cann/rows/row.h"

namespace aclnn_host::compression_sign_bits_rows {

namespace {

at::Tensor bits_of(const at::Tensor& like) {
  return at::arange(8, like.options().dtype(at::kByte));
}

void expect_rows(const at::Tensor& self, int64_t size, int64_t elements, const at::Tensor& out) {
  expect_dims("self", self, 1);
  expect_dims("out", out, 2);
  EXPECT(size > 0 && elements % size == 0, "size is ", size, ", expected a divisor of ", elements);
  expect_shape("out", out, {size, elements / size});
}

}  // namespace

// The last byte is padded with zeros.
ACLNN(SignBitsPack, (Floating<In>, self), (int64_t, size), (Out, out)) {
  expect_dtype("out", out, at::kByte);
  expect_dims("self", self, 1);
  const int64_t bytes = self.numel() / 8 + (self.numel() % 8 == 0 ? 0 : 1);
  expect_rows(self, size.value(), bytes, out);
  const at::Tensor signs =
      at::constant_pad_nd(at::ge(self, 0).to(at::kByte), {0, 8 * bytes - self.numel()});
  out = signs.view({bytes, 8})
            .bitwise_left_shift(bits_of(self))
            .sum(1, /*keepdim=*/false, at::kByte)
            .view({size.value(), bytes / size.value()});
}
ACLNN(SignBitsUnpack, (In, self), (int64_t, size), (aclDataType, dtype), (Out, out)) {
  expect_dtype("self", self, at::kByte);
  EXPECT(dtype == at::kFloat || dtype == at::kHalf, "dtype is ", dtype_text(dtype),
         ", expected FLOAT or FLOAT16");
  expect_dtype("out", out, dtype);
  int64_t elements = 0;
  EXPECT(!__builtin_mul_overflow(self.numel(), int64_t{8}, &elements), "self has ", self.numel(),
         " elements, expected fewer");
  expect_rows(self, size.value(), elements, out);
  out = self.unsqueeze(1)
            .bitwise_right_shift(bits_of(self))
            .bitwise_and(1)
            .to(at::kFloat)
            .mul(2)
            .sub(1)
            .view({size.value(), elements / size.value()});
}

}  // namespace aclnn_host::compression_sign_bits_rows
