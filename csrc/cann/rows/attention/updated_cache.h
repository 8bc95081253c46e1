#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// A copy of the cache with some tokens replaced. Positions index the first two dimensions; a token
// whose position is outside the cache is not written.
inline at::Tensor updated(const at::Tensor& cache, const at::Tensor& positions,
                          const at::Tensor& tokens) {
  const at::Tensor rows = cache.flatten(0, 1);
  const int64_t count = rows.size(0);
  // Tokens that are not written go to an additional last row, which is then removed.
  const at::Tensor row = at::where((positions >= 0) & (positions < count), positions, count);
  std::vector<int64_t> one = rows.sizes().vec();
  one[0] = 1;
  return at::cat({rows, at::zeros(one, rows.options())}, 0)
      .index_copy(0, row, tokens.to(cache.scalar_type()))
      .narrow(0, 0, count)
      .view(cache.sizes());
}

}  // namespace aclnn_host
