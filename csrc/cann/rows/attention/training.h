#pragma once

#include "cann/rows/row.h"

// The attention of training, for operators whose sequences have one length and for those with
// packed sequences. With the scores S, their masked softmax P, and D, the part of P that dropout
// keeps, the result is D V. A sink is one additional score of each query of a head; it takes part
// in the softmax and has no value.
namespace aclnn_host {

// The types of shifts: added after (0) or before (1) the scores are scaled; or computed from slopes
// and the distance of query and key (2) or its square root (3), and added after scaling.
enum AttentionShiftType { kScaleThenShift = 0, kShiftThenScale = 1, kDistance = 2, kRoot = 3 };

// Arguments of the operators besides queries, keys and values.
struct AttentionArguments {
  std::optional<at::Tensor> shift = {};
  const char* shift_name = "";
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
  const char* sink_name = "";

  // True if the shift is computed from slopes and distances.
  bool makes_shift() const { return shift_type == kDistance || shift_type == kRoot; }
};

// Reasons why arguments are refused or have no effect.
inline constexpr const char* kPaddingMasks = "the host CANN does not compute with padding masks";
inline constexpr const char* kLeftAsItIs = "CANN leaves it as it is";
inline constexpr const char* kNotUsed = "CANN does not use it";
inline constexpr const char* kResultIsZero =
    "a query that sees no key has the result 0 with every value";
inline constexpr const char* kNoGradient =
    "a query that sees no key has no gradient with every value";
inline constexpr const char* kShiftHasNoGradient = "CANN computes no gradient of a shift";
inline constexpr const char* kQuantised = "the host CANN does not compute quantised attention here";

// Collects the arguments of a version of the operators or of their gradients.
template <class Version>
AttentionArguments attention_arguments(const Version& row) {
  AttentionArguments arguments{.drop_mask = row.dropMaskOptional,
                               .mask = row.attenMaskOptional,
                               .prefix = row.prefixOptional,
                               .heads = row.headNum};
  if constexpr (requires { row.realShiftOptional; }) {
    arguments.shift = row.realShiftOptional;
    arguments.shift_name = "realShiftOptional";
  } else {  // a gradient
    arguments.shift = row.pseShiftOptional;
    arguments.shift_name = "pseShiftOptional";
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
  if constexpr (requires { arguments.sink = row.sinkOptional; }) {
    arguments.sink = row.sinkOptional;
    arguments.sink_name = "sinkOptional";
  } else if constexpr (requires { arguments.sink = row.sinkInOptional; }) {
    arguments.sink = row.sinkInOptional;
    arguments.sink_name = "sinkInOptional";
  }
  return arguments;
}

// Refuses a sink without an output for its gradient.
template <class Version>
void check_sink_gradient(const Version& row) {
  if constexpr (requires { static_cast<bool>(row.dsinkOut); }) {
    require_given(row.dsinkOut || !row.sinkInOptional,
                  "dsinkOut is null, expected a tensor as sinkInOptional is given");
  }
}

// Results of the forward pass that a gradient receives; null ones are recomputed. They may cover
// more keys than the call has: ring attention passes the maxima, the sums and the result of all
// blocks of keys with each block, and adds the gradients.
struct ForwardPass {
  std::optional<at::Tensor> largest = {};
  std::optional<at::Tensor> sum = {};
  std::optional<at::Tensor> result = {};
};

// The parts of queries and keys that have rotary embeddings, in tensors of their own.
struct RotaryParts {
  std::optional<at::Tensor> query = {};
  std::optional<at::Tensor> key = {};
  const char* key_name = "keyRope";
};

// The sparse modes, which decide the visible scores. A compressed mask adds nothing to its mode.
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

// The checks that apply to all sequences together.
void check_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionArguments& arguments);

// Checks the sizes of a mask for all scores of each batch, or for those of one head.
void check_mask(const at::Tensor& mask, int64_t batches, int64_t heads, int64_t queries,
                int64_t keys, const char* reason = "");

// The first element of an array of start indices; 0 if it is absent.
int64_t first_of(const char* name, const at::OptionalIntArrayRef& array);

// Flags of the `queries` by `keys` scores that the mode hides; nothing if none are hidden. `mask`
// is null or a mask of these scores; `prefix` belongs to this sequence.
std::optional<at::Tensor> hidden_scores(int64_t mode, const AttentionArguments& arguments,
                                        const std::optional<at::Tensor>& mask, int64_t prefix,
                                        int64_t queries, int64_t keys,
                                        const at::TensorOptions& options);
// The shift computed from slopes, which broadcast to (batch, heads, 1, 1).
at::Tensor distance_shift(const at::Tensor& slopes, int64_t shift_type, int64_t queries,
                          int64_t keys, int64_t query_start, int64_t key_start);

// The inputs of one attention, each (batch, heads, sequence, elements) of FLOAT. Several
// consecutive heads of queries may share one head of keys and values.
struct AttentionInputs {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  double scale = 1;
  bool shifts_first = true;
  std::optional<at::Tensor> shift = {};
  std::optional<at::Tensor> hidden = {};
  double hidden_score = -std::numeric_limits<double>::infinity();
  std::optional<at::Tensor> kept = {};  // 0 for dropped elements, 1 / keepProb for the others
  std::optional<at::Tensor> sink = {};  // one element for each head of queries
  ForwardPass forward = {};             // maxima and sums are (batch, heads, queries, 1)
};

// The probabilities exp(score - largest) / sum; 0 for a query that sees no key, whose largest score
// is -inf or whose sum is 0.
at::Tensor softmax_probabilities(const at::Tensor& scores, const at::Tensor& largest,
                                 const at::Tensor& sum);
// The gradient of the scores from the gradient of the probabilities. `of_result` is the sum of the
// products of a query's result and its gradient, which equals that of the probabilities and their
// gradient.
at::Tensor score_gradient(const at::Tensor& probabilities, const at::Tensor& gradient,
                          const at::Tensor& of_result);

class SoftmaxAttention {
 public:
  explicit SoftmaxAttention(AttentionInputs inputs);

  // The largest score and the sum of exponentials of each query. A query without visible keys has
  // -inf, 0 and the result 0.
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

// The bits of a dropout mask from bit `first` on, in the shape of the scores, divided by `keep`.
at::Tensor kept_of(const at::Tensor& mask, int64_t first, at::IntArrayRef scores, double keep);

}  // namespace aclnn_host
