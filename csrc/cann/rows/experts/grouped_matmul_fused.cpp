// Products of groups of rows, added to the rows of tokens.

#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_fused_rows {

namespace {

// The weights that a function accepts.
enum class Weights { kInt4, kBlockedInt8, kBlocked };

// x (m, k), a weight (experts, k, n), their scales, and the arguments of the final routing.
struct FinalizeRouting {
  at::Tensor x = {};
  StoredTensor weight = {};
  const char* x_name = "x1";
  const char* weight_name = "x2";
  const char* suffix = "";  // of the names of arguments that only some functions call optional
  Weights weights = Weights::kInt4;
  at::Tensor scale = {};       // (experts, 1, n) or (experts, n)
  OptionalTensor bias = {};    // (experts, n)
  OptionalTensor offset = {};  // (experts, 1, n)
  OptionalTensor token_scale = {};
  at::Tensor group_list = {};
  OptionalTensor shared_input = {};  // (rows of the output, n)
  OptionalTensor logit = {};
  at::Tensor row_index = {};
  int64_t dtype = 0;
  double shared_weight = 0;
  int64_t shared_offset = 0;
  bool transpose_x = false, transpose_weight = false;
  int64_t list_type = kGroupEnds;

  std::string named(const char* argument) const { return std::string(argument) + suffix; }
};

void expect_type(const std::string& name, const OptionalTensor& tensor, at::ScalarType type) {
  if (tensor) expect_dtype(name.c_str(), *tensor, type);
}

void check_weight(const FinalizeRouting& call) {
  const StoredTensor& weight = call.weight;
  switch (call.weights) {
    case Weights::kInt4:
      expect_type(call.weight_name, weight, {ACL_INT4, ACL_INT32});
      expect_format(call.weight_name, weight);
      break;
    case Weights::kBlockedInt8: expect_type(call.weight_name, weight, {ACL_INT8}); [[fallthrough]];
    case Weights::kBlocked:
      expect_type(call.weight_name, weight, {ACL_INT8, ACL_INT4, ACL_INT32});
      expect_blocked_matrix(call.weight_name, weight);
  }
  expect_all_matrices(call.weight_name, weight);
}

void check_types(const FinalizeRouting& call, GroupedKind kind, const Output& out) {
  expect_one_of("dtype", call.dtype, {0}, " (FLOAT)");
  EXPECT(!call.transpose_x && !call.transpose_weight, "the flag that transposes ",
         call.transpose_x ? call.x_name : call.weight_name, " is true, expected false");
  expect_list_type(call.list_type);
  expect_dtype(out.name(), out, at::kFloat);
  expect_type(call.named("bias"), call.bias, at::kFloat);
  expect_type("offsetOptional", call.offset, at::kFloat);
  expect_type("pertokenScaleOptional", call.token_scale, at::kFloat);
  expect_type(call.named("sharedInput"), call.shared_input, at::kBFloat16);
  expect_type(call.named("logit"), call.logit, at::kFloat);
  expect_dtype(call.named("rowIndex").c_str(), call.row_index, {at::kLong, at::kInt});
  if (kind == GroupedKind::kInt8) {
    expect_dtype(call.named("scale").c_str(), call.scale,
                 {at::kFloat, at::kBFloat16, at::kLong, at::kUInt64});
    expect_absent(call.named("bias").c_str(), call.bias);
    expect_absent("offsetOptional", call.offset);
  } else {
    expect_dtype(call.named("scale").c_str(), call.scale, {at::kLong, at::kUInt64});
    EXPECT(call.bias && call.token_scale && call.logit, call.named("bias"),
           ", pertokenScaleOptional or ", call.named("logit"), " is null, expected tensors as ",
           call.weight_name, " is INT4");
  }
}

// The numbers of the columns of all matrices as (experts, n).
at::Tensor of_matrices(const char* name, const at::Tensor& numbers, int64_t count, int64_t n) {
  const bool has_middle = numbers.dim() == 3 && numbers.size(1) == 1;
  const at::Tensor all = has_middle ? numbers.select(1, 0) : numbers;
  expect_shape(name, all, {count, n});
  return all;
}

void finalize_routing(const FinalizeRouting& call, Output& out) {
  expect_dims(call.x_name, call.x, 2);
  expect_dtype(call.x_name, call.x, at::kChar);
  check_weight(call);
  const GroupedKind kind = grouped_kind(ACL_INT8, call.weight.dtype);
  check_types(call, kind, out);
  expect_elements(call.x_name, call.x);
  expect_elements(call.weight_name, call.weight.elements);
  const Matrices weight(call.weight_name, {call.weight}, true);
  const int64_t rows = call.x.size(0), k = call.x.size(1), count = weight.count();
  expect_dims(out.name(), out, 2);
  const int64_t n = out->size(1);
  const int64_t columns = weight.at(0, k).size(1);
  EXPECT(columns == n, call.weight_name, " has ", columns, " columns, expected ", n, " as ",
         out.name(), " has");
  const at::Tensor scale =
      of_matrices(call.named("scale").c_str(), decoded_scale(call.scale), count, n);
  if (call.bias) expect_shape(call.named("bias").c_str(), *call.bias, {count, n});
  if (call.offset) expect_shape("offsetOptional", *call.offset, {count, 1, n});
  if (call.token_scale) expect_shape("pertokenScaleOptional", *call.token_scale, {rows});
  if (call.logit) expect_shape(call.named("logit").c_str(), *call.logit, {rows});
  expect_shape(call.named("rowIndex").c_str(), call.row_index, {rows});

  at::Tensor sums = at::zeros(out->sizes(), out->options().dtype(at::kDouble));
  EXPECT(call.shared_offset >= 0 && call.shared_offset <= sums.size(0), "sharedInputOffset is ",
         call.shared_offset, ", expected 0 to ", sums.size(0));
  if (call.shared_input) {
    const int64_t shared = call.shared_input->dim() > 0 ? call.shared_input->size(0) : 0;
    expect_shape(call.named("sharedInput").c_str(), *call.shared_input, {shared, n});
    EXPECT(shared <= sums.size(0) - call.shared_offset, call.named("sharedInput"), " has ", shared,
           " rows, expected at most ", sums.size(0) - call.shared_offset,
           " from sharedInputOffset on");
    sums.narrow(0, call.shared_offset, shared)
        .add_(call.shared_input->to(at::kDouble) * call.shared_weight);
  }
  EXPECT(call.group_list.dim() == 1 && call.group_list.size(0) == count, call.named("groupList"),
         " has shape ", call.group_list.sizes(), ", expected (", count, ")");
  for (const Group& group : groups_of(call.named("groupList").c_str(), call.group_list,
                                      /*is_on_device=*/true, call.list_type, count, rows)) {
    if (group.size == 0) continue;
    const auto part = [&group](const OptionalTensor& of_rows) {
      return of_rows ? OptionalTensor(of_rows->narrow(0, group.begin, group.size)) : std::nullopt;
    };
    const auto numbers = [&group](const OptionalTensor& of_all) {
      return of_all ? OptionalTensor(of_all->select(0, group.matrix)) : std::nullopt;
    };
    at::Tensor result = grouped_product(
        kind, {*part(call.x), weight.at(group.matrix, k), numbers(call.bias), numbers(scale),
               numbers(call.offset), std::nullopt, std::nullopt, part(call.token_scale)});
    if (call.logit) result = result * part(call.logit)->unsqueeze(1);
    const at::Tensor indices = part(call.row_index)->to(at::kLong);
    check_bounds(call.named("rowIndex").c_str(), indices, sums.size(0));
    sums.index_add_(0, indices, result);
  }
  out = sums;
}

template <class Version>
void route(Version& row, Weights weights) {
  FinalizeRouting call{.weights = weights,
                       .token_scale = row.pertokenScaleOptional,
                       .dtype = row.dtype,
                       .shared_weight = row.sharedInputWeight,
                       .shared_offset = row.sharedInputOffset,
                       .list_type = row.groupListType};
  if constexpr (requires { row.x1; }) {
    call.x = row.x1;
    call.weight = row.x2;
    call.transpose_x = row.transposeX1;
    call.transpose_weight = row.transposeX2;
  } else {  // version 1
    call.x = row.x;
    call.weight = row.w;
    call.x_name = "x";
    call.weight_name = "w";
    call.transpose_x = row.transposeX;
    call.transpose_weight = row.transposeW;
  }
  if constexpr (requires { row.scaleOptional; }) {
    call.suffix = "Optional";
    call.scale = row.scaleOptional;
    call.bias = row.biasOptional;
    call.group_list = row.groupListOptional;
    call.shared_input = row.sharedInputOptional;
    call.logit = row.logitOptional;
    call.row_index = row.rowIndexOptional;
  } else {
    call.scale = row.scale;
    call.bias = row.bias;
    call.group_list = row.groupList;
    call.shared_input = row.sharedInput;
    call.logit = row.logit;
    call.row_index = row.rowIndex;
  }
  if constexpr (requires { row.offsetOptional; }) {
    expect_absent("antiquantScaleOptional", row.antiquantScaleOptional);
    expect_absent("antiquantOffsetOptional", row.antiquantOffsetOptional);
    call.offset = row.offsetOptional;
  }
  if constexpr (requires { row.tuningConfigOptional; }) {
    expect_tuning("tuningConfigOptional", row.tuningConfigOptional,
                  call.x.dim() > 0 ? call.x.size(0) : 0);
  }
  if constexpr (requires { row.out; }) {
    finalize_routing(call, row.out);
  } else {
    finalize_routing(call, row.y);
  }
}

}  // namespace

// Takes INT4 in the ND format only. Rows of `rowIndex` without a row in a group become zeros.
ACLNN_STRUCT(GroupedMatmulFinalizeRouting, (In, x), (Stored<In>, w), (In, scaleOptional),
             (In, biasOptional), (Optional<In>, pertokenScaleOptional), (In, groupListOptional),
             (Optional<In>, sharedInputOptional), (Optional<In>, logitOptional),
             (In, rowIndexOptional), (int64_t, dtype), (float, sharedInputWeight),
             (int64_t, sharedInputOffset), (bool, transposeX), (bool, transposeW),
             (int64_t, groupListType), (Out, y)) {
  route(*this, Weights::kInt4);
}
ACLNN_STRUCT(GroupedMatmulFinalizeRoutingV2, (In, x1), (Stored<In>, x2), (In, scaleOptional),
             (In, biasOptional), (Optional<In>, offsetOptional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, pertokenScaleOptional), (In, groupListOptional),
             (Optional<In>, sharedInputOptional), (Optional<In>, logitOptional),
             (In, rowIndexOptional), (int64_t, dtype), (float, sharedInputWeight),
             (int64_t, sharedInputOffset), (bool, transposeX1), (bool, transposeX2),
             (int64_t, groupListType), (Out, out)) {
  route(*this, Weights::kInt4);
}
ACLNN_STRUCT(GroupedMatmulFinalizeRoutingV3, (In, x1), (Stored<In>, x2), (In, scaleOptional),
             (In, biasOptional), (Optional<In>, offsetOptional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, pertokenScaleOptional), (In, groupListOptional),
             (Optional<In>, sharedInputOptional), (Optional<In>, logitOptional),
             (In, rowIndexOptional), (int64_t, dtype), (float, sharedInputWeight),
             (int64_t, sharedInputOffset), (bool, transposeX1), (bool, transposeX2),
             (int64_t, groupListType), (Optional<Ints>, tuningConfigOptional), (Out, out)) {
  route(*this, Weights::kInt4);
}
ACLNN_STRUCT(GroupedMatmulFinalizeRoutingWeightNz, (In, x1), (Stored<In>, x2), (In, scale),
             (Optional<In>, bias), (Optional<In>, pertokenScaleOptional), (In, groupList),
             (Optional<In>, sharedInput), (Optional<In>, logit), (In, rowIndex), (int64_t, dtype),
             (float, sharedInputWeight), (int64_t, sharedInputOffset), (bool, transposeX1),
             (bool, transposeX2), (int64_t, groupListType), (Out, out)) {
  route(*this, Weights::kBlockedInt8);
}
ACLNN_STRUCT(GroupedMatmulFinalizeRoutingWeightNzV2, (In, x1), (Stored<In>, x2), (In, scale),
             (Optional<In>, bias), (Optional<In>, offsetOptional),
             (Optional<In>, antiquantScaleOptional), (Optional<In>, antiquantOffsetOptional),
             (Optional<In>, pertokenScaleOptional), (In, groupList), (Optional<In>, sharedInput),
             (Optional<In>, logit), (In, rowIndex), (int64_t, dtype), (float, sharedInputWeight),
             (int64_t, sharedInputOffset), (bool, transposeX1), (bool, transposeX2),
             (int64_t, groupListType), (Optional<Ints>, tuningConfigOptional), (Out, out)) {
  route(*this, Weights::kBlocked);
}

}  // namespace aclnn_host::experts_grouped_matmul_fused_rows
