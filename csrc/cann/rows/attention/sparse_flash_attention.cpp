// Attention to keys that were selected for each query (DeepSeek sparse attention), and its
// gradients.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_sparse_flash_attention_rows {

namespace {

// The arguments of a call.
struct Selected {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor indices;
  std::optional<at::Tensor> table;
  std::optional<at::Tensor> query_lengths;
  std::optional<at::Tensor> key_lengths;
  std::optional<at::Tensor> query_rope;
  std::optional<at::Tensor> key_rope;
  double scale;
  int64_t block;
  std::string query_layout;
  std::string key_layout;
  int64_t mode;
};

constexpr int64_t kSize = 512, kRopeSize = 64;  // of one head

constexpr SequenceNames kQueryNames{"query", "layoutQueryOptional",
                                    "actualSeqLengthsQueryOptional"};
constexpr SequenceNames kKeyNames{"key", "layoutKvOptional", "actualSeqLengthsKvOptional",
                                  "blockTableOptional"};

void check(const Selected& given) {
  constexpr int64_t kMostHeads = 128;
  const at::Tensor &query = given.query, &key = given.key;
  expect_dtype("key", key, query);
  expect_like("value", given.value, key);
  EXPECT(query.size(-1) == kSize && query.size(-2) <= kMostHeads, "query has shape ", query.sizes(),
         ", expected up to ", kMostHeads, " heads of ", kSize, " elements");
  EXPECT(key.size(-1) == kSize && key.size(-2) == 1, "key has shape ", key.sizes(),
         ", expected one head of ", kSize, " elements");
  expect_both_or_none("queryRope", given.query_rope.has_value(), "keyRope",
                      given.key_rope.has_value());
  if (given.query_rope) {
    expect_dtype("queryRope", *given.query_rope, query);
    expect_shape("queryRope", *given.query_rope, with_last(query.sizes(), {kRopeSize}));
    expect_dtype("keyRope", *given.key_rope, key);
    expect_shape("keyRope", *given.key_rope, with_last(key.sizes(), {kRopeSize}));
  }
  expect_dims("sparseIndices", given.indices, query.dim());
  std::vector<int64_t> shape = with_last(query.sizes(), {given.indices.size(-1)});
  shape[shape.size() - 2] = 1;
  expect_dtype("sparseIndices", given.indices, at::kInt);
  expect_shape("sparseIndices", given.indices, shape);
  expect_elements("sparseIndices", given.indices);
  expect_one_of("sparseMode", given.mode, {0, 3});
}

void check_inference(const Selected& given, int64_t pre_tokens, int64_t next_tokens,
                     int64_t attention_mode) {
  constexpr int64_t kMostBlock = 128, kAbsorbed = 2;
  EXPECT(given.block >= 1 && given.block <= kMostBlock && (given.block & (given.block - 1)) == 0,
         "sparseBlockSize is ", given.block, ", expected a power of 2 up to ", kMostBlock);
  expect_no_window(pre_tokens, next_tokens);
  expect_one_of("attentionMode", attention_mode, {kAbsorbed});
}

// Flags of the keys that each query does not select: those outside the blocks in its list, which
// ends at the first negative number.
at::Tensor unselected(const at::Tensor& indices, int64_t block, int64_t keys) {
  const int64_t rows = indices.size(0), blocks = (keys + block - 1) / block;
  const at::Tensor listed = indices.to(at::kLong);
  const at::Tensor is_listed = (listed < 0).cumsum(1) == 0;
  check_bounds("sparseIndices", listed.masked_select(is_listed), blocks);
  // Entries after the end of the list mark an additional block.
  const at::Tensor marks = at::zeros({rows, blocks + 1}, indices.options().dtype(at::kBool))
                               .scatter(1, listed.masked_fill(~is_listed, blocks), true);
  return ~marks.narrow(1, 0, blocks).repeat_interleave(block, 1).narrow(1, 0, keys);
}

// The sequences of a call.
class Sequences {
 public:
  Sequences(const Selected& given, const SequenceNames& query_names, const SequenceNames& key_names)
      : given_(given),
        queries_(query_names, given.query, given.query_layout, given.query_lengths),
        keys_(key_names, given.key, given.key_layout, given.key_lengths, given.table) {
    check(given);
    EXPECT(queries_.count() == keys_.count(), "key has ", keys_.count(), " sequences, expected ",
           queries_.count(), " as query has");
  }

  const Selected& given() const { return given_; }
  const TokenSequences& queries() const { return queries_; }
  const TokenSequences& keys() const { return keys_; }
  int64_t tokens() const { return given_.query.numel() / (queries_.heads() * size()); }
  int64_t size() const { return given_.query.size(-1); }
  // There is one head of keys; all heads of queries form one group.
  std::vector<int64_t> softmax_shape() const {
    const int64_t heads = queries_.heads();
    if (given_.query_layout == "TND") return {1, tokens(), heads};
    return {given_.query.size(0), 1, given_.query.size(1), heads};
  }

  void measure() {
    queries_.measure();
    keys_.measure();
  }
  // Reads a tensor of tokens as SoftmaxAttention takes it.
  static at::Tensor read(const TokenSequences& sequences, const at::Tensor& part,
                         const std::optional<at::Tensor>& rope, int64_t i) {
    return joined(sequences.read(part, i),
                  rope ? std::optional(sequences.read(*rope, i)) : std::nullopt)
        .transpose(0, 1)
        .unsqueeze(0);
  }
  // The inverse of read().
  static at::Tensor by_token(const at::Tensor& x) { return x.squeeze(0).transpose(0, 1); }

  // Reads the maxima or sums of the softmax as SoftmaxAttention takes them.
  at::Tensor read_softmax(const at::Tensor& softmax, int64_t i) const {
    return read(queries_, softmax.squeeze(-3).unsqueeze(-1), std::nullopt, i);
  }

  SoftmaxAttention attention(int64_t i, ForwardPass forward = {}) const {
    const int64_t rows = queries_.length(i), columns = keys_.length(i);
    const at::Tensor lists = given_.indices.reshape({tokens(), -1});
    at::Tensor hidden = unselected(lists.narrow(0, queries_.first(i), rows), given_.block, columns);
    if (given_.mode == 3) {
      hidden = hidden | (keys_ahead(rows, columns, given_.query.options()) > columns - rows);
    }
    AttentionInputs inputs{read(queries_, given_.query, given_.query_rope, i),
                           read(keys_, given_.key, given_.key_rope, i),
                           read(keys_, given_.value, std::nullopt, i), given_.scale};
    inputs.hidden = hidden;
    inputs.forward = std::move(forward);
    return SoftmaxAttention(std::move(inputs));
  }

 private:
  Selected given_;
  TokenSequences queries_;
  TokenSequences keys_;
};

// The results of all tokens, and the maxima and sums of their softmax; 0 for tokens outside all
// sequences.
struct Results {
  at::Tensor results;  // tokens, heads, elements
  at::Tensor largest;  // tokens, heads
  at::Tensor sum;
};
Results results_of(Sequences& sequences) {
  const at::Tensor& query = sequences.given().query;
  const auto options = query.options().dtype(at::kFloat);
  const int64_t tokens = sequences.tokens(), heads = sequences.queries().heads();
  const Results all{at::zeros({tokens, heads, sequences.size()}, options),
                    at::zeros({tokens, heads}, options), at::zeros({tokens, heads}, options)};
  if (!has_values(query)) return all;
  sequences.measure();
  for (int64_t i = 0; i < sequences.queries().count(); ++i) {
    const int64_t rows = sequences.queries().length(i), first = sequences.queries().first(i);
    if (rows == 0) continue;
    const SoftmaxAttention attention = sequences.attention(i);
    const auto by_token = Sequences::by_token;
    all.results.narrow(0, first, rows).copy_(by_token(attention.result()));
    all.largest.narrow(0, first, rows).copy_(by_token(attention.largest()).squeeze(-1));
    all.sum.narrow(0, first, rows).copy_(by_token(attention.sum()).squeeze(-1));
  }
  return all;
}

void attend(Sequences sequences, int64_t pre_tokens, int64_t next_tokens, int64_t attention_mode,
            bool returns_softmax, Output& out, OptionalOutput& largest_out,
            OptionalOutput& sum_out) {
  const at::Tensor& query = sequences.given().query;
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  check_inference(sequences.given(), pre_tokens, next_tokens, attention_mode);
  const std::vector<int64_t> of_softmax = sequences.softmax_shape();
  if (returns_softmax) {
    EXPECT(largest_out && sum_out && !sequences.keys().is_paged(),
           "returnSoftmaxLse is true, expected tensors for softmaxMaxOut and softmaxSumOut and no ",
           "pages of keys");
    expect_float(*largest_out, of_softmax);
    expect_float(*sum_out, of_softmax);
  }
  const Results all = results_of(sequences);
  out = all.results.view(query.sizes());
  if (!returns_softmax) return;
  largest_out = all.largest.view(of_softmax);
  sum_out = all.sum.view(of_softmax);
}

// Keys of INT8, followed in the same bytes by a rotary part in the type of the queries and a FLOAT
// scale for each tile.
struct PackedKeys {
  at::Tensor elements;
  at::Tensor rope;
};
PackedKeys unpacked(const at::Tensor& bytes, at::ScalarType rope_type) {
  constexpr int64_t kTile = 128, kRopeBytes = kRopeSize * 2;
  const at::Tensor rope = bytes.narrow(-1, kSize, kRopeBytes).contiguous().view(rope_type);
  const at::Tensor scales = bytes.narrow(-1, kSize + kRopeBytes, kSize / kTile * 4)
                                .contiguous()
                                .view(at::kFloat)
                                .repeat_interleave(kTile, -1);
  return {bytes.narrow(-1, 0, kSize).to(at::kFloat) * scales, rope.to(at::kFloat)};
}

}  // namespace

// Behaviour of SparseFlashAttention, SparseFlashAttentionV2: A list ends with its first negative
// number.
// Limit of SparseFlashAttention, SparseFlashAttentionV2: sinks are refused with 161002, because no
// formula is published.
ACLNN(SparseFlashAttention, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (In, sparseIndices), (Optional<In>, blockTable), (Optional<In>, actualSeqLengthsQuery),
      (Optional<In>, actualSeqLengthsKv), (Optional<In>, queryRope), (Optional<In>, keyRope),
      (double, scaleValue), (int64_t, sparseBlockSize), (char*, layoutQuery), (char*, layoutKv),
      (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, attentionMode),
      (bool, returnSoftmaxLse), (Like<Out>, attentionOutOut, "query"),
      (Optional<Out>, softmaxMaxOut), (Optional<Out>, softmaxSumOut)) {
  attend({{query, key, value, sparseIndices, blockTable, actualSeqLengthsQuery, actualSeqLengthsKv,
           queryRope, keyRope, scaleValue, sparseBlockSize, layoutQuery, layoutKv, sparseMode},
          {"query", "layoutQuery", "actualSeqLengthsQuery"},
          {"key", "layoutKv", "actualSeqLengthsKv", "blockTable"}},
         preTokens, nextTokens, attentionMode, returnSoftmaxLse, attentionOutOut, softmaxMaxOut,
         softmaxSumOut);
}
ACLNN(SparseFlashAttentionV2, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (In, sparseIndices), (Optional<In>, blockTableOptional),
      (Optional<In>, actualSeqLengthsQueryOptional), (Optional<In>, actualSeqLengthsKvOptional),
      (Optional<In>, queryRopeOptional), (Optional<In>, keyRopeOptional),
      (Refused<In>, sinksOptional, "the host CANN does not compute with sinks here"),
      (double, scaleValue), (int64_t, sparseBlockSizeOptional), (char*, layoutQueryOptional),
      (char*, layoutKvOptional), (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, attentionMode), (bool, returnSoftmaxLse), (Like<Out>, attentionOutOut, "query"),
      (Optional<Out>, softmaxMaxOut), (Optional<Out>, softmaxSumOut)) {
  attend({{query, key, value, sparseIndices, blockTableOptional, actualSeqLengthsQueryOptional,
           actualSeqLengthsKvOptional, queryRopeOptional, keyRopeOptional, scaleValue,
           sparseBlockSizeOptional, layoutQueryOptional, layoutKvOptional, sparseMode},
          kQueryNames,
          kKeyNames},
         preTokens, nextTokens, attentionMode, returnSoftmaxLse, attentionOutOut, softmaxMaxOut,
         softmaxSumOut);
}

// If value is null, the keys are the values, and their gradient is the sum of both parts.
ACLNN(SparseFlashAttentionGrad, (Floating<In>, query), (Floating<In>, key), (Optional<In>, value),
      (In, sparseIndices), (Like<Floating<In>>, dOut, "query"), (Like<Floating<In>>, out, "query"),
      (Floating<In>, softmaxMax), (Floating<In>, softmaxSum),
      (Optional<In>, actualSeqLengthsQueryOptional), (Optional<In>, actualSeqLengthskvOptional),
      (Optional<In>, queryRopeOptional), (Optional<In>, keyRopeOptional), (double, scaleValue),
      (int64_t, sparseBlockSize), (char*, layoutOptional), (int64_t, sparseMode),
      (Unused<int64_t>, preTokens, "counts only in sparseMode 4, which is refused"),
      (Unused<int64_t>, nextTokens, "counts only in sparseMode 4, which is refused"),
      (Unused<bool>, deterministic, "chooses an order of sums; the host has one order"),
      (Like<Out>, dQueryOut, "query"), (Like<Out>, dKeyOut, "key"),
      (Like<Optional<Out>>, dValueOut, "value"),
      (Like<Optional<Out>>, dQueryRopeOutOptional, "queryRopeOptional"),
      (Like<Optional<Out>>, dKeyRopeOutOptional, "keyRopeOptional")) {
  if (query.numel() == 0) {
    dKeyOut = at::zeros(dKeyOut->sizes());
    for (OptionalOutput* out : {&dValueOut, &dQueryRopeOutOptional, &dKeyRopeOutOptional}) {
      if (*out) *out = at::zeros((**out)->sizes());
    }
    return;
  }
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  expect_text("layoutOptional", layoutOptional, {"BSND", "TND"});
  Sequences sequences(
      {query, key, value ? *value : key, sparseIndices, std::nullopt, actualSeqLengthsQueryOptional,
       actualSeqLengthskvOptional, queryRopeOptional, keyRopeOptional, scaleValue, sparseBlockSize,
       layoutOptional, layoutOptional, sparseMode},
      {"query", "layoutOptional", "actualSeqLengthsQueryOptional"},
      {"key", "layoutOptional", "actualSeqLengthskvOptional"});
  const int64_t tokens = sequences.tokens(), heads = sequences.queries().heads();
  const int64_t size = sequences.size();
  expect_heads("query", query, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128});
  expect_one_of("sparseBlockSize", sparseBlockSize, {1, 8, 16, 32, 64});
  expect_float("softmaxMax", softmaxMax, sequences.softmax_shape());
  expect_float("softmaxSum", softmaxSum, sequences.softmax_shape());
  expect_both_or_none("value", value.has_value(), "dValueOut", static_cast<bool>(dValueOut));
  EXPECT(!queryRopeOptional || (dQueryRopeOutOptional && dKeyRopeOutOptional),
         "dQueryRopeOutOptional or dKeyRopeOutOptional is null, expected the gradients of the ",
         "rotary parts");

  const auto options = query.options().dtype(at::kFloat);
  const int64_t rope = queryRopeOptional ? queryRopeOptional->size(-1) : 0;
  const int64_t key_tokens = key.numel() / size;
  const at::Tensor dquery = at::zeros({tokens, heads, size + rope}, options);
  const at::Tensor dkey = at::zeros({key_tokens, 1, size + rope}, options);
  const at::Tensor dvalue = at::zeros({key_tokens, 1, size}, options);
  if (has_values(query)) {
    sequences.measure();
    const TokenSequences &queries = sequences.queries(), &keys = sequences.keys();
    for (int64_t i = 0; i < queries.count(); ++i) {
      if (queries.length(i) == 0 || keys.length(i) == 0) continue;
      const SoftmaxAttention::Gradients gradients =
          sequences
              .attention(
                  i, {sequences.read_softmax(softmaxMax, i), sequences.read_softmax(softmaxSum, i),
                      Sequences::read(queries, out, std::nullopt, i)})
              .gradients(Sequences::read(queries, dOut, std::nullopt, i));
      const auto write = [](const at::Tensor& all, const TokenSequences& part, int64_t sequence,
                            const at::Tensor& gradient) {
        all.narrow(0, part.first(sequence), part.length(sequence))
            .copy_(Sequences::by_token(gradient));
      };
      write(dquery, queries, i, gradients.query);
      write(dkey, keys, i, gradients.key);
      write(dvalue, keys, i, gradients.value);
    }
  }
  const at::Tensor of_key = dkey.narrow(2, 0, size);
  dQueryOut = dquery.narrow(2, 0, size).reshape(query.sizes());
  dKeyOut = (value ? of_key : of_key + dvalue).reshape(key.sizes());
  if (value) dValueOut = dvalue.view(value->sizes());
  if (!queryRopeOptional) return;
  dQueryRopeOutOptional = dquery.narrow(2, size, rope).reshape(queryRopeOptional->sizes());
  dKeyRopeOutOptional = dkey.narrow(2, size, rope).reshape(keyRopeOptional->sizes());
}

// The scales are part of the keys' bytes, so the arguments for scales are ignored.
// Limit of KvQuantSparseFlashAttention: Keys of FLOAT8 with other data in their bytes are refused
// with 161002, because the host CANN sees the elements of FLOAT8 and not their bytes.
ACLNN(KvQuantSparseFlashAttention, (Floating<In>, query), (In, key), (Like<In>, value, "key"),
      (In, sparseIndices),
      (Unused<Optional<In>>, keyDequantScaleOptional,
       "reserved: the scales stand in the keys' bytes"),
      (Unused<Optional<In>>, valueDequantScaleOptional,
       "reserved: the scales stand in the keys' bytes"),
      (Optional<In>, blockTableOptional), (Optional<In>, actualSeqLengthsQueryOptional),
      (Optional<In>, actualSeqLengthsKvOptional), (double, scaleValue), (int64_t, keyQuantMode),
      (int64_t, valueQuantMode), (int64_t, sparseBlockSize), (char*, layoutQueryOptional),
      (char*, layoutKvOptional), (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, attentionMode), (int64_t, quantScaleRepoMode), (int64_t, tileSize),
      (int64_t, ropeHeadDim), (SameDtype<Out>, attentionOut, "query")) {
  constexpr int64_t kByTiles = 2, kTile = 128, kMostBlock = 16;
  constexpr int64_t kBytes = kSize + kRopeSize * 2 + kSize / kTile * 4;
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  expect_dtype("key", key, at::kChar);
  constexpr const char* kOnly = ", the only one supported";
  expect_one_of("keyQuantMode", keyQuantMode, {kByTiles}, kOnly);
  expect_one_of("valueQuantMode", valueQuantMode, {kByTiles}, kOnly);
  expect_one_of("quantScaleRepoMode", quantScaleRepoMode, {1}, kOnly);
  expect_one_of("tileSize", tileSize, {kTile}, kOnly);
  expect_one_of("ropeHeadDim", ropeHeadDim, {kRopeSize}, kOnly);
  EXPECT(sparseBlockSize <= kMostBlock, "sparseBlockSize is ", sparseBlockSize.value(),
         ", expected a power of 2 up to ", kMostBlock);
  expect_text("layoutKvOptional", layoutKvOptional, {"PA_BSND", layoutQueryOptional},
              ", the layout of query");
  expect_dims("query", query, 3, 4);
  expect_dims("key", key, 3, 4);
  expect_heads("query", query, {1, 2, 4, 8, 16, 32, 48, 64, 128});
  EXPECT(query.size(-1) == kSize + kRopeSize, "query has shape ", query.sizes(),
         ", expected heads of ", kSize + kRopeSize, " elements");
  EXPECT(key.size(-1) == kBytes, "key has shape ", key.sizes(), ", expected ", kBytes,
         " bytes of each token");
  const PackedKeys keys = unpacked(key, query.scalar_type());
  const at::Tensor values = unpacked(value, query.scalar_type()).elements;
  const at::Tensor queries = query.to(at::kFloat).narrow(-1, 0, kSize);
  Sequences sequences({queries, keys.elements, values, sparseIndices, blockTableOptional,
                       actualSeqLengthsQueryOptional, actualSeqLengthsKvOptional,
                       query.to(at::kFloat).narrow(-1, kSize, kRopeSize), keys.rope, scaleValue,
                       sparseBlockSize, layoutQueryOptional, layoutKvOptional, sparseMode},
                      kQueryNames, kKeyNames);
  check_inference(sequences.given(), preTokens, nextTokens, attentionMode);
  expect_shape(attentionOut.name(), attentionOut, queries.sizes());
  attentionOut = results_of(sequences).results.view(queries.sizes());
}

}  // namespace aclnn_host::attention_sparse_flash_attention_rows
