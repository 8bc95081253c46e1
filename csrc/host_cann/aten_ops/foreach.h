#pragma once

#include <algorithm>
#include <vector>

#include "host_cann/aten_ops/row.h"

namespace aclnn_host {

// Fills every output with result(i). All lists of a call have one length. An output may have the
// memory of any input; where it is that of another place, all results come before the first
// assignment. Otherwise each is written while it is in the cache.
template <class Result, class... Lists>
void for_each(std::vector<Output>& out, Result result, const Lists&... lists) {
  TORCH_CHECK(
      ((lists.size() == out.size()) && ...),
      "the lists of tensors have different lengths, expected the same length for all of them");
  if (std::ranges::all_of(out, &Output::may_be_written_early)) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = result(i);
    return;
  }
  std::vector<at::Tensor> results;
  results.reserve(out.size());
  for (size_t i = 0; i < out.size(); ++i) results.push_back(result(i));
  for (size_t i = 0; i < out.size(); ++i) out[i] = results[i];
}

// The tensors of a list, without what there is to write to.
inline std::vector<at::Tensor> tensors(const std::vector<Output>& outputs) {
  return {outputs.begin(), outputs.end()};
}

}  // namespace aclnn_host
