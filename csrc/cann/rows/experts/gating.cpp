// Gating of a mixture of experts: selects the experts with the highest scores for each token.

#include "cann/rows/experts/experts.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_gating_rows {

namespace {

// Flags of the experts that may be selected: all experts of the groups whose best members have the
// highest sums.
at::Tensor best_groups(const at::Tensor& grouped, int64_t count, int64_t members) {
  const at::Tensor scores = std::get<0>(at::topk(grouped, members, -1)).sum(-1);
  const at::Tensor ranks =
      at::argsort(at::argsort(scores, /*stable=*/true, -1, /*descending=*/true),
                  /*stable=*/true, -1, false);
  return (ranks < count).unsqueeze(-1).expand_as(grouped);
}

// The positions of the k largest elements of each row; ties go to the first.
at::Tensor best(const at::Tensor& scores, int64_t k) {
  return at::argsort(scores, /*stable=*/true, -1, /*descending=*/true).narrow(-1, 0, k);
}

// The function that makes scores of the elements of x.
enum Norm : int64_t { kSoftmax, kSigmoid, kRootOfSoftplus };

// The attributes that all versions have.
struct Gating {
  int64_t k;
  int64_t chosen_groups;
  int64_t groups;
  int64_t group_mode;
  int64_t renorm;
  int64_t norm;
  double factor;
  double epsilon;
};
// `row` is the struct of a version.
template <class Version>
Gating gating_of(const Version& row) {
  return {row.k,      row.kGroup,   row.groupCount,          row.groupSelectMode,
          row.renorm, row.normType, row.routedScalingFactor, row.eps};
}

// Checks that each group has at least `least` experts, and returns the number of experts of a
// group.
int64_t check_groups(const Gating& gating, int64_t experts, int64_t least) {
  expect_range("the last dimension of x", experts, 1, 2048);
  expect_range("groupCount", gating.groups, 1, experts);
  const int64_t members = experts / gating.groups;
  EXPECT(experts % gating.groups == 0 && members >= least, "groupCount is ", gating.groups,
         ", expected groups of the ", experts, " experts that have one size, ", least, " or more");
  constexpr int64_t kMostMembers = 2048;
  const int64_t padded = (members + 31) / 32 * 32 * gating.groups;
  EXPECT(padded <= kMostMembers, "groupCount is ", gating.groups, ", which makes groups of ",
         members, " experts, ", padded,
         " together with each rounded up to a multiple of 32; expected at most ", kMostMembers);
  expect_range("kGroup", gating.chosen_groups, 1, gating.groups);
  expect_range("k", gating.k, 1, gating.chosen_groups * members);
  expect_range("groupSelectMode", gating.group_mode, 0, 1);
  return members;
}

at::Tensor scores_of(const at::Tensor& x, int64_t norm) {
  switch (norm) {
    case kSigmoid: return at::sigmoid(wide(x));
    case kRootOfSoftplus: return at::sqrt(at::softplus(wide(x)));
    default: return at::softmax(wide(x), -1);
  }
}

// The experts with the best scores, within the best groups. The bias influences the selection, but
// not the scores.
at::Tensor best_experts(const at::Tensor& scores, const at::Tensor& x,
                        const std::optional<at::Tensor>& bias, const Gating& gating,
                        int64_t members) {
  at::Tensor ranked = scores;
  if (bias) {
    expect_shape("biasOptional", *bias, {x.size(-1)});
    expect_dtype("biasOptional", *bias, x.scalar_type());
    ranked = ranked + wide(*bias);
  }
  const at::Tensor grouped = ranked.unflatten(-1, {gating.groups, members});
  const at::Tensor chosen =
      grouped
          .masked_fill(~best_groups(grouped, gating.chosen_groups, gating.group_mode == 1 ? 2 : 1),
                       -std::numeric_limits<double>::infinity())
          .flatten(-2);
  return best(chosen, gating.k);
}

// The scores of the experts. They are divided by their sum, except for a softmax without renorm.
at::Tensor gates(const at::Tensor& scores, const at::Tensor& experts, const Gating& gating) {
  at::Tensor result = scores.gather(-1, experts);
  if (gating.norm != kSoftmax || gating.renorm == 1) {
    result = result / (result.sum(-1, /*keepdim=*/true) + gating.epsilon);
  }
  return result * gating.factor;
}

// Writes the results of a version.
template <class Version>
void write(Version& row, const at::Tensor& scores, const at::Tensor& experts) {
  row.yOut = gates(scores, experts, gating_of(row));
  row.expertIdxOut = experts;
  EXPECT(!row.outFlag || row.outOut, "outFlag is true and outOut is null, expected a tensor");
  if (row.outFlag) row.outOut = scores;
}

}  // namespace

ACLNN_STRUCT(MoeGatingTopK, (Floating<In>, x), (Optional<In>, biasOptional), (int64_t, k),
             (int64_t, kGroup), (int64_t, groupCount), (int64_t, groupSelectMode),
             (int64_t, renorm), (int64_t, normType), (bool, outFlag), (double, routedScalingFactor),
             (double, eps), (SameDtype<Out>, yOut, "x"), (Out, expertIdxOut),
             (Optional<Out>, outOut)) {
  EXPECT(x.dim() > 0, "x has no dimensions, expected 1 or more");
  const Gating gating = gating_of(*this);
  const int64_t members = check_groups(gating, x.size(-1), /*least=*/3);
  expect_range("renorm", renorm, 0, 0);
  expect_range("normType", normType, kSoftmax, kSigmoid);
  const at::Tensor scores = scores_of(x, normType);
  write(*this, scores, best_experts(scores, x, biasOptional, gating, members));
}
// With inputIds, the experts of a token are a row of the table tid2eid, and no selection takes
// place.
// Behaviour of MoeGatingTopKV2: yOut is divided by the sum of the chosen scores in both modes, as
// torch_npu's tests have it. The document sums all scores in one of them.
ACLNN_STRUCT(MoeGatingTopKV2, (Floating<In>, x), (Optional<In>, biasOptional),
             (Optional<In>, inputIdsOptional), (Optional<In>, tid2eidOptional), (int64_t, k),
             (int64_t, kGroup), (int64_t, groupCount), (int64_t, groupSelectMode),
             (int64_t, renorm), (int64_t, normType), (bool, outFlag), (double, routedScalingFactor),
             (double, eps), (SameDtype<Out>, yOut, "x"), (Out, expertIdxOut),
             (Optional<Out>, outOut)) {
  expect_dims("x", x, 2);
  const Gating gating = gating_of(*this);
  const int64_t count = x.size(-1);
  const int64_t members = check_groups(gating, count, /*least=*/groupSelectMode == 1 ? 2 : 1);
  expect_range("renorm", renorm, 0, 1);
  expect_range("normType", normType, kSoftmax, kRootOfSoftplus);
  expect_dtype("expertIdxOut", expertIdxOut, at::kInt);
  const at::Tensor scores = scores_of(x, normType);
  if (!inputIdsOptional || !tid2eidOptional) {
    write(*this, scores, best_experts(scores, x, biasOptional, gating, members));
    return;
  }
  constexpr int64_t kMostHashed = 64;
  expect_range("k", k, 1, kMostHashed);
  EXPECT(kGroup == groupCount || groupCount == count, "kGroup is ", kGroup.value(), ", expected ",
         groupCount.value(), ", groupCount, as inputIdsOptional is given");
  const at::Tensor &ids = *inputIdsOptional, &table = *tid2eidOptional;
  expect_dtype("inputIdsOptional", ids, {at::kInt, at::kLong});
  expect_shape("inputIdsOptional", ids, {x.size(0)});
  expect_dtype("tid2eidOptional", table, {at::kInt, at::kLong});
  expect_dims("tid2eidOptional", table, 2);
  expect_shape("tid2eidOptional", table, {table.size(0), k.value()});
  if (is_rehearsed()) {
    write(*this, scores, at::zeros({x.size(0), k.value()}, x.options().dtype(at::kLong)));
    return;
  }
  check_bounds("inputIdsOptional", ids, table.size(0));
  check_bounds("tid2eidOptional", table, count);
  write(*this, scores, table.to(at::kLong).index_select(0, ids));
}
// The gradient of x, for sigmoid scores of which those of the selected experts are divided by their
// sum.
ACLNN(MoeGatingTopKBackward, (In, xNorm), (Floating<In>, gradY),
      (SameShape<In>, expertIdx, "gradY"), (int64_t, renorm), (int64_t, normType),
      (double, routedScalingFactor), (double, eps), (SameDtype<Out>, out, "gradY")) {
  expect_range("normType", normType, kSigmoid, kSigmoid);
  expect_range("renorm", renorm, 0, 1);
  expect_dtype("xNorm", xNorm, at::kFloat);
  expect_dims("xNorm", xNorm, 2);
  expect_range("the last dimension of xNorm", xNorm.size(1), 2, 2048);
  expect_dims("gradY", gradY, 2);
  expect_shape("gradY", gradY, {xNorm.size(0), gradY.size(1)});
  expect_range("the last dimension of gradY", gradY.size(1), 1, xNorm.size(1));
  expect_dtype("expertIdx", expertIdx, at::kInt);
  if (has_values(expertIdx)) check_bounds("expertIdx", expertIdx, xNorm.size(1));
  const at::Tensor experts = expertIdx.to(at::kLong);
  const at::Tensor chosen = xNorm.gather(1, experts);
  const at::Tensor sum = chosen.sum(1, /*keepdim=*/true) + eps.value();
  const at::Tensor gradient = wide(gradY) * routedScalingFactor.value();
  const at::Tensor mean = (chosen / sum * gradient).sum(1, /*keepdim=*/true);
  const at::Tensor of_scores =
      at::zeros_like(xNorm).scatter_add(1, experts, (gradient - mean) / sum);
  out = xNorm * (1 - xNorm) * of_scores;
}

namespace {

// Refuses arguments that gating by softmax does not accept.
void expect_gating(const at::Tensor& x, const std::optional<at::Tensor>& finished, int64_t k,
                   const Output& y, const Output& experts) {
  expect_dims("x", x, 2, 3);
  expect_range("k", k, 0, std::min<int64_t>(x.size(-1), 1024));
  std::vector<int64_t> shape = x.sizes().vec();
  if (finished) {
    expect_tensor("finishedOptional", *finished, at::kBool,
                  at::IntArrayRef(shape).slice(0, shape.size() - 1));
  }
  shape.back() = k;
  expect_shape("yOut", y, shape);
  expect_dtype("expertIdxOut", experts, at::kInt);
}

// Rows that are finished have no experts: their elements are the number of experts.
at::Tensor unless_finished(const at::Tensor& chosen, const std::optional<at::Tensor>& finished,
                           int64_t experts) {
  return finished ? chosen.masked_fill(finished->unsqueeze(-1), experts) : chosen;
}

}  // namespace

// rowIdxOut numbers the first experts of all tokens, then all second ones.
ACLNN(MoeGatingTopKSoftmax, (Floating<In>, x), (Optional<In>, finishedOptional), (int64_t, k),
      (SameDtype<Out>, yOut, "x"), (Out, expertIdxOut), (Out, rowIdxOut)) {
  expect_gating(x, finishedOptional, k, yOut, expertIdxOut);
  expect_dtype("rowIdxOut", rowIdxOut, at::kInt);
  const at::Tensor scores = at::softmax(wide(x), -1);
  const at::Tensor chosen = best(scores, k);
  yOut = scores.gather(-1, chosen);
  expertIdxOut = unless_finished(chosen, finishedOptional, x.size(-1));
  const int64_t rows = c10::multiply_integers(chosen.sizes().slice(0, chosen.dim() - 1));
  rowIdxOut =
      at::arange(chosen.numel(), chosen.options()).view({k, rows}).t().reshape(chosen.sizes());
}

ACLNN(MoeGatingTopKSoftmaxV2, (Floating<In>, x), (Optional<In>, finishedOptional), (int64_t, k),
      (int64_t, renorm), (bool, outputSoftmaxResultFlag), (SameDtype<Out>, yOut, "x"),
      (Out, expertIdxOut), (Optional<Out>, softmaxResultOutOptional)) {
  expect_range("renorm", renorm, 0, 1);
  expect_gating(x, finishedOptional, k, yOut, expertIdxOut);
  const at::Tensor scores = renorm == 1 ? wide(x) : at::softmax(wide(x), -1);
  const at::Tensor chosen = best(scores, k);
  const at::Tensor kept = scores.gather(-1, chosen);
  yOut = renorm == 1 ? at::softmax(kept, -1) : kept;
  expertIdxOut = unless_finished(chosen, finishedOptional, x.size(-1));
  if (renorm == 1 || !outputSoftmaxResultFlag) return;
  EXPECT(softmaxResultOutOptional,
         "softmaxResultOutOptional is null, expected a tensor as outputSoftmaxResultFlag is true");
  expect_dtype("softmaxResultOutOptional", *softmaxResultOutOptional, at::kFloat);
  softmaxResultOutOptional = scores;
}

namespace {

// Checks the arguments of aclnnMoeFusedTopk.
template <class Row>
void expect_fused(const Row& row) {
  expect_dtype("x", row.x, {at::kHalf, at::kBFloat16, at::kFloat});
  expect_dims("x", row.x, 2);
  const int64_t tokens = row.x.size(0), experts = row.x.size(1);
  expect_range("the last dimension of x", experts, 1, 1024);
  expect_shape("addNum", row.addNum, {experts});
  expect_range("groupNum", row.groupNum, 1, 256);
  EXPECT(experts % row.groupNum.value() == 0, "groupNum is ", row.groupNum.value(),
         ", expected a divisor of the ", experts, " experts");
  expect_range("groupTopk", row.groupTopk, 1, row.groupNum);
  expect_range("topN", row.topN, 1, experts / row.groupNum.value());
  expect_range("topK", row.topK, 1, experts);
  expect_one_of("activateType", row.activateType, {0});
  expect_float(row.y, {tokens, row.topK.value()});
  expect_dtype("indices", row.indices, at::kInt);
  if (!row.enableExpertMapping) return;
  require_given(row.mappingNum && row.mappingTable, row.mappingNum ? "mappingTable" : "mappingNum",
                " is null, expected a tensor as enableExpertMapping is true");
  expect_tensor("mappingNum", *row.mappingNum, at::kInt, {experts});
  expect_dtype("mappingTable", *row.mappingTable, at::kInt);
  expect_dims("mappingTable", *row.mappingTable, 2);
  const int64_t columns = row.mappingTable->size(1);
  expect_range("the last dimension of mappingTable", columns, 1, 128);
  expect_shape("mappingTable", *row.mappingTable, {experts, columns});
}

// The number that stands for each chosen expert in its row of the table, of which the first
// `counts` columns are used: tokens take turns.
at::Tensor mapped(const at::Tensor& experts, const at::Tensor& counts, const at::Tensor& table) {
  const int64_t columns = table.size(1);
  check_bounds("mappingNum", counts, columns + 1);
  const at::Tensor used = counts.to(at::kLong).clamp_min(1).index_select(0, experts.flatten());
  const at::Tensor token = at::arange(experts.size(0), experts.options()).unsqueeze(1);
  const at::Tensor cell = experts * columns + token.remainder(used.view_as(experts));
  return table.flatten().index_select(0, cell.flatten()).view_as(experts);
}

}  // namespace

// Behaviour of MoeFusedTopk: The scores of experts in groups that are not selected count as 0, as
// in the kernel: such experts are chosen before those with negative scores, and where topK is more
// than the selected groups have. With enableExpertMapping, token t gets column t % mappingNum of
// the table.
ACLNN_STRUCT(MoeFusedTopk, (In, x), (SameDtype<In>, addNum, "x"), (Optional<In>, mappingNum),
             (Optional<In>, mappingTable), (uint32_t, groupNum), (uint32_t, groupTopk),
             (uint32_t, topN), (uint32_t, topK), (uint32_t, activateType), (bool, isNorm),
             (float, scale), (bool, enableExpertMapping), (Out, y), (Out, indices)) {
  expect_fused(*this);
  const at::Tensor scores = at::sigmoid(wide(x));
  const at::Tensor ranked = scores + wide(addNum);
  const at::Tensor grouped = ranked.unflatten(1, {groupNum.value(), x.size(1) / groupNum.value()});
  const at::Tensor excluded = best_groups(grouped, groupTopk, topN).logical_not();
  const at::Tensor experts = best(grouped.masked_fill(excluded, 0).flatten(1), topK);
  const at::Tensor chosen = scores.gather(1, experts);
  const at::Tensor numbers =
      enableExpertMapping ? mapped(experts, *mappingNum, *mappingTable) : experts;
  y = isNorm ? chosen / chosen.sum(1, /*keepdim=*/true) * scale.value() : chosen;
  indices = numbers;
}

}  // namespace aclnn_host::experts_gating_rows
