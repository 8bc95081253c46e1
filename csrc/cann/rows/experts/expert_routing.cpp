// Experts of tokens, routed: rows sorted by expert and quantised, and experts mapped to instances.

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/experts/experts.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_expert_routing_rows {

namespace {

// The experts from `first` until before `last`, whose tokens are wanted.
struct ActiveExperts {
  int64_t first, last;

  int64_t count() const { return last - first; }
};

ActiveExperts active_experts(at::OptionalIntArrayRef range, int64_t experts) {
  if (!range) return {0, experts};
  EXPECT(
      range->size() == 2 && (*range)[0] >= 0 && (*range)[0] < (*range)[1] && (*range)[1] <= experts,
      "activeExpertRangeOptional is ", *range,
      ", expected the first expert and the one after the last, at most ", experts);
  return {(*range)[0], (*range)[1]};
}

// How many tokens each of the active experts has; `experts` has `active.count()` for others.
at::Tensor tokens_of(const at::Tensor& experts, ActiveExperts active) {
  const at::Tensor none = at::zeros({active.count() + 1}, experts.options());
  return none.scatter_add(0, experts, at::ones_like(experts)).narrow(0, 0, active.count());
}

// The pairs of an expert and its number of tokens, of those that have some; then zeros.
at::Tensor keys_and_values(const at::Tensor& counts, ActiveExperts active, int64_t rows) {
  const at::Tensor order = at::argsort(counts.ne(0).to(at::kChar), /*stable=*/true, 0,
                                       /*descending=*/true);
  const at::Tensor values = counts.index_select(0, order);
  const at::Tensor keys = at::where(values != 0, order + active.first, 0);
  const at::Tensor none = at::zeros({rows, 2}, counts.options());
  return none.slice_scatter(at::stack({keys, values}, 1), 0, 0, active.count());
}

at::Tensor as_int8(const at::Tensor& values) {
  return at::clamp(at::nan_to_num(at::round(values), 0.0, 127.0, -128.0), -128, 127).to(at::kChar);
}

// How aclnnMoeInitRoutingV3 lays out the rows of experts.
struct Layout {
  int64_t active_num;  // at most so many rows, if it is not 0
  int64_t capacity;    // of each expert, where they are dropped and padded
  int64_t experts;
  bool drops;

  // The rows of the result for `pairs` of a token and an expert.
  int64_t rows(int64_t pairs) const {
    if (drops) return experts * capacity;
    return active_num == 0 ? pairs : std::min(active_num, pairs);
  }

  // For each row of the result the pair that it comes from, or -1.
  at::Tensor sources(const at::Tensor& places, int64_t pairs) const {
    const int64_t count = rows(pairs);
    const at::Tensor at_end = at::where((places >= 0) & (places < count), places, count);
    return at::full({count + 1}, -1, places.options())
        .scatter(0, at_end, at::arange(pairs, places.options()))
        .narrow(0, 0, count);
  }
};

// Where in the result each pair of a token and an expert goes, -1 for what is not wanted.
// `counts` are the numbers of tokens of the active experts, `active` how many experts these are.
at::Tensor places_of(const at::Tensor& experts, const Sorted& sorted, const at::Tensor& counts,
                     int64_t active, const Layout& layout) {
  const at::Tensor is_active = experts < active;
  if (!layout.drops) return at::where(is_active, sorted.places, -1);
  const at::Tensor expert = experts.clamp_max(active - 1);
  const at::Tensor rank = sorted.places - (at::cumsum(counts, 0) - counts).index_select(0, expert);
  return at::where(is_active & (rank < layout.capacity), expert * layout.capacity + rank, -1);
}

// Refuses what the document of aclnnMoeInitRoutingV3 names but does not support yet.
void expect_supported(const Layout& layout, int64_t tokens_type, bool tokens_flag,
                      int64_t quant_mode, int64_t row_index_type, int64_t tokens,
                      const ActiveExperts& active) {
  expect_range("expertTokensNumType", tokens_type, 0, 2);
  EXPECT(quant_mode >= -1 && quant_mode <= 1, "quantMode is ", quant_mode,
         ", expected -1, 0 or 1; the host CANN does not emulate the others");
  expect_range("rowIdxType", row_index_type, 0, 1);
  if (!layout.drops) return;
  EXPECT(layout.capacity > 0 && layout.capacity <= tokens, "expertCapacity is ", layout.capacity,
         ", expected 1 to ", tokens, ", the rows of x, as dropPadMode is 1");
  EXPECT(row_index_type == 0 && (!tokens_flag || tokens_type == 1), "rowIdxType is ",
         row_index_type, " and expertTokensNumType is ", tokens_type,
         ", expected 0 and 1 as dropPadMode is 1");
  EXPECT(active.first == 0 && active.last == layout.experts, "activeExpertRangeOptional is [",
         active.first, ", ", active.last, "], expected [0, ", layout.experts,
         "] as dropPadMode is 1");
}

}  // namespace

// The rows of experts that are not active come last. Where the document leaves rows undefined they
// are 0, and places in expandedRowIdxOut go on. A vendor's sample has INT8 for the rows of FLOAT:
// they are converted.
ACLNN(MoeInitRoutingV3, (In, x), (IndexIn, expertIdx), (OptionalIn, scaleOptional),
      (OptionalIn, offsetOptional), (int64_t, activeNum), (int64_t, expertCapacity),
      (int64_t, expertNum), (int64_t, dropPadMode), (int64_t, expertTokensNumType),
      (bool, expertTokensNumFlag), (int64_t, quantMode), (OptionalInts, activeExpertRangeOptional),
      (int64_t, rowIdxType), (Out, expandedXOut), (Out, expandedRowIdxOut),
      (Out, expertTokensCountOrCumsumOut), (Out, expandedScaleOut)) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  expect_dims("x", x, 2);
  expect_dims("expertIdx", expertIdx, 2);
  EXPECT(expertIdx.size(0) == x.size(0) && expertIdx.size(1) > 0, "expertIdx has shape ",
         expertIdx.sizes(), ", expected ", x.size(0), " rows, as x has, of 1 or more");
  EXPECT(activeNum >= 0, "activeNum is ", activeNum.value(), ", expected 0 or more");
  const bool has_keys = expertTokensNumType == 2;
  expect_range("expertNum", expertNum, 1, has_keys ? 5120 : 10240);
  const ActiveExperts active = active_experts(activeExpertRangeOptional, expertNum);
  const Layout layout{activeNum, expertCapacity, expertNum, dropPadMode == 1};
  expect_supported(layout, expertTokensNumType, expertTokensNumFlag, quantMode, rowIdxType,
                   x.size(0), active);
  EXPECT(expandedXOut->scalar_type() == at::kChar ||
             (quantMode == -1 && expandedXOut->scalar_type() == x.scalar_type()),
         "expandedXOut has dtype ", dtype_text(expandedXOut->scalar_type()),
         ", expected INT8, or the dtype of x where quantMode is -1");
  expect_dtype("expandedScaleOut", expandedScaleOut, at::kFloat);

  const at::Tensor is_active = (expertIdx >= active.first) & (expertIdx < active.last);
  const at::Tensor experts =
      at::where(is_active, expertIdx - active.first, active.count()).flatten();
  // The active experts come first, those before them last.
  const at::Tensor is_before = expertIdx < active.first;
  const Sorted sorted(expertIdx.masked_fill(is_before, std::numeric_limits<int64_t>::max()));
  const at::Tensor counts = tokens_of(experts, active);
  const at::Tensor places = places_of(experts, sorted, counts, active.count(), layout);
  const at::Tensor source = layout.sources(places, experts.numel());
  const at::Tensor is_padding = source < 0;
  const at::Tensor token = source.clamp_min(0).floor_divide(expertIdx.size(1));
  std::vector<int64_t> shape{layout.rows(experts.numel()), x.size(1)};
  if (layout.drops) shape = {expertNum, expertCapacity, x.size(1)};
  if (expertTokensNumFlag) {
    expertTokensCountOrCumsumOut = has_keys ? keys_and_values(counts, active, expertNum)
                                   : expertTokensNumType == 0 ? at::cumsum(counts, 0)
                                                              : counts;
  }
  expandedRowIdxOut = rowIdxType == 0 ? places : sorted.order;
  if (quantMode == -1) {
    const at::Tensor rows = moved(x, [&](const at::Tensor& each) {
      return each.index_select(0, token).masked_fill(is_padding.unsqueeze(1), 0);
    });
    expect_shape("expandedXOut", expandedXOut, shape);
    expandedXOut.copy(rows.view(shape));
    if (!scaleOptional) return;
    expect_shape("scaleOptional", *scaleOptional, {x.size(0)});
    expandedScaleOut = scaleOptional->index_select(0, token).masked_fill(is_padding, 0);
    return;
  }
  EXPECT(at::isFloatingType(x.scalar_type()), "x has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT16, BFLOAT16 or FLOAT where quantMode is 0 or 1");
  at::Tensor rows = wide(x).index_select(0, token);
  if (quantMode == 0) {
    EXPECT(scaleOptional && offsetOptional, scaleOptional ? "offsetOptional" : "scaleOptional",
           " is null, expected a tensor where quantMode is 0");
    expect_shape("scaleOptional", *scaleOptional, {1});
    expect_shape("offsetOptional", *offsetOptional, {1});
    expandedXOut = as_int8(rows * wide(*scaleOptional) + wide(*offsetOptional))
                       .masked_fill(is_padding.unsqueeze(1), 0)
                       .view(shape);
    return;
  }
  EXPECT(x.size(1) > 0 || x.size(0) == 0, "x has shape ", x.sizes(),
         ", expected elements in its rows");
  if (scaleOptional) {
    expect_shape("scaleOptional", *scaleOptional, {active.count(), x.size(1)});
    const at::Tensor row = experts.index_select(0, source.clamp_min(0));
    rows = rows * scaleOptional->index_select(0, row.clamp_max(active.count() - 1));
  }
  if (x.numel() == 0) return;
  const at::Tensor scale = at::amax(rows.abs(), 1) / 127;
  expandedXOut =
      as_int8(rows / scale.unsqueeze(1)).masked_fill(is_padding.unsqueeze(1), 0).view(shape);
  expandedScaleOut = scale.masked_fill(is_padding, 0);
}

// A row of eplbTable is the number of an expert's instances, then these. Without scales nothing is
// written to balancedActiveMask.
ACLNN(MoeUpdateExpert, (In, expertIds), (In, eplbTable), (OptionalIn, expertScalesOptional),
      (OptionalIn, pruningThresholdOptional), (OptionalIn, activeMaskOptional),
      (int64_t, localRankId), (int64_t, worldSize), (int64_t, balanceMode),
      (Out, balancedExpertIds), (Out, balancedActiveMask)) {
  expect_range("balanceMode", balanceMode, 0, 1);
  const bool by_rank = balanceMode == 0;
  constexpr int64_t kMostRanks = 768;
  if (by_rank) {
    expect_range("worldSize", worldSize, 2, kMostRanks);
    expect_range("localRankId", localRankId, 0, worldSize.value() - 1);
  }
  expect_dims("expertIds", expertIds, 2);
  expect_dims("eplbTable", eplbTable, 2);
  expect_dtype("eplbTable", eplbTable, at::kInt);
  const int64_t experts = eplbTable.size(0), columns = eplbTable.size(1);
  expect_range("the number of rows of expertIds", expertIds.size(0), 1, 512);
  expect_range("the number of rows of eplbTable", experts, 1, 1024);
  expect_range("the number of columns of expertIds", expertIds.size(1), 1,
               std::min<int64_t>(experts, 16));
  expect_range("the number of columns of eplbTable", columns, 2,
               (by_rank ? worldSize.value() : kMostRanks) + 1);
  EXPECT(expertIds.scalar_type() == at::kInt || expertIds.scalar_type() == at::kLong,
         "expertIds has dtype ", dtype_text(expertIds.scalar_type()), ", expected INT32 or INT64");
  expect_dtype(balancedExpertIds, expertIds);
  EXPECT(bool(expertScalesOptional) == bool(pruningThresholdOptional),
         "one of expertScalesOptional and pruningThresholdOptional is null, expected both");
  EXPECT(expertScalesOptional || !activeMaskOptional,
         "expertScalesOptional is null, expected a tensor as activeMaskOptional is");

  check_bounds("expertIds", expertIds, experts);
  const at::Tensor of_experts =
      eplbTable.to(at::kLong).index_select(0, expertIds.to(at::kLong).flatten());
  const at::Tensor found = of_experts.select(1, 0);
  if (!is_rehearsed()) check_bounds("the first column of eplbTable", found, columns, 1);
  const at::Tensor instances = found.clamp(1, columns - 1);
  at::Tensor place;
  if (by_rank) {
    // Ranks that follow one another share an instance.
    place = at::floor_divide(at::full_like(instances, localRankId.value()),
                             (instances + (worldSize.value() - 1)).floor_divide(instances));
  } else {
    const at::Tensor token = at::arange(expertIds.size(0), instances.options());
    place = token.repeat_interleave(expertIds.size(1)).remainder(instances);
  }
  place = at::where(instances == 1, 0, place) + 1;
  balancedExpertIds = of_experts.gather(1, place.unsqueeze(1)).view(expertIds.sizes());
  if (!expertScalesOptional) return;

  const at::Tensor& threshold = *pruningThresholdOptional;
  expect_shape("expertScalesOptional", *expertScalesOptional, expertIds.sizes());
  expect_dtype("pruningThresholdOptional", threshold, at::kFloat);
  EXPECT(threshold.numel() == expertIds.size(1) &&
             (threshold.dim() == 1 || (threshold.dim() == 2 && threshold.size(0) == 1)),
         "pruningThresholdOptional has shape ", threshold.sizes(), ", expected ", expertIds.size(1),
         " elements");
  expect_dtype("balancedActiveMask", balancedActiveMask, at::kBool);
  const at::Tensor scales = wide(*expertScalesOptional);
  at::Tensor mask = scales >= scales.sum(1, /*keepdim=*/true) * threshold.reshape({1, -1});
  if (activeMaskOptional) {
    expect_dtype("activeMaskOptional", *activeMaskOptional, at::kBool);
    expect_shape("activeMaskOptional", *activeMaskOptional, {expertIds.size(0)});
    mask = mask & activeMaskOptional->unsqueeze(1);
  }
  balancedActiveMask = mask;
}

}  // namespace aclnn_host::experts_expert_routing_rows
