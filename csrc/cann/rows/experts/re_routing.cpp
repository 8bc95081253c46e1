// Sorts tokens from several ranks by their experts.

#include "cann/rows/experts/experts.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_re_routing_rows {

namespace {

// The source of each token of the result: the tokens of all ranks for the first expert, then for
// the second one. `counts` has the number of tokens of each rank (a row) for each expert.
at::Tensor sources_of(const at::Tensor& counts, int64_t tokens) {
  const std::vector<int64_t> values = integers_in(counts);
  const int64_t ranks = counts.size(0), experts = counts.size(1);
  std::vector<int64_t> starts;
  int64_t left = tokens;
  for (const int64_t value : values) {
    starts.push_back(tokens - left);
    EXPECT(value >= 0 && value <= left, "expertTokenNumPerRank has ", value,
           ", expected numbers of 0 or more with the sum ", tokens, ", as there are tokens");
    left -= value;
  }
  EXPECT(left == 0, "expertTokenNumPerRank has the sum ", tokens - left, ", expected ", tokens,
         ", as there are tokens");
  std::vector<int64_t> sources;
  for (int64_t expert = 0; expert < experts; ++expert) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto i = static_cast<size_t>(rank * experts + expert);
      for (int64_t token = 0; token < values[i]; ++token) sources.push_back(starts[i] + token);
    }
  }
  return at::tensor(sources, counts.options().dtype(at::kLong));
}

}  // namespace

// torch_npu passes a tensor for the scales of the result even if the tokens have none.
// permuteTokenIdxOut has the source of each token of the result (idxType 0), or the destination of
// each token (1).
ACLNN(MoeReRouting, (In, tokens), (In, expertTokenNumPerRank),
      (Optional<In>, perTokenScalesOptional), (int64_t, expertTokenNumType), (int64_t, idxType),
      (SameDtype<Out>, permuteTokensOut, "tokens"), (Optional<Out>, permutePerTokenScalesOut),
      (Out, permuteTokenIdxOut), (SameDtype<Out>, expertTokenNumOut, "expertTokenNumPerRank")) {
  expect_range("expertTokenNumType", expertTokenNumType, 1, 1);
  expect_range("idxType", idxType, 0, 1);
  expect_dims("tokens", tokens, 2);
  const int64_t count = tokens.size(0);
  expect_dims("expertTokenNumPerRank", expertTokenNumPerRank, 2);
  expect_dtype("expertTokenNumPerRank", expertTokenNumPerRank, {at::kInt, at::kLong});
  expect_dtype("permuteTokenIdxOut", permuteTokenIdxOut, at::kInt);
  const at::Tensor sources = has_values(tokens)
                                 ? sources_of(expertTokenNumPerRank, count)
                                 : at::arange(count, tokens.options().dtype(at::kLong));
  const at::Tensor result =
      moved(tokens, [&](const at::Tensor& elements) { return elements.index_select(0, sources); });
  at::Tensor scales;
  if (perTokenScalesOptional) {
    expect_dtype("perTokenScalesOptional", *perTokenScalesOptional, at::kFloat);
    expect_dims("perTokenScalesOptional", *perTokenScalesOptional, 1, 2);
    EXPECT(perTokenScalesOptional->size(0) == count, "perTokenScalesOptional has shape ",
           perTokenScalesOptional->sizes(), ", expected ", count, " rows, as tokens has");
    EXPECT(permutePerTokenScalesOut,
           "permutePerTokenScalesOut is null, expected a tensor as perTokenScalesOptional is");
    expect_dtype("permutePerTokenScalesOut", *permutePerTokenScalesOut, at::kFloat);
    scales = perTokenScalesOptional->index_select(0, sources);
  }
  const at::Tensor counts = expertTokenNumPerRank.sum(0);
  permuteTokensOut = result;
  if (perTokenScalesOptional) permutePerTokenScalesOut = scales;
  permuteTokenIdxOut = idxType == 0 ? sources : at::argsort(sources, /*stable=*/true, 0, false);
  expertTokenNumOut = counts;
}

}  // namespace aclnn_host::experts_re_routing_rows
