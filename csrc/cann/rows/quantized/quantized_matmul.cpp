// Products of quantised matrices, in the quantisation modes of quantization_modes.h.

#include "cann/rows/quantized/quantization_modes.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_matmul_rows {

namespace {

// Checks the types of functions that multiply integers of one type.
void expect_integers(const StoredTensor& x1, const StoredTensor& x2) {
  const bool is_int8 = x1.dtype == ACL_INT8 && x2.dtype == ACL_INT8;
  EXPECT(is_int8 || (is_int4(x1.dtype) && is_int4(x2.dtype)), "x1 has dtype ", dtype_name(x1.dtype),
         " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected INT8 for both, or INT4 or INT32 for both");
}

// The product of versions 3 and 4. `row` is the struct of a version.
template <class Version>
at::Tensor integer_product(const Version& row) {
  expect_integers(row.x1, row.x2);
  expect_format("x2", row.x2, /*or_blocked=*/row.x1.dtype == ACL_INT8);
  QuantizedMatmul call{.x1 = row.x1,
                       .x2 = row.x2,
                       .x2_scale = as_stored(row.scale),
                       .x2_offset = row.offset,
                       .bias = row.bias,
                       .transpose_x1 = row.transposeX1,
                       .transpose_x2 = row.transposeX2,
                       .out = row.out->scalar_type()};
  call.names = {.x1_scale = nullptr, .x2_scale = "scale", .x2_offset = "offset"};
  if constexpr (requires { row.pertokenScaleOptional; }) {
    call.names.x1_scale = "pertokenScaleOptional";
    if (row.pertokenScaleOptional) call.x1_scale = as_stored(*row.pertokenScaleOptional);
  }
  return product_of(call);
}

// The product of version 5.
template <class Version>
at::Tensor scaled_product(const Version& row, bool is_blocked) {
  expect_absent("x1Offset", row.x1Offset);
  return product_of({.x1 = row.x1,
                     .x2 = row.x2,
                     .x1_scale = row.x1Scale,
                     .x2_scale = row.x2Scale,
                     .y_scale = row.yScale,
                     .x2_offset = row.x2Offset,
                     .y_offset = row.yOffset,
                     .bias = row.bias,
                     .transpose_x1 = row.transposeX1,
                     .transpose_x2 = row.transposeX2,
                     .group_size = row.groupSize,
                     .out = row.out->scalar_type(),
                     .is_blocked = is_blocked});
}

// (x1 x2 + bias) * scale of INT8 matrices that are not packed, in FLOAT16.
at::Tensor product_of_int8(const at::Tensor& x1, const at::Tensor& x2,
                           const std::optional<at::Tensor>& bias, const Output& out) {
  expect_dtype("x1", x1, at::kChar);
  expect_dtype("x2", x2, at::kChar);
  expect_dtype("out", out, at::kHalf);
  EXPECT(x1.size(-1) == x2.size(-2), "x2 has ", x2.size(-2), " rows, expected ", x1.size(-1),
         " as x1 has columns");
  expect_batches("x2", x2, "x1", x1);
  const at::Tensor sums = exact_product(x1, x2);
  if (!bias) return sums;
  EXPECT(x1.size(-1) > 0 || sums.numel() == 0,
         "x1 has no columns, expected some because there is a bias");
  expect_tensor("bias", *bias, at::kInt, {sums.size(-1)});
  return sums + *bias;
}

// A product with scales of tokens and channels, and an activation.
template <class Version>
at::Tensor fused_product(const Version& row) {
  expect_absent("yScaleOptional", row.yScaleOptional);
  expect_absent("x1OffsetOptional", row.x1OffsetOptional);
  expect_absent("x2OffsetOptional", row.x2OffsetOptional);
  expect_absent("yOffsetOptional", row.yOffsetOptional);
  expect_absent("x3Optional", row.x3Optional);
  expect_text("fusedOpType", row.fusedOpType, {"gelu_erf", "gelu_tanh"});
  expect_integers(row.x1, row.x2);
  expect_reduced_float("out", row.out);
  EXPECT(!holds_bits(row.x2Scale), "x2Scale has dtype ", row.x2Scale.scalar_type(),
         ", expected FLOAT or BFLOAT16");
  EXPECT(row.x1Scale.dim() == 1, "x1Scale has shape ", row.x1Scale.sizes(), ", expected (m)");
  const at::Tensor product =
      product_of({.x1 = row.x1,
                  .x2 = row.x2,
                  .x1_scale = as_stored(row.x1Scale),
                  .x2_scale = as_stored(row.x2Scale),
                  .bias = row.biasOptional,
                  .group_size = row.groupSizeOptional,
                  .out = row.out->scalar_type(),
                  .names = {.bias = "biasOptional", .group_size = "groupSizeOptional"}});
  return at::gelu(product, row.fusedOpType == "gelu_erf" ? "none" : "tanh");
}

}  // namespace

ACLNN_STRUCT(QuantMatmulV3, (Stored<In>, x1), (Stored<In>, x2), (In, scale), (Optional<In>, offset),
             (Optional<In>, bias), (bool, transposeX1), (bool, transposeX2), (Out, out)) {
  out = integer_product(*this);
}
ACLNN_STRUCT(QuantMatmulV4, (Stored<In>, x1), (Stored<In>, x2), (In, scale), (Optional<In>, offset),
             (Optional<In>, pertokenScaleOptional), (Optional<In>, bias), (bool, transposeX1),
             (bool, transposeX2), (Out, out)) {
  out = integer_product(*this);
}
ACLNN_STRUCT(QuantMatmulV5, (Stored<In>, x1), (Stored<In>, x2), (Optional<Stored<In>>, x1Scale),
             (Stored<In>, x2Scale), (Optional<In>, yScale), (Optional<In>, x1Offset),
             (Optional<In>, x2Offset), (Optional<In>, yOffset), (Optional<In>, bias),
             (bool, transposeX1), (bool, transposeX2), (int64_t, groupSize), (Out, out)) {
  out = scaled_product(*this, /*is_blocked=*/false);
}
ACLNN_STRUCT(QuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2),
             (Optional<Stored<In>>, x1Scale), (Stored<In>, x2Scale), (Optional<In>, yScale),
             (Optional<In>, x1Offset), (Optional<In>, x2Offset), (Optional<In>, yOffset),
             (Optional<In>, bias), (bool, transposeX1), (bool, transposeX2), (int64_t, groupSize),
             (Out, out)) {
  out = scaled_product(*this, /*is_blocked=*/true);
}

// Behaviour of QuantMatmul, QuantMatmulV*, QuantMatmulWeightNz, QuantConvolution*: Sums of INT8 and
// INT4 are exact in INT32, then scaled and rounded once.
// Deviation of QuantMatmul, QuantMatmulV*, QuantMatmulWeightNz, QuantConvolution*: A device rounds
// some partial products to FLOAT16 and saturates to 9 bits in between.
ACLNN(QuantMatmul, (In, x1), (In, x2), (Optional<In>, bias), (float, deqScale), (Out, out)) {
  expect_dims("x1", x1, 2, 3);
  expect_dims("x2", x2, 2, 3);
  EXPECT(x1.sizes().slice(0, x1.sizes().size() - 2) == x2.sizes().slice(0, x2.sizes().size() - 2),
         "x2 has shape ", x2.sizes(), ", expected the batch of x1, which has shape ", x1.sizes());
  out = product_of_int8(x1, x2, bias, out).to(at::kDouble) * deqScale.value();
}
// deqScale has an element for each column, padded to a multiple of 16.
ACLNN(QuantMatmulV2, (In, x1), (In, x2), (Optional<In>, bias), (In, deqScale), (bool, adjX1),
      (bool, adjX2), (Out, out)) {
  expect_dims("x1", x1, 2, 3);
  expect_dims("x2", x2, 2, 3);
  const at::Tensor sums = product_of_int8(adjX1 ? x1.transpose(-1, -2) : x1,
                                          adjX2 ? x2.transpose(-1, -2) : x2, bias, out);
  const int64_t n = sums.size(-1);
  expect_tensor("deqScale", deqScale, at::kUInt64, {(n + 15) / 16 * 16});
  out = sums.to(at::kDouble) * decoded_scale(deqScale).narrow(0, 0, n);
}

ACLNN(QuantBatchMatmulInplaceAdd, (Stored<In>, x1), (Stored<In>, x2), (Stored<In>, x1ScaleOptional),
      (Stored<In>, x2Scale), (InOut, yRef), (bool, transposeX1), (bool, transposeX2),
      (int64_t, groupSize)) {
  expect_type("x1", x1, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_type("x2", x2, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_type("x1ScaleOptional", x1ScaleOptional, {ACL_FLOAT8_E8M0});
  expect_type("x2Scale", x2Scale, {ACL_FLOAT8_E8M0});
  EXPECT(transposeX1 && !transposeX2, "transposeX1 is ", transposeX1, " and transposeX2 is ",
         transposeX2, ", expected true and false");
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  expect_format("x2", x2);
  expect_dtype("yRef", yRef, at::kFloat);
  const at::Tensor product = product_of({.x1 = x1,
                                         .x2 = x2,
                                         .x1_scale = x1ScaleOptional,
                                         .x2_scale = x2Scale,
                                         .transpose_x1 = transposeX1,
                                         .group_size = groupSize,
                                         .out = at::kFloat,
                                         .names = {.x1_scale = "x1ScaleOptional"}});
  expect_shape("yRef", yRef, product.sizes());
  yRef = product + yRef;
}

ACLNN_STRUCT(FusedQuantMatmul, (Stored<In>, x1), (Stored<In>, x2), (In, x1Scale), (In, x2Scale),
             (Optional<In>, yScaleOptional), (Optional<In>, x1OffsetOptional),
             (Optional<In>, x2OffsetOptional), (Optional<In>, yOffsetOptional),
             (Optional<In>, biasOptional), (Optional<In>, x3Optional), (const char*, fusedOpType),
             (int64_t, groupSizeOptional), (Out, out)) {
  expect_format("x2", x2);
  out = fused_product(*this);
}
ACLNN_STRUCT(FusedQuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (In, x1Scale),
             (In, x2Scale), (Optional<In>, yScaleOptional), (Optional<In>, x1OffsetOptional),
             (Optional<In>, x2OffsetOptional), (Optional<In>, yOffsetOptional),
             (Optional<In>, biasOptional), (Optional<In>, x3Optional), (const char*, fusedOpType),
             (int64_t, groupSizeOptional), (Out, out)) {
  expect_blocked_matrix("x2", x2);
  out = fused_product(*this);
}

}  // namespace aclnn_host::quantized_quantized_matmul_rows
