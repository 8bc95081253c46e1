// Normalisation by the root mean square, and fused functions.

#include "cann/rows/normalization/dimensions.h"
#include "cann/rows/row.h"

namespace aclnn_host::normalization_rms_norm_rows {

namespace {

// The reciprocal of the root mean square.
at::Tensor root_mean_square(const at::Tensor& x, double epsilon, const Dimensions& dims) {
  return (dims.mean(x.square()) + epsilon).rsqrt();
}

}  // namespace

// Deviation of AddRmsNorm: The sum is normalised as it is; a device rounds a FLOAT16 sum first.

// The RMS norm of x1 + x2, and the sum. Without rstdOut, 16-bit tensors are normalised over their
// last dimension; gamma then has a leading dimension of 1, and xOut may be absent, too.
ACLNN(AddRmsNorm, (In, x1), (Like<In>, x2, "x1"), (SameDtype<In>, gamma, "x1"), (double, epsilon),
      (SameDtype<Out>, yOut, "x1"), (Optional<Out>, rstdOut),
      (SameDtype<Optional<Out>>, xOut, "x1")) {
  require_given(xOut || !rstdOut, "xOut is null, expected a tensor as rstdOut is one");
  expect_dims("x1", x1, 1, 8);
  if (!rstdOut) {
    expect_dtype("x1", x1, {at::kHalf, at::kBFloat16}, " as rstdOut is null");
    expect_sizes("gamma", gamma, {1, x1.size(-1)}, " as rstdOut is null");
  }
  const at::Tensor weight = rstdOut ? gamma : gamma.select(0, 0);
  const Dimensions dims("x1", x1, weight.sizes());
  const at::Tensor x = wide(x1) + wide(x2);
  const at::Tensor rstd = root_mean_square(x, epsilon, dims);
  yOut = x * rstd * wide(weight);
  rstdOut = rstd;
  xOut = x;
}
// Writes the sum to x2Ref and its norm to x1Ref.
ACLNN(InplaceAddRmsNorm, (Floating<InOut>, x1Ref), (Like<Floating<InOut>>, x2Ref, "x1Ref"),
      (Floating<In>, gamma), (double, epsilon), (Out, rstdOut)) {
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const Dimensions dims("x1Ref", x1Ref, gamma.sizes());
  const at::Tensor sum = wide(x1Ref) + wide(x2Ref);
  const at::Tensor rstd = root_mean_square(sum, epsilon, dims);
  x1Ref = sum * rstd * wide(gamma);
  x2Ref = sum;
  rstdOut = rstd;
}
// y1Out is the norm in FLOAT, y2Out in the type of x1.
ACLNN(AddRmsNormCast, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (double, epsilon), (Out, y1Out),
      (Like<Out>, y2Out, "x1"), (Out, rstdOut), (Like<Out>, xOut, "x1")) {
  expect_dtype("x1", x1, {at::kHalf, at::kBFloat16});
  expect_dtype("y1Out", y1Out, at::kFloat);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const at::Tensor sum = wide(x1) + wide(x2);
  const at::Tensor rstd = root_mean_square(sum, epsilon, Dimensions("x1", x1, gamma.sizes()));
  const at::Tensor result = sum * rstd * wide(gamma);
  y1Out = result;
  y2Out = result;
  rstdOut = rstd;
  xOut = sum;
}

// gamma has the shape of the last dimensions of x1, which are normalised together.
ACLNN(FusedAddRmsNorm, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (double, epsilon), (double, scale),
      (Like<Out>, yOut, "x1"), (Out, rstdOut), (Like<Out>, xOut, "x1")) {
  expect_elements("x1", x1);
  const at::Tensor x = wide(x1) * scale.value() + wide(x2);
  const at::Tensor rstd = root_mean_square(x, epsilon, Dimensions("x1", x1, gamma.sizes()));
  yOut = x * rstd * wide(gamma);
  rstdOut = rstd;
  xOut = x;
}

ACLNN(GemmaRmsNorm, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"), (double, epsilon),
      (Like<Out>, yOut, "x"), (Out, rstdOut)) {
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const at::Tensor rstd = root_mean_square(wide(x), epsilon, Dimensions("x", x, gamma.sizes()));
  yOut = wide(x) * rstd * (wide(gamma) + 1);
  rstdOut = rstd;
}

}  // namespace aclnn_host::normalization_rms_norm_rows
