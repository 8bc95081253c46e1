// Linear attention as a recurrence: a state of values by keys that each token decays and corrects.

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/integers.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// Heads of keys, each for as many heads of values as there are more of these.
at::Tensor for_values(const at::Tensor& keys, int64_t heads) {
  return wide(keys).repeat_interleave(heads / keys.size(1), 1);
}

}  // namespace

// S = a diag(ak) S + beta (v - a diag(ak) S k) k^T, with a = exp(g) and ak = exp(gk), and the
// result scaleValue S q. A sequence starts with the state of its last accepted token, of its first
// one if numAcceptedTokens is absent, and each token leaves its state in the place of its own.
ACLNN(RecurrentGatedDeltaRule, (FloatIn, query), (FloatIn, key), (FloatIn, value), (FloatIn, beta),
      (FloatInOut, stateRef), (IndexIn, actualSeqLengths), (IndexIn, ssmStateIndices),
      (OptionalIn, g), (OptionalIn, gk), (OptionalIn, numAcceptedTokens), (float, scaleValue),
      (Out, out)) {
  expect_dims("query", query, 3);
  expect_dims("value", value, 3);
  expect_dims("stateRef", stateRef, 4);
  expect_dims("actualSeqLengths", actualSeqLengths, 1);
  const int64_t tokens = query.size(0);
  const int64_t key_heads = query.size(1);
  const int64_t key_size = query.size(2);
  const int64_t heads = value.size(1);
  const int64_t sequences = actualSeqLengths.size(0);
  TORCH_CHECK(key_heads > 0 && heads > 0 && heads % key_heads == 0, "value has ", heads,
              " heads, expected a multiple of query's ", key_heads);
  expect_like("key", key, query);
  expect_dtype("value", value, query);
  expect_shape("value", value, {tokens, heads, value.size(2)});
  expect_shape("beta", beta, {tokens, heads});
  expect_shape("stateRef", stateRef, {stateRef->size(0), heads, value.size(2), key_size});
  expect_shape("ssmStateIndices", ssmStateIndices, {tokens});
  if (g) expect_shape("g", *g, {tokens, heads});
  if (gk) expect_shape("gk", *gk, {tokens, heads, key_size});
  if (numAcceptedTokens) expect_shape("numAcceptedTokens", *numAcceptedTokens, {sequences});
  expect_shape("out", out, value.sizes());
  const at::Tensor results = at::empty(value.sizes(), wide(value).options());
  if (!query.is_cpu() || is_rehearsed()) {
    out = results;
    return;
  }
  check_bounds("ssmStateIndices", ssmStateIndices, stateRef->size(0));
  const at::Tensor keys = for_values(key, heads).unsqueeze(-1);
  const at::Tensor queries = for_values(query, heads).unsqueeze(-1);
  const at::Tensor values = wide(value).unsqueeze(-1);
  const at::Tensor rates = wide(beta).unsqueeze(-1).unsqueeze(-1);
  const std::vector<int64_t> places = integers_in(ssmStateIndices);
  const std::vector<int64_t> lengths = integers_in(actualSeqLengths);
  const std::vector<int64_t> accepted =
      numAcceptedTokens ? integers_in(*numAcceptedTokens) : std::vector<int64_t>(lengths.size(), 1);
  const at::Tensor states = wide(stateRef).clone();
  int64_t token = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    TORCH_CHECK(lengths[i] >= 0 && lengths[i] <= tokens - token, "actualSeqLengths has ",
                lengths[i], " at ", i, ", expected 0 to ", tokens - token, ", the tokens left of ",
                tokens);
    if (lengths[i] == 0) continue;
    TORCH_CHECK(accepted[i] >= 1 && accepted[i] <= lengths[i], "numAcceptedTokens has ",
                accepted[i], " at ", i, ", expected 1 to ", lengths[i]);
    at::Tensor state = states.select(0, places[static_cast<size_t>(token + accepted[i] - 1)]);
    for (const int64_t end = token + lengths[i]; token < end; ++token) {
      if (g) state = state * g->select(0, token).to(state.scalar_type()).exp().view({heads, 1, 1});
      if (gk) state = state * gk->select(0, token).to(state.scalar_type()).exp().unsqueeze(1);
      const at::Tensor k = keys.select(0, token);
      const at::Tensor correction =
          rates.select(0, token) * (values.select(0, token) - at::matmul(state, k));
      state = state + at::matmul(correction, k.transpose(1, 2));
      results.select(0, token).copy_(at::matmul(state, queries.select(0, token)).squeeze(-1) *
                                     scaleValue.value());
      states.select(0, places[static_cast<size_t>(token)]).copy_(state);
    }
  }
  results.narrow(0, token, tokens - token).zero_();
  stateRef = states;
  out = results;
}
