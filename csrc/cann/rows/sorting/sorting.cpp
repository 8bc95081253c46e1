// Orders: sort, top-k and medians.

#include "cann/rows/row.h"

namespace aclnn_host::sorting_sorting_rows {

ACLNN(Sort, (In, self), (bool, stable), (int64_t, dim), (bool, descending), (Out, valuesOut),
      (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::sort(self, stable, dim, descending);
}

// NaN comes first in both directions; ATen puts it last in ascending order. The sort is always
// stable, which `stable` being false allows.
ACLNN(SortWithIndex, (In, x), (SameShape<In>, index, "x"), (int64_t, axis), (bool, descending),
      (Unused<bool>, stable, "equal elements keep their order in any case"),
      (Like<Out>, valuesOut, "x"), (Like<Out>, indicesOut, "index")) {
  expect_dtype("index", index, at::kInt);
  const int64_t last = std::max<int64_t>(x.dim(), 1) - 1;
  EXPECT(axis == -1 || axis == last, "axis is ", axis, ", expected -1 or ", last,
         ", the last dimension of x");
  at::Tensor order = std::get<1>(at::sort(x, /*stable=*/true, -1, descending));
  if (at::isFloatingType(x.scalar_type())) {
    const at::Tensor is_nan = at::isnan(x).to(at::kByte).gather(-1, order);
    const at::Tensor nan_first =
        std::get<1>(at::sort(is_nan, /*stable=*/true, -1, /*descending=*/true));
    order = order.gather(-1, nan_first);
  }
  valuesOut = x.gather(-1, order);
  indicesOut = index.gather(-1, order);
}

// Deviation of Argsort: out may have any type that INT64 can be cast to, and BFLOAT16 is sorted
// along dimension 1 too.
ACLNN(Argsort, (In, self), (int64_t, dim), (bool, descending), (Out, out)) {
  out = at::argsort(self, /*stable=*/true, dim, descending);
}

ACLNN(Topk, (In, self), (int64_t, k), (int64_t, dim), (bool, largest), (bool, sorted),
      (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::topk(self, k, dim, largest, sorted);
}
// torch_npu calls version 2, with sortPolicy 1, the bitonic order of a device. With either policy
// ATen decides the order of equal elements.
ACLNN(TopkV2, (In, self), (int64_t, k), (int64_t, dim), (bool, largest), (bool, sorted),
      (int64_t, sortPolicy), (Out, valuesOut), (Out, indicesOut)) {
  expect_one_of("sortPolicy", sortPolicy, {0, 1});
  std::tie(valuesOut, indicesOut) = at::topk(self, k, dim, largest, sorted);
}
ACLNN(Kthvalue, (In, self), (int64_t, k), (int64_t, dim), (bool, keepdim), (Out, valuesOut),
      (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::kthvalue(self, k, dim, keepdim);
}

ACLNN(Median, (In, self), (Out, valuesOut)) {
  valuesOut = at::median(self);
}
ACLNN(MedianDim, (In, self), (int64_t, dim), (bool, keepDim), (Out, valuesOut), (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::median(self, dim, keepDim);
}
ACLNN_UNARY(NanMedian, at::nanmedian)
ACLNN(NanMedianDim, (In, self), (int64_t, dim), (bool, keepDim), (Out, valuesOut),
      (Out, indicesOut)) {
  std::tie(valuesOut, indicesOut) = at::nanmedian(self, dim, keepDim);
}

}  // namespace aclnn_host::sorting_sorting_rows
