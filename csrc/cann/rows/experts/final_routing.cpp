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
         "zeroExpertRange, copyExpertRange and constantExpertRange overlap");
}
const at::Tensor& given(const char* name, const std::optional<at::Tensor>& tensor,
                        const at::Tensor& like, at::IntArrayRef shape) {
  EXPECT(tensor, name, " is null, expected a tensor as there is a range of experts");
  expect_dtype(name, *tensor, like);
  expect_shape(name, *tensor, shape);
  return *tensor;
}

}  // namespace

// Three ranges of experts do not appear in expandedX: their results are 0, the token, and alpha1
// times the token plus alpha2 times v.
ACLNN(MoeFinalizeRoutingV4, (Floating<In>, expandedX), (IndexIn, expandedRowIdx),
      (Optional<In>, x1Optional), (Optional<In>, x2Optional), (Optional<In>, biasOptional),
      (Optional<In>, scalesOptional), (Optional<In>, expertIdxOptional), (Optional<In>, xOptional),
      (Optional<In>, alpha1Optional), (Optional<In>, alpha2Optional), (Optional<In>, vOptional),
      (int64_t, dropPadMode), (Optional<Ints>, zeroExpertRange), (Optional<Ints>, copyExpertRange),
      (Optional<Ints>, constantExpertRange), (int64_t, k), (SameDtype<Out>, out, "expandedX")) {
  expect_range("dropPadMode", dropPadMode, 0, 3);
  expect_dims("out", out, 2);
  const int64_t tokens = out->size(0), hidden = out->size(1);
  const int64_t count = rows_per_token("expandedRowIdx", expandedRowIdx.numel(), tokens);
  EXPECT(k == count || (scalesOptional && k <= 1), "k is ", k.value(), ", expected ", count,
         ", the rows of each token");
  EXPECT(x1Optional || !x2Optional, "x2Optional is given and x1Optional is null");
  const ExpertRange zero = range_of("zeroExpertRange", zeroExpertRange);
  const ExpertRange copy = range_of("copyExpertRange", copyExpertRange);
  const ExpertRange constant = range_of("constantExpertRange", constantExpertRange);
  expect_apart(zero, copy);
  expect_apart(zero, constant);
  expect_apart(copy, constant);
  at::Tensor results = rows_of_tokens(expandedX, expandedRowIdx, dropPadMode, tokens);
  at::Tensor skipped = positions_of(expandedRowIdx, dropPadMode, tokens) < 0;
  if (!zero.is_empty() || !copy.is_empty() || !constant.is_empty()) {
    EXPECT(expertIdxOptional,
           "expertIdxOptional is null, expected a tensor as there is a range of experts");
    expect_shape("expertIdxOptional", *expertIdxOptional, {tokens, count});
    const at::Tensor experts = expertIdxOptional->to(at::kLong);
    const auto instead = [&](const ExpertRange& range, const at::Tensor& others) {
      const at::Tensor is_in = range.holds(experts);
      results = at::where(is_in.unsqueeze(-1), others, results);
      skipped = skipped & is_in.logical_not();
    };
    if (!zero.is_empty()) skipped = skipped | zero.holds(experts);
    at::Tensor itself;
    if (!copy.is_empty() || !constant.is_empty()) {
      itself = wide(given("xOptional", xOptional, expandedX, {tokens, hidden})).unsqueeze(1);
    }
    if (!copy.is_empty()) instead(copy, itself);
    if (!constant.is_empty()) {
      const int64_t kinds = constant.last - constant.first;
      const at::Tensor kind = (experts - constant.first).clamp(0, kinds - 1).flatten();
      const auto of_kind = [&](const char* name, const std::optional<at::Tensor>& rows) {
        return wide(given(name, rows, expandedX, {kinds, hidden}))
            .index_select(0, kind)
            .unflatten(0, {tokens, count});
      };
      instead(constant,
              of_kind("alpha1Optional", alpha1Optional) * itself +
                  of_kind("alpha2Optional", alpha2Optional) * of_kind("vOptional", vOptional));
    }
  }
  results =
      with_bias(results, {"biasOptional", biasOptional}, {"expertIdxOptional", expertIdxOptional});
  const at::Tensor sum =
      scaled_sum(results.masked_fill(skipped.unsqueeze(-1), 0), {"scalesOptional", scalesOptional});
  out = plus(plus(sum, "x1Optional", x1Optional), "x2Optional", x2Optional);
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
