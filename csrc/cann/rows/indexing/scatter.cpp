// Scatters elements and slices by index, and combines them with the existing ones.

#include <ATen/WrapDimUtils.h>

#include "cann/rows/indexing/changes.h"
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

// Replaces elements as at::scatter does, which copies a whole tensor of 16 bits to FLOAT and back.
void replace(const at::Tensor& x, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
  const bool as_bits =
      at::isReducedFloatingType(x.scalar_type()) && source.scalar_type() == x.scalar_type();
  if (as_bits) return replace(x.view(at::kShort), dim, index, source.view(at::kShort));
  x.scatter_(dim, index, source);
}
void replace(const at::Tensor& x, int64_t dim, const at::Tensor& index, const c10::Scalar& value) {
  if (at::isReducedFloatingType(x.scalar_type())) {
    const at::Tensor rounded = at::scalar_tensor(value, at::TensorOptions(x.scalar_type()));
    return replace(x.view(at::kShort), dim, index, rounded.view(at::kShort).item());
  }
  x.scatter_(dim, index, value);
}

template <class Source>
void replace_elements(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                      const Source& source) {
  const at::Tensor result = out.editable(self, are_within(index, size_along(self, dim)));
  replace(result, dim, index, source);
  out = result;
}

// Assigns `self` with some elements replaced by sources, or combined with them.
template <class Source>
void scatter(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
             const Source& source, int64_t reduce) {
  const auto combine = [&](const char* by) {
    change_elements(out, self, dim, index, source, /*sees_all=*/false,
                    [&](const at::Tensor& x, int64_t along, const at::Tensor& places,
                        const Source& from) { x.scatter_(along, places, wide(from), by); });
  };
  switch (static_cast<ScatterMode>(reduce)) {
    case ScatterMode::kNone: return replace_elements(out, self, dim, index, source);
    case ScatterMode::kAdd: return combine("add");
    case ScatterMode::kMultiply: return combine("multiply");
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

// Assigns `self` with slices replaced; of several updates of one slice, the last one wins.
void replace_slices(Output& out, const char* name, const at::Tensor& self,
                    const at::Tensor& indices, const at::Tensor& updates, int64_t least,
                    bool leaves_out_others = false) {
  const int64_t depth = depth_of(indices, name, self, least);
  expect_shape("updates", updates, slices_shape(indices, self, depth));
  const at::Tensor positions = indices.reshape({-1, depth});
  const bool all = !leaves_out_others || !indices.is_cpu();
  const at::Tensor kept = all ? at::Tensor() : inside(positions, self);
  const at::Tensor rows = row_numbers(all ? positions : positions.index_select(0, kept), self);
  const at::Tensor result =
      has_rows(self, depth) ? out.editable(self) : self.clone(at::MemoryFormat::Contiguous);
  const at::Tensor matrix = rows_of(as_movable(result), depth);
  const Sizes sizes = joined(positions.sizes().slice(0, 1), matrix.sizes().slice(1));
  const at::Tensor source = as_movable(updates).reshape(sizes);
  matrix.index_copy_(0, rows, all ? source : source.index_select(0, kept));
  out = result;
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

void reduce_elements(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                     const at::Tensor& src, int64_t reduce, bool include_self) {
  expect_dims("index", index, self.dim());
  expect_dims("src", src, self.dim());
  at::maybe_wrap_dim(dim, self.dim());
  const auto by = static_cast<Reduce>(reduce);
  if (by == Reduce::kNone) {
    const at::Tensor result = out.editable(self, are_within(index, size_along(self, dim)));
    replace(as_movable(result), dim, index, as_movable(src));
    out = result;
    return;
  }
  // A mean counts the sources of every element.
  change_elements(
      out, self, dim, index, src, /*sees_all=*/by == Reduce::kMean,
      [&](const at::Tensor& x, int64_t along, const at::Tensor& places, const at::Tensor& sources) {
        x.scatter_reduce_(along, places, wide(sources), name_of(by), include_self);
      });
}

// Checks the arguments of TensorFlow's scatter functions: a slice of updates for each index of the
// first dimension.
void check_slices(const at::Tensor& var, const at::Tensor& indices, const at::Tensor& updates) {
  expect_dims("varRef", var, 1, 8);
  expect_shape("updates", updates, joined(indices.sizes(), var.sizes().slice(1)));
}

void reduce_slices(Output& var, const at::Tensor& indices, const at::Tensor& updates,
                   Reduce reduce) {
  check_slices(var, indices, updates);
  const at::Tensor numbers = first_rows(indices, var);
  change_slices(var, var, 0, numbers, [&](const at::Tensor& x, const at::Tensor& slices) {
    Sizes along(static_cast<size_t>(x.dim()), 1);
    along[0] = slices.numel();
    const at::Tensor rows = slices.view(along).expand(joined(slices.sizes(), x.sizes().slice(1)));
    x.scatter_reduce_(0, rows, wide(updates).reshape(rows.sizes()), name_of(reduce),
                      /*include_self=*/true);
  });
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
  scatter(out, self, dim, index, src, reduce);
}
ACLNN(InplaceScatter, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (In, src),
      (int64_t, reduce)) {
  scatter(selfRef, selfRef, dim, index, src, reduce);
}
ACLNN(ScatterValue, (In, self), (int64_t, dim), (IndexIn, index), (Number, value),
      (int64_t, reduce), (Out, out)) {
  scatter(out, self, dim, index, value, reduce);
}
ACLNN(InplaceScatterValue, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (Number, value),
      (int64_t, reduce)) {
  scatter(selfRef, selfRef, dim, index, value, reduce);
}
ACLNN(ScatterAdd, (In, self), (int64_t, dim), (IndexIn, index), (In, src), (Out, out)) {
  if (src.scalar_type() != self.scalar_type()) {
    out = at::scatter_add(self, dim, index, src);  // refuses the types
    return;
  }
  change_elements(out, self, dim, index, src, /*sees_all=*/false,
                  [&](const at::Tensor& x, int64_t along, const at::Tensor& places,
                      const at::Tensor& sources) { x.scatter_add_(along, places, wide(sources)); });
}

ACLNN(ScatterReduce, (In, self), (int64_t, dim), (IndexIn, index), (SameDtype<In>, src, "self"),
      (int64_t, reduce), (bool, includeSelf), (SameDtype<Out>, out, "self")) {
  reduce_elements(out, self, dim, index, src, reduce, includeSelf);
}
ACLNN(InplaceScatterReduce, (InOut, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, src, "selfRef"), (int64_t, reduce), (bool, includeSelf)) {
  reduce_elements(selfRef, selfRef, dim, index, src, reduce, includeSelf);
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
  const at::Tensor result = data.editable(), parts = as_movable(result),
                   source = as_movable(updates);
  const auto part = [&](int64_t i, int64_t number, int64_t first) {
    parts.select(0, number).narrow(dim - 1, first, length).copy_(source.select(0, i));
  };
  if (has_values(indices)) {
    const std::vector<int64_t> numbers = integers_in(batch), starts = integers_in(start);
    for (size_t i = 0; i < numbers.size(); ++i) {
      part(static_cast<int64_t>(i), numbers[i], starts[i]);
    }
  } else {
    part(0, 0, 0);
  }
  data = result;
}

// aclnnScatter<Name>(varRef, indices, updates, useLocking): combines varRef[index] with each
// update.
#define SCATTER(Name, reduce)                                                                   \
  ACLNN(Scatter##Name, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef"), \
        (Unused<bool>, useLocking, "nothing is locked")) {                                      \
    reduce_slices(varRef, indices, updates, reduce);                                            \
  }
SCATTER(Max, Reduce::kMax)
SCATTER(Min, Reduce::kMin)
SCATTER(Mul, Reduce::kMultiply)
#undef SCATTER

// Several divisors of one element are applied in order.
ACLNN(ScatterDiv, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef"),
      (Unused<bool>, useLocking, "nothing is locked")) {
  check_slices(varRef, indices, updates);
  const at::Tensor numbers = first_rows(indices, varRef);
  if (!numbers.is_cpu()) return;
  change_slices(varRef, varRef, 0, numbers, [&](const at::Tensor& x, const at::Tensor& rows) {
    const at::Tensor divisors = wide(updates).reshape(joined(rows.sizes(), x.sizes().slice(1)));
    const auto [order, counts] = rounds(rows);
    int64_t first = 0;
    for (const int64_t count : counts) {
      const at::Tensor updated = order.narrow(0, first, count);
      const at::Tensor positions = rows.index_select(0, updated);
      x.index_copy_(0, positions,
                    quotient(x.index_select(0, positions), divisors.index_select(0, updated)));
      first += count;
      if (is_rehearsed()) break;  // the other rounds are alike
    }
  });
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
  const auto add = [&](const at::Tensor& x, const at::Tensor& slices) {
    x.index_add_(0, slices, wide(updates).reshape(joined(slices.sizes(), x.sizes().slice(1))));
  };
  if (depth == 1) {
    change_slices(varRef, varRef, 0, rows, add);
  } else if (has_rows(varRef, depth)) {
    change_slices(varRef, varRef, 0, rows, add,
                  [&](const at::Tensor& x) { return rows_of(x, depth); });
  } else {
    const at::Tensor result = wide(varRef).clone(at::MemoryFormat::Contiguous);
    add(rows_of(result, depth), rows);
    varRef = result;
  }
}

ACLNN(ScatterNd, (In, data), (IndexIn, indices), (SameDtype<In>, updates, "data"),
      (SameDtype<Out>, out, "data")) {
  replace_slices(out, "data", data, indices, updates, 0);
}
// Behaviour of ScatterNdUpdate: A slice whose index is out of range is skipped.
ACLNN(ScatterNdUpdate, (InOut, varRef), (IndexIn, indices), (SameDtype<In>, updates, "varRef")) {
  EXPECT(indices.dim() >= 2, "indices has ", indices.dim(), " dimensions, expected 2 or more");
  // The published kernel skips slices whose index is out of range.
  replace_slices(varRef, "varRef", varRef, indices, updates, 1, /*leaves_out_others=*/true);
}

}  // namespace aclnn_host::indexing_scatter_rows
