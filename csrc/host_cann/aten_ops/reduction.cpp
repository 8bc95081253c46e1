// Reductions over dimensions, and running ones along a dimension.

#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/min.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/renorm.h>
#include <ATen/ops/std.h>
#include <ATen/ops/std_mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trace.h>
#include <ATen/ops/var.h>
#include <ATen/ops/var_mean.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// CANN means every dimension when it gives none.
at::OptionalIntArrayRef dims_of(at::OptionalIntArrayRef dims) {
  return dims && !dims->empty() ? dims : std::nullopt;
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
