// Normalisation by the root mean square, and fused functions.

#include "cann/rows/checks.h"
#include "cann/rows/normalization/dimensions.h"
#include "cann/rows/row.h"

namespace aclnn_host::normalization_rms_norm_rows {

namespace {

// The reciprocal of the root mean square.
at::Tensor root_mean_square(const at::Tensor& x, double epsilon, const Dimensions& dims) {
  return (dims.mean(x.square()) + epsilon).rsqrt();
}

}  // namespace

// The RMS norm of x1 + x2, and the sum. Without rstdOut, 16-bit tensors are normalised over their
// last dimension; gamma then has a leading dimension of 1, and xOut may be absent, too.
ACLNN(AddRmsNorm, (In, x1), (Like<In>, x2, "x1"), (SameDtype<In>, gamma, "x1"), (double, epsilon),
      (SameDtype<Out>, yOut, "x1"), (Optional<Out>, rstdOut),
      (SameDtype<Optional<Out>>, xOut, "x1")) {
  require_given(xOut || !rstdOut, "xOut is null, expected a tensor as rstdOut is one");
  expect_dims("x1", x1, 1, 8);
  int64_t normed = 1;  // the number of trailing dimensions that are normalised
  if (rstdOut) {
    normed = gamma.dim();
    EXPECT(normed >= 1 && normed <= x1.dim() &&
               gamma.sizes() == x1.sizes().slice(static_cast<size_t>(x1.dim() - normed)),
           "gamma has shape ", gamma.sizes(), ", expected the last dimensions of x1, which is ",
           x1.sizes());
  } else {
    EXPECT(at::isReducedFloatingType(x1.scalar_type()), "x1 has dtype ",
           dtype_text(x1.scalar_type()), ", expected FLOAT16 or BFLOAT16 as rstdOut is null");
    EXPECT(gamma.sizes() == (at::IntArrayRef{1, x1.size(-1)}), "gamma has shape ", gamma.sizes(),
           ", expected [1, ", x1.size(-1), "] as rstdOut is null");
  }
  const at::Tensor x = wide(x1) + wide(x2);
  std::vector<int64_t> dims;
  for (int64_t dim = x.dim() - normed; dim < x.dim(); ++dim) dims.push_back(dim);
  const at::Tensor rstd = (x.square().mean(dims, /*keepdim=*/true) + epsilon.value()).rsqrt();
  yOut = x * rstd * wide(rstdOut ? gamma : gamma.select(0, 0));
  rstdOut = rstd;
  xOut = x;
}
// Writes the sum to x2Ref and its norm to x1Ref.
ACLNN(InplaceAddRmsNorm, (Floating<InOut>, x1Ref), (Like<Floating<InOut>>, x2Ref, "x1Ref"),
      (Floating<In>, gamma), (double, epsilon), (Out, rstdOut)) {
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const Dimensions dims(x1Ref, gamma.sizes());
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
  EXPECT(at::isReducedFloatingType(x1.scalar_type()), "x1 has dtype ", dtype_text(x1.scalar_type()),
         ", expected FLOAT16 or BFLOAT16");
  expect_dtype("y1Out", y1Out, at::kFloat);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const at::Tensor sum = wide(x1) + wide(x2);
  const at::Tensor rstd = root_mean_square(sum, epsilon, Dimensions(x1, gamma.sizes()));
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
  EXPECT(x1.numel() > 0, "x1 has shape ", x1.sizes(), ", expected at least one element");
  EXPECT(gamma.dim() >= 1 && gamma.dim() <= x1.dim() &&
             gamma.sizes() == x1.sizes().slice(static_cast<size_t>(x1.dim() - gamma.dim())),
         "gamma has shape ", gamma.sizes(), ", expected the last dimensions of x1, ", x1.sizes());
  std::vector<int64_t> dims;
  for (int64_t dim = x1.dim() - gamma.dim(); dim < x1.dim(); ++dim) dims.push_back(dim);
  const at::Tensor x = wide(x1) * scale.value() + wide(x2);
  const at::Tensor rstd = at::rsqrt(x.square().mean(dims, /*keepdim=*/true) + epsilon.value());
  yOut = x * rstd * wide(gamma);
  rstdOut = rstd;
  xOut = x;
}

ACLNN(GemmaRmsNorm, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"), (double, epsilon),
      (Like<Out>, yOut, "x"), (Out, rstdOut)) {
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const at::Tensor rstd = root_mean_square(wide(x), epsilon, Dimensions(x, gamma.sizes()));
  yOut = wide(x) * rstd * (wide(gamma) + 1);
  rstdOut = rstd;
}

}  // namespace aclnn_host::normalization_rms_norm_rows
