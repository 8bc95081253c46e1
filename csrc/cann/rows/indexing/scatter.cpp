// Scatters elements and slices by index, and combines them with the existing ones.

#include <ATen/WrapDimUtils.h>

#include "cann/rows/indexing/slices.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_scatter_rows {

namespace {

c10::Scalar wide(const c10::Scalar& number) {
  return number;
}
using aclnn_host::wide;

// The combination with the existing element.
enum class ScatterMode { kNone = 0, kAdd = 1, kMultiply = 2 };

template <class Source>
at::Tensor scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                   const Source& source, int64_t reduce) {
  switch (static_cast<ScatterMode>(reduce)) {
    case ScatterMode::kNone: return at::scatter(self, dim, index, source);
    case ScatterMode::kAdd: return at::scatter(wide(self), dim, index, wide(source), "add");
    case ScatterMode::kMultiply:
      return at::scatter(wide(self), dim, index, wide(source), "multiply");
  }
  EXPECT(false, "reduce is ", reduce, ", expected 0 (replace), 1 (add) or 2 (multiply)");
}

// row_numbers, with indices into the first dimension.
at::Tensor first_rows(const at::Tensor& indices, const at::Tensor& tensor) {
  return row_numbers(indices.unsqueeze(-1), tensor);
}

// The indices of the coordinates that are inside the tensor.
at::Tensor inside(const at::Tensor& indices, const at::Tensor& tensor) {
  const at::Tensor sizes =
      at::tensor(tensor.sizes().slice(0, static_cast<size_t>(indices.size(-1))), indices.options());
  return ((indices >= 0) & (indices < sizes)).all(-1).flatten().nonzero().flatten();
}

// A copy of `tensor` with slices replaced; of several updates of one slice, the last one wins.
at::Tensor replaced(const char* name, const at::Tensor& tensor, const at::Tensor& indices,
                    const at::Tensor& updates, int64_t least, bool leaves_out_others = false) {
  const int64_t depth = depth_of(indices, name, tensor, least);
  expect_shape("updates", updates, slices_shape(indices, tensor, depth));
  const at::Tensor positions = indices.reshape({-1, depth});
  const bool all = !leaves_out_others || !indices.is_cpu();
  const at::Tensor kept = all ? at::Tensor() : inside(positions, tensor);
  const at::Tensor rows = row_numbers(all ? positions : positions.index_select(0, kept), tensor);
  return moved(tensor, [&](const at::Tensor& x) {
    const at::Tensor matrix = as_rows(x, depth);
    const at::Tensor source = as_movable(updates).reshape({positions.size(0), matrix.size(1)});
    return at::index_copy(matrix, 0, rows, all ? source : source.index_select(0, kept))
        .view(x.sizes());
  });
}

enum class Reduce { kNone = 0, kAdd = 1, kMultiply = 2, kMax = 3, kMin = 4, kMean = 5 };

c10::string_view name_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::kAdd: return "sum";
    case Reduce::kMultiply: return "prod";
    case Reduce::kMax: return "amax";
    case Reduce::kMin: return "amin";
    case Reduce::kMean: return "mean";
    default: break;
  }
  EXPECT(false, "reduce is ", static_cast<int64_t>(reduce),
         ", expected 0 (replace), 1 (add), 2 (multiply), 3 (max), 4 (min) or 5 (mean)");
}

at::Tensor scatter_reduced(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                           const at::Tensor& src, int64_t reduce, bool include_self) {
  expect_dims("index", index, self.dim());
  expect_dims("src", src, self.dim());
  at::maybe_wrap_dim(dim, self.dim());
  if (reduce == static_cast<int64_t>(Reduce::kNone)) {
    return moved(self,
                 [&](const at::Tensor& x) { return at::scatter(x, dim, index, as_movable(src)); });
  }
  return at::scatter_reduce(wide(self), dim, index, wide(src), name_of(static_cast<Reduce>(reduce)),
                            include_self);
}

// Checks the arguments of TensorFlow's scatter functions: a slice of updates for each index of the
// first dimension.
void check_slices(const at::Tensor& var, const at::Tensor& indices, const at::Tensor& updates) {
  expect_dims("varRef", var, 1, 8);
  expect_shape("updates", updates, joined(indices.sizes(), var.sizes().slice(1)));
}

at::Tensor slices_reduced(const at::Tensor& var, const at::Tensor& indices,
                          const at::Tensor& updates, Reduce reduce) {
  check_slices(var, indices, updates);
  const at::Tensor matrix = as_rows(wide(var), 1);
  const at::Tensor rows = first_rows(indices, var).unsqueeze(1).expand({-1, matrix.size(1)});
  return at::scatter_reduce(matrix, 0, rows, wide(updates).reshape(rows.sizes()), name_of(reduce),
                            /*include_self=*/true)
      .view(var.sizes());
}

// The quotient; integers are truncated.
at::Tensor quotient(const at::Tensor& a, const at::Tensor& b) {
  const bool is_integral = at::isIntegralType(a.scalar_type(), /*includeBool=*/true);
  return is_integral ? truncated_quotient(a, b) : at::div(a, b);
}

// The indices of updates, sorted by the number of earlier updates of the same row, and how many
// updates have each of these numbers.
std::pair<at::Tensor, std::vector<int64_t>> rounds(const at::Tensor& rows) {
  constexpr std::optional<bool> kStable = true;
  const auto [sorted, order] = at::sort(rows, kStable, /*dim=*/0, /*descending=*/false);
  const at::Tensor earlier =
      at::arange(c10::Scalar(rows.numel()), rows.options()) - at::searchsorted(sorted, sorted);
  const at::Tensor counts = at::bincount(earlier);
  const auto* count = counts.const_data_ptr<int64_t>();
  return {order.index_select(0, std::get<1>(at::sort(earlier, kStable, 0, false))),
          {count, count + counts.numel()}};
}

}  // namespace

ACLNN(Scatter, (In, self), (int64_t, dim), (IndexIn, index), (In, src), (int64_t, reduce),
      (Out, out)) {
  out = scatter(self, dim, index, src, reduce);
}
ACLNN(InplaceScatter, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (In, src),
      (int64_t, reduce)) {
  selfRef = scatter(selfRef, dim, index, src, reduce);
}
ACLNN(ScatterValue, (In, self), (int64_t, dim), (IndexIn, index), (Number, value),
      (int64_t, reduce), (Out, out)) {
  out = scatter(self, dim, index, value, reduce);
}
ACLNN(InplaceScatterValue, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (Number, value),
      (int64_t, reduce)) {
  selfRef = scatter(selfRef, dim, index, value, reduce);
}
ACLNN(ScatterAdd, (In, self), (int64_t, dim), (IndexIn, index), (In, src), (Out, out)) {
  out = at::scatter_add(self, dim, index, src);
}

ACLNN(ScatterReduce, (In, self), (int64_t, dim), (IndexIn, index), (SameDtype<In>, src, "self"),
      (int64_t, reduce), (bool, includeSelf), (SameDtype<Out>, out, "self")) {
  out = scatter_reduced(self, dim, index, src, reduce, includeSelf);
}
ACLNN(InplaceScatterReduce, (InOut, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, src, "selfRef"), (int64_t, reduce), (bool, includeSelf)) {
  selfRef = scatter_reduced(selfRef, dim, index, src, reduce, includeSelf);
}

// updates[i] replaces the part of data[i] that starts at indices[i] along axis; a pair of indices
// is the batch and the start.
ACLNN(InplaceScatterUpdate, (InOut, data), (IndexIn, indices), (SameDtype<In>, updates, "data"),
      (int64_t, axis)) {
  EXPECT(data->dim() >= 2 && updates.dim() == data->dim(), "data has shape ", data->sizes(),
         " and updates has shape ", updates.sizes(),
         ", expected two dimensions or more, as many in both");
  expect_elements("data", data);
  expect_elements("indices", indices);
  expect_elements("updates", updates);
  const int64_t dim = at::maybe_wrap_dim(axis, data->dim());
  EXPECT(dim != 0, "axis is ", axis, ", expected a dimension other than the first");
  const int64_t count = updates.size(0);
  const int64_t length = updates.size(dim);
  const bool is_pairs = indices.dim() == 2 && indices.size(1) == 2;
  EXPECT(indices.dim() < 2 || is_pairs, "indices has shape ", indices.sizes(),
         ", expected no dimensions, one, or two of which the second has the size 2");
  EXPECT(count == (indices.dim() == 0 ? 1 : indices.size(0)) && count <= data->size(0),
         "updates has shape ", updates.sizes(),
         ", expected as many parts as there are indices, and at most ", data->size(0));
  Sizes expected = data->sizes().vec();
  expected[0] = count;
  expected[static_cast<size_t>(dim)] = std::min(length, data->size(dim));
  expect_shape("updates", updates, expected);

  const at::Tensor batch =
      is_pairs ? indices.select(1, 0) : at::arange(c10::Scalar(count), indices.options());
  const at::Tensor start = is_pairs ? indices.select(1, 1) : indices.reshape({-1});
  check_bounds("indices", batch, data->size(0));
  check_bounds("indices", start, data->size(dim) - length + 1);
  const at::Tensor rows = (batch * c10::Scalar(data->size(dim)) + start).unsqueeze(1) +
                          at::arange(c10::Scalar(length), indices.options());
  data = moved(data, [&](const at::Tensor& x) {
    const at::Tensor parts = x.movedim(dim, 1);
    const at::Tensor source = as_rows(as_movable(updates).movedim(dim, 1), 2);
    return at::index_copy(as_rows(parts, 2), 0, rows.reshape({-1}), source)
        .view(parts.sizes())
        .movedim(1, dim);
  });
}

// aclnnScatter<Name>(varRef, indices, updates, useLocking): combines varRef[index] with each
// update.
#define SCATTER(Name, reduce)                                                                   \
  ACLNN(Scatter##Name, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef"), \
        (Unused<bool>, useLocking, "nothing is locked")) {                                      \
    varRef = slices_reduced(varRef, indices, updates, reduce);                                  \
  }
SCATTER(Max, Reduce::kMax)
SCATTER(Min, Reduce::kMin)
SCATTER(Mul, Reduce::kMultiply)
#undef SCATTER

// Several divisors of one element are applied in order.
ACLNN(ScatterDiv, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef"),
      (Unused<bool>, useLocking, "nothing is locked")) {
  check_slices(varRef, indices, updates);
  const at::Tensor rows = first_rows(indices, varRef);
  const at::Tensor matrix = as_rows(wide(varRef), 1);
  const at::Tensor divisors = wide(updates).reshape({rows.numel(), matrix.size(1)});
  if (!rows.is_cpu()) return;
  const auto [order, counts] = rounds(rows);
  const at::Tensor result = matrix.clone(at::MemoryFormat::Contiguous);
  int64_t first = 0;
  for (const int64_t count : counts) {
    const at::Tensor updated = order.narrow(0, first, count);
    const at::Tensor positions = rows.index_select(0, updated);
    result.index_copy_(
        0, positions,
        quotient(result.index_select(0, positions), divisors.index_select(0, updated)));
    first += count;
    if (is_rehearsed()) break;  // the other rounds are alike
  }
  varRef = result.view(varRef->sizes());
}
// The semantics are those of TensorFlow's scatter_add or, if the shapes match, of scatter_nd_add.
ACLNN(TfScatterAdd, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef")) {
  expect_dims("varRef", varRef, 1, 8);
  EXPECT(varRef->numel() > 0 || indices.numel() == 0,
         "varRef has no elements, expected some because indices has shape ", indices.sizes());
  const bool is_slices = updates.sizes() == joined(indices.sizes(), varRef->sizes().slice(1));
  const int64_t depth = is_slices ? 1 : depth_of(indices, "varRef", varRef, 0);
  if (!is_slices) expect_shape("updates", updates, slices_shape(indices, varRef, depth));
  const at::Tensor rows = is_slices ? first_rows(indices, varRef) : row_numbers(indices, varRef);
  if (varRef->numel() == 0) return;
  const at::Tensor matrix = as_rows(wide(varRef), depth);
  const at::Tensor source = wide(updates).reshape({rows.numel(), matrix.size(1)});
  varRef = at::index_add(matrix, 0, rows, source).view(varRef->sizes());
}

ACLNN(ScatterNd, (In, data), (IndexIn, indices), (SameDtype<In>, updates, "data"),
      (SameDtype<Out>, out, "data")) {
  out = replaced("data", data, indices, updates, 0);
}
// Behaviour of ScatterNdUpdate: A slice whose index is out of range is skipped.
ACLNN(ScatterNdUpdate, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef")) {
  expect_dims("indices", indices, 2, 8);
  // The published kernel skips slices whose index is out of range.
  varRef = replaced("varRef", varRef, indices, updates, 1, /*leaves_out_others=*/true);
}

}  // namespace aclnn_host::indexing_scatter_rows
