// Elements and slices by index: selected, replaced, added to and filled.

#include <ATen/ExpandUtils.h>

#include "cann/rows/indexing/changes.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/context.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::indexing_index_rows {

namespace {

// The indices of aclnnIndex, one for each dimension. A tensor without elements means that the
// dimension is not indexed.
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

// True if the indices select no element of `self`, which tensors without elements mean. But
// torch_npu passes a tensor of self's type and of shape [0] for a dimension that is not indexed,
// unless all are.
bool select_nothing(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const auto selects_nothing = [&self](const at::Tensor& index) {
    return is_empty(index) && (index.scalar_type() != self.scalar_type() || index.dim() != 1);
  };
  return std::ranges::all_of(indices, is_empty) || std::ranges::any_of(indices, selects_nothing);
}

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// True if all index tensors point into `self`. Masks are compared with it in stage 1.
bool are_within_all(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  int64_t dim = 0;
  for (const at::Tensor& index : indices) {
    const bool is_integers = !is_empty(index) && !is_mask(index) && dim < self.dim();
    if (is_integers && !are_within(index, self.size(dim), -self.size(dim))) return false;
    dim += is_mask(index) ? index.dim() : 1;
  }
  return true;
}

// Index tensors as INT64 without masks, one for each dimension and all of one shape.
std::vector<std::optional<at::Tensor>> coordinates(const at::Tensor& self,
                                                   const std::vector<at::Tensor>& indices) {
  std::vector<at::Tensor> given;
  std::vector<std::optional<at::Tensor>> result;
  for (const at::Tensor& index : indices) {
    if (is_mask(index) && !is_empty(index)) {
      for (const at::Tensor& each : at::nonzero_numpy(index)) given.push_back(each);
      result.insert(result.end(), static_cast<size_t>(index.dim()), at::Tensor());
    } else if (is_empty(index)) {
      result.push_back(std::nullopt);
    } else {
      const int64_t size = self.size(static_cast<int64_t>(result.size()));
      given.push_back(index.to(at::kLong).remainder(size));
      result.push_back(at::Tensor());
    }
  }
  std::vector<at::Tensor> alike = at::broadcast_tensors(given);
  auto next = alike.begin();
  for (std::optional<at::Tensor>& each : result) {
    if (each) each = *next++;
  }
  return result;
}

// The elements that index tensors select, each once.
struct Selection {
  c10::List<std::optional<at::Tensor>> once;     // selects each of them once
  c10::List<std::optional<at::Tensor>> of_once;  // selects all from those
};
Selection selection(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  const auto all = coordinates(self, indices);
  at::Tensor numbers;  // of the selected positions in the indexed dimensions
  int64_t first = -1, last = -1, count = 0;
  for (size_t d = 0; d < all.size(); ++d) {
    if (!all[d]) continue;
    const auto dim = static_cast<int64_t>(d);
    if (first < 0) first = dim;
    last = dim;
    numbers = count++ == 0 ? *all[d] : numbers * self.size(dim) + *all[d];
  }
  const Distinct positions = distinct(numbers);
  Selection result;
  at::Tensor rest = positions.numbers;
  std::vector<std::optional<at::Tensor>> once(all.size());
  for (int64_t d = last; d >= first; --d) {
    if (!all[static_cast<size_t>(d)]) continue;
    once[static_cast<size_t>(d)] = rest.remainder(self.size(d));
    rest = at::div(rest, self.size(d), "floor");
  }
  for (const auto& each : once) result.once.push_back(each);
  // The result of an index has the dimensions of neighbouring index tensors in their place, and
  // those of others in front.
  const bool are_neighbours = last - first + 1 == count;
  for (int64_t d = 0; are_neighbours && d < first; ++d) result.of_once.push_back(std::nullopt);
  result.of_once.push_back(positions.which.view(numbers.sizes()));
  return result;
}

int64_t number_selected(const at::Tensor& index) {
  return is_mask(index) ? at::count_nonzero(index).item().toLong() : index.numel();
}

// True if index tensors select at most half of the positions in the dimensions that they index, so
// that it pays to find each of them once.
bool selects_few(const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  size_t dim = 0;
  int64_t positions = 1, selected = 1;
  for (const at::Tensor& index : indices) {
    const auto dims = static_cast<size_t>(is_mask(index) ? index.dim() : 1);
    const at::IntArrayRef sizes = self.sizes().slice(dim, dims);
    if (is_mask(index) && (dims == 0 || index.sizes() != sizes)) return false;
    const bool is_given = !is_empty(index);
    if (is_given) positions *= product(sizes);
    if (is_given) selected = std::max(selected, number_selected(index));
    dim += dims;
  }
  return self.numel() >= kLeastElements && selected <= positions / 2;
}

// Adds values to the elements that index tensors select. Several of one element are added in FLOAT
// and rounded once to 16 bits.
void accumulate_at(Output& out, const std::vector<at::Tensor>& indices, const at::Tensor& values) {
  const at::Tensor& self = out;
  const bool is_certain = are_within_all(self, indices);
  if (!at::isReducedFloatingType(self.scalar_type())) {
    const at::Tensor result = out.editable(is_certain);
    result.index_put_(index_list(indices), wide(values), true);
    out = result;
  } else if (is_certain && out.is_at(self) && selects_few(self, indices)) {
    const Selection selected = selection(self, indices);
    const at::Tensor part = wide(self.index(selected.once));
    part.index_put_(selected.of_once, wide(values), true);
    self.index_put_(selected.once, part.to(self.scalar_type()));
  } else {
    out = wide(self).index_put_(index_list(indices), wide(values), true);
  }
}

// Refuses values in stage 1 that are not broadcast to what the indices select, which at::index_put
// leaves to stage 2. How much masks select shows there.
void expect_values_of(const at::Tensor& self, const std::vector<at::Tensor>& indices,
                      const at::Tensor& values) {
  const auto is_bool = [](const at::Tensor& index) { return index.scalar_type() == at::kBool; };
  if (has_values(self) || std::ranges::any_of(indices, is_bool)) return;
  const at::Tensor selected = at::index(self, index_list(indices));
  EXPECT(at::is_expandable_to(values.sizes(), selected.sizes()), "values has shape ",
         values.sizes(), ", expected one that is broadcast to ", selected.sizes(),
         ", which indices select");
}

// Assigns `self` with some slices replaced.
void copy_slices(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                 const at::Tensor& source) {
  const at::Tensor result = out.editable(self, are_within(index, size_along(self, dim)));
  as_movable(result).index_copy_(dim, index, as_movable(source));
  out = result;
}

// Assigns `self` with some slices filled.
void fill_slices(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                 const c10::Scalar& value) {
  const int64_t size = size_along(self, dim);
  const at::Tensor result = out.editable(self, are_within(index, size, -size));
  result.index_fill_(dim, index, value);
  out = result;
}

// Assigns `self` with sources, times alpha, added to some slices.
void add_slices(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                const at::Tensor& source, const c10::Scalar& alpha) {
  change_slices(out, self, dim, index, [&](const at::Tensor& x, const at::Tensor& slices) {
    x.index_add_(dim, slices, wide(source), alpha);
  });
}

// A list of indices as a tensor on the device of `self`.
at::Tensor indices_tensor(at::IntArrayRef indices, const at::Tensor& self) {
  return at::tensor(indices, at::TensorOptions(at::kLong)).to(self.device());
}

}  // namespace

// Behaviour of Index, IndexPutImpl: An index tensor without elements selects nothing. torch_npu
// passes an index of self's type and of shape [0] for a dimension that it does not index. Such an
// index beside one with elements counts as none, in Index where out shows that something is
// selected and in IndexPutImpl always. `x[empty, [1]] = 9` with x of the type of the index tensors
// therefore writes to every row.
// Limit of Index: Complex numbers are computed on `host`, and COMPLEX64 on Ascend950; elsewhere
// they are 161002.
ACLNN(Index, (In, self), (Ins, indices), (Out, out)) {
  const Product product = current_product();
  const bool has_complex =
      product == Product::kAscend950 && self.scalar_type() == at::kComplexFloat;
  EXPECT(!self.is_complex() || has_complex || product == Product::kHost, "self has dtype ",
         dtype_text(self.scalar_type()),
         ", which this product does not index; pass a real type, or select the product ",
         "Ascend950 (COMPLEX64) or host");
  if (out->numel() == 0) return;  // otherwise no index is empty
  EXPECT(!std::ranges::all_of(indices, is_empty),
         "indices have no elements, expected at least one because out has shape ", out->sizes());
  out = at::index(self, index_list(indices));
}
ACLNN(IndexPutImpl, (InOut, selfRef), (Ins, indices), (In, values), (bool, accumulate),
      (Unused<bool>, unsafe, "CANN does not read it; indices are always checked")) {
  if (values.numel() == 0 || select_nothing(selfRef, indices)) return;
  expect_values_of(selfRef, indices, values);
  if (accumulate) {
    accumulate_at(selfRef, indices, values);
  } else {
    const at::Tensor result = selfRef.editable(are_within_all(selfRef, indices));
    selfRef = result.index_put_(index_list(indices), values);
  }
}
ACLNN(IndexSelect, (In, self), (int64_t, dim), (IndexIn, index), (Out, out)) {
  out = at::index_select(self, dim, index);
}
ACLNN(IndexAdd, (In, self), (int64_t, dim), (IndexIn, index), (In, source), (Number, alpha),
      (Out, out)) {
  add_slices(out, self, dim, index, source, alpha);
}
// The fast mode ignores alpha; if determinism is requested, the mode is ignored.
ACLNN(IndexAddV2, (In, self), (int64_t, dim), (IndexIn, index), (SameDtype<In>, source, "self"),
      (Number, alpha), (int64_t, mode), (SameDtype<Out>, out, "self")) {
  expect_dims("index", index, 1);
  const auto dtype = self.scalar_type();
  EXPECT(mode != 0 || (self.dim() == 2 && (dim == 0 || dim == -2) &&
                       (dtype == at::kFloat || at::isReducedFloatingType(dtype) ||
                        dtype == at::kInt || dtype == at::kShort)),
         "mode is 0 with dim ", dim, " of a tensor of shape ", self.sizes(), " and dtype ", dtype,
         ", expected dim 0 or -2 of a matrix of FLOAT, FLOAT16, BFLOAT16, INT32 or ",
         "INT16; pass mode 1");
  const bool is_fast = mode == 0 && !wants_determinism();
  add_slices(out, self, dim, index, source, is_fast ? c10::Scalar(1) : alpha);
}

ACLNN(IndexCopy, (In, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, source, "selfRef"), (Out, outRef)) {
  copy_slices(outRef, selfRef, dim, index, source);
}
ACLNN(InplaceIndexCopy, (InOut, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, source, "selfRef")) {
  copy_slices(selfRef, selfRef, dim, index, source);
}
ACLNN(IndexFill, (In, self), (int64_t, dim), (IndexIn, index), (Number, value), (Out, out)) {
  fill_slices(out, self, dim, index, value);
}
ACLNN(InplaceIndexFill, (InOut, selfRef), (int64_t, dim), (IndexIn, index), (Number, value)) {
  fill_slices(selfRef, selfRef, dim, index, value);
}
ACLNN(IndexFillTensor, (In, self), (int64_t, dim), (Ints, index), (Number, value), (Out, out)) {
  fill_slices(out, self, dim, indices_tensor(index, self), value);
}
ACLNN(InplaceIndexFillTensor, (InOut, selfRef), (int64_t, dim), (Ints, index), (Number, value)) {
  fill_slices(selfRef, selfRef, dim, indices_tensor(index, selfRef), value);
}

ACLNN(Take, (In, self), (IndexIn, index), (Out, out)) {
  out = moved(self, [&](const at::Tensor& x) { return at::take(x, index); });
}
ACLNN(InplacePut, (InOut, selfRef), (IndexIn, index), (In, source), (bool, accumulate)) {
  EXPECT(source.numel() == index.numel(), "source has shape ", source.sizes(),
         ", expected as many elements as index has, of shape ", index.sizes());
  const at::Tensor& self = selfRef;
  const bool is_certain = are_within(index, self.numel(), -self.numel());
  const bool is_wide = wide(self.scalar_type()) == self.scalar_type();
  const bool has_few = self.numel() >= kLeastElements && index.numel() <= self.numel() / 2;
  if (!accumulate || is_wide) {
    const at::Tensor result = selfRef.editable(is_certain);
    selfRef = result.put_(index, accumulate ? wide(source) : source, accumulate);
  } else if (is_certain && has_few && selfRef.is_at(self)) {
    const Distinct elements = distinct(index.remainder(self.numel()));
    const at::Tensor part = wide(self.take(elements.numbers));
    part.put_(elements.which, wide(source).reshape({-1}), true);
    self.put_(elements.numbers, part.to(self.scalar_type()));
  } else {
    selfRef = wide(self).put_(index, wide(source), true);
  }
}

}  // namespace aclnn_host::indexing_index_rows
