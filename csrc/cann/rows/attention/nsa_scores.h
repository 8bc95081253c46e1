#pragma once

#include "cann/rows/row.h"

// Selects the blocks of keys that a query of native sparse attention sees, by its attention to
// windows.
namespace aclnn_host {

// The score of a hidden key. It is finite, so a query without visible keys weights all keys
// equally.
inline constexpr double kHiddenScore = std::numeric_limits<float>::lowest();

// Sizes in tokens, before compression.
struct SparseBlocks {
  int64_t window;  // the length of a window, which becomes one compressed key
  int64_t stride;  // between the starts of two windows
  int64_t block;   // the size of a block, which is selected as a whole
  int64_t count;   // the number of selected blocks

  int64_t windows_in_block() const { return block / stride; }
  // The least number of blocks that contain the starts of this many windows.
  int64_t blocks_of(int64_t windows) const {
    return windows / windows_in_block() + (windows % windows_in_block() != 0 ? 1 : 0);
  }
};

void check_blocks(const SparseBlocks& blocks, const char* stride_name);

// The importance of `block_count` blocks from the probabilities of compressed keys, the last
// dimension: block j gets the sum over m < block/stride and n < window/stride of the probabilities
// at (j + 1) block/stride - m - n.
at::Tensor block_scores(const at::Tensor& probabilities, const SparseBlocks& blocks,
                        int64_t block_count);
// The positions of the largest scores along the last dimension; ties go to the first.
at::Tensor most_important(const at::Tensor& scores, int64_t count);

}  // namespace aclnn_host
