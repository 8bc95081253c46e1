// Attention of inference to keys that were selected for each query (DeepSeek sparse attention).

#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "host_cann/aten_ops/attention/token_sequences.h"
#include "host_cann/aten_ops/attention/training.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// The arguments of a call.
struct Selected {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
  const at::Tensor& indices;
  const std::optional<at::Tensor>& table;
  const std::optional<at::Tensor>& query_lengths;
  const std::optional<at::Tensor>& key_lengths;
  const std::optional<at::Tensor>& query_rope;
  const std::optional<at::Tensor>& key_rope;
  double scale;
  int64_t block;
  std::string query_layout;
  std::string key_layout;
  int64_t mode;
  bool returns_softmax;
};

void check(const Selected& given, int64_t pre_tokens, int64_t next_tokens, int64_t attention_mode) {
  constexpr int64_t kSize = 512, kRopeSize = 64, kMostHeads = 128, kMostBlock = 128, kAbsorbed = 2;
  const at::Tensor &query = given.query, &key = given.key;
  TORCH_CHECK(at::isReducedFloatingType(query.scalar_type()), "query has dtype ",
              dtype_text(query.scalar_type()), ", expected FLOAT16 or BFLOAT16");
  expect_dtype("key", key, query);
  expect_like("value", given.value, key);
  TORCH_CHECK(query.size(-1) == kSize && query.size(-2) <= kMostHeads, "query has shape ",
              query.sizes(), ", expected up to ", kMostHeads, " heads of ", kSize, " elements");
  TORCH_CHECK(key.size(-1) == kSize && key.size(-2) == 1, "key has shape ", key.sizes(),
              ", expected one head of ", kSize, " elements");
  TORCH_CHECK(given.query_rope.has_value() == given.key_rope.has_value(),
              "one of queryRope and keyRope is given and the other is null");
  if (given.query_rope) {
    const auto like = [&](const char* name, const at::Tensor& rope, const at::Tensor& part) {
      std::vector<int64_t> shape = part.sizes().vec();
      shape.back() = kRopeSize;
      expect_dtype(name, rope, part);
      expect_shape(name, rope, shape);
    };
    like("queryRope", *given.query_rope, query);
    like("keyRope", *given.key_rope, key);
  }
  std::vector<int64_t> shape = query.sizes().vec();
  expect_dims("sparseIndices", given.indices, query.dim());
  shape[shape.size() - 2] = 1;
  shape.back() = given.indices.size(-1);
  expect_dtype("sparseIndices", given.indices, at::kInt);
  expect_shape("sparseIndices", given.indices, shape);
  TORCH_CHECK(shape.back() > 0, "sparseIndices has no columns");
  TORCH_CHECK(
      given.block >= 1 && given.block <= kMostBlock && (given.block & (given.block - 1)) == 0,
      "sparseBlockSize is ", given.block, ", expected a power of 2 up to ", kMostBlock);
  TORCH_CHECK(given.mode == 0 || given.mode == 3, "sparseMode is ", given.mode,
              ", expected 0 or 3");
  TORCH_CHECK(pre_tokens == INT64_MAX && next_tokens == INT64_MAX,
              "preTokens or nextTokens is not the largest number, the only one supported");
  TORCH_CHECK(attention_mode == kAbsorbed, "attentionMode is ", attention_mode, ", expected ",
              kAbsorbed);
  TORCH_CHECK(given.query_layout != "PA_BSND", "the layout of query is \"PA_BSND\", expected BSND ",
              "or TND");
}

// Which keys each query does not select: those of no block of its list, which ends with the first
// negative number.
at::Tensor unselected(const at::Tensor& indices, int64_t block, int64_t keys) {
  const int64_t rows = indices.size(0), blocks = (keys + block - 1) / block;
  const at::Tensor listed = indices.to(at::kLong);
  const at::Tensor is_listed = (listed < 0).cumsum(1) == 0;
  TORCH_CHECK(!(is_listed & (listed >= blocks)).any().item().toBool(),
              "sparseIndices has numbers beyond the ", blocks, " blocks of a sequence");
  // What is not listed marks a block behind the last.
  const at::Tensor marks = at::zeros({rows, blocks + 1}, indices.options().dtype(at::kBool))
                               .scatter(1, listed.masked_fill(~is_listed, blocks), true);
  return ~marks.narrow(1, 0, blocks).repeat_interleave(block, 1).narrow(1, 0, keys);
}

at::Tensor joined(const at::Tensor& part, const std::optional<at::Tensor>& rope) {
  if (!rope) return part;
  const at::Tensor parts[] = {part, *rope};
  return at::cat(at::TensorList(parts), -1);
}

void attend(const Selected& given, int64_t pre_tokens, int64_t next_tokens, int64_t attention_mode,
            Output& out, OptionalOutput& largest_out, OptionalOutput& sum_out) {
  TokenSequences queries("query", given.query, given.query_layout, "actualSeqLengthsQuery",
                         given.query_lengths);
  TokenSequences keys("key", given.key, given.key_layout, "actualSeqLengthsKv", given.key_lengths,
                      given.table);
  check(given, pre_tokens, next_tokens, attention_mode);
  TORCH_CHECK(queries.count() == keys.count(), "key has ", keys.count(), " sequences, expected ",
              queries.count(), " as query has");
  expect_like(out.name(), out, given.query);
  const int64_t heads = queries.heads(), size = given.query.size(-1);
  const int64_t tokens = given.query.numel() / (heads * size);
  const bool is_packed = given.query_layout == "TND";
  // One head of keys, of which all heads of queries are one group.
  const std::vector<int64_t> of_softmax =
      is_packed ? std::vector<int64_t>{1, tokens, heads}
                : std::vector<int64_t>{given.query.size(0), 1, given.query.size(1), heads};
  if (given.returns_softmax) {
    TORCH_CHECK(largest_out && sum_out && !keys.is_paged(),
                "returnSoftmaxLse is true, expected tensors for the softmax and no pages of keys");
    for (const OptionalOutput* each : {&largest_out, &sum_out}) {
      expect_dtype((**each).name(), **each, at::kFloat);
      expect_shape((**each).name(), **each, of_softmax);
    }
  }
  const auto options = given.query.options().dtype(at::kFloat);
  const at::Tensor results = at::zeros({tokens, heads, size}, options);
  const at::Tensor largest = at::zeros({tokens, heads}, options), sum = at::zeros_like(largest);
  if (given.query.is_cpu() && !is_rehearsed()) {
    queries.measure();
    keys.measure();
    const auto read = [](const TokenSequences& sequences, const at::Tensor& part,
                         const std::optional<at::Tensor>& rope, int64_t i) {
      return joined(sequences.read(part, i),
                    rope ? std::optional(sequences.read(*rope, i)) : std::nullopt)
          .transpose(0, 1)
          .unsqueeze(0);
    };
    const at::Tensor lists = given.indices.reshape({tokens, -1});
    for (int64_t i = 0; i < queries.count(); ++i) {
      const int64_t rows = queries.length(i), columns = keys.length(i), first = queries.first(i);
      if (rows == 0) continue;
      at::Tensor hidden = unselected(lists.narrow(0, first, rows), given.block, columns);
      if (given.mode == 3) {
        const auto places = options.dtype(at::kLong);
        hidden = hidden | (at::arange(columns, places) - at::arange(rows, places).unsqueeze(1) >
                           columns - rows);
      }
      AttentionInputs inputs{read(queries, given.query, given.query_rope, i),
                             read(keys, given.key, given.key_rope, i),
                             read(keys, given.value, std::nullopt, i), given.scale};
      inputs.hidden = hidden;
      const SoftmaxAttention attention(std::move(inputs));
      const auto by_token = [](const at::Tensor& x) { return x.squeeze(0).transpose(0, 1); };
      results.narrow(0, first, rows).copy_(by_token(attention.result()));
      largest.narrow(0, first, rows).copy_(by_token(attention.largest()).squeeze(-1));
      sum.narrow(0, first, rows).copy_(by_token(attention.sum()).squeeze(-1));
    }
  }
  out = results.view(given.query.sizes());
  if (!given.returns_softmax) return;
  largest_out = largest.view(of_softmax);
  sum_out = sum.view(of_softmax);
}

}  // namespace

ACLNN(SparseFlashAttention, (FloatIn, query), (FloatIn, key), (FloatIn, value), (In, sparseIndices),
      (OptionalIn, blockTable), (OptionalIn, actualSeqLengthsQuery),
      (OptionalIn, actualSeqLengthsKv), (OptionalIn, queryRope), (OptionalIn, keyRope),
      (double, scaleValue), (int64_t, sparseBlockSize), (char*, layoutQuery), (char*, layoutKv),
      (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, attentionMode),
      (bool, returnSoftmaxLse), (Out, attentionOutOut), (OptionalOut, softmaxMaxOut),
      (OptionalOut, softmaxSumOut)) {
  attend({query, key, value, sparseIndices, blockTable, actualSeqLengthsQuery, actualSeqLengthsKv,
          queryRope, keyRope, scaleValue, sparseBlockSize, layoutQuery, layoutKv, sparseMode,
          returnSoftmaxLse},
         preTokens, nextTokens, attentionMode, attentionOutOut, softmaxMaxOut, softmaxSumOut);
}
ACLNN(SparseFlashAttentionV2, (FloatIn, query), (FloatIn, key), (FloatIn, value),
      (In, sparseIndices), (OptionalIn, blockTableOptional),
      (OptionalIn, actualSeqLengthsQueryOptional), (OptionalIn, actualSeqLengthsKvOptional),
      (OptionalIn, queryRopeOptional), (OptionalIn, keyRopeOptional), (OptionalIn, sinksOptional),
      (double, scaleValue), (int64_t, sparseBlockSizeOptional), (char*, layoutQueryOptional),
      (char*, layoutKvOptional), (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, attentionMode), (bool, returnSoftmaxLse), (Out, attentionOutOut),
      (OptionalOut, softmaxMaxOut), (OptionalOut, softmaxSumOut)) {
  refuse_attention_arguments({{"sinksOptional", sinksOptional.has_value()}});
  attend({query, key, value, sparseIndices, blockTableOptional, actualSeqLengthsQueryOptional,
          actualSeqLengthsKvOptional, queryRopeOptional, keyRopeOptional, scaleValue,
          sparseBlockSizeOptional, layoutQueryOptional, layoutKvOptional, sparseMode,
          returnSoftmaxLse},
         preTokens, nextTokens, attentionMode, attentionOutOut, softmaxMaxOut, softmaxSumOut);
}
