// Permutes tokens by a routing map, which marks the experts of every token, and back. Each token
// has the same number of experts, or ("drop and pad") each expert has the same number of tokens,
// its capacity.

#include "cann/rows/experts/experts.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_routing_maps_rows {

namespace {

constexpr int64_t kMostExpertsOfToken = 512;

// The map as INT8, 1 for the experts of a token.
at::Tensor marks(const char* name, const at::Tensor& map) {
  expect_dims(name, map, 2);
  expect_dtype(name, map, {at::kChar, at::kBool});
  constexpr int64_t kLimit = 16777215;
  EXPECT(map.size(0) < kLimit && map.size(1) < kLimit, name, " has shape ", map.sizes(),
         ", expected sizes below ", kLimit);
  return map.ne(0).to(at::kChar);
}

// The number of rows of each of `parts` parts of equal size.
int64_t share(int64_t rows, int64_t parts) {
  return parts > 0 ? rows / parts : 0;
}
// As share(), for the rows of an argument, which must be a multiple of the parts.
int64_t share(const char* name, int64_t rows, int64_t parts) {
  EXPECT(parts > 0 ? rows % parts == 0 : rows == 0, name, " has ", rows,
         " rows, expected a multiple of ", parts);
  return share(rows, parts);
}

// The positions of the first `count` marks that are 1. If there are fewer, as in the vendor's
// sample, positions of zeros follow.
at::Tensor marked(const at::Tensor& marks, int64_t count) {
  return at::argsort(marks.flatten(), /*stable=*/true, 0, /*descending=*/true).narrow(0, 0, count);
}

// The positions of the marked (expert, token) pairs among all pairs in the order of experts, then
// tokens: `count` of them for each token, as the argument `name` has it.
at::Tensor marked_pairs(const at::Tensor& marks, const char* name, int64_t count) {
  const int64_t most = std::min(kMostExpertsOfToken, marks.size(1));
  EXPECT(count <= most, name, " gives a token ", count, " experts, expected at most ", most);
  return marked(marks.t(), count * marks.size(0));
}

// Converts token numbers, `capacity` for each expert in turn, to positions in a (tokens, experts)
// matrix.
at::Tensor pairs_of(const at::Tensor& tokens, int64_t capacity, int64_t experts) {
  const at::Tensor row = at::arange(tokens.size(0), tokens.options());
  return tokens * experts + row.floor_divide(std::max<int64_t>(capacity, 1));
}

// Sums the rows of each token.
at::Tensor summed(const at::Tensor& rows, const at::Tensor& tokens, int64_t count) {
  return at::zeros({count, rows.size(1)}, rows.options()).index_add(0, tokens, rows);
}

}  // namespace

// An expert with more tokens than its capacity keeps the first ones; one with fewer is filled with
// other tokens.
ACLNN(MoeTokenPermuteWithRoutingMap, (Floating<In>, tokens), (In, routingMap),
      (Optional<In>, probsOptional), (int64_t, numOutTokens), (bool, dropAndPad),
      (SameDtype<Out>, permuteTokensOut, "tokens"), (Optional<Out>, permuteProbsOutOptional),
      (Out, sortedIndicesOut)) {
  expect_dims("tokens", tokens, 2);
  const at::Tensor map = marks("routingMap", routingMap);
  const int64_t count = map.size(0), experts = map.size(1);
  EXPECT(tokens.size(0) == count, "routingMap has ", count, " rows, expected ", tokens.size(0),
         " as tokens has");
  expect_range("numOutTokens", numOutTokens, 0, map.numel());
  expect_dtype("sortedIndicesOut", sortedIndicesOut, at::kInt);
  EXPECT(probsOptional || !permuteProbsOutOptional,
         "probsOptional is null, expected a tensor as permuteProbsOutOptional is");
  if (probsOptional) expect_like("probsOptional", *probsOptional, map.to(tokens.scalar_type()));
  at::Tensor pairs, order;
  if (dropAndPad) {
    const int64_t capacity = share(numOutTokens, experts);
    order = at::argsort(map.t(), /*stable=*/true, 1, /*descending=*/true)
                .narrow(1, 0, capacity)
                .flatten();
    const at::Tensor expert = at::arange(experts, order.options()).repeat_interleave(capacity);
    pairs = expert * count + order;
    permuteTokensOut = tokens.index_select(0, order);
  } else {
    pairs = marked_pairs(map, "numOutTokens", share(numOutTokens, count));
    const at::Tensor token = pairs.remainder(std::max<int64_t>(count, 1));
    permuteTokensOut = tokens.index_select(0, token);
    order = at::argsort(token, /*stable=*/true, 0, /*descending=*/false);
  }
  sortedIndicesOut = order;
  if (!permuteProbsOutOptional) return;
  expect_dtype(*permuteProbsOutOptional, tokens);
  permuteProbsOutOptional = probsOptional->t().flatten().index_select(0, pairs);
}

// Behaviour of MoeTokenUnpermuteWithRoutingMap, MoeTokenPermuteWithRoutingMapGrad: Without padding,
// the rows for indices out of range are zeros; in the first function, so are rows of probability 0.
// There, a probability belongs to an element of sortedIndices, as in the kernels, and permuteProbs
// is in the order of its document. With padding, an index out of range is 507015.
ACLNN(MoeTokenPermuteWithRoutingMapGrad, (Floating<In>, permutedTokenOutputGrad),
      (Optional<In>, permutedProbsOutputGradOptional), (IndexIn, sortedIndices),
      (Optional<In>, routingMapOptional), (int64_t, numExperts), (int64_t, tokensNum),
      (bool, dropAndPad), (SameDtype<Out>, tokensGradOut, "permutedTokenOutputGrad"),
      (Optional<Out>, probsGradOutOptional)) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  expect_range("numExperts", numExperts, 1, kMost);
  expect_range("tokensNum", tokensNum, 1, kMost);
  expect_dims("permutedTokenOutputGrad", permutedTokenOutputGrad, 2);
  const int64_t rows = permutedTokenOutputGrad.size(0);
  expect_shape("sortedIndices", sortedIndices, {rows});
  expect_shape("tokensGradOut", tokensGradOut, {tokensNum, permutedTokenOutputGrad.size(1)});
  const int64_t parts = dropAndPad ? numExperts.value() : tokensNum.value();
  const int64_t each = share("permutedTokenOutputGrad", rows, parts);
  const at::Tensor gradient = wide(permutedTokenOutputGrad);
  if (dropAndPad) {
    check_bounds("sortedIndices", sortedIndices, tokensNum);
    tokensGradOut = summed(gradient, sortedIndices, tokensNum);
  } else {
    // A position that is out of range belongs to an expert that the token does not have.
    tokensGradOut = gather_rows(gradient, sortedIndices).unflatten(0, {tokensNum, each}).sum(1);
  }
  if (!permutedProbsOutputGradOptional) return;
  expect_shape("permutedProbsOutputGradOptional", *permutedProbsOutputGradOptional, {rows});
  expect_dtype("permutedProbsOutputGradOptional", *permutedProbsOutputGradOptional,
               permutedTokenOutputGrad);
  EXPECT(routingMapOptional,
         "routingMapOptional is null, expected a tensor as permutedProbsOutputGradOptional is");
  expect_shape("routingMapOptional", *routingMapOptional, {tokensNum, numExperts});
  if (!probsGradOutOptional) return;
  expect_dtype(*probsGradOutOptional, permutedTokenOutputGrad);
  expect_shape("probsGradOutOptional", *probsGradOutOptional, {tokensNum, numExperts});
  const at::Tensor map = marks("routingMapOptional", *routingMapOptional);
  const at::Tensor& by_pair = *permutedProbsOutputGradOptional;
  const at::Tensor none = at::zeros({map.numel()}, by_pair.options());
  if (dropAndPad) {
    const at::Tensor pairs = pairs_of(sortedIndices, each, numExperts);
    probsGradOutOptional = none.scatter(0, pairs, by_pair).view(map.sizes());
  } else {
    const at::Tensor pairs = marked_pairs(map, "permutedTokenOutputGrad", each);
    probsGradOutOptional =
        none.scatter(0, pairs, by_pair).view({numExperts, tokensNum}).t().contiguous();
  }
}

// outIndex and permuteTokenId are defined in the padded mode only; otherwise they are not written.
// There the positions in sortedIndices, and the probabilities, are ordered by token, then by
// expert. Positions out of range, and those with probability 0, are skipped.
ACLNN(MoeTokenUnpermuteWithRoutingMap, (Floating<In>, permutedTokens), (IndexIn, sortedIndices),
      (Optional<In>, routingMapOptional),
      (SameDtype<Optional<In>>, probsOptional, "permutedTokens"), (bool, paddedMode),
      (Optional<Ints>, restoreShapeOptional), (SameDtype<Out>, unpermutedTokens, "permutedTokens"),
      (Optional<Out>, outIndex), (Optional<Out>, permuteTokenId), (Optional<Out>, permuteProbs)) {
  expect_dims("permutedTokens", permutedTokens, 2);
  const int64_t rows = permutedTokens.size(0);
  expect_shape("sortedIndices", sortedIndices, {rows});
  expect_dims("unpermutedTokens", unpermutedTokens, 2);
  EXPECT(probsOptional || restoreShapeOptional,
         "probsOptional and restoreShapeOptional are null, expected one of them");
  const int64_t tokens = unpermutedTokens->size(0);
  const std::vector<int64_t> shape{tokens, permutedTokens.size(1)};
  expect_shape("unpermutedTokens", unpermutedTokens, shape);
  EXPECT(!restoreShapeOptional || restoreShapeOptional->equals(shape), "restoreShapeOptional is ",
         restoreShapeOptional.value_or(shape), ", expected ", at::IntArrayRef(shape));
  int64_t parts = tokens;  // the number of parts with equal numbers of rows
  if (probsOptional) {
    expect_dims("probsOptional", *probsOptional, 2);
    expect_shape("probsOptional", *probsOptional, {tokens, probsOptional->size(1)});
    if (paddedMode) parts = probsOptional->size(1);
  }
  const int64_t each = !paddedMode || probsOptional ? share("permutedTokens", rows, parts) : 0;
  if (paddedMode) check_bounds("sortedIndices", sortedIndices, tokens);
  std::optional<at::Tensor> weights;  // of the rows; without padding, of the positions
  if (probsOptional) {
    at::Tensor permuted;
    if (paddedMode) {
      permuted = probsOptional->flatten().index_select(0, pairs_of(sortedIndices, each, parts));
      weights = permuted;
    } else {
      EXPECT(routingMapOptional,
             "routingMapOptional is null, expected a tensor as probsOptional is");
      expect_shape("routingMapOptional", *routingMapOptional, probsOptional->sizes());
      const at::Tensor map = marks("routingMapOptional", *routingMapOptional);
      permuted =
          probsOptional->t().flatten().index_select(0, marked_pairs(map, "permutedTokens", each));
      weights = probsOptional->flatten().index_select(0, marked(map, rows));
    }
    if (permuteProbs) expect_dtype(*permuteProbs, *probsOptional);
    permuteProbs = permuted;
  }
  at::Tensor values = wide(permutedTokens);
  if (!paddedMode) {
    const at::Tensor positions = positions_to_read(sortedIndices, weights);
    values = gather_rows(values, positions);
    if (weights)
      weights = weights->masked_fill(~is_in_range(positions, rows), 0);  // 0 * inf is NaN
  }
  if (weights) values = values * wide(*weights).unsqueeze(1);
  if (!paddedMode) {
    unpermutedTokens = values.unflatten(0, {tokens, each}).sum(1);
    return;
  }
  unpermutedTokens = summed(values, sortedIndices, tokens);
  const auto [token, index] = at::sort(sortedIndices, /*stable=*/true, 0, /*descending=*/false);
  outIndex = index;
  permuteTokenId = token;
}

// outIndex has the position of the row of a (token, expert) pair and permuteTokenId its token.
ACLNN(MoeTokenUnpermuteWithRoutingMapGrad, (Floating<In>, unpermutedTokensGrad),
      (IndexIn, outIndex), (IndexIn, permuteTokenId),
      (SameShape<Optional<In>>, routingMapOptional, "probsOptional"),
      (Optional<In>, permutedTokensOptional),
      (SameDtype<Optional<In>>, probsOptional, "unpermutedTokensGrad"), (bool, dropAndPad),
      (Optional<Ints>, restoreShapeOptional),
      (SameDtype<Out>, permutedTokensGradOut, "unpermutedTokensGrad"),
      (Like<Optional<Out>>, probsGradOutOptional, "probsOptional")) {
  expect_dims("unpermutedTokensGrad", unpermutedTokensGrad, 2);
  expect_dims("outIndex", outIndex, 1);
  const int64_t tokens = unpermutedTokensGrad.size(0), rows = outIndex.numel();
  expect_shape("permuteTokenId", permuteTokenId, {rows});
  expect_shape("permutedTokensGradOut", permutedTokensGradOut,
               {rows, unpermutedTokensGrad.size(1)});
  EXPECT(!dropAndPad || !restoreShapeOptional || restoreShapeOptional->empty() ||
             restoreShapeOptional->equals(unpermutedTokensGrad.sizes()),
         "restoreShapeOptional is ", restoreShapeOptional.value_or(unpermutedTokensGrad.sizes()),
         ", expected ", unpermutedTokensGrad.sizes());
  check_bounds("outIndex", outIndex, rows);
  check_bounds("permuteTokenId", permuteTokenId, tokens);
  const at::Tensor from = wide(unpermutedTokensGrad).index_select(0, permuteTokenId);
  const at::Tensor gradient = at::zeros_like(from).index_copy(0, outIndex, from);
  if (!probsOptional) {
    permutedTokensGradOut = gradient;
    return;
  }
  expect_dims("probsOptional", *probsOptional, 2);
  const int64_t experts = probsOptional->size(1);
  expect_shape("probsOptional", *probsOptional, {tokens, experts});
  EXPECT(routingMapOptional && permutedTokensOptional && probsGradOutOptional,
         "routingMapOptional, permutedTokensOptional or probsGradOutOptional is null, expected "
         "tensors as probsOptional is");
  expect_like("permutedTokensOptional", *permutedTokensOptional, permutedTokensGradOut);
  const at::Tensor map = marks("routingMapOptional", *routingMapOptional);
  const int64_t each = share("outIndex", rows, dropAndPad ? experts : tokens);
  const at::Tensor of_rows = (gradient * wide(*permutedTokensOptional)).sum(1);
  const at::Tensor none = at::zeros({map.numel()}, of_rows.options());
  if (dropAndPad) {
    EXPECT(each <= tokens, "outIndex gives an expert ", each, " tokens, expected at most ", tokens);
    const at::Tensor pairs =
        permuteTokenId * experts + outIndex.floor_divide(std::max<int64_t>(each, 1));
    const at::Tensor probs = wide(*probsOptional).flatten().index_select(0, pairs);
    const at::Tensor by_row = at::zeros_like(probs).index_copy(0, outIndex, probs);
    permutedTokensGradOut = gradient * by_row.unsqueeze(1);
    probsGradOutOptional =
        none.scatter(0, pairs, of_rows.index_select(0, outIndex)).view(map.sizes());
  } else {
    const at::Tensor pairs = marked_pairs(map, "outIndex", each);
    const at::Tensor probs = wide(*probsOptional).t().flatten().index_select(0, pairs);
    permutedTokensGradOut = gradient * probs.unsqueeze(1);
    probsGradOutOptional = none.scatter(0, pairs, of_rows).view({experts, tokens}).t();
  }
}

}  // namespace aclnn_host::experts_routing_maps_rows
