// Attention of a whole prompt, whose query sequences are at most as long as the key sequences.

#include "cann/rows/attention/inference.h"

namespace aclnn_host::attention_prompt_rows {

namespace {

constexpr std::string_view kLayouts[] = {"BSH", "BSND", "BNSD", "BNSD_BSND"};
constexpr std::string_view kLayoutsOfV3[] = {"BSH", "BSND", "BNSD", "BNSD_BSND", "TND"};

template <class Version>
void attend(Version& row) {
  InferenceArguments arguments = inference_arguments(row, kLayouts);
  arguments.query_lengths = lengths_of(row.actualSeqLengths);
  if constexpr (requires { row.actualSeqLengthsKv; }) {
    arguments.key_lengths = lengths_of(row.actualSeqLengthsKv);
  }
  if constexpr (requires { row.innerPrecise; }) arguments.layouts = kLayoutsOfV3;
  infer_attention(arguments, row.attentionOut, nullptr);
}

}  // namespace

// pseShift is reserved in the first two versions, which ignore it.
ACLNN_STRUCT(PromptFlashAttention, (In, query), (In, key), (In, value),
             (Unused<Optional<In>>, pseShift, "reserved: CANN sets it to null"),
             (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths), (int64_t, numHeads),
             (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (char*, inputLayout), (int64_t, numKeyValueHeads), (Out, attentionOut)) {
  attend(*this);
}
ACLNN_STRUCT(PromptFlashAttentionV2, (In, query), (In, key), (In, value),
             (Unused<Optional<In>>, pseShift, "reserved: CANN sets it to null"),
             (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
             (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1),
             (Optional<In>, quantScale1), (Optional<In>, deqScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (int64_t, numHeads), (double, scaleValue),
             (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
             (int64_t, numKeyValueHeads), (int64_t, sparseMode), (Out, attentionOut)) {
  attend(*this);
}
ACLNN_STRUCT(PromptFlashAttentionV3, (In, query), (In, key), (In, value), (Optional<In>, pseShift),
             (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths),
             (Optional<Ints>, actualSeqLengthsKv), (Optional<In>, deqScale1),
             (Optional<In>, quantScale1), (Optional<In>, deqScale2), (Optional<In>, quantScale2),
             (Optional<In>, quantOffset2), (int64_t, numHeads), (double, scaleValue),
             (int64_t, preTokens), (int64_t, nextTokens), (char*, inputLayout),
             (int64_t, numKeyValueHeads), (int64_t, sparseMode), (int64_t, innerPrecise),
             (Out, attentionOut)) {
  attend(*this);
}

}  // namespace aclnn_host::attention_prompt_rows
