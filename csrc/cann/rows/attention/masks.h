#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "cann/rows/attention/inference.h"

// Which keys a query does not see.
namespace aclnn_host {

// What the mask argument says of which scores do not count.
enum SparseMode { kMask = 0, kWholeMask = 1, kCausalFromFirst = 2, kCausalFromLast = 3, kBand = 4 };

// The keys that a query sees: those that are `least` to `most` places ahead of its own.
struct VisibleBand {
  int64_t least;
  int64_t most;

  bool leaves_keys_for(int64_t queries, int64_t keys) const {
    return least + queries - 1 < keys && most >= 0;
  }
};
// The band of a sequence; nothing where the mode and the tokens before and after leave all keys.
std::optional<VisibleBand> band_of(const InferenceArguments& arguments, int64_t queries,
                                   int64_t keys);

// The mask as batch, rows, columns, true where keys are hidden; nothing where it stands for a band.
// Queries are B, N, S, D.
std::optional<at::Tensor> mask_by_rows(const InferenceArguments& arguments, const at::Tensor& query,
                                       bool is_packed, bool sees_all);

}  // namespace aclnn_host
