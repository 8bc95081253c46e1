// Products of groups of rows followed by an activation and quantisation to MX.

#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::experts_grouped_matmul_activation_rows {

namespace {

constexpr int64_t kPair = 2 * kMxBlock;

// The only tensor of a list.
const StoredTensor& only(const char* name, const std::vector<StoredTensor>& list) {
  EXPECT(list.size() == 1, name, " has ", list.size(), " tensors, expected 1");
  return list[0];
}

// `row` is the struct of the function.
template <class Row>
void expect_types(const Row& row, const StoredTensor& weight, const StoredTensor& weight_scale) {
  expect_type("x", row.x, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_type("weight", weight, {ACL_FLOAT8_E4M3FN});
  expect_type("weightScale", weight_scale, {ACL_FLOAT8_E8M0});
  expect_type("xScaleOptional", row.xScaleOptional, {ACL_FLOAT8_E8M0});
  expect_type(row.y, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_dtype("groupList", row.groupList, at::kLong);
  expect_blocked("weight", weight);
  expect_format("x", row.x);
  expect_format("xScaleOptional", row.xScaleOptional);
  expect_format("weightScale", weight_scale);
}
template <class Row>
void expect_attributes(const Row& row) {
  expect_text("activationType", row.activationType, {"gelu_tanh"});
  expect_text("quantMode", row.quantMode, {"", "mx"});
  expect_list_type(row.groupListType);
  expect_one_of("scaleAlg", row.scaleAlg, {0, 1});
  constexpr double kTolerance = 1e-6;
  EXPECT(std::abs(row.dstTypeMax.value()) <= kTolerance, "dstTypeMax is ", row.dstTypeMax.value(),
         ", expected 0");
  EXPECT(row.bias.empty() ||
             (row.bias.size() == 1 && row.bias[0].elements.sizes() == at::IntArrayRef{0}),
         "bias has ", row.bias.size(), " tensors, expected none, or one of shape [0]");
}
template <class Row>
void expect_shapes(const Row& row, const at::Tensor& weight, const at::Tensor& weight_scale) {
  const at::Tensor& x = row.x.elements;
  expect_dims("x", x, 2);
  expect_dims("weight", weight, 3);
  expect_dims("groupList", row.groupList, 1);
  const int64_t rows = x.size(0), k = x.size(1), n = weight.size(2);
  const int64_t experts = row.groupList.size(0), pairs = (k + kPair - 1) / kPair;
  const bool is_empty = rows == 0 || n == 0;
  expect_shape("weight", weight, {experts, k, n});
  expect_shape("weightScale", weight_scale, {experts, pairs, n, 2});
  expect_shape("xScaleOptional", row.xScaleOptional.elements, {rows, pairs, 2});
  expect_shape("y", row.y, {rows, n});
  EXPECT(n % kPair == 0, "weight has ", n, " columns, expected a multiple of ", kPair);
  EXPECT(k > 0 || is_empty, "x has no columns, expected 1 or more");
  expect_range("the number of elements of groupList", experts, is_empty ? 0 : 1, 1024);
}

at::Tensor gelu_tanh(const at::Tensor& x) {
  return x * at::sigmoid((x + x * x * x * 0.044715) * 1.595769121);
}

// The activated rows of all groups in BFLOAT16, from which they are quantised; zeros after the last
// group.
template <class Row>
at::Tensor activated(const Row& row, const StoredTensor& weight, const at::Tensor& weight_scale) {
  const at::Tensor& x = row.x.elements;
  const int64_t rows = x.size(0), k = x.size(1), n = weight.elements.size(2);
  const Matrices matrices("weight", {weight}, /*is_one_tensor=*/true);
  const at::Tensor scales = row.xScaleOptional.elements.to(at::kDouble).flatten(1);
  const at::Tensor left = x.to(at::kDouble) * spread(scales, 1, kMxBlock, k);
  at::Tensor result = at::zeros({rows, n}, x.options().dtype(at::kBFloat16));
  for (const Group& group : groups_of("groupList", row.groupList, /*is_on_device=*/true,
                                      row.groupListType, matrices.count(), rows)) {
    const at::Tensor right = matrices.at(group.matrix, k).to(at::kDouble) *
                             spread_pairs(weight_scale.select(0, group.matrix), k);
    const at::Tensor product = at::mm(left.narrow(0, group.begin, group.size), right);
    result.narrow(0, group.begin, group.size).copy_(gelu_tanh(product).to(at::kFloat));
  }
  return result;
}

}  // namespace

// Behaviour of GroupedMatmulActivationQuantWeightNz: As in the kernel, the activated rows are
// rounded to BFLOAT16 and quantised in blocks of 32; the document says 64, the size of a pair of
// blocks. Rows after the last group are 0.
ACLNN_STRUCT(GroupedMatmulActivationQuantWeightNz, (Stored<In>, x), (In, groupList),
             (Stored<Ins>, weight), (Stored<Ins>, weightScale), (Optional<Stored<Ins>>, bias),
             (Stored<In>, xScaleOptional), (const char*, activationType), (int64_t, groupListType),
             (Unused<Optional<Ints>>, tuningConfig, "reserved"), (char*, quantMode),
             (char*, roundMode), (int64_t, scaleAlg), (float, dstTypeMax), (Stored<Out>, y),
             (Stored<Out>, yScale)) {
  const StoredTensor& matrices = only("weight", weight);
  const StoredTensor& scales = only("weightScale", weightScale);
  expect_attributes(*this);
  expect_types(*this, matrices, scales);
  expect_shapes(*this, matrices.elements, scales.elements);
  const at::Tensor values = y->numel() == 0
                                ? at::zeros(y->sizes(), x.elements.options().dtype(at::kBFloat16))
                                : activated(*this, matrices, scales.elements);
  const MxRule rule = mx_rule(values, "roundMode", roundMode, y.dtype(), scaleAlg, 0, y, "y");
  quantize_mx(values, 1, kMxBlock, rule, y, yScale);
}

}  // namespace aclnn_host::experts_grouped_matmul_activation_rows
