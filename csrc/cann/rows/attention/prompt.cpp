// Attention of a whole prompt, whose sequences of queries are as long as those of keys or shorter.

#include "cann/rows/attention/inference.h"

namespace aclnn_host::attention_prompt_rows {

namespace {

constexpr std::string_view kLayouts = "BSH BSND BNSD BNSD_BSND";
constexpr std::string_view kLayoutsOfV3 = "BSH BSND BNSD BNSD_BSND TND";

}  // namespace

// A shift is a reserved argument of the first two versions, which ignore it.
ACLNN(PromptFlashAttention, (In, query), (In, key), (In, value),
      (Unused<Optional<In>>, pseShift, "reserved: CANN sets it to null"), (Optional<In>, attenMask),
      (Optional<Ints>, actualSeqLengths), (int64_t, numHeads), (double, scaleValue),
      (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (Out, attentionOut)) {
  infer_attention({.query = query,
                   .key = {key},
                   .value = {value},
                   .mask = attenMask,
                   .query_lengths = lengths_of(actualSeqLengths),
                   .heads = numHeads,
                   .key_heads = numKeyValueHeads,
                   .scale = scaleValue,
                   .pre_tokens = preTokens,
                   .next_tokens = nextTokens,
                   .layout = inputLayout,
                   .layouts = kLayouts},
                  attentionOut, nullptr);
}
ACLNN(PromptFlashAttentionV2, (In, query), (In, key), (In, value),
      (Unused<Optional<In>>, pseShift, "reserved: CANN sets it to null"), (Optional<In>, attenMask),
      (Optional<Ints>, actualSeqLengths), (Optional<Ints>, actualSeqLengthsKv),
      (Optional<In>, deqScale1), (Optional<In>, quantScale1), (Optional<In>, deqScale2),
      (Optional<In>, quantScale2), (Optional<In>, quantOffset2), (int64_t, numHeads),
      (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, sparseMode), (Out, attentionOut)) {
  infer_attention({.query = query,
                   .key = {key},
                   .value = {value},
                   .mask = attenMask,
                   .query_lengths = lengths_of(actualSeqLengths),
                   .key_lengths = lengths_of(actualSeqLengthsKv),
                   .dequant_scale1 = deqScale1,
                   .quant_scale1 = quantScale1,
                   .dequant_scale2 = deqScale2,
                   .quant_scale2 = quantScale2,
                   .quant_offset2 = quantOffset2,
                   .heads = numHeads,
                   .key_heads = numKeyValueHeads,
                   .scale = scaleValue,
                   .pre_tokens = preTokens,
                   .next_tokens = nextTokens,
                   .layout = inputLayout,
                   .layouts = kLayouts,
                   .sparse_mode = sparseMode},
                  attentionOut, nullptr);
}
ACLNN(PromptFlashAttentionV3, (In, query), (In, key), (In, value), (Optional<In>, pseShift),
      (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
      (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1), (Optional<In>, quantScale1),
      (Optional<In>, deqScale2), (Optional<In>, quantScale2), (Optional<In>, quantOffset2),
      (int64_t, numHeads), (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
      (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, sparseMode),
      (int64_t, innerPrecise), (Out, attentionOut)) {
  infer_attention({.query = query,
                   .key = {key},
                   .value = {value},
                   .shift = pseShift,
                   .mask = attenMask,
                   .query_lengths = lengths_of(actualSeqLengths),
                   .key_lengths = lengths_of(actualSeqLengthsKv),
                   .dequant_scale1 = deqScale1,
                   .quant_scale1 = quantScale1,
                   .dequant_scale2 = deqScale2,
                   .quant_scale2 = quantScale2,
                   .quant_offset2 = quantOffset2,
                   .heads = numHeads,
                   .key_heads = numKeyValueHeads,
                   .scale = scaleValue,
                   .pre_tokens = preTokens,
                   .next_tokens = nextTokens,
                   .layout = inputLayout,
                   .layouts = kLayoutsOfV3,
                   .sparse_mode = sparseMode,
                   .inner_precise = innerPrecise},
                  attentionOut, nullptr);
}

}  // namespace aclnn_host::attention_prompt_rows
