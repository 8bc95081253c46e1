#pragma once

#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace aclnn_host {

// The tokens of a cache, places of the first two dimensions, with others instead of some of them. A
// token whose place is none of the cache's is left out.
inline at::Tensor updated(const at::Tensor& cache, const at::Tensor& places,
                          const at::Tensor& tokens) {
  const at::Tensor rows = cache.flatten(0, 1);
  const int64_t count = rows.size(0);
  // What is left out goes to a row behind the others.
  const at::Tensor row = at::where((places >= 0) & (places < count), places, count);
  std::vector<int64_t> one = rows.sizes().vec();
  one[0] = 1;
  const at::Tensor all[] = {rows, at::zeros(one, rows.options())};
  return at::cat(at::TensorList(all), 0)
      .index_copy(0, row, tokens.to(cache.scalar_type()))
      .narrow(0, 0, count)
      .view(cache.sizes());
}

}  // namespace aclnn_host
