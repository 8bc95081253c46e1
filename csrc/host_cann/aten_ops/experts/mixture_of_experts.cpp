// Mixtures of experts: choosing experts for tokens, sorting tokens by expert and summing up what
// the experts return. A row that was dropped counts as zeros.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

void expect_range(const char* name, int64_t value, int64_t low, int64_t high) {
  TORCH_CHECK(value >= low && value <= high, name, " is ", value, ", expected ", low, " to ", high);
}

// How many of `count` rows there are for each of the tokens.
int64_t rows_per_token(const char* name, int64_t count, int64_t tokens) {
  TORCH_CHECK(tokens > 0 ? count % tokens == 0 : count == 0, name, " has ", count,
              " elements, expected a multiple of ", tokens, ", the number of tokens");
  return tokens > 0 ? count / tokens : 1;
}

at::Tensor is_place(const at::Tensor& places, int64_t limit) {
  return (places >= 0) & (places < limit);
}

// The rows at some places; zeros where a place is none of theirs.
at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& places) {
  const int64_t limit = rows.size(0);
  if (limit == 0) return at::zeros({places.size(0), rows.size(1)}, rows.options());
  const at::Tensor valid = is_place(places, limit);
  return rows.index_select(0, at::where(valid, places, 0)).masked_fill(~valid.unsqueeze(1), 0);
}

// The reverse: `count` rows, of which those at the places are given and the others zeros.
at::Tensor placed(const at::Tensor& rows, const at::Tensor& places, int64_t count) {
  const at::Tensor row = at::where(is_place(places, count), places, count);
  const at::Tensor all = at::zeros({count + 1, rows.size(1)}, rows.options());
  return all.index_copy(0, row, rows).narrow(0, 0, count);
}

// Tokens of which each has several experts, sorted by expert.
struct Sorted {
  Sorted(const at::Tensor& of_tokens) {
    std::tie(experts, order) = at::sort(of_tokens.flatten(), /*stable=*/true, 0, false);
    places = at::argsort(order, /*stable=*/true, 0, false);
  }
  at::Tensor experts;  // in order
  at::Tensor order;    // which of the pairs of token and expert stands at a place
  at::Tensor places;   // where a pair stands
};

int64_t experts_per_token(const char* name, const at::Tensor& experts, const at::Tensor& tokens) {
  const int64_t count = experts.dim() == 1 ? 1 : experts.size(1);
  TORCH_CHECK(experts.size(0) == tokens.size(0) && count > 0, name, " has shape ", experts.sizes(),
              ", expected ", tokens.size(0), " rows, as there are tokens, of 1 or more");
  return count;
}

void refuse_padding(bool padded) {
  TORCH_CHECK(!padded, "paddedMode is true, expected false, the only mode supported");
}

// Which groups of experts may be chosen from: true for all experts of the best ones.
at::Tensor best_groups(const at::Tensor& grouped, int64_t count, bool by_two) {
  const at::Tensor scores =
      by_two ? std::get<0>(at::topk(grouped, 2, -1)).sum(-1) : grouped.amax(-1);
  const at::Tensor ranks =
      at::argsort(at::argsort(scores, /*stable=*/true, -1, /*descending=*/true),
                  /*stable=*/true, -1, false);
  return (ranks < count).unsqueeze(-1).expand_as(grouped);
}

}  // namespace

// biasOptional decides which experts are chosen, but is no part of their scores. Scores of sigmoids
// are divided by their sum; those of a softmax are not.
ACLNN(MoeGatingTopK, (FloatIn, x), (OptionalIn, biasOptional), (int64_t, k), (int64_t, kGroup),
      (int64_t, groupCount), (int64_t, groupSelectMode), (int64_t, renorm), (int64_t, normType),
      (bool, outFlag), (double, routedScalingFactor), (double, eps), (Out, yOut),
      (Out, expertIdxOut), (OptionalOut, outOut)) {
  TORCH_CHECK(x.dim() > 0, "x has no dimensions, expected 1 or more");
  const int64_t experts = x.size(-1);
  expect_range("the last dimension of x", experts, 1, 2048);
  expect_range("groupCount", groupCount, 1, experts);
  const int64_t members = experts / groupCount.value();
  TORCH_CHECK(experts % groupCount.value() == 0 && members > 2, "groupCount is ",
              groupCount.value(), ", expected groups of the ", experts,
              " experts that have one size, 3 or more");
  constexpr int64_t kMostMembers = 2048;
  TORCH_CHECK((members + 31) / 32 * 32 * groupCount.value() <= kMostMembers, "groupCount is ",
              groupCount.value(), ", expected groups of the ", experts,
              " experts that have at most ", kMostMembers,
              " members together where each is rounded up to 32");
  expect_range("kGroup", kGroup, 1, groupCount);
  expect_range("k", k, 1, kGroup.value() * members);
  expect_range("groupSelectMode", groupSelectMode, 0, 1);
  expect_range("renorm", renorm, 0, 0);
  expect_range("normType", normType, 0, 1);
  expect_dtype("yOut", yOut, x.scalar_type());
  const at::Tensor scores = normType == 1 ? at::sigmoid(wide(x)) : at::softmax(wide(x), -1);
  at::Tensor ranked = scores;
  if (biasOptional) {
    expect_shape("biasOptional", *biasOptional, {experts});
    expect_dtype("biasOptional", *biasOptional, x.scalar_type());
    ranked = ranked + wide(*biasOptional);
  }
  const at::Tensor grouped = ranked.unflatten(-1, {groupCount.value(), members});
  const at::Tensor chosen = grouped
                                .masked_fill(~best_groups(grouped, kGroup, groupSelectMode == 1),
                                             -std::numeric_limits<double>::infinity())
                                .flatten(-2);
  const at::Tensor indices =
      at::argsort(chosen, /*stable=*/true, -1, /*descending=*/true).narrow(-1, 0, k);
  at::Tensor result = scores.gather(-1, indices);
  if (normType == 1) result = result / (result.sum(-1, /*keepdim=*/true) + eps.value());
  yOut = result * routedScalingFactor.value();
  expertIdxOut = indices;
  TORCH_CHECK(!outFlag || outOut, "outFlag is true and outOut is null, expected a tensor");
  if (outFlag) outOut = scores;
}

ACLNN(MoeTokenPermute, (In, tokens), (IndexIn, indices), (int64_t, numOutTokens),
      (bool, paddedMode), (Out, permuteTokensOut), (Out, sortedIndicesOut)) {
  refuse_padding(paddedMode);
  expect_dims("tokens", tokens, 2);
  TORCH_CHECK(indices.dim() == 1 || indices.dim() == 2, "indices has ", indices.dim(),
              " dimensions, expected 1 or 2");
  expect_dtype("permuteTokensOut", permuteTokensOut, tokens.scalar_type());
  const int64_t count = experts_per_token("indices", indices, tokens);
  const int64_t all = indices.numel();
  const int64_t wanted = numOutTokens > 0 ? std::min(numOutTokens.value(), all)
                                          : std::max<int64_t>(numOutTokens.value() + all, 0);
  const Sorted sorted(indices);
  const at::Tensor from = sorted.order.narrow(0, 0, wanted).floor_divide(count);
  permuteTokensOut = moved(tokens, [&](const at::Tensor& x) { return x.index_select(0, from); });
  sortedIndicesOut = sorted.places;
}
// Tokens that were dropped are those whose places lie behind the last row.
ACLNN(MoeTokenPermuteGrad, (FloatIn, permutedOutputGrad), (IndexIn, sortedIndices),
      (int64_t, numTopk), (bool, paddedMode), (Out, out)) {
  refuse_padding(paddedMode);
  expect_dims("permutedOutputGrad", permutedOutputGrad, 2);
  expect_dims("sortedIndices", sortedIndices, 1);
  expect_dtype("out", out, permutedOutputGrad.scalar_type());
  TORCH_CHECK(numTopk > 0 && sortedIndices.numel() % numTopk.value() == 0, "numTopk is ",
              numTopk.value(), ", expected a divisor of the ", sortedIndices.numel(),
              " elements of sortedIndices");
  check_bounds("sortedIndices", sortedIndices, sortedIndices.numel());
  const at::Tensor rows = rows_at(wide(permutedOutputGrad), sortedIndices);
  out = rows.unflatten(0, {sortedIndices.numel() / numTopk.value(), numTopk.value()}).sum(1);
}

// Without probsOptional every token has one row.
ACLNN(MoeTokenUnpermute, (FloatIn, permutedTokens), (IndexIn, sortedIndices),
      (OptionalIn, probsOptional), (bool, paddedMode), (OptionalInts, restoreShapeOptional),
      (Out, out)) {
  refuse_padding(paddedMode);
  TORCH_CHECK(!restoreShapeOptional, "restoreShapeOptional is a list, expected null");
  expect_dims("permutedTokens", permutedTokens, 2);
  expect_dims("sortedIndices", sortedIndices, 1);
  expect_dtype("out", out, permutedTokens.scalar_type());
  check_bounds("sortedIndices", sortedIndices, sortedIndices.numel());
  const at::Tensor rows = rows_at(wide(permutedTokens), sortedIndices);
  if (!probsOptional) {
    out = rows;
    return;
  }
  expect_dims("probsOptional", *probsOptional, 2);
  TORCH_CHECK(probsOptional->numel() == sortedIndices.numel(), "probsOptional has ",
              probsOptional->numel(), " elements, expected ", sortedIndices.numel(),
              " as sortedIndices has");
  out = (rows.unflatten(0, probsOptional->sizes()) * wide(*probsOptional).unsqueeze(-1)).sum(1);
}
ACLNN(MoeTokenUnpermuteGrad, (FloatIn, permuteTokens), (FloatIn, unpermutedTokensGrad),
      (IndexIn, sortedIndices), (OptionalIn, probsOptional), (bool, paddedMode),
      (OptionalInts, restoreShapeOptional), (Out, permutedTokensGradOut),
      (OptionalOut, probsGradOut)) {
  refuse_padding(paddedMode);
  TORCH_CHECK(!restoreShapeOptional, "restoreShapeOptional is a list, expected null");
  expect_dims("permuteTokens", permuteTokens, 2);
  expect_dims("unpermutedTokensGrad", unpermutedTokensGrad, 2);
  expect_dims("sortedIndices", sortedIndices, 1);
  expect_dtype("unpermutedTokensGrad", unpermutedTokensGrad, permuteTokens.scalar_type());
  expect_dtype("permutedTokensGradOut", permutedTokensGradOut, permuteTokens.scalar_type());
  check_bounds("sortedIndices", sortedIndices, sortedIndices.numel());
  const int64_t tokens = unpermutedTokensGrad.size(0);
  const int64_t hidden = permuteTokens.size(1);
  expect_shape("unpermutedTokensGrad", unpermutedTokensGrad, {tokens, hidden});
  const int64_t count =
      probsOptional ? rows_per_token("sortedIndices", sortedIndices.numel(), tokens) : 1;
  TORCH_CHECK(count * tokens == sortedIndices.numel(), "sortedIndices has ", sortedIndices.numel(),
              " elements, expected ", count * tokens);
  at::Tensor rows = wide(unpermutedTokensGrad).unsqueeze(1);
  at::Tensor probs_gradient;
  if (probsOptional) {
    expect_shape("probsOptional", *probsOptional, {tokens, count});
    const at::Tensor results = rows_at(wide(permuteTokens), sortedIndices);
    probs_gradient = (results.unflatten(0, {tokens, count}) * rows).sum(-1);
    rows = rows * wide(*probsOptional).unsqueeze(-1);
  }
  permutedTokensGradOut = placed(rows.flatten(0, 1), sortedIndices, permuteTokens.size(0));
  if (probsOptional) probsGradOut = probs_gradient;
}

namespace {

// Places are INT32.
constexpr int64_t kMostExperts = std::numeric_limits<int32_t>::max();

// What aclnnMoeInitRoutingV2 is asked for.
struct Routing {
  int64_t active, capacity, experts;
  bool drops;

  void check(const at::Tensor& x, int64_t count_mode, int64_t drop_mode) const {
    expect_range("dropPadModeOptional", drop_mode, 0, 1);
    expect_range("expertTokensCountOrCumsumFlagOptional", count_mode, 0, 2);
    TORCH_CHECK(active >= 0 && capacity >= 0 && experts >= 0 && experts <= kMostExperts,
                "activeNumOptional is ", active, ", expertCapacityOptional is ", capacity,
                " and expertNumOptional is ", experts, ", expected 0 or more");
    TORCH_CHECK(count_mode == 0 || experts > 0,
                "expertNumOptional is 0, expected the number of experts to count the tokens of");
    TORCH_CHECK(!drops || (experts > 0 && capacity > 0), "expertNumOptional is ", experts,
                " and expertCapacityOptional is ", capacity, ", expected 1 or more of both");
    TORCH_CHECK(!drops || capacity <= x.size(0), "expertCapacityOptional is ", capacity,
                ", expected at most ", x.size(0), ", the number of tokens");
  }
};

at::Tensor tokens_of_experts(const Sorted& sorted, int64_t experts) {
  const at::Tensor none = at::zeros({experts}, sorted.experts.options());
  return none.scatter_add(0, sorted.experts, at::ones_like(sorted.experts));
}

// The places of the sorted pairs where every expert has room for `capacity`; -1 for the others.
at::Tensor places_within(const Sorted& sorted, int64_t experts, int64_t capacity) {
  const at::Tensor counts = tokens_of_experts(sorted, experts);
  const at::Tensor firsts = counts.cumsum(0) - counts;
  const at::Tensor rank = at::arange(sorted.experts.size(0), sorted.experts.options()) -
                          firsts.index_select(0, sorted.experts);
  return at::where(rank < capacity, sorted.experts * capacity + rank, -1);
}

}  // namespace

// Token i stands with its first expert at expandedRowIdxOut[i * k], and so on.
ACLNN(MoeInitRoutingV2, (In, x), (IndexIn, expertIdx), (int64_t, activeNumOptional),
      (int64_t, expertCapacityOptional), (int64_t, expertNumOptional),
      (int64_t, dropPadModeOptional), (int64_t, expertTokensCountOrCumsumFlagOptional),
      (bool, expertTokensBeforeCapacityFlagOptional), (Out, expandedXOut), (Out, expandedRowIdxOut),
      (OptionalOut, expertTokensCountOrCumsumOutOptional),
      (OptionalOut, expertTokensBeforeCapacityOutOptional)) {
  const Routing routing{activeNumOptional, expertCapacityOptional, expertNumOptional,
                        dropPadModeOptional == 1};
  expect_dims("x", x, 2);
  expect_dims("expertIdx", expertIdx, 2);
  routing.check(x, expertTokensCountOrCumsumFlagOptional, dropPadModeOptional);
  expect_dtype("expandedXOut", expandedXOut, x.scalar_type());
  const int64_t count = experts_per_token("expertIdx", expertIdx, x);
  if (routing.experts > 0) check_bounds("expertIdx", expertIdx, routing.experts);
  const Sorted sorted(expertIdx);
  const at::Tensor from = sorted.order.floor_divide(count);
  if (!routing.drops) {
    const int64_t all = expertIdx.numel();
    const int64_t rows = routing.active > 0 ? std::min(routing.active, all) : all;
    expandedXOut = moved(
        x, [&](const at::Tensor& each) { return each.index_select(0, from.narrow(0, 0, rows)); });
    expandedRowIdxOut = sorted.places;
    const int64_t mode = expertTokensCountOrCumsumFlagOptional;
    if (mode == 0 || !expertTokensCountOrCumsumOutOptional) return;
    expect_shape("expertTokensCountOrCumsumOutOptional", *expertTokensCountOrCumsumOutOptional,
                 {routing.experts});
    const at::Tensor counts = tokens_of_experts(sorted, routing.experts);
    expertTokensCountOrCumsumOutOptional = mode == 1 ? counts.cumsum(0) : counts;
    return;
  }
  // The output's shape first: it bounds the sizes that follow.
  expect_shape("expandedXOut", expandedXOut, {routing.experts, routing.capacity, x.size(1)});
  const at::Tensor places = places_within(sorted, routing.experts, routing.capacity);
  expandedXOut = moved(x, [&](const at::Tensor& each) {
    return placed(each.index_select(0, from), places, routing.experts * routing.capacity)
        .unflatten(0, {routing.experts, routing.capacity});
  });
  expandedRowIdxOut = places.index_select(0, sorted.places);
  if (expertTokensBeforeCapacityFlagOptional) {
    expertTokensBeforeCapacityOutOptional = tokens_of_experts(sorted, routing.experts);
  }
}
ACLNN(MoeInitRoutingV2Grad, (FloatIn, gradExpandedX), (IndexIn, expandedRowIdx), (int64_t, topK),
      (int64_t, dropPadMode), (int64_t, activeNum), (Out, out)) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  TORCH_CHECK(activeNum >= 0, "activeNum is ", activeNum.value(), ", expected 0 or more");
  expect_dims("gradExpandedX", gradExpandedX, dropPadMode == 1 ? 3 : 2);
  expect_dims("expandedRowIdx", expandedRowIdx, 1);
  expect_dtype("out", out, gradExpandedX.scalar_type());
  const int64_t all = expandedRowIdx.numel();
  TORCH_CHECK(topK > 0 && all % topK.value() == 0, "topK is ", topK.value(),
              ", expected a divisor of the ", all, " elements of expandedRowIdx");
  at::Tensor rows = wide(gradExpandedX);
  if (dropPadMode == 1) {
    rows = rows.flatten(0, 1);
    check_bounds("expandedRowIdx + 1", expandedRowIdx + 1, rows.size(0) + 1);
  } else {
    const int64_t count = activeNum > 0 ? std::min(activeNum.value(), all) : all;
    TORCH_CHECK(rows.size(0) == count, "gradExpandedX has ", rows.size(0), " rows, expected ",
                count);
    check_bounds("expandedRowIdx", expandedRowIdx, all);
  }
  out = rows_at(rows, expandedRowIdx).unflatten(0, {all / topK.value(), topK.value()}).sum(1);
}

// In the modes 1 and 3 expandedX is [experts, capacity, hidden] and dropped rows have the place -1;
// in the modes 0 and 1 expandedRowIdx has all tokens' first places, then all second ones. A dropped
// row adds no bias.
ACLNN(MoeFinalizeRoutingV2, (FloatIn, expandedX), (IndexIn, expandedRowIdx),
      (OptionalIn, x1Optional), (OptionalIn, x2Optional), (OptionalIn, biasOptional),
      (OptionalIn, scalesOptional), (OptionalIn, expertIdxOptional), (int64_t, dropPadMode),
      (Out, out)) {
  expect_range("dropPadMode", dropPadMode, 0, 3);
  const bool drops = dropPadMode == 1 || dropPadMode == 3;
  expect_dims("expandedX", expandedX, drops ? 3 : 2);
  expect_dims("expandedRowIdx", expandedRowIdx, 1);
  expect_dims("out", out, 2);
  expect_dtype("out", out, expandedX.scalar_type());
  const int64_t tokens = out->size(0);
  const int64_t count = rows_per_token("expandedRowIdx", expandedRowIdx.numel(), tokens);
  const at::Tensor rows = drops ? wide(expandedX).flatten(0, 1) : wide(expandedX);
  TORCH_CHECK(drops || rows.size(0) == expandedRowIdx.numel(), "expandedX has ", rows.size(0),
              " rows, expected ", expandedRowIdx.numel(), " as expandedRowIdx has elements");
  check_bounds(drops ? "expandedRowIdx + 1" : "expandedRowIdx",
               drops ? expandedRowIdx + 1 : expandedRowIdx, rows.size(0) + (drops ? 1 : 0));
  const at::Tensor places = dropPadMode < 2 ? expandedRowIdx.view({count, tokens}).t()
                                            : expandedRowIdx.view({tokens, count});
  at::Tensor results = rows_at(rows, places.flatten()).unflatten(0, {tokens, count});
  if (biasOptional) {
    TORCH_CHECK(expertIdxOptional,
                "expertIdxOptional is null, expected a tensor as biasOptional is");
    expect_dims("biasOptional", *biasOptional, 2);
    expect_shape("expertIdxOptional", *expertIdxOptional, {tokens, count});
    const at::Tensor experts = expertIdxOptional->to(at::kLong).flatten();
    check_bounds("expertIdxOptional", experts, biasOptional->size(0));
    const at::Tensor bias = rows_at(wide(*biasOptional), experts).unflatten(0, {tokens, count});
    results = results + bias.masked_fill((places < 0).unsqueeze(-1), 0);
  }
  if (scalesOptional) {
    expect_shape("scalesOptional", *scalesOptional, {tokens, count});
    results = results * wide(*scalesOptional).unsqueeze(-1);
  }
  at::Tensor sum = results.sum(1);
  for (const auto& addend : {x1Optional, x2Optional}) {
    if (!addend) continue;
    expect_shape("x1Optional or x2Optional", *addend, sum.sizes());
    sum = sum + wide(*addend);
  }
  out = sum;
}
ACLNN(MoeFinalizeRoutingV2Grad, (FloatIn, gradY), (IndexIn, expandedRowIdx),
      (OptionalIn, expandedXOptional), (OptionalIn, scalesOptional),
      (OptionalIn, expertIdxOptional), (OptionalIn, biasOptional), (int64_t, dropPadMode),
      (int64_t, activeNum), (int64_t, expertNum), (int64_t, expertCapacity),
      (Out, gradExpandedXOut), (OptionalOut, gradScalesOut)) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  expect_dims("gradY", gradY, 2);
  expect_dims("expandedRowIdx", expandedRowIdx, 1);
  expect_dtype("gradExpandedXOut", gradExpandedXOut, gradY.scalar_type());
  const int64_t tokens = gradY.size(0), hidden = gradY.size(1), all = expandedRowIdx.numel();
  const int64_t count = rows_per_token("expandedRowIdx", all, tokens);
  const bool drops = dropPadMode == 1;
  if (drops) {
    expect_range("expertNum", expertNum, 1, kMostExperts);
    expect_range("expertCapacity", expertCapacity, 1, kMostExperts);
  }
  const std::vector<int64_t> shape =
      drops ? std::vector<int64_t>{expertNum, expertCapacity, hidden}
            : std::vector<int64_t>{activeNum > 0 ? std::min(activeNum.value(), all) : all, hidden};
  expect_shape("gradExpandedXOut", gradExpandedXOut, shape);
  const int64_t rows = drops ? shape[0] * shape[1] : shape[0];
  check_bounds(drops ? "expandedRowIdx + 1" : "expandedRowIdx",
               drops ? expandedRowIdx + 1 : expandedRowIdx, drops ? rows + 1 : all);
  const at::Tensor gradient = wide(gradY).unsqueeze(1).expand({tokens, count, hidden});
  if (!scalesOptional) {
    gradExpandedXOut = placed(gradient.flatten(0, 1), expandedRowIdx, rows).view(shape);
    return;
  }
  expect_shape("scalesOptional", *scalesOptional, {tokens, count});
  TORCH_CHECK(expandedXOptional,
              "expandedXOptional is null, expected a tensor as scalesOptional is");
  expect_shape("expandedXOptional", *expandedXOptional, shape);
  const at::Tensor scaled = gradient * wide(*scalesOptional).unsqueeze(-1);
  at::Tensor results = rows_at(wide(*expandedXOptional).reshape({rows, hidden}), expandedRowIdx);
  if (biasOptional) {
    TORCH_CHECK(expertIdxOptional,
                "expertIdxOptional is null, expected a tensor as biasOptional is");
    expect_shape("expertIdxOptional", *expertIdxOptional, {tokens, count});
    const at::Tensor experts = expertIdxOptional->to(at::kLong).flatten();
    expect_shape("biasOptional", *biasOptional, {biasOptional->size(0), hidden});
    check_bounds("expertIdxOptional", experts, biasOptional->size(0));
    results = results + rows_at(wide(*biasOptional), experts);
  }
  const at::Tensor scales_gradient = (results.unflatten(0, {tokens, count}) * gradient).sum(-1);
  gradExpandedXOut = placed(scaled.flatten(0, 1), expandedRowIdx, rows).view(shape);
  gradScalesOut = scales_gradient;
}
