#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aclnn_host {

// Non-maximum suppression. Of the candidates with a score above the least, the best first, each
// remains that overlaps(i, k) none of those that remain before it; at most `most` of them, if
// `most` is not negative.
template <class Score, class Overlaps>
std::vector<int64_t> remaining(const Score* scores, int64_t count, int64_t most, double least_score,
                               Overlaps overlaps) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    if (scores[i] > least_score) order.push_back(i);  // false for NaN
  }
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (const int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) == most) break;
    if (std::ranges::none_of(kept, [&](int64_t k) { return overlaps(i, k); })) kept.push_back(i);
  }
  return kept;
}

}  // namespace aclnn_host
