// Elements by index: gather, scatter, index, masked, unique and their like.

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/index_fill.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/put.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/take.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::indexing_rows {

namespace {

// The indices of aclnnIndex, one per dimension. Here a tensor without elements stands for a
// dimension that is not indexed.
c10::List<std::optional<at::Tensor>> index_list(const std::vector<at::Tensor>& indices) {
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& index : indices) {
    list.push_back(index.numel() == 0 ? std::nullopt : std::optional(index));
  }
  return list;
}

bool is_empty(const at::Tensor& index) {
  return index.numel() == 0;
}

// Whether the indices select no element of `self`. A tensor without elements does; but torch_npu
// passes one of self's type and of shape [0] for a dimension that is not indexed, unless all are.
bool select_nothing(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const auto selects_nothing = [&self](const at::Tensor& index) {
    return is_empty(index) && (index.scalar_type() != self.scalar_type() || index.dim() != 1);
  };
  return std::ranges::all_of(indices, is_empty) || std::ranges::any_of(indices, selects_nothing);
}

c10::Scalar wide(const c10::Scalar& number) {
  return number;
}
using aclnn_host::wide;

// What happens to the element that is already there.
enum class Reduce { kNone = 0, kAdd = 1, kMultiply = 2 };

template <class Source>
at::Tensor scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                   const Source& source, int64_t reduce) {
  switch (static_cast<Reduce>(reduce)) {
    case Reduce::kNone: return at::scatter(self, dim, index, source);
    case Reduce::kAdd: return at::scatter(wide(self), dim, index, wide(source), "add");
    case Reduce::kMultiply: return at::scatter(wide(self), dim, index, wide(source), "multiply");
  }
  EXPECT(false, "reduce is ", reduce, ", expected 0 (replace), 1 (add) or 2 (multiply)");
}

// The tensor with some of its rows replaced.
at::Tensor copied(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source) {
  EXPECT(self.scalar_type() == source.scalar_type(), "source has dtype ",
         dtype_text(source.scalar_type()), ", expected ", dtype_text(self.scalar_type()),
         " as selfRef has; cast one of them");
  return moved(
      self, [&](const at::Tensor& x) { return at::index_copy(x, dim, index, as_movable(source)); });
}

// A list of indices as a tensor beside `self`.
at::Tensor indices_tensor(at::IntArrayRef indices, const at::Tensor& self) {
  return at::tensor(indices, at::TensorOptions(at::kLong)).to(self.device());
}

// Where each letter of a layout stands in another one that has the same letters.
std::vector<int64_t> places_of(const std::string& layout, const std::string& other) {
  std::string letters = layout;
  std::ranges::sort(letters);
  EXPECT(!letters.empty() && letters.size() <= 5 &&
             std::ranges::adjacent_find(letters) == letters.end(),
         "srcFormat is \"", layout, "\", expected one to five different letters");
  EXPECT(std::ranges::is_permutation(layout, other), "dstFormat is \"", other,
         "\", expected the letters of srcFormat, \"", layout, "\"");
  std::vector<int64_t> places;
  for (const char letter : layout) places.push_back(static_cast<int64_t>(other.find(letter)));
  return places;
}

}  // namespace

ACLNN(Index, (In, self), (Ins, indices), (Out, out)) {
  const Product product = current_product();
  const bool has_complex =
      product == Product::kAscend950 && self.scalar_type() == at::kComplexFloat;
  EXPECT(!self.is_complex() || has_complex || product == Product::kHost, "self has dtype ",
         dtype_text(self.scalar_type()),
         ", which this product does not index; pass a real type, or select the product ",
         "Ascend950 (COMPLEX64) or host");
  if (out->numel() == 0) return;  // or else no index is empty
  EXPECT(!std::ranges::all_of(indices, is_empty),
         "indices have no elements, expected at least one because out has shape ", out->sizes());
  out = at::index(self, index_list(indices));
}
ACLNN(IndexPutImpl, (InOut, selfRef), (Ins, indices), (In, values), (bool, accumulate),
      (bool, unsafe)) {
  if (values.numel() == 0 || select_nothing(selfRef, indices)) return;
  selfRef = accumulate ? at::index_put(wide(selfRef), index_list(indices), wide(values), true)
                       : at::index_put(selfRef, index_list(indices), values, false);
}
ACLNN(IndexSelect, (In, self), (int64_t, dim), (IndexIn, index), (Out, out)) {
  out = at::index_select(self, dim, index);
}
ACLNN(IndexAdd, (In, self), (int64_t, dim), (IndexIn, index), (In, source), (Number, alpha),
      (Out, out)) {
  out = at::index_add(wide(self), dim, index, wide(source), alpha);
}
ACLNN(IndexCopy, (In, selfRef), (int64_t, dim), (IndexIn, index), (In, source), (Out, outRef)) {
  outRef = copied(selfRef, dim, index, source);
}
ACLNN(InplaceIndexCopy, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (In, source)) {
  selfRef = copied(selfRef, dim, index, source);
}
ACLNN(IndexFill, (In, self), (int64_t, dim), (IndexIn, index), (Number, value), (Out, out)) {
  out = at::index_fill(self, dim, index, value);
}
ACLNN(InplaceIndexFill, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (Number, value)) {
  selfRef = at::index_fill(selfRef, dim, index, value);
}
ACLNN(IndexFillTensor, (In, self), (int64_t, dim), (Ints, index), (Number, value), (Out, out)) {
  out = at::index_fill(self, dim, indices_tensor(index, self), value);
}
ACLNN(InplaceIndexFillTensor, (InOut, selfRef), (int64_t, dim), (Ints, index), (Number, value)) {
  selfRef = at::index_fill(selfRef, dim, indices_tensor(index, selfRef), value);
}

ACLNN(Gather, (In, self), (int64_t, dim), (IndexIn, index), (Out, out)) {
  out = moved(self, [&](const at::Tensor& x) { return at::gather(x, dim, index); });
}
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

ACLNN(Take, (In, self), (IndexIn, index), (Out, out)) {
  out = moved(self, [&](const at::Tensor& x) { return at::take(x, index); });
}
ACLNN(InplacePut, (InOut, selfRef), (IndexIn, index), (In, source), (bool, accumulate)) {
  selfRef = accumulate ? at::put(wide(selfRef), index, wide(source), true)
                       : at::put(selfRef, index, source, false);
}
ACLNN(InplaceMaskedScatter, (InOut, selfRef), (In, mask), (In, source)) {
  selfRef = at::masked_scatter(selfRef, mask, source);
}

ACLNN(Nonzero, (In, self), (SizedOut, out)) {
  out.expect(at::kLong);
  if (self.is_cpu()) out = at::nonzero(as_movable(self));
}
// The same with a row per dimension instead of a row per element.
ACLNN(NonzeroV2, (In, self), (SizedOut, out)) {
  out.expect(at::kLong);
  if (self.is_cpu()) out = at::nonzero(as_movable(self)).t();
}

// Outputs that are not asked for are left alone.
ACLNN(Unique2, (In, self), (bool, sorted), (bool, returnInverse), (bool, returnCounts),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  if (returnCounts) countsOut.expect(at::kLong);
  if (!self.is_cpu()) return;
  const auto [values, inverse, counts] = at::_unique2(self, sorted, returnInverse, returnCounts);
  valueOut = values;
  if (returnInverse) inverseOut = inverse;
  if (returnCounts) countsOut = counts;
}
ACLNN(UniqueDim, (In, self), (bool, sorted), (bool, returnInverse), (int64_t, dim),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  countsOut.expect(at::kLong);
  at::maybe_wrap_dim(dim, self.dim());
  if (!self.is_cpu()) return;
  const auto [values, inverse, counts] =
      at::unique_dim(self, dim, sorted, returnInverse, /*return_counts=*/true);
  valueOut = values;
  if (returnInverse) inverseOut = inverse;
  countsOut = counts;
}
// dim is kNoDim for the elements of all dimensions.
ACLNN(UniqueConsecutive, (In, self), (bool, returnInverse), (bool, returnCounts), (int64_t, dim),
      (SizedOut, valueOut), (SizedOut, inverseOut), (SizedOut, countsOut)) {
  constexpr int64_t kNoDim = 1000;
  valueOut.expect(self.scalar_type());
  if (returnInverse) inverseOut.expect(at::kLong);
  if (returnCounts) countsOut.expect(at::kLong);
  const bool is_flat = dim == kNoDim;
  const int64_t along = is_flat ? 0 : at::maybe_wrap_dim(dim, self.dim());
  if (!self.is_cpu()) return;
  // ATen compares real numbers alone, but slices of two of them as well.
  const at::Tensor from = is_flat ? self.flatten() : self;
  const bool is_complex = self.is_complex();
  const auto [values, inverse, counts] = at::unique_consecutive(
      is_complex ? at::view_as_real(from) : from, returnInverse, returnCounts,
      is_flat && !is_complex ? std::nullopt : std::optional(along));
  valueOut = is_complex ? at::view_as_complex(values) : values;
  if (returnInverse) inverseOut = is_flat ? inverse.view(self.sizes()) : inverse;
  if (returnCounts) countsOut = counts;
}

ACLNN(DataFormatDimMap, (In, x), (const char*, srcFormat), (const char*, dstFormat), (Out, y)) {
  EXPECT(x.scalar_type() == at::kInt || x.scalar_type() == at::kLong, "x has dtype ",
         dtype_text(x.scalar_type()), ", expected INT32 or INT64");
  expect_like("y", y, x);
  const std::vector<int64_t> places = places_of(srcFormat, dstFormat);
  const auto count = static_cast<int64_t>(places.size());
  check_bounds("x", x, count, -count);
  const at::Tensor dims = at::where(x < 0, x + count, x).to(at::kLong);
  const at::Tensor table = at::tensor(places).to(x.device()).to(x.scalar_type());
  y = table.index_select(0, dims.flatten()).view(x.sizes());
}

}  // namespace aclnn_host::indexing_rows
