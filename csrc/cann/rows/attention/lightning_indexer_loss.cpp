// The loss of the lightning indexer and its gradients. It trains the indexer's scores to match the
// distribution of the attention for which the indexer selects keys.

#include <utility>
#include <vector>

#include "cann/rows/attention/lightning_indexer.h"
#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_lightning_indexer_loss_rows {

namespace {

// Reshapes a softmax tensor to the heads of each token. The tensor is (batch, heads of keys,
// sequence, queries of each head) or (heads of keys, tokens, queries of each head).
at::Tensor by_token(const at::Tensor& softmax) {
  return softmax.transpose(-3, -2).flatten(-2);
}
std::vector<int64_t> softmax_shape(const at::Tensor& query, int64_t key_heads) {
  const int64_t group = query.size(-2) / key_heads;
  if (query.dim() == 3) return {key_heads, query.size(0), group};
  return {query.size(0), key_heads, query.size(1), group};
}

void expect_causal(int64_t mode) {
  EXPECT(mode == 3, "sparseMode is ", mode, ", expected 3");
}

void expect_weights(const at::Tensor& weights, const at::Tensor& query) {
  if (weights.scalar_type() != at::kFloat) expect_dtype("weights", weights, query);
}

// Arguments of the losses besides the indexer's: the attention to learn, with the maxima and sums
// of its softmax.
struct Attention {
  const at::Tensor& query;
  const at::Tensor& key;
  const std::optional<at::Tensor>& query_rope;
  const std::optional<at::Tensor>& key_rope;
  const at::Tensor& largest;
  const at::Tensor& sum;
  double scale;
};

void check(const Attention& attention, const at::Tensor& query_index, const at::Tensor& key_index,
           int64_t size, int64_t key_heads) {
  constexpr int64_t kRopeSize = 64;
  const at::Tensor &query = attention.query, &key = attention.key;
  expect_dtype("query", query, query_index);
  expect_dtype("key", key, query_index);
  expect_dims("query", query, query_index.dim());
  expect_dims("key", key, query_index.dim());
  const int64_t heads = query.size(-2);
  std::vector<int64_t> of_queries = query_index.sizes().vec(), of_keys = key_index.sizes().vec();
  const auto with_heads = [](std::vector<int64_t> shape, int64_t count, int64_t elements) {
    shape[shape.size() - 2] = count;
    shape.back() = elements;
    return shape;
  };
  expect_shape("query", query, with_heads(of_queries, heads, size));
  expect_shape("key", key, with_heads(of_keys, key_heads, size));
  EXPECT(attention.query_rope.has_value() == attention.key_rope.has_value(),
         "one of queryRope and keyRope is given and the other is null");
  if (attention.query_rope) {
    expect_dtype("queryRope", *attention.query_rope, query);
    expect_dtype("keyRope", *attention.key_rope, query);
    expect_shape("queryRope", *attention.query_rope, with_heads(of_queries, heads, kRopeSize));
    expect_shape("keyRope", *attention.key_rope, with_heads(of_keys, key_heads, kRopeSize));
  }
  const std::vector<int64_t> of_softmax = softmax_shape(query, key_heads);
  for (const auto& [name, tensor] :
       {std::pair("softmaxMax", attention.largest), std::pair("softmaxSum", attention.sum)}) {
    expect_dtype(name, tensor, at::kFloat);
    expect_shape(name, tensor, of_softmax);
  }
}

at::Tensor joined(const at::Tensor& part, const std::optional<at::Tensor>& rope) {
  if (!rope) return part;
  const at::Tensor parts[] = {part, *rope};
  return at::cat(at::TensorList(parts), -1);
}

// A sequence of the attention, in FLOAT.
struct AttentionParts {
  at::Tensor query;    // queries, heads, elements
  at::Tensor key;      // keys, heads, elements
  at::Tensor largest;  // queries, heads
  at::Tensor sum;

  AttentionParts(const Attention& attention, const Indexer& indexer, int64_t sequence)
      : query(indexer.queries().read(joined(attention.query, attention.query_rope), sequence)),
        key(indexer.keys().read(joined(attention.key, attention.key_rope), sequence)),
        largest(indexer.queries().read(by_token(attention.largest), sequence)),
        sum(indexer.queries().read(by_token(attention.sum), sequence)) {}

  // The target of the indexer for a query: the mean over heads of the attention's probabilities of
  // `keys`.
  at::Tensor target(int64_t row, const at::Tensor& keys, double scale) const {
    const at::Tensor of_query = query.select(0, row);
    const at::Tensor scores =
        keys.size(1) == 1 ? at::matmul(of_query, keys.squeeze(1).t())
                          : at::matmul(keys.transpose(0, 1), of_query.unsqueeze(-1)).squeeze(-1);
    const at::Tensor most = largest.select(0, row).unsqueeze(-1);
    return ((scores * scale - most).exp() / sum.select(0, row).unsqueeze(-1)).mean(0);
  }
};

void expect_loss(const Output& loss) {
  expect_dtype(loss.name(), loss, at::kFloat);
  expect_shape(loss.name(), loss, {1});
}

}  // namespace

// The maxima and sums of the softmax of the indexer's scores for all keys.
ACLNN(DenseLightningIndexerSoftmaxLse, (Floating<In>, queryIndex), (Floating<In>, keyIndex),
      (Floating<In>, weight), (Optional<Ints>, actualSeqLengthsQueryOptional),
      (Optional<Ints>, actualSeqLengthsKeyOptional), (char*, layoutOptional), (int64_t, sparseMode),
      (int64_t, preTokens), (int64_t, nextTokens), (Out, softmaxMaxOut), (Out, softmaxSumOut)) {
  if (queryIndex.numel() == 0) return;
  Indexer indexer(
      {"queryIndex", "keyIndex", "actualSeqLengthsQueryOptional", "actualSeqLengthsKeyOptional"},
      queryIndex, keyIndex, weight, layoutOptional,
      lengths_from("actualSeqLengthsQueryOptional", actualSeqLengthsQueryOptional),
      lengths_from("actualSeqLengthsKeyOptional", actualSeqLengthsKeyOptional));
  expect_heads("queryIndex", queryIndex, {8, 16, 32, 64});
  expect_weights(weight, queryIndex);
  expect_causal(sparseMode);
  EXPECT(preTokens == INT64_MAX && nextTokens == INT64_MAX,
         "preTokens or nextTokens is not the largest number, the only one supported");
  indexer.measure();
  indexer.expect_enough_keys("actualSeqLengthsKeyOptional");
  const std::vector<int64_t> shape =
      queryIndex.dim() == 3 ? std::vector<int64_t>{1, queryIndex.size(0)}
                            : std::vector<int64_t>{queryIndex.size(0), 1, queryIndex.size(1)};
  for (const Output* out : {&softmaxMaxOut, &softmaxSumOut}) {
    expect_dtype(out->name(), *out, at::kFloat);
    expect_shape(out->name(), *out, shape);
  }
  const auto options = queryIndex.options().dtype(at::kFloat);
  const at::Tensor largest = at::zeros({indexer.tokens()}, options);
  const at::Tensor sum = at::zeros({indexer.tokens()}, options);
  if (has_values(queryIndex)) {
    indexer.each_query([&](int64_t sequence) { return indexer.parts(sequence); },
                       [&](const auto& parts, int64_t token, int64_t row, int64_t visible) {
                         const at::Tensor scores = QueryScores(parts.query.select(0, row),
                                                               parts.keys.narrow(0, 0, visible),
                                                               parts.weights.select(0, row))
                                                       .values();
                         const at::Tensor most = scores.max();
                         largest.select(0, token).copy_(most);
                         sum.select(0, token).copy_((scores - most).exp().sum());
                       });
  }
  softmaxMaxOut = largest.view(shape);
  softmaxSumOut = sum.view(shape);
}

// The divergence of the softmax of the indexer's scores, over all keys, from the mean over heads of
// the attention's probabilities, summed over queries, and its gradients.
ACLNN(DenseLightningIndexerGradKLLoss, (Floating<In>, query), (Floating<In>, key),
      (Floating<In>, queryIndex), (Floating<In>, keyIndex), (Floating<In>, weights),
      (Floating<In>, softmaxMax), (Floating<In>, softmaxSum), (Floating<In>, softmaxMaxIndex),
      (Floating<In>, softmaxSumIndex), (Optional<In>, queryRope), (Optional<In>, keyRope),
      (Optional<Ints>, actualSeqLengthsQuery), (Optional<Ints>, actualSeqLengthsKey),
      (double, scaleValue), (char*, layout), (int64_t, sparseMode),
      (Unused<int64_t>, preTokens, "counts only in sparseMode 0 or 4, which are refused"),
      (Unused<int64_t>, nextTokens, "counts only in sparseMode 0 or 4, which are refused"),
      (Out, dQueryIndex), (Out, dKeyIndex), (Out, dWeights), (Out, loss)) {
  constexpr int64_t kSize = 128;
  Indexer indexer({"queryIndex", "keyIndex", "actualSeqLengthsQuery", "actualSeqLengthsKey"},
                  queryIndex, keyIndex, weights, layout,
                  lengths_from("actualSeqLengthsQuery", actualSeqLengthsQuery),
                  lengths_from("actualSeqLengthsKey", actualSeqLengthsKey));
  expect_heads("queryIndex", queryIndex, {8, 16, 32, 64});
  expect_weights(weights, queryIndex);
  expect_causal(sparseMode);
  expect_dims("query", query, queryIndex.dim());
  expect_heads("query", query, {32, 64, 128});
  const Attention attention{query, key, queryRope, keyRope, softmaxMax, softmaxSum, scaleValue};
  check(attention, queryIndex, keyIndex, kSize, query.size(-2));
  const std::vector<int64_t> of_index =
      queryIndex.dim() == 3 ? std::vector<int64_t>{1, queryIndex.size(0)}
                            : std::vector<int64_t>{queryIndex.size(0), 1, queryIndex.size(1)};
  for (const auto& [name, tensor] : {std::pair("softmaxMaxIndex", softmaxMaxIndex),
                                     std::pair("softmaxSumIndex", softmaxSumIndex)}) {
    expect_dtype(name, tensor, at::kFloat);
    expect_shape(name, tensor, of_index);
  }
  expect_results(dQueryIndex, queryIndex, dKeyIndex, keyIndex, dWeights, weights);
  expect_loss(loss);
  indexer.measure();
  indexer.expect_enough_keys("actualSeqLengthsKey");

  IndexerGradients sums(queryIndex, keyIndex);
  if (has_values(query)) {
    struct Sequence {
      int64_t number;
      Indexer::Parts index;
      AttentionParts attention;
      at::Tensor largest;
      at::Tensor sum;
    };
    const auto begin = [&](int64_t i) {
      return Sequence{i, indexer.parts(i), AttentionParts(attention, indexer, i),
                      indexer.queries().read(softmaxMaxIndex.squeeze(-2), i),
                      indexer.queries().read(softmaxSumIndex.squeeze(-2), i)};
    };
    indexer.each_query(begin, [&](const Sequence& sequence, int64_t token, int64_t row,
                                  int64_t visible) {
      const QueryScores scores(sequence.index.query.select(0, row),
                               sequence.index.keys.narrow(0, 0, visible),
                               sequence.index.weights.select(0, row));
      const at::Tensor learnt =
          (scores.values() - sequence.largest.select(0, row)).exp() / sequence.sum.select(0, row);
      const at::Tensor target =
          sequence.attention.target(row, sequence.attention.key.narrow(0, 0, visible), scaleValue);
      sums.learn(scores, target, learnt, token, indexer.keys().first(sequence.number));
    });
  }
  sums.write(dQueryIndex, dKeyIndex, dWeights);
  loss = sums.loss();
}

// The divergence and its gradients for the keys that each query selects; the indexer's
// softmax is over these keys only.
ACLNN(SparseLightningIndexerGradKLLoss, (Floating<In>, query), (Floating<In>, key),
      (Floating<In>, queryIndex), (Floating<In>, keyIndex), (Floating<In>, weights),
      (In, sparseIndices), (Floating<In>, softmaxMax), (Floating<In>, softmaxSum),
      (Floating<In>, queryRope), (Floating<In>, keyRope), (Optional<Ints>, actualSeqLengthsQuery),
      (Optional<Ints>, actualSeqLengthsKey), (double, scaleValue), (char*, layout),
      (int64_t, sparseMode),
      (Unused<int64_t>, pre_tokens, "counts only in sparseMode 0 or 4, which are refused"),
      (Unused<int64_t>, next_tokens, "counts only in sparseMode 0 or 4, which are refused"),
      (Unused<bool>, deterministic, "has no effect in CANN either"), (Out, dQueryIndex),
      (Out, dKeyIndex), (Out, dWeights), (Out, loss)) {
  constexpr int64_t kSize = 512, kStep = 1024, kMostKeys = 8192;
  if (query.numel() == 0) return;
  Indexer indexer({"queryIndex", "keyIndex", "actualSeqLengthsQuery", "actualSeqLengthsKey"},
                  queryIndex, keyIndex, weights, layout,
                  lengths_from("actualSeqLengthsQuery", actualSeqLengthsQuery),
                  lengths_from("actualSeqLengthsKey", actualSeqLengthsKey));
  expect_weights(weights, queryIndex);
  expect_causal(sparseMode);
  expect_dims("query", query, queryIndex.dim());
  // Ascend950 accepts one more pair of head counts.
  if (query.size(-2) != 48 || queryIndex.size(-2) != 24) {
    expect_heads("query", query, {32, 64, 128});
    expect_heads("queryIndex", queryIndex, {8, 16, 32, 64});
  }
  const std::optional<at::Tensor> query_rope = queryRope, key_rope = keyRope;
  const Attention attention{query, key, query_rope, key_rope, softmaxMax, softmaxSum, scaleValue};
  check(attention, queryIndex, keyIndex, kSize, 1);
  expect_dims("sparseIndices", sparseIndices, query.dim());
  const int64_t count = sparseIndices.size(-1);
  EXPECT(count >= kStep && count <= kMostKeys && count % kStep == 0, "sparseIndices has ", count,
         " keys of each query, expected a multiple of ", kStep, " up to ", kMostKeys);
  std::vector<int64_t> of_indices = query.sizes().vec();
  of_indices[of_indices.size() - 2] = 1;
  of_indices.back() = count;
  expect_dtype("sparseIndices", sparseIndices, at::kInt);
  expect_shape("sparseIndices", sparseIndices, of_indices);
  expect_results(dQueryIndex, queryIndex, dKeyIndex, keyIndex, dWeights, weights);
  expect_loss(loss);
  indexer.measure();
  indexer.expect_enough_keys("actualSeqLengthsKey");

  IndexerGradients sums(queryIndex, keyIndex);
  if (has_values(query)) {
    struct Sequence {
      int64_t number;
      Indexer::Parts index;
      AttentionParts attention;
    };
    const at::Tensor lists = sparseIndices.reshape({-1, count});
    const auto begin = [&](int64_t i) {
      return Sequence{i, indexer.parts(i), AttentionParts(attention, indexer, i)};
    };
    indexer.each_query(
        begin, [&](const Sequence& sequence, int64_t token, int64_t row, int64_t visible) {
          const at::Tensor places =
              listed(lists.select(0, token), visible, sequence.index.keys.size(0));
          if (places.numel() == 0) return;
          const QueryScores scores(sequence.index.query.select(0, row),
                                   sequence.index.keys.index_select(0, places),
                                   sequence.index.weights.select(0, row));
          const at::Tensor learnt = at::softmax(scores.values(), 0);
          const at::Tensor target = sequence.attention.target(
              row, sequence.attention.key.index_select(0, places), scaleValue);
          sums.learn(scores, target, learnt, token, places + indexer.keys().first(sequence.number));
        });
  }
  sums.write(dQueryIndex, dKeyIndex, dWeights);
  loss = sums.loss();
}

}  // namespace aclnn_host::attention_lightning_indexer_loss_rows
