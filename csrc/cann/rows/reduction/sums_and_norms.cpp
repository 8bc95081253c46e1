// Sums, means, products, variances and norms over dimensions, and the logical reductions all and
// any.

#include "cann/rows/row.h"
#include "cann/rows/rows_in_pieces.h"

namespace aclnn_host::reduction_sums_and_norms_rows {

namespace {

// CANN passes no dimensions to mean every dimension.
at::OptionalIntArrayRef dims_of(at::OptionalIntArrayRef dims) {
  return dims && !dims->empty() ? dims : std::nullopt;
}

// The dimensions counted from the first one, in order; none if one does not exist.
std::vector<int64_t> in_order(const at::Tensor& self, at::IntArrayRef dims) {
  std::vector<int64_t> ordered;
  for (const int64_t dim : dims) {
    ordered.push_back(dim < 0 ? dim + self.dim() : dim);
    if (ordered.back() < 0 || ordered.back() >= self.dim()) return {};
  }
  std::ranges::sort(ordered);
  return ordered;
}

// The shape of a reduction.
std::vector<int64_t> reduced(const at::Tensor& self, at::IntArrayRef dims, bool keep) {
  std::vector<int64_t> shape;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    const bool is_reduced = std::ranges::find(dims, dim) != dims.end();
    if (keep || !is_reduced) shape.push_back(is_reduced ? 1 : self.size(dim));
  }
  return shape;
}

// Assigns a reduction of `self` in FLOAT at least. Rows of 16 bits are widened piece by piece.
// reduction(tensor, dims, keep) computes it.
template <class Reduction>
void reduce(Output& out, const at::Tensor& self, at::IntArrayRef dims, bool keep,
            Reduction reduction) {
  if (dims.size() == 1 && has_rows_of_16_bits(self, dims[0])) {
    const at::Tensor* const room = out.room(
        out->scalar_type(), reduced(self, in_order(self, dims), keep), Output::Reads::kAnyElement);
    if (room != nullptr && room->is_contiguous()) {
      return write_in_pieces(self, *room, [&](const at::Tensor& rows) {
        return reduction(wide(rows), at::IntArrayRef{1}, /*keep=*/true);
      });
    }
  }
  out = reduction(wide(self), dims_of(dims), keep);
}

// True if ATen certainly adds numbers of 16 bits in FLOAT and rounds each sum once: where the
// dimensions are one in memory, and there is more than one sum. Otherwise its loops, or its
// threads, may add to a sum that is already rounded.
bool is_rounded_once(const at::Tensor& self, at::IntArrayRef dims) {
  if (!at::isReducedFloatingType(self.scalar_type()) || dims.empty()) return false;
  int64_t added = self.size(dims.back());
  for (size_t i = 1; i < dims.size(); ++i) {
    const int64_t size = self.size(dims[i]);
    if (self.stride(dims[i - 1]) != self.stride(dims[i]) * size) return false;
    added *= self.size(dims[i - 1]);
  }
  return self.numel() > added;
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

// ---- aclnnGroupedBiasAddGrad

// The end of each group of rows, from the ends or, with type 1, from the sizes of the groups.
at::Tensor ends_of_groups(const at::Tensor& groups, int64_t type, int64_t rows) {
  check_bounds("groupIdxOptional", groups, rows + 1);
  at::Tensor ends = type == 0 ? groups.to(at::kLong) : at::cumsum(groups, 0, at::kLong);
  if (!has_values(ends)) return ends;
  EXPECT(ends[-1].item().toLong() == rows, "groupIdxOptional ends with row ",
         ends[-1].item().toLong(), ", expected ", rows, ", the number of rows in gradY");
  EXPECT(at::ge(at::diff(ends), 0).all().item().toBool(),
         "groupIdxOptional has ends that decrease, expected each at or after the one before");
  return ends;
}

// The sums of the rows of each group.
at::Tensor sums_of_groups(const at::Tensor& gradient, const at::Tensor& groups, int64_t type) {
  expect_dtype("groupIdxOptional", groups, {at::kInt, at::kLong});
  expect_dims("groupIdxOptional", groups, 1, 1);
  expect_dims("gradY", gradient, 2, 2);
  constexpr int64_t kMostGroups = 2048;
  const int64_t rows = gradient.size(0), count = groups.size(0);
  EXPECT(count > 0 && count <= kMostGroups, "groupIdxOptional has ", count,
         " groups, expected 1 to ", kMostGroups);
  const at::Tensor row_numbers =
      at::arange(rows, at::TensorOptions(at::kLong).device(gradient.device()));
  const at::Tensor group = at::bucketize(row_numbers, ends_of_groups(groups, type, rows),
                                         /*out_int32=*/false, /*right=*/true);
  // Sums row by row in DOUBLE; in FLOAT a sum of many rows would lose digits.
  const at::Tensor wide_gradient = gradient.to(at::kDouble);
  const at::Tensor zeros = at::zeros({count, gradient.size(1)}, wide_gradient.options());
  return at::index_add(zeros, 0, group.clamp_max(count - 1), wide_gradient);
}

void grouped_bias_add_grad(const at::Tensor& gradient, const std::optional<at::Tensor>& groups,
                           int64_t type, Output& out) {
  expect_one_of("groupIdxType", type, {0, 1}, " (ends or sizes of groups)");
  if (groups) {
    out = sums_of_groups(gradient, *groups, type);
  } else {
    expect_dims("gradY", gradient, 3, 3);
    out = at::sum(wide(gradient), 1);
  }
}

}  // namespace

ACLNN(ReduceSum, (In, self), (Ints, dims), (bool, keepDims), (aclDataType, dtype), (Out, out)) {
  const std::vector<int64_t> ordered = in_order(self, dims);
  if (dtype == self.scalar_type() && dtype == out->scalar_type() &&
      is_rounded_once(self, ordered)) {
    return out.write(
        dtype, reduced(self, ordered, keepDims), Output::Reads::kAnyElement,
        [&] { return at::sum(self, dims, keepDims); },
        [&](at::Tensor& result) { at::sum_out(result, self, dims, keepDims); });
  }
  reduce(out, self, dims, keepDims,
         [&](const at::Tensor& x, at::OptionalIntArrayRef of, bool keep) {
           return at::sum(x, of, keep, wide(dtype));
         });
}
ACLNN(ReduceNansum, (In, self), (Ints, dim), (bool, keepDim), (aclDataType, dtype), (Out, out)) {
  reduce(out, self, dim, keepDim, [&](const at::Tensor& x, at::OptionalIntArrayRef of, bool keep) {
    return at::nansum(x, of, keep, wide(dtype));
  });
}
// Behaviour of ReduceLogSum: Of data without elements the result is 0, not -inf.
ACLNN(ReduceLogSum, (Floating<In>, data), (Ints, axes), (bool, keepDims), (bool, noopWithEmptyAxes),
      (SameDtype<Out>, reduce, "data")) {
  if (axes.empty() && noopWithEmptyAxes) {
    reduce = data;
  } else {
    const at::Tensor sum = at::sum(wide(data), dims_of(axes), keepDims);
    reduce = data.numel() == 0 ? sum : at::log(sum);
  }
}
ACLNN(LogSumExp, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::logsumexp(wide(self), dim, keepDim);
}
ACLNN(Mean, (In, self), (Ints, dim), (bool, keepDim), (aclDataType, dtype), (Out, out)) {
  reduce(out, self, dim, keepDim, [&](const at::Tensor& x, at::OptionalIntArrayRef of, bool keep) {
    return at::mean(x, of, keep, wide(dtype));
  });
}
// Behaviour of MeanV2: Integers have their exact sum in INT64, divided and truncated.
ACLNN(MeanV2, (In, self), (Ints, dim), (bool, keepDim), (bool, noopWithEmptyAxes),
      (SameDtype<Out>, out, "self")) {
  out = dim.empty() && noopWithEmptyAxes ? self : mean_of(self, dims_of(dim), keepDim);
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
// Behaviour of GroupedBiasAddGrad*: Ends of groups that decrease, or do not end with the last row,
// are 507015. CANN leaves that to the caller.
ACLNN(GroupedBiasAddGrad, (Floating<In>, gradY), (Optional<In>, groupIdxOptional),
      (SameDtype<Out>, out, "gradY")) {
  grouped_bias_add_grad(gradY, groupIdxOptional, 0, out);
}
ACLNN(GroupedBiasAddGradV2, (Floating<In>, gradY), (Optional<In>, groupIdxOptional),
      (int64_t, groupIdxType), (SameDtype<Out>, out, "gradY")) {
  grouped_bias_add_grad(gradY, groupIdxOptional, groupIdxType.value(), out);
}

ACLNN(All, (In, self), (Ints, dim), (bool, keepdim), (Out, out)) {
  out = at::all(self.to(at::kBool), dims_of(dim), keepdim);
}
ACLNN(Any, (In, self), (Ints, dim), (bool, keepdim), (Out, out)) {
  out = at::any(self.to(at::kBool), dims_of(dim), keepdim);
}
ACLNN(Var, (Floating<In>, self), (Optional<Ints>, dim), (bool, unbiased), (bool, keepdim),
      (Out, out)) {
  out = at::var(wide(self), dims_of(dim), c10::Scalar(unbiased ? 1 : 0), keepdim);
}

ACLNN(VarCorrection, (In, self), (Optional<Ints>, dim), (int64_t, correction), (bool, keepdim),
      (Out, out)) {
  out = at::var(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(VarMean, (In, self), (Optional<Ints>, dim), (int64_t, correction), (bool, keepdim),
      (Out, varOut), (Out, meanOut)) {
  std::tie(varOut, meanOut) =
      at::var_mean(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(Std, (In, self), (Optional<Ints>, dim), (int64_t, correction), (bool, keepdim), (Out, out)) {
  out = at::std(wide(self), dims_of(dim), c10::Scalar(correction.value()), keepdim);
}
ACLNN(StdMeanCorrection, (In, self), (Optional<Ints>, dim), (int64_t, correction), (bool, keepdim),
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

}  // namespace aclnn_host::reduction_sums_and_norms_rows
