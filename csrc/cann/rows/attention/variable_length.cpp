// Attention of training over packed sequences of many lengths (see packed.h), and its gradients,
// which are called "unpadding". The versions differ in what they have beside: 2 the types of
// shifts, 3 rotary parts, 4 the layout of the softmax's maxima and sums. No gradient of a shift is
// written.

#include "cann/rows/attention/packed.h"

namespace aclnn_host::attention_variable_length_rows {

namespace {

void write(const PackedGradients& gradients, Output& dq, Output& dk, Output& dv) {
  dq = gradients.query;
  dk = gradients.key;
  dv = gradients.value;
}

// Of queries and keys in two parts.
struct RotaryOutputs {
  Output& query;
  OptionalOutput& query_rotary;
  Output& key;
  OptionalOutput& key_rotary;
  Output& value;
};
// Writes the gradients of both parts, and returns the one of the sink.
at::Tensor write_with_rotary(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& dy,
                             const ForwardPass& forward, bool as_input, const RotaryParts& rotary,
                             const std::string& layout, const at::OptionalIntArrayRef& query_sums,
                             const at::OptionalIntArrayRef& key_sums,
                             const AttentionArguments& arguments, const RotaryOutputs& outputs) {
  check_value_size(key, value);
  check_rotary(rotary, arguments);
  const at::Tensor queries = with_rotary("queryRope", query, rotary.query);
  const at::Tensor keys = with_rotary("keyInRope", key, rotary.key);
  const PackedAttention sequences(queries, keys, value, layout, query_sums, key_sums, arguments);
  const PackedGradients gradients =
      packed_gradients(queries, keys, value, dy, forward, as_input, sequences);
  const int64_t size = query.size(2);
  outputs.query = gradients.query.narrow(2, 0, size);
  outputs.key = gradients.key.narrow(2, 0, size);
  outputs.value = gradients.value;
  if (rotary.query) {
    EXPECT(outputs.query_rotary && outputs.key_rotary,
           "dqRopeOut or dkRopeOut is null, expected the gradients of the rotary parts");
    outputs.query_rotary = gradients.query.narrow(2, size, rotary.query->size(2));
    outputs.key_rotary = gradients.key.narrow(2, size, rotary.query->size(2));
  }
  return gradients.sink;
}

}  // namespace

// Behaviour of FlashAttentionVarLenScore*, FlashAttentionUnpaddingScoreGrad*, Nsa*: Everything is
// computed in FLOAT, and each result is rounded once.
ACLNN(FlashAttentionVarLenScore, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Unused<Optional<Out>>, softmaxOutOut, "CANN leaves it as it is"), (Out, attentionOutOut)) {
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
ACLNN(FlashAttentionVarLenScoreV2, (Floating<In>, query), (Floating<In>, key),
      (Floating<In>, value), (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
      (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Unused<Optional<Out>>, softmaxOutOut, "CANN leaves it as it is"), (Out, attentionOutOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(key, value);
  const PackedAttention sequences(
      query, key, value, inputLayout, actualSeqQLenOptional, actualSeqKvLenOptional,
      {realShiftOptional, dropMaskOptional, attenMaskOptional, prefixOptional, qStartIdxOptional,
       kvStartIdxOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, sparseMode,
       pseType});
  write_attention(query, value, sequences, false, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionVarLenScoreV3, (Floating<In>, query), (Optional<In>, queryRope),
      (Floating<In>, key), (Optional<In>, keyRope), (Floating<In>, value),
      (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
      (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Unused<Optional<Out>>, softmaxOutOut, "CANN leaves it as it is"), (Out, attentionOutOut)) {
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
ACLNN(FlashAttentionVarLenScoreV4, (Floating<In>, query), (Floating<In>, key),
      (Floating<In>, value), (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (char*, softmaxOutLayout), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Unused<Optional<Out>>, softmaxOutOut, "CANN leaves it as it is"), (Out, attentionOutOut)) {
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
ACLNN(FlashAttentionVarLenScoreV5, (Floating<In>, query), (Optional<In>, queryRope),
      (Floating<In>, key), (Optional<In>, keyRope), (Floating<In>, value),
      (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<In>, sinkOptional), (Optional<Ints>, prefixOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
      (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (char*, softmaxOutLayout), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Unused<Optional<Out>>, softmaxOutOut, "CANN leaves it as it is"), (Out, attentionOutOut)) {
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

ACLNN(FlashAttentionUnpaddingScoreGrad, (Floating<In>, query), (Floating<In>, keyIn),
      (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
      (Optional<In>, dropMaskOptional), (Optional<In>, paddingMaskOptional),
      (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
      (Optional<In>, softmaxSumOptional), (Unused<Optional<In>>, softmaxInOptional, "reserved"),
      (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode), (Out, dqOut),
      (Out, dkOut), (Out, dvOut),
      (Unused<Optional<Out>>, dpseOut, "CANN computes no gradient of a shift")) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
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
  write(packed_gradients(query, keyIn, value, dy,
                         {softmaxMaxOptional, softmaxSumOptional, attentionInOptional}, false,
                         sequences),
        dqOut, dkOut, dvOut);
}
ACLNN(FlashAttentionUnpaddingScoreGradV2, (Floating<In>, query), (Floating<In>, keyIn),
      (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
      (Optional<In>, dropMaskOptional), (Optional<In>, paddingMaskOptional),
      (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
      (Optional<In>, softmaxSumOptional), (Unused<Optional<In>>, softmaxInOptional, "reserved"),
      (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
      (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (Out, dqOut), (Out, dkOut), (Out, dvOut),
      (Unused<Optional<Out>>, dpseOut, "CANN computes no gradient of a shift")) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  check_value_size(keyIn, value);
  const PackedAttention sequences(
      query, keyIn, value, inputLayout, actualSeqQLenOptional, actualSeqKvLenOptional,
      {pseShiftOptional, dropMaskOptional, attenMaskOptional, prefixOptional, qStartIdxOptional,
       kvStartIdxOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, sparseMode,
       pseType});
  write(packed_gradients(query, keyIn, value, dy,
                         {softmaxMaxOptional, softmaxSumOptional, attentionInOptional}, false,
                         sequences),
        dqOut, dkOut, dvOut);
}
ACLNN(FlashAttentionUnpaddingScoreGradV3, (Floating<In>, query), (Optional<In>, queryRope),
      (Floating<In>, keyIn), (Optional<In>, keyInRope), (Floating<In>, value), (Floating<In>, dy),
      (Optional<In>, pseShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<In>, softmaxMaxOptional), (Optional<In>, softmaxSumOptional),
      (Unused<Optional<In>>, softmaxInOptional, "reserved"), (Optional<In>, attentionInOptional),
      (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
      (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
      (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (Out, dqOut), (Optional<Out>, dqRopeOut), (Out, dkOut),
      (Optional<Out>, dkRopeOut), (Out, dvOut),
      (Unused<Optional<Out>>, dpseOut, "CANN computes no gradient of a shift")) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  const AttentionArguments arguments = {pseShiftOptional, dropMaskOptional,  attenMaskOptional,
                                        prefixOptional,   qStartIdxOptional, kvStartIdxOptional,
                                        scaleValue,       keepProb,          preTokens,
                                        nextTokens,       headNum,           sparseMode,
                                        pseType};
  write_with_rotary(query, keyIn, value, dy,
                    {softmaxMaxOptional, softmaxSumOptional, attentionInOptional}, false,
                    {queryRope, keyInRope}, inputLayout, actualSeqQLenOptional,
                    actualSeqKvLenOptional, arguments, {dqOut, dqRopeOut, dkOut, dkRopeOut, dvOut});
}
ACLNN(FlashAttentionUnpaddingScoreGradV4, (Floating<In>, query), (Floating<In>, keyIn),
      (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
      (Optional<In>, dropMaskOptional), (Optional<In>, paddingMaskOptional),
      (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
      (Optional<In>, softmaxSumOptional), (Unused<Optional<In>>, softmaxInOptional, "reserved"),
      (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode), (Out, dqOut),
      (Out, dkOut), (Out, dvOut),
      (Unused<Optional<Out>>, dpseOut, "CANN computes no gradient of a shift"),
      (char*, softmaxInLayout)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  const bool as_input = is_as_input("softmaxInLayout", softmaxInLayout);
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
  write(packed_gradients(query, keyIn, value, dy,
                         {softmaxMaxOptional, softmaxSumOptional, attentionInOptional}, as_input,
                         sequences),
        dqOut, dkOut, dvOut);
}
// The third version with a sink.
ACLNN(FlashAttentionUnpaddingScoreGradV5, (Floating<In>, query), (Optional<In>, queryRope),
      (Floating<In>, keyIn), (Optional<In>, keyInRope), (Floating<In>, value), (Floating<In>, dy),
      (Optional<In>, pseShiftOptional), (Optional<In>, dropMaskOptional),
      (Optional<In>, paddingMaskOptional), (Optional<In>, attenMaskOptional),
      (Optional<In>, softmaxMaxOptional), (Optional<In>, softmaxSumOptional),
      (Unused<Optional<In>>, softmaxInOptional, "reserved"), (Optional<In>, attentionInOptional),
      (Optional<In>, sinkInOptional), (Optional<Ints>, prefixOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
      (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
      (int64_t, headNum), (char*, inputLayout),
      (Unused<int64_t>, innerPrecise, "CANN does not use it"), (int64_t, sparseMode),
      (int64_t, pseType), (char*, softmaxInLayout), (Out, dqOut), (Optional<Out>, dqRopeOut),
      (Out, dkOut), (Optional<Out>, dkRopeOut), (Out, dvOut),
      (Unused<Optional<Out>>, dpseOut, "CANN computes no gradient of a shift"),
      (Optional<Out>, dsinkOut)) {
  refuse_attention_arguments({{"paddingMaskOptional", paddingMaskOptional.has_value()}});
  const bool as_input = is_as_input("softmaxInLayout", softmaxInLayout);
  EXPECT(dsinkOut || !sinkInOptional, "dsinkOut is null, expected a tensor as sinkInOptional is");
  const AttentionArguments arguments = {pseShiftOptional, dropMaskOptional,  attenMaskOptional,
                                        prefixOptional,   qStartIdxOptional, kvStartIdxOptional,
                                        scaleValue,       keepProb,          preTokens,
                                        nextTokens,       headNum,           sparseMode,
                                        pseType,          sinkInOptional};
  const at::Tensor dsink = write_with_rotary(
      query, keyIn, value, dy, {softmaxMaxOptional, softmaxSumOptional, attentionInOptional},
      as_input, {queryRope, keyInRope}, inputLayout, actualSeqQLenOptional, actualSeqKvLenOptional,
      arguments, {dqOut, dqRopeOut, dkOut, dkRopeOut, dvOut});
  if (sinkInOptional) dsinkOut = dsink;
}
ACLNN_MAX_WORKSPACE(FlashAttentionUnpaddingScoreGradV5);

}  // namespace aclnn_host::attention_variable_length_rows
