#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// The blocks that hold the tokens; the last one may have fewer.
inline int64_t count_of_blocks(int64_t tokens, int64_t block) {
  return tokens / block + (tokens % block != 0 ? 1 : 0);
}

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
  int64_t blocks(int64_t block) const { return count_of_blocks(most_, block); }

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

// Checks the tensors of sequences whose heads of keys are shared by groups of heads of queries.
struct HeadTensors {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
};
void check_head_groups(const HeadTensors& tensors, const HeadSequences& queries,
                       const HeadSequences& keys, int64_t key_heads);

// Flags of the blocks in lists: (..., places) to (..., blocks). `counts` has flags of the places
// that count, whose indices are checked.
at::Tensor listed_blocks(const char* name, const at::Tensor& lists, const at::Tensor& counts,
                         int64_t blocks);

// Flags of the scores (heads, queries, keys) that are in no selected block. `selected` has the
// flags of the blocks as (heads, blocks of queries, blocks of keys).
at::Tensor outside_of_blocks(const at::Tensor& selected, at::IntArrayRef block, int64_t queries,
                             int64_t keys);

}  // namespace aclnn_host
