// Products of groups of matrices.

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "cann/rows/checks.h"
#include "cann/rows/experts/grouped_lists.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_rows {

namespace {

using Tensors = std::vector<at::Tensor>;

// The first versions have their list on the host.
std::optional<at::Tensor> on_host(at::OptionalIntArrayRef list) {
  return list && !list->empty() ? std::optional(at::tensor(*list)) : std::nullopt;
}

// What the later versions are asked for, too.
struct Reserved {
  const Tensors& activation_input;
  const Tensors& activation_quant_scale;
  const Tensors& activation_quant_offset;
  const std::vector<Output>& activation_feature;
  const std::vector<Output>& quant_scale;

  void check() const {
    EXPECT(activation_input.empty(), "activationInputOptional is a list, expected null");
    EXPECT(activation_quant_scale.empty(), "activationQuantScaleOptional is a list, expected null");
    EXPECT(activation_quant_offset.empty(),
           "activationQuantOffsetOptional is a list, expected null");
    EXPECT(activation_feature.empty(), "activationFeatureOutOptional is a list, expected null");
    EXPECT(quant_scale.empty(), "dynQuantScaleOutOptional is a list, expected null");
  }
};

// The first number is how many rows the caller expects a group to have; the second may say that a
// weight is stored in an order of its own.
void check_tuning(at::OptionalIntArrayRef config, const std::vector<StoredTensor>& x,
                  const std::vector<StoredTensor>& weight) {
  if (!config || config->empty()) return;
  int64_t most = 0;
  for (const StoredTensor& each : x) {
    if (each.elements.dim() > 0) most = std::max(most, each.elements.size(0));
  }
  EXPECT((*config)[0] >= 0 && (*config)[0] <= most, "tuningConfigOptional has ", (*config)[0],
         ", expected 0 to ", most, ", the number of rows of x");
  const bool is_reordered = config->size() > 1 && (*config)[1] == 1 && !x.empty() &&
                            !weight.empty() && x[0].dtype == ACL_INT8 && is_int4(weight[0].dtype);
  EXPECT(!is_reordered,
         "tuningConfigOptional has 1 as its second number, expected 0; the host "
         "CANN does not emulate weights that are transposed before they are "
         "converted to FRACTAL_NZ");
}

}  // namespace

// Behaviour of GroupedMatmul, GroupedMatmulV*, GroupedMatmulWeightNz: Weights are widened,
// multiplied in FLOAT and rounded once. Lists of groups on the device are checked in stage 2
// (507015). Rows beyond the last group stay as they are.
// Limit of GroupedMatmul, GroupedMatmulV*, GroupedMatmulWeightNz: FLOAT8 weights and MX weights are
// refused with 161002.
ACLNN(GroupedMatmul, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<Ints>, groupListOptional), (int64_t, splitItem), (Outs, y)) {
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .group_list = on_host(groupListOptional),
                  .split_item = splitItem,
                  .is_list_on_device = false,
                  .takes_many_outputs = true},
                 y);
}
ACLNN(GroupedMatmulV2, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<Ints>, groupListOptional), (int64_t, splitItem), (int64_t, groupType), (Outs, y)) {
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .group_list = on_host(groupListOptional),
                  .split_item = splitItem,
                  .group_type = groupType.value(),
                  .is_list_on_device = false,
                  .takes_many_outputs = true},
                 y);
}
ACLNN(GroupedMatmulV3, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<In>, groupListOptional), (int64_t, splitItem), (int64_t, groupType), (Outs, y)) {
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .group_list = groupListOptional,
                  .split_item = splitItem,
                  .group_type = groupType.value()},
                 y);
}
ACLNN(GroupedMatmulV4, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<Ins>, perTokenScaleOptional), (Optional<In>, groupListOptional),
      (Optional<Ins>, activationInputOptional), (Optional<Ins>, activationQuantScaleOptional),
      (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem), (int64_t, groupType),
      (int64_t, groupListType), (int64_t, actType), (Outs, out),
      (Optional<Outs>, activationFeatureOutOptional), (Optional<Outs>, dynQuantScaleOutOptional)) {
  Reserved{activationInputOptional, activationQuantScaleOptional, activationQuantOffsetOptional,
           activationFeatureOutOptional, dynQuantScaleOutOptional}
      .check();
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .per_token_scale = perTokenScaleOptional,
                  .group_list = groupListOptional,
                  .split_item = splitItem,
                  .group_type = groupType.value(),
                  .list_type = groupListType,
                  .activation = actType},
                 out);
}
ACLNN(GroupedMatmulV5, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<Ins>, perTokenScaleOptional), (Optional<In>, groupListOptional),
      (Optional<Ins>, activationInputOptional), (Optional<Ins>, activationQuantScaleOptional),
      (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem), (int64_t, groupType),
      (int64_t, groupListType), (int64_t, actType), (Optional<Ints>, tuningConfigOptional),
      (Outs, out), (Optional<Outs>, activationFeatureOutOptional),
      (Optional<Outs>, dynQuantScaleOutOptional)) {
  Reserved{activationInputOptional, activationQuantScaleOptional, activationQuantOffsetOptional,
           activationFeatureOutOptional, dynQuantScaleOutOptional}
      .check();
  check_tuning(tuningConfigOptional, x, weight);
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .per_token_scale = perTokenScaleOptional,
                  .group_list = groupListOptional,
                  .split_item = splitItem,
                  .group_type = groupType.value(),
                  .list_type = groupListType,
                  .activation = actType},
                 out);
}
// quantGroupSize is what the shape of a scale says, too.
ACLNN(GroupedMatmulWeightNz, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
      (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
      (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
      (Optional<Ins>, perTokenScaleOptional), (Optional<In>, groupListOptional),
      (Optional<Ins>, activationInputOptional), (Optional<Ins>, activationQuantScaleOptional),
      (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem), (int64_t, groupType),
      (int64_t, groupListType), (int64_t, actType), (Optional<Ints>, tuningConfigOptional),
      (int64_t, quantGroupSize), (Outs, out), (Optional<Outs>, activationFeatureOutOptional),
      (Optional<Outs>, dynQuantScaleOutOptional)) {
  Reserved{activationInputOptional, activationQuantScaleOptional, activationQuantOffsetOptional,
           activationFeatureOutOptional, dynQuantScaleOutOptional}
      .check();
  check_tuning(tuningConfigOptional, x, weight);
  EXPECT(groupType != 2, "groupType is 2, expected -1 or 0");
  EXPECT(quantGroupSize >= 0, "quantGroupSize is ", quantGroupSize.value(), ", expected 0 or more");
  grouped_matmul({.x = x,
                  .weight = weight,
                  .bias = biasOptional,
                  .scale = scaleOptional,
                  .offset = offsetOptional,
                  .antiquant_scale = antiquantScaleOptional,
                  .antiquant_offset = antiquantOffsetOptional,
                  .per_token_scale = perTokenScaleOptional,
                  .group_list = groupListOptional,
                  .split_item = splitItem,
                  .group_type = groupType.value(),
                  .list_type = groupListType,
                  .activation = actType},
                 out);
}

}  // namespace aclnn_host::experts_grouped_matmul_rows
