#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// CANN's names of the arguments of sequences of heads.
struct HeadSequenceNames {
  const char* tensor;
  const char* layout;
  const char* lengths;
};

// Sequences of heads, whose lengths are in an array, in three layouts: "TND" has one sequence after
// the other, "BNSD" and "BSND" have the first tokens of each batch.
class HeadSequences {
 public:
  // Without lengths, which "TND" needs, each sequence has all tokens of its batch.
  HeadSequences(const HeadSequenceNames& names, const at::Tensor& tensor, const std::string& layout,
                const at::OptionalIntArrayRef& lengths);

  int64_t count() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t heads() const { return heads_; }
  int64_t size(int64_t i) const { return sizes_[static_cast<size_t>(i)]; }
  // The tokens of a batch, or of the longest sequence of "TND".
  int64_t most() const { return most_; }
  int64_t blocks(int64_t block) const { return most_ / block + (most_ % block != 0 ? 1 : 0); }

  // The tokens of a sequence in a tensor of this layout, as a view of (heads, tokens, elements).
  at::Tensor view(const at::Tensor& tensor, int64_t i) const;
  // The same in FLOAT as (1, heads, tokens, elements).
  at::Tensor read(const at::Tensor& tensor, int64_t i) const {
    return view(tensor, i).to(at::kFloat).unsqueeze(0);
  }

 private:
  void check_lengths(const HeadSequenceNames& names, at::IntArrayRef lengths, int64_t tokens);

  std::string layout_;
  int64_t heads_ = 0;
  int64_t most_ = 0;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> firsts_;  // of "TND"
};

// Flags of the scores (heads, queries, keys) that are in no selected block. `selected` has the
// flags of the blocks as (heads, blocks of queries, blocks of keys).
at::Tensor outside_of_blocks(const at::Tensor& selected, at::IntArrayRef block, int64_t queries,
                             int64_t keys);

}  // namespace aclnn_host
