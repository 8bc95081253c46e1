// Products of groups of rows that are quantised first, and products of quantised columns that are
// added to matrices.

#include "cann/rows/engine/stored.h"
#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::experts_grouped_matmul_quantized_rows {

namespace {

// x is quantised with a scale for each row, or with a given scale. The matrices of `weight` are
// (experts, n, k). `row` is the struct of a function.
template <class Row>
void quantized_product(Row& row, const at::Tensor& weight) {
  constexpr int64_t kMultiple = 16;
  const at::Tensor& x = row.x;
  expect_dtype("x", x, at::kHalf);
  expect_dtype("weight", weight, at::kChar);
  expect_dtype("out", row.out, at::kHalf);
  expect_absent("biasOptional", row.biasOptional);
  expect_absent("xOffsetOptional", row.xOffsetOptional);
  EXPECT(row.transposeWeight == true, "transposeWeight is false, expected true");
  expect_dims("weight", weight, 3);
  const int64_t count = weight.size(0), n = weight.size(1), k = weight.size(2);
  EXPECT(weight.numel() > 0 && n % kMultiple == 0 && k % kMultiple == 0, "weight has shape ",
         weight.sizes(), ", expected (experts, n, k) with n and k multiples of ", kMultiple);
  EXPECT(x.dim() == 2 && x.size(0) > 0 && x.size(1) == k, "x has shape ", x.sizes(),
         ", expected (m, ", k, ") with m of 1 or more");
  expect_shape("weightScale", row.weightScale, {count, n});
  expect_dtype("weightScale", row.weightScale, {at::kFloat, at::kLong});
  const bool has_bits = holds_bits(row.weightScale);
  expect_tensor("groupList", row.groupList, at::kLong, {count});
  expect_shape("out", row.out, {x.size(0), n});
  const QuantizedRows rows =
      quantized_rows(x, row.smoothScaleOptional, row.xScaleOptional, row.xQuantMode, has_bits);
  const at::Tensor scales = decoded_scale(row.weightScale);
  const Output& out = row.out;
  for (const Group& group :
       groups_of("groupList", row.groupList, /*is_on_device=*/true, kGroupEnds, count, x.size(0))) {
    if (group.size == 0 && out.is_written()) continue;
    const at::Tensor sums = exact_product(rows.x.narrow(0, group.begin, group.size),
                                          weight.select(0, group.matrix).t());
    at::Tensor result = sums.to(at::kDouble) * scales.select(0, group.matrix);
    if (!has_bits) {
      result = result * (rows.scale.size(0) == 1 ? rows.scale
                                                 : rows.scale.narrow(0, group.begin, group.size));
    }
    Output(out.name(), out->narrow(0, group.begin, group.size), out.is_written()) = result;
  }
}

}  // namespace

ACLNN_STRUCT(QuantGroupedMatmulDequant, (In, x), (Stored<In>, weight), (In, weightScale),
             (In, groupList), (Optional<In>, biasOptional), (Optional<In>, xScaleOptional),
             (Optional<In>, xOffsetOptional), (Optional<In>, smoothScaleOptional),
             (char*, xQuantMode), (bool, transposeWeight), (Out, out)) {
  expect_format("weight", weight, /*or_blocked=*/true);
  quantized_product(*this, weight.elements);
}
// The memory of the weight has the blocks of FRACTAL_NZ, whatever its format: (experts, k / 32, n /
// 16, 16, 32).
ACLNN_STRUCT(QuantGroupedMatmulDequantWeightNZ, (In, x), (Stored<In>, weight), (In, weightScale),
             (In, groupList), (Optional<In>, biasOptional), (Optional<In>, xScaleOptional),
             (Optional<In>, xOffsetOptional), (Optional<In>, smoothScaleOptional),
             (char*, xQuantMode), (bool, transposeWeight), (Out, out)) {
  constexpr int64_t kBlockRows = 16, kBlockColumns = 32;
  at::Tensor elements = weight.elements;
  if (!is_private(weight.format)) {
    expect_dims("weight", elements, 5);
    expect_dims("x", x, 2);
    const int64_t k = x.size(1), n = elements.size(2) * kBlockRows;
    expect_shape("weight", elements,
                 {elements.size(0), (k + kBlockColumns - 1) / kBlockColumns, elements.size(2),
                  kBlockRows, kBlockColumns});
    elements = from_blocks(elements.contiguous().flatten(), {elements.size(0), n, k},
                           ACL_FORMAT_FRACTAL_NZ, kBlockColumns);
  }
  quantized_product(*this, elements);
}

// Adds the product x1^T x2 of each group of rows to a matrix. Both are in MX formats along the
// rows. The scales of a group start at the number of preceding groups plus the number of whole
// pairs of blocks before the group.
// Limit of QuantGroupedMatmulInplaceAdd: MX alone is computed. The other modes are for HIFLOAT8.
ACLNN(QuantGroupedMatmulInplaceAdd, (Stored<In>, x1), (Stored<In>, x2),
      (Optional<Stored<In>>, scale1Optional), (Stored<In>, scale2), (In, groupList), (InOut, yRef),
      (int64_t, groupListType), (int64_t, groupSize)) {
  constexpr int64_t kMostGroups = 1024, kPair = 2 * kMxBlock;
  // 16 bits each for the block sizes along m, n and k: 1, 1 and 32; 0 stands for the default.
  constexpr int64_t kBlocksAlongK = int64_t{1} << 32 | int64_t{1} << 16 | kMxBlock;
  constexpr int64_t kOfSizes = (int64_t{1} << 48) - 1;
  constexpr const char* kReason = "; the host CANN does not emulate HIFLOAT8";
  expect_type("x1", x1, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2}, kReason);
  expect_type("x2", x2, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2}, kReason);
  EXPECT(scale1Optional, "scale1Optional is null, expected the scales of x1");
  expect_type("scale1Optional", *scale1Optional, {ACL_FLOAT8_E8M0}, " as x1 is FLOAT8");
  expect_type("scale2", scale2, {ACL_FLOAT8_E8M0}, " as x2 is FLOAT8");
  expect_dtype("groupList", groupList, at::kLong);
  expect_dims("groupList", groupList, 1);
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  expect_list_type(groupListType);
  const int64_t sizes = groupSize.value() & kOfSizes;
  EXPECT(sizes == 0 || sizes == kMxBlock || sizes == kBlocksAlongK, "groupSize is ",
         groupSize.value(), ", expected 0, or 32 along k and 1 along m and n");
  const int64_t groups = groupList.numel();
  expect_range("the number of elements of groupList", groups, 1, kMostGroups);
  const int64_t k = x1.elements.size(0), m = x1.elements.size(1), n = x2.elements.size(1);
  expect_shape("x2", x2.elements, {k, n});
  expect_shape("scale1Optional", scale1Optional->elements, {k / kPair + groups, m, 2});
  expect_shape("scale2", scale2.elements, {k / kPair + groups, n, 2});
  expect_tensor("yRef", yRef, at::kFloat, {groups, m, n});
  const at::Tensor left = x1.elements.to(at::kDouble), right = x2.elements.to(at::kDouble);
  std::vector<at::Tensor> products(static_cast<size_t>(groups), at::zeros({m, n}, right.options()));
  for (const Group& group :
       groups_of("groupList", groupList, /*is_on_device=*/true, groupListType, groups, k)) {
    if (group.size == 0) continue;
    const int64_t first = group.begin / kPair + group.matrix;
    const auto scaled = [&](const at::Tensor& x, const StoredTensor& scale) {
      const int64_t pairs = (group.size + kPair - 1) / kPair;
      return x.narrow(0, group.begin, group.size) *
             spread_pairs(scale.elements.narrow(0, first, pairs), group.size);
    };
    products[static_cast<size_t>(group.matrix)] =
        at::mm(scaled(left, *scale1Optional).t(), scaled(right, scale2));
  }
  yRef = yRef->to(at::kDouble) + at::stack(products);
}

}  // namespace aclnn_host::experts_grouped_matmul_quantized_rows
