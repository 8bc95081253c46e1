#pragma once

#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

// Attention of training over packed sequences of different lengths: queries, keys and values are T,
// N, D, one sequence after the other.
namespace aclnn_host {

// A range of a packed dimension.
struct SequencePart {
  int64_t first;
  int64_t size;
};
// The ranges of a dimension of `total` elements, from the cumulative sums of their sizes.
std::vector<SequencePart> parts_of(const char* name, const at::OptionalIntArrayRef& sums,
                                   int64_t total);
// The size of the longest sequence; 0 if there is none.
int64_t longest(const std::vector<SequencePart>& parts);

// The ranges of queries and of keys, as many of both.
struct PackedSequences {
  std::vector<SequencePart> queries;
  std::vector<SequencePart> keys;
};
// Zeros at the end of the sums stand for sequences that take no part.
PackedSequences sequences_of(const at::Tensor& query, const at::OptionalIntArrayRef& query_sums,
                             const at::Tensor& key, const at::OptionalIntArrayRef& key_sums);

// Checks the layout and the shapes of packed queries, keys and values.
void check_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::string& layout, int64_t heads);

// The sequences of one call.
class PackedAttention {
 public:
  PackedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::string& layout, const at::OptionalIntArrayRef& query_sums,
                  const at::OptionalIntArrayRef& key_sums, const AttentionArguments& arguments);

  size_t count() const { return sequences_.queries.size(); }
  // The number of scores of all heads of all sequences.
  int64_t scores() const { return scores_ * arguments_.heads; }
  const SequencePart& queries(size_t i) const { return sequences_.queries[i]; }
  const SequencePart& keys(size_t i) const { return sequences_.keys[i]; }

  // Reads a range as (batch, heads, sequence, elements).
  static at::Tensor read(const at::Tensor& packed, const SequencePart& part);
  // Writes elements of (batch, heads, sequence, elements) to a range.
  static void write(const at::Tensor& packed, const SequencePart& part, const at::Tensor& elements);

  // The attention of sequence i; `forward` belongs to this sequence.
  SoftmaxAttention attention(size_t i, ForwardPass forward = {}) const;

 private:
  void measure();
  void check_mode() const;
  void check_shift() const;
  void check_mask() const;
  bool has_whole_mask() const {
    return arguments_.mask &&
           (arguments_.sparse_mode == kDefaultMask || arguments_.sparse_mode == kAllMask);
  }
  // The number of queries or of keys of all sequences.
  static int64_t total(const std::vector<SequencePart>& parts) {
    return parts.back().first + parts.back().size;
  }
  // True if a two-dimensional mask covers the packed queries and keys, not one sequence.
  bool masks_all_sequences() const;

  // The shift of sequence i.
  std::optional<at::Tensor> shift(size_t i) const;
  std::pair<int64_t, int64_t> starts(size_t i) const;  // of queries and of keys
  void check_made_shift(size_t i) const;
  at::Tensor made_shift(size_t i) const;
  std::optional<at::Tensor> mask(size_t i) const;
  int64_t mode(size_t i) const;
  std::optional<at::Tensor> hidden(size_t i) const;

  at::Tensor query_;
  at::Tensor key_;
  at::Tensor value_;
  AttentionArguments arguments_;
  PackedSequences sequences_;
  std::vector<int64_t> scores_before_;  // for one head
  int64_t scores_ = 0;
  int64_t longest_queries_ = 0;
  int64_t longest_keys_ = 0;
  std::optional<size_t> first_filled_;
  std::optional<size_t> last_filled_;
};

// The results of all sequences; 0 for tokens outside all sequences.
struct PackedResults {
  PackedResults(const at::Tensor& query, const at::Tensor& value);

  // Writes those of one sequence. By default the maxima or sums of a head are contiguous within
  // each sequence, whatever the tensor's shape; `as_input` selects the layout of the inputs.
  void write(const SequencePart& part, const SoftmaxAttention& attention,
             bool as_input = false) const;

  at::Tensor largest;  // tokens, heads, copies
  at::Tensor sum;
  at::Tensor results;  // tokens, heads, elements
};
// True if the softmax layout is that of the inputs.
bool is_as_input(const char* name, const std::string& layout);
template <class Version>
bool is_as_input(const Version& row) {
  if constexpr (requires { row.softmaxOutLayout; }) {
    return is_as_input("softmaxOutLayout", row.softmaxOutLayout);
  } else if constexpr (requires { row.softmaxInLayout; }) {
    return is_as_input("softmaxInLayout", row.softmaxInLayout);
  }
  return false;
}
void write_attention(const at::Tensor& query, const at::Tensor& value,
                     const PackedAttention& sequences, bool as_input, Output& softmax_max,
                     Output& softmax_sum, Output& out);
struct PackedGradients {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor sink;  // zeros if there is no sink
};

// The maxima and sums of the forward pass have the layout of PackedResults.
PackedGradients packed_gradients(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const at::Tensor& dy,
                                 const ForwardPass& forward, bool as_input,
                                 const PackedAttention& sequences);

void check_value_size(const at::Tensor& key, const at::Tensor& value);

// Concatenates both parts of each head, so that the scores are the sum of those of the parts.
at::Tensor with_rotary(const char* name, const at::Tensor& part,
                       const std::optional<at::Tensor>& rotary);
// Refuses arguments that the document does not allow together with rotary parts.
void check_rotary(const RotaryParts& rotary, const AttentionArguments& arguments);

}  // namespace aclnn_host
