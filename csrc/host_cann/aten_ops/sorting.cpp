// Orders: sort, top-k, medians, searches and histograms.

#include <algorithm>

#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/kthvalue.h>
#include <ATen/ops/median.h>
#include <ATen/ops/nanmedian.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

ACLNN(Sort, (In, self), (bool, stable), (int64_t, dim), (bool, descending), (Out, valuesOut),
      (Out, indicesOut)) {
  const auto [values, indices] = at::sort(self, stable, dim, descending);
  valuesOut = values;
  indicesOut = indices;
}
ACLNN(Topk, (In, self), (int64_t, k), (int64_t, dim), (bool, largest), (bool, sorted),
      (Out, valuesOut), (Out, indicesOut)) {
  const auto [values, indices] = at::topk(self, k, dim, largest, sorted);
  valuesOut = values;
  indicesOut = indices;
}
ACLNN(Kthvalue, (In, self), (int64_t, k), (int64_t, dim), (bool, keepdim), (Out, valuesOut),
      (Out, indicesOut)) {
  const auto [values, indices] = at::kthvalue(self, k, dim, keepdim);
  valuesOut = values;
  indicesOut = indices;
}

ACLNN(Median, (In, self), (Out, valuesOut)) {
  valuesOut = at::median(self);
}
ACLNN(MedianDim, (In, self), (int64_t, dim), (bool, keepDim), (Out, valuesOut), (Out, indicesOut)) {
  const auto [values, indices] = at::median(self, dim, keepDim);
  valuesOut = values;
  indicesOut = indices;
}
ACLNN(NanMedian, (In, self), (Out, out)) {
  out = at::nanmedian(self);
}
ACLNN(NanMedianDim, (In, self), (int64_t, dim), (bool, keepDim), (Out, valuesOut),
      (Out, indicesOut)) {
  const auto [values, indices] = at::nanmedian(self, dim, keepDim);
  valuesOut = values;
  indicesOut = indices;
}

ACLNN(SearchSorted, (In, sortedSequence), (In, self), (bool, outInt32), (bool, right),
      (OptionalIn, sorter), (Out, out)) {
  out = at::searchsorted(sortedSequence, self, outInt32, right, std::nullopt, sorter);
}
ACLNN(SearchSorteds, (In, sortedSequence), (Number, self), (bool, outInt32), (bool, right),
      (OptionalIn, sorter), (Out, out)) {
  out = at::searchsorted(sortedSequence, self, outInt32, right, std::nullopt, sorter);
}
ACLNN(Bucketize, (In, self), (In, boundaries), (bool, outInt32), (bool, right), (Out, out)) {
  out = at::bucketize(self, boundaries, outInt32, right);
}

ACLNN(Bincount, (In, self), (OptionalIn, weights), (int64_t, minlength), (Out, out)) {
  // How many numbers there are depends on the data; in a rehearsal there are as many as out has.
  out =
      at::bincount(self, weights,
                   is_rehearsed() ? std::max(minlength.value(), out->numel()) : minlength.value());
}
ACLNN(Histc, (In, self), (int64_t, bins), (Number, min), (Number, max), (Out, out)) {
  // ATen counts floating-point numbers alone, and counts in their type: FLOAT16 ends at 2,048.
  const bool is_integer = at::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  out.copy(at::histc(is_integer ? self.to(at::kDouble) : wide(self), bins, min, max));
}
