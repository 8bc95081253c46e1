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
  const std::optional<at::Tensor> dsink = write_batched_gradients(
      row.query, row.keyIn, row.value, row.dy,
      {row.softmaxMaxOptional, row.softmaxSumOptional, row.attentionInOptional},
      attention_arguments(row), row.inputLayout, std::nullopt, row.dqOut, row.dkOut, row.dvOut,
      row.dpseOut);
  if constexpr (requires { row.dsinkOut; }) {
    if (dsink) row.dsinkOut = *dsink;
  }
}

// outDtype selects FLOAT16 (0) or BFLOAT16 (1) for the results of quantised inputs.
void check_out_dtype(const at::Tensor& query, int64_t out_dtype) {
  EXPECT(out_dtype == 0 || (out_dtype == 1 && query.scalar_type() == at::kBFloat16), "outDtype is ",
         out_dtype, ", expected 0, or 1 with a query of BFLOAT16; the results",
         " have the dtype of query");
}

bool is_packed(const std::string& layout) {
  return layout == "TND";
}

// Refuses the arguments of version 4 that only packed sequences have.
void refuse_packed_arguments(const at::OptionalIntArrayRef& query_sums,
                             const at::OptionalIntArrayRef& key_sums, const char* layout_name,
                             const std::string& softmax_layout) {
  const auto refuse = [](const char* name, bool is_given) {
    EXPECT(!is_given, name, " is given, expected null as inputLayout is not \"TND\"");
  };
  refuse("actualSeqQLenOptional", query_sums && !query_sums->empty());
  refuse("actualSeqKvLenOptional", key_sums && !key_sums->empty());
  refuse(layout_name, !softmax_layout.empty());
}

// The sequences of version 4, which draws one dropout bit for each score if there is no mask.
PackedAttention packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       AttentionArguments arguments, const std::string& layout,
                       const at::OptionalIntArrayRef& query_sums,
                       const at::OptionalIntArrayRef& key_sums, const Source& source) {
  check_value_size(key, value);
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
// other pseTypes, layouts and sparseModes, a padding mask and, in version 4, lists of lengths,
// rotary parts, scales of quantisation, sinks, a softmax layout, an outDtype that is not query's.
// Deviation of FlashAttentionScore*: CANN documents some of these arguments as reserved and does
// not read them.
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
// Behaviour of FlashAttentionScoreV3, FlashAttentionScoreGradV3, FlashAttentionVarLenScoreV5,
// FlashAttentionUnpaddingScoreGradV5: A sink is one more score of each query, without a value. It
// counts in the maximum and in the sum.
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
ACLNN_STRUCT(FlashAttentionScoreV4, (Floating<In>, query), (Floating<In>, key),
             (Floating<In>, value), (Optional<In>, realShiftOptional),
             (Optional<In>, dropMaskOptional), (Refused<In>, paddingMaskOptional, kPaddingMasks),
             (Optional<In>, attenMaskOptional), (Refused<In>, queryRopeOptional, kRotaryParts),
             (Refused<In>, keyRopeOptional, kRotaryParts),
             (Refused<In>, dScaleQOptional, kQuantised), (Refused<In>, dScaleKOptional, kQuantised),
             (Refused<In>, dScaleVOptional, kQuantised), (Refused<In>, sinkOptional, kSinks),
             (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
             (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
             (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
             (Unused<int64_t>, innerPrecise, kResultIsZero), (int64_t, sparseMode),
             (int64_t, outDtype), (int64_t, pseType), (char*, softmaxOutLayout), (int64_t, seed),
             (int64_t, offset), (Out, softmaxMaxOut), (Out, softmaxSumOut),
             (Unused<Optional<Out>>, softmaxOutOut, kLeftAsItIs), (Out, attentionOutOut)) {
  check_out_dtype(query, outDtype);
  const AttentionArguments arguments = attention_arguments(*this);
  const Source source = source_of(seed, offset);
  if (is_packed(inputLayout)) {
    const PackedAttention sequences = packed(query, key, value, arguments, inputLayout,
                                             actualSeqQLenOptional, actualSeqKvLenOptional, source);
    write_attention(query, value, sequences, is_as_input(*this), softmaxMaxOut, softmaxSumOut,
                    attentionOutOut);
    return;
  }
  refuse_packed_arguments(actualSeqQLenOptional, actualSeqKvLenOptional, "softmaxOutLayout",
                          softmaxOutLayout);
  write_batched_attention(query, key, value, arguments, inputLayout, source, softmaxMaxOut,
                          softmaxSumOut, attentionOutOut);
}
ACLNN_STRUCT(
    FlashAttentionScoreGradV4, (Floating<In>, query), (Floating<In>, keyIn), (Floating<In>, value),
    (Floating<In>, dy), (Optional<In>, pseShiftOptional), (Optional<In>, dropMaskOptional),
    (Refused<In>, paddingMaskOptional, kPaddingMasks), (Optional<In>, attenMaskOptional),
    (Optional<In>, softmaxMaxOptional), (Optional<In>, softmaxSumOptional),
    (Unused<Optional<In>>, softmaxInOptional, "reserved"), (Optional<In>, attentionInOptional),
    (Refused<In>, sinkInOptional, kSinks), (Refused<In>, queryRopeOptional, kRotaryParts),
    (Refused<In>, keyRopeOptional, kRotaryParts), (Refused<In>, dScaleQOptional, kQuantised),
    (Refused<In>, dScaleKOptional, kQuantised), (Refused<In>, dScaleVOptional, kQuantised),
    (Refused<In>, dScaleDyOptional, kQuantised), (Refused<In>, dScaleOOptional, kQuantised),
    (Optional<Ints>, prefixOptional), (Optional<Ints>, actualSeqQLenOptional),
    (Optional<Ints>, actualSeqKvLenOptional), (Optional<Ints>, qStartIdxOptional),
    (Optional<Ints>, kvStartIdxOptional), (double, scaleValue), (double, keepProb),
    (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum), (char*, inputLayout),
    (char*, softmaxInLayout), (Unused<int64_t>, innerPrecise, "reserved"), (int64_t, sparseMode),
    (int64_t, pseType), (int64_t, seed), (int64_t, offset), (int64_t, outDtype), (Out, dqOut),
    (Out, dkOut), (Out, dvOut),
    (Unused<Optional<Out>>, dqRopeOut, "counts only beside queryRopeOptional, which is refused"),
    (Unused<Optional<Out>>, dkRopeOut, "counts only beside keyRopeOptional, which is refused"),
    (Optional<Out>, dpseOut),
    (Unused<Optional<Out>>, dsinkOut, "counts only beside sinkInOptional, which is refused")) {
  check_out_dtype(query, outDtype);
  const AttentionArguments arguments = attention_arguments(*this);
  const Source source = source_of(seed, offset);
  if (is_packed(inputLayout)) {
    const PackedAttention sequences = packed(query, keyIn, value, arguments, inputLayout,
                                             actualSeqQLenOptional, actualSeqKvLenOptional, source);
    const PackedGradients gradients = packed_gradients(
        query, keyIn, value, dy, {softmaxMaxOptional, softmaxSumOptional, attentionInOptional},
        is_as_input(*this), sequences);
    dqOut = gradients.query;
    dkOut = gradients.key;
    dvOut = gradients.value;
    return;
  }
  refuse_packed_arguments(actualSeqQLenOptional, actualSeqKvLenOptional, "softmaxInLayout",
                          softmaxInLayout);
  write_batched_gradients(query, keyIn, value, dy,
                          {softmaxMaxOptional, softmaxSumOptional, attentionInOptional}, arguments,
                          inputLayout, source, dqOut, dkOut, dvOut, dpseOut);
}

}  // namespace aclnn_host::attention_score_rows
