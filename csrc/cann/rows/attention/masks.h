#pragma once

#include "cann/rows/attention/inference.h"
#include "cann/rows/row.h"

// The keys that masks hide from a query.
namespace aclnn_host {

// The meaning of the mask argument.
enum SparseMode { kMask = 0, kWholeMask = 1, kCausalFromFirst = 2, kCausalFromLast = 3, kBand = 4 };

// The keys that a query sees: those from `least` to `most` positions ahead of its own.
struct VisibleBand {
  int64_t least;
  int64_t most;

  bool leaves_keys_for(int64_t queries, int64_t keys) const {
    return least + queries - 1 < keys && most >= 0;
  }
};
// The band of a sequence; nothing if the mode and preTokens and nextTokens leave all keys visible.
std::optional<VisibleBand> band_of(const InferenceArguments& arguments, int64_t queries,
                                   int64_t keys);

// The mask as (batch, rows, columns), true where keys are hidden; nothing if it only selects a
// band. Queries are B, N, S, D.
std::optional<at::Tensor> mask_by_rows(const InferenceArguments& arguments, const at::Tensor& query,
                                       bool is_packed, bool sees_all);

}  // namespace aclnn_host
