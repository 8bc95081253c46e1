#pragma once

#include "cann/rows/row.h"

// Tensors as matrices, whose rows are addressed by an index or by coordinates.
namespace aclnn_host {

using Sizes = std::vector<int64_t>;

inline Sizes joined(at::IntArrayRef a, at::IntArrayRef b, at::IntArrayRef c = {}) {
  Sizes sizes(a.begin(), a.end());
  sizes.insert(sizes.end(), b.begin(), b.end());
  sizes.insert(sizes.end(), c.begin(), c.end());
  return sizes;
}

// A matrix with a row for each index of the first `depth` dimensions.
inline at::Tensor as_rows(const at::Tensor& tensor, int64_t depth) {
  const auto split = static_cast<size_t>(depth);
  return tensor.reshape(
      {product(tensor.sizes().slice(0, split)), product(tensor.sizes().slice(split))});
}

// The same with the other dimensions as they are. A view if has_rows().
inline at::Tensor rows_of(const at::Tensor& tensor, int64_t depth) {
  return depth == 0 ? tensor.unsqueeze(0) : tensor.flatten(0, depth - 1);
}
// True if the strides of a tensor let its first `depth` dimensions be viewed as one.
inline bool has_rows(const at::Tensor& tensor, int64_t depth) {
  for (int64_t d = 0; d + 1 < depth; ++d) {
    if (tensor.stride(d) != tensor.stride(d + 1) * tensor.size(d + 1)) return false;
  }
  return true;
}

// The number of coordinates in the last dimension of `indices`.
inline int64_t depth_of(const at::Tensor& indices, const char* name, const at::Tensor& tensor,
                        int64_t least) {
  EXPECT(tensor.dim() > 0, name, " has 0 dimensions, expected 1 or more");
  EXPECT(indices.dim() > 0, "indices has 0 dimensions, expected 1 or more");
  const int64_t depth = indices.size(-1);
  EXPECT(depth >= least && depth <= tensor.dim(), "indices has shape ", indices.sizes(),
         ", expected a last dimension of ", least, " to ", tensor.dim(),
         ", the number of dimensions that are indexed");
  return depth;
}

// The rows of as_rows(tensor, depth) at the coordinates.
inline at::Tensor row_numbers(const at::Tensor& indices, const at::Tensor& tensor,
                              bool wrap = false) {
  at::Tensor rows =
      at::zeros(indices.sizes().slice(0, indices.sizes().size() - 1), indices.options());
  for (int64_t i = 0; i < indices.size(-1); ++i) {
    at::Tensor index = indices.select(-1, i);
    if (wrap) index = index + index.lt(0) * c10::Scalar(tensor.size(i));
    check_bounds("indices", index, tensor.size(i));
    rows = rows * c10::Scalar(tensor.size(i)) + index;
  }
  return rows.reshape({-1});
}

// The shape of the slices at the coordinates.
inline Sizes slices_shape(const at::Tensor& indices, const at::Tensor& tensor, int64_t depth) {
  return joined(indices.sizes().slice(0, indices.sizes().size() - 1),
                tensor.sizes().slice(static_cast<size_t>(depth)));
}

inline at::Tensor at_least_1d(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? tensor.reshape({1}) : tensor;
}

}  // namespace aclnn_host
