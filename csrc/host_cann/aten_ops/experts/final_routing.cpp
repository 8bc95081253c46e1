// Final routing of a mixture of experts: what the experts return, summed up by token.

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/experts/experts.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// In the modes 1 and 3 expandedX is [experts, capacity, hidden] and dropped rows have the place -1;
// in the modes 0 and 1 places has all tokens' first ones, then all second ones. A dropped row adds
// no bias.
at::Tensor finalized(const at::Tensor& expanded, const at::Tensor& row_index,
                     const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& scales,
                     const char* experts_name, const std::optional<at::Tensor>& experts,
                     int64_t mode, int64_t tokens) {
  const bool drops = mode == 1 || mode == 3;
  expect_dims("expandedX", expanded, drops ? 3 : 2);
  expect_dims("expandedRowIdx", row_index, 1);
  const int64_t count = rows_per_token("expandedRowIdx", row_index.numel(), tokens);
  const at::Tensor rows = drops ? wide(expanded).flatten(0, 1) : wide(expanded);
  TORCH_CHECK(drops || rows.size(0) == row_index.numel(), "expandedX has ", rows.size(0),
              " rows, expected ", row_index.numel(), " as expandedRowIdx has elements");
  check_bounds(drops ? "expandedRowIdx + 1" : "expandedRowIdx", drops ? row_index + 1 : row_index,
               rows.size(0) + (drops ? 1 : 0));
  const at::Tensor places =
      mode < 2 ? row_index.view({count, tokens}).t() : row_index.view({tokens, count});
  at::Tensor results = rows_at(rows, places.flatten()).unflatten(0, {tokens, count});
  if (bias) {
    TORCH_CHECK(experts, experts_name, " is null, expected a tensor as the bias is");
    expect_dims("the bias", *bias, 2);
    expect_shape(experts_name, *experts, {tokens, count});
    const at::Tensor of_rows = experts->to(at::kLong).flatten();
    check_bounds(experts_name, of_rows, bias->size(0));
    const at::Tensor addends = rows_at(wide(*bias), of_rows).unflatten(0, {tokens, count});
    results = results + addends.masked_fill((places < 0).unsqueeze(-1), 0);
  }
  if (scales) {
    expect_shape("the scales", *scales, {tokens, count});
    results = results * wide(*scales).unsqueeze(-1);
  }
  return results.sum(1);
}

at::Tensor plus(const at::Tensor& sum, const char* name, const std::optional<at::Tensor>& addend) {
  if (!addend) return sum;
  expect_shape(name, *addend, sum.sizes());
  return sum + wide(*addend);
}

}  // namespace

// All of expandedX, x1, x2Optional, bias and scales have one type.
ACLNN(MoeFinalizeRouting, (FloatIn, expandedX), (In, x1), (OptionalIn, x2Optional), (In, bias),
      (In, scales), (IndexIn, expandedRowIdx), (IndexIn, expandedExpertIdx), (Out, out)) {
  expect_dims("out", out, 2);
  expect_dtype(out, expandedX);
  expect_dtype("x1", x1, expandedX);
  expect_dtype("bias", bias, expandedX);
  expect_dtype("scales", scales, expandedX);
  if (x2Optional) expect_dtype("x2Optional", *x2Optional, expandedX);
  const at::Tensor sum = finalized(expandedX, expandedRowIdx, bias, scales, "expandedExpertIdx",
                                   expandedExpertIdx, /*mode=*/0, out->size(0));
  out = plus(plus(sum, "x1", x1), "x2Optional", x2Optional);
}
ACLNN(MoeFinalizeRoutingV2, (FloatIn, expandedX), (IndexIn, expandedRowIdx),
      (OptionalIn, x1Optional), (OptionalIn, x2Optional), (OptionalIn, biasOptional),
      (OptionalIn, scalesOptional), (OptionalIn, expertIdxOptional), (int64_t, dropPadMode),
      (Out, out)) {
  expect_range("dropPadMode", dropPadMode, 0, 3);
  expect_dims("out", out, 2);
  expect_dtype(out, expandedX);
  const at::Tensor sum =
      finalized(expandedX, expandedRowIdx, biasOptional, scalesOptional, "expertIdxOptional",
                expertIdxOptional, dropPadMode, out->size(0));
  out = plus(plus(sum, "x1Optional", x1Optional), "x2Optional", x2Optional);
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
