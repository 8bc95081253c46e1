// Orders: sort, top-k, medians, searches and histograms.

#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/kthvalue.h>
#include <ATen/ops/median.h>
#include <ATen/ops/nanmedian.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>

#include "plumbing/plumbing.h"

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
  out = at::bincount(self, weights, minlength);
}
ACLNN(Histc, (In, self), (int64_t, bins), (Number, min), (Number, max), (Out, out)) {
  out = at::histc(self, bins, min, max);
}
