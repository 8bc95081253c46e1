// Final routing of a mixture of experts: sums the experts' results for each token.

#include "cann/rows/experts/experts.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_final_routing_rows {

namespace {

// Modes 1 and 3 drop rows; in modes 0 and 1 the positions list the first rows of all tokens, then
// all second rows.
bool drops(int64_t mode) {
  return mode == 1 || mode == 3;
}
// The positions of the rows of each token: (tokens, rows of a token).
at::Tensor positions_of(const at::Tensor& row_index, int64_t mode, int64_t tokens) {
  expect_dims("expandedRowIdx", row_index, 1);
  const int64_t count = rows_per_token("expandedRowIdx", row_index.numel(), tokens);
  return mode < 2 ? row_index.view({count, tokens}).t() : row_index.view({tokens, count});
}
// The rows of each token: (tokens, rows of a token, hidden). If rows are dropped, expandedX is
// [experts, capacity, hidden], and the position of a dropped row is -1.
at::Tensor rows_of_tokens(const at::Tensor& expanded, const at::Tensor& row_index, int64_t mode,
                          int64_t tokens) {
  expect_dims("expandedX", expanded, drops(mode) ? 3 : 2);
  const at::Tensor positions = positions_of(row_index, mode, tokens);
  const at::Tensor rows = drops(mode) ? wide(expanded).flatten(0, 1) : wide(expanded);
  EXPECT(drops(mode) || rows.size(0) == row_index.numel(), "expandedX has ", rows.size(0),
         " rows, expected ", row_index.numel(), " as expandedRowIdx has elements");
  check_bounds("expandedRowIdx", row_index, rows.size(0), /*least=*/drops(mode) ? -1 : 0);
  return gather_rows(rows, positions.flatten()).unflatten(0, positions.sizes());
}

// An optional argument and its name.
struct Argument {
  const char* name;
  const OptionalTensor& tensor;
};
at::Tensor with_bias(const at::Tensor& results, const Argument& bias, const Argument& experts) {
  if (!bias.tensor) return results;
  EXPECT(experts.tensor, experts.name, " is null, expected a tensor as ", bias.name, " is");
  const at::IntArrayRef rows = results.sizes().slice(0, 2);
  expect_dims(bias.name, *bias.tensor, 2);
  expect_shape(bias.name, *bias.tensor, {bias.tensor->size(0), results.size(2)});
  expect_shape(experts.name, *experts.tensor, rows);
  const at::Tensor numbers = experts.tensor->to(at::kLong).flatten();
  check_bounds(experts.name, numbers, bias.tensor->size(0));
  return results + gather_rows(wide(*bias.tensor), numbers).unflatten(0, rows);
}
at::Tensor scaled_sum(const at::Tensor& results, const Argument& scales) {
  if (!scales.tensor) return results.sum(1);
  expect_shape(scales.name, *scales.tensor, results.sizes().slice(0, 2));
  return (results * wide(*scales.tensor).unsqueeze(-1)).sum(1);
}

// A dropped row adds no bias.
at::Tensor finalized(const at::Tensor& expanded, const at::Tensor& row_index, const Argument& bias,
                     const Argument& scales, const Argument& experts, int64_t mode,
                     int64_t tokens) {
  const at::Tensor results =
      with_bias(rows_of_tokens(expanded, row_index, mode, tokens), bias, experts);
  const at::Tensor dropped = (positions_of(row_index, mode, tokens) < 0).unsqueeze(-1);
  return scaled_sum(results.masked_fill(dropped, 0), scales);
}

at::Tensor plus(const at::Tensor& sum, const char* name, const std::optional<at::Tensor>& addend) {
  if (!addend) return sum;
  expect_shape(name, *addend, sum.sizes());
  return sum + wide(*addend);
}

}  // namespace

// expandedX, x1, x2Optional, bias and scales have one type.
// Behaviour of Moe*: Positions and counts are as published. A row that was dropped adds no bias. A
// row beyond the last group is 507015.
ACLNN(MoeFinalizeRouting, (Floating<In>, expandedX), (SameDtype<In>, x1, "expandedX"),
      (SameDtype<Optional<In>>, x2Optional, "expandedX"), (SameDtype<In>, bias, "expandedX"),
      (SameDtype<In>, scales, "expandedX"), (IndexIn, expandedRowIdx), (IndexIn, expandedExpertIdx),
      (SameDtype<Out>, out, "expandedX")) {
  expect_dims("out", out, 2);
  const at::Tensor sum =
      finalized(expandedX, expandedRowIdx, {"bias", bias}, {"scales", scales},
                {"expandedExpertIdx", expandedExpertIdx}, /*mode=*/0, out->size(0));
  out = plus(plus(sum, "x1", x1), "x2Optional", x2Optional);
}
ACLNN(MoeFinalizeRoutingV2, (Floating<In>, expandedX), (IndexIn, expandedRowIdx),
      (Optional<In>, x1Optional), (Optional<In>, x2Optional), (Optional<In>, biasOptional),
      (Optional<In>, scalesOptional), (Optional<In>, expertIdxOptional), (int64_t, dropPadMode),
      (SameDtype<Out>, out, "expandedX")) {
  expect_range("dropPadMode", dropPadMode, 0, 3);
  expect_dims("out", out, 2);
  const at::Tensor sum = finalized(
      expandedX, expandedRowIdx, {"biasOptional", biasOptional}, {"scalesOptional", scalesOptional},
      {"expertIdxOptional", expertIdxOptional}, dropPadMode, out->size(0));
  out = plus(plus(sum, "x1Optional", x1Optional), "x2Optional", x2Optional);
}
namespace {

// The numbers [first, last) of experts that the operator computes by itself.
struct ExpertRange {
  int64_t first = 0, last = 0;

  bool is_empty() const { return first == last; }
  at::Tensor holds(const at::Tensor& experts) const {
    return (experts >= first) & (experts < last);
  }
};
ExpertRange range_of(const char* name, const at::OptionalIntArrayRef& numbers) {
  if (!numbers || numbers->empty()) return {};
  EXPECT(numbers->size() == 2 && (*numbers)[0] >= 0 && (*numbers)[1] > (*numbers)[0] &&
             (*numbers)[1] <= kMostExperts,
         name, " is ", *numbers, ", expected the first number of experts and the one after ",
         "their last");
  return {(*numbers)[0], (*numbers)[1]};
}
void expect_apart(const ExpertRange& one, const ExpertRange& other) {
  EXPECT(one.is_empty() || other.is_empty() || one.last <= other.first || other.last <= one.first,
         "zeroExpertRange, copyExpertRange and constantExpertRange have [", one.first, ", ",
         one.last, "] and [", other.first, ", ", other.last, "], expected no common experts");
}
const at::Tensor& given(const char* name, const std::optional<at::Tensor>& tensor,
                        const at::Tensor& like, at::IntArrayRef shape) {
  EXPECT(tensor, name, " is null, expected a tensor as there is a range of experts");
  expect_dtype(name, *tensor, like);
  expect_shape(name, *tensor, shape);
  return *tensor;
}

// The results of experts that compute without weights, in place of those of expandedX.
struct RangesOfExperts {
  ExpertRange zero, copy, constant;

  bool are_empty() const { return zero.is_empty() && copy.is_empty() && constant.is_empty(); }
};
// `row` is the struct of a version.
template <class Version>
RangesOfExperts ranges_of(const Version& row) {
  const RangesOfExperts ranges{range_of("zeroExpertRange", row.zeroExpertRange),
                               range_of("copyExpertRange", row.copyExpertRange),
                               range_of("constantExpertRange", row.constantExpertRange)};
  expect_apart(ranges.zero, ranges.copy);
  expect_apart(ranges.zero, ranges.constant);
  expect_apart(ranges.copy, ranges.constant);
  return ranges;
}

// alpha1 times each token plus alpha2 times v, for the expert in the range that is nearest to each
// of the given ones: (tokens, rows of a token, hidden).
template <class Version>
at::Tensor constant_results(const Version& row, const ExpertRange& range, const at::Tensor& experts,
                            const at::Tensor& tokens) {
  const int64_t kinds = range.last - range.first;
  const at::Tensor kind = (experts - range.first).clamp(0, kinds - 1).flatten();
  const auto of_kind = [&](const char* name, const std::optional<at::Tensor>& rows) {
    return wide(given(name, rows, row.expandedX, {kinds, tokens.size(-1)}))
        .index_select(0, kind)
        .unflatten(0, experts.sizes());
  };
  return of_kind("alpha1Optional", row.alpha1Optional) * tokens +
         of_kind("alpha2Optional", row.alpha2Optional) * of_kind("vOptional", row.vOptional);
}

// Replaces the results of experts in the ranges, and marks those that count.
template <class Version>
void replace_results(const Version& row, const RangesOfExperts& ranges, at::Tensor& results,
                     at::Tensor& skipped) {
  EXPECT(row.expertIdxOptional,
         "expertIdxOptional is null, expected a tensor as there is a range of experts");
  expect_shape("expertIdxOptional", *row.expertIdxOptional, results.sizes().slice(0, 2));
  const at::Tensor experts = row.expertIdxOptional->to(at::kLong);
  const auto instead = [&](const ExpertRange& range, const at::Tensor& others) {
    const at::Tensor is_in = range.holds(experts);
    results = at::where(is_in.unsqueeze(-1), others, results);
    skipped = skipped & is_in.logical_not();
  };
  if (!ranges.zero.is_empty()) skipped = skipped | ranges.zero.holds(experts);
  if (ranges.copy.is_empty() && ranges.constant.is_empty()) return;
  const at::Tensor tokens =
      wide(given("xOptional", row.xOptional, row.expandedX, row.out->sizes())).unsqueeze(1);
  if (!ranges.copy.is_empty()) instead(ranges.copy, tokens);
  if (!ranges.constant.is_empty()) {
    instead(ranges.constant, constant_results(row, ranges.constant, experts, tokens));
  }
}

// Each token has k rows.
template <class Version>
void finalize_with_ranges(Version& row) {
  expect_range("dropPadMode", row.dropPadMode, 0, 3);
  expect_dims("out", row.out, 2);
  const int64_t tokens = row.out->size(0);
  const int64_t count = rows_per_token("expandedRowIdx", row.expandedRowIdx.numel(), tokens);
  if constexpr (requires { row.k; }) {
    EXPECT(row.k == count || (row.scalesOptional && row.k <= 1), "k is ", row.k.value(),
           ", expected ", count, ", the rows of each token");
  } else {
    EXPECT(count == 1 || row.scalesOptional, "scalesOptional is null, expected a tensor as ",
           "expandedRowIdx has ", count, " rows for each token");
  }
  EXPECT(row.x1Optional || !row.x2Optional,
         "x1Optional is null, expected a tensor as x2Optional is given");
  const RangesOfExperts ranges = ranges_of(row);
  at::Tensor results = rows_of_tokens(row.expandedX, row.expandedRowIdx, row.dropPadMode, tokens);
  at::Tensor skipped = positions_of(row.expandedRowIdx, row.dropPadMode, tokens) < 0;
  if (!ranges.are_empty()) replace_results(row, ranges, results, skipped);
  results = with_bias(results, {"biasOptional", row.biasOptional},
                      {"expertIdxOptional", row.expertIdxOptional});
  const at::Tensor sum = scaled_sum(results.masked_fill(skipped.unsqueeze(-1), 0),
                                    {"scalesOptional", row.scalesOptional});
  row.out = plus(plus(sum, "x1Optional", row.x1Optional), "x2Optional", row.x2Optional);
}

}  // namespace

// Three ranges of experts do not appear in expandedX: their results are 0, the token, and alpha1
// times the token plus alpha2 times v. Without scales, a token has one row.
ACLNN_STRUCT(MoeFinalizeRoutingV3, (Floating<In>, expandedX), (IndexIn, expandedRowIdx),
             (Optional<In>, x1Optional), (Optional<In>, x2Optional), (Optional<In>, biasOptional),
             (Optional<In>, scalesOptional), (Optional<In>, expertIdxOptional),
             (Optional<In>, xOptional), (Optional<In>, alpha1Optional),
             (Optional<In>, alpha2Optional), (Optional<In>, vOptional), (int64_t, dropPadMode),
             (Optional<Ints>, zeroExpertRange), (Optional<Ints>, copyExpertRange),
             (Optional<Ints>, constantExpertRange), (SameDtype<Out>, out, "expandedX")) {
  finalize_with_ranges(*this);
}
// V4 says how many rows a token has.
ACLNN_STRUCT(MoeFinalizeRoutingV4, (Floating<In>, expandedX), (IndexIn, expandedRowIdx),
             (Optional<In>, x1Optional), (Optional<In>, x2Optional), (Optional<In>, biasOptional),
             (Optional<In>, scalesOptional), (Optional<In>, expertIdxOptional),
             (Optional<In>, xOptional), (Optional<In>, alpha1Optional),
             (Optional<In>, alpha2Optional), (Optional<In>, vOptional), (int64_t, dropPadMode),
             (Optional<Ints>, zeroExpertRange), (Optional<Ints>, copyExpertRange),
             (Optional<Ints>, constantExpertRange), (int64_t, k),
             (SameDtype<Out>, out, "expandedX")) {
  finalize_with_ranges(*this);
}

ACLNN(MoeFinalizeRoutingV2Grad, (Floating<In>, gradY), (IndexIn, expandedRowIdx),
      (Optional<In>, expandedXOptional), (Optional<In>, scalesOptional),
      (Optional<In>, expertIdxOptional), (Optional<In>, biasOptional), (int64_t, dropPadMode),
      (int64_t, activeNum), (int64_t, expertNum), (int64_t, expertCapacity),
      (SameDtype<Out>, gradExpandedXOut, "gradY"), (Optional<Out>, gradScalesOut)) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  expect_dims("gradY", gradY, 2);
  expect_dims("expandedRowIdx", expandedRowIdx, 1);
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
  check_bounds("expandedRowIdx", expandedRowIdx, drops ? rows : all, /*least=*/drops ? -1 : 0);
  const at::Tensor gradient = wide(gradY).unsqueeze(1).expand({tokens, count, hidden});
  if (!scalesOptional) {
    gradExpandedXOut = scatter_rows(gradient.flatten(0, 1), expandedRowIdx, rows).view(shape);
    return;
  }
  expect_shape("scalesOptional", *scalesOptional, {tokens, count});
  EXPECT(expandedXOptional, "expandedXOptional is null, expected a tensor as scalesOptional is");
  expect_shape("expandedXOptional", *expandedXOptional, shape);
  const at::Tensor scaled = gradient * wide(*scalesOptional).unsqueeze(-1);
  const at::Tensor rows_of_pairs =
      gather_rows(wide(*expandedXOptional).reshape({rows, hidden}), expandedRowIdx);
  const at::Tensor results =
      with_bias(rows_of_pairs.unflatten(0, {tokens, count}), {"biasOptional", biasOptional},
                {"expertIdxOptional", expertIdxOptional});
  const at::Tensor scales_gradient = (results * gradient).sum(-1);
  gradExpandedXOut = scatter_rows(scaled.flatten(0, 1), expandedRowIdx, rows).view(shape);
  gradScalesOut = scales_gradient;
}

}  // namespace aclnn_host::experts_final_routing_rows
