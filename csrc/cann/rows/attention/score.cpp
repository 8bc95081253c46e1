// FlashAttentionScore and its gradient, for sequences of one length (see batched.h) and, in version
// 4, packed sequences of different lengths (see packed.h).

#include "cann/rows/attention/batched.h"
#include "cann/rows/attention/packed.h"
#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_score_rows {

namespace {

// Versions 1 to 3.
template <class Version>
void attend(Version& row) {
  write_batched_attention(row.query, row.key, row.value, attention_arguments(row), row.inputLayout,
                          std::nullopt, row.softmaxMaxOut, row.softmaxSumOut, row.attentionOutOut);
}
template <class Version>
void differentiate(Version& row) {
  check_sink_gradient(row);
  const BatchedGradients gradients = write_batched_gradients(
      row.query, row.keyIn, row.value, row.dy,
      {row.softmaxMaxOptional, row.softmaxSumOptional, row.attentionInOptional},
      attention_arguments(row), row.inputLayout, std::nullopt, row.dqOut, row.dkOut, row.dvOut,
      row.dpseOut);
  if constexpr (requires { row.dsinkOut; }) {
    if (gradients.sink) row.dsinkOut = *gradients.sink;
  }
}

// The checks of what only version 4 has. outDtype counts with scales of quantisation only.
void check_version4(const at::Tensor& query, int64_t out_dtype, const RotaryParts& rotary,
                    const std::optional<at::Tensor>& sink) {
  expect_one_of("outDtype", out_dtype, {0, 1});
  if (sink) expect_reduced_float("query", query, " with a sink");
  expect_both_or_none("queryRopeOptional", rotary.query.has_value(), "keyRopeOptional",
                      rotary.key.has_value());
  if (!rotary.query) return;
  expect_reduced_float("query", query, " with rotary parts");
  expect_dtype("queryRopeOptional", *rotary.query, query);
  expect_dtype("keyRopeOptional", *rotary.key, query);
}

bool is_packed(const std::string& layout) {
  return layout == "TND";
}

struct Inputs {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};
Inputs with_rotary(const Inputs& inputs, const RotaryParts& rotary) {
  Inputs joined{aclnn_host::with_rotary("queryRopeOptional", inputs.query, rotary.query),
                aclnn_host::with_rotary(rotary.key_name, inputs.key, rotary.key), inputs.value};
  if (rotary.query) check_rotary_sizes(inputs.query.size(2), rotary.query->size(2));
  return joined;
}

// The sequences of version 4, which draws one dropout bit for each score if there is no mask.
PackedAttention packed(const Inputs& inputs, const RotaryParts& rotary,
                       AttentionArguments arguments, const std::string& layout,
                       const at::OptionalIntArrayRef& query_sums,
                       const at::OptionalIntArrayRef& key_sums, const Source& source) {
  check_value_size(inputs.key, inputs.value);
  const auto [query, key, value] = with_rotary(inputs, rotary);
  const PackedAttention sequences(query, key, value, layout, query_sums, key_sums, arguments);
  if (arguments.drop_mask || arguments.keep >= 1) return sequences;
  const at::Tensor like = at::empty({sequences.scores()}, query.options());
  arguments.drop_mask = draw_bits(empty_dropout_mask(like), arguments.keep, source);
  return {query, key, value, layout, query_sums, key_sums, arguments};
}

}  // namespace

// Behaviour of FlashAttentionScore*: Everything is computed in FLOAT, and each result is rounded
// once. The layouts are BNSD, BSND, BSH and SBH. sparseMode 0 to 8 counts where there is a mask.
// There may be fewer heads of keys and values than of queries. A shift is added before the scores
// are scaled (pseType 1, and the versions without pseType) or after it (0), or is made from slopes
// and distances (2) or from their roots (3). The gradient computes the probabilities again.
// Limit of FlashAttentionScore*: The following are refused with 161002 and a text that names them:
// other pseTypes, layouts and sparseModes, a padding mask and, in version 4, scales of
// quantisation. Deviation of FlashAttentionScore*: CANN documents some of these arguments as
// reserved and does not read them.
ACLNN_STRUCT(FlashAttentionScore, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
             (Optional<In>, realShiftOptional), (Optional<In>, dropMaskOptional),
             (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
             (Optional<Ints>, prefixOptional), (double, scaleValueOptional),
             (double, keepProbOptional), (int64_t, preTokensOptional),
             (int64_t, nextTokensOptional), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPreciseOptional, kResultIsZero), (int64_t, sparseModeOptional),
             (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
// Behaviour of FlashAttentionScoreGrad*, FlashAttentionUnpaddingScoreGrad*: The gradient takes the
// maxima and sums of the softmax, and the result, as they are given. They may be of more keys than
// the call has, as in ring attention. A null argument is computed again. A query whose maximum is
// -inf or whose sum is 0 has no gradient.
ACLNN_STRUCT(FlashAttentionScoreGrad, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (double, scaleValueOptional), (double, keepProbOptional), (int64_t, preTokensOptional),
             (int64_t, nextTokensOptional), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPreciseOptional, kNoGradient), (int64_t, sparseModeOptional),
             (Out, dqOut), (Out, dkOut), (Out, dvOut), (Optional<Out>, dpseOut)) {
  differentiate(*this);
}

ACLNN_STRUCT(FlashAttentionScoreV2, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kResultIsZero), (int64_t, sparseMode),
             (int64_t, pseType), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_STRUCT(FlashAttentionScoreGradV2, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (Unused<int64_t>, innerPrecise, kNoGradient),
             (int64_t, sparseMode), (int64_t, pseType), (Out, dqOut), (Out, dkOut), (Out, dvOut),
             (Optional<Out>, dpseOut)) {
  differentiate(*this);
}

// The second version with a sink.
// Behaviour of FlashAttentionScoreV3, FlashAttentionScoreGradV3, FlashAttentionScoreV4,
// FlashAttentionScoreGradV4, FlashAttentionVarLenScoreV5, FlashAttentionUnpaddingScoreGradV5: A
// sink is one more score of each query, without a value. It counts in the maximum and in the sum.
ACLNN_STRUCT(FlashAttentionScoreV3, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, sinkOptional),
             (Optional<Ints>, prefixOptional), (Optional<Ints>, qStartIdxOptional),
             (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kResultIsZero), (int64_t, sparseMode),
             (int64_t, pseType), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  attend(*this);
}
ACLNN_STRUCT(FlashAttentionScoreGradV3, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<In>, sinkInOptional),
             (Optional<Ints>, prefixOptional), (Optional<Ints>, qStartIdxOptional),
             (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kNoGradient), (int64_t, sparseMode),
             (int64_t, pseType), (Out, dqOut), (Out, dkOut), (Out, dvOut), (Optional<Out>, dpseOut),
             (Optional<Out>, dsinkOut)) {
  differentiate(*this);
}

// The arguments for Ascend950: without a mask, the dropout is drawn from the seed.
// Behaviour of FlashAttentionScoreV4, FlashAttentionScoreGradV4: Lists of lengths and a softmax
// layout count with inputLayout "TND" only, outDtype with scales of quantisation only.
ACLNN_STRUCT(FlashAttentionScoreV4, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, queryRopeOptional),
             (Optional<In>, keyRopeOptional), (Refused<In>, dScaleQOptional, kQuantised),
             (Refused<In>, dScaleKOptional, kQuantised), (Refused<In>, dScaleVOptional, kQuantised),
             (Optional<In>, sinkOptional), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kResultIsZero), (int64_t, sparseMode),
             (int64_t, outDtype), (int64_t, pseType), (char*, softmaxOutLayout), (int64_t, seed),
             (int64_t, offset), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  const RotaryParts rotary{queryRopeOptional, keyRopeOptional, "keyRopeOptional"};
  check_version4(query, outDtype, rotary, sinkOptional);
  const bool as_input = is_as_input(*this);
  const AttentionArguments arguments = attention_arguments(*this);
  const Source source = source_of(seed, offset);
  if (is_packed(inputLayout)) {
    const PackedAttention sequences = packed({query, key, value}, rotary, arguments, inputLayout,
                                             actualSeqQLenOptional, actualSeqKvLenOptional, source);
    write_attention(query, value, sequences, as_input, softmaxMaxOut, softmaxSumOut,
                    attentionOutOut);
    return;
  }
  write_batched_attention(query, key, value, arguments, inputLayout, source, softmaxMaxOut,
                          softmaxSumOut, attentionOutOut, rotary);
}
ACLNN_STRUCT(FlashAttentionScoreGradV4, (Floating<In>, query), (Floating<In>, keyIn),
             (Floating<In>, value), (Floating<In>, dy), (Optional<In>, pseShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Optional<In>, softmaxMaxOptional),
             (Optional<In>, softmaxSumOptional),
             (Unused<Optional<In>>, softmaxInOptional, "reserved"),
             (Optional<In>, attentionInOptional), (Optional<In>, sinkInOptional),
             (Optional<In>, queryRopeOptional), (Optional<In>, keyRopeOptional),
             (Refused<In>, dScaleQOptional, kQuantised), (Refused<In>, dScaleKOptional, kQuantised),
             (Refused<In>, dScaleVOptional, kQuantised),
             (Refused<In>, dScaleDyOptional, kQuantised),
             (Refused<In>, dScaleOOptional, kQuantised), (Optional<Ints>, prefixOptional),
             (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
             (Optional<Ints>, qStartIdxOptional), (Optional<Ints>, kvStartIdxOptional),
             (double, scaleValue), (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens),
             (int64_t, headNum), (char*, inputLayout), (char*, softmaxInLayout),
             (Unused<int64_t>, innerPrecise, "reserved"), (int64_t, sparseMode), (int64_t, pseType),
             (int64_t, seed), (int64_t, offset), (int64_t, outDtype), (Out, dqOut), (Out, dkOut),
             (Out, dvOut), (Optional<Out>, dqRopeOut), (Optional<Out>, dkRopeOut),
             (Optional<Out>, dpseOut), (Optional<Out>, dsinkOut)) {
  const RotaryParts rotary{queryRopeOptional, keyRopeOptional, "keyRopeOptional"};
  check_version4(query, outDtype, rotary, sinkInOptional);
  check_sink_gradient(*this);
  const bool as_input = is_as_input(*this);
  require_given(dqRopeOut || !rotary.query,
                "dqRopeOut is null, expected a tensor as queryRopeOptional is given");
  require_given(dkRopeOut || !rotary.key,
                "dkRopeOut is null, expected a tensor as keyRopeOptional is given");
  const AttentionArguments arguments = attention_arguments(*this);
  const Source source = source_of(seed, offset);
  const ForwardPass forward{softmaxMaxOptional, softmaxSumOptional, attentionInOptional};
  BatchedGradients others;
  if (is_packed(inputLayout)) {
    const Inputs inputs{query, keyIn, value};
    const PackedAttention sequences = packed(inputs, rotary, arguments, inputLayout,
                                             actualSeqQLenOptional, actualSeqKvLenOptional, source);
    const Inputs joined = with_rotary(inputs, rotary);
    const PackedGradients gradients =
        packed_gradients(joined.query, joined.key, value, dy, forward, as_input, sequences);
    dqOut = gradients.query.narrow(2, 0, query.size(2));
    dkOut = gradients.key.narrow(2, 0, query.size(2));
    dvOut = gradients.value;
    others = {gradients.sink, gradients.query.slice(2, query.size(2)),
              gradients.key.slice(2, query.size(2))};
  } else {
    others = write_batched_gradients(query, keyIn, value, dy, forward, arguments, inputLayout,
                                     source, dqOut, dkOut, dvOut, dpseOut, rotary);
  }
  if (sinkInOptional) dsinkOut = *others.sink;
  if (!rotary.query) return;
  dqRopeOut = *others.query_rope;
  dkRopeOut = *others.key_rope;
}

}  // namespace aclnn_host::attention_score_rows
