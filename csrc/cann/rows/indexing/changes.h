#pragma once

#include <functional>

#include "cann/rows/indexing/slices.h"
#include "cann/rows/row.h"

// Changes of some slices or elements of a tensor, whose time and memory do not depend on the size
// of the tensor. See also Output::editable.
namespace aclnn_host {

// True if all indices are in [least, limit). ATen's functions check each index when they reach it,
// and would leave the tensor half changed.
inline bool are_within(const at::Tensor& indices, int64_t limit, int64_t least = 0) {
  if (!indices.is_cpu() || indices.numel() == 0) return true;
  const auto [low, high] = at::aminmax(indices);
  return low.item().toLong() >= least && high.item().toLong() < limit;
}

// The size of a dimension; 1 for a tensor without dimensions.
inline int64_t size_along(const at::Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(dim);
}

// The different numbers among some, and which of these each one is, both in one dimension.
struct Distinct {
  at::Tensor numbers;
  at::Tensor which;
};
// at::_unique2 takes ten times as long. Tensors are dropped as early as possible, because these are
// larger than those of the elements.
inline Distinct distinct(at::Tensor numbers) {
  auto [sorted, order] = at::sort(numbers.reshape({-1}));
  numbers.reset();
  const at::Tensor is_new = at::ones(sorted.sizes(), sorted.options().dtype(at::kBool));
  if (sorted.numel() > 1) {
    const int64_t others = sorted.numel() - 1;
    at::Tensor later = is_new.narrow(0, 1, others);
    at::ne_out(later, sorted.narrow(0, 1, others), sorted.narrow(0, 0, others));
  }
  const at::Tensor once = at::masked_select(sorted, is_new);
  sorted.reset();
  const at::Tensor which = at::cumsum(is_new, 0).sub_(1);
  return {once, at::empty_like(which).scatter_(0, order, which)};
}

// Below this size a copy of the tensor costs nothing.
constexpr int64_t kLeastElements = 1024;

// Assigns `self` with some of its slices along `dim` changed by change(tensor, index), which
// changes those of `tensor` at `index`. The tensor is FLOAT for 16 bits, so that several changes of
// one slice are rounded once. It has only these slices if `self` is in place and they are few, and
// otherwise all; it is never the memory of the call, so that `change` may fail. With a function
// `view`, the slices are those of view(self).
template <class Change, class View = std::identity>
void change_slices(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                   Change change, View view = {}) {
  const at::Tensor all = view(self);
  const bool is_certain = are_within(index, size_along(all, dim));
  const bool has_few = all.numel() >= kLeastElements && index.numel() <= size_along(all, dim) / 2;
  if (is_certain && has_few && out.is_at(self)) {
    const Distinct slices = distinct(index);
    const at::Tensor part = wide(all.index_select(dim, slices.numbers));
    change(part, slices.which);
    all.index_copy_(dim, slices.numbers, part.to(all.scalar_type()));
    return;
  }
  const bool is_wide = wide(self.scalar_type()) == self.scalar_type();
  const at::Tensor result = is_wide ? self.clone() : wide(self);
  change(view(result), index);
  out = result;
}

// The number of each element of a tensor at whose place along `dim` an element of `index` points.
inline at::Tensor element_numbers(const at::Tensor& tensor, int64_t dim, const at::Tensor& index) {
  at::Tensor numbers = at::zeros(index.sizes(), index.options());
  int64_t step = 1;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    std::vector<int64_t> along(static_cast<size_t>(tensor.dim()), 1);
    along[static_cast<size_t>(d)] = index.size(d);
    numbers.add_(d == dim ? index : at::arange(index.size(d), index.options()).view(along), step);
    step *= tensor.size(d);
  }
  return numbers;
}

// The source of each element of `index`, in one dimension.
inline at::Tensor in_order(at::Tensor source, const at::Tensor& index) {
  for (int64_t d = 0; d < index.dim(); ++d) source = source.narrow(d, 0, index.size(d));
  return source.reshape({-1});
}
inline c10::Scalar in_order(const c10::Scalar& source, const at::Tensor& /*index*/) {
  return source;
}

// As change_slices, for change(tensor, dim, index, source) that changes the elements to which
// `index` points along `dim`, as at::scatter does. If it `sees_all` elements, a tensor in place has
// only those that change, whatever its type.
template <class Source, class Change>
void change_elements(Output& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                     const Source& source, bool sees_all, Change change) {
  const bool is_certain = are_within(index, size_along(self, dim));
  const bool is_wide = wide(self.scalar_type()) == self.scalar_type();
  // An element takes as long as several of a copy of the tensor.
  constexpr int64_t kCost = 8;
  const bool has_few = self.numel() >= kLeastElements && index.dim() == self.dim() &&
                       index.numel() <= self.numel() / kCost;
  if (is_certain && has_few && (sees_all || !is_wide) && out.is_at(self)) {
    const Distinct elements =
        distinct(element_numbers(self, dim < 0 ? dim + self.dim() : dim, index));
    const at::Tensor part = wide(self.take(elements.numbers));
    change(part, 0, elements.which, in_order(source, index));
    self.put_(elements.numbers, part.to(self.scalar_type()));
    return;
  }
  const at::Tensor result = is_wide ? out.editable(self, is_certain) : wide(self);
  change(result, dim, index, source);
  out = result;
}

}  // namespace aclnn_host
