#pragma once

#include "cann/rows/row.h"

// Sequences whose lengths are in a tensor, so that only stage 2 knows them.
namespace aclnn_host {

// Lengths from an array, which stage 1 knows; nothing if it is null or empty.
std::optional<at::Tensor> lengths_from(const char* name, const at::OptionalIntArrayRef& lengths);

// CANN's names of the arguments of sequences.
struct SequenceNames {
  const char* tokens;
  const char* layout;
  const char* lengths;
  const char* table = nullptr;  // null where the layout cannot be one of pages
  const char* used = nullptr;   // of SequenceLengths
};

// The lengths of functions that have two tensors for them.
struct SequenceLengths {
  std::optional<at::Tensor> ends;  // of packed sequences, after a 0
  std::optional<at::Tensor> used;  // how many tokens of each sequence count
};

// Tokens of heads in one of three layouts: B, S, N, D, where each sequence has the first tokens of
// its batch; T, N, D, one sequence after the other; or pages of (block, token of the block, N, D),
// which a table lists for each sequence. The layout of pages is PA_BSND, or PA_BBND if the lengths
// are SequenceLengths.
class TokenSequences {
 public:
  // Checks everything that does not depend on values. The lengths of packed sequences are
  // cumulative sums.
  TokenSequences(const SequenceNames& names, const at::Tensor& tokens, const std::string& layout,
                 const std::optional<at::Tensor>& lengths,
                 const std::optional<at::Tensor>& table = std::nullopt);
  TokenSequences(const SequenceNames& names, const at::Tensor& tokens, const std::string& layout,
                 const SequenceLengths& lengths,
                 const std::optional<at::Tensor>& table = std::nullopt);

  int64_t count() const { return count_; }
  int64_t heads() const { return heads_; }
  bool is_paged() const { return table_.has_value(); }
  bool is_packed() const { return is_packed_; }

  // Reads the lengths. Call it before the functions below.
  void measure();
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  // The first token of a sequence among all tokens of a layout without pages.
  int64_t first(int64_t sequence) const { return firsts_[static_cast<size_t>(sequence)]; }
  // The tokens of a sequence in a tensor of this layout, in FLOAT: (tokens, heads, elements), or
  // other dimensions that the tensor has for each token.
  at::Tensor read(const at::Tensor& tensor, int64_t sequence) const;

 private:
  void check_table(const at::Tensor& tokens, const std::string& layout,
                   const std::optional<at::Tensor>& table, int64_t block_factor);
  void measure_used();

  SequenceNames names_;
  bool is_packed_;
  int64_t count_ = 0;
  int64_t heads_ = 0;
  int64_t capacity_ = 0;  // the largest length of a sequence; of all sequences if they are packed
  int64_t block_ = 0;     // the number of tokens of a page
  std::optional<at::Tensor> given_;
  std::optional<at::Tensor> used_;
  bool begins_with_0_ = false;
  std::optional<at::Tensor> table_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> firsts_;
};

}  // namespace aclnn_host
