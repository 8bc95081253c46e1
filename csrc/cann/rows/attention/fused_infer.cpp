// Attention of any number of queries over the keys of a prompt or of a cache.

#include "cann/rows/attention/inference.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_fused_infer_rows {

namespace {

constexpr std::string_view kLayouts[] = {"BSH",       "BSND",      "BNSD", "BNSD_BSND", "BSH_NBSD",
                                         "BSND_NBSD", "BNSD_NBSD", "TND",  "TND_NTD",   "NTD_TND"};

constexpr const char* kQueryScaleIsRefused =
    "counts only with a scale of queries, which is refused";

void fused_attention(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, int64_t mode, bool has_lse,
                     Output& out, OptionalOutput& lse) {
  arguments.single_query_sees_all = true;
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

void expect_default_shift(int64_t pse_type) {
  expect_one_of("pseType", pse_type, {0},
                "; the host CANN adds a shift only after it has scaled the scores");
}

// Lengths from the host or from a device tensor, whose values are unknown without memory.
Lengths lengths_in(const char* name, const std::optional<at::Tensor>& tensor) {
  if (!given(tensor)) return std::nullopt;
  expect_dtype(name, *tensor, {at::kLong, at::kInt});
  if (has_values(*tensor)) return integers_in(*tensor);
  return std::vector<int64_t>(static_cast<size_t>(tensor->numel()));
}
Lengths lengths_in(const char* /*name*/, const at::OptionalIntArrayRef& array) {
  return lengths_of(array);
}

// Versions 2 to 5.
template <class Version>
void attend(Version& row) {
  InferenceArguments arguments = inference_arguments(row, kLayouts);
  arguments.shift = row.pseShiftOptional;
  arguments.mask = row.attenMaskOptional;
  arguments.query_lengths = lengths_of(row.actualSeqLengthsOptional);
  arguments.key_lengths = lengths_of(row.actualSeqLengthsKvOptional);
  arguments.dequant_scale1 = row.deqScale1Optional;
  arguments.quant_scale1 = row.quantScale1Optional;
  arguments.dequant_scale2 = row.deqScale2Optional;
  arguments.quant_scale2 = row.quantScale2Optional;
  arguments.quant_offset2 = row.quantOffset2Optional;
  arguments.key_antiquant = {
      "keyAntiquantScaleOptional",   "keyAntiquantOffsetOptional",   "keyAntiquantMode",
      row.keyAntiquantScaleOptional, row.keyAntiquantOffsetOptional, row.keyAntiquantMode};
  arguments.value_antiquant = {
      "valueAntiquantScaleOptional",   "valueAntiquantOffsetOptional",   "valueAntiquantMode",
      row.valueAntiquantScaleOptional, row.valueAntiquantOffsetOptional, row.valueAntiquantMode};
  arguments.block_table = row.blockTableOptional;
  arguments.query_padding = row.queryPaddingSizeOptional;
  arguments.key_padding = row.kvPaddingSizeOptional;
  arguments.key_prefix = row.keySharedPrefixOptional;
  arguments.value_prefix = row.valueSharedPrefixOptional;
  arguments.prefix_length = lengths_of(row.actualSharedPrefixLenOptional);
  if constexpr (requires { row.queryRopeOptional; }) {
    arguments.query_rope = row.queryRopeOptional;
    arguments.key_rope = row.keyRopeOptional;
  }
  if constexpr (requires { row.learnableSinkOptional; }) {
    refuse_given({{"dequantScaleQueryOptional", given(row.dequantScaleQueryOptional)},
                  {"learnableSinkOptional", given(row.learnableSinkOptional)}});
  }
  if constexpr (requires { row.qStartIdxOptional; }) {
    refuse_given({{"qStartIdxOptional", given(row.qStartIdxOptional)},
                  {"kvStartIdxOptional", given(row.kvStartIdxOptional)}});
    expect_default_shift(row.pseType);
  }
  fused_attention(arguments, row.antiquantScaleOptional, row.antiquantOffsetOptional,
                  row.antiquantMode, row.softmaxLseFlag, row.attentionOut, row.softmaxLse);
}

// Version 1, and the inner functions, which have the arguments of version 5. One of these takes
// lengths on the device.
template <class Version>
void attend_without_suffix(Version& row) {
  InferenceArguments arguments = inference_arguments(row, kLayouts);
  arguments.query_lengths = lengths_in("actualSeqLengths", row.actualSeqLengths);
  arguments.key_lengths = lengths_in("actualSeqLengthsKv", row.actualSeqLengthsKv);
  arguments.block_table = row.blockTable;
  arguments.query_padding = row.queryPaddingSize;
  arguments.key_padding = row.kvPaddingSize;
  if constexpr (requires { row.outType; }) {
    arguments.key_antiquant = {"keyAntiquantScale",   "keyAntiquantOffset",   "keyAntiquantMode",
                               row.keyAntiquantScale, row.keyAntiquantOffset, row.keyAntiquantMode};
    arguments.value_antiquant = {"valueAntiquantScale",    "valueAntiquantOffset",
                                 "valueAntiquantMode",     row.valueAntiquantScale,
                                 row.valueAntiquantOffset, row.valueAntiquantMode};
    arguments.key_prefix = row.keySharedPrefix;
    arguments.value_prefix = row.valueSharedPrefix;
    arguments.prefix_length = lengths_in("actualSharedPrefixLen", row.actualSharedPrefixLen);
    arguments.query_rope = row.query_rope;
    arguments.key_rope = row.key_rope;
    refuse_given({{"dequantScaleQuery", given(row.dequantScaleQuery)},
                  {"learnableSink", given(row.learnableSink)},
                  {"qStartIdxOptional", given(row.qStartIdxOptional)},
                  {"kvStartIdxOptional", given(row.kvStartIdxOptional)}});
    expect_default_shift(row.pseType);
    expect_one_of("outType", row.outType, {0}, "; the result has the dtype of attentionOut");
  }
  fused_attention(arguments, row.antiquantScale, row.antiquantOffset, row.antiquantMode,
                  row.softmaxLseFlag, row.attentionOut, row.softmaxLse);
}

}  // namespace

// Behaviour of PromptFlashAttention*, IncreFlashAttention*, FusedInferAttentionScore*, MlaProlog*:
// Everything is computed in FLOAT, and each result is rounded once. Layouts, pages, lists, masks,
// prefixes, paddings and INT8 keys are computed, and INT8 queries unless a sequence has a single
// one.
// Limit of PromptFlashAttention*, IncreFlashAttention*, FusedInferAttentionScore*, MlaProlog*:
// FLOAT8, INT4 caches, sinks, a single INT8 query of each sequence and a scale of queries are
// refused with 161002 and the argument's name.
ACLNN_STRUCT(FusedInferAttentionScore, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShift), (Optional<In>, attenMask),
             (Optional<Ints>, actualSeqLengths), (Optional<Ints>, actualSeqLengthsKv),
             (Optional<In>, deqScale1), (Optional<In>, quantScale1), (Optional<In>, deqScale2),
             (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
             (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset),
             (Optional<In>, blockTable), (Optional<In>, queryPaddingSize),
             (Optional<In>, kvPaddingSize), (int64_t, numHeads), (double, scaleValue),
             (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
             (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
             (int64_t, blockSize), (int64_t, antiquantMode), (bool, softmaxLseFlag),
             (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend_without_suffix(*this);
}
ACLNN_STRUCT(FusedInferAttentionScoreV2, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional), (Optional<In>, deqScale1Optional),
             (Optional<In>, quantScale1Optional), (Optional<In>, deqScale2Optional),
             (Optional<In>, quantScale2Optional), (Optional<In>, quantOffset2Optional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, blockTableOptional), (Optional<In>, queryPaddingSizeOptional),
             (Optional<In>, kvPaddingSizeOptional), (Optional<In>, keyAntiquantScaleOptional),
             (Optional<In>, keyAntiquantOffsetOptional),
             (Optional<In>, valueAntiquantScaleOptional),
             (Optional<In>, valueAntiquantOffsetOptional), (Optional<In>, keySharedPrefixOptional),
             (Optional<In>, valueSharedPrefixOptional),
             (Optional<Ints>, actualSharedPrefixLenOptional), (int64_t, numHeads),
             (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend(*this);
}
ACLNN_STRUCT(FusedInferAttentionScoreV3, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional), (Optional<In>, deqScale1Optional),
             (Optional<In>, quantScale1Optional), (Optional<In>, deqScale2Optional),
             (Optional<In>, quantScale2Optional), (Optional<In>, quantOffset2Optional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, blockTableOptional), (Optional<In>, queryPaddingSizeOptional),
             (Optional<In>, kvPaddingSizeOptional), (Optional<In>, keyAntiquantScaleOptional),
             (Optional<In>, keyAntiquantOffsetOptional),
             (Optional<In>, valueAntiquantScaleOptional),
             (Optional<In>, valueAntiquantOffsetOptional), (Optional<In>, keySharedPrefixOptional),
             (Optional<In>, valueSharedPrefixOptional),
             (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
             (Optional<In>, keyRopeOptional),
             (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"), (int64_t, numHeads),
             (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend(*this);
}
ACLNN_STRUCT(FusedInferAttentionScoreV4, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional), (Optional<In>, deqScale1Optional),
             (Optional<In>, quantScale1Optional), (Optional<In>, deqScale2Optional),
             (Optional<In>, quantScale2Optional), (Optional<In>, quantOffset2Optional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, blockTableOptional), (Optional<In>, queryPaddingSizeOptional),
             (Optional<In>, kvPaddingSizeOptional), (Optional<In>, keyAntiquantScaleOptional),
             (Optional<In>, keyAntiquantOffsetOptional),
             (Optional<In>, valueAntiquantScaleOptional),
             (Optional<In>, valueAntiquantOffsetOptional), (Optional<In>, keySharedPrefixOptional),
             (Optional<In>, valueSharedPrefixOptional),
             (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
             (Optional<In>, keyRopeOptional),
             (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"),
             (Optional<In>, dequantScaleQueryOptional), (Optional<In>, learnableSinkOptional),
             (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Unused<int64_t>, queryQuantMode, kQueryScaleIsRefused), (Out, attentionOut),
             (Optional<Out>, softmaxLse)) {
  attend(*this);
}
ACLNN_STRUCT(FusedInferAttentionScoreV5, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShiftOptional), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional), (Optional<In>, deqScale1Optional),
             (Optional<In>, quantScale1Optional), (Optional<In>, deqScale2Optional),
             (Optional<In>, quantScale2Optional), (Optional<In>, quantOffset2Optional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, blockTableOptional), (Optional<In>, queryPaddingSizeOptional),
             (Optional<In>, kvPaddingSizeOptional), (Optional<In>, keyAntiquantScaleOptional),
             (Optional<In>, keyAntiquantOffsetOptional),
             (Optional<In>, valueAntiquantScaleOptional),
             (Optional<In>, valueAntiquantOffsetOptional), (Optional<In>, keySharedPrefixOptional),
             (Optional<In>, valueSharedPrefixOptional),
             (Optional<Ints>, actualSharedPrefixLenOptional), (Optional<In>, queryRopeOptional),
             (Optional<In>, keyRopeOptional),
             (Unused<Optional<In>>, keyRopeAntiquantScaleOptional, "reserved"),
             (Optional<In>, dequantScaleQueryOptional), (Optional<In>, learnableSinkOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Unused<int64_t>, queryQuantMode, kQueryScaleIsRefused), (int64_t, pseType),
             (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend(*this);
}
ACLNN_STRUCT(InnerFusedInferAttentionScore, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShift), (Optional<In>, attenMask),
             (Optional<Ints>, actualSeqLengths), (Optional<Ints>, actualSeqLengthsKv),
             (Optional<In>, deqScale1), (Optional<In>, quantScale1), (Optional<In>, deqScale2),
             (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
             (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset),
             (Optional<In>, blockTable), (Optional<In>, queryPaddingSize),
             (Optional<In>, kvPaddingSize), (Optional<In>, keyAntiquantScale),
             (Optional<In>, keyAntiquantOffset), (Optional<In>, valueAntiquantScale),
             (Optional<In>, valueAntiquantOffset), (Optional<In>, keySharedPrefix),
             (Optional<In>, valueSharedPrefix), (Optional<Ints>, actualSharedPrefixLen),
             (Optional<In>, query_rope), (Optional<In>, key_rope),
             (Unused<Optional<In>>, keyRopeAntiquantScale, "reserved"),
             (Optional<In>, dequantScaleQuery), (Optional<In>, learnableSink),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Unused<int64_t>, queryQuantMode, kQueryScaleIsRefused), (int64_t, pseType),
             (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend_without_suffix(*this);
}
ACLNN_STRUCT(InnerFusedInferAttentionScoreTensor, (In, query), (Ins, key), (Ins, value),
             (Optional<In>, pseShift), (Optional<In>, attenMask), (Optional<In>, actualSeqLengths),
             (Optional<In>, actualSeqLengthsKv), (Optional<In>, deqScale1),
             (Optional<In>, quantScale1), (Optional<In>, deqScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (Optional<In>, antiquantScale),
             (Optional<In>, antiquantOffset), (Optional<In>, blockTable),
             (Optional<In>, queryPaddingSize), (Optional<In>, kvPaddingSize),
             (Optional<In>, keyAntiquantScale), (Optional<In>, keyAntiquantOffset),
             (Optional<In>, valueAntiquantScale), (Optional<In>, valueAntiquantOffset),
             (Optional<In>, keySharedPrefix), (Optional<In>, valueSharedPrefix),
             (Optional<In>, actualSharedPrefixLen), (Optional<In>, query_rope),
             (Optional<In>, key_rope), (Unused<Optional<In>>, keyRopeAntiquantScale, "reserved"),
             (Optional<In>, dequantScaleQuery), (Optional<In>, learnableSink),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
             (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
             (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
             (Unused<int64_t>, queryQuantMode, kQueryScaleIsRefused), (int64_t, pseType),
             (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend_without_suffix(*this);
}

ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV3);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV4);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV5);

}  // namespace aclnn_host::attention_fused_infer_rows
