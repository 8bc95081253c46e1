// Products of groups of matrices.

#include <type_traits>

#include "cann/rows/experts/grouped_lists.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_rows {

namespace {

// The first versions take the group list from the host.
std::optional<at::Tensor> tensor_of(at::OptionalIntArrayRef list) {
  return list && !list->empty() ? std::optional(at::tensor(*list)) : std::nullopt;
}
std::optional<at::Tensor> tensor_of(const std::optional<at::Tensor>& list) {
  return list;
}

// Refuses tensors in the reserved lists of the later versions; empty lists are accepted.
template <class Version>
void expect_no_activation_tensors(const Version& row) {
  const auto expect_empty = [](const char* name, const auto& list) {
    EXPECT(list.empty(), name, " is a list, expected null");
  };
  expect_empty("activationInputOptional", row.activationInputOptional);
  expect_empty("activationQuantScaleOptional", row.activationQuantScaleOptional);
  expect_empty("activationQuantOffsetOptional", row.activationQuantOffsetOptional);
  expect_empty("activationFeatureOutOptional", row.activationFeatureOutOptional);
  expect_empty("dynQuantScaleOutOptional", row.dynQuantScaleOutOptional);
}

// The second number of the configuration selects a weight in a different memory order.
void check_tuning(at::OptionalIntArrayRef config, const std::vector<StoredTensor>& x,
                  const std::vector<StoredTensor>& weight) {
  int64_t rows = 0;
  for (const StoredTensor& each : x) {
    if (each.elements.dim() > 0) rows = std::max(rows, each.elements.size(0));
  }
  expect_tuning("tuningConfigOptional", config, rows);
  const bool is_reordered = config && config->size() > 1 && (*config)[1] == 1 && !x.empty() &&
                            !weight.empty() && x[0].dtype == ACL_INT8 && is_int4(weight[0].dtype);
  EXPECT(!is_reordered,
         "tuningConfigOptional has 1 as its second number, expected 0; the host CANN does not "
         "emulate weights that are transposed before they are converted to FRACTAL_NZ");
}

template <class Version>
void multiply(Version& row) {
  constexpr bool kIsListOnDevice =
      !std::is_same_v<decltype(row.groupListOptional), at::OptionalIntArrayRef>;
  GroupedMatmul arguments{.x = row.x,
                          .weight = row.weight,
                          .bias = row.biasOptional,
                          .scale = row.scaleOptional,
                          .offset = row.offsetOptional,
                          .antiquant_scale = row.antiquantScaleOptional,
                          .antiquant_offset = row.antiquantOffsetOptional,
                          .group_list = tensor_of(row.groupListOptional),
                          .split_item = row.splitItem,
                          .is_list_on_device = kIsListOnDevice,
                          .takes_many_outputs = !kIsListOnDevice};
  if constexpr (requires { row.groupType; }) arguments.group_type = row.groupType.value();
  if constexpr (requires { row.perTokenScaleOptional; }) {
    expect_no_activation_tensors(row);
    arguments.per_token_scale = row.perTokenScaleOptional;
    arguments.list_type = row.groupListType;
    arguments.activation = row.actType;
  }
  if constexpr (requires { row.tuningConfigOptional; }) {
    check_tuning(row.tuningConfigOptional, row.x, row.weight);
  }
  if constexpr (requires { row.quantGroupSize; }) {  // the shape of a scale implies the group size
    EXPECT(row.groupType != 2, "groupType is 2, expected -1 or 0");
    EXPECT(row.quantGroupSize >= 0, "quantGroupSize is ", row.quantGroupSize.value(),
           ", expected 0 or more");
  }
  if constexpr (requires { row.out; }) {
    EXPECT(!row.out.empty(), "out has no tensors, expected one or more");
    grouped_matmul(arguments, row.out);
  } else {
    EXPECT(!row.y.empty(), "y has no tensors, expected one or more");
    grouped_matmul(arguments, row.y);
  }
}

}  // namespace

// Behaviour of GroupedMatmul, GroupedMatmulV*, GroupedMatmulWeightNz: Weights are widened,
// multiplied in FLOAT and rounded once. Lists of groups on the device are checked in stage 2
// (507015). Rows beyond the last group stay as they are.
// Limit of GroupedMatmul, GroupedMatmulV*, GroupedMatmulWeightNz: FLOAT8 weights and MX weights are
// refused with 161002.
ACLNN_STRUCT(GroupedMatmul, (Stored<Ins>, x), (Stored<Ins>, weight), (Optional<Ins>, biasOptional),
             (Optional<Ins>, scaleOptional), (Optional<Ins>, offsetOptional),
             (Optional<Ins>, antiquantScaleOptional), (Optional<Ins>, antiquantOffsetOptional),
             (Optional<Ints>, groupListOptional), (int64_t, splitItem), (Outs, y)) {
  multiply(*this);
}
ACLNN_STRUCT(GroupedMatmulV2, (Stored<Ins>, x), (Stored<Ins>, weight),
             (Optional<Ins>, biasOptional), (Optional<Ins>, scaleOptional),
             (Optional<Ins>, offsetOptional), (Optional<Ins>, antiquantScaleOptional),
             (Optional<Ins>, antiquantOffsetOptional), (Optional<Ints>, groupListOptional),
             (int64_t, splitItem), (int64_t, groupType), (Outs, y)) {
  multiply(*this);
}
ACLNN_STRUCT(GroupedMatmulV3, (Stored<Ins>, x), (Stored<Ins>, weight),
             (Optional<Ins>, biasOptional), (Optional<Ins>, scaleOptional),
             (Optional<Ins>, offsetOptional), (Optional<Ins>, antiquantScaleOptional),
             (Optional<Ins>, antiquantOffsetOptional), (Optional<In>, groupListOptional),
             (int64_t, splitItem), (int64_t, groupType), (Outs, y)) {
  multiply(*this);
}
ACLNN_STRUCT(GroupedMatmulV4, (Stored<Ins>, x), (Stored<Ins>, weight),
             (Optional<Ins>, biasOptional), (Optional<Ins>, scaleOptional),
             (Optional<Ins>, offsetOptional), (Optional<Ins>, antiquantScaleOptional),
             (Optional<Ins>, antiquantOffsetOptional), (Optional<Ins>, perTokenScaleOptional),
             (Optional<In>, groupListOptional), (Optional<Ins>, activationInputOptional),
             (Optional<Ins>, activationQuantScaleOptional),
             (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem),
             (int64_t, groupType), (int64_t, groupListType), (int64_t, actType), (Outs, out),
             (Optional<Outs>, activationFeatureOutOptional),
             (Optional<Outs>, dynQuantScaleOutOptional)) {
  multiply(*this);
}
ACLNN_STRUCT(GroupedMatmulV5, (Stored<Ins>, x), (Stored<Ins>, weight),
             (Optional<Ins>, biasOptional), (Optional<Ins>, scaleOptional),
             (Optional<Ins>, offsetOptional), (Optional<Ins>, antiquantScaleOptional),
             (Optional<Ins>, antiquantOffsetOptional), (Optional<Ins>, perTokenScaleOptional),
             (Optional<In>, groupListOptional), (Optional<Ins>, activationInputOptional),
             (Optional<Ins>, activationQuantScaleOptional),
             (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem),
             (int64_t, groupType), (int64_t, groupListType), (int64_t, actType),
             (Optional<Ints>, tuningConfigOptional), (Outs, out),
             (Optional<Outs>, activationFeatureOutOptional),
             (Optional<Outs>, dynQuantScaleOutOptional)) {
  multiply(*this);
}
ACLNN_STRUCT(GroupedMatmulWeightNz, (Stored<Ins>, x), (Stored<Ins>, weight),
             (Optional<Ins>, biasOptional), (Optional<Ins>, scaleOptional),
             (Optional<Ins>, offsetOptional), (Optional<Ins>, antiquantScaleOptional),
             (Optional<Ins>, antiquantOffsetOptional), (Optional<Ins>, perTokenScaleOptional),
             (Optional<In>, groupListOptional), (Optional<Ins>, activationInputOptional),
             (Optional<Ins>, activationQuantScaleOptional),
             (Optional<Ins>, activationQuantOffsetOptional), (int64_t, splitItem),
             (int64_t, groupType), (int64_t, groupListType), (int64_t, actType),
             (Optional<Ints>, tuningConfigOptional), (int64_t, quantGroupSize), (Outs, out),
             (Optional<Outs>, activationFeatureOutOptional),
             (Optional<Outs>, dynQuantScaleOutOptional)) {
  multiply(*this);
}

}  // namespace aclnn_host::experts_grouped_matmul_rows
