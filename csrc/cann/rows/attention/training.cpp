#include "cann/rows/attention/training.h"

#include "cann/rows/attention/heads.h"
#include "cann/rows/row.h"

namespace aclnn_host {

namespace {

// Clamps a number of tokens to more than any sequence has, so that sums of a few do not overflow.
int64_t bounded(int64_t tokens) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return std::clamp(tokens, -kMost, kMost);
}

}  // namespace

void check_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionArguments& arguments) {
  expect_dtype("query", query, {at::kHalf, at::kBFloat16, at::kFloat});
  expect_dtype("key", key, query);
  expect_dtype("value", value, query);
  expect_at_least("headNum", arguments.heads, 1);
  EXPECT(arguments.keep > 0 && arguments.keep <= 1, "keepProb is ", arguments.keep,
         ", expected more than 0, at most 1");
  expect_range("pseType", arguments.shift_type, kScaleThenShift, kRoot);
  EXPECT(arguments.shift || !arguments.makes_shift(), arguments.shift_name,
         " is null, expected the slopes of a shift of pseType ", arguments.shift_type);
  if (arguments.shift) {
    expect_dtype(arguments.shift_name, *arguments.shift,
                 arguments.makes_shift() ? at::kFloat : query.scalar_type());
  }
  if (arguments.mask) expect_dtype("attenMaskOptional", *arguments.mask, {at::kBool, at::kByte});
  if (arguments.drop_mask) expect_dtype("dropMaskOptional", *arguments.drop_mask, at::kByte);
  if (arguments.sink) expect_float(arguments.sink_name, *arguments.sink, {arguments.heads});
}

void check_mask(const at::Tensor& mask, int64_t batches, int64_t heads, int64_t queries,
                int64_t keys, const char* reason) {
  if (mask.sizes() == at::IntArrayRef({queries, keys})) return;
  const std::string alternative =
      " or [" + std::to_string(queries) + ", " + std::to_string(keys) + "]" + reason;
  expect_sizes("attenMaskOptional", mask,
               {Size::or_one(batches), Size::or_one(heads), queries, keys}, alternative.c_str());
}

int64_t first_of(const char* name, const at::OptionalIntArrayRef& array) {
  if (!array || array->empty()) return 0;
  const int64_t first = array->front();
  EXPECT(first == bounded(first), name, " is ", *array, ", expected a position from -2^40 to 2^40");
  return first;
}

std::optional<at::Tensor> hidden_scores(int64_t mode, const AttentionArguments& arguments,
                                        const std::optional<at::Tensor>& mask, int64_t prefix,
                                        int64_t queries, int64_t keys,
                                        const at::TensorOptions& options) {
  expect_range("sparseMode", mode, kDefaultMask, kBandThenLeftUpCausal);
  // Without a mask the mode is ignored.
  if (!arguments.mask) return std::nullopt;
  expect_range("sparseMode", mode, kDefaultMask, kPrefixCompressed,
               "; modes 7 and 8 are for packed sequences");
  const at::Tensor key = at::arange(keys, options.dtype(at::kLong));
  const at::Tensor ahead = keys_ahead(queries, keys, options);
  const int64_t pre = bounded(arguments.pre_tokens);
  const int64_t next = bounded(arguments.next_tokens);
  switch (mode) {
    case kDefaultMask: return *mask | (ahead > next) | (ahead < -pre);
    case kAllMask: return *mask;
    case kLeftUpCausal: return ahead > 0;
    case kRightDownCausal: return ahead > keys - queries;
    case kBandFromLast: return (ahead > next + keys - queries) | (ahead < keys - queries - pre);
    case kPrefix: return *mask | ((ahead > keys - queries) & (key >= prefix));
    default: return (ahead > keys - queries) & (key >= prefix);  // kPrefixCompressed
  }
}

at::Tensor distance_shift(const at::Tensor& slopes, int64_t shift_type, int64_t queries,
                          int64_t keys, int64_t query_start, int64_t key_start) {
  const at::Tensor ahead = keys_ahead(queries, keys, slopes.options()) + (key_start - query_start);
  const at::Tensor distance = ahead.abs().to(at::kFloat);
  return (shift_type == kRoot ? distance.sqrt() : distance) * -slopes;
}

at::Tensor softmax_probabilities(const at::Tensor& scores, const at::Tensor& largest,
                                 const at::Tensor& sum) {
  const at::Tensor sees_no_key = (largest == -std::numeric_limits<double>::infinity()) | (sum == 0);
  return (scores - largest).exp_().div_(sum).masked_fill_(sees_no_key, 0);
}

at::Tensor score_gradient(const at::Tensor& probabilities, const at::Tensor& gradient,
                          const at::Tensor& of_result) {
  return (gradient - of_result).mul_(probabilities);
}

SoftmaxAttention::SoftmaxAttention(AttentionInputs inputs) : inputs_(std::move(inputs)) {
  const int64_t heads = inputs_.query.size(1);
  const int64_t key_heads = inputs_.key.size(1);
  EXPECT(key_heads > 0 && heads % key_heads == 0, "query has ", heads,
         " heads, expected a multiple of the ", key_heads, " heads of key");
  group_ = heads / key_heads;
  if (group_ > 1) {
    inputs_.key = inputs_.key.repeat_interleave(group_, 1);
    inputs_.value = inputs_.value.repeat_interleave(group_, 1);
  }
  at::Tensor scores = at::matmul(inputs_.query, inputs_.key.transpose(2, 3));
  if (inputs_.shift && inputs_.shifts_first) scores = scores + *inputs_.shift;
  scores.mul_(inputs_.scale);
  if (inputs_.shift && !inputs_.shifts_first) scores = scores + *inputs_.shift;
  if (inputs_.hidden) scores.masked_fill_(*inputs_.hidden, inputs_.hidden_score);
  const int64_t keys = scores.size(3);
  if (inputs_.sink) {
    const at::Tensor sink = inputs_.sink->view({1, heads, 1, 1});
    scores = at::cat({scores, sink.expand({scores.size(0), heads, scores.size(2), 1})}, 3);
  }
  if (scores.size(3) == 0) {  // amax needs a key
    probabilities_ = scores;
    sum_ = at::zeros({scores.size(0), heads, scores.size(2), 1}, scores.options());
    largest_ = at::full_like(sum_, -std::numeric_limits<double>::infinity());
    return;
  }
  compute_softmax(scores);
  if (inputs_.sink) {
    of_sink_ = probabilities_.narrow(3, keys, 1);
    probabilities_ = probabilities_.narrow(3, 0, keys);
  }
}

void SoftmaxAttention::compute_softmax(const at::Tensor& scores) {
  const ForwardPass& forward = inputs_.forward;
  largest_ = forward.largest ? *forward.largest : scores.amax(3, /*keepdim=*/true);
  if (forward.largest || forward.sum) {
    sum_ = forward.sum ? *forward.sum : (scores - largest_).exp().sum(3, /*keepdim=*/true);
    probabilities_ = softmax_probabilities(scores, largest_, sum_);
    return;
  }
  probabilities_ = at::softmax(scores, 3);
  // The largest score has exponential 1, so the largest probability is 1 / sum.
  sum_ = probabilities_.amax(3, /*keepdim=*/true).reciprocal();
  const at::Tensor is_hidden = largest_ == -std::numeric_limits<double>::infinity();
  if (scores.is_meta() || is_hidden.any().item().toBool()) {
    probabilities_.masked_fill_(is_hidden, 0);
    sum_.masked_fill_(is_hidden, 0);
  }
}

at::Tensor SoftmaxAttention::dropped(const at::Tensor& x) const {
  return inputs_.kept ? x * *inputs_.kept : x;
}

// Reduces the gradient of keys or values from heads of queries to heads of keys.
at::Tensor SoftmaxAttention::by_group(const at::Tensor& gradient) const {
  if (group_ == 1) return gradient;
  return gradient.unflatten(1, {gradient.size(1) / group_, group_}).sum(2);
}

at::Tensor SoftmaxAttention::result() const {
  return at::matmul(dropped(probabilities_), inputs_.value);
}

SoftmaxAttention::Gradients SoftmaxAttention::gradients(const at::Tensor& dy) const {
  const at::Tensor& p = probabilities_;
  const at::Tensor dp = dropped(at::matmul(dy, inputs_.value.transpose(2, 3)));
  const std::optional<at::Tensor>& result = inputs_.forward.result;
  const at::Tensor of_result = (result ? dy * *result : dp * p).sum(3, /*keepdim=*/true);
  const at::Tensor ds = score_gradient(p, dp, of_result);
  const at::Tensor scaled = ds * inputs_.scale;
  std::optional<at::Tensor> of_sink;
  if (inputs_.sink) of_sink = -(of_sink_ * of_result).sum(at::IntArrayRef{0, 2, 3});
  return {at::matmul(scaled, inputs_.key),
          by_group(at::matmul(scaled.transpose(2, 3), inputs_.query)),
          by_group(at::matmul(dropped(p).transpose(2, 3), dy)), inputs_.shifts_first ? scaled : ds,
          of_sink};
}

at::Tensor kept_of(const at::Tensor& mask, int64_t first, at::IntArrayRef scores, double keep) {
  int64_t count = 1;
  for (const int64_t size : scores) {
    EXPECT(!__builtin_mul_overflow(count, size, &count) && first <= INT64_MAX - 7 - count,
           "the scores have shape ", scores, ", expected fewer of them");
  }
  const int64_t byte = first / 8;
  const int64_t bytes = (first + count + 7) / 8 - byte;
  EXPECT(mask.numel() >= byte + bytes, "dropMaskOptional has ", mask.numel(),
         " bytes, expected at least ", byte + bytes, ", one bit for each score");
  return mask.flatten()
             .narrow(0, byte, bytes)
             .unsqueeze(1)
             .bitwise_right_shift(at::arange(8, mask.options()))
             .bitwise_and(1)
             .flatten()
             .narrow(0, first % 8, count)
             .view(scores)
             .to(at::kFloat) /
         keep;
}

}  // namespace aclnn_host
