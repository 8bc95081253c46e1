#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

// Sequences whose lengths stand in a tensor, so that they are known in stage 2 alone.
namespace aclnn_host {

// Lengths from an array, which stage 1 knows; nothing from one that is null or empty.
std::optional<at::Tensor> lengths_from(const char* name, const at::OptionalIntArrayRef& lengths);

// Tokens of heads in a layout: B, S, N, D, of which each sequence has its first ones; T, N, D, one
// sequence after the other; or pages of blocks, tokens of the block, N, D, which a table lists for
// each sequence.
class TokenSequences {
 public:
  // Checks what the values of no tensor make different. Lengths of packed sequences are sums.
  TokenSequences(const char* name, const at::Tensor& tokens, const std::string& layout,
                 const char* lengths_name, const std::optional<at::Tensor>& lengths,
                 const std::optional<at::Tensor>& table = std::nullopt);

  int64_t count() const { return count_; }
  int64_t heads() const { return heads_; }
  bool is_paged() const { return table_.has_value(); }

  // Reads the lengths. The functions below need them.
  void measure();
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  // Where a sequence begins among all tokens of a layout without pages.
  int64_t first(int64_t sequence) const { return firsts_[static_cast<size_t>(sequence)]; }
  // The tokens of a sequence in a tensor of this layout, in FLOAT: tokens, heads, elements, or what
  // else the tensor has of each.
  at::Tensor read(const at::Tensor& tensor, int64_t sequence) const;

 private:
  const char* name_;
  const char* lengths_name_;
  bool is_packed_;
  int64_t count_ = 0;
  int64_t heads_ = 0;
  int64_t capacity_ = 0;  // the most tokens of a sequence; of all that are packed
  int64_t block_ = 0;     // tokens of a page
  std::optional<at::Tensor> given_;
  std::optional<at::Tensor> table_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> firsts_;
};

}  // namespace aclnn_host
