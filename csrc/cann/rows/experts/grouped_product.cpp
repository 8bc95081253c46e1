#include "cann/rows/experts/grouped_product.h"

#include "cann/rows/integers.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

// The last four dimensions are blocks of FRACTAL_NZ.
constexpr int64_t kDimsOfBlocks = 4;

// (n1, k1, 16, n0) as (k1 * 16, n1 * n0), without the padding of k.
at::Tensor joined_blocks(const char* name, const at::Tensor& blocks, aclDataType dtype, int64_t k) {
  const int64_t width = width_of_blocks(dtype);
  EXPECT(blocks.size(-2) == 16 && blocks.size(-1) == width, name, " has shape ", blocks.sizes(),
         " and dtype ", dtype_name(dtype), ", expected blocks of FRACTAL_NZ, 16 rows of ", width);
  const at::Tensor matrix = blocks.permute({1, 2, 0, 3}).flatten(2, 3).flatten(0, 1);
  EXPECT(matrix.size(0) >= k && matrix.size(0) - k < 16, name, " has ", matrix.size(0),
         " rows in its blocks, expected ", k, " rounded up to 16");
  return matrix.narrow(0, 0, k);
}

// Checks an operand with one number for each column.
at::Tensor of_columns(const char* name, const at::Tensor& numbers, const at::Tensor& weight) {
  expect_shape(name, numbers, {weight.size(1)});
  return numbers;
}

// An operand as (groups of k, n).
at::Tensor of_groups(const char* name, const at::Tensor& numbers, const at::Tensor& weight) {
  const at::Tensor groups = numbers.dim() == 1 ? numbers.unsqueeze(0) : numbers;
  expect_dims(name, groups, 2);
  expect_shape(name, groups, {groups.size(0), weight.size(1)});
  EXPECT(groups.size(0) > 0 && weight.size(0) % groups.size(0) == 0, name, " has ", groups.size(0),
         " groups, expected a divisor of ", weight.size(0), ", the number of rows of a matrix");
  return groups;
}

// The sum over groups of k of the groups' products times their scales.
at::Tensor scaled_sums(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale) {
  const at::Tensor groups = decoded_scale(of_groups("scaleOptional", scale, weight));
  const int64_t size = weight.size(0) / groups.size(0);
  at::Tensor sums;
  for (int64_t g = 0; g < groups.size(0); ++g) {
    const at::Tensor part =
        exact_product(x.narrow(1, g * size, size), weight.narrow(0, g * size, size))
            .to(at::kDouble) *
        groups.select(0, g);
    sums = g == 0 ? part : sums + part;
  }
  return sums;
}

at::Tensor with_token_scale(const at::Tensor& product, const GroupOperands& operands) {
  if (!operands.per_token_scale) return product;
  return product * operands.per_token_scale->unsqueeze(1);
}

at::Tensor with_bias(const at::Tensor& product, const GroupOperands& operands) {
  if (!operands.bias) return product;
  return product + wide(of_columns("biasOptional", *operands.bias, operands.weight));
}

at::Tensor dequantized_weight(const GroupOperands& operands) {
  const at::Tensor& weight = operands.weight;
  const auto each = [&weight](const char* name, const at::Tensor& numbers) {
    const at::Tensor groups = of_groups(name, wide(numbers), weight);
    return groups.repeat_interleave(weight.size(0) / groups.size(0), 0);
  };
  return (weight.to(at::kFloat) + each("antiquantOffsetOptional", *operands.antiquant_offset)) *
         each("antiquantScaleOptional", *operands.antiquant_scale);
}

at::Tensor product_of_int8(const GroupOperands& operands) {
  at::Tensor sums = exact_product(operands.x, operands.weight);
  const bool is_exact = operands.bias && operands.bias->scalar_type() == at::kInt;
  if (is_exact) sums = with_bias(sums, operands);
  if (!operands.scale) return sums;
  const at::Tensor scale = of_columns("scaleOptional", *operands.scale, operands.weight);
  if (holds_bits(scale)) return quantized(sums, scale, std::nullopt);
  const at::Tensor product = with_token_scale(sums.to(at::kDouble) * wide(scale), operands);
  return is_exact ? product : with_bias(product, operands);
}

// The product is that of x - 8; the bias compensates for the 8. An offset multiplies the sum of
// each row of x.
at::Tensor product_of_int8_by_int4(const GroupOperands& operands) {
  at::Tensor product = with_bias(
      scaled_sums(operands.x.to(at::kShort) - 8, operands.weight, *operands.scale), operands);
  if (operands.offset) {
    const at::Tensor offset = of_groups("offsetOptional", *operands.offset, operands.weight);
    EXPECT(offset.size(0) == 1, "offsetOptional has ", offset.size(0),
           " groups of rows of a matrix, expected 1");
    product = product + operands.x.to(at::kLong).sum(1, /*keepdim=*/true) * offset;
  }
  return with_token_scale(product, operands);
}

}  // namespace

int64_t width_of_blocks(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT4:
    case ACL_FLOAT4_E2M1: return 64;
    case ACL_INT32: return 8;
    default: return 32;
  }
}

std::vector<Group> groups_of(const char* name, const at::Tensor& list, bool is_on_device,
                             int64_t type, int64_t matrices, int64_t limit) {
  expect_range("groupListType", type, kGroupEnds, kGroupPairs);
  expect_dtype(name, list, at::kLong);
  const bool has_pairs = type == kGroupPairs;
  EXPECT(list.dim() == (has_pairs ? 2 : 1) && (!has_pairs || list.size(1) == 2), name,
         " has shape ", list.sizes(), ", expected (", matrices, has_pairs ? ", 2)" : ")");
  EXPECT(list.size(0) > 0 && list.size(0) <= matrices, name, " has ", list.size(0),
         " groups, expected 1 to ", matrices, ", the number of matrices");
  if (is_on_device && !has_values(list)) return {{0, 0, limit}};
  std::vector<Group> groups;
  const std::vector<int64_t> values = integers_in(list);
  const size_t step = has_pairs ? 2 : 1;
  int64_t begin = 0;
  for (size_t i = 0; i < values.size(); i += step) {
    const int64_t matrix = has_pairs ? values[i] : static_cast<int64_t>(i);
    EXPECT(matrix >= 0 && matrix < matrices, name, " has the group ", matrix, ", expected 0 to ",
           matrices - 1);
    const int64_t value = values[i + step - 1];
    // Checks the value before it is added, so that the sum cannot overflow.
    EXPECT(value >= 0 && value <= limit, name, " has the value ", value, ", expected 0 to ", limit,
           ", the size of the dimension that has the groups");
    const int64_t size = type == kGroupEnds ? value - begin : value;
    EXPECT(size >= 0 && size <= limit - begin, name, " has a group from ", begin, " to ",
           begin + size, ", expected an end from ", begin, " to ", limit);
    groups.push_back({matrix, begin, size});
    begin += size;
  }
  return groups;
}

Matrices::Matrices(const char* name, std::vector<StoredTensor> weight, bool is_one_tensor)
    : name_(name), weight_(std::move(weight)), is_one_tensor_(is_one_tensor) {
  for (const StoredTensor& each : weight_) {
    expect_type(name_, each, {dtype()}, " as the first tensor of the list has");
  }
}

int64_t Matrices::count() const {
  return is_one_tensor_ ? weight_[0].elements.size(0) : static_cast<int64_t>(weight_.size());
}

at::Tensor Matrices::at(int64_t i, int64_t k) const {
  at::Tensor matrix =
      is_one_tensor_ ? weight_[0].elements.select(0, i) : weight_[static_cast<size_t>(i)].elements;
  if (matrix.dim() == kDimsOfBlocks) matrix = joined_blocks(name_, matrix, dtype(), k);
  expect_dims(name_, matrix, 2);
  if (dtype() == ACL_INT32) matrix = unpacked_weight(name_, matrix, dtype(), k);
  EXPECT(matrix.size(0) == k, name_, " has ", matrix.size(0), " rows, expected ", k,
         " as x has columns");
  return matrix;
}

bool has_all_matrices(const std::vector<StoredTensor>& weight) {
  const int64_t dims = weight.size() == 1 ? weight[0].elements.dim() : 0;
  return dims == 3 || dims == 1 + kDimsOfBlocks;
}

void expect_all_matrices(const char* name, const StoredTensor& weight) {
  EXPECT(has_all_matrices({weight}), name, " has shape ", weight.elements.sizes(),
         ", expected (experts, k, n)");
}

void expect_list_type(int64_t type) {
  EXPECT(type == kGroupEnds || type == kGroupSizes, "groupListType is ", type,
         ", expected 0 (where groups end) or 1 (their sizes)");
}

void expect_tuning(const char* name, at::OptionalIntArrayRef config, int64_t rows) {
  if (!config || config->empty()) return;
  EXPECT((*config)[0] >= 0 && (*config)[0] <= rows, name, " has ", (*config)[0], ", expected 0 to ",
         rows, ", the number of rows of x");
}

GroupedKind grouped_kind(aclDataType x, aclDataType weight) {
  const bool is_half = x == ACL_FLOAT16 || x == ACL_BF16;
  if (x == weight && (is_half || x == ACL_FLOAT)) return GroupedKind::kPlain;
  if (is_half && (weight == ACL_INT8 || is_int4(weight))) return GroupedKind::kWeight;
  if (x == ACL_INT8 && weight == ACL_INT8) return GroupedKind::kInt8;
  if (x == ACL_INT8 && is_int4(weight)) return GroupedKind::kInt8ByInt4;
  EXPECT(is_int4(x) && is_int4(weight), "x has dtype ", dtype_name(x), " and weight has dtype ",
         dtype_name(weight),
         ", expected FLOAT16, BFLOAT16 or FLOAT for both, FLOAT16 or BFLOAT16 with INT8 or "
         "INT4, INT8 with INT8 or INT4, or INT4 for both");
  return GroupedKind::kInt4;
}

at::Tensor grouped_product(GroupedKind kind, const GroupOperands& operands) {
  switch (kind) {
    case GroupedKind::kPlain:
      return with_bias(at::matmul(wide(operands.x), wide(operands.weight)), operands);
    case GroupedKind::kWeight:
      return with_bias(at::matmul(wide(operands.x), dequantized_weight(operands)), operands);
    case GroupedKind::kInt8: return product_of_int8(operands);
    case GroupedKind::kInt4:
      return with_token_scale(scaled_sums(operands.x, operands.weight, *operands.scale), operands);
    default: return product_of_int8_by_int4(operands);
  }
}

}  // namespace aclnn_host
