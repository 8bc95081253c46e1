#pragma once

#include <ATen/Parallel.h>

#include "cann/rows/row.h"

namespace aclnn_host {

// Writes result(rows) to `out` for a few rows of `x` at a time, on all threads, so that what is
// computed of a piece in FLOAT stays in the cache. Both tensors are contiguous.
template <class Result>
void write_in_pieces(const at::Tensor& x, const at::Tensor& out, Result result) {
  constexpr int64_t kElements = 1 << 14;
  const int64_t columns = x.size(-1);
  const at::Tensor from = x.view({-1, columns}), to = out.view({from.size(0), -1});
  const int64_t rows = std::max<int64_t>(kElements / columns, 1);
  const int64_t pieces = (from.size(0) + rows - 1) / rows;
  at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    const AtenScope scope;  // of this thread
    for (int64_t first = begin * rows; first < std::min(end * rows, from.size(0)); first += rows) {
      const int64_t count = std::min(rows, from.size(0) - first);
      to.narrow(0, first, count).copy_(result(from.narrow(0, first, count)));
    }
  });
}

// True for a contiguous tensor of 16 bits that has elements, and its last dimension.
inline bool has_rows_of_16_bits(const at::Tensor& x, int64_t dim) {
  return at::isReducedFloatingType(x.scalar_type()) && x.is_contiguous() && x.numel() > 0 &&
         x.dim() > 0 && (dim == -1 || dim == x.dim() - 1);
}

}  // namespace aclnn_host
