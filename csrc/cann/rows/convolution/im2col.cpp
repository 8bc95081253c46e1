// Image patches as columns (im2col), and the sums of columns (col2im).

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <c10/util/safe_numerics.h>

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::convolution_im2col_rows {

namespace {

// The product of sizes, or the largest integer if it overflows; no tensor has as many elements.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return c10::mul_overflows(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

}  // namespace

ACLNN(Im2col, (Image<In>, self), (Ints, kernelSize), (Ints, dilation), (Ints, padding),
      (Ints, stride), (Out, out)) {
  expect_dims("self", self, 3, 4);
  check_pair("kernelSize", kernelSize, 1);
  check_pair("dilation", dilation, 1);
  check_pair("padding", padding, 0);
  check_pair("stride", stride, 1);
  const auto [height, width] = windows_in(self, kernelSize, stride, padding, dilation);
  const int64_t rows = product(self.size(-3), product(kernelSize[0], kernelSize[1]));
  expect_shape("out", out, with_last_sizes(self, 3, {rows, product(height, width)}));
  const auto columns = [&](const at::Tensor& x) {
    return at::im2col(x, kernelSize, dilation, padding, stride);
  };
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/false) &&
      self.scalar_type() != at::kComplexHalf) {
    out = columns(self);
    return;
  }
  // Elements are only copied, so those of other types can be viewed as floating-point numbers of
  // their size.
  const at::Tensor bits = self.element_size() == 1 ? self.to(at::kShort) : self;
  const at::ScalarType like = bits.element_size() == 2   ? at::kHalf
                              : bits.element_size() == 4 ? at::kFloat
                                                         : at::kDouble;
  out = columns(bits.view(like)).view(bits.scalar_type()).to(self.scalar_type());
}
ACLNN(Im2colBackward, (In, gradOutput), (Ints, inputSize), (Ints, kernelSize), (Ints, dilation),
      (Ints, padding), (Ints, stride), (Image<Out>, out)) {
  const auto expect_small = [](const char* name, at::IntArrayRef sizes) {
    for (const int64_t size : sizes) {
      EXPECT(size >= 0 && size <= std::numeric_limits<int32_t>::max() / 4, name, " is ", sizes,
             ", expected numbers from 0 to 2^29 - 1");
    }
  };
  expect_small("kernelSize", kernelSize);
  expect_small("dilation", dilation);
  expect_small("padding", padding);
  expect_small("stride", stride);
  out = at::col2im(wide(gradOutput), inputSize, kernelSize, dilation, padding, stride);
}
ACLNN(UnfoldGrad, (In, gradOut), (Ints, inputSizes), (int64_t, dim), (int64_t, size),
      (int64_t, step), (Out, gradIn)) {
  const int64_t taken = size.value(), apart = step.value();
  const bool is_scalar = inputSizes.empty();
  const auto axis =
      static_cast<size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(inputSizes.size())));
  const int64_t length = is_scalar ? 1 : inputSizes[axis];
  expect_range("size", taken, 0, length, ", the size of the dimension");
  expect_at_least("step", apart, 1);
  std::vector<int64_t> unfolded = inputSizes.vec();
  if (!is_scalar) unfolded[axis] = (length - taken) / apart + 1;
  unfolded.push_back(taken);
  expect_shape("gradOut", gradOut, unfolded);
  gradIn = at::unfold_backward(wide(gradOut), inputSizes, dim, size, step);
}

}  // namespace aclnn_host::convolution_im2col_rows
