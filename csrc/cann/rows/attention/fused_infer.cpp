// Attention of any number of queries over the keys of a prompt or of a cache.

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

// Lengths from the host or from a device tensor, whose values are unknown without memory.
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
Lengths lengths_in(const char* /*name*/, const at::OptionalIntArrayRef& array) {
  return lengths_of(array);
}

// Versions 2 to 5.
template <class Version>
void attend(Version& row) {
  InferenceArguments arguments{
      .query = row.query,
      .key = row.key,
      .value = row.value,
      .shift = row.pseShiftOptional,
      .mask = row.attenMaskOptional,
      .query_lengths = lengths_of(row.actualSeqLengthsOptional),
      .key_lengths = lengths_of(row.actualSeqLengthsKvOptional),
      .dequant_scale1 = row.deqScale1Optional,
      .quant_scale1 = row.quantScale1Optional,
      .dequant_scale2 = row.deqScale2Optional,
      .quant_scale2 = row.quantScale2Optional,
      .quant_offset2 = row.quantOffset2Optional,
      .key_antiquant = {"keyAntiquantScaleOptional", row.keyAntiquantScaleOptional,
                        row.keyAntiquantOffsetOptional, row.keyAntiquantMode},
      .value_antiquant = {"valueAntiquantScaleOptional", row.valueAntiquantScaleOptional,
                          row.valueAntiquantOffsetOptional, row.valueAntiquantMode},
      .block_table = row.blockTableOptional,
      .query_padding = row.queryPaddingSizeOptional,
      .key_padding = row.kvPaddingSizeOptional,
      .key_prefix = row.keySharedPrefixOptional,
      .value_prefix = row.valueSharedPrefixOptional,
      .prefix_length = lengths_of(row.actualSharedPrefixLenOptional),
      .heads = row.numHeads,
      .key_heads = row.numKeyValueHeads,
      .scale = row.scaleValue,
      .pre_tokens = row.preTokens,
      .next_tokens = row.nextTokens,
      .layout = row.inputLayout,
      .layouts = kLayouts,
      .sparse_mode = row.sparseMode,
      .inner_precise = row.innerPrecise,
      .block_size = row.blockSize,
      .single_query_sees_all = true};
  if constexpr (requires { row.queryRopeOptional; }) {
    arguments.query_rope = row.queryRopeOptional;
    arguments.key_rope = row.keyRopeOptional;
  }
  if constexpr (requires { row.learnableSinkOptional; }) {
    refuse_given({{"dequantScaleQueryOptional", is_given(row.dequantScaleQueryOptional)},
                  {"learnableSinkOptional", is_given(row.learnableSinkOptional)}});
  }
  if constexpr (requires { row.qStartIdxOptional; }) {
    refuse_given({{"qStartIdxOptional", is_given(row.qStartIdxOptional)},
                  {"kvStartIdxOptional", is_given(row.kvStartIdxOptional)}});
    expect_defaults(row.pseType, /*out_type=*/0);
  }
  fused_attention(arguments, row.antiquantScaleOptional, row.antiquantOffsetOptional,
                  row.antiquantMode, row.softmaxLseFlag, row.attentionOut, row.softmaxLse);
}

// Version 1, and the inner functions, which have the arguments of version 5. One of these takes
// lengths on the device.
template <class Version>
void attend_without_suffix(Version& row) {
  InferenceArguments arguments{
      .query = row.query,
      .key = row.key,
      .value = row.value,
      .shift = row.pseShift,
      .mask = row.attenMask,
      .query_lengths = lengths_in("actualSeqLengths", row.actualSeqLengths),
      .key_lengths = lengths_in("actualSeqLengthsKv", row.actualSeqLengthsKv),
      .dequant_scale1 = row.deqScale1,
      .quant_scale1 = row.quantScale1,
      .dequant_scale2 = row.deqScale2,
      .quant_scale2 = row.quantScale2,
      .quant_offset2 = row.quantOffset2,
      .block_table = row.blockTable,
      .query_padding = row.queryPaddingSize,
      .key_padding = row.kvPaddingSize,
      .heads = row.numHeads,
      .key_heads = row.numKeyValueHeads,
      .scale = row.scaleValue,
      .pre_tokens = row.preTokens,
      .next_tokens = row.nextTokens,
      .layout = row.inputLayout,
      .layouts = kLayouts,
      .sparse_mode = row.sparseMode,
      .inner_precise = row.innerPrecise,
      .block_size = row.blockSize,
      .single_query_sees_all = true};
  if constexpr (requires { row.outType; }) {
    arguments.key_antiquant = {"keyAntiquantScale", row.keyAntiquantScale, row.keyAntiquantOffset,
                               row.keyAntiquantMode};
    arguments.value_antiquant = {"valueAntiquantScale", row.valueAntiquantScale,
                                 row.valueAntiquantOffset, row.valueAntiquantMode};
    arguments.key_prefix = row.keySharedPrefix;
    arguments.value_prefix = row.valueSharedPrefix;
    arguments.prefix_length = lengths_in("actualSharedPrefixLen", row.actualSharedPrefixLen);
    arguments.query_rope = row.query_rope;
    arguments.key_rope = row.key_rope;
    refuse_given({{"dequantScaleQuery", is_given(row.dequantScaleQuery)},
                  {"learnableSink", is_given(row.learnableSink)},
                  {"qStartIdxOptional", is_given(row.qStartIdxOptional)},
                  {"kvStartIdxOptional", is_given(row.kvStartIdxOptional)}});
    expect_defaults(row.pseType, row.outType);
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
             (Unused<int64_t>, queryQuantMode,
              "counts only beside dequantScaleQueryOptional, which is refused"),
             (Out, attentionOut), (Optional<Out>, softmaxLse)) {
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
             (Unused<int64_t>, queryQuantMode,
              "counts only beside dequantScaleQueryOptional, which is refused"),
             (int64_t, pseType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend(*this);
}
ACLNN_STRUCT(
    InnerFusedInferAttentionScore, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
    (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
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
    (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout), (int64_t, numKeyValueHeads),
    (int64_t, sparseMode), (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
    (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
    (Unused<int64_t>, queryQuantMode, "counts only beside dequantScaleQuery, which is refused"),
    (int64_t, pseType), (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend_without_suffix(*this);
}
ACLNN_STRUCT(
    InnerFusedInferAttentionScoreTensor, (In, query), (Ins, key), (Ins, value),
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
    (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout), (int64_t, numKeyValueHeads),
    (int64_t, sparseMode), (int64_t, innerPrecise), (int64_t, blockSize), (int64_t, antiquantMode),
    (bool, softmaxLseFlag), (int64_t, keyAntiquantMode), (int64_t, valueAntiquantMode),
    (Unused<int64_t>, queryQuantMode, "counts only beside dequantScaleQuery, which is refused"),
    (int64_t, pseType), (int64_t, outType), (Out, attentionOut), (Optional<Out>, softmaxLse)) {
  attend_without_suffix(*this);
}

ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV3);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV4);
ACLNN_MAX_WORKSPACE(FusedInferAttentionScoreV5);

}  // namespace aclnn_host::attention_fused_infer_rows
