#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include "cann/rows/row.h"

// The attention of training, for the operators whose sequences have one length and for those that
// pack sequences of many: with the scores S, the softmax P of those that are not hidden and its
// part D that a dropout keeps, the result is D V. A sink is one more score of each query of a head,
// which takes its part of the softmax and has no value.
namespace aclnn_host {

// What the operators have beside queries, keys and values.
struct AttentionArguments {
  std::optional<at::Tensor> shift = {};
  std::optional<at::Tensor> drop_mask = {};
  std::optional<at::Tensor> mask = {};
  at::OptionalIntArrayRef prefix = {};
  at::OptionalIntArrayRef query_start = {};
  at::OptionalIntArrayRef key_start = {};
  double scale = 1;
  double keep = 1;
  int64_t pre_tokens = 0;
  int64_t next_tokens = 0;
  int64_t heads = 0;
  int64_t sparse_mode = 0;
  int64_t shift_type = 1;
  std::optional<at::Tensor> sink = {};
};

// Those of a version of the operators, or of a version of their gradients.
template <class Version>
AttentionArguments attention_arguments(const Version& row) {
  AttentionArguments arguments{.drop_mask = row.dropMaskOptional,
                               .mask = row.attenMaskOptional,
                               .prefix = row.prefixOptional,
                               .heads = row.headNum};
  if constexpr (requires { row.realShiftOptional; }) {
    arguments.shift = row.realShiftOptional;
  } else {  // a gradient
    arguments.shift = row.pseShiftOptional;
  }
  if constexpr (requires { row.scaleValueOptional; }) {
    arguments.scale = row.scaleValueOptional;
    arguments.keep = row.keepProbOptional;
    arguments.pre_tokens = row.preTokensOptional;
    arguments.next_tokens = row.nextTokensOptional;
    arguments.sparse_mode = row.sparseModeOptional;
  } else {
    arguments.scale = row.scaleValue;
    arguments.keep = row.keepProb;
    arguments.pre_tokens = row.preTokens;
    arguments.next_tokens = row.nextTokens;
    arguments.sparse_mode = row.sparseMode;
  }
  if constexpr (requires { row.pseType; }) {
    arguments.query_start = row.qStartIdxOptional;
    arguments.key_start = row.kvStartIdxOptional;
    arguments.shift_type = row.pseType;
  }
  if constexpr (requires { row.sinkOptional; }) arguments.sink = row.sinkOptional;
  if constexpr (requires { row.sinkInOptional; }) arguments.sink = row.sinkInOptional;
  return arguments;
}

// What a gradient is given of the forward pass; what is null is computed anew. It may be of more
// keys than the call has: ring attention passes the maxima, the sums and the result of all blocks
// of keys with each block, and adds the gradients.
struct ForwardPass {
  std::optional<at::Tensor> largest = {};
  std::optional<at::Tensor> sum = {};
  std::optional<at::Tensor> result = {};
};

// The sparse modes: what of the scores counts. A compressed mask says nothing that the mode does
// not say.
enum AttentionSparseMode {
  kDefaultMask = 0,
  kAllMask = 1,
  kLeftUpCausal = 2,
  kRightDownCausal = 3,
  kBandFromLast = 4,
  kPrefix = 5,
  kPrefixCompressed = 6,
  kRightDownCausalThenBand = 7,
  kBandThenLeftUpCausal = 8,
};

// The types of shifts: added after (0) or before (1) the scores are scaled; or made by the operator
// from slopes and the distance of query and key (2) or its square root (3), and added after.
enum AttentionShiftType { kScaleThenShift = 0, kShiftThenScale = 1, kDistance = 2, kRoot = 3 };

// Checks that no sequence makes different.
void check_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionArguments& arguments);
// Refuses arguments that would change the result in a way that the host CANN does not emulate.
void refuse_attention_arguments(std::initializer_list<std::pair<const char*, bool>> arguments);

// The first of an array of start indices, 0 without one.
int64_t first_of(const at::OptionalIntArrayRef& array);

// The places of `queries` by `keys` scores that the mode hides: `mask` is null or a mask of these
// scores; `prefix` is of this sequence. Nothing where all count.
std::optional<at::Tensor> hidden_scores(int64_t mode, const AttentionArguments& arguments,
                                        const std::optional<at::Tensor>& mask, int64_t prefix,
                                        int64_t queries, int64_t keys,
                                        const at::TensorOptions& options);
// The shift made from slopes that fit batch, heads, 1, 1.
at::Tensor distance_shift(const at::Tensor& slopes, int64_t shift_type, int64_t queries,
                          int64_t keys, int64_t query_start, int64_t key_start);

// What one attention takes, each as batch, heads, sequence, elements and of type FLOAT. Heads of
// keys and values serve as many heads of queries as there are more of these.
struct AttentionInputs {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  double scale = 1;
  bool shifts_first = true;
  std::optional<at::Tensor> shift = {};
  std::optional<at::Tensor> hidden = {};
  double hidden_score = -std::numeric_limits<double>::infinity();
  std::optional<at::Tensor> kept = {};  // 0 for what is dropped, 1 / keepProb for what is kept
  std::optional<at::Tensor> sink = {};  // one for each head of queries
  ForwardPass forward = {};             // maxima and sums as batch, heads, queries, 1
};

// The probabilities exp(score - largest) / sum, 0 for a query that sees no key: one whose largest
// score is -inf or whose sum is 0.
at::Tensor softmax_probabilities(const at::Tensor& scores, const at::Tensor& largest,
                                 const at::Tensor& sum);
// The gradient of the scores from the one of the probabilities. `of_result` is the sum of the
// products of a query's result and its gradient, which is the one of probabilities and theirs.
at::Tensor score_gradient(const at::Tensor& probabilities, const at::Tensor& gradient,
                          const at::Tensor& of_result);

class SoftmaxAttention {
 public:
  explicit SoftmaxAttention(AttentionInputs inputs);

  // Of each query, the largest score and the sum of exponentials; if no key counts, -inf and 0
  // with the result 0.
  const at::Tensor& largest() const { return largest_; }
  const at::Tensor& sum() const { return sum_; }
  const at::Tensor& probabilities() const { return probabilities_; }
  at::Tensor result() const;

  struct Gradients {
    at::Tensor query;
    at::Tensor key;
    at::Tensor value;
    at::Tensor shift;  // in the shape of the scores
    std::optional<at::Tensor> sink;
  };
  Gradients gradients(const at::Tensor& dy) const;

 private:
  void compute_softmax(const at::Tensor& scores);
  at::Tensor dropped(const at::Tensor& x) const;
  at::Tensor by_group(const at::Tensor& gradient) const;

  AttentionInputs inputs_;
  int64_t group_;
  at::Tensor largest_;
  at::Tensor sum_;
  at::Tensor probabilities_;
  at::Tensor of_sink_;  // the probability of the sink
};

// CANN writes the maximum and the sum of each query eight times.
inline constexpr int64_t kSoftmaxCopies = 8;

// The bits of a dropout mask from `first` on in the shape of the scores, divided by `keep`.
at::Tensor kept_of(const at::Tensor& mask, int64_t first, at::IntArrayRef scores, double keep);

}  // namespace aclnn_host
