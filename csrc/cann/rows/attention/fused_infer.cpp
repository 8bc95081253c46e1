// Attention of queries over keys that may be those of all tokens so far, for any number of queries.

#include <algorithm>

#include "cann/rows/attention/inference.h"
#include "cann/rows/checks.h"

namespace aclnn_host::attention_fused_infer_rows {

namespace {

constexpr std::string_view kLayouts =
    "BSH BSND BNSD BNSD_BSND BSH_NBSD BSND_NBSD BNSD_NBSD TND TND_NTD NTD_TND";

bool is_given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0;
}
bool is_given(const at::OptionalIntArrayRef& list) {
  return list && !list->empty();
}

void fused_attention(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, int64_t mode, bool has_lse,
                     Output& out, OptionalOutput& lse) {
  const Antiquantisation& key = arguments.key_antiquant;
  const Antiquantisation& value = arguments.value_antiquant;
  EXPECT(key.is_given() == value.is_given(), "valueAntiquantScale is ",
         value.is_given() ? "given" : "null",
         ", expected keyAntiquantScale and valueAntiquantScale together");
  if (key.is_given()) {
    EXPECT(key.mode == value.mode || (key.mode == 0 && value.mode == 1), "valueAntiquantMode is ",
           value.mode, ", expected keyAntiquantMode, ", key.mode, ", or 1 where that is 0");
  } else {
    split_antiquant(arguments, scale, offset, mode);
  }
  infer_attention(arguments, out, has_lse ? &lse : nullptr);
}

void expect_defaults(int64_t pse_type, int64_t out_type) {
  EXPECT(pse_type == 0, "pseType is ", pse_type, ", expected 0; the host CANN adds a shift ",
         "only after it has scaled the scores");
  EXPECT(out_type == 0, "outType is ", out_type, ", expected 0; the result has the dtype of ",
         "attentionOut");
}

// Lengths that a device has, unknown without memory.
Lengths lengths_in(const char* name, const std::optional<at::Tensor>& tensor) {
  if (!is_given(tensor)) return std::nullopt;
  const at::ScalarType type = tensor->scalar_type();
  EXPECT(type == at::kLong || type == at::kInt, name, " has dtype ", dtype_text(type),
         ", expected INT64 or INT32");
  std::vector<int64_t> lengths(static_cast<size_t>(tensor->numel()));
  if (!has_values(*tensor)) return lengths;
  const at::Tensor values = tensor->to(at::kLong).contiguous();
  std::copy_n(values.const_data_ptr<int64_t>(), lengths.size(), lengths.begin());
  return lengths;
}

}  // namespace

// Behaviour of PromptFlashAttention*, IncreFlashAttention*, FusedInferAttentionScore*, MlaProlog*:
// Everything is computed in FLOAT, and each result is rounded once. Layouts, pages, lists, masks,
// prefixes, paddings and INT8 keys are computed, and INT8 queries unless a sequence has a single
// one.
// Limit of PromptFlashAttention*, IncreFlashAttention*, FusedInferAttentionScore*, MlaProlog*:
// FLOAT8, INT4 caches, sinks, a single INT8 query of each sequence and a scale of queries are
// refused with 161002 and the argument's name.
ACLNN(FusedInferAttentionScore, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
      (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
      (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1), (Optional<In>, quantScale1),
      (Optional<In>, deqScale2), (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
      (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset), (Optional<In>, blockTable),
      (Optional<In>, queryPaddingSize), (Optional<In>, kvPaddingSize), (int64_t, numHeads),
      (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
      (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag), (Out, attentionOut),
      (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .shift = pseShift,
                               .mask = attenMask,
                               .query_lengths = lengths_of(actualSeqLengths),
                               .key_lengths = lengths_of(actualSeqLengthsKv),
                               .dequant_scale1 = deqScale1,
                               .quant_scale1 = quantScale1,
                               .dequant_scale2 = deqScale2,
                               .quant_scale2 = quantScale2,
                               .quant_offset2 = quantOffset2,
                               .block_table = blockTable,
                               .query_padding = queryPaddingSize,
                               .key_padding = kvPaddingSize,
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .pre_tokens = preTokens,
                               .next_tokens = nextTokens,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .sparse_mode = sparseMode,
                               .inner_precise = innerPrecise,
                               .block_size = blockSize,
                               .single_query_sees_all = true};
  fused_attention(arguments, antiquantScale, antiquantOffset, antiquantMode, softmaxLseFlag,
                  attentionOut, softmaxLse);
}
ACLNN(FusedInferAttentionScoreV2, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, actualSeqLengthsOptional), (Optional<Ints>, actualSeqLengthsKvOptional),
      (Optional<In>, deqScale1Optional), (Optional<In>, quantScale1Optional),
      (Optional<In>, deqScale2Optional), (Optional<In>, quantScale2Optional),
      (Optional<In>, quantOffset2Optional), (Optional<In>, antiquantScaleOptional),
      (Optional<In>, antiquantOffsetOptional), (Optional<In>, blockTableOptional),
      (Optional<In>, queryPaddingSizeOptional), (Optional<In>, kvPaddingSizeOptional),
      (Optional<In>, keyAntiquantScaleOptional), (Optional<In>, keyAntiquantOffsetOptional),
      (Optional<In>, valueAntiquantScaleOptional), (Optional<In>, valueAntiquantOffsetOptional),
      (Optional<In>, keySharedPrefixOptional), (Optional<In>, valueSharedPrefixOptional),
      (Optional<Ints>, actualSharedPrefixLenOptional), (int64_t, numHeads), (double, scaleValue),
      (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
      (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag),
      (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode), (Out, attentionOut),
      (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{
      .query = query,
      .key = key,
      .value = value,
      .shift = pseShiftOptional,
      .mask = attenMaskOptional,
      .query_lengths = lengths_of(actualSeqLengthsOptional),
      .key_lengths = lengths_of(actualSeqLengthsKvOptional),
      .dequant_scale1 = deqScale1Optional,
      .quant_scale1 = quantScale1Optional,
      .dequant_scale2 = deqScale2Optional,
      .quant_scale2 = quantScale2Optional,
      .quant_offset2 = quantOffset2Optional,
      .key_antiquant = {"keyAntiquantScaleOptional", keyAntiquantScaleOptional,
                        keyAntiquantOffsetOptional, keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScaleOptional", valueAntiquantScaleOptional,
                          valueAntiquantOffsetOptional, valueAntiquantMode},
      .block_table = blockTableOptional,
      .query_padding = queryPaddingSizeOptional,
      .key_padding = kvPaddingSizeOptional,
      .key_prefix = keySharedPrefixOptional,
      .value_prefix = valueSharedPrefixOptional,
      .prefix_length = lengths_of(actualSharedPrefixLenOptional),
      .heads = numHeads,
      .key_heads = numKeyValueHeads,
      .scale = scaleValue,
      .pre_tokens = preTokens,
      .next_tokens = nextTokens,
      .layout = inputLayout,
      .layouts = kLayouts,
      .sparse_mode = sparseMode,
      .inner_precise = innerPrecise,
      .block_size = blockSize,
      .single_query_sees_all = true};
  fused_attention(arguments, antiquantScaleOptional, antiquantOffsetOptional, antiquantMode,
                  softmaxLseFlag, attentionOut, softmaxLse);
}
ACLNN(FusedInferAttentionScoreV3, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, actualSeqLengthsOptional), (Optional<Ints>, actualSeqLengthsKvOptional),
      (Optional<In>, deqScale1Optional), (Optional<In>, quantScale1Optional),
      (Optional<In>, deqScale2Optional), (Optional<In>, quantScale2Optional),
      (Optional<In>, quantOffset2Optional), (Optional<In>, antiquantScaleOptional),
      (Optional<In>, antiquantOffsetOptional), (Optional<In>, blockTableOptional),
      (Optional<In>, queryPaddingSizeOptional), (Optional<In>, kvPaddingSizeOptional),
      (Optional<In>, keyAntiquantScaleOptional), (Optional<In>, keyAntiquantOffsetOptional),
      (Optional<In>, valueAntiquantScaleOptional), (Optional<In>, valueAntiquantOffsetOptional),
      (Optional<In>, keySharedPrefixOptional), (Optional<In>, valueSharedPrefixOptional),
      (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
      (Optional<In>, keyRopeOptional),
      (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"), (int64_t, numHeads),
      (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
      (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag),
      (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode), (Out, attentionOut),
      (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{
      .query = query,
      .key = key,
      .value = value,
      .shift = pseShiftOptional,
      .mask = attenMaskOptional,
      .query_lengths = lengths_of(actualSeqLengthsOptional),
      .key_lengths = lengths_of(actualSeqLengthsKvOptional),
      .dequant_scale1 = deqScale1Optional,
      .quant_scale1 = quantScale1Optional,
      .dequant_scale2 = deqScale2Optional,
      .quant_scale2 = quantScale2Optional,
      .quant_offset2 = quantOffset2Optional,
      .key_antiquant = {"keyAntiquantScaleOptional", keyAntiquantScaleOptional,
                        keyAntiquantOffsetOptional, keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScaleOptional", valueAntiquantScaleOptional,
                          valueAntiquantOffsetOptional, valueAntiquantMode},
      .block_table = blockTableOptional,
      .query_padding = queryPaddingSizeOptional,
      .key_padding = kvPaddingSizeOptional,
      .key_prefix = keySharedPrefixOptional,
      .value_prefix = valueSharedPrefixOptional,
      .prefix_length = lengths_of(actualSharedPrefixLenOptional),
      .query_rope = queryRopeOptional,
      .key_rope = keyRopeOptional,
      .heads = numHeads,
      .key_heads = numKeyValueHeads,
      .scale = scaleValue,
      .pre_tokens = preTokens,
      .next_tokens = nextTokens,
      .layout = inputLayout,
      .layouts = kLayouts,
      .sparse_mode = sparseMode,
      .inner_precise = innerPrecise,
      .block_size = blockSize,
      .single_query_sees_all = true};
  fused_attention(arguments, antiquantScaleOptional, antiquantOffsetOptional, antiquantMode,
                  softmaxLseFlag, attentionOut, softmaxLse);
}
ACLNN(FusedInferAttentionScoreV4, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, actualSeqLengthsOptional), (Optional<Ints>, actualSeqLengthsKvOptional),
      (Optional<In>, deqScale1Optional), (Optional<In>, quantScale1Optional),
      (Optional<In>, deqScale2Optional), (Optional<In>, quantScale2Optional),
      (Optional<In>, quantOffset2Optional), (Optional<In>, antiquantScaleOptional),
      (Optional<In>, antiquantOffsetOptional), (Optional<In>, blockTableOptional),
      (Optional<In>, queryPaddingSizeOptional), (Optional<In>, kvPaddingSizeOptional),
      (Optional<In>, keyAntiquantScaleOptional), (Optional<In>, keyAntiquantOffsetOptional),
      (Optional<In>, valueAntiquantScaleOptional), (Optional<In>, valueAntiquantOffsetOptional),
      (Optional<In>, keySharedPrefixOptional), (Optional<In>, valueSharedPrefixOptional),
      (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
      (Optional<In>, keyRopeOptional),
      (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"),
      (Optional<In>, dequantScaleQueryOptional), (Optional<In>, learnableSinkOptional),
      (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
      (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
      (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
      (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
      (Unused<int64_t>, queryQuantMode,
       "counts only beside dequantScaleQueryOptional, which is refused"),
      (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{
      .query = query,
      .key = key,
      .value = value,
      .shift = pseShiftOptional,
      .mask = attenMaskOptional,
      .query_lengths = lengths_of(actualSeqLengthsOptional),
      .key_lengths = lengths_of(actualSeqLengthsKvOptional),
      .dequant_scale1 = deqScale1Optional,
      .quant_scale1 = quantScale1Optional,
      .dequant_scale2 = deqScale2Optional,
      .quant_scale2 = quantScale2Optional,
      .quant_offset2 = quantOffset2Optional,
      .key_antiquant = {"keyAntiquantScaleOptional", keyAntiquantScaleOptional,
                        keyAntiquantOffsetOptional, keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScaleOptional", valueAntiquantScaleOptional,
                          valueAntiquantOffsetOptional, valueAntiquantMode},
      .block_table = blockTableOptional,
      .query_padding = queryPaddingSizeOptional,
      .key_padding = kvPaddingSizeOptional,
      .key_prefix = keySharedPrefixOptional,
      .value_prefix = valueSharedPrefixOptional,
      .prefix_length = lengths_of(actualSharedPrefixLenOptional),
      .query_rope = queryRopeOptional,
      .key_rope = keyRopeOptional,
      .heads = numHeads,
      .key_heads = numKeyValueHeads,
      .scale = scaleValue,
      .pre_tokens = preTokens,
      .next_tokens = nextTokens,
      .layout = inputLayout,
      .layouts = kLayouts,
      .sparse_mode = sparseMode,
      .inner_precise = innerPrecise,
      .block_size = blockSize,
      .single_query_sees_all = true};
  refuse_given({{"dequantScaleQueryOptional", is_given(dequantScaleQueryOptional)},
                {"learnableSinkOptional", is_given(learnableSinkOptional)}});
  fused_attention(arguments, antiquantScaleOptional, antiquantOffsetOptional, antiquantMode,
                  softmaxLseFlag, attentionOut, softmaxLse);
}
ACLNN(FusedInferAttentionScoreV5, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, actualSeqLengthsOptional), (Optional<Ints>, actualSeqLengthsKvOptional),
      (Optional<In>, deqScale1Optional), (Optional<In>, quantScale1Optional),
      (Optional<In>, deqScale2Optional), (Optional<In>, quantScale2Optional),
      (Optional<In>, quantOffset2Optional), (Optional<In>, antiquantScaleOptional),
      (Optional<In>, antiquantOffsetOptional), (Optional<In>, blockTableOptional),
      (Optional<In>, queryPaddingSizeOptional), (Optional<In>, kvPaddingSizeOptional),
      (Optional<In>, keyAntiquantScaleOptional), (Optional<In>, keyAntiquantOffsetOptional),
      (Optional<In>, valueAntiquantScaleOptional), (Optional<In>, valueAntiquantOffsetOptional),
      (Optional<In>, keySharedPrefixOptional), (Optional<In>, valueSharedPrefixOptional),
      (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
      (Optional<In>, keyRopeOptional),
      (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"),
      (Optional<In>, dequantScaleQueryOptional), (Optional<In>, learnableSinkOptional),
      (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
      (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
      (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
      (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
      (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
      (Unused<int64_t>, queryQuantMode,
       "counts only beside dequantScaleQueryOptional, which is refused"),
      (int64_t, pseType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{
      .query = query,
      .key = key,
      .value = value,
      .shift = pseShiftOptional,
      .mask = attenMaskOptional,
      .query_lengths = lengths_of(actualSeqLengthsOptional),
      .key_lengths = lengths_of(actualSeqLengthsKvOptional),
      .dequant_scale1 = deqScale1Optional,
      .quant_scale1 = quantScale1Optional,
      .dequant_scale2 = deqScale2Optional,
      .quant_scale2 = quantScale2Optional,
      .quant_offset2 = quantOffset2Optional,
      .key_antiquant = {"keyAntiquantScaleOptional", keyAntiquantScaleOptional,
                        keyAntiquantOffsetOptional, keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScaleOptional", valueAntiquantScaleOptional,
                          valueAntiquantOffsetOptional, valueAntiquantMode},
      .block_table = blockTableOptional,
      .query_padding = queryPaddingSizeOptional,
      .key_padding = kvPaddingSizeOptional,
      .key_prefix = keySharedPrefixOptional,
      .value_prefix = valueSharedPrefixOptional,
      .prefix_length = lengths_of(actualSharedPrefixLenOptional),
      .query_rope = queryRopeOptional,
      .key_rope = keyRopeOptional,
      .heads = numHeads,
      .key_heads = numKeyValueHeads,
      .scale = scaleValue,
      .pre_tokens = preTokens,
      .next_tokens = nextTokens,
      .layout = inputLayout,
      .layouts = kLayouts,
      .sparse_mode = sparseMode,
      .inner_precise = innerPrecise,
      .block_size = blockSize,
      .single_query_sees_all = true};
  refuse_given({{"dequantScaleQueryOptional", is_given(dequantScaleQueryOptional)},
                {"learnableSinkOptional", is_given(learnableSinkOptional)},
                {"qStartIdxOptional", is_given(qStartIdxOptional)},
                {"kvStartIdxOptional", is_given(kvStartIdxOptional)}});
  expect_defaults(pseType, /*out_type=*/0);
  fused_attention(arguments, antiquantScaleOptional, antiquantOffsetOptional, antiquantMode,
                  softmaxLseFlag, attentionOut, softmaxLse);
}
ACLNN(InnerFusedInferAttentionScore, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShift), (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
      (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1), (Optional<In>, quantScale1),
      (Optional<In>, deqScale2), (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
      (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset), (Optional<In>, blockTable),
      (Optional<In>, queryPaddingSize), (Optional<In>, kvPaddingSize),
      (Optional<In>, keyAntiquantScale), (Optional<In>, keyAntiquantOffset),
      (Optional<In>, valueAntiquantScale), (Optional<In>, valueAntiquantOffset),
      (Optional<In>, keySharedPrefix), (Optional<In>, valueSharedPrefix),
      (Optional<Ints>, actualSharedPrefixLen), (Optional<In>, query_rope), (Optional<In>, key_rope),
      (Unused<Optional<In>>, keyRopeAntiquantScale, "reserved"), (Optional<In>, dequantScaleQuery),
      (Optional<In>, learnableSink), (Optional<Ints>, qStartIdxOptional),
      (Optional<Ints>, kvStartIdxOptional), (int64_t, numHeads), (double, scaleValue),
      (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
      (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag),
      (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
      (Unused<int64_t>, queryQuantMode, "counts only beside dequantScaleQuery, which is refused"),
      (int64_t, pseType), (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .shift = pseShift,
                               .mask = attenMask,
                               .query_lengths = lengths_of(actualSeqLengths),
                               .key_lengths = lengths_of(actualSeqLengthsKv),
                               .dequant_scale1 = deqScale1,
                               .quant_scale1 = quantScale1,
                               .dequant_scale2 = deqScale2,
                               .quant_scale2 = quantScale2,
                               .quant_offset2 = quantOffset2,
                               .key_antiquant = {"keyAntiquantScale", keyAntiquantScale,
                                                 keyAntiquantOffset, keyAntiquantMode},
                               .value_antiquant = {"valueAntiquantScale", valueAntiquantScale,
                                                   valueAntiquantOffset, valueAntiquantMode},
                               .block_table = blockTable,
                               .query_padding = queryPaddingSize,
                               .key_padding = kvPaddingSize,
                               .key_prefix = keySharedPrefix,
                               .value_prefix = valueSharedPrefix,
                               .prefix_length = lengths_of(actualSharedPrefixLen),
                               .query_rope = query_rope,
                               .key_rope = key_rope,
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .pre_tokens = preTokens,
                               .next_tokens = nextTokens,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .sparse_mode = sparseMode,
                               .inner_precise = innerPrecise,
                               .block_size = blockSize,
                               .single_query_sees_all = true};
  refuse_given({{"dequantScaleQuery", is_given(dequantScaleQuery)},
                {"learnableSink", is_given(learnableSink)},
                {"qStartIdxOptional", is_given(qStartIdxOptional)},
                {"kvStartIdxOptional", is_given(kvStartIdxOptional)}});
  expect_defaults(pseType, outType);
  fused_attention(arguments, antiquantScale, antiquantOffset, antiquantMode, softmaxLseFlag,
                  attentionOut, softmaxLse);
}
ACLNN(InnerFusedInferAttentionScoreTensor, (In, query), (Ins, key), (Ins, value),
      (Optional<In>, pseShift), (Optional<In>, attenMask), (Optional<In>, actualSeqLengths),
      (Optional<In>, actualSeqLengthsKv), (Optional<In>, deqScale1), (Optional<In>, quantScale1),
      (Optional<In>, deqScale2), (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
      (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset), (Optional<In>, blockTable),
      (Optional<In>, queryPaddingSize), (Optional<In>, kvPaddingSize),
      (Optional<In>, keyAntiquantScale), (Optional<In>, keyAntiquantOffset),
      (Optional<In>, valueAntiquantScale), (Optional<In>, valueAntiquantOffset),
      (Optional<In>, keySharedPrefix), (Optional<In>, valueSharedPrefix),
      (Optional<In>, actualSharedPrefixLen), (Optional<In>, query_rope), (Optional<In>, key_rope),
      (Unused<Optional<In>>, keyRopeAntiquantScale, "reserved"), (Optional<In>, dequantScaleQuery),
      (Optional<In>, learnableSink), (Optional<Ints>, qStartIdxOptional),
      (Optional<Ints>, kvStartIdxOptional), (int64_t, numHeads), (double, scaleValue),
      (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
      (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag),
      (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
      (Unused<int64_t>, queryQuantMode, "counts only beside dequantScaleQuery, which is refused"),
      (int64_t, pseType), (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  InferenceArguments arguments{
      .query = query,
      .key = key,
      .value = value,
      .shift = pseShift,
      .mask = attenMask,
      .query_lengths = lengths_in("actualSeqLengths", actualSeqLengths),
      .key_lengths = lengths_in("actualSeqLengthsKv", actualSeqLengthsKv),
      .dequant_scale1 = deqScale1,
      .quant_scale1 = quantScale1,
      .dequant_scale2 = deqScale2,
      .quant_scale2 = quantScale2,
      .quant_offset2 = quantOffset2,
      .key_antiquant = {"keyAntiquantScale", keyAntiquantScale, keyAntiquantOffset,
                        keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScale", valueAntiquantScale, valueAntiquantOffset,
                          valueAntiquantMode},
      .block_table = blockTable,
      .query_padding = queryPaddingSize,
      .key_padding = kvPaddingSize,
      .key_prefix = keySharedPrefix,
      .value_prefix = valueSharedPrefix,
      .prefix_length = lengths_in("actualSharedPrefixLen", actualSharedPrefixLen),
      .query_rope = query_rope,
      .key_rope = key_rope,
      .heads = numHeads,
      .key_heads = numKeyValueHeads,
      .scale = scaleValue,
      .pre_tokens = preTokens,
      .next_tokens = nextTokens,
      .layout = inputLayout,
      .layouts = kLayouts,
      .sparse_mode = sparseMode,
      .inner_precise = innerPrecise,
      .block_size = blockSize,
      .single_query_sees_all = true};
  refuse_given({{"dequantScaleQuery", is_given(dequantScaleQuery)},
                {"learnableSink", is_given(learnableSink)},
                {"qStartIdxOptional", is_given(qStartIdxOptional)},
                {"kvStartIdxOptional", is_given(kvStartIdxOptional)}});
  expect_defaults(pseType, outType);
  fused_attention(arguments, antiquantScale, antiquantOffset, antiquantMode, softmaxLseFlag,
                  attentionOut, softmaxLse);
}

ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV3);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV4);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV5);

}  // namespace aclnn_host::attention_fused_infer_rows
