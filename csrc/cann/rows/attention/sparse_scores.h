#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include <ATen/core/Tensor.h>

// Which blocks of keys a query of native sparse attention selects, by its attention to windows.
namespace aclnn_host {

// The score of what is hidden: queries that see no key take all alike.
inline constexpr double kHiddenScore = std::numeric_limits<float>::lowest();

// Sizes in tokens, before compression.
struct SparseBlocks {
  int64_t window;  // of a compressed key
  int64_t stride;  // from one window to the next
  int64_t block;   // that is selected as a whole
  int64_t count;   // of selected blocks

  int64_t windows_in_block() const { return block / stride; }
  // The least number of blocks that hold so many windows' starts.
  int64_t blocks_of(int64_t windows) const {
    return windows / windows_in_block() + (windows % windows_in_block() != 0 ? 1 : 0);
  }
};

void check_blocks(const SparseBlocks& blocks, const char* stride_name);

// The importance of `block_count` blocks from probabilities of compressed keys, the last dimension:
// block j has the sum over m and n of those at (j + 1) block/stride - m - n, where m is less than
// block/stride and n less than window/stride.
at::Tensor block_scores(const at::Tensor& probabilities, const SparseBlocks& blocks,
                        int64_t block_count);
// The places of the largest scores along the last dimension, of equal ones the first.
at::Tensor most_important(const at::Tensor& scores, int64_t count);

}  // namespace aclnn_host
