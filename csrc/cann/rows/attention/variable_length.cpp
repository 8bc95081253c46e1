// Attention of training over packed sequences of different lengths (see packed.h), and its
// gradients, which CANN names "unpadding". Version 2 adds the types of shifts, version 3 rotary
// parts, version 4 the layout of the softmax's maxima and sums. The gradient of a shift is not
// computed.

#include "cann/rows/attention/packed.h"

namespace aclnn_host::attention_variable_length_rows {

namespace {

template <class Version>
void attend(Version& row) {
  check_value_size(row.key, row.value);
  const AttentionArguments arguments = attention_arguments(row);
  RotaryParts rotary;
  if constexpr (requires { row.queryRope; }) {
    rotary = {row.queryRope, row.keyRope};
    check_rotary(rotary, arguments);
  }
  const PackedAttention sequences(with_rotary("queryRope", row.query, rotary.query),
                                  with_rotary("keyRope", row.key, rotary.key), row.value,
                                  row.inputLayout, row.actualSeqQLenOptional,
                                  row.actualSeqKvLenOptional, arguments);
  write_attention(row.query, row.value, sequences, is_as_input(row), row.softmaxMaxOut,
                  row.softmaxSumOut, row.attentionOutOut);
}

template <class Version>
void differentiate(Version& row) {
  const bool as_input = is_as_input(row);
  check_sink_gradient(row);
  check_value_size(row.keyIn, row.value);
  const AttentionArguments arguments = attention_arguments(row);
  RotaryParts rotary;
  if constexpr (requires { row.queryRope; }) {
    rotary = {row.queryRope, row.keyInRope, "keyInRope"};
    check_rotary(rotary, arguments);
  }
  const at::Tensor queries = with_rotary("queryRope", row.query, rotary.query);
  const at::Tensor keys = with_rotary("keyInRope", row.keyIn, rotary.key);
  const PackedAttention sequences(queries, keys, row.value, row.inputLayout,
                                  row.actualSeqQLenOptional, row.actualSeqKvLenOptional, arguments);
  const PackedGradients gradients =
      packed_gradients(queries, keys, row.value, row.dy,
                       {row.softmaxMaxOptional, row.softmaxSumOptional, row.attentionInOptional},
                       as_input, sequences);
  const int64_t size = row.query.size(2);
  row.dqOut = gradients.query.narrow(2, 0, size);
  row.dkOut = gradients.key.narrow(2, 0, size);
  row.dvOut = gradients.value;
  if constexpr (requires { row.dqRopeOut; }) {
    if (rotary.query) {
      EXPECT(row.dqRopeOut && row.dkRopeOut,
             "dqRopeOut or dkRopeOut is null, expected the gradients of the rotary parts");
      row.dqRopeOut = gradients.query.narrow(2, size, rotary.query->size(2));
      row.dkRopeOut = gradients.key.narrow(2, size, rotary.query->size(2));
    }
  }
  if constexpr (requires { row.dsinkOut; }) {
    if (row.sinkInOptional) row.dsinkOut = gradients.sink;
  }
}

}  // namespace

// Behaviour of FlashAttentionVarLenScore*, FlashAttentionUnpaddingScoreGrad*, Nsa*: Everything is
// computed in FLOAT, and each result is rounded once.
ACLNN_STRUCT(FlashAttentionVarLenScore, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_STRUCT(FlashAttentionVarLenScoreV2, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (int64_t, pseType), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_STRUCT(FlashAttentionVarLenScoreV3, (Floating<In>, query), (Optional<In>, queryRope),
             (Floating<In>, key), (Optional<In>, keyRope), (Floating<In>, value),
             (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
             (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
             (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
             (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kNotUsed), (int64_t, sparseMode), (int64_t, pseType),
             (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_STRUCT(FlashAttentionVarLenScoreV4, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (char*, softmaxOutLayout), (Out, softmaxMaxOut),
             (Out, softmaxSumOut), (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs),
             (Out, attentionOutOut)) {
  attend(*this);
}
// Version 3 with a sink, and the layout of maxima and sums of version 4.
ACLNN_STRUCT(FlashAttentionVarLenScoreV5, (Floating<In>, query), (Optional<In>, queryRope),
             (Floating<In>, key), (Optional<In>, keyRope), (Floating<In>, value),
             (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
             (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
             (Optional<In>, sinkOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (int64_t, pseType), (char*, softmaxOutLayout),
             (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_MAX_WORKSPACE(FlashAttentionVarLenScoreV5);

ACLNN_STRUCT(FlashAttentionUnpaddingScoreGrad, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (Out, dqOut), (Out, dkOut), (Out, dvOut),
             (Unused<Optional<Out>>, dpseOut, kShiftHasNoGradient)) {
  differentiate(*this);
}
ACLNN_STRUCT(FlashAttentionUnpaddingScoreGradV2, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (int64_t, pseType), (Out, dqOut), (Out, dkOut), (Out, dvOut),
             (Unused<Optional<Out>>, dpseOut, kShiftHasNoGradient)) {
  differentiate(*this);
}
ACLNN_STRUCT(FlashAttentionUnpaddingScoreGradV3, (Floating<In>, query), (Optional<In>, queryRope),
             (Floating<In>, keyIn), (Optional<In>, keyInRope), (Floating<In>, value),
             (Floating<In>, dy), (Optional<In>, pseShiftOptional), (Optional<In>, dropMaskOptional),
             (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
             (Optional<In>, softmaxMaxOptional), (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (int64_t, pseType), (Out, dqOut), (Optional<Out>, dqRopeOut),
             (Out, dkOut), (Optional<Out>, dkRopeOut), (Out, dvOut),
             (Unused<Optional<Out>>, dpseOut, kShiftHasNoGradient)) {
  differentiate(*this);
}
ACLNN_STRUCT(FlashAttentionUnpaddingScoreGradV4, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNotUsed),
             (int64_t, sparseMode), (Out, dqOut), (Out, dkOut), (Out, dvOut),
             (Unused<Optional<Out>>, dpseOut, kShiftHasNoGradient), (char*, softmaxInLayout)) {
  differentiate(*this);
}
// Version 3 with a sink.
ACLNN_STRUCT(FlashAttentionUnpaddingScoreGradV5, (Floating<In>, query), (Optional<In>, queryRope),
             (Floating<In>, keyIn), (Optional<In>, keyInRope), (Floating<In>, value),
             (Floating<In>, dy), (Optional<In>, pseShiftOptional), (Optional<In>, dropMaskOptional),
             (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
             (Optional<In>, softmaxMaxOptional), (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<In>, sinkInOptional),
             (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
             (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
             (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kNotUsed), (int64_t, sparseMode), (int64_t, pseType),
             (char*, softmaxInLayout), (Out, dqOut), (Optional<Out>, dqRopeOut), (Out, dkOut),
             (Optional<Out>, dkRopeOut), (Out, dvOut),
             (Unused<Optional<Out>>, dpseOut, kShiftHasNoGradient), (Optional<Out>, dsinkOut)) {
  differentiate(*this);
}
ACLNN_MAX_WORKSPACE(FlashAttentionUnpaddingScoreGradV5);

}  // namespace aclnn_host::attention_variable_length_rows
