// Reductions over dimensions, and running ones along a dimension.

#include <algorithm>

#include <ATen/ScalarOps.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/div.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/min.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/renorm.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/std.h>
#include <ATen/ops/std_mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trace.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/var.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/row.h"

namespace aclnn_host::reduction_rows {

namespace {

// CANN means every dimension when it gives none.
at::OptionalIntArrayRef dims_of(at::OptionalIntArrayRef dims) {
  return dims && !dims->empty() ? dims : std::nullopt;
}

// All dimensions from `first` on.
std::vector<int64_t> dims_from(const at::Tensor& self, int64_t first) {
  std::vector<int64_t> dims;
  for (int64_t dim = first; dim < self.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// The mean of integers is truncated.
at::Tensor mean_of(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keep) {
  const bool is_integer = at::isIntegralType(self.scalar_type(), /*includeBool=*/false) &&
                          !c10::isBarebonesUnsignedType(self.scalar_type());
  if (!is_integer) return at::mean(wide(self), dims, keep);
  const at::Tensor sum = at::sum(self, dims, keep, at::kLong);
  EXPECT(self.numel() > 0, "self has shape ", self.sizes(),
         ", expected elements because integers have no mean of none");
  return at::div(sum, self.numel() / std::max<int64_t>(sum.numel(), 1), "trunc")
      .to(self.scalar_type());
}

// Running products; of unsigned integers, for which ATen has no kernel, those of INT64 modulo the
// range of the type, which are the same.
at::Tensor running_product(const at::Tensor& self, int64_t dim) {
  if (!c10::isBarebonesUnsignedType(self.scalar_type())) {
    return at::cumprod(wide(self), dim, wide(self.scalar_type()));
  }
  return at::cumprod(self.to(at::kLong), dim).to(self.scalar_type());
}

at::Tensor flipped(const at::Tensor& self, int64_t dim, bool flips) {
  return flips ? at::flip(self, dim) : self;
}

// ---- aclnnGroupedBiasAddGrad

// Where each group of rows ends, from the ends or, with type 1, from the sizes of the groups.
at::Tensor ends_of_groups(const at::Tensor& groups, int64_t type, int64_t rows) {
  check_bounds("groupIdxOptional", groups, rows + 1);
  at::Tensor ends = type == 0 ? groups.to(at::kLong) : at::cumsum(groups, 0, at::kLong);
  if (!ends.is_cpu() || is_rehearsed()) return ends;
  EXPECT(ends[-1].item().toLong() == rows, "groupIdxOptional ends with row ",
         ends[-1].item().toLong(), ", expected ", rows, ", the number of rows in gradY");
  EXPECT(at::ge(at::diff(ends), 0).all().item().toBool(),
         "groupIdxOptional has ends that decrease, expected each at or after the one before");
  return ends;
}

// The sums of the rows of each group.
at::Tensor sums_of_groups(const at::Tensor& gradient, const at::Tensor& groups, int64_t type) {
  EXPECT(groups.scalar_type() == at::kInt || groups.scalar_type() == at::kLong,
         "groupIdxOptional has dtype ", dtype_text(groups.scalar_type()),
         ", expected INT32 or INT64");
  expect_dims("groupIdxOptional", groups, 1, 1);
  expect_dims("gradY", gradient, 2, 2);
  constexpr int64_t kMostGroups = 2048;
  const int64_t rows = gradient.size(0), count = groups.size(0);
  EXPECT(count > 0 && count <= kMostGroups, "groupIdxOptional has ", count,
         " groups, expected 1 to ", kMostGroups);
  const at::Tensor places =
      at::arange(rows, at::TensorOptions(at::kLong).device(gradient.device()));
  const at::Tensor group = at::bucketize(places, ends_of_groups(groups, type, rows),
                                         /*out_int32=*/false, /*right=*/true);
  // Row by row; of many rows a sum in FLOAT would lose digits.
  const at::Tensor wide_gradient = gradient.to(at::kDouble);
  const at::Tensor zeros = at::zeros({count, gradient.size(1)}, wide_gradient.options());
  return at::index_add(zeros, 0, group.clamp_max(count - 1), wide_gradient);
}

void grouped_bias_add_grad(const at::Tensor& gradient, const std::optional<at::Tensor>& groups,
                           int64_t type, Output& out) {
  expect_dtype(out, gradient);
  EXPECT(type == 0 || type == 1, "groupIdxType is ", type,
         ", expected 0 (ends of groups) or 1 (sizes)");
  if (groups) {
    out = sums_of_groups(gradient, *groups, type);
  } else {
    expect_dims("gradY", gradient, 3, 3);
    out = at::sum(wide(gradient), 1);
  }
}

}  // namespace

ACLNN(ReduceSum, (In, self), (Ints, dims), (bool, keepDims), (aclDataType, dtype), (Out, out)) {
  out = at::sum(wide(self), dims_of(dims), keepDims, wide(dtype));
}
ACLNN(ReduceNansum, (In, self), (Ints, dim), (bool, keepDim), (aclDataType, dtype), (Out, out)) {
  out = at::nansum(wide(self), dims_of(dim), keepDim, wide(dtype));
}
ACLNN(Mean, (In, self), (Ints, dim), (bool, keepDim), (aclDataType, dtype), (Out, out)) {
  out = at::mean(wide(self), dims_of(dim), keepDim, wide(dtype));
}
ACLNN(Prod, (In, self), (aclDataType, dtype), (Out, out)) {
  out = at::prod(wide(self), wide(dtype));
}
ACLNN(ProdDim, (In, self), (int64_t, dim), (bool, keepDim), (aclDataType, dtype), (Out, out)) {
  out = at::prod(wide(self), dim, keepDim, wide(dtype));
}
ACLNN(Trace, (In, self), (Out, out)) {
  out = at::trace(self.scalar_type() == at::kBool ? self.to(at::kLong) : self);
}

ACLNN_UNARY(Max, at::max)
ACLNN_UNARY(Min, at::min)
ACLNN(MaxDim, (In, self), (int64_t, dim), (bool, keepdim), (Out, out), (Out, indices)) {
  std::tie(out, indices) = at::max(self, dim, keepdim);
}
ACLNN(MinDim, (In, self), (int64_t, dim), (bool, keepdim), (Out, out), (Out, indices)) {
  std::tie(out, indices) = at::min(self, dim, keepdim);
}
ACLNN(Amax, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::amax(self, dim, keepDim);
}
ACLNN(Amin, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::amin(self, dim, keepDim);
}
ACLNN(AminmaxAll, (In, self), (Out, minOut), (Out, maxOut)) {
  std::tie(minOut, maxOut) = at::aminmax(self);
}
ACLNN(AminmaxDim, (In, self), (int64_t, dim), (bool, keepDim), (Out, minOut), (Out, maxOut)) {
  std::tie(minOut, maxOut) = at::aminmax(self, dim, keepDim);
}
ACLNN(Aminmax, (In, self), (Ints, dim), (bool, keepDim), (Out, minOut), (Out, maxOut)) {
  minOut = at::amin(self, dim, keepDim);
  maxOut = at::amax(self, dim, keepDim);
}
ACLNN(ArgMax, (In, self), (int64_t, dim), (bool, keepdim), (Out, out)) {
  out = at::argmax(self, dim, keepdim);
}
ACLNN(ArgMin, (In, self), (int64_t, dim), (bool, keepdim), (Out, out)) {
  out = at::argmin(self, dim, keepdim);
}

ACLNN(All, (In, self), (Ints, dim), (bool, keepdim), (Out, out)) {
  out = at::all(self.to(at::kBool), dims_of(dim), keepdim);
}
ACLNN(Any, (In, self), (Ints, dim), (bool, keepdim), (Out, out)) {
  out = at::any(self.to(at::kBool), dims_of(dim), keepdim);
}

ACLNN(VarCorrection, (In, self), (OptionalInts, dim), (int64_t, correction), (bool, keepdim),
      (Out, out)) {
  out = at::var(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(VarMean, (In, self), (OptionalInts, dim), (int64_t, correction), (bool, keepdim),
      (Out, varOut), (Out, meanOut)) {
  std::tie(varOut, meanOut) =
      at::var_mean(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(Std, (In, self), (OptionalInts, dim), (int64_t, correction), (bool, keepdim), (Out, out)) {
  out = at::std(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(StdMeanCorrection, (In, self), (OptionalInts, dim), (int64_t, correction), (bool, keepdim),
      (Out, stdOut), (Out, meanOut)) {
  std::tie(stdOut, meanOut) =
      at::std_mean(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}

ACLNN(Norm, (In, self), (Number, pScalar), (Ints, dim), (bool, keepdim), (Out, out)) {
  out = at::norm(wide(self), pScalar, dim, keepdim);
}
ACLNN(LinalgVectorNorm, (In, self), (Number, ord), (Ints, dims), (bool, keepDims),
      (aclDataType, dtype), (Out, out)) {
  out = at::linalg_vector_norm(wide(self), ord, dims_of(dims), keepDims, wide(dtype));
}
ACLNN(Renorm, (In, self), (Number, p), (int64_t, dim), (Number, maxNorm), (Out, out)) {
  out = at::renorm(wide(self), p, dim, maxNorm);
}
ACLNN(InplaceRenorm, (InOut, selfRef), (Number, p), (int64_t, dim), (Number, maxNorm)) {
  selfRef = at::renorm(wide(selfRef), p, dim, maxNorm);
}
ACLNN(LogSumExp, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::logsumexp(wide(self), dim, keepDim);
}

ACLNN(Cumsum, (In, self), (int64_t, dim), (aclDataType, dtype), (Out, out)) {
  out = at::cumsum(wide(self), dim, wide(dtype));
}
ACLNN(Cumprod, (In, input), (Number, axis), (aclDataType, dtype), (Out, out)) {
  out = at::cumprod(wide(input), axis.toLong(), wide(dtype));
}
ACLNN(Cummax, (In, self), (int64_t, dim), (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::cummax(self, dim);
}
ACLNN(Cummin, (In, self), (int64_t, dim), (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::cummin(self, dim);
}

ACLNN(Argsort, (In, self), (int64_t, dim), (bool, descending), (Out, out)) {
  out = at::argsort(self, /*stable=*/true, dim, descending);
}
ACLNN(Var, (FloatIn, self), (OptionalInts, dim), (bool, unbiased), (bool, keepdim), (Out, out)) {
  out = at::var(wide(self), dims_of(dim), c10::Scalar(unbiased ? 1 : 0), keepdim);
}
ACLNN(MaxV2, (In, self), (Ints, dims), (bool, keepDims), (bool, noopWithEmptyDims), (Out, out)) {
  expect_dtype(out, self);
  out = dims.empty() && noopWithEmptyDims ? self : at::amax(self, dims, keepDims);
}
ACLNN(MeanV2, (In, self), (Ints, dim), (bool, keepDim), (bool, noopWithEmptyAxes), (Out, out)) {
  expect_dtype(out, self);
  out = dim.empty() && noopWithEmptyAxes ? self : mean_of(self, dims_of(dim), keepDim);
}
// Of data without elements CANN's result is 0, not the logarithm of 0.
ACLNN(ReduceLogSum, (FloatIn, data), (Ints, axes), (bool, keepDims), (bool, noopWithEmptyAxes),
      (Out, reduce)) {
  expect_dtype(reduce, data);
  if (axes.empty() && noopWithEmptyAxes) {
    reduce = data;
  } else {
    const at::Tensor sum = at::sum(wide(data), dims_of(axes), keepDims);
    reduce = data.numel() == 0 ? sum : at::log(sum);
  }
}
ACLNN(GlobalAveragePool, (Image<FloatIn>, self), (Image<Out>, out)) {
  expect_dtype(out, self);
  expect_dims("self", self, 4, 8);
  out = at::mean(wide(self), dims_from(self, 2), /*keepdim=*/true);
}
ACLNN(GlobalMaxPool, (Image<FloatIn>, self), (Image<Out>, out)) {
  expect_dtype(out, self);
  expect_dims("self", self, 4, 8);
  out = at::amax(self, dims_from(self, 2), /*keepdim=*/true);
}
// Of an input without elements CANN's mean is 0 and its invstd NaN.
ACLNN(BatchNormStats, (Image<FloatIn>, input), (double, eps), (Out, mean), (Out, invstd)) {
  expect_dims("input", input, 2, 8);
  EXPECT(input.size(1) > 0, "input has shape ", input.sizes(),
         ", expected at least one channel in its second dimension");
  std::vector<int64_t> dims = dims_from(input, 1);
  dims[0] = 0;
  const auto [variance, average] = at::var_mean(wide(input), dims, c10::Scalar(0));
  mean = input.numel() == 0 ? at::zeros_like(average) : average;
  invstd = at::rsqrt(at::add(variance, c10::Scalar(eps.value())));
}
ACLNN(GroupedBiasAddGrad, (FloatIn, gradY), (OptionalIn, groupIdxOptional), (Out, out)) {
  grouped_bias_add_grad(gradY, groupIdxOptional, 0, out);
}
ACLNN(GroupedBiasAddGradV2, (FloatIn, gradY), (OptionalIn, groupIdxOptional),
      (int64_t, groupIdxType), (Out, out)) {
  grouped_bias_add_grad(gradY, groupIdxOptional, groupIdxType.value(), out);
}

ACLNN(InplaceCumprod, (InOut, input), (Number, dim)) {
  EXPECT(dim.isIntegral(/*includeBool=*/false), "dim is ", dim, ", expected an integer");
  input = running_product(input, dim.toLong());
}
// An exclusive sum is that of the elements before; a reverse one starts at the end.
ACLNN(CumsumV2, (In, self), (int64_t, dim), (bool, exclusive), (bool, reverse), (Out, out)) {
  expect_dtype(out, self);
  at::Tensor x = flipped(self.dim() == 0 ? self.reshape({1}) : self, dim, reverse);
  if (exclusive) {
    x = at::roll(x, 1, dim.value());
    x.narrow(dim, 0, std::min<int64_t>(x.size(dim), 1)).zero_();
  }
  const at::Tensor sums = at::cumsum(wide(x), dim, wide(x.scalar_type()));
  out = flipped(sums, dim, reverse);
}

ACLNN(ReduceMinV2, (FloatIn, x), (int64_t, axes), (int64_t, keepdims), (Out, y)) {
  expect_dims("x", x, 2);
  expect_dtype(y, x);
  EXPECT(axes == 0 || axes == 1, "axes is ", axes, ", expected 0 or 1");
  EXPECT(keepdims == 0 || keepdims == 1, "keepdims is ", keepdims, ", expected 0 or 1");
  y = at::amin(x, axes.value(), keepdims == 1);
}

}  // namespace aclnn_host::reduction_rows
