// The lightning indexer of DeepSeek sparse attention, a small attention that selects the most
// important keys of each query, and the gradients of its scores.

#include "cann/rows/attention/lightning_indexer.h"
#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_lightning_indexer_rows {

namespace {

constexpr SequenceNames kQueryNames{"query", "layoutQueryOptional",
                                    "actualSeqLengthsQueryOptional"};
constexpr SequenceNames kKeyNames{"key", "layoutKeyOptional", "actualSeqLengthsKeyOptional",
                                  "blockTableOptional"};

constexpr double kHidden = -std::numeric_limits<double>::infinity();

bool is_published_count(int64_t count) {
  constexpr int64_t kSmall = 2048, kStep = 1024, kMost = 8192;
  return (count >= 1 && count <= kSmall) ||
         (count > kSmall && count <= kMost && count % kStep == 0);
}

void check_sequences(const TokenSequences& queries, const TokenSequences& keys,
                     const at::Tensor& query, const at::Tensor& key,
                     const char* query_name = "query", const char* key_name = "key") {
  constexpr int64_t kSize = 128, kMostHeads = 64;
  EXPECT(queries.count() == keys.count(), key_name, " has ", keys.count(), " sequences, expected ",
         queries.count(), " as ", query_name, " has");
  EXPECT(queries.heads() <= kMostHeads && query.size(-1) == kSize, query_name, " has shape ",
         query.sizes(), ", expected up to ", kMostHeads, " heads of ", kSize, " elements");
  EXPECT(keys.heads() == 1 && key.size(-1) == kSize, key_name, " has shape ", key.sizes(),
         ", expected one head of ", kSize, " elements");
}

void check_window(int64_t mode, int64_t pre_tokens, int64_t next_tokens) {
  expect_one_of("sparseMode", mode, {0, 3});
  expect_no_window(pre_tokens, next_tokens);
}

// The positions of the best keys of each query, in descending order of score, and their scores;
// unused elements at the end are -1 and -inf.
struct Best {
  at::Tensor indices;
  at::Tensor scores;
};

// The shape of an output for the best keys of the one head of keys.
std::vector<int64_t> shape_of_best(const at::Tensor& query, int64_t count) {
  std::vector<int64_t> shape = with_last(query.sizes(), {count});
  shape[shape.size() - 2] = 1;
  return shape;
}

// Which keys a query does not see. Queries and keys end together, and a query sees no later key. A
// key may stand for `ratio` tokens, and some tokens after the last key may have none yet.
struct Causality {
  bool hides;
  int64_t ratio = 1;
  std::optional<at::Tensor> residuals =
      std::nullopt;  // how many tokens of each sequence have no key

  at::Tensor hidden(int64_t sequence, int64_t rows, int64_t columns,
                    const at::TensorOptions& options) const {
    const auto integers = options.dtype(at::kLong);
    const int64_t rest = residuals ? residuals->select(0, sequence).item().toLong() : 0;
    expect_rest("cmpResidualKOptional", rest, ratio);
    const at::Tensor seen =
        at::arange(rows, integers) + (columns * ratio + rest - rows + 1);  // tokens
    return at::arange(columns, integers) >= at::div(seen, ratio, "floor").unsqueeze(1);
  }
};

// `products` returns the products of the queries' heads with the keys of a sequence.
template <class Products>
Best best_keys(TokenSequences& queries, TokenSequences& keys, const at::Tensor& weights,
               int64_t most, const Causality& causality, Products products) {
  const int64_t tokens = weights.numel() / queries.heads();
  const auto options = weights.options().dtype(at::kFloat);
  const Best best{at::full({tokens, most}, -1, options.dtype(at::kInt)),
                  at::full({tokens, most}, kHidden, options)};
  if (!has_values(weights)) return best;
  queries.measure();
  keys.measure();
  for (int64_t i = 0; i < queries.count(); ++i) {
    const int64_t rows = queries.length(i), columns = keys.length(i);
    if (rows == 0 || columns == 0) continue;
    at::Tensor scores = (at::relu(products(i)) * queries.read(weights, i).unsqueeze(-1)).sum(1);
    if (causality.hides) {
      scores = scores.masked_fill(causality.hidden(i, rows, columns, options), kHidden);
    }
    const int64_t count = std::min(most, columns);
    const auto [sorted, order] = at::sort(scores, /*stable=*/true, -1, /*descending=*/true);
    const at::Tensor largest = sorted.narrow(1, 0, count);
    const at::Tensor keys_of_scores = at::where(largest == kHidden, -1, order.narrow(1, 0, count));
    best.indices.narrow(0, queries.first(i), rows).narrow(1, 0, count).copy_(keys_of_scores);
    best.scores.narrow(0, queries.first(i), rows).narrow(1, 0, count).copy_(largest);
  }
  return best;
}

// Checks the offset of the indices, of each sequence or of each token, and returns it for each
// token as (tokens, 1).
at::Tensor offsets_of_tokens(const at::Tensor& offset, TokenSequences& queries,
                             const at::Tensor& query) {
  expect_dtype("outputIdxOffsetOptional", offset, at::kInt);
  if (offset.dim() != 1) {
    std::vector<int64_t> of_tokens = with_last(query.sizes(), {});
    of_tokens.back() = 1;
    expect_shape("outputIdxOffsetOptional", offset, of_tokens);
    return offset.reshape({-1, 1});
  }
  expect_shape("outputIdxOffsetOptional", offset, {queries.count()});
  const at::Tensor of_tokens =
      at::zeros({query.numel() / (queries.heads() * query.size(-1)), 1}, offset.options());
  if (!has_values(query)) return of_tokens;
  for (int64_t i = 0; i < queries.count(); ++i) {
    of_tokens.narrow(0, queries.first(i), queries.length(i)).copy_(offset.select(0, i));
  }
  return of_tokens;
}

// Adds offsets to indices of keys, but not to -1.
at::Tensor with_offsets(const at::Tensor& indices, const at::Tensor& offset,
                        const at::Tensor& of_tokens) {
  if (!has_values(offset)) return indices;
  check_bounds("outputIdxOffsetOptional", offset, INT32_MAX, 1);
  const at::Tensor sums = indices.to(at::kLong) + of_tokens;
  const at::Tensor shifted = at::where(indices < 0, -1, sums);
  check_bounds("the sums of indices and outputIdxOffsetOptional", shifted, INT32_MAX, -1);
  return shifted.to(at::kInt);
}

}  // namespace

// The gradients of the values that LightningIndexer returns.
// Behaviour of LightningIndexerGrad, SparseLightningIndexerGradKLLoss, DenseLightningIndexer*:
// Everything is computed in FLOAT, and each result is rounded once. With sparseMode 3
// only the first elements of a query's list of keys are used, as many as the query sees keys. A
// probability below 1e-8 counts as 1e-8 in the loss. The losses take lengths from arrays, which
// stage 1 checks.
ACLNN(LightningIndexerGrad, (Floating<In>, query), (Floating<In>, key), (Floating<In>, dy),
      (In, spareIndices), (Floating<In>, weights), (Optional<In>, actualSeqLengthsQuery),
      (Optional<In>, actualSeqLengthsKey),
      (Unused<int64_t>, headNum, "CANN does not use it: the shape of query says it"),
      (char*, layout), (int64_t, sparseMode), (Unused<int64_t>, preTokens, "CANN does not use it"),
      (Unused<int64_t>, nextTokens, "CANN does not use it"),
      (Unused<bool>, deterministic, "chooses an order of sums; the host has one order"),
      (Out, dQuery), (Out, dKey), (Out, dWeights)) {
  constexpr int64_t kMostKeys = 2048;
  if (query.numel() == 0) {
    expect_results(dQuery, query, dKey, key, dWeights, weights);
    dKey = at::zeros(dKey->sizes());
    dWeights = at::zeros(dWeights->sizes());
    return;
  }
  Indexer indexer({"query", "key", "layout", "actualSeqLengthsQuery", "actualSeqLengthsKey"}, query,
                  key, weights, layout, actualSeqLengthsQuery, actualSeqLengthsKey);
  expect_dtype("dy", dy, query);
  expect_dtype("weights", weights, query);
  expect_one_of("sparseMode", sparseMode, {0, 3});
  expect_dims("spareIndices", spareIndices, query.dim() - 1, query.dim());
  const int64_t count = spareIndices.size(-1);
  EXPECT(count >= 1 && count <= kMostKeys, "spareIndices has ", count,
         " keys of each query, expected 1 to ", kMostKeys);
  // LightningIndexer writes the indices with a dimension for the one head of keys; it may be
  // missing here.
  std::vector<int64_t> of_tokens(query.sizes().begin(), query.sizes().end() - 1);
  of_tokens.back() = spareIndices.dim() == query.dim() ? 1 : count;
  if (spareIndices.dim() == query.dim()) of_tokens.push_back(count);
  expect_dtype("spareIndices", spareIndices, at::kInt);
  expect_shape("spareIndices", spareIndices, of_tokens);
  expect_shape("dy", dy, of_tokens);
  expect_results(dQuery, query, dKey, key, dWeights, weights);

  IndexerGradients sums(query, key);
  if (has_values(query)) {
    indexer.measure();
    const at::Tensor lists = spareIndices.reshape({-1, count});
    const at::Tensor gradients = dy.reshape({-1, count}).to(at::kFloat);
    indexer.each_query(
        [&](int64_t sequence) { return std::pair(sequence, indexer.parts(sequence)); },
        [&](const auto& sequence, int64_t token, int64_t row, int64_t visible) {
          const auto& [number, parts] = sequence;
          const at::Tensor keys =
              listed(lists.select(0, token), sparseMode == 3 ? visible : count, parts.keys.size(0));
          const QueryScores scores = parts.scores(row, parts.keys.index_select(0, keys));
          const at::Tensor dscores = gradients.select(0, token).narrow(0, 0, keys.size(0));
          sums.add(scores.gradients(dscores), token, keys + indexer.keys().first(number));
        });
  }
  sums.write(dQuery, dKey, dWeights);
}
// The score of a key is the sum over heads of weight * relu(query * key).
// Behaviour of LightningIndexer: Indices come in the order of their scores. If there are fewer
// keys, the remaining indices are -1 and their scores -inf.
ACLNN(LightningIndexer, (Floating<In>, query), (SameDtype<Floating<In>>, key, "query"),
      (Floating<In>, weights), (Optional<In>, actualSeqLengthsQueryOptional),
      (Optional<In>, actualSeqLengthsKeyOptional), (Optional<In>, blockTableOptional),
      (char*, layoutQueryOptional), (char*, layoutKeyOptional), (int64_t, sparseCount),
      (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens), (bool, returnValues),
      (Out, sparseIndicesOut), (Optional<Out>, sparseValuesOut)) {
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  TokenSequences queries(kQueryNames, query, layoutQueryOptional, actualSeqLengthsQueryOptional);
  TokenSequences keys(kKeyNames, key, layoutKeyOptional, actualSeqLengthsKeyOptional,
                      blockTableOptional);
  check_sequences(queries, keys, query, key);
  if (weights.scalar_type() != at::kFloat) expect_dtype("weights", weights, query);
  expect_shape("weights", weights, with_last(query.sizes(), {}));
  EXPECT(is_published_count(sparseCount), "sparseCount is ", sparseCount.value(),
         ", expected 1 to 2048, or a multiple of 1024 up to 8192");
  check_window(sparseMode, preTokens, nextTokens);
  const std::vector<int64_t> shape = shape_of_best(query, sparseCount);
  expect_dtype("sparseIndicesOut", sparseIndicesOut, at::kInt);
  expect_shape("sparseIndicesOut", sparseIndicesOut, shape);
  if (returnValues) {
    EXPECT(sparseValuesOut && !keys.is_paged(),
           "returnValues is true, expected a tensor sparseValuesOut and no pages of keys");
    expect_dtype(*sparseValuesOut, query);
    expect_shape("sparseValuesOut", *sparseValuesOut, shape);
  }

  const Best best =
      best_keys(queries, keys, weights, sparseCount, {sparseMode == 3}, [&](int64_t sequence) {
        return at::matmul(queries.read(query, sequence), keys.read(key, sequence).squeeze(1).t());
      });
  sparseIndicesOut = best.indices.view(shape);
  if (returnValues) sparseValuesOut = best.scores.view(shape);
}

// Keys may stand for cmpRatio tokens each. With maskMode 3, query i of a sequence sees the first
// floor((keys * cmpRatio + cmpResidualK - queries + i + 1) / cmpRatio) keys.
// Behaviour of LightningIndexerV2: metadata distributes the work to the cores of a device: its
// values are ignored, and it may be null. outputIdxOffset has an offset for each sequence, as the
// document says, or for each token, as the public checker wants. Queries from sequsedQ on get -1
// and -inf.
ACLNN(LightningIndexerV2, (Floating<In>, q), (SameDtype<Floating<In>>, k, "q"), (Floating<In>, w),
      (Optional<In>, cuSeqlensQOptional), (Optional<In>, cuSeqlensKOptional),
      (Optional<In>, sequsedQOptional), (Optional<In>, sequsedKOptional),
      (Optional<In>, cmpResidualKOptional), (Optional<In>, blockTableOptional),
      (Optional<In>, outputIdxOffsetOptional), (Optional<In>, metadataOptional), (int64_t, topk),
      (int64_t, maxSeqlenQ), (char*, layoutQ), (char*, layoutK), (int64_t, maskMode),
      (int64_t, cmpRatio), (int64_t, returnValue), (Out, sparseIndices),
      (Optional<Out>, sparseValues)) {
  expect_dtype("q", q, {at::kHalf, at::kBFloat16});
  TokenSequences queries({"q", "layoutQ", "cuSeqlensQOptional", nullptr, "sequsedQOptional"}, q,
                         layoutQ, SequenceLengths{cuSeqlensQOptional, sequsedQOptional});
  TokenSequences keys(
      {"k", "layoutK", "cuSeqlensKOptional", "blockTableOptional", "sequsedKOptional"}, k, layoutK,
      SequenceLengths{cuSeqlensKOptional, sequsedKOptional}, blockTableOptional);
  EXPECT(keys.is_paged() || layoutQ == layoutK, "layoutK is \"", layoutK,
         "\", expected PA_BBND or the layout of q, ", layoutQ);
  check_sequences(queries, keys, q, k, "q", "k");
  expect_float("w", w, with_last(q.sizes(), {}));
  if (metadataOptional) expect_dtype("metadataOptional", *metadataOptional, at::kInt);
  EXPECT(is_published_count(topk), "topk is ", topk.value(),
         ", expected 1 to 2048, or a multiple of 1024 up to 8192");
  expect_at_least("maxSeqlenQ", maxSeqlenQ, -1);
  expect_one_of("maskMode", maskMode, {0, 3});
  expect_one_of("cmpRatio", cmpRatio, {1, 4, 128});
  expect_one_of("returnValue", returnValue, {0, 1});
  const bool is_compressed = maskMode == 3 && cmpRatio != 1;
  EXPECT(cmpResidualKOptional.has_value() == is_compressed, "cmpResidualKOptional is ",
         is_compressed ? "null, expected a tensor as" : "given, expected null unless",
         " maskMode is 3 and cmpRatio is not 1");
  if (is_compressed) {
    expect_tensor("cmpResidualKOptional", *cmpResidualKOptional, at::kInt, {queries.count()});
  }
  const std::vector<int64_t> shape = shape_of_best(q, topk);
  expect_tensor("sparseIndices", sparseIndices, at::kInt, shape);
  require_given(sparseValues || returnValue == 0,
                "sparseValues is null, expected a tensor as returnValue is 1");
  if (returnValue == 1) expect_float("sparseValues", *sparseValues, shape);

  const Best best = best_keys(
      queries, keys, w, topk, {maskMode == 3, cmpRatio, cmpResidualKOptional},
      [&](int64_t i) { return at::matmul(queries.read(q, i), keys.read(k, i).squeeze(1).t()); });
  at::Tensor indices = best.indices;
  if (outputIdxOffsetOptional) {
    indices = with_offsets(indices, *outputIdxOffsetOptional,
                           offsets_of_tokens(*outputIdxOffsetOptional, queries, q));
  }
  sparseIndices = indices.view(shape);
  if (returnValue == 1) sparseValues = best.scores.view(shape);
}

// Queries and keys are INT8 or FLOAT8, with a scale for each head of each token.
// Behaviour of QuantLightningIndexer, KvQuantSparseFlashAttention: Everything is computed in FLOAT.
// Keys are INT8, those of the indexer also FLOAT8_E4M3FN.
ACLNN(QuantLightningIndexer, (Stored<In>, query), (SameDtype<Stored<In>>, key, "query"),
      (Floating<In>, weights), (Floating<In>, queryDequantScale), (Floating<In>, keyDequantScale),
      (Optional<In>, actualSeqLengthsQueryOptional), (Optional<In>, actualSeqLengthsKeyOptional),
      (Optional<In>, blockTableOptional), (int64_t, queryQuantMode), (int64_t, keyQuantMode),
      (char*, layoutQueryOptional), (char*, layoutKeyOptional), (int64_t, sparseCount),
      (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens), (Out, out)) {
  const at::Tensor &queries_of = query.elements, &keys_of = key.elements;
  EXPECT(query.dtype == ACL_INT8 || query.dtype == ACL_FLOAT8_E4M3FN, "query has dtype ",
         dtype_name(query.dtype),
         ", expected INT8 or FLOAT8_E4M3FN; the host CANN does not emulate HIFLOAT8");
  const bool is_wide = weights.scalar_type() == at::kBFloat16;
  EXPECT(weights.scalar_type() == at::kHalf || (is_wide && query.dtype != ACL_INT8),
         "weights has dtype ", dtype_text(weights.scalar_type()),
         ", expected FLOAT16, or BFLOAT16 if query is FLOAT8_E4M3FN");
  expect_dtype("queryDequantScale", queryDequantScale, is_wide ? at::kFloat : at::kHalf);
  expect_dtype("keyDequantScale", keyDequantScale, is_wide ? at::kFloat : at::kHalf);
  TokenSequences queries(kQueryNames, queries_of, layoutQueryOptional,
                         actualSeqLengthsQueryOptional);
  TokenSequences keys(kKeyNames, keys_of, layoutKeyOptional, actualSeqLengthsKeyOptional,
                      blockTableOptional);
  check_sequences(queries, keys, queries_of, keys_of);
  expect_shape("weights", weights, with_last(queries_of.sizes(), {}));
  expect_shape("queryDequantScale", queryDequantScale, with_last(queries_of.sizes(), {}));
  expect_shape("keyDequantScale", keyDequantScale, with_last(keys_of.sizes(), {}));
  expect_one_of("queryQuantMode", queryQuantMode, {0}, ", the only one supported");
  expect_one_of("keyQuantMode", keyQuantMode, {0}, ", the only one supported");
  expect_range("sparseCount", sparseCount, 1, 2048);
  check_window(sparseMode, preTokens, nextTokens);
  const std::vector<int64_t> shape = shape_of_best(queries_of, sparseCount);
  expect_dtype("out", out, at::kInt);
  expect_shape("out", out, shape);
  const Best best =
      best_keys(queries, keys, weights, sparseCount, {sparseMode == 3}, [&](int64_t sequence) {
        const at::Tensor products = at::matmul(queries.read(queries_of, sequence),
                                               keys.read(keys_of, sequence).squeeze(1).t());
        return products * queries.read(queryDequantScale, sequence).unsqueeze(-1) *
               keys.read(keyDequantScale, sequence).squeeze(1);
      });
  out = best.indices.view(shape);
}

}  // namespace aclnn_host::attention_lightning_indexer_rows
