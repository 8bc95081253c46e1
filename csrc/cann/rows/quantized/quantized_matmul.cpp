// Products of quantised matrices, in the quantisation modes of quantization_modes.h.

#include "cann/rows/checks.h"
#include "cann/rows/quantized/quantization_modes.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_matmul_rows {

namespace {

std::optional<StoredTensor> stored_if_given(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(as_stored(*tensor)) : std::nullopt;
}

// Checks the types of the first versions, which multiply integers of one type.
void expect_integers(const StoredTensor& x1, const StoredTensor& x2) {
  const bool is_wide = x1.dtype == ACL_INT8 && x2.dtype == ACL_INT8;
  EXPECT(is_wide || (is_int4(x1.dtype) && is_int4(x2.dtype)), "x1 has dtype ", dtype_name(x1.dtype),
         " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected INT8 for both, or INT4 or INT32 for both");
  expect_format("x2", x2, /*or_blocked=*/is_wide);
}

// (x1 x2 + bias) * scale of INT8 matrices that are not packed, in FLOAT16.
at::Tensor product_of_int8(const at::Tensor& x1, const at::Tensor& x2,
                           const std::optional<at::Tensor>& bias, const Output& out) {
  expect_dtype("x1", x1, at::kChar);
  expect_dtype("x2", x2, at::kChar);
  expect_dtype("out", out, at::kHalf);
  EXPECT(x1.size(-1) == x2.size(-2), "x2 has ", x2.size(-2), " rows, expected ", x1.size(-1),
         " as x1 has columns");
  const at::Tensor sums = exact_product(x1, x2);
  if (!bias) return sums;
  EXPECT(x1.size(-1) > 0 || sums.numel() == 0,
         "x1 has no columns, expected some because there is a bias");
  expect_dtype("bias", *bias, at::kInt);
  expect_shape("bias", *bias, {sums.size(-1)});
  return sums + *bias;
}

struct Unsupported {
  const char* name;
  const std::optional<at::Tensor>& tensor;
};
void expect_all_absent(std::initializer_list<Unsupported> arguments) {
  for (const auto& [name, tensor] : arguments) expect_absent(name, tensor);
}

at::Tensor activated(const at::Tensor& product, const std::string& type) {
  EXPECT(type == "gelu_erf" || type == "gelu_tanh", "fusedOpType is \"", type,
         "\", expected \"gelu_erf\" or \"gelu_tanh\"");
  return at::gelu(product, type == "gelu_erf" ? "none" : "tanh");
}

// A product with scales of tokens and channels, and an activation.
at::Tensor fused(const StoredTensor& x1, const StoredTensor& x2, const at::Tensor& x1_scale,
                 const at::Tensor& x2_scale, const std::optional<at::Tensor>& bias,
                 const std::string& type, int64_t group_size, const Output& out, bool is_blocked) {
  const bool is_wide = x1.dtype == ACL_INT8 && x2.dtype == ACL_INT8;
  EXPECT(is_wide || (is_int4(x1.dtype) && is_int4(x2.dtype)), "x1 has dtype ", dtype_name(x1.dtype),
         " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected INT8 for both, or INT4 or INT32 for both");
  if (is_blocked) {
    expect_blocked_matrix("x2", x2);
  } else {
    expect_format("x2", x2);
  }
  EXPECT(out->scalar_type() == at::kHalf || out->scalar_type() == at::kBFloat16, "out has dtype ",
         dtype_text(out->scalar_type()), ", expected FLOAT16 or BFLOAT16");
  EXPECT(!holds_bits(x2_scale), "x2Scale has dtype ", dtype_text(x2_scale.scalar_type()),
         ", expected FLOAT or BFLOAT16");
  EXPECT(x1_scale.dim() == 1, "x1Scale has shape ", x1_scale.sizes(), ", expected (m)");
  return activated(product_of({x1, x2, as_stored(x1_scale), as_stored(x2_scale), std::nullopt,
                               std::nullopt, std::nullopt, bias, false, false, group_size,
                               out->scalar_type(), /*is_blocked=*/false}),
                   type);
}

}  // namespace

ACLNN(QuantMatmulV3, (Stored<In>, x1), (Stored<In>, x2), (In, scale), (Optional<In>, offset),
      (Optional<In>, bias), (bool, transposeX1), (bool, transposeX2), (Out, out)) {
  expect_integers(x1, x2);
  out = product_of({x1, x2, std::nullopt, as_stored(scale), std::nullopt, offset, std::nullopt,
                    bias, transposeX1, transposeX2, 0, out->scalar_type(), false});
}
ACLNN(QuantMatmulV4, (Stored<In>, x1), (Stored<In>, x2), (In, scale), (Optional<In>, offset),
      (Optional<In>, pertokenScaleOptional), (Optional<In>, bias), (bool, transposeX1),
      (bool, transposeX2), (Out, out)) {
  expect_integers(x1, x2);
  out = product_of({x1, x2, stored_if_given(pertokenScaleOptional), as_stored(scale), std::nullopt,
                    offset, std::nullopt, bias, transposeX1, transposeX2, 0, out->scalar_type(),
                    false});
}
ACLNN(QuantMatmulV5, (Stored<In>, x1), (Stored<In>, x2), (Optional<Stored<In>>, x1Scale),
      (Stored<In>, x2Scale), (Optional<In>, yScale), (Optional<In>, x1Offset),
      (Optional<In>, x2Offset), (Optional<In>, yOffset), (Optional<In>, bias), (bool, transposeX1),
      (bool, transposeX2), (int64_t, groupSize), (Out, out)) {
  expect_all_absent({{"x1Offset", x1Offset}});
  out = product_of({x1, x2, x1Scale, x2Scale, yScale, x2Offset, yOffset, bias, transposeX1,
                    transposeX2, groupSize, out->scalar_type(), false});
}
ACLNN(QuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (Optional<Stored<In>>, x1Scale),
      (Stored<In>, x2Scale), (Optional<In>, yScale), (Optional<In>, x1Offset),
      (Optional<In>, x2Offset), (Optional<In>, yOffset), (Optional<In>, bias), (bool, transposeX1),
      (bool, transposeX2), (int64_t, groupSize), (Out, out)) {
  expect_all_absent({{"x1Offset", x1Offset}});
  out = product_of({x1, x2, x1Scale, x2Scale, yScale, x2Offset, yOffset, bias, transposeX1,
                    transposeX2, groupSize, out->scalar_type(), /*is_blocked=*/true});
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
  expect_dtype("deqScale", deqScale, at::kUInt64);
  expect_shape("deqScale", deqScale, {(n + 15) / 16 * 16});
  out = sums.to(at::kDouble) * decoded_scale(deqScale).narrow(0, 0, n);
}

ACLNN(QuantBatchMatmulInplaceAdd, (Stored<In>, x1), (Stored<In>, x2), (Stored<In>, x1ScaleOptional),
      (Stored<In>, x2Scale), (InOut, yRef), (bool, transposeX1), (bool, transposeX2),
      (int64_t, groupSize)) {
  EXPECT(is_float8(x1.dtype) && is_float8(x2.dtype), "x1 has dtype ", dtype_name(x1.dtype),
         " and x2 has dtype ", dtype_name(x2.dtype), ", expected FLOAT8_E4M3FN or FLOAT8_E5M2");
  EXPECT(x1ScaleOptional.dtype == ACL_FLOAT8_E8M0 && x2Scale.dtype == ACL_FLOAT8_E8M0,
         "x1ScaleOptional has dtype ", dtype_name(x1ScaleOptional.dtype), " and x2Scale has dtype ",
         dtype_name(x2Scale.dtype), ", expected FLOAT8_E8M0");
  EXPECT(transposeX1 && !transposeX2, "transposeX1 is ", transposeX1.value(),
         " and transposeX2 is ", transposeX2.value(), ", expected true and false");
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  expect_format("x2", x2);
  expect_dtype("yRef", yRef, at::kFloat);
  const at::Tensor product =
      product_of({x1, x2, x1ScaleOptional, x2Scale, std::nullopt, std::nullopt, std::nullopt,
                  std::nullopt, transposeX1, transposeX2, groupSize, at::kFloat, false});
  expect_shape("yRef", yRef, product.sizes());
  yRef = product + yRef;
}

ACLNN(FusedQuantMatmul, (Stored<In>, x1), (Stored<In>, x2), (In, x1Scale), (In, x2Scale),
      (Optional<In>, yScaleOptional), (Optional<In>, x1OffsetOptional),
      (Optional<In>, x2OffsetOptional), (Optional<In>, yOffsetOptional),
      (Optional<In>, biasOptional), (Optional<In>, x3Optional), (const char*, fusedOpType),
      (int64_t, groupSizeOptional), (Out, out)) {
  expect_all_absent({{"yScaleOptional", yScaleOptional},
                     {"x1OffsetOptional", x1OffsetOptional},
                     {"x2OffsetOptional", x2OffsetOptional},
                     {"yOffsetOptional", yOffsetOptional},
                     {"x3Optional", x3Optional}});
  out = fused(x1, x2, x1Scale, x2Scale, biasOptional, fusedOpType, groupSizeOptional, out, false);
}
ACLNN(FusedQuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (In, x1Scale), (In, x2Scale),
      (Optional<In>, yScaleOptional), (Optional<In>, x1OffsetOptional),
      (Optional<In>, x2OffsetOptional), (Optional<In>, yOffsetOptional),
      (Optional<In>, biasOptional), (Optional<In>, x3Optional), (const char*, fusedOpType),
      (int64_t, groupSizeOptional), (Out, out)) {
  expect_all_absent({{"yScaleOptional", yScaleOptional},
                     {"x1OffsetOptional", x1OffsetOptional},
                     {"x2OffsetOptional", x2OffsetOptional},
                     {"yOffsetOptional", yOffsetOptional},
                     {"x3Optional", x3Optional}});
  out = fused(x1, x2, x1Scale, x2Scale, biasOptional, fusedOpType, groupSizeOptional, out, true);
}

}  // namespace aclnn_host::quantized_quantized_matmul_rows
