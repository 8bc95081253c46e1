#pragma once

#include "cann/rows/attention/inference.h"
#include "cann/rows/row.h"

// Locates the elements of one sequence: along the dimensions of a layout, in blocks of a page
// table, in a list of tensors, after a padding or a prefix.
namespace aclnn_host {

// The layout of queries, keys, values and results: B batch, S sequence, N heads, D the elements of
// one head, H those of all heads, T the tokens of all sequences, one sequence after the other.
class AttentionLayout {
 public:
  // "BNSD_BSND" names the layout of the inputs and then that of the result.
  AttentionLayout(const std::string& name, std::span<const std::string_view> known);

  bool is_packed() const { return input_ == "TND" || input_ == "NTD"; }
  // The heads of a tensor, if those that the layout joins have this size.
  int64_t heads(const at::Tensor& tensor, int64_t head_size) const;
  const std::string& input() const { return input_; }
  // Returns the tensor as B, N, S, D; for a packed layout B is 1 and S is T.
  at::Tensor read(const char* name, const at::Tensor& tensor, int64_t heads) const;
  // Converts a result from B, N, S, D to the layout.
  at::Tensor to_layout(const at::Tensor& tensor) const;

 private:
  std::string input_;
  std::string output_;
};

// A part of a sequence dimension.
struct Span {
  int64_t batch;
  int64_t start;
  int64_t length;
};

// The spans of all sequences; `size` is the size of the sequence dimension. The lengths of a packed
// layout are cumulative sums.
std::vector<Span> packed_spans(const char* name, const Lengths& lengths, int64_t size);
std::vector<Span> padded_spans(const char* name, const Lengths& lengths, int64_t batches,
                               int64_t size);
// Moves spans to the end of the sequence dimension, leaving the padding on the right free. A span
// that would begin before the dimension begins at 0, or becomes empty if `empties`.
void pad_left(const char* name, std::vector<Span>& spans, const at::Tensor& padding, int64_t size,
              bool empties);

// Reads the keys or values of one sequence.
class SequenceReader {
 public:
  SequenceReader(const char* name, const std::vector<at::Tensor>& tensors,
                 const InferenceArguments& arguments, const AttentionLayout& layout, int64_t heads);

  bool is_paged() const { return table_.has_value(); }
  int64_t batches() const;
  // The size of the sequence dimension; for pages, the tokens that one row of the table addresses.
  int64_t capacity(int64_t batch) const;
  int64_t head_size() const { return head_size_; }
  // Returns the elements as N, S, D.
  at::Tensor read(const Span& span) const;

 private:
  at::Tensor paged(const Span& span) const;

  const char* name_;
  std::vector<at::Tensor> tensors_;  // B, N, S, D, or the blocks as block, N, S, D
  std::optional<at::Tensor> table_;
  int64_t block_size_ = 0;
  int64_t head_size_ = 0;
};

// Parameters for the whole tensor or for each element of the heads, broadcastable to N, S, D.
at::Tensor by_channel(const char* name, const at::Tensor& parameters, int64_t heads,
                      int64_t head_size);
// Dequantises INT8 elements of the keys or values of a sequence, in N, S, D.
at::Tensor antiquantised(const at::Tensor& elements, const Antiquantisation& antiquant,
                         const Span& span, int64_t batches);

}  // namespace aclnn_host
