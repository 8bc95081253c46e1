// Products with a weight in a narrow integer type, which scales and offsets convert to x's type.

#include <ATen/ExpandUtils.h>

#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::quantized_weight_quantized_matmul_rows {

namespace {

struct WeightQuantMatmul {
  const at::Tensor& x;  // (..., m, k)
  const StoredTensor& weight;
  const StoredTensor& scale;
  const std::optional<at::Tensor>& offset;
  const std::optional<at::Tensor>& y_scale;
  const std::optional<at::Tensor>& y_offset;
  const std::optional<at::Tensor>& bias;
  int64_t group_size;  // along k; 0 for scales of the tensor or of columns
};

bool is_float_weight(aclDataType dtype) {
  return is_float4(dtype) || dtype == ACL_FLOAT8_E4M3FN;
}

void check_weight_types(const WeightQuantMatmul& call, const Output& y) {
  const at::ScalarType type = call.x.scalar_type();
  expect_reduced_float("x", call.x);
  const aclDataType weight = call.weight.dtype;
  expect_type("weight", weight,
              {ACL_INT8, ACL_INT4, ACL_INT32, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1, ACL_FLOAT},
              "; INT32 and FLOAT hold eight elements of 4 bits");
  const at::Tensor& scale = call.scale.elements;
  if (call.scale.dtype == ACL_FLOAT8_E8M0) {
    EXPECT(is_float4(weight) && call.group_size == 32, "antiquantScale has dtype FLOAT8_E8M0 ",
           "for a weight of ", dtype_name(weight), " and antiquantGroupSize is ", call.group_size,
           ", expected FLOAT4_E2M1 or FLOAT and 32");
  } else if (holds_bits(scale)) {
    EXPECT(type == at::kHalf && weight == ACL_INT8, "antiquantScale has dtype ",
           dtype_name(call.scale.dtype), ", expected that of x for x of ", dtype_text(type),
           " and a weight of ", dtype_name(weight));
  } else {
    expect_dtype("antiquantScale", scale, type);
  }
  if (call.offset) {
    EXPECT(!is_float_weight(weight), "antiquantOffsetOptional is given, expected null for a ",
           "weight of ", dtype_name(weight));
    expect_dtype("antiquantOffsetOptional", *call.offset, holds_bits(scale) ? at::kInt : type);
    expect_shape("antiquantOffsetOptional", *call.offset, scale.sizes());
  }
  if (call.bias) {
    const bool may_be_float = type == at::kBFloat16 && !is_float_weight(weight);
    if (!may_be_float || call.bias->scalar_type() != at::kFloat) {
      expect_dtype("biasOptional", *call.bias, type);
    }
  }
  expect_dtype("y", y, call.y_scale ? at::kChar : type);
}

void check_sizes(const WeightQuantMatmul& call, int64_t m, int64_t k, int64_t n) {
  EXPECT(m > 0 && k > 0 && n > 0, "x has shape ", call.x.sizes(), " and weight has ", n,
         " columns, expected elements");
  const Product product = current_product();
  constexpr int64_t kMost = 65535;
  EXPECT(product == Product::kAscend950 || product == Product::kHost || (k <= kMost && n <= kMost),
         "x has ", k, " columns and weight has ", n, ", expected at most ", kMost);
  const int64_t group = call.group_size;
  const bool is_mx = call.scale.dtype == ACL_FLOAT8_E8M0;
  EXPECT(group == 0 || is_mx || (group >= 32 && group < k && group % 32 == 0),
         "antiquantGroupSize is ", group, ", expected 0, or a multiple of 32 from 32 to ", k - 1);
  EXPECT(!holds_bits(call.scale.elements) || (m <= 96 && k % 64 == 0 && n % 64 == 0),
         "antiquantScale has dtype ", dtype_name(call.scale.dtype), " with m, k and n of ", m, ", ",
         k, " and ", n, ", expected an m of at most 96, and multiples of 64");
}

// Expands scales or offsets to the elements of (k, n), or to a shape that broadcasts to them.
at::Tensor over_weight(const char* name, const at::Tensor& given, int64_t group, int64_t k,
                       int64_t n, bool has_groups_last) {
  if (group > 0) {
    const at::Tensor groups = has_groups_last ? given.t() : given;
    expect_shape(name, groups, {(k + group - 1) / group, n});
    return spread(groups, 0, group, k);
  }
  const bool is_row =
      given.dim() == 1 || (given.dim() == 2 && (given.size(0) == 1 || given.size(1) == 1));
  EXPECT(is_row && (given.numel() == 1 || given.numel() == n), name, " has shape ", given.sizes(),
         ", expected (1), (1, 1), (", n, ") or (1, ", n, ")");
  return given.reshape({-1});
}

// (x ((weight + offset) scale) + bias), quantised if there is a quantisation scale.
void multiply_dequantized(const WeightQuantMatmul& call, Output& y) {
  check_weight_types(call, y);
  const at::Tensor& x = call.x;
  const bool is_310p = current_product() == Product::kAscend310P;
  const bool is_blocked = is_fractal_nz(call.weight.format);
  expect_format("weight", call.weight, /*or_blocked=*/true);
  expect_dims("x", x, 2, is_310p || current_product() == Product::kHost ? 6 : 2);
  expect_dims("weight", call.weight.elements, 2, x.dim());
  // Only on this product with this format, blocks and scales of groups are (n, k).
  const bool is_transposed = is_310p && is_blocked;
  const at::Tensor given =
      is_transposed ? call.weight.elements.transpose(-1, -2) : call.weight.elements;
  const int64_t k = x.size(-1);
  const at::Tensor weight = unpacked_weight("weight", given, call.weight.dtype, k);
  const int64_t n = weight.size(-1);
  EXPECT(weight.size(-2) == k, "weight has ", weight.size(-2), " rows, expected ", k,
         " as x has columns");
  expect_batches("weight", weight, "x", x);
  check_sizes(call, x.size(-2), k, n);
  const int64_t group = call.group_size;
  at::Tensor values = weight.to(at::kFloat);
  if (call.offset) {
    values = values +
             over_weight("antiquantOffsetOptional", wide(*call.offset), group, k, n, is_transposed);
  }
  values = values * over_weight("antiquantScale", decoded_scale(call.scale.elements), group, k, n,
                                is_transposed);
  at::Tensor result = at::matmul(wide(x), values);
  if (call.bias) {
    const at::Tensor& bias = *call.bias;
    const bool is_row =
        bias.dim() == 1 || (bias.dim() >= 2 && bias.dim() <= result.dim() && bias.size(-2) == 1);
    EXPECT(is_row && bias.size(-1) == n, "biasOptional has shape ", bias.sizes(), ", expected (", n,
           ") or (1, ", n, ")");
    result = result + wide(bias);
  }
  if (!call.y_scale) {
    EXPECT(!call.y_offset, "quantOffsetOptional is given, expected null as quantScaleOptional is");
    y = result;
    return;
  }
  expect_dtype("quantScaleOptional", *call.y_scale, at::kUInt64);
  const at::Tensor scale = over_weight("quantScaleOptional", *call.y_scale, 0, k, n, false);
  std::optional<at::Tensor> offset;
  if (call.y_offset) {
    expect_tensor("quantOffsetOptional", *call.y_offset, at::kFloat, call.y_scale->sizes());
    offset = call.y_offset->reshape({-1});
  }
  y = quantized(result, scale, offset);
}

// Checks an argument with one element for all columns or one for each.
at::Tensor for_columns(const char* name, const at::Tensor& given, int64_t n) {
  EXPECT((given.dim() == 1 || given.dim() == 2) && (given.numel() == 1 || given.numel() == n), name,
         " has shape ", given.sizes(), ", expected 1 or ", n, " elements");
  return given.reshape({-1});
}

// Checks an argument that broadcasts to the weight.
void expect_over_weight(const char* name, const OptionalTensor& given, const at::Tensor& weight) {
  if (!given) return;
  expect_dtype(name, *given, at::kHalf);
  EXPECT(at::is_expandable_to(given->sizes(), weight.sizes()), name, " has shape ", given->sizes(),
         ", expected one that broadcasts to ", weight.sizes(), ", the shape of x2");
}

// `row` is the struct of a version.
template <class Version>
void multiply_dequantized(Version& row) {
  multiply_dequantized(
      {row.x, row.weight, row.antiquantScale, row.antiquantOffsetOptional, row.quantScaleOptional,
       row.quantOffsetOptional, row.biasOptional, row.antiquantGroupSize},
      row.y);
}

}  // namespace

ACLNN_STRUCT(WeightQuantBatchMatmulV2, (In, x), (Stored<In>, weight), (Stored<In>, antiquantScale),
             (Optional<In>, antiquantOffsetOptional), (Optional<In>, quantScaleOptional),
             (Optional<In>, quantOffsetOptional), (Optional<In>, biasOptional),
             (int, antiquantGroupSize), (Out, y)) {
  multiply_dequantized(*this);
}
ACLNN_STRUCT(WeightQuantBatchMatmulV3, (In, x), (Stored<In>, weight), (Stored<In>, antiquantScale),
             (Optional<In>, antiquantOffsetOptional), (Optional<In>, quantScaleOptional),
             (Optional<In>, quantOffsetOptional), (Optional<In>, biasOptional),
             (int, antiquantGroupSize), (int, innerPrecise), (Out, y)) {
  expect_one_of("innerPrecise", innerPrecise, {0, 1});
  multiply_dequantized(*this);
}
ACLNN_STRUCT(WeightQuantBatchMatmulNz, (In, x), (Stored<In>, weight), (Stored<In>, antiquantScale),
             (Optional<In>, antiquantOffsetOptional), (Optional<In>, quantScaleOptional),
             (Optional<In>, quantOffsetOptional), (Optional<In>, biasOptional),
             (int, antiquantGroupSize), (Out, y)) {
  expect_blocked("weight", weight);
  EXPECT(!quantScaleOptional, "quantScaleOptional is given, expected null");
  EXPECT(!quantOffsetOptional, "quantOffsetOptional is given, expected null");
  expect_type("antiquantScale", antiquantScale, {ACL_FLOAT16, ACL_BF16, ACL_FLOAT8_E8M0});
  expect_type("weight", weight, {ACL_INT8, ACL_INT4, ACL_INT32, ACL_FLOAT4_E2M1, ACL_FLOAT});
  EXPECT(weight.dtype != ACL_INT8 || antiquantGroupSize == 0, "antiquantGroupSize is ",
         antiquantGroupSize.value(), ", expected 0 for a weight of INT8");
  multiply_dequantized(*this);
}

// Up to 64 rows are multiplied with (x2 + deqOffset) deqScale; more rows with ((x2 +
// antiquantOffset) antiquantScale + addOffset) mulScale.
// Behaviour of WeightQuantBatchMatmul*: Weights are widened, multiplied in FLOAT and rounded once.
ACLNN(WeightQuantBatchMatmul, (In, x1), (In, x2), (Optional<In>, diagonalMatrix),
      (Optional<In>, deqOffset), (Optional<In>, deqScale), (Optional<In>, addOffset),
      (Optional<In>, mulScale), (Optional<In>, bias), (bool, transposeX1), (bool, transposeX2),
      (float, antiquantScale), (float, antiquantOffset), (Out, out)) {
  expect_dims("x1", x1, 2);
  expect_dims("x2", x2, 2);
  expect_dtype("x1", x1, at::kHalf);
  expect_dtype("x2", x2, at::kChar);
  expect_dtype("out", out, at::kHalf);
  const at::Tensor a = transposeX1 ? x1.t() : x1;
  const int64_t n = x2.size(transposeX2 ? 0 : 1);
  const auto oriented = [&](const at::Tensor& weight) { return transposeX2 ? weight.t() : weight; };
  at::Tensor b;
  constexpr int64_t kMostRows = 64;
  if (a.size(0) <= kMostRows) {
    require_given(diagonalMatrix && deqOffset && deqScale,
                  "diagonalMatrix, deqOffset or deqScale is null, expected tensors for ", a.size(0),
                  " rows, at most ", kMostRows);
    expect_tensor("diagonalMatrix", *diagonalMatrix, at::kChar, {32, 32});
    expect_dtype("deqOffset", *deqOffset, at::kInt);
    expect_dtype("deqScale", *deqScale, at::kUInt64);
    b = (oriented(x2).to(at::kDouble) + for_columns("deqOffset", *deqOffset, n)) *
        decoded_scale(for_columns("deqScale", *deqScale, n));
  } else {
    b = (x2.to(at::kDouble) + antiquantOffset.value()) * antiquantScale.value();
    expect_over_weight("addOffset", addOffset, x2);
    expect_over_weight("mulScale", mulScale, x2);
    if (addOffset) b = b + *addOffset;
    if (mulScale) b = b * *mulScale;
    b = oriented(b);
  }
  EXPECT(a.size(1) == b.size(0), "x2 has ", b.size(0), " rows, expected ", a.size(1),
         " as x1 has columns");
  const at::Tensor product = at::matmul(wide(a), b.to(at::kFloat));
  if (bias) {
    expect_tensor("bias", *bias, at::kFloat, {n});
  }
  out = bias ? product + *bias : product;
}

// The sum of the products with the upper and the lower bits of a FLOAT weight.
ACLNN(MatmulEmuSplitWeight, (In, x), (In, wHigh), (Like<In>, wLow, "wHigh"), (Out, y),
      (float, wLowScale), (int8_t, yDtype)) {
  expect_dims("x", x, 2);
  expect_dims("wHigh", wHigh, 2);
  expect_dtype("x", x, at::kBFloat16);
  expect_dtype("wHigh", wHigh, at::kBFloat16);
  expect_dtype("y", y, at::kFloat);
  expect_one_of("yDtype", yDtype, {0}, " (FLOAT)");
  EXPECT(wLowScale == 0.00390625, "wLowScale is ", wLowScale.value(),
         ", expected 0.00390625, 1 / 256");
  EXPECT(x.size(1) == wHigh.size(0) && x.numel() > 0 && wHigh.numel() > 0, "x has shape ",
         x.sizes(), " and wHigh has shape ", wHigh.sizes(),
         ", expected (M, K) and (K, N) with elements");
  y = at::matmul(wide(x), wide(wHigh)) +
      at::matmul(wide(x), wide(wLow)) * c10::Scalar(wLowScale.value());
}

}  // namespace aclnn_host::quantized_weight_quantized_matmul_rows
