// The largest and the smallest elements, and their indices.

#include "cann/rows/row.h"

namespace aclnn_host::reduction_extremes_rows {

ACLNN_UNARY(Max, at::max)
ACLNN(MaxV2, (In, self), (Ints, dims), (bool, keepDims), (bool, noopWithEmptyDims),
      (SameDtype<Out>, out, "self")) {
  out = dims.empty() && noopWithEmptyDims ? self : at::amax(self, dims, keepDims);
}
ACLNN(MaxDim, (In, self), (int64_t, dim), (bool, keepdim), (Out, out), (Out, indices)) {
  std::tie(out, indices) = at::max(self, dim, keepdim);
}
ACLNN_UNARY(Min, at::min)
ACLNN(MinDim, (In, self), (int64_t, dim), (bool, keepdim), (Out, out), (Out, indices)) {
  std::tie(out, indices) = at::min(self, dim, keepdim);
}
ACLNN(Amax, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::amax(self, dim, keepDim);
}
ACLNN(Amin, (In, self), (Ints, dim), (bool, keepDim), (Out, out)) {
  out = at::amin(self, dim, keepDim);
}

ACLNN(ReduceMinV2, (Floating<In>, x), (int64_t, axes), (int64_t, keepdims),
      (SameDtype<Out>, y, "x")) {
  expect_dims("x", x, 2);
  expect_one_of("axes", axes, {0, 1});
  expect_one_of("keepdims", keepdims, {0, 1});
  y = at::amin(x, axes.value(), keepdims == 1);
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

}  // namespace aclnn_host::reduction_extremes_rows
