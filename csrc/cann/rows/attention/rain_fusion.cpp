// Attention to blocks of keys, whose indices are listed for each block of queries.

#include "cann/rows/attention/head_sequences.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_rain_fusion_rows {

namespace {

constexpr const char* kReserved = "CANN does not support it yet";

void check_tensors(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const HeadSequences& queries, const HeadSequences& keys, int64_t key_heads) {
  expect_reduced_float("query", query);
  check_head_groups({query, key, value}, queries, keys, key_heads);
  EXPECT(query.size(-1) == 64 || query.size(-1) == 128, "query has heads of ", query.size(-1),
         " elements, expected 64 or 128");
  const int64_t group = queries.heads() / key_heads;
  EXPECT(group < 128 && 128 % group == 0, "query has ", group,
         " heads for each head of key, expected a power of two below 128");
}

// The blocks of queries before each sequence, and those of all sequences.
std::vector<int64_t> blocks_before(const HeadSequences& queries, int64_t block) {
  std::vector<int64_t> before{0};
  for (int64_t i = 0; i < queries.count(); ++i) {
    before.push_back(before.back() + count_of_blocks(queries.size(i), block));
  }
  return before;
}

// Flags of the listed blocks as (heads, blocks of queries, blocks of keys), from lists of indices
// (blocks of queries, heads, places), of which the first `counts` count.
at::Tensor selected_blocks(const at::Tensor& indices, const at::Tensor& counts, int64_t blocks) {
  check_bounds("selectNumIdx", counts, indices.size(2) + 1);
  const at::Tensor counted =
      at::arange(indices.size(2), indices.options()).lt(counts.unsqueeze(-1));
  return listed_blocks("selectIdx", indices, counted, blocks).transpose(0, 1);
}

}  // namespace

// Behaviour of RainFusionAttention: Everything is computed in FLOAT with every innerPrecise, and
// each result is rounded once. The lengths are those of the single sequences, with "TND", too.
// selectIdx lists the blocks of queries of one sequence after the other. The host CANN checks the
// indices on the stream; their order does not matter. A query without a block, and tokens outside
// the sequences, have the result 0; CANN does not write them.
// Limit of RainFusionAttention: maskType is 0; others are refused with 161002.
ACLNN(RainFusionAttention, (In, query), (In, key), (In, value), (In, selectIdx), (In, selectNumIdx),
      (Ints, blockShape), (Refused<In>, attenMaskOptional, kReserved),
      (Optional<Ints>, actualSeqLengthsOptional), (Optional<Ints>, actualSeqLengthsKvOptional),
      (Refused<In>, blockTableOptional, kReserved), (char*, qInputLayout), (char*, kvInputLayout),
      (int64_t, numKeyValueHeads), (int64_t, maskType), (double, scaleValue),
      (int64_t, innerPrecise),
      (Unused<int64_t>, blockSize, "counts only beside blockTableOptional, which is refused"),
      (Like<Out>, attentionOut, "query"), (Refused<Out>, softmaxLseOptional, kReserved)) {
  expect_text("qInputLayout", qInputLayout, {"TND", "BNSD"});
  EXPECT(kvInputLayout == qInputLayout, "kvInputLayout is \"", kvInputLayout, "\", expected \"",
         qInputLayout, "\" as qInputLayout");
  const HeadSequences queries({"query", "qInputLayout", "actualSeqLengthsOptional"}, query,
                              qInputLayout, actualSeqLengthsOptional);
  const HeadSequences keys({"key", "kvInputLayout", "actualSeqLengthsKvOptional"}, key,
                           kvInputLayout, actualSeqLengthsKvOptional);
  check_tensors(query, key, value, queries, keys, numKeyValueHeads);
  EXPECT(
      blockShape.size() >= 2 && blockShape[0] > 0 && blockShape[1] > 0 && blockShape[1] % 128 == 0,
      "blockShape is ", blockShape,
      ", expected two positive sizes, the second one a multiple of 128");
  EXPECT(innerPrecise == 0 || (innerPrecise == 1 && query.scalar_type() == at::kHalf),
         "innerPrecise is ", innerPrecise, ", expected 0, or 1 with a query of FLOAT16");
  expect_one_of("maskType", maskType, {0}, "; the host CANN computes without a mask");
  expect_dtype("selectIdx", selectIdx, at::kLong);
  expect_dtype("selectNumIdx", selectNumIdx, at::kLong);
  const std::vector<int64_t> before = blocks_before(queries, blockShape[0]);
  expect_shape("selectNumIdx", selectNumIdx, {before.back(), queries.heads()});
  expect_dims("selectIdx", selectIdx, 3);
  expect_shape("selectIdx", selectIdx, {before.back(), queries.heads(), selectIdx.size(2)});

  const at::Tensor result = at::zeros(query.sizes(), query.options().dtype(at::kFloat));
  for (int64_t i = 0; has_values(query) && i < queries.count(); ++i) {
    const int64_t first = before[static_cast<size_t>(i)];
    const int64_t count = before[static_cast<size_t>(i) + 1] - first;
    const at::Tensor selected =
        selected_blocks(selectIdx.narrow(0, first, count), selectNumIdx.narrow(0, first, count),
                        count_of_blocks(keys.size(i), blockShape[1]));
    AttentionInputs inputs{queries.read(query, i), keys.read(key, i), keys.read(value, i),
                           scaleValue};
    inputs.hidden = outside_of_blocks(selected, blockShape, queries.size(i), keys.size(i));
    queries.view(result, i).copy_(SoftmaxAttention(std::move(inputs)).result().squeeze(0));
  }
  attentionOut = result;
}

}  // namespace aclnn_host::attention_rain_fusion_rows
