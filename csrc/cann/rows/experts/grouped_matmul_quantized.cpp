// Products of groups of rows that are quantised first, and products of quantised columns that are
// added to matrices.

#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/engine/stored.h"
#include "cann/rows/experts/grouped_product.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::experts_grouped_matmul_quantized_rows {

namespace {

constexpr int64_t kMultiple = 16;

void expect_matrices(const at::Tensor& weight) {
  expect_dims("weight", weight, 3);
  EXPECT(weight.numel() > 0 && weight.size(1) % kMultiple == 0 && weight.size(2) % kMultiple == 0,
         "weight has shape ", weight.sizes(),
         ", expected (experts, n, k) with n and k multiples of ", kMultiple);
}

// x is quantised with a scale for each row, or with a given scale. The matrices are (experts, n,
// k).
void quantized_product(const at::Tensor& x, const at::Tensor& weight,
                       const at::Tensor& weight_scale, const at::Tensor& group_list,
                       const std::optional<at::Tensor>& bias,
                       const std::optional<at::Tensor>& x_scale,
                       const std::optional<at::Tensor>& x_offset,
                       const std::optional<at::Tensor>& smooth, const std::string& mode,
                       bool is_transposed, const Output& out) {
  expect_dtype("x", x, at::kHalf);
  expect_dtype("weight", weight, at::kChar);
  expect_dtype("out", out, at::kHalf);
  expect_absent("biasOptional", bias);
  expect_absent("xOffsetOptional", x_offset);
  EXPECT(is_transposed, "transposeWeight is false, expected true");
  expect_matrices(weight);
  const int64_t count = weight.size(0), n = weight.size(1), k = weight.size(2);
  EXPECT(x.dim() == 2 && x.size(0) > 0 && x.size(1) == k, "x has shape ", x.sizes(),
         ", expected (m, ", k, ") with m of 1 or more");
  expect_shape("weightScale", weight_scale, {count, n});
  const bool has_bits = weight_scale.scalar_type() == at::kLong;
  if (!has_bits) expect_dtype("weightScale", weight_scale, at::kFloat);
  expect_dtype("groupList", group_list, at::kLong);
  expect_shape("groupList", group_list, {count});
  expect_shape("out", out, {x.size(0), n});
  const QuantizedRows rows = quantized_rows(x, smooth, x_scale, mode, has_bits);
  const at::Tensor scales = decoded_scale(weight_scale);
  for (const Group& group :
       groups_of("groupList", group_list, /*is_on_device=*/true, kGroupEnds, count, x.size(0))) {
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

ACLNN(QuantGroupedMatmulDequant, (In, x), (Stored<In>, weight), (In, weightScale), (In, groupList),
      (Optional<In>, biasOptional), (Optional<In>, xScaleOptional), (Optional<In>, xOffsetOptional),
      (Optional<In>, smoothScaleOptional), (char*, xQuantMode), (bool, transposeWeight),
      (Out, out)) {
  expect_format("weight", weight, /*or_blocked=*/true);
  quantized_product(x, weight.elements, weightScale, groupList, biasOptional, xScaleOptional,
                    xOffsetOptional, smoothScaleOptional, xQuantMode, transposeWeight, out);
}
// The memory of the weight has the blocks of FRACTAL_NZ, whatever its format: (experts, k / 32, n /
// 16, 16, 32).
ACLNN(QuantGroupedMatmulDequantWeightNZ, (In, x), (Stored<In>, weight), (In, weightScale),
      (In, groupList), (Optional<In>, biasOptional), (Optional<In>, xScaleOptional),
      (Optional<In>, xOffsetOptional), (Optional<In>, smoothScaleOptional), (char*, xQuantMode),
      (bool, transposeWeight), (Out, out)) {
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
  quantized_product(x, elements, weightScale, groupList, biasOptional, xScaleOptional,
                    xOffsetOptional, smoothScaleOptional, xQuantMode, transposeWeight, out);
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
  EXPECT(is_float8(x1.dtype) && is_float8(x2.dtype), "x1 has dtype ", dtype_name(x1.dtype),
         " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected FLOAT8_E4M3FN or FLOAT8_E5M2; the host CANN does not emulate HIFLOAT8");
  EXPECT(scale1Optional, "scale1Optional is null, expected the scales of x1");
  EXPECT(scale1Optional->dtype == ACL_FLOAT8_E8M0 && scale2.dtype == ACL_FLOAT8_E8M0,
         "scale1Optional has dtype ", dtype_name(scale1Optional->dtype), " and scale2 has dtype ",
         dtype_name(scale2.dtype), ", expected FLOAT8_E8M0 as x1 is FLOAT8");
  expect_dtype("yRef", yRef, at::kFloat);
  expect_dtype("groupList", groupList, at::kLong);
  expect_dims("groupList", groupList, 1);
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  EXPECT(groupListType == kGroupEnds || groupListType == kGroupSizes, "groupListType is ",
         groupListType.value(), ", expected 0 (where groups end) or 1 (their sizes)");
  const int64_t sizes = groupSize.value() & kOfSizes;
  EXPECT(sizes == 0 || sizes == kMxBlock || sizes == kBlocksAlongK, "groupSize is ",
         groupSize.value(), ", expected 0, or 32 along k and 1 along m and n");
  const int64_t groups = groupList.numel();
  EXPECT(groups >= 1 && groups <= kMostGroups, "groupList has ", groups,
         " elements, expected 1 to ", kMostGroups);
  const int64_t k = x1.elements.size(0), m = x1.elements.size(1), n = x2.elements.size(1);
  expect_shape("x2", x2.elements, {k, n});
  expect_shape("scale1Optional", scale1Optional->elements, {k / kPair + groups, m, 2});
  expect_shape("scale2", scale2.elements, {k / kPair + groups, n, 2});
  expect_shape("yRef", yRef, {groups, m, n});
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
