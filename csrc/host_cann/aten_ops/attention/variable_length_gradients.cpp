// The gradients of attention over packed sequences: see attention_varlen.cpp. The probabilities are
// computed anew, so nothing of the forward pass is needed, and no gradient of a shift is written.

#include "host_cann/aten_ops/attention/packed.h"

using namespace aclnn_host;

namespace {

void write(const PackedGradients& gradients, Output& dq, Output& dk, Output& dv) {
  dq = gradients.query;
  dk = gradients.key;
  dv = gradients.value;
}

}  // namespace

ACLNN(FlashAttentionUnpaddingScoreGrad, (FloatIn, query), (FloatIn, keyIn), (FloatIn, value),
      (FloatIn, dy), (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (Out, dqOut), (Out, dkOut), (Out, dvOut),
      (OptionalOut, dpseOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_softmax_inputs(softmaxMaxOptional, softmaxSumOptional);
  check_value_size(keyIn, value);
  const PackedAttention sequences(query, keyIn, value, inputLayout, actualSeqQLenOptional,
                                  actualSeqKvLenOptional,
                                  {pseShiftOptional,
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
  write(packed_gradients(query, keyIn, value, dy, sequences), dqOut, dkOut, dvOut);
}
ACLNN(FlashAttentionUnpaddingScoreGradV2, (FloatIn, query), (FloatIn, keyIn), (FloatIn, value),
      (FloatIn, dy), (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (OptionalInts, qStartIdxOptional),
      (OptionalInts, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, pseType), (Out, dqOut),
      (Out, dkOut), (Out, dvOut), (OptionalOut, dpseOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_softmax_inputs(softmaxMaxOptional, softmaxSumOptional);
  check_value_size(keyIn, value);
  const PackedAttention sequences(
      query, keyIn, value, inputLayout, actualSeqQLenOptional, actualSeqKvLenOptional,
      {pseShiftOptional, dropMaskOptional, attenMaskOptional, prefixOptional, qStartIdxOptional,
       kvStartIdxOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, sparseMode,
       pseType});
  write(packed_gradients(query, keyIn, value, dy, sequences), dqOut, dkOut, dvOut);
}
ACLNN(FlashAttentionUnpaddingScoreGradV3, (FloatIn, query), (OptionalIn, queryRope),
      (FloatIn, keyIn), (OptionalIn, keyInRope), (FloatIn, value), (FloatIn, dy),
      (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (OptionalInts, qStartIdxOptional),
      (OptionalInts, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, pseType), (Out, dqOut),
      (OptionalOut, dqRopeOut), (Out, dkOut), (OptionalOut, dkRopeOut), (Out, dvOut),
      (OptionalOut, dpseOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_softmax_inputs(softmaxMaxOptional, softmaxSumOptional);
  check_value_size(keyIn, value);
  const AttentionArguments arguments = {pseShiftOptional, dropMaskOptional,  attenMaskOptional,
                                        prefixOptional,   qStartIdxOptional, kvStartIdxOptional,
                                        scaleValue,       keepProb,          preTokens,
                                        nextTokens,       headNum,           sparseMode,
                                        pseType};
  check_rotary({queryRope, keyInRope}, arguments);
  const at::Tensor queries = with_rotary("queryRope", query, queryRope);
  const at::Tensor keys = with_rotary("keyInRope", keyIn, keyInRope);
  const PackedAttention sequences(queries, keys, value, inputLayout, actualSeqQLenOptional,
                                  actualSeqKvLenOptional, arguments);
  const PackedGradients gradients = packed_gradients(queries, keys, value, dy, sequences);
  const int64_t size = query.size(2);
  dqOut = gradients.query.narrow(2, 0, size);
  dkOut = gradients.key.narrow(2, 0, size);
  dvOut = gradients.value;
  if (!queryRope) return;
  TORCH_CHECK(dqRopeOut && dkRopeOut,
              "dqRopeOut or dkRopeOut is null, expected the gradients of the rotary parts");
  dqRopeOut = gradients.query.narrow(2, size, queryRope->size(2));
  dkRopeOut = gradients.key.narrow(2, size, queryRope->size(2));
}
ACLNN(FlashAttentionUnpaddingScoreGradV4, (FloatIn, query), (FloatIn, keyIn), (FloatIn, value),
      (FloatIn, dy), (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalInts, prefixOptional), (OptionalInts, actualSeqQLenOptional),
      (OptionalInts, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (int64_t, innerPrecise), (int64_t, sparseMode), (Out, dqOut), (Out, dkOut), (Out, dvOut),
      (OptionalOut, dpseOut), (char*, softmaxInLayout)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  is_as_input("softmaxInLayout", softmaxInLayout);
  check_softmax_inputs(softmaxMaxOptional, softmaxSumOptional);
  check_value_size(keyIn, value);
  const PackedAttention sequences(query, keyIn, value, inputLayout, actualSeqQLenOptional,
                                  actualSeqKvLenOptional,
                                  {pseShiftOptional,
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
  write(packed_gradients(query, keyIn, value, dy, sequences), dqOut, dkOut, dvOut);
}
