// The loss of the lightning indexer and its gradients. It trains the indexer's scores to match the
// distribution of the attention for which the indexer selects keys.

#include "cann/rows/attention/lightning_indexer.h"
#include "cann/rows/attention/token_sequences.h"
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

// The shape of the maxima and sums of the indexer's softmax, which has one head of keys.
std::vector<int64_t> index_softmax_shape(const at::Tensor& query_index) {
  return with_last(softmax_shape(query_index, 1), {});
}

// The indexer of a row whose lengths are arrays, which are read.
Indexer indexer_of(const IndexerNames& names, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& weights, const std::string& layout,
                   const at::OptionalIntArrayRef& query_lengths,
                   const at::OptionalIntArrayRef& key_lengths, int64_t sparse_mode) {
  Indexer indexer(names, query, key, weights, layout,
                  lengths_from(names.query_lengths, query_lengths),
                  lengths_from(names.key_lengths, key_lengths));
  if (weights.scalar_type() != at::kFloat) expect_dtype("weights", weights, query);
  expect_one_of("sparseMode", sparse_mode, {3});
  indexer.measure();
  indexer.expect_enough_keys(names.key_lengths);
  return indexer;
}
constexpr IndexerNames kLossNames{"queryIndex", "keyIndex", "layout", "actualSeqLengthsQuery",
                                  "actualSeqLengthsKey"};

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
  std::vector<int64_t> of_keys = with_last(key_index.sizes(), {size});
  of_keys[of_keys.size() - 2] = key_heads;
  std::vector<int64_t> of_queries = with_last(query_index.sizes(), {size});
  of_queries[of_queries.size() - 2] = query.size(-2);
  expect_shape("query", query, of_queries);
  expect_shape("key", key, of_keys);
  expect_both_or_none("queryRope", attention.query_rope.has_value(), "keyRope",
                      attention.key_rope.has_value());
  if (attention.query_rope) {
    expect_dtype("queryRope", *attention.query_rope, query);
    expect_dtype("keyRope", *attention.key_rope, query);
    expect_shape("queryRope", *attention.query_rope, with_last(of_queries, {kRopeSize}));
    expect_shape("keyRope", *attention.key_rope, with_last(of_keys, {kRopeSize}));
  }
  expect_float("softmaxMax", attention.largest, softmax_shape(query, key_heads));
  expect_float("softmaxSum", attention.sum, softmax_shape(query, key_heads));
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

// The arguments of a loss whose target is given.
struct GivenTarget {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& weights;
  const at::Tensor& lists;
  const at::Tensor& target;
  int64_t mask;
  int64_t ratio;
  const std::optional<at::Tensor>& residuals;
};

void check(const GivenTarget& given, const TokenSequences& queries, const TokenSequences& keys) {
  constexpr int64_t kMostHeads = 128, kMostRatio = 128, kMostKeys = 2048;
  const at::Tensor& query = given.query;
  expect_dtype("q", query, {at::kHalf, at::kBFloat16});
  expect_last("q", query, kIndexerSize);
  expect_last("k", given.key, kIndexerSize);
  EXPECT(queries.heads() <= kMostHeads, "q has ", queries.heads(), " heads, expected at most ",
         kMostHeads);
  expect_heads("k", given.key, {1});
  EXPECT(queries.count() == keys.count(), "k has ", keys.count(), " sequences, expected ",
         queries.count(), " as q has");
  expect_float("w", given.weights, with_last(query.sizes(), {}));
  expect_dims("sparseIndices", given.lists, query.dim());
  const int64_t count = given.lists.size(-1);
  EXPECT((count >= 1 && count <= kMostKeys) || count == 2 * kMostKeys || count == 4 * kMostKeys,
         "sparseIndices has ", count, " keys of each query, expected 1 to ", kMostKeys,
         ", 4096 or 8192");
  std::vector<int64_t> shape = with_last(query.sizes(), {count});
  shape[shape.size() - 2] = 1;
  expect_tensor("sparseIndices", given.lists, at::kInt, shape);
  expect_float("attnSoftmaxL1Norm", given.target, shape);
  expect_one_of("maskMode", given.mask, {0, 3});
  expect_range("cmpRatio", given.ratio, 1, kMostRatio);
  EXPECT(given.residuals || given.mask == 0 || given.ratio == 1,
         "cmpResidualKOptional is null, expected a tensor as maskMode is 3 and cmpRatio is ",
         given.ratio);
  if (given.residuals) {
    expect_tensor("cmpResidualKOptional", *given.residuals, at::kInt, {queries.count()});
  }
}

// Calls `compute` for each query that selects keys, with its scores for them and the keys' numbers
// among all keys.
template <class Compute>
void each_seen(const GivenTarget& given, TokenSequences& queries, TokenSequences& keys,
               Compute compute) {
  queries.measure();
  keys.measure();
  const at::Tensor lists = given.lists.reshape({-1, given.lists.size(-1)});
  for (int64_t i = 0; i < queries.count(); ++i) {
    const int64_t rows = queries.length(i), columns = keys.length(i);
    const int64_t rest = given.residuals ? given.residuals->select(0, i).item().toLong() : 0;
    EXPECT(rest >= 0 && rest < given.ratio, "cmpResidualKOptional has ", rest, ", expected 0 to ",
           given.ratio - 1);
    const at::Tensor query = queries.read(given.query, i), key = keys.read(given.key, i).squeeze(1);
    const at::Tensor weights = queries.read(given.weights, i);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t token = queries.first(i) + row;
      const int64_t seen =
          given.mask == 0 ? columns : seen_keys(row, rows, columns, given.ratio, rest);
      const at::Tensor selected = listed(lists.select(0, token), seen, columns);
      if (selected.numel() == 0) continue;
      compute(
          QueryScores(query.select(0, row), key.index_select(0, selected), weights.select(0, row)),
          token, selected + keys.first(i));
    }
  }
}

}  // namespace

// The maxima and sums of the softmax of the indexer's scores for all keys.
ACLNN(DenseLightningIndexerSoftmaxLse, (Floating<In>, queryIndex), (Floating<In>, keyIndex),
      (Floating<In>, weight), (Optional<Ints>, actualSeqLengthsQueryOptional),
      (Optional<Ints>, actualSeqLengthsKeyOptional), (char*, layoutOptional), (int64_t, sparseMode),
      (int64_t, preTokens), (int64_t, nextTokens), (Out, softmaxMaxOut), (Out, softmaxSumOut)) {
  if (queryIndex.numel() == 0) {
    for (const Output& out : {softmaxMaxOut, softmaxSumOut}) {
      EXPECT(out->numel() == 0, out.name(), " has shape ", out->sizes(),
             ", expected no elements as queryIndex has shape ", queryIndex.sizes());
    }
    return;
  }
  const Indexer indexer =
      indexer_of({"queryIndex", "keyIndex", "layoutOptional", "actualSeqLengthsQueryOptional",
                  "actualSeqLengthsKeyOptional"},
                 queryIndex, keyIndex, weight, layoutOptional, actualSeqLengthsQueryOptional,
                 actualSeqLengthsKeyOptional, sparseMode);
  expect_heads("queryIndex", queryIndex, {8, 16, 32, 64});
  expect_no_window(preTokens, nextTokens);
  const std::vector<int64_t> shape = index_softmax_shape(queryIndex);
  expect_float(softmaxMaxOut, shape);
  expect_float(softmaxSumOut, shape);
  const auto options = queryIndex.options().dtype(at::kFloat);
  const at::Tensor largest = at::zeros({indexer.tokens()}, options);
  const at::Tensor sum = at::zeros({indexer.tokens()}, options);
  if (has_values(queryIndex)) {
    const auto parts_of = [&](int64_t sequence) { return indexer.parts(sequence); };
    indexer.each_query(
        parts_of, [&](const auto& parts, int64_t token, int64_t row, int64_t visible) {
          const at::Tensor scores = parts.scores(row, parts.keys.narrow(0, 0, visible)).values();
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
  const Indexer indexer = indexer_of(kLossNames, queryIndex, keyIndex, weights, layout,
                                     actualSeqLengthsQuery, actualSeqLengthsKey, sparseMode);
  expect_heads("queryIndex", queryIndex, {8, 16, 32, 64});
  expect_dims("query", query, queryIndex.dim());
  expect_heads("query", query, {32, 64, 128});
  const Attention attention{query, key, queryRope, keyRope, softmaxMax, softmaxSum, scaleValue};
  check(attention, queryIndex, keyIndex, kSize, query.size(-2));
  expect_float("softmaxMaxIndex", softmaxMaxIndex, index_softmax_shape(queryIndex));
  expect_float("softmaxSumIndex", softmaxSumIndex, index_softmax_shape(queryIndex));
  expect_results(dQueryIndex, queryIndex, dKeyIndex, keyIndex, dWeights, weights);
  expect_float(loss, {1});

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
      const QueryScores scores =
          sequence.index.scores(row, sequence.index.keys.narrow(0, 0, visible));
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
  if (query.numel() == 0) {
    expect_results(dQueryIndex, queryIndex, dKeyIndex, keyIndex, dWeights, weights);
    expect_float(loss, {1});
    for (Output* out : {&dQueryIndex, &dKeyIndex, &dWeights, &loss}) {
      *out = at::zeros((*out)->sizes());
    }
    return;
  }
  const Indexer indexer = indexer_of(kLossNames, queryIndex, keyIndex, weights, layout,
                                     actualSeqLengthsQuery, actualSeqLengthsKey, sparseMode);
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
  std::vector<int64_t> of_indices = with_last(query.sizes(), {count});
  of_indices[of_indices.size() - 2] = 1;
  expect_dtype("sparseIndices", sparseIndices, at::kInt);
  expect_shape("sparseIndices", sparseIndices, of_indices);
  expect_results(dQueryIndex, queryIndex, dKeyIndex, keyIndex, dWeights, weights);
  expect_float(loss, {1});

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
    indexer.each_query(begin, [&](const Sequence& sequence, int64_t token, int64_t row,
                                  int64_t visible) {
      const at::Tensor keys = listed(lists.select(0, token), visible, sequence.index.keys.size(0));
      if (keys.numel() == 0) return;
      const QueryScores scores =
          sequence.index.scores(row, sequence.index.keys.index_select(0, keys));
      const at::Tensor learnt = at::softmax(scores.values(), 0);
      const at::Tensor target =
          sequence.attention.target(row, sequence.attention.key.index_select(0, keys), scaleValue);
      sums.learn(scores, target, learnt, token, keys + indexer.keys().first(sequence.number));
    });
  }
  sums.write(dQueryIndex, dKeyIndex, dWeights);
  loss = sums.loss();
}

// The gradients of the divergence of the softmax of the indexer's scores, over the keys that each
// query selects, from a target that is given. A key stands for cmpRatio tokens.
// Behaviour of SparseLightningIndexerKLLossGrad: Everything is computed in FLOAT, and each result
// is rounded once. metadata is ignored: it distributes the work to the cores of a device. As in the
// published kernel, the gradient of the scores is softmax * sum(attnSoftmaxL1Norm) -
// attnSoftmaxL1Norm. Of a list, the first elements count, with maskMode 3 as many as the query sees
// keys; it ends with the first negative number, and softmaxOut is 0 for the others.
ACLNN(SparseLightningIndexerKLLossGrad, (Floating<In>, q), (SameDtype<Floating<In>>, k, "q"),
      (Floating<In>, w), (In, sparseIndices), (Floating<In>, attnSoftmaxL1Norm),
      (Optional<In>, cuSeqLensQOptional), (Optional<In>, cuSeqLensKOptional),
      (Optional<In>, seqUsedQOptional), (Optional<In>, seqUsedKOptional),
      (Optional<In>, cmpResidualKOptional),
      (Unused<Optional<In>>, metadataOptional, "distributes the work to the cores of a device"),
      (char*, layoutQ), (char*, layoutK), (int64_t, maskMode), (int64_t, cmpRatio), (Out, dq),
      (Out, dk), (Out, dw), (Out, softmaxOut)) {
  const GivenTarget given{
      q, k, w, sparseIndices, attnSoftmaxL1Norm, maskMode, cmpRatio, cmpResidualKOptional};
  TokenSequences queries({"q", "layoutQ", "cuSeqLensQOptional", nullptr, "seqUsedQOptional"}, q,
                         layoutQ, SequenceLengths{cuSeqLensQOptional, seqUsedQOptional});
  TokenSequences keys({"k", "layoutK", "cuSeqLensKOptional", nullptr, "seqUsedKOptional"}, k,
                      layoutK, SequenceLengths{cuSeqLensKOptional, seqUsedKOptional});
  check(given, queries, keys);
  expect_results(dq, q, dk, k, dw, w);
  expect_float(softmaxOut, sparseIndices.sizes());

  IndexerGradients sums(q, k);
  const int64_t count = sparseIndices.size(-1);
  const at::Tensor lists = sparseIndices.reshape({-1, count});
  const at::Tensor targets = attnSoftmaxL1Norm.reshape({-1, count});
  const at::Tensor all_learnt = at::zeros(lists.sizes(), targets.options());
  if (has_values(q)) {
    each_seen(given, queries, keys,
              [&](const QueryScores& scores, int64_t token, const at::Tensor& of_key) {
                const at::Tensor learnt = at::softmax(scores.values(), 0);
                const at::Tensor target = targets.select(0, token);
                all_learnt.select(0, token).narrow(0, 0, learnt.size(0)).copy_(learnt);
                sums.add(
                    scores.gradients(learnt * target.sum() - target.narrow(0, 0, learnt.size(0))),
                    token, of_key);
              });
  }
  sums.write(dq, dk, dw);
  softmaxOut = all_learnt.view(softmaxOut->sizes());
}

}  // namespace aclnn_host::attention_lightning_indexer_loss_rows
