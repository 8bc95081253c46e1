// Initial routing of a mixture of experts: sorts rows of tokens by expert, and may quantise them.

#include "cann/rows/experts/experts.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_initial_routing_rows {

namespace {

// The range [first, last) of experts whose tokens are routed.
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

// The number of pairs of each of `count` experts.
at::Tensor counts_of(const at::Tensor& experts, int64_t count) {
  const at::Tensor none = at::zeros({count}, experts.options());
  return none.scatter_add(0, experts, at::ones_like(experts));
}

// Pairs of an expert and its number of tokens, for experts with tokens; then zeros.
at::Tensor keys_and_values(const at::Tensor& counts, ActiveExperts active, int64_t rows) {
  const at::Tensor order = at::argsort(counts.ne(0).to(at::kChar), /*stable=*/true, 0,
                                       /*descending=*/true);
  const at::Tensor values = counts.index_select(0, order);
  const at::Tensor keys = at::where(values != 0, order + active.first, 0);
  const at::Tensor none = at::zeros({rows, 2}, counts.options());
  return none.slice_scatter(at::stack({keys, values}, 1), 0, 0, active.count());
}

// The layout of the experts' rows in aclnnMoeInitRoutingV3.
struct Layout {
  int64_t active_num;  // the largest number of rows, unless 0
  int64_t capacity;    // of each expert, if tokens are dropped and padded
  int64_t experts;
  bool drops;

  // The number of rows of the result for this many (token, expert) pairs.
  int64_t rows(int64_t pairs) const {
    if (drops) return experts * capacity;
    return active_num == 0 ? pairs : std::min(active_num, pairs);
  }

  // The shape of the result for this many pairs, with rows of this many elements.
  std::vector<int64_t> shape(int64_t pairs, int64_t width) const {
    if (drops) return {experts, capacity, width};
    return {rows(pairs), width};
  }

  // The pair in each row of the result, or -1.
  at::Tensor sources(const at::Tensor& positions, int64_t pairs) const {
    const int64_t count = rows(pairs);
    const at::Tensor at_end = at::where((positions >= 0) & (positions < count), positions, count);
    return at::full({count + 1}, -1, positions.options())
        .scatter(0, at_end, at::arange(pairs, positions.options()))
        .narrow(0, 0, count);
  }
};

// The position of each (token, expert) pair in the result; -1 if it is not routed. `counts` are the
// numbers of tokens of the active experts, `active` is the number of these experts.
at::Tensor positions_of(const at::Tensor& experts, const Sorted& sorted, const at::Tensor& counts,
                        int64_t active, const Layout& layout) {
  const at::Tensor is_active = experts < active;
  if (!layout.drops) return at::where(is_active, sorted.positions, -1);
  const at::Tensor expert = experts.clamp_max(active - 1);
  const at::Tensor rank =
      sorted.positions - (at::cumsum(counts, 0) - counts).index_select(0, expert);
  return at::where(is_active & (rank < layout.capacity), expert * layout.capacity + rank, -1);
}

// The (token, expert) pairs of aclnnMoeInitRoutingV3, and the rows of its result. The source of a
// row is a pair; a row without a source is padding.
struct PairsAndRows {
  PairsAndRows(const at::Tensor& of_tokens, const ActiveExperts& active, const Layout& layout)
      // The active experts come first, those with smaller numbers last.
      : sorted(
            of_tokens.masked_fill(of_tokens < active.first, std::numeric_limits<int64_t>::max())) {
    const at::Tensor is_active = (of_tokens >= active.first) & (of_tokens < active.last);
    experts = at::where(is_active, of_tokens - active.first, active.count()).flatten();
    counts = counts_of(experts, active.count() + 1).narrow(0, 0, active.count());
    positions = positions_of(experts, sorted, counts, active.count(), layout);
    sources = layout.sources(positions, experts.numel());
    is_padding = sources < 0;
    tokens = sources.clamp_min(0).floor_divide(of_tokens.size(1));
  }
  at::Tensor without_padding(const at::Tensor& rows) const {
    return rows.masked_fill(is_padding.unsqueeze(1), 0);
  }
  // The rows times the smoothing factors of their experts, for dynamic quantisation.
  at::Tensor smoothed(const at::Tensor& rows, const at::Tensor& factors) const {
    const int64_t active = counts.size(0);
    expect_shape("scaleOptional", factors, {active, rows.size(1)});
    const at::Tensor expert = experts.index_select(0, sources.clamp_min(0));
    return rows * factors.index_select(0, expert.clamp_max(active - 1));
  }

  Sorted sorted;
  // The experts of the pairs, counted from the first active one; the number of active experts
  // stands for all inactive ones.
  at::Tensor experts;
  at::Tensor counts;      // the numbers of pairs of the active experts
  at::Tensor positions;   // of the pairs in the result; -1 if they are not routed
  at::Tensor sources;     // of the rows; -1 in padding
  at::Tensor is_padding;  // of the rows
  at::Tensor tokens;      // of the sources
};

// The rows of static quantisation, before they are rounded.
at::Tensor scaled_and_shifted(const at::Tensor& rows, const std::optional<at::Tensor>& scale,
                              const std::optional<at::Tensor>& offset) {
  EXPECT(scale && offset, scale ? "offsetOptional" : "scaleOptional",
         " is null, expected a tensor where quantMode is 0");
  expect_shape("scaleOptional", *scale, {1});
  expect_shape("offsetOptional", *offset, {1});
  return rows * wide(*scale) + wide(*offset);
}

// Refuses values that the document of aclnnMoeInitRoutingV3 lists as not yet supported.
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

// (token, expert) pairs sorted by expert, with the names that rowIdx gives them.
struct NamedRows {
  NamedRows(const at::Tensor& x, const at::Tensor& row_index, const at::Tensor& experts,
            int64_t active)
      : sorted(experts) {
    expect_dims("x", x, 2);
    expect_dims("expertIdx", experts, 2);
    expect_at_least("activeNum", active, 0);
    const int64_t tokens = x.size(0), all = experts.numel();
    const int64_t count = experts_per_token("expertIdx", experts, x);
    check_bounds("rowIdx", row_index, all);
    names = row_index.flatten().index_select(0, sorted.order);
    tokens_of_rows = names.narrow(0, 0, std::min(tokens, active) * count)
                         .remainder(std::max<int64_t>(tokens, 1));
  }
  // The position of each named pair.
  at::Tensor positions() const {
    return at::zeros_like(names).index_copy(0, names, at::arange(names.numel(), names.options()));
  }

  Sorted sorted;
  at::Tensor names;           // of the pairs, in sorted order
  at::Tensor tokens_of_rows;  // the token whose row is copied to each row
};

// The attributes of aclnnMoeInitRoutingV2.
struct Routing {
  int64_t active, capacity, experts;
  bool drops;

  // `suffix` ends the names of the arguments.
  void check(const at::Tensor& x, const at::Tensor& of_tokens, int64_t count_mode,
             int64_t drop_mode, const std::string& suffix) const {
    expect_dims("x", x, 2);
    expect_dims("expertIdx", of_tokens, 2);
    expect_range(("dropPadMode" + suffix).c_str(), drop_mode, 0, 1);
    expect_range(("expertTokensCountOrCumsumFlag" + suffix).c_str(), count_mode, 0, 2);
    EXPECT(active >= 0 && capacity >= 0 && experts >= 0 && experts <= kMostExperts, "activeNum",
           suffix, " is ", active, ", expertCapacity", suffix, " is ", capacity, " and expertNum",
           suffix, " is ", experts, ", expected 0 or more");
    EXPECT(count_mode == 0 || experts > 0, "expertNum", suffix,
           " is 0, expected the number of experts to count the tokens of");
    EXPECT(!drops || (experts > 0 && capacity > 0), "expertNum", suffix, " is ", experts,
           " and expertCapacity", suffix, " is ", capacity, ", expected 1 or more of both");
    EXPECT(!drops || capacity <= x.size(0), "expertCapacity", suffix, " is ", capacity,
           ", expected at most ", x.size(0), ", the number of tokens");
    if (experts > 0) check_bounds("expertIdx", of_tokens, experts);
  }
  // The number of rows if no pairs are dropped.
  int64_t rows(int64_t all) const { return active > 0 ? std::min(active, all) : all; }
};

// The positions of the sorted pairs, with room for `capacity` pairs of each expert; -1 for the
// others.
at::Tensor positions_within_capacity(const Sorted& sorted, int64_t experts, int64_t capacity) {
  const at::Tensor counts = counts_of(sorted.experts, experts);
  const at::Tensor firsts = counts.cumsum(0) - counts;
  const at::Tensor rank = at::arange(sorted.experts.size(0), sorted.experts.options()) -
                          firsts.index_select(0, sorted.experts);
  return at::where(rank < capacity, sorted.experts * capacity + rank, -1);
}

// The source and the destination of each routed row.
struct Routed {
  Routed(const Routing& attributes, const at::Tensor& x, const at::Tensor& of_tokens)
      : routing(attributes), sorted(of_tokens) {
    const int64_t count = experts_per_token("expertIdx", of_tokens, x);
    from = sorted.order.floor_divide(count);
    if (!routing.drops) from = from.narrow(0, 0, routing.rows(of_tokens.numel()));
  }
  // Refuses an output with another number of rows. This bounds the sizes of later temporaries.
  void expect_rows(const Output& out, int64_t width) const {
    expect_shape(out.name(), out,
                 routing.drops ? std::vector{routing.experts, routing.capacity, width}
                               : std::vector{from.size(0), width});
  }
  void assign_positions() {
    if (!routing.drops) return;
    positions = positions_within_capacity(sorted, routing.experts, routing.capacity);
  }
  // Moves the rows of the pairs to their positions.
  at::Tensor routed(const at::Tensor& rows) const {
    return routing.drops ? scatter_rows(rows, positions, routing.experts * routing.capacity) : rows;
  }
  // The positions of the pairs in their original order.
  at::Tensor row_index() const {
    return routing.drops ? positions.index_select(0, sorted.positions) : sorted.positions;
  }
  void count(int64_t mode, bool before, OptionalOutput& counts_out,
             OptionalOutput& before_out) const {
    if (routing.drops) {
      if (before && before_out) before_out = counts_of(sorted.experts, routing.experts);
    } else if (mode != 0 && counts_out) {
      expect_shape((*counts_out).name(), *counts_out, {routing.experts});
      const at::Tensor counts = counts_of(sorted.experts, routing.experts);
      counts_out = mode == 1 ? counts.cumsum(0) : counts;
    }
  }

  Routing routing;
  Sorted sorted;
  at::Tensor from;       // the tokens of the pairs
  at::Tensor positions;  // the positions of the pairs, if some are dropped
};

// The rows of pairs times the smoothing factors of dynamic quantisation, for all experts or for
// each.
at::Tensor smoothed(const at::Tensor& rows, const at::Tensor& factors, const Routed& routed) {
  const int64_t experts = routed.routing.experts;
  EXPECT(factors.dim() == 2 && factors.size(1) == rows.size(1) &&
             (factors.size(0) == 1 || (experts > 0 && factors.size(0) == experts)),
         "scaleOptional has shape ", factors.sizes(), ", expected ", rows.size(1),
         " columns and 1 row or those of ", experts, " experts");
  if (factors.size(0) == 1) return rows * factors;
  return rows * factors.index_select(0, routed.sorted.experts.narrow(0, 0, rows.size(0)));
}

}  // namespace

// The rows of inactive experts come last. Rows that the document leaves undefined are 0, and
// expandedRowIdxOut numbers them, too. A vendor's sample passes INT8 for FLOAT rows; they are
// converted.
ACLNN(MoeInitRoutingV3, (In, x), (IndexIn, expertIdx), (Optional<In>, scaleOptional),
      (Optional<In>, offsetOptional), (int64_t, activeNum), (int64_t, expertCapacity),
      (int64_t, expertNum), (int64_t, dropPadMode), (int64_t, expertTokensNumType),
      (bool, expertTokensNumFlag), (int64_t, quantMode),
      (Optional<Ints>, activeExpertRangeOptional), (int64_t, rowIdxType), (Out, expandedXOut),
      (Out, expandedRowIdxOut), (Out, expertTokensCountOrCumsumOut), (Out, expandedScaleOut)) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  expect_dims("x", x, 2);
  expect_dims("expertIdx", expertIdx, 2);
  EXPECT(expertIdx.size(0) == x.size(0) && expertIdx.size(1) > 0, "expertIdx has shape ",
         expertIdx.sizes(), ", expected ", x.size(0), " rows, as x has, of 1 or more");
  expect_at_least("activeNum", activeNum, 0);
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

  const PairsAndRows pairs(expertIdx, active, layout);
  const std::vector<int64_t> shape = layout.shape(expertIdx.numel(), x.size(1));
  if (expertTokensNumFlag) {
    expertTokensCountOrCumsumOut = has_keys ? keys_and_values(pairs.counts, active, expertNum)
                                   : expertTokensNumType == 0 ? at::cumsum(pairs.counts, 0)
                                                              : pairs.counts;
  }
  expandedRowIdxOut = rowIdxType == 0 ? pairs.positions : pairs.sorted.order;
  if (quantMode == -1) {
    const at::Tensor rows = moved(x, [&](const at::Tensor& each) {
      return pairs.without_padding(each.index_select(0, pairs.tokens));
    });
    expect_shape("expandedXOut", expandedXOut, shape);
    expandedXOut.copy(rows.view(shape));
    if (!scaleOptional) return;
    expect_shape("scaleOptional", *scaleOptional, {x.size(0)});
    expandedScaleOut =
        scaleOptional->index_select(0, pairs.tokens).masked_fill(pairs.is_padding, 0);
    return;
  }
  EXPECT(at::isFloatingType(x.scalar_type()), "x has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT16, BFLOAT16 or FLOAT where quantMode is 0 or 1");
  at::Tensor rows = wide(x).index_select(0, pairs.tokens);
  if (quantMode == 0) {
    rows = scaled_and_shifted(rows, scaleOptional, offsetOptional);
    expandedXOut = pairs.without_padding(to_int8(rows)).view(shape);
    return;
  }
  EXPECT(x.size(1) > 0 || x.size(0) == 0, "x has shape ", x.sizes(),
         ", expected elements in its rows");
  if (scaleOptional) rows = pairs.smoothed(rows, *scaleOptional);
  if (x.numel() == 0) return;
  const at::Tensor scale = at::amax(rows.abs(), 1) / 127;
  expandedXOut = pairs.without_padding(to_int8(rows / scale.unsqueeze(1))).view(shape);
  expandedScaleOut = scale.masked_fill(pairs.is_padding, 0);
}
// rowIdx numbers the tokens of all first experts, then those of all second ones.
ACLNN(MoeInitRouting, (In, x), (SameShape<IndexIn>, rowIdx, "expertIdx"), (IndexIn, expertIdx),
      (int64_t, activeNum), (SameDtype<Out>, expandedXOut, "x"), (Out, expandedRowIdxOut),
      (Out, expandedExpertIdxOut)) {
  const NamedRows rows(x, rowIdx, expertIdx, activeNum);
  expandedXOut =
      moved(x, [&](const at::Tensor& each) { return each.index_select(0, rows.tokens_of_rows); });
  expandedRowIdxOut = rows.positions();
  expandedExpertIdxOut = rows.sorted.experts;
}
// expandedRowIdxOut[i * k] is the position of token i with its first expert, and so on.
ACLNN(MoeInitRoutingV2, (In, x), (IndexIn, expertIdx), (int64_t, activeNumOptional),
      (int64_t, expertCapacityOptional), (int64_t, expertNumOptional),
      (int64_t, dropPadModeOptional), (int64_t, expertTokensCountOrCumsumFlagOptional),
      (bool, expertTokensBeforeCapacityFlagOptional), (SameDtype<Out>, expandedXOut, "x"),
      (Out, expandedRowIdxOut), (Optional<Out>, expertTokensCountOrCumsumOutOptional),
      (Optional<Out>, expertTokensBeforeCapacityOutOptional)) {
  const Routing routing{activeNumOptional, expertCapacityOptional, expertNumOptional,
                        dropPadModeOptional == 1};
  routing.check(x, expertIdx, expertTokensCountOrCumsumFlagOptional, dropPadModeOptional,
                "Optional");
  Routed routed(routing, x, expertIdx);
  routed.expect_rows(expandedXOut, x.size(1));
  routed.assign_positions();
  expandedXOut = moved(x, [&](const at::Tensor& each) {
    return routed.routed(each.index_select(0, routed.from)).view(expandedXOut->sizes());
  });
  expandedRowIdxOut = routed.row_index();
  routed.count(expertTokensCountOrCumsumFlagOptional, expertTokensBeforeCapacityFlagOptional,
               expertTokensCountOrCumsumOutOptional, expertTokensBeforeCapacityOutOptional);
}
ACLNN(MoeInitRoutingV2Grad, (Floating<In>, gradExpandedX), (IndexIn, expandedRowIdx),
      (int64_t, topK), (int64_t, dropPadMode), (int64_t, activeNum),
      (SameDtype<Out>, out, "gradExpandedX")) {
  expect_range("dropPadMode", dropPadMode, 0, 1);
  expect_at_least("activeNum", activeNum, 0);
  expect_dims("gradExpandedX", gradExpandedX, dropPadMode == 1 ? 3 : 2);
  expect_dims("expandedRowIdx", expandedRowIdx, 1);
  const int64_t all = expandedRowIdx.numel();
  EXPECT(topK > 0 && all % topK.value() == 0, "topK is ", topK.value(),
         ", expected a divisor of the ", all, " elements of expandedRowIdx");
  at::Tensor rows = wide(gradExpandedX);
  if (dropPadMode == 1) {
    rows = rows.flatten(0, 1);
    check_bounds("expandedRowIdx", expandedRowIdx, rows.size(0), /*least=*/-1);
  } else {
    const int64_t count = activeNum > 0 ? std::min(activeNum.value(), all) : all;
    EXPECT(rows.size(0) == count, "gradExpandedX has ", rows.size(0), " rows, expected ", count);
    check_bounds("expandedRowIdx", expandedRowIdx, all);
  }
  out = gather_rows(rows, expandedRowIdx).unflatten(0, {all / topK.value(), topK.value()}).sum(1);
}
// Deviation of MoeInitRoutingQuant, MoeInitRoutingQuantV2: Elements are computed in FLOAT and
// rounded once, to even. A device's kernels compute in FLOAT16.
ACLNN(MoeInitRoutingQuant, (Floating<In>, x), (SameShape<IndexIn>, rowIdx, "expertIdx"),
      (IndexIn, expertIdx), (int64_t, activeNum), (double, scale), (double, offset),
      (Out, expandedXOut), (Out, expandedRowIdxOut), (Out, expandedExpertIdxOut)) {
  const NamedRows rows(x, rowIdx, expertIdx, activeNum);
  expect_dtype("expandedXOut", expandedXOut, at::kChar);
  const at::Tensor quantized = to_int8(wide(x) * scale.value() + offset.value());
  expandedXOut = quantized.index_select(0, rows.tokens_of_rows);
  expandedRowIdxOut = rows.positions();
  expandedExpertIdxOut = rows.sorted.experts;
}
// In dynamic quantisation, rows are multiplied by scaleOptional and then divided by their own
// scale.
ACLNN(MoeInitRoutingQuantV2, (Floating<In>, x), (IndexIn, expertIdx), (Optional<In>, scaleOptional),
      (Optional<In>, offsetOptional), (int64_t, activeNum), (int64_t, expertCapacity),
      (int64_t, expertNum), (int64_t, dropPadMode), (int64_t, expertTokensCountOrCumsumFlag),
      (bool, expertTokensBeforeCapacityFlag), (int64_t, quantMode), (Out, expandedXOut),
      (Out, expandedRowIdxOut), (Optional<Out>, expertTokensCountOrCumsumOutOptional),
      (Optional<Out>, expertTokensBeforeCapacityOutOptional),
      (Optional<Out>, dynamicQuantScaleOutOptional)) {
  const Routing routing{activeNum, expertCapacity, expertNum, dropPadMode == 1};
  routing.check(x, expertIdx, expertTokensCountOrCumsumFlag, dropPadMode, "");
  expect_range("quantMode", quantMode, 0, 1);
  EXPECT(x.size(1) > 0 || x.size(0) == 0, "x has shape ", x.sizes(),
         ", expected elements in its rows");
  expect_dtype("expandedXOut", expandedXOut, at::kChar);
  Routed routed(routing, x, expertIdx);
  routed.expect_rows(expandedXOut, x.size(1));
  routed.assign_positions();
  at::Tensor rows = wide(x).index_select(0, routed.from);
  if (quantMode == 0) {
    EXPECT(scaleOptional && offsetOptional,
           "scaleOptional or offsetOptional is null, expected tensors as quantMode is 0");
    expect_shape("scaleOptional", *scaleOptional, {1});
    expect_dtype("scaleOptional", *scaleOptional, at::kFloat);
    expect_shape("offsetOptional", *offsetOptional, {1});
    expect_dtype("offsetOptional", *offsetOptional, at::kFloat);
    rows = rows * *scaleOptional + *offsetOptional;
  } else {
    if (scaleOptional) {
      expect_dtype("scaleOptional", *scaleOptional, at::kFloat);
      rows = smoothed(rows, *scaleOptional, routed);
    }
    const at::Tensor scale = rows.numel() > 0 ? at::amax(rows.abs(), 1, /*keepdim=*/true) / 127
                                              : at::zeros({rows.size(0), 1}, rows.options());
    rows = rows / scale;
    if (dynamicQuantScaleOutOptional) {
      expect_dtype("dynamicQuantScaleOutOptional", *dynamicQuantScaleOutOptional, at::kFloat);
      dynamicQuantScaleOutOptional = routed.routed(scale).flatten();
    }
  }
  expandedXOut = routed.routed(to_int8(rows)).view(expandedXOut->sizes());
  expandedRowIdxOut = routed.row_index();
  routed.count(expertTokensCountOrCumsumFlag, expertTokensBeforeCapacityFlag,
               expertTokensCountOrCumsumOutOptional, expertTokensBeforeCapacityOutOptional);
}

// The cumulative numbers of tokens of the experts.
ACLNN(MoeComputeExpertTokens, (IndexIn, sortedExperts), (int64_t, numExperts), (Out, out)) {
  expect_dims("sortedExperts", sortedExperts, 1);
  expect_range("numExperts", numExperts, 1, 2048);
  constexpr int64_t kLimit = 1 << 24;
  EXPECT(sortedExperts.numel() < kLimit, "sortedExperts has ", sortedExperts.numel(),
         " elements, expected fewer than ", kLimit);
  const at::Tensor experts = at::arange(numExperts.value(), sortedExperts.options());
  out = at::searchsorted(sortedExperts.contiguous(), experts, /*out_int32=*/false, /*right=*/true);
}

}  // namespace aclnn_host::experts_initial_routing_rows
