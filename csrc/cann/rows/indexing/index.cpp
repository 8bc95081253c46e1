// Elements and slices by index: selected, replaced, added to and filled.

#include <ATen/ExpandUtils.h>

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

// Refuses values in stage 1 that are not broadcast to what the indices select, which at::index_put
// leaves to stage 2. How much masks select shows there.
void expect_values_of(const at::Tensor& self, const std::vector<at::Tensor>& indices,
                      const at::Tensor& values) {
  const auto is_mask = [](const at::Tensor& index) { return index.scalar_type() == at::kBool; };
  if (has_values(self) || std::ranges::any_of(indices, is_mask)) return;
  const at::Tensor selected = at::index(self, index_list(indices));
  EXPECT(at::is_expandable_to(values.sizes(), selected.sizes()), "values has shape ",
         values.sizes(), ", expected one that is broadcast to ", selected.sizes(),
         ", which indices select");
}

// A copy of the tensor with some slices replaced.
at::Tensor copied(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source) {
  return moved(
      self, [&](const at::Tensor& x) { return at::index_copy(x, dim, index, as_movable(source)); });
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
  out = at::index_add(wide(self), dim, index, wide(source), is_fast ? c10::Scalar(1) : alpha);
}

ACLNN(IndexCopy, (In, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, source, "selfRef"), (Out, outRef)) {
  outRef = copied(selfRef, dim, index, source);
}
ACLNN(InplaceIndexCopy, (InOut, selfRef), (int64_t, dim), (IndexIn, index),
      (SameDtype<In>, source, "selfRef")) {
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

ACLNN(Take, (In, self), (IndexIn, index), (Out, out)) {
  out = moved(self, [&](const at::Tensor& x) { return at::take(x, index); });
}
ACLNN(InplacePut, (InOut, selfRef), (IndexIn, index), (In, source), (bool, accumulate)) {
  EXPECT(source.numel() == index.numel(), "source has shape ", source.sizes(),
         ", expected as many elements as index has, of shape ", index.sizes());
  selfRef = accumulate ? at::put(wide(selfRef), index, wide(source), true)
                       : at::put(selfRef, index, source, false);
}

}  // namespace aclnn_host::indexing_index_rows
