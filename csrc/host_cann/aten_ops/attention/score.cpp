// Scaled dot product attention as CANN's fused operators define it: with the scores
// S = scale (Q K^T + shift) and their softmax P, of which a dropout keeps D, the result is D V.

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>

#include "host_cann/aten_ops/random.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// How the dimensions of queries, keys and values stand in memory: B batch, S sequence, N heads, D
// the elements of one head, H those of all heads.
class Layout {
 public:
  Layout(const std::string& name, const at::Tensor& query, int64_t heads) : name_(name) {
    TORCH_CHECK(name == "BNSD" || name == "BSND" || name == "BSH" || name == "SBH",
                "inputLayout is \"", name, "\", expected \"BNSD\", \"BSND\", \"BSH\" or \"SBH\"");
    const int64_t rank = has_heads() ? 4 : 3;
    TORCH_CHECK(query.dim() == rank, "query has ", query.dim(), " dimensions, expected ", rank,
                " for the layout ", name);
    TORCH_CHECK(heads > 0, "headNum is ", heads, ", expected 1 or more");
    head_size_ = has_heads() ? query.size(3) : query.size(2) / heads;
    TORCH_CHECK(head_size_ > 0, "query has shape ", query.sizes(), ", expected ", heads,
                " heads of one element or more");
  }

  // The tensor as B, N, S, D, in the type that is computed in.
  at::Tensor read(const at::Tensor& tensor) const {
    at::Tensor wide = tensor.to(at::kFloat);
    if (name_ == "SBH") wide = wide.transpose(0, 1);
    if (!has_heads()) wide = wide.unflatten(2, {wide.size(2) / head_size_, head_size_});
    return name_ == "BNSD" ? wide : wide.transpose(1, 2);
  }

  // The way back.
  at::Tensor written(const at::Tensor& tensor) const {
    if (name_ == "BNSD") return tensor;
    at::Tensor result = tensor.transpose(1, 2);
    if (!has_heads()) result = result.flatten(2);
    return name_ == "SBH" ? result.transpose(0, 1) : result;
  }

 private:
  bool has_heads() const { return name_ == "BNSD" || name_ == "BSND"; }

  std::string name_;
  int64_t head_size_;
};

// What the mask argument says of which scores do not count.
enum SparseMode { kMask = 0, kWholeMask = 1, kCausalFromFirst = 2, kCausalFromLast = 3 };

// What the operators have beside queries, keys and values.
struct Parameters {
  std::optional<at::Tensor> shift;
  std::optional<at::Tensor> drop_mask;
  std::optional<at::Tensor> mask;
  double scale;
  double keep;
  int64_t pre_tokens;
  int64_t next_tokens;
  int64_t heads;
  std::string layout;
  int64_t sparse_mode;
  // Of a dropout without a mask.
  int64_t seed = 0;
  int64_t offset = 0;
};

// The places of the scores that do not count, unless all do.
std::optional<at::Tensor> masked_places(const at::Tensor& scores, const Parameters& parameters) {
  const std::optional<at::Tensor>& mask = parameters.mask;
  const int64_t queries = scores.size(2);
  const int64_t keys = scores.size(3);
  const auto options = scores.options().dtype(at::kLong);
  // How far a key is behind the query's place.
  const at::Tensor ahead = at::arange(keys, options) - at::arange(queries, options).unsqueeze(1);
  switch (parameters.sparse_mode) {
    case kMask:
      if (!mask) return std::nullopt;
      return mask->to(at::kBool) | (ahead > parameters.next_tokens) |
             (ahead.neg() > parameters.pre_tokens);
    case kWholeMask:
      TORCH_CHECK(mask, "attenMaskOptional is null, expected a mask for sparseMode 1");
      return mask->to(at::kBool);
    case kCausalFromFirst: return ahead > 0;
    case kCausalFromLast: return ahead > keys - queries;
    default:
      TORCH_CHECK(false, "sparseMode is ", parameters.sparse_mode,
                  ", expected 0 to 3; the host CANN implements no other mode");
  }
}

// What forward and backward have in common.
struct Attention {
  Attention(const at::Tensor& query_, const at::Tensor& key_, const at::Tensor& value_,
            const Parameters& parameters)
      : layout(parameters.layout, query_, parameters.heads),
        query(layout.read(query_)),
        key(layout.read(key_)),
        value(layout.read(value_)),
        group(key.size(1) == 0 ? 1 : query.size(1) / key.size(1)),
        scale(parameters.scale) {
    TORCH_CHECK(query_.is_floating_point() && query_.scalar_type() != at::kDouble,
                "query has dtype ", query_.scalar_type(), ", expected FLOAT16, BFLOAT16 or FLOAT");
    const double keep = parameters.keep;
    TORCH_CHECK(key.size(1) * group == query.size(1), "query has ", query.size(1),
                " heads, expected a multiple of the ", key.size(1), " heads of key");
    TORCH_CHECK(keep > 0 && keep <= 1, "keepProb is ", keep, ", expected more than 0, at most 1");
    key = key.repeat_interleave(group, 1);
    value = value.repeat_interleave(group, 1);
    at::Tensor scores = at::matmul(query, key.transpose(2, 3));
    if (parameters.shift) scores = scores + *parameters.shift;
    scores = scores * scale;
    if (const auto masked = masked_places(scores, parameters)) {
      scores = scores.masked_fill(*masked, -std::numeric_limits<double>::infinity());
    }
    // The result of a query whose keys are all masked is 0.
    largest = scores.amax(3, /*keepdim=*/true);
    probabilities = (scores - largest.masked_fill(largest.isinf(), 0)).exp();
    sum = probabilities.sum(3, /*keepdim=*/true);
    probabilities = probabilities / sum.masked_fill(sum == 0, 1);
    if (keep < 1 || parameters.drop_mask) {
      const at::Tensor mask = parameters.drop_mask
                                  ? *parameters.drop_mask
                                  : dropout_mask(empty_dropout_mask(probabilities), keep,
                                                 parameters.seed, parameters.offset);
      kept = unpacked_dropout_mask(mask, probabilities) / keep;
    }
  }

  at::Tensor dropped(const at::Tensor& x) const { return kept ? x * *kept : x; }

  // The gradient of keys or values from one by the queries' heads.
  at::Tensor by_group(const at::Tensor& gradient) const {
    return group == 1 ? gradient : gradient.unflatten(1, {gradient.size(1) / group, group}).sum(2);
  }

  Layout layout;
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  int64_t group;  // how many heads of queries share one of keys and values
  double scale;
  at::Tensor largest;
  at::Tensor sum;
  at::Tensor probabilities;
  std::optional<at::Tensor> kept;
};

void forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
             const Parameters& parameters, Output& softmax_max, Output& softmax_sum, Output& out) {
  // CANN writes each row's maximum and sum eight times.
  constexpr int64_t kCopies = 8;
  const Attention a(query, key, value, parameters);
  softmax_max = a.largest.expand({-1, -1, -1, kCopies});
  softmax_sum = a.sum.expand({-1, -1, -1, kCopies});
  out = a.layout.written(at::matmul(a.dropped(a.probabilities), a.value));
}

// The probabilities are computed anew, so nothing of the forward pass is needed.
void backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& dy, const Parameters& parameters, Output& dq, Output& dk,
              Output& dv, OptionalOutput& dshift) {
  const Attention a(query, key, value, parameters);
  const at::Tensor& p = a.probabilities;
  const at::Tensor gradient = a.layout.read(dy);
  const at::Tensor dp = a.dropped(at::matmul(gradient, a.value.transpose(2, 3)));
  const at::Tensor ds = p * (dp - (dp * p).sum(3, /*keepdim=*/true)) * a.scale;
  dq = a.layout.written(at::matmul(ds, a.key));
  dk = a.layout.written(a.by_group(at::matmul(ds.transpose(2, 3), a.query)));
  dv = a.layout.written(a.by_group(at::matmul(a.dropped(p).transpose(2, 3), gradient)));
  if (parameters.shift) dshift = ds.sum_to_size(parameters.shift->sizes());
}

bool given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value();
}
bool given(const at::OptionalIntArrayRef& list) {
  return list && !list->empty();
}
bool given(const std::string& text) {
  return !text.empty();
}

// Arguments that would change the result in a way that the host CANN does not emulate.
void require_absent(std::initializer_list<std::pair<const char*, bool>> arguments) {
  for (const auto& [name, present] : arguments) {
    TORCH_CHECK(
        !present, name,
        " is given, expected null; the host CANN does not implement attention with this argument");
  }
}

// What the later versions can choose beside: pseType, that the shift is added before (1) or after
// (0) the scores are scaled, or is made by the operator (2, 3); outDtype, FLOAT16 (0) or BFLOAT16
// (1) for the results of quantised inputs.
void require_plain(const at::Tensor& query, const std::optional<at::Tensor>& shift,
                   int64_t pse_type, int64_t out_dtype) {
  TORCH_CHECK(pse_type == 1 || (pse_type == 0 && !shift), "pseType is ", pse_type, ", expected 1",
              shift ? "" : ", or 0 without a shift",
              "; the host CANN adds a shift only before it scales the scores");
  TORCH_CHECK(out_dtype == 0 || (out_dtype == 1 && query.scalar_type() == at::kBFloat16),
              "outDtype is ", out_dtype, ", expected 0, or 1 with a query of BFLOAT16; the results",
              " have the dtype of query");
}

}  // namespace

ACLNN(FlashAttentionScore, (In, query), (In, key), (In, value), (OptionalIn, realShiftOptional),
      (OptionalIn, dropMaskOptional), (OptionalIn, paddingMaskOptional),
      (OptionalIn, attenMaskOptional), (OptionalInts, prefixOptional), (double, scaleValueOptional),
      (double, keepProbOptional), (int64_t, preTokensOptional), (int64_t, nextTokensOptional),
      (int64_t, headNum), (char*, inputLayout), (int64_t, innerPreciseOptional),
      (int64_t, sparseModeOptional), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (OptionalOut, softmaxOutOut), (Out, attentionOutOut)) {
  require_absent({{"paddingMaskOptional", given(paddingMaskOptional)},
                  {"prefixOptional", given(prefixOptional)}});
  forward(
      query, key, value,
      {realShiftOptional, dropMaskOptional, attenMaskOptional, scaleValueOptional, keepProbOptional,
       preTokensOptional, nextTokensOptional, headNum, inputLayout, sparseModeOptional},
      softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionScoreGrad, (In, query), (In, keyIn), (In, value), (In, dy),
      (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalInts, prefixOptional), (double, scaleValueOptional), (double, keepProbOptional),
      (int64_t, preTokensOptional), (int64_t, nextTokensOptional), (int64_t, headNum),
      (char*, inputLayout), (int64_t, innerPreciseOptional), (int64_t, sparseModeOptional),
      (Out, dqOut), (Out, dkOut), (Out, dvOut), (OptionalOut, dpseOut)) {
  require_absent({{"paddingMaskOptional", given(paddingMaskOptional)},
                  {"prefixOptional", given(prefixOptional)}});
  backward(
      query, keyIn, value, dy,
      {pseShiftOptional, dropMaskOptional, attenMaskOptional, scaleValueOptional, keepProbOptional,
       preTokensOptional, nextTokensOptional, headNum, inputLayout, sparseModeOptional},
      dqOut, dkOut, dvOut, dpseOut);
}

// What Ascend950 is asked for: a dropout without a mask draws it from the seed.
ACLNN(FlashAttentionScoreV4, (In, query), (In, key), (In, value), (OptionalIn, realShiftOptional),
      (OptionalIn, dropMaskOptional), (OptionalIn, paddingMaskOptional),
      (OptionalIn, attenMaskOptional), (OptionalIn, queryRopeOptional),
      (OptionalIn, keyRopeOptional), (OptionalIn, dScaleQOptional), (OptionalIn, dScaleKOptional),
      (OptionalIn, dScaleVOptional), (OptionalIn, sinkOptional), (OptionalInts, prefixOptional),
      (OptionalInts, actualSeqQLenOptional), (OptionalInts, actualSeqKvLenOptional),
      (OptionalInts, qStartIdxOptional), (OptionalInts, kvStartIdxOptional), (double, scaleValue),
      (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum),
      (char*, inputLayout), (int64_t, innerPrecise), (int64_t, sparseMode), (int64_t, outDtype),
      (int64_t, pseType), (char*, softmaxOutLayout), (int64_t, seed), (int64_t, offset),
      (Out, softmaxMaxOut), (Out, softmaxSumOut), (OptionalOut, softmaxOutOut),
      (Out, attentionOutOut)) {
  require_absent({{"paddingMaskOptional", given(paddingMaskOptional)},
                  {"queryRopeOptional", given(queryRopeOptional)},
                  {"keyRopeOptional", given(keyRopeOptional)},
                  {"dScaleQOptional", given(dScaleQOptional)},
                  {"dScaleKOptional", given(dScaleKOptional)},
                  {"dScaleVOptional", given(dScaleVOptional)},
                  {"sinkOptional", given(sinkOptional)},
                  {"prefixOptional", given(prefixOptional)},
                  {"actualSeqQLenOptional", given(actualSeqQLenOptional)},
                  {"actualSeqKvLenOptional", given(actualSeqKvLenOptional)},
                  {"qStartIdxOptional", given(qStartIdxOptional)},
                  {"kvStartIdxOptional", given(kvStartIdxOptional)},
                  {"softmaxOutLayout", given(softmaxOutLayout)}});
  require_plain(query, realShiftOptional, pseType, outDtype);
  forward(query, key, value,
          {realShiftOptional, dropMaskOptional, attenMaskOptional, scaleValue, keepProb, preTokens,
           nextTokens, headNum, inputLayout, sparseMode, seed, offset},
          softmaxMaxOut, softmaxSumOut, attentionOutOut);
}
ACLNN(FlashAttentionScoreGradV4, (In, query), (In, keyIn), (In, value), (In, dy),
      (OptionalIn, pseShiftOptional), (OptionalIn, dropMaskOptional),
      (OptionalIn, paddingMaskOptional), (OptionalIn, attenMaskOptional),
      (OptionalIn, softmaxMaxOptional), (OptionalIn, softmaxSumOptional),
      (OptionalIn, softmaxInOptional), (OptionalIn, attentionInOptional),
      (OptionalIn, sinkInOptional), (OptionalIn, queryRopeOptional), (OptionalIn, keyRopeOptional),
      (OptionalIn, dScaleQOptional), (OptionalIn, dScaleKOptional), (OptionalIn, dScaleVOptional),
      (OptionalIn, dScaleDyOptional), (OptionalIn, dScaleOOptional), (OptionalInts, prefixOptional),
      (OptionalInts, actualSeqQLenOptional), (OptionalInts, actualSeqKvLenOptional),
      (OptionalInts, qStartIdxOptional), (OptionalInts, kvStartIdxOptional), (double, scaleValue),
      (double, keepProb), (int64_t, preTokens), (int64_t, nextTokens), (int64_t, headNum),
      (char*, inputLayout), (char*, softmaxInLayout), (int64_t, innerPrecise),
      (int64_t, sparseMode), (int64_t, pseType), (int64_t, seed), (int64_t, offset),
      (int64_t, outDtype), (Out, dqOut), (Out, dkOut), (Out, dvOut), (OptionalOut, dqRopeOut),
      (OptionalOut, dkRopeOut), (OptionalOut, dpseOut), (OptionalOut, dsinkOut)) {
  require_absent({{"paddingMaskOptional", given(paddingMaskOptional)},
                  {"sinkInOptional", given(sinkInOptional)},
                  {"queryRopeOptional", given(queryRopeOptional)},
                  {"keyRopeOptional", given(keyRopeOptional)},
                  {"dScaleQOptional", given(dScaleQOptional)},
                  {"dScaleKOptional", given(dScaleKOptional)},
                  {"dScaleVOptional", given(dScaleVOptional)},
                  {"dScaleDyOptional", given(dScaleDyOptional)},
                  {"dScaleOOptional", given(dScaleOOptional)},
                  {"prefixOptional", given(prefixOptional)},
                  {"actualSeqQLenOptional", given(actualSeqQLenOptional)},
                  {"actualSeqKvLenOptional", given(actualSeqKvLenOptional)},
                  {"qStartIdxOptional", given(qStartIdxOptional)},
                  {"kvStartIdxOptional", given(kvStartIdxOptional)},
                  {"softmaxInLayout", given(softmaxInLayout)}});
  require_plain(query, pseShiftOptional, pseType, outDtype);
  backward(query, keyIn, value, dy,
           {pseShiftOptional, dropMaskOptional, attenMaskOptional, scaleValue, keepProb, preTokens,
            nextTokens, headNum, inputLayout, sparseMode, seed, offset},
           dqOut, dkOut, dvOut, dpseOut);
}
