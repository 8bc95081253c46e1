// Permutes tokens so that those of one expert are consecutive, and back. If the experts are
// distributed among devices ("WithEp"), rows are those of a range of positions.

#include <array>

#include "cann/rows/experts/experts.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_token_permutation_rows {

namespace {

constexpr int64_t kMostExpertsOfToken = 512;

// restoreShapeOptional is read in the padded mode only; torch_npu passes it in this one, too.
void refuse_padding(bool padded) {
  EXPECT(!padded, "paddedMode is true, expected false, the only mode supported");
}

// Checks the tokens and returns the number of experts of each.
int64_t expect_permutable(const at::Tensor& tokens, const at::Tensor& indices, bool padded) {
  refuse_padding(padded);
  expect_dims("tokens", tokens, 2);
  expect_dims("indices", indices, 1, 2);
  return experts_per_token("indices", indices, tokens);
}

// The number of rows that are kept; a number that is not positive is added to the number of all
// rows.
int64_t rows_left(int64_t wanted, int64_t all) {
  return wanted > 0 ? std::min(wanted, all) : std::max<int64_t>(wanted + all, 0);
}

// The tokens of (token, expert) pairs.
at::Tensor tokens_of(const at::Tensor& tokens, const at::Tensor& pairs, int64_t count) {
  const at::Tensor from = pairs.floor_divide(count);
  return moved(tokens, [&](const at::Tensor& x) { return x.index_select(0, from); });
}

// aclnnMoeTokenPermute. `row` is the struct of a function.
template <class Row>
void permute(Row& row) {
  const int64_t count = expect_permutable(row.tokens, row.indices, row.paddedMode);
  const Sorted sorted(row.indices);
  const int64_t rows = rows_left(row.numOutTokens, row.indices.numel());
  row.permuteTokensOut = tokens_of(row.tokens, sorted.order.narrow(0, 0, rows), count);
  row.sortedIndicesOut = sorted.positions;
}

// The types of a quantMode of aclnnMoeTokenPermuteV2.
aclDataType type_of_mode(int64_t mode) {
  switch (mode) {
    case 2: return ACL_FLOAT8_E5M2;
    case 3: return ACL_FLOAT8_E4M3FN;
    default: return ACL_FLOAT4_E2M1;
  }
}

// Quantises rows in blocks of 32. Only the scales of FLOAT4 have a dimension of pairs.
void quantize_permuted(const at::Tensor& x, int64_t mode, StoredOutput& y, StoredOutput& scale) {
  const aclDataType dtype = type_of_mode(mode);
  expect_mx_source("tokens", x, /*may_be_float=*/false, 2, 2);
  expect_type(y, {dtype}, " as quantMode tells");
  expect_shape(y.name(), y, x.sizes());
  expect_even_for_float4("tokens", x, dtype);
  std::vector<int64_t> shape = mx_scale_shape(x, 1, kMxBlock);
  if (dtype != ACL_FLOAT4_E2M1) shape = {shape[0], 2 * shape[1]};
  expect_mx_scale(scale.name(), scale, scale.dtype(), shape);
  if (!y.is_written() || x.numel() == 0) return;
  const MxRule rule{.dtype = dtype, .rounding = "rint", .algorithm = 0, .largest = 0};
  const MxValues values = mx_values(x, 1, kMxBlock, rule);
  y = values.elements;
  scale = values.scales.view(shape);
}

// The kernels skip positions after the last row, and with a range all positions outside it. Without
// a range they would access memory before the first row at a negative position, unless its
// probability is 0.
void expect_positions(const at::Tensor& sorted_indices, bool has_range = false,
                      const std::optional<at::Tensor>& probs = std::nullopt) {
  expect_dims("sortedIndices", sorted_indices, 1);
  EXPECT(!probs || probs->numel() == sorted_indices.numel(), "probsOptional has ", probs->numel(),
         " elements, expected ", sorted_indices.numel(), " as sortedIndices has");
  if (has_range || !sorted_indices.is_cpu() || sorted_indices.numel() == 0) return;
  const at::Tensor used =
      probs ? at::where(probs->flatten() != 0, sorted_indices, 0) : sorted_indices;
  const int64_t least = at::amin(used).item().toLong();
  EXPECT(least >= 0, "sortedIndices has ", least, probs ? " for a probability other than 0" : "",
         ", expected 0 or more");
}

void expect_experts(const char* name, int64_t count, int64_t pairs) {
  EXPECT(count > 0 && count <= kMostExpertsOfToken && pairs % count == 0, name, " is ", count,
         ", expected 1 to ", kMostExpertsOfToken, ", and a divisor of the ", pairs,
         " elements of sortedIndices");
}

// The range [first, last) of positions that have rows.
struct Range {
  int64_t first, last;

  Range(at::IntArrayRef range, int64_t all) {
    EXPECT(range.size() == 2 && range[0] >= 0 && range[0] < range[1] && range[1] <= all,
           "rangeOptional is ", range,
           ", expected the first position and the one after the last, at most ", all);
    first = range[0];
    last = range[1];
  }
  // Refuses fewer rows than the range has.
  void expect_rows(const char* name, const at::Tensor& rows) const {
    EXPECT(rows.size(0) >= last - first, name, " has ", rows.size(0), " rows, expected ",
           last - first, " as rangeOptional tells");
  }
  // Positions relative to the start of the range; -1 outside it.
  at::Tensor within(const at::Tensor& positions) const {
    return at::where((positions >= first) & (positions < last), positions - first, -1);
  }
};

// The weighted sum of the `count` rows of each token, which are at these positions. Only with
// probabilities may a token have no rows.
at::Tensor summed(const at::Tensor& rows, const at::Tensor& positions, int64_t count,
                  const std::optional<at::Tensor>& probs = std::nullopt) {
  if (count == 0) return at::zeros({probs->size(0), rows.size(1)}, wide(rows).options());
  const at::Tensor read = positions_to_read(positions, probs);
  const std::array<int64_t, 2> shape{positions.numel() / count, count};
  const at::Tensor of_tokens = gather_rows(wide(rows), read).unflatten(0, shape);
  if (!probs) return of_tokens.sum(1);
  // The probability of a skipped row is ignored, even if it is inf or NaN.
  const at::Tensor weights =
      wide(*probs).masked_fill(~is_in_range(read, rows.size(0)).view(shape), 0);
  return (of_tokens * weights.unsqueeze(-1)).sum(1);
}

// Without probabilities every token has one row.
at::Tensor unpermuted(const at::Tensor& rows, const at::Tensor& positions,
                      const std::optional<at::Tensor>& probs) {
  if (!probs) return gather_rows(wide(rows), positions);
  expect_dims("probsOptional", *probs, 2);
  return summed(rows, positions, probs->size(1), probs);
}

// The gradients of `count` rows, from the positions of each token's pairs.
at::Tensor rows_gradient(const at::Tensor& gradient, const at::Tensor& positions,
                         const std::optional<at::Tensor>& probs, int64_t count) {
  const int64_t tokens = gradient.size(0);
  at::Tensor rows = wide(gradient).unsqueeze(1);
  if (probs) {
    rows = rows * wide(*probs).unsqueeze(-1);
  } else {
    rows = rows.expand({tokens, rows_per_token("sortedIndices", positions.numel(), tokens), -1});
  }
  return scatter_rows(rows.flatten(0, 1), positions, count);
}

// The gradients of the probabilities, of shape [tokens, experts of a token].
at::Tensor probs_gradient(const at::Tensor& rows, const at::Tensor& gradient,
                          const at::Tensor& positions, at::IntArrayRef shape) {
  return (gather_rows(wide(rows), positions).unflatten(0, shape) * wide(gradient).unsqueeze(1))
      .sum(-1);
}

}  // namespace

ACLNN_STRUCT(MoeTokenPermute, (In, tokens), (IndexIn, indices), (int64_t, numOutTokens),
             (bool, paddedMode), (SameDtype<Out>, permuteTokensOut, "tokens"),
             (Out, sortedIndicesOut)) {
  permute(*this);
}
// Behaviour of MoeTokenPermuteV2: It quantises as on Ascend 950; other products ignore quantMode. A
// result in FLOAT4_E2M1 has the shape [M, H] that the operator checks. The document has [M, H / 2],
// which counts bytes.
ACLNN(MoeTokenPermuteV2, (In, tokens), (IndexIn, indices), (int64_t, numOutTokens),
      (bool, paddedMode), (int64_t, quantMode), (Stored<Out>, permuteTokensOut),
      (Out, sortedIndicesOut), (Stored<Out>, expandedScaleOut)) {
  const int64_t count = expect_permutable(tokens, indices, paddedMode);
  expect_one_of("quantMode", quantMode, {-1, 2, 3, 9});
  expect_dtype("tokens", tokens, {at::kHalf, at::kBFloat16, at::kFloat, at::kChar});
  expect_dtype("sortedIndicesOut", sortedIndicesOut, at::kInt);
  constexpr int64_t kMostOfInt8 = 10240;
  EXPECT(tokens.scalar_type() != at::kChar ||
             (indices.numel() <= kMostOfInt8 && numOutTokens <= kMostOfInt8),
         "indices has ", indices.numel(), " elements and numOutTokens is ", numOutTokens.value(),
         ", expected at most ", kMostOfInt8, " as tokens is INT8");
  const Sorted sorted(indices);
  const int64_t rows = rows_left(numOutTokens, indices.numel());
  const at::Tensor permuted = tokens_of(tokens, sorted.order.narrow(0, 0, rows), count);
  if (quantMode == -1) {
    expect_type(permuteTokensOut, {acl_type(tokens.scalar_type())}, " as tokens has");
    expect_type(expandedScaleOut, {ACL_FLOAT}, " as quantMode is -1");
    permuteTokensOut = permuted;
  } else {
    quantize_permuted(permuted, quantMode, permuteTokensOut, expandedScaleOut);
  }
  sortedIndicesOut = sorted.positions;
}
// Without a range this is aclnnMoeTokenPermute.
// Behaviour of MoeToken*WithEp*: Positions are relative to the start of rangeOptional, as in the
// kernels. The documents contradict themselves.
ACLNN_STRUCT(MoeTokenPermuteWithEp, (In, tokens), (IndexIn, indices), (Optional<In>, probsOptional),
             (Optional<Ints>, rangeOptional), (int64_t, numOutTokens), (bool, paddedMode),
             (SameDtype<Out>, permuteTokensOut, "tokens"), (Out, sortedIndicesOut),
             (Optional<Out>, permuteProbsOut)) {
  if (!rangeOptional) return permute(*this);
  const int64_t count = expect_permutable(tokens, indices, paddedMode);
  const Sorted sorted(indices);
  expect_range("the last dimension of indices", count, 1, kMostExpertsOfToken);
  const Range range(*rangeOptional, indices.numel());
  const at::Tensor pairs = sorted.order.slice(0, range.first, range.last);
  at::Tensor probs;
  if (probsOptional) {
    EXPECT(permuteProbsOut, "permuteProbsOut is null, expected a tensor as probsOptional is");
    expect_shape("probsOptional", *probsOptional, indices.sizes());
    expect_dtype(*permuteProbsOut, tokens);
    probs = probsOptional->flatten().index_select(0, pairs);
  }
  permuteTokensOut = tokens_of(tokens, pairs, count);
  sortedIndicesOut = sorted.positions;
  if (probsOptional) permuteProbsOut = probs;
}

// The positions of dropped tokens are after the last row.
// Behaviour of MoeTokenUnpermute, MoeTokenUnpermuteGrad, MoeTokenPermuteGrad: Rows for positions
// after the last row are zeros, and so are rows of probability 0. A negative position with another
// probability is 507015; a device would access memory before the first row.
ACLNN(MoeTokenPermuteGrad, (Floating<In>, permutedOutputGrad), (IndexIn, sortedIndices),
      (int64_t, numTopk), (bool, paddedMode), (SameDtype<Out>, out, "permutedOutputGrad")) {
  refuse_padding(paddedMode);
  expect_dims("permutedOutputGrad", permutedOutputGrad, 2);
  expect_positions(sortedIndices);
  EXPECT(numTopk > 0 && sortedIndices.numel() % numTopk.value() == 0, "numTopk is ",
         numTopk.value(), ", expected a divisor of the ", sortedIndices.numel(),
         " elements of sortedIndices");
  out = summed(permutedOutputGrad, sortedIndices, numTopk);
}
// Without a range this is aclnnMoeTokenPermuteGrad. Rows outside the range are ignored.
ACLNN(MoeTokenPermuteWithEpGrad, (Floating<In>, permutedTokensOutputGrad), (IndexIn, sortedIndices),
      (Optional<In>, permutedProbsOutputGradOptional), (int64_t, numTopk),
      (Optional<Ints>, rangeOptional), (bool, paddedMode),
      (SameDtype<Out>, tokenGradOut, "permutedTokensOutputGrad"), (Optional<Out>, probsGradOut)) {
  refuse_padding(paddedMode);
  expect_dims("permutedTokensOutputGrad", permutedTokensOutputGrad, 2);
  expect_positions(sortedIndices, rangeOptional.has_value());
  const int64_t all = sortedIndices.numel();
  expect_experts("numTopk", numTopk, all);
  if (!rangeOptional) {
    tokenGradOut = summed(permutedTokensOutputGrad, sortedIndices, numTopk);
    return;
  }
  const Range range(*rangeOptional, all);
  const at::Tensor positions = range.within(sortedIndices);
  range.expect_rows("permutedTokensOutputGrad", permutedTokensOutputGrad);
  at::Tensor probs;
  if (permutedProbsOutputGradOptional) {
    EXPECT(probsGradOut,
           "probsGradOut is null, expected a tensor as permutedProbsOutputGradOptional is");
    expect_shape("permutedProbsOutputGradOptional", *permutedProbsOutputGradOptional,
                 {permutedTokensOutputGrad.size(0)});
    probs = gather_rows(permutedProbsOutputGradOptional->unsqueeze(1), positions)
                .view({all / numTopk.value(), numTopk.value()});
  }
  tokenGradOut = summed(permutedTokensOutputGrad, positions, numTopk);
  if (permutedProbsOutputGradOptional) probsGradOut = probs;
}

ACLNN(MoeTokenUnpermute, (Floating<In>, permutedTokens), (IndexIn, sortedIndices),
      (Optional<In>, probsOptional), (bool, paddedMode),
      (Unused<Optional<Ints>>, restoreShapeOptional,
       "counts only with paddedMode, which is refused"),
      (SameDtype<Out>, out, "permutedTokens")) {
  refuse_padding(paddedMode);
  expect_dims("permutedTokens", permutedTokens, 2);
  expect_positions(sortedIndices, false, probsOptional);
  out = unpermuted(permutedTokens, sortedIndices, probsOptional);
}
// Without a range this is aclnnMoeTokenUnpermute.
ACLNN(MoeTokenUnpermuteWithEp, (Floating<In>, permutedTokens), (IndexIn, sortedIndices),
      (Optional<In>, probsOptional), (int64_t, numTopk), (Optional<Ints>, rangeOptional),
      (bool, paddedMode),
      (Unused<Optional<Ints>>, restoreShapeOptional,
       "counts only with paddedMode, which is refused"),
      (SameDtype<Out>, out, "permutedTokens")) {
  refuse_padding(paddedMode);
  expect_dims("permutedTokens", permutedTokens, 2);
  expect_positions(sortedIndices, rangeOptional.has_value(), probsOptional);
  if (!rangeOptional) {
    out = unpermuted(permutedTokens, sortedIndices, probsOptional);
    return;
  }
  const int64_t all = sortedIndices.numel();
  expect_experts("numTopk", numTopk, all);
  if (probsOptional) {
    expect_shape("probsOptional", *probsOptional, {all / numTopk.value(), numTopk.value()});
  }
  const Range range(*rangeOptional, all);
  range.expect_rows("permutedTokens", permutedTokens);
  out = summed(permutedTokens, range.within(sortedIndices), numTopk, probsOptional);
}

ACLNN(MoeTokenUnpermuteGrad, (Floating<In>, permuteTokens),
      (SameDtype<Floating<In>>, unpermutedTokensGrad, "permuteTokens"), (IndexIn, sortedIndices),
      (Optional<In>, probsOptional), (bool, paddedMode),
      (Unused<Optional<Ints>>, restoreShapeOptional,
       "counts only with paddedMode, which is refused"),
      (SameDtype<Out>, permutedTokensGradOut, "permuteTokens"), (Optional<Out>, probsGradOut)) {
  refuse_padding(paddedMode);
  expect_dims("permuteTokens", permuteTokens, 2);
  expect_dims("unpermutedTokensGrad", unpermutedTokensGrad, 2);
  expect_positions(sortedIndices, false, probsOptional);
  const int64_t tokens = unpermutedTokensGrad.size(0);
  expect_shape("unpermutedTokensGrad", unpermutedTokensGrad, {tokens, permuteTokens.size(1)});
  const int64_t count =
      probsOptional ? rows_per_token("sortedIndices", sortedIndices.numel(), tokens) : 1;
  EXPECT(count * tokens == sortedIndices.numel(), "sortedIndices has ", sortedIndices.numel(),
         " elements, expected ", count * tokens);
  if (probsOptional) expect_shape("probsOptional", *probsOptional, {tokens, count});
  const at::Tensor rows =
      rows_gradient(unpermutedTokensGrad, sortedIndices, probsOptional, permuteTokens.size(0));
  at::Tensor probs;  // the gradient, computed before an output is written
  if (probsOptional) {
    probs = probs_gradient(permuteTokens, unpermutedTokensGrad, sortedIndices, {tokens, count});
  }
  permutedTokensGradOut = rows;
  if (probsOptional) probsGradOut = probs;
}
// The number of experts of a token follows from the size of sortedIndices; topkNum, which is 1 in
// the vendor's sample, is ignored.
ACLNN(MoeTokenUnpermuteWithEpGrad, (Floating<In>, unpermutedTokensGrad), (IndexIn, sortedIndices),
      (Optional<In>, permutedTokensOptional), (Optional<In>, probsOptional), (bool, paddedMode),
      (Unused<Optional<Ints>>, restoreShapeOptional,
       "counts only with paddedMode, which is refused"),
      (Optional<Ints>, rangeOptional), (int64_t, topkNum),
      (SameDtype<Out>, permutedTokensGradOut, "unpermutedTokensGrad"),
      (Optional<Out>, probsGradOut)) {
  refuse_padding(paddedMode);
  expect_range("topkNum", topkNum, 1, kMostExpertsOfToken);
  expect_dims("unpermutedTokensGrad", unpermutedTokensGrad, 2);
  expect_dims("permutedTokensGradOut", permutedTokensGradOut, 2);
  expect_positions(sortedIndices, rangeOptional.has_value(), probsOptional);
  const int64_t all = sortedIndices.numel();
  const int64_t tokens = unpermutedTokensGrad.size(0), rows = permutedTokensGradOut->size(0);
  const int64_t count = rows_per_token("sortedIndices", all, tokens);
  expect_range("the number of elements of sortedIndices for a token", count, 1,
               kMostExpertsOfToken);
  expect_shape("permutedTokensGradOut", permutedTokensGradOut,
               {rows, unpermutedTokensGrad.size(1)});
  at::Tensor positions = sortedIndices;
  if (rangeOptional) positions = Range(*rangeOptional, all).within(positions);
  if (!probsOptional) {
    permutedTokensGradOut = rows_gradient(unpermutedTokensGrad, positions, std::nullopt, rows);
    return;
  }
  expect_shape("probsOptional", *probsOptional, {tokens, count});
  EXPECT(permutedTokensOptional,
         "permutedTokensOptional is null, expected a tensor as probsOptional is");
  expect_like("permutedTokensOptional", *permutedTokensOptional, permutedTokensGradOut);
  EXPECT(probsGradOut, "probsGradOut is null, expected a tensor as probsOptional is");
  expect_dtype(*probsGradOut, *probsOptional);
  const at::Tensor probs =
      probs_gradient(*permutedTokensOptional, unpermutedTokensGrad, positions, {tokens, count});
  permutedTokensGradOut = rows_gradient(unpermutedTokensGrad, positions, probsOptional, rows);
  probsGradOut = probs;
}

}  // namespace aclnn_host::experts_token_permutation_rows
