// Sorting, extremes and their indices, unique elements.

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_sorting {

NAMED_OPERATOR(Sort, (In, x), (Out, y1), (Out, y2), (Attribute<int64_t>, axis),
               (Attribute<bool>, descending),
               (Unused<Attribute<bool>>, stable, "equal elements keep their order in any case")) {
  std::tie(y1, y2) = at::sort(x, /*stable=*/true, axis.value_or(-1), descending.value_or(false));
}
NAMED_OPERATOR(SortV2, (In, x), (Out, y), (Attribute<int64_t>, axis),
               (Attribute<bool>, descending)) {
  y = std::get<0>(at::sort(x, axis.value_or(-1), descending.value_or(false)));
}
NAMED_OPERATOR(TopKV2, (In, x), (HostInts, k), (Out, values), (Out, indices),
               (Attribute<bool>, sorted), (Attribute<int64_t>, dim), (Attribute<bool>, largest)) {
  std::tie(values, indices) =
      at::topk(x, one_of("k", k), dim.value_or(-1), largest.value_or(true), sorted.value_or(true));
}
NAMED_OPERATOR(ArgMaxV2, (In, x), (HostInts, dimension), (Out, y), (Attribute<bool>, keep_dims),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of y says it")) {
  y = at::argmax(x, one_of("dimension", dimension), keep_dims.value_or(false)).view(y->sizes());
}
NAMED_OPERATOR(ArgMin, (In, x), (HostInts, dimension), (Out, y), (Attribute<bool>, keep_dims),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of y says it")) {
  y = at::argmin(x, one_of("dimension", dimension), keep_dims.value_or(false)).view(y->sizes());
}
NAMED_OPERATOR(ArgMaxWithValue, (In, x), (Out, indice), (Out, values),
               (Attribute<int64_t>, dimension), (Attribute<bool>, keep_dims)) {
  std::tie(values, indice) = at::max(x, dimension.value_or(0), keep_dims.value_or(false));
}
NAMED_OPERATOR(ArgMinWithValue, (In, x), (Out, indice), (Out, values),
               (Attribute<int64_t>, dimension), (Attribute<bool>, keep_dims)) {
  std::tie(values, indice) = at::min(x, dimension.value_or(0), keep_dims.value_or(false));
}
// var with updates at the indices along the dimension.
NAMED_OPERATOR(ArgMaxGrad, (In, var), (IndexIn, indices), (In, updates), (Out, y),
               (Attribute<int64_t>, dimension)) {
  const int64_t dim = c10::maybe_wrap_dim(dimension.value_or(0), var.dim());
  check_bounds("indices", indices, var.dim() == 0 ? 1 : var.size(dim));
  const bool is_reduced = indices.dim() < var.dim();
  const auto along = [&](const at::Tensor& t) { return is_reduced ? t.unsqueeze(dim) : t; };
  y = var.scatter(dim, along(indices), along(updates));
}
NAMED_OPERATOR(Histogram, (In, x), (Out, y), (Attribute<int64_t>, bins), (Attribute<double>, min),
               (Attribute<double>, max)) {
  expect_at_least("bins", bins.value_or(100), 1);
  expect_shape("y", y, {bins.value_or(100)});
  y = at::histc(wide(x).to(at::kFloat), bins.value_or(100), min.value_or(0), max.value_or(0));
}
NAMED_OPERATOR(Bincount, (IndexIn, array), (HostInts, size), (In, weights), (Out, bins)) {
  const int64_t count = one_of("size", size);
  expect_at_least("size", count, 0);
  check_bounds("array", array, count);
  expect_shape("bins", bins, {count});
  const bool is_weighted = weights.numel() > 0;
  if (is_weighted) expect_shape("weights", weights, array.sizes());
  const at::Tensor each =
      is_weighted ? weights.flatten() : at::ones_like(array, bins->scalar_type()).flatten();
  bins = each.new_zeros({count}).scatter_add(0, array.flatten(), each);
}
NAMED_OPERATOR(UniqueWithCountsAndSorting, (In, x), (SizedOut, y), (SizedOut, inverse),
               (SizedOut, counts), (Attribute<bool>, sorted), (Attribute<bool>, return_inverse),
               (Attribute<bool>, return_counts)) {
  y.expect(x.scalar_type());
  inverse.expect(at::kLong);
  counts.expect(at::kLong);
  if (!x.is_cpu()) return;
  const auto [values, indices, numbers] = at::_unique2(
      x, sorted.value_or(true), return_inverse.value_or(false), return_counts.value_or(false));
  y = values;
  if (return_inverse.value_or(false)) inverse = indices;
  if (return_counts.value_or(false)) counts = numbers;
}
NAMED_OPERATOR(UniqueConsecutive, (In, x), (SizedOut, y), (SizedOut, idx), (SizedOut, count),
               (Attribute<bool>, return_idx), (Attribute<bool>, return_counts),
               (Attribute<int64_t>, axis)) {
  y.expect(x.scalar_type());
  idx.expect(at::kLong);
  count.expect(at::kLong);
  if (!x.is_cpu()) return;
  const bool has_indices = return_idx.value_or(false), has_counts = return_counts.value_or(false);
  constexpr int64_t kFlat = 1000;  // CANN's value for no axis
  const bool is_flat = axis.value_or(kFlat) == kFlat;
  const auto [values, indices, numbers] = at::unique_consecutive(
      x, has_indices, has_counts, is_flat ? std::nullopt : std::optional(*axis));
  y = values;
  if (has_indices) idx = indices;
  if (has_counts) count = numbers;
}

}  // namespace aclnn_host::named_sorting
