#pragma once

#include <functional>

#include "cann/rows/row.h"

namespace aclnn_host {

// Writes tokens to a cache, which may be strided, at positions in its first two dimensions. A token
// whose position is outside the cache is not written; of several at one position the last one is.
inline void write_tokens(const at::Tensor& cache, const at::Tensor& positions,
                         const at::Tensor& tokens) {
  const at::Tensor stored = tokens.to(cache.scalar_type());
  if (!positions.is_cpu()) {
    at::index_copy(cache.flatten(0, 1), 0, positions, stored);  // checks the shapes
    return;
  }
  const int64_t page = cache.size(1), others = positions.numel() - 1;
  constexpr std::optional<bool> kStable = true;
  const auto [sorted, order] = at::sort(positions, kStable, /*dim=*/0, /*descending=*/false);
  const at::Tensor is_written = (sorted >= 0) & (sorted < cache.size(0) * page);
  if (others > 0) {
    is_written.narrow(0, 0, others)
        .logical_and_(sorted.narrow(0, 0, others) != sorted.narrow(0, 1, others));
  }
  const at::Tensor written = order.masked_select(is_written);
  if (written.numel() == 0) return;
  const at::Tensor places = positions.index_select(0, written);
  cache.index_put_({at::div(places, page, "floor"), places.remainder(page)},
                   stored.index_select(0, written));
}

// A cache with tokens written to it, for the assignment to `out`: its own memory, or a copy.
// view(cache) has the positions in its first two dimensions.
template <class View = std::identity>
at::Tensor updated(const Output& out, const at::Tensor& positions, const at::Tensor& tokens,
                   View view = {}) {
  const at::Tensor cache = out.editable();
  write_tokens(view(cache), positions, tokens);
  return cache;
}

// As `updated`, for a view that needs a contiguous cache.
template <class View>
at::Tensor updated_blocks(const Output& out, const at::Tensor& positions, const at::Tensor& tokens,
                          View view) {
  const at::Tensor cache = out->is_contiguous() ? out.editable() : out->contiguous();
  write_tokens(view(cache), positions, tokens);
  return cache;
}

// The view of a cache whose heads stand before the tokens of a page.
inline at::Tensor heads_last(const at::Tensor& cache) {
  return cache.transpose(1, 2);
}

}  // namespace aclnn_host
