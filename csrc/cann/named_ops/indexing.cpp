// Gathers, scatters and fills by indices and masks.

#include "cann/named_ops/operator.h"
#include "cann/rows/indexing/slices.h"

namespace aclnn_host::named_indexing {

namespace {

// Converts negative indices, which count from the end; refuses indices out of range.
at::Tensor wrapped(const at::Tensor& indices, int64_t size) {
  check_bounds("indices", indices, size, -size);
  return at::where(indices < 0, indices + size, indices);
}

// The slices of x at the indices along a dimension, in the indices' shape.
at::Tensor taken(const at::Tensor& x, const at::Tensor& indices, int64_t axis) {
  const int64_t dim = c10::maybe_wrap_dim(axis, x.dim());
  const at::Tensor positions = wrapped(indices, x.size(dim));
  const at::Tensor parts = x.index_select(dim, positions.flatten());
  const auto split = static_cast<size_t>(dim);
  return parts.reshape(
      joined(x.sizes().slice(0, split), indices.sizes(), x.sizes().slice(split + 1)));
}

// var with the rows at the indices replaced by updates, which have the shape of the rows.
at::Tensor with_rows(const at::Tensor& var, const at::Tensor& indices, const at::Tensor& updates,
                     bool accumulate) {
  EXPECT(var.dim() > 0, "var has no dimensions, expected one or more");
  expect_dtype("updates", updates, var);
  expect_shape("updates", updates, joined(indices.sizes(), var.sizes().slice(1)));
  const at::Tensor positions = wrapped(indices, var.size(0));
  return at::index_put(var, {positions}, updates, accumulate);
}

// var with updates at the coordinates in the last dimension of indices, which cover the first
// dimensions.
at::Tensor with_elements(const at::Tensor& var, const at::Tensor& indices,
                         const at::Tensor& updates, bool accumulate) {
  const int64_t depth = indices.dim() == 0 ? 0 : indices.size(-1);
  EXPECT(depth > 0 && depth <= var.dim(), "indices has shape ", indices.sizes(),
         ", expected a last dimension of 1 to ", var.dim());
  expect_dtype("updates", updates, var);
  expect_shape("updates", updates,
               joined(indices.sizes().slice(0, static_cast<size_t>(indices.dim()) - 1),
                      var.sizes().slice(static_cast<size_t>(depth))));
  c10::List<std::optional<at::Tensor>> positions;
  for (int64_t i = 0; i < depth; ++i) {
    positions.push_back(wrapped(indices.select(-1, i), var.size(i)));
  }
  return at::index_put(var, positions, updates, accumulate);
}

at::Tensor one_hot(const at::Tensor& x, int64_t depth, const at::Tensor& on_value,
                   const at::Tensor& off_value, const std::optional<int64_t>& axis) {
  expect_at_least("depth", depth, 0);
  expect_one("on_value", on_value);
  expect_one("off_value", off_value);
  expect_dtype("off_value", off_value, on_value);
  const int64_t dim = c10::maybe_wrap_dim(axis.value_or(-1), x.dim() + 1);
  const at::Tensor is_class = (x.unsqueeze(-1) == at::arange(depth, x.options())).movedim(-1, dim);
  return at::where(is_class, on_value.reshape({}), off_value.reshape({}));
}

}  // namespace

NAMED_OPERATOR(GatherV2, (In, x), (IndexIn, indices), (HostInts, axis), (Out, y),
               (Attribute<int64_t>, batch_dims),
               (Unused<Attribute<bool>>, negative_index_support,
                "negative indices always count from the end"),
               (Unused<Attribute<bool>>, is_preprocessed,
                "prepares indices for CANN's kernel; the result is the same")) {
  EXPECT(axis.size() == 1 && batch_dims.value_or(0) == 0, "axis has ", axis.size(),
         " numbers and batch_dims is ", batch_dims.value_or(0), ", expected one and 0");
  y = taken(x, indices, axis[0]);
}
NAMED_OPERATOR(GatherV2D, (In, x), (IndexIn, indices), (Out, y), (Attribute<int64_t>, axis)) {
  y = taken(x, indices, axis.value_or(0));
}
NAMED_OPERATOR(Gather, (In, x), (IndexIn, indices), (Out, y),
               (Unused<Attribute<bool>>, validate_indices, "indices are always checked"),
               (Only, batch_dims, "0"),
               (Unused<Attribute<bool>>, is_preprocessed,
                "prepares indices for CANN's kernel; the result is the same"),
               (Unused<Attribute<bool>>, negative_index_support,
                "negative indices always count from the end")) {
  y = taken(x, indices, 0);
}
NAMED_OPERATOR(GatherElements, (In, x), (IndexIn, index), (Out, y), (Attribute<int64_t>, dim)) {
  const int64_t axis = c10::maybe_wrap_dim(dim.value_or(0), x.dim());
  const at::Tensor positions = x.dim() == 0 ? index : wrapped(index, x.size(axis));
  y = moved(x, [&](const at::Tensor& all) { return at::gather(all, axis, positions); });
}
NAMED_OPERATOR(ScatterElements, (In, data), (IndexIn, indices), (In, updates), (Out, y),
               (Attribute<int64_t>, axis), (Attribute<std::string>, reduction)) {
  const int64_t dim = c10::maybe_wrap_dim(axis.value_or(0), data.dim());
  const at::Tensor positions = data.dim() == 0 ? indices : wrapped(indices, data.size(dim));
  const std::string mode = reduction.value_or("none");
  expect_text("reduction", mode, {"none", "add", "mul", "multiply"});
  y = mode == "none"  ? data.scatter(dim, positions, updates)
      : mode == "add" ? data.scatter_add(dim, positions, updates)
                      : data.scatter_reduce(dim, positions, updates, "prod");
}
NAMED_OPERATOR(ScatterUpdate, (In, var), (IndexIn, indices), (In, updates), (Out, result),
               (Unused<Attribute<bool>>, use_locking, "changes no number")) {
  result = with_rows(var, indices, updates, false);
}
NAMED_OPERATOR(ScatterNdUpdate, (In, var), (IndexIn, indices), (In, updates), (Out, result),
               (Unused<Attribute<bool>>, use_locking, "changes no number")) {
  result = with_elements(var, indices, updates, false);
}
NAMED_OPERATOR(ScatterNdAdd, (In, var), (IndexIn, indices), (In, updates), (Out, result),
               (Unused<Attribute<bool>>, use_locking, "changes no number")) {
  result = with_elements(var, indices, updates, true);
}
NAMED_OPERATOR(InplaceIndexAdd, (In, var), (IndexIn, indices), (In, updates), (Optional<In>, alpha),
               (Out, result), (Attribute<int64_t>, axis)) {
  const int64_t dim = c10::maybe_wrap_dim(axis.value_or(0), var.dim());
  if (alpha) expect_one("alpha", *alpha);
  expect_dims("indices", indices, 0, 1);
  const at::Tensor added = alpha ? updates * alpha->reshape({}) : updates;
  const int64_t size = var.dim() == 0 ? 1 : var.size(dim);
  result = var.index_add(dim, wrapped(indices.reshape({-1}), size), added.to(var.scalar_type()));
}
// indexed_sizes has a 1 for every dimension with indices; the indices follow as tensors and are
// broadcast.
NAMED_OPERATOR(IndexPutV2, (In, x), (In, value), (HostInts, indexed_sizes),
               (Unused<HostInts>, indexed_strides, "says how CANN walks through x"), (Ins, indices),
               (Out, y), (Attribute<bool>, accumulate)) {
  expect_dtype("value", value, x);
  check_values("indexed_sizes", indexed_sizes, 0, 1);
  const auto indexed = static_cast<size_t>(std::ranges::count(indexed_sizes, 1));
  EXPECT(static_cast<int64_t>(indexed_sizes.size()) <= x.dim() && indexed == indices.size(),
         "indexed_sizes is ", indexed_sizes, ", expected at most ", x.dim(),
         " numbers, as x has dimensions, and a 1 for each of ", indices.size(), " indices");
  c10::List<std::optional<at::Tensor>> positions;
  size_t next = 0;
  for (size_t dim = 0; dim < indexed_sizes.size(); ++dim) {
    if (indexed_sizes[dim] == 0) {
      positions.push_back(std::nullopt);
      continue;
    }
    const at::Tensor& each = indices[next++];
    const bool is_mask = each.scalar_type() == at::kBool || each.scalar_type() == at::kByte;
    if (!is_mask) expect_dtype("indices", each, {at::kLong, at::kInt, at::kBool, at::kByte});
    positions.push_back(is_mask ? each.to(at::kBool)
                                : wrapped(each.to(at::kLong), x.size(static_cast<int64_t>(dim))));
  }
  y = at::index_put(x, positions, value, accumulate.value_or(false));
}
// assist1 is 0, and assist2 the value, at positions to fill; elsewhere they are 1 and 0.
NAMED_OPERATOR(IndexFillD, (In, x), (In, assist1), (In, assist2), (Out, y),
               (Unused<Attribute<int64_t>>, dim, "the helpers are filled along it already")) {
  expect_like("assist1", assist1, x);
  expect_like("assist2", assist2, x);
  y = x * assist1 + assist2;
}
NAMED_OPERATOR(MaskedFill, (In, x), (In, mask), (In, value), (Out, y)) {
  expect_dtype("mask", mask, at::kBool);
  y = at::where(mask, value.to(x.scalar_type()), x);
}
NAMED_OPERATOR(MaskedScatter, (In, x), (In, mask), (In, updates), (Out, y)) {
  expect_dtype("mask", mask, at::kBool);
  expect_dtype("updates", updates, x);
  y = x.masked_scatter(mask, updates);
}
// Fills the i-th range, from start[i, b] to end[i, b] along the last dimension of the b-th batch of
// x, with value[i].
NAMED_OPERATOR(MaskedFillRange, (In, x), (IndexIn, start), (IndexIn, end), (In, value), (Out, y),
               (Attribute<int64_t>, axis)) {
  expect_dims("x", x, 1, 3);
  expect_dtype("value", value, x);
  const int64_t last = x.dim() - 1;
  EXPECT(axis.value_or(-1) == -1 || axis == last, "axis is ", *axis, ", expected -1 or ", last,
         ", the last dimension of x");
  EXPECT(start.dim() == 2 && end.sizes() == start.sizes() && value.dim() == 1 &&
             value.size(0) == start.size(0),
         "start has shape ", start.sizes(), ", end ", end.sizes(), " and value ", value.sizes(),
         ", expected (N, B) twice and (N)");
  Integers of_batch(static_cast<size_t>(x.dim()), 1);
  if (x.dim() > 1) of_batch[0] = start.size(1);
  EXPECT(x.dim() == 1 ? start.size(1) == 1 : start.size(1) == x.size(0), "start has shape ",
         start.sizes(), ", expected (N, ", x.dim() == 1 ? 1 : x.size(0), ")");
  const at::Tensor positions = at::arange(x.size(last), start.options());
  at::Tensor result = x;
  for (int64_t i = 0; i < start.size(0); ++i) {
    const at::Tensor is_in =
        (positions >= start[i].view(of_batch)) & (positions < end[i].view(of_batch));
    result = at::where(is_in, value[i], result);
  }
  y = result;
}
NAMED_OPERATOR(FillDiagonal, (In, x), (Out, y), (Attribute<double>, fill_value),
               (Attribute<bool>, wrap)) {
  at::Tensor copy = x.clone();
  copy.fill_diagonal_(fill_value.value_or(0), wrap.value_or(false));
  y = copy;
}
NAMED_OPERATOR(OneHot, (IndexIn, x), (HostInts, depth), (In, on_value), (In, off_value), (Out, y),
               (Attribute<int64_t>, axis)) {
  y = one_hot(x, one_of("depth", depth), on_value, off_value, axis);
}
NAMED_OPERATOR(OneHotD, (IndexIn, x), (In, on_value), (In, off_value), (Out, y),
               (Attribute<int64_t>, depth), (Attribute<int64_t>, axis)) {
  EXPECT(depth, "attribute depth is absent, expected a number of classes");
  y = one_hot(x, *depth, on_value, off_value, axis);
}
NAMED_OPERATOR(EmbeddingDenseGrad, (Floating<In>, grad), (IndexIn, indices), (Out, y),
               (Attribute<int64_t>, num_weights), (Attribute<int64_t>, padding_idx),
               (Attribute<bool>, scale_grad_by_freq)) {
  const int64_t rows = num_weights.value_or(0);
  check_bounds("indices", indices, rows);
  y = at::embedding_dense_backward(wide(grad), indices, rows, padding_idx.value_or(-1),
                                   scale_grad_by_freq.value_or(false));
}
NAMED_OPERATOR(SearchSorted, (In, sorted_sequence), (In, values), (Out, out),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of the output says it"),
               (Attribute<bool>, right)) {
  out = at::searchsorted(sorted_sequence, values, false, right.value_or(false));
}
NAMED_OPERATOR(MaskedSelect, (In, x), (In, mask), (SizedOut, y)) {
  expect_dtype("mask", mask, at::kBool);
  y.expect(x.scalar_type());
  if (x.is_cpu()) y = at::masked_select(x, mask);
}
NAMED_OPERATOR(NonZero, (In, x), (SizedOut, y), (Attribute<bool>, transpose),
               (Unused<Attribute<int64_t>>, dtype, "the dtype of the output says it")) {
  y.expect(at::kLong);
  if (!x.is_cpu()) return;
  const at::Tensor positions = at::nonzero(x);
  y = transpose.value_or(false) ? positions.t() : positions;
}

}  // namespace aclnn_host::named_indexing
