// Maps the experts of tokens to the instances that compute them.

#include "cann/rows/experts/experts.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_expert_placement_rows {

// A row of eplbTable has the number of an expert's instances, then the instances. Without scales,
// balancedActiveMask is not written.
ACLNN(MoeUpdateExpert, (In, expertIds), (In, eplbTable), (Optional<In>, expertScalesOptional),
      (Optional<In>, pruningThresholdOptional), (Optional<In>, activeMaskOptional),
      (int64_t, localRankId), (int64_t, worldSize), (int64_t, balanceMode),
      (SameDtype<Out>, balancedExpertIds, "expertIds"), (Out, balancedActiveMask)) {
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
  expect_dtype("expertIds", expertIds, {at::kInt, at::kLong});
  EXPECT(bool(expertScalesOptional) == bool(pruningThresholdOptional),
         "one of expertScalesOptional and pruningThresholdOptional is null, expected both");
  EXPECT(expertScalesOptional || !activeMaskOptional,
         "expertScalesOptional is null, expected a tensor as activeMaskOptional is");

  check_bounds("expertIds", expertIds, experts);
  const at::Tensor table_rows =
      eplbTable.to(at::kLong).index_select(0, expertIds.to(at::kLong).flatten());
  const at::Tensor found = table_rows.select(1, 0);
  if (has_values(found)) check_bounds("the first column of eplbTable", found, columns, 1);
  const at::Tensor instances = found.clamp(1, columns - 1);
  at::Tensor column;
  if (by_rank) {
    // Consecutive ranks share an instance.
    column = at::floor_divide(at::full_like(instances, localRankId.value()),
                              (instances + (worldSize.value() - 1)).floor_divide(instances));
  } else {
    const at::Tensor token = at::arange(expertIds.size(0), instances.options());
    column = token.repeat_interleave(expertIds.size(1)).remainder(instances);
  }
  column = at::where(instances == 1, 0, column) + 1;
  balancedExpertIds = table_rows.gather(1, column.unsqueeze(1)).view(expertIds.sizes());
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
    expect_tensor("activeMaskOptional", *activeMaskOptional, at::kBool, {expertIds.size(0)});
    mask = mask & activeMaskOptional->unsqueeze(1);
  }
  balancedActiveMask = mask;
}

}  // namespace aclnn_host::experts_expert_placement_rows
