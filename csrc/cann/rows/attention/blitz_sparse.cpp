// PromptFlashAttention to blocks of keys that are listed for each block of queries.

#include "cann/rows/attention/inference.h"

namespace aclnn_host::attention_blitz_sparse_rows {

namespace {

constexpr std::string_view kLayouts[] = {"BSH", "BSND", "BNSD", "BNSD_BSND", "TND"};

// Without sizes, blocks have 128 tokens.
std::vector<int64_t> block_of(const at::OptionalIntArrayRef& shape) {
  if (!shape || shape->empty()) return {128, 128};
  EXPECT(shape->size() == 2, "blockShape is ", *shape, ", expected two sizes");
  expect_one_of("blockShape[0]", (*shape)[0], {128, 256, 512, 1024});
  expect_one_of("blockShape[1]", (*shape)[1], {128, 256, 512, 1024});
  return shape->vec();
}

}  // namespace

// Behaviour of BlitzSparseAttention: Without sabi, it is PromptFlashAttentionV3. Blocks count from
// the first token of a sequence. The host CANN checks the indices of sabi on the stream; their
// order does not matter. A query that sees no key has the result 0 and the log-sum-exp inf. Limit
// of BlitzSparseAttention: With inputLayout "TND", sabi and softmaxLseFlag are refused with 161002,
// because CANN does not say what they mean there.
ACLNN_STRUCT(BlitzSparseAttention, (In, query), (In, key), (In, value), (Optional<In>, pseShift),
             (Optional<In>, attenMask), (Optional<In>, sabi), (Optional<Ints>, actualSeqLengths),
             (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1),
             (Optional<In>, quantScale1), (Optional<In>, deqScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (int64_t, numHeads), (double, scaleValue),
             (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
             (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
             (bool, softmaxLseFlag), (Optional<Ints>, blockShape), (Out, attentionOut),
             (Optional<Out>, softmaxLse)) {
  expect_dtype("query", query, {at::kHalf, at::kBFloat16, at::kChar});
  require_asked("softmaxLse", softmaxLse, "softmaxLseFlag", softmaxLseFlag);
  const std::vector<int64_t> block = block_of(blockShape);
  const bool has_blocks = sabi && sabi->dim() > 0;
  EXPECT(inputLayout != "TND" || (!has_blocks && !softmaxLseFlag),
         "sabi is given or softmaxLseFlag is true, expected null and false as inputLayout is TND");
  InferenceArguments arguments = inference_arguments(*this, kLayouts);
  arguments.query_lengths = lengths_of(actualSeqLengths);
  arguments.key_lengths = lengths_of(actualSeqLengthsKv);
  arguments.sums_have_last = false;
  if (has_blocks) arguments.blocks = ListedBlocks{*sabi, block};
  infer_attention(arguments, attentionOut, softmaxLseFlag ? &softmaxLse : nullptr);
}

}  // namespace aclnn_host::attention_blitz_sparse_rows
