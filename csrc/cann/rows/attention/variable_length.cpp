// Attention of training over packed sequences of many lengths: see packed_attention.h. The versions
// differ in what they have beside: 2 the types of shifts, 3 rotary parts, 4 the layout of the
// softmax's maxima and sums.

#include "cann/rows/attention/packed.h"

namespace aclnn_host::attention_variable_length_rows {

ACLNN(FlashAttentionVarLenScore, (FloatIn, query), (FloatIn, key), (FloatIn, value),
      (OptionalIn, realShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (OptionalOut, softmaxOutOut), (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const PackedAttention sequences(query, key, value, inputLayout, actualSeqQLenOptional,
                                  actualSeqKvLenOptional,
                                  {realShiftOptional,
                                   dropMaskOptional,
                                   attenMaskOptional,
                                   prefixOptional,
                                   {},
                                   {},
                                   scaleValue,
                                   keepProb,
                                   preTokens,
                                   nextTokens,
                                   headNum,
                                   sparseMode});
  write_attention(query, value, sequences, false, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionVarLenScoreV2, (FloatIn, query), (FloatIn, key), (FloatIn, value),
      (OptionalIn, realShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (OptionalInts, qStartIdxOptional),
      (OptionalInts, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, pseType), (Out, softmaxMaxOut),
      (Out, softmaxSumOut), (OptionalOut, softmaxOutOut), (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const PackedAttention sequences(
      query, key, value, inputLayout, actualSeqQLenOptional, actualSeqKvLenOptional,
      {realShiftOptional, dropMaskOptional, attenMaskOptional, prefixOptional, qStartIdxOptional,
       kvStartIdxOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, sparseMode,
       pseType});
  write_attention(query, value, sequences, false, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionVarLenScoreV3, (FloatIn, query), (OptionalIn, queryRope), (FloatIn, key),
      (OptionalIn, keyRope), (FloatIn, value), (OptionalIn, realShiftOptional),
      (OptionalIn, dropMaskOptional), (OptionalIn, paddingMaskOptional),
      (OptionalIn, attenMaskOptional), (OptionalInts, prefixOptional),
      (OptionalInts, actualSeqQLenOptional), (OptionalInts, actualSeqKvLenOptional),
      (OptionalInts, qStartIdxOptional), (OptionalInts, kvStartIdxOptional), (double, scaleValue),
      (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum),
      (char*, inputLayout), (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, pseType),
      (Out, softmaxMaxOut), (Out, softmaxSumOut), (OptionalOut, softmaxOutOut),
      (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const AttentionArguments arguments = {realShiftOptional,
                                        dropMaskOptional,
                                        attenMaskOptional,
                                        prefixOptional,
                                        qStartIdxOptional,
                                        kvStartIdxOptional,
                                        scaleValue,
                                        keepProb,
                                        preTokens,
                                        nextTokens,
                                        headNum,
                                        sparseMode,
                                        pseType};
  check_rotary({queryRope, keyRope}, arguments);
  const PackedAttention sequences(with_rotary("queryRope", query, queryRope),
                                  with_rotary("keyRope", key, keyRope), value, inputLayout,
                                  actualSeqQLenOptional, actualSeqKvLenOptional, arguments);
  write_attention(query, value, sequences, false, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionVarLenScoreV4, (FloatIn, query), (FloatIn, key), (FloatIn, value),
      (OptionalIn, realShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (char*, softmaxOutLayout),
      (Out, softmaxMaxOut), (Out, softmaxSumOut), (OptionalOut, softmaxOutOut),
      (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const PackedAttention sequences(query, key, value, inputLayout, actualSeqQLenOptional,
                                  actualSeqKvLenOptional,
                                  {realShiftOptional,
                                   dropMaskOptional,
                                   attenMaskOptional,
                                   prefixOptional,
                                   {},
                                   {},
                                   scaleValue,
                                   keepProb,
                                   preTokens,
                                   nextTokens,
                                   headNum,
                                   sparseMode});
  write_attention(query, value, sequences, is_as_input("softmaxOutLayout", softmaxOutLayout),
                  softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
// The third version with a sink, and a layout of maxima and sums as the fourth has it.
ACLNN(FlashAttentionVarLenScoreV5, (FloatIn, query), (OptionalIn, queryRope), (FloatIn, key),
      (OptionalIn, keyRope), (FloatIn, value), (OptionalIn, realShiftOptional),
      (OptionalIn, dropMaskOptional), (OptionalIn, paddingMaskOptional),
      (OptionalIn, attenMaskOptional), (OptionalIn, sinkOptional), (OptionalInts, prefixOptional),
      (OptionalInts, actualSeqQLenOptional), (OptionalInts, actualSeqKvLenOptional),
      (OptionalInts, qStartIdxOptional), (OptionalInts, kvStartIdxOptional), (double, scaleValue),
      (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum),
      (char*, inputLayout), (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, pseType),
      (char*, softmaxOutLayout), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (OptionalOut, softmaxOutOut), (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const AttentionArguments arguments = {realShiftOptional, dropMaskOptional,  attenMaskOptional,
                                        prefixOptional,    qStartIdxOptional, kvStartIdxOptional,
                                        scaleValue,        keepProb,          preTokens,
                                        nextTokens,        headNum,           sparseMode,
                                        pseType,           sinkOptional};
  check_rotary({queryRope, keyRope}, arguments);
  const PackedAttention sequences(with_rotary("queryRope", query, queryRope),
                                  with_rotary("keyRope", key, keyRope), value, inputLayout,
                                  actualSeqQLenOptional, actualSeqKvLenOptional, arguments);
  write_attention(query, value, sequences, is_as_input("softmaxOutLayout", softmaxOutLayout),
                  softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN_MAX_WORKSPACE(FlashAttentionVarLenScoreV5);

}  // namespace aclnn_host::attention_variable_length_rows
