// Linear attention as a recurrence: each token decays and corrects a state of values by keys.

#include "cann/rows/attention/heads.h"
#include "cann/rows/indexing/changes.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_delta_rule_rows {

namespace {

// Repeats heads of keys, so that there are as many as heads of values.
at::Tensor for_values(const at::Tensor& keys, int64_t heads) {
  return wide(keys).repeat_interleave(heads / keys.size(1), 1);
}

void expect_length(const std::vector<int64_t>& lengths, size_t i, int64_t left) {
  EXPECT(lengths[i] >= 0 && lengths[i] <= left, "actualSeqLengths has ", lengths[i], " at ", i,
         ", expected 0 to ", left, ", the tokens that are left");
}

// S = a diag(ak) S + beta (v - a diag(ak) S k) k^T, with a = exp(g) and ak = exp(gk), and the
// result scale S q, for each token and all heads of values.
class DeltaRule {
 public:
  DeltaRule(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
            const at::Tensor& beta, const std::optional<at::Tensor>& g,
            const std::optional<at::Tensor>& gk, double scale)
      : queries_(for_values(query, value.size(1)).unsqueeze(-1)),
        keys_(for_values(key, value.size(1)).unsqueeze(-1)),
        values_(wide(value).unsqueeze(-1)),
        rates_(wide(beta).unsqueeze(-1).unsqueeze(-1)),
        g_(g),
        gk_(gk),
        scale_(scale) {}

  at::Tensor next(at::Tensor state, int64_t token) const {
    const auto decay = [&](const at::Tensor& exponent) {
      return exponent.select(0, token).to(state.scalar_type()).exp();
    };
    if (g_) state = state * decay(*g_).unsqueeze(-1).unsqueeze(-1);
    if (gk_) state = state * decay(*gk_).unsqueeze(1);
    const at::Tensor k = keys_.select(0, token);
    const at::Tensor correction =
        rates_.select(0, token) * (values_.select(0, token) - at::matmul(state, k));
    return state + at::matmul(correction, k.transpose(1, 2));
  }
  at::Tensor result(const at::Tensor& state, int64_t token) const {
    return at::matmul(state, queries_.select(0, token)).squeeze(-1) * scale_;
  }

 private:
  at::Tensor queries_;
  at::Tensor keys_;
  at::Tensor values_;
  at::Tensor rates_;
  std::optional<at::Tensor> g_;
  std::optional<at::Tensor> gk_;
  double scale_;
};

}  // namespace

// A sequence starts with the state of its last accepted token, or of its first token if
// numAcceptedTokens is absent. The state after each token is written to the token's slot.
ACLNN(RecurrentGatedDeltaRule, (Floating<In>, query), (Like<Floating<In>>, key, "query"),
      (SameDtype<Floating<In>>, value, "query"), (SameDtype<Floating<In>>, beta, "query"),
      (Floating<InOut>, stateRef), (IndexIn, actualSeqLengths), (IndexIn, ssmStateIndices),
      (Optional<Floating<In>>, g), (Optional<Floating<In>>, gk),
      (Optional<IndexIn>, numAcceptedTokens), (float, scaleValue), (Like<Out>, out, "value")) {
  expect_dims("query", query, 3);
  expect_dims("value", value, 3);
  expect_dims("stateRef", stateRef, 4);
  expect_dims("actualSeqLengths", actualSeqLengths, 1);
  const int64_t tokens = query.size(0), key_heads = query.size(1), key_size = query.size(2);
  const int64_t heads = value.size(1), sequences = actualSeqLengths.size(0);
  EXPECT(key_heads > 0 && heads > 0 && heads % key_heads == 0, "value has ", heads,
         " heads, expected a multiple of query's ", key_heads);
  expect_shape("value", value, {tokens, heads, value.size(2)});
  expect_shape("beta", beta, {tokens, heads});
  expect_shape("stateRef", stateRef, {stateRef->size(0), heads, value.size(2), key_size});
  expect_shape("ssmStateIndices", ssmStateIndices, {tokens});
  if (g) expect_shape("g", *g, {tokens, heads});
  if (gk) expect_shape("gk", *gk, {tokens, heads, key_size});
  if (numAcceptedTokens) expect_shape("numAcceptedTokens", *numAcceptedTokens, {sequences});
  const at::Tensor results = at::empty(value.sizes(), wide(value).options());
  if (!has_values(query)) {
    out = results;
    return;
  }
  check_bounds("ssmStateIndices", ssmStateIndices, stateRef->size(0));
  const DeltaRule rule(query, key, value, beta, g, gk, scaleValue);
  const std::vector<int64_t> lengths = integers_in(actualSeqLengths);
  const std::vector<int64_t> accepted =
      numAcceptedTokens ? integers_in(*numAcceptedTokens) : std::vector<int64_t>(lengths.size(), 1);
  int64_t token = 0;
  const auto compute = [&](const at::Tensor& states, const at::Tensor& index) {
    const std::vector<int64_t> slots = integers_in(index);
    for (size_t i = 0; i < lengths.size(); ++i) {
      expect_length(lengths, i, tokens - token);
      if (lengths[i] == 0) continue;
      EXPECT(accepted[i] >= 1 && accepted[i] <= lengths[i], "numAcceptedTokens has ", accepted[i],
             " at ", i, ", expected 1 to ", lengths[i]);
      at::Tensor state = states.select(0, slots[static_cast<size_t>(token + accepted[i] - 1)]);
      for (const int64_t end = token + lengths[i]; token < end; ++token) {
        state = rule.next(state, token);
        results.select(0, token).copy_(rule.result(state, token));
        states.select(0, slots[static_cast<size_t>(token)]).copy_(state);
      }
    }
  };
  change_slices(stateRef, stateRef, 0, ssmStateIndices, compute);
  results.narrow(0, token, tokens - token).zero_();
  out = results;
}

// Computes all tokens of each sequence, from an initial state; CANN computes them in chunks.
// Behaviour of ChunkGatedDeltaRule: Tokens are computed one after the other, in FLOAT. Tokens that
// belong to no sequence have the result 0.
ACLNN(ChunkGatedDeltaRule, (Floating<In>, query), (Like<Floating<In>>, key, "query"),
      (SameDtype<Floating<In>>, value, "query"), (SameDtype<Floating<In>>, beta, "query"),
      (Floating<In>, initialState), (IndexIn, actualSeqLengths), (Optional<In>, gOptional),
      (float, scaleValue), (Like<Out>, out, "value"), (Like<Out>, finalState, "initialState")) {
  constexpr int64_t kMostHeads = 64, kMostElements = 128;
  expect_dims("query", query, 3);
  expect_dims("value", value, 3);
  expect_dims("actualSeqLengths", actualSeqLengths, 1);
  expect_dtype("query", query, at::kBFloat16);
  const int64_t tokens = query.size(0), key_heads = query.size(1), key_size = query.size(2);
  const int64_t heads = value.size(1), size = value.size(2);
  const auto is_size = [](int64_t count, int64_t most) { return count >= 1 && count <= most; };
  EXPECT(tokens > 0 && is_size(key_heads, kMostHeads) && is_size(key_size, kMostElements),
         "query has shape ", query.sizes(), ", expected tokens of up to ", kMostHeads,
         " heads of up to ", kMostElements, " elements");
  EXPECT(is_size(heads, kMostHeads) && heads % key_heads == 0 && is_size(size, kMostElements),
         "value has shape ", value.sizes(), ", expected a multiple of query's ", key_heads,
         " heads, up to ", kMostHeads, ", of up to ", kMostElements, " elements");
  expect_shape("value", value, {tokens, heads, size});
  expect_shape("beta", beta, {tokens, heads});
  expect_elements("actualSeqLengths", actualSeqLengths);
  expect_dtype("initialState", initialState, {at::kBFloat16, at::kFloat});
  expect_shape("initialState", initialState, {actualSeqLengths.size(0), heads, size, key_size});
  if (gOptional) expect_float("gOptional", *gOptional, {tokens, heads});
  const at::Tensor results = at::zeros(value.sizes(), wide(value).options());
  const at::Tensor states = wide(initialState).clone();
  if (has_values(query)) {
    const DeltaRule rule(query, key, value, beta, gOptional, std::nullopt, scaleValue);
    const std::vector<int64_t> lengths = integers_in(actualSeqLengths);
    int64_t token = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      expect_length(lengths, i, tokens - token);
      at::Tensor state = states.select(0, static_cast<int64_t>(i));
      for (const int64_t end = token + lengths[i]; token < end; ++token) {
        state = rule.next(state, token);
        results.select(0, token).copy_(rule.result(state, token));
      }
      states.select(0, static_cast<int64_t>(i)).copy_(state);
    }
  }
  out = results;
  finalState = states;
}

}  // namespace aclnn_host::attention_delta_rule_rows
