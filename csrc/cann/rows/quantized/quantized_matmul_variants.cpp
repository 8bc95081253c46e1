// Quantised matrix products that also quantise x or the result, sum over a batch, permute it, or
// take matrices in special layouts.

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/quantization_modes.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::quantized_quantized_matmul_variants_rows {

namespace {

// ---- permuted batches

struct Permutations {
  at::IntArrayRef x1;
  at::IntArrayRef x2;
  at::IntArrayRef y;
};

void check_permutations(const Permutations& perm, int64_t batch_split) {
  const int64_t exchanged[] = {1, 0, 2};
  const int64_t same[] = {0, 1, 2};
  const int64_t transposed[] = {0, 2, 1};
  EXPECT(perm.x1 == at::IntArrayRef(exchanged), "permX1 is ", perm.x1, ", expected [1, 0, 2]");
  EXPECT(perm.x2 == at::IntArrayRef(same) || perm.x2 == at::IntArrayRef(transposed), "permX2 is ",
         perm.x2, ", expected [0, 1, 2] or [0, 2, 1]");
  EXPECT(perm.y == at::IntArrayRef(exchanged), "permY is ", perm.y, ", expected [1, 0, 2]");
  EXPECT(batch_split == 1, "batchSplitFactor is ", batch_split, ", expected 1");
}

// x1 is (M, B, K), as are its MX scales, and the result is (M, B, N).
at::Tensor permuted_product(const StoredTensor& x1, const StoredTensor& x2,
                            const StoredTensor& x1_scale, const StoredTensor& x2_scale,
                            int64_t dtype, int64_t group_size, const Permutations& perm,
                            const Output& out) {
  expect_dims("x1", x1.elements, 3);
  expect_dims("x2", x2.elements, 3);
  const bool is_mx = x1_scale.dtype == ACL_FLOAT8_E8M0;
  EXPECT(is_mx ? x1.dtype == ACL_FLOAT8_E4M3FN && x2.dtype == ACL_FLOAT8_E4M3FN
               : is_float8(x1.dtype) && is_float8(x2.dtype),
         "x1 has dtype ", dtype_name(x1.dtype), " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected FLOAT8_E4M3FN", is_mx ? "" : " or FLOAT8_E5M2");
  EXPECT(dtype == 1 || dtype == 27, "dtype is ", dtype, ", expected 1 (FLOAT16) or 27 (BFLOAT16)");
  expect_dtype("out", out, dtype == 1 ? at::kHalf : at::kBFloat16);
  const bool is_transposed = perm.x2[1] == 2;
  const int64_t k = x1.elements.size(2);
  const int64_t n = x2.elements.size(is_transposed ? 1 : 2);
  StoredTensor scale = x1_scale;
  if (is_mx) {
    EXPECT(k % 64 == 0, "x1 has shape ", x1.elements.sizes(),
           ", expected a multiple of 64 as its last size");
    expect_dims("x1Scale", x1_scale.elements, 4);
    scale.elements = x1_scale.elements.transpose(0, 1);
  } else {
    EXPECT(x1_scale.dtype == ACL_FLOAT && x2_scale.dtype == ACL_FLOAT, "x1Scale has dtype ",
           dtype_name(x1_scale.dtype), " and x2Scale has dtype ", dtype_name(x2_scale.dtype),
           ", expected FLOAT or FLOAT8_E8M0 for both");
    EXPECT(!is_transposed, "permX2 is ", perm.x2, ", expected [0, 1, 2] for scales of FLOAT");
    EXPECT(k == 512 && n == 128, "x1 has ", k, " columns and x2 has ", n,
           ", expected 512 and 128 for scales of FLOAT");
    expect_shape("x1Scale", x1_scale.elements, {x1.elements.size(0)});
    expect_shape("x2Scale", x2_scale.elements, {n});
    group_size = 0;
  }
  const StoredTensor batches{x1.elements.transpose(0, 1), x1.dtype, x1.format};
  EXPECT(batches.elements.size(0) == x2.elements.size(0), "x2 has shape ", x2.elements.sizes(),
         ", expected a batch of ", batches.elements.size(0), " as x1 has");
  return product_of({batches, x2, scale, x2_scale, std::nullopt, std::nullopt, std::nullopt,
                     std::nullopt, false, is_transposed, group_size, out->scalar_type(), false})
      .transpose(0, 1);
}

// ---- sparse weights

// Expands a 2:4 sparse weight: `values` has two of every four elements, and `codes` their
// positions, with 2 bits for the first and 2 bits for the second minus 1. Both are (n, ...).
at::Tensor dense_weight(const at::Tensor& values, const at::Tensor& codes) {
  const at::Tensor code = codes.to(at::kLong);
  const auto place = [&](int64_t shift) { return code.bitwise_right_shift(shift).bitwise_and(3); };
  const at::Tensor second = at::stack({place(2), place(6)}, -1);
  if (has_values(second)) check_bounds("the second place of four in index", second, 3);
  const at::Tensor places = at::stack({place(0), place(2) + 1, place(4) + 4, place(6) + 5}, -1);
  const at::Tensor eights = at::zeros({values.size(0), codes.size(1), 8}, values.options());
  // If both positions are the same, one of the values is 0.
  return eights.scatter_add(-1, places.clamp_max(7), values.view({values.size(0), -1, 4}))
      .flatten(1);
}

// Reads a matrix stored in blocks, whatever layout its tensor declares.
at::Tensor from_memory(const char* name, const at::Tensor& tensor, int64_t rows, int64_t columns,
                       int64_t width) {
  const int64_t count = (rows + 15) / 16 * 16 * ((columns + width - 1) / width * width);
  EXPECT(tensor.numel() == count, name, " has shape ", tensor.sizes(), ", expected ", count,
         " elements, the blocks of ", rows, " rows and ", columns, " columns");
  return from_blocks(tensor.contiguous().flatten(), {rows, columns}, ACL_FORMAT_FRACTAL_NZ, width);
}

// ---- quantisation of the result

// The power of two that FLOAT8_E8M0 bits encode.
at::Tensor power_of(const at::Tensor& code) {
  const at::Tensor bits = at::where(code == 0, 0x400000, code.bitwise_left_shift(23));
  return bits.to(at::kInt).view(at::kFloat);
}

// The codes of the scales for blocks with these largest magnitudes. Algorithm 0 rounds to the power
// of two below, algorithm 1 to the one with which no element overflows.
at::Tensor mx_codes(const at::Tensor& largest, bool is_wide, int64_t algorithm) {
  const double most = is_wide ? 57344.0 : 448.0;
  const at::Tensor ratio = algorithm == 0 ? largest : largest / most;
  const at::Tensor bits = ratio.view(at::kInt).to(at::kLong);
  const at::Tensor exponent = bits.bitwise_right_shift(23);
  if (algorithm == 0) return at::clamp(exponent - (is_wide ? 15 : 8), 0, 254);
  const at::Tensor mantissa = bits.bitwise_and(0x7FFFFF);
  const at::Tensor goes_up = at::where(exponent > 0, mantissa > 0, mantissa > 0x400000);
  return at::clamp(exponent + goes_up, 0, 254);
}

// Quantises blocks of 32 along the last dimension, with one scale for each; scales are stored in
// pairs.
void quantize_mx(const at::Tensor& values, int64_t algorithm, StoredOutput& y,
                 StoredOutput& scale) {
  const bool is_wide = y.dtype() == ACL_FLOAT8_E5M2;
  const double most = is_wide ? 57344.0 : 448.0;
  const int64_t n = values.size(-1);
  const int64_t pairs = (n + 63) / 64;
  const at::Tensor padded = at::constant_pad_nd(values.to(at::kFloat), {0, pairs * 64 - n});
  std::vector<int64_t> shape = values.sizes().vec();
  shape.back() = pairs * 2;
  shape.push_back(32);
  const at::Tensor blocks = padded.reshape(shape);
  const at::Tensor codes = mx_codes(at::amax(blocks.abs(), -1), is_wide, algorithm);
  const at::Tensor quotient =
      (blocks.to(at::kDouble) / power_of(codes).unsqueeze(-1)).flatten(-2).narrow(-1, 0, n);
  y = at::clamp(quotient, -most, most).to(at::kFloat);
  shape.back() = 2;
  shape[shape.size() - 2] = pairs;
  scale = power_of(codes).view(shape);
}

}  // namespace

// x is quantised with a scale for each row, or with a given scale. A weightScale given as bits
// includes x's scale.
ACLNN(QuantMatmulDequant, (In, x), (Stored<In>, weight), (In, weightScale),
      (Optional<In>, biasOptional), (Optional<In>, xScaleOptional), (Optional<In>, xOffsetOptional),
      (Optional<In>, smoothScaleOptional), (char*, xQuantMode), (bool, transposeWeight),
      (Out, out)) {
  expect_dims("x", x, 2);
  expect_dims("weight", weight.elements, 2);
  expect_format("weight", weight, /*or_blocked=*/true);
  expect_dtype("x", x, at::kHalf);
  expect_dtype("weight", weight.elements, at::kChar);
  expect_dtype("out", out, at::kHalf);
  EXPECT(!biasOptional && !xOffsetOptional,
         "biasOptional or xOffsetOptional is given, expected null");
  EXPECT(transposeWeight, "transposeWeight is false, expected true");
  const int64_t n = weight.elements.size(0);
  const int64_t k = weight.elements.size(1);
  EXPECT(n > 0 && k > 0 && n % 16 == 0 && k % 16 == 0, "weight has shape ", weight.elements.sizes(),
         ", expected multiples of 16");
  EXPECT(x.size(0) > 0 && x.size(1) == k, "x has shape ", x.sizes(), ", expected (m, ", k,
         ") with m of 1 or more");
  expect_shape("weightScale", weightScale, {n});
  const bool has_bits = weightScale.scalar_type() == at::kLong;
  if (!has_bits) expect_dtype("weightScale", weightScale, at::kFloat);
  const QuantizedRows rows =
      quantized_rows(x, smoothScaleOptional, xScaleOptional, xQuantMode, has_bits);
  const at::Tensor sums = exact_product(rows.x, weight.elements.t());
  const at::Tensor result = sums.to(at::kDouble) * decoded_scale(weightScale);
  out = has_bits ? result : result * rows.scale;
}

// Sums the products over the batch.
ACLNN(QuantMatmulReduceSumWeightNz, (In, x1), (Stored<In>, x2), (In, x1Scale), (In, x2Scale),
      (Optional<In>, yScale), (Optional<In>, x1Offset), (Optional<In>, x2Offset),
      (Optional<In>, yOffset), (Optional<In>, bias), (bool, transposeX1), (bool, transposeX2),
      (int64_t, groupSize), (Ints, dims), (bool, keepDims), (Out, out)) {
  EXPECT(!yScale && !x1Offset && !x2Offset && !yOffset && !bias,
         "yScale, x1Offset, x2Offset, yOffset or bias is given, expected null");
  EXPECT(!transposeX1 && !transposeX2 && !keepDims && groupSize == 0,
         "transposeX1, transposeX2, keepDims or groupSize is not 0, expected false and 0");
  EXPECT(dims.size() == 1 && dims[0] == 0, "dims is ", dims, ", expected [0]");
  expect_dims("x1", x1, 3);
  expect_dims("x2", x2.elements, 3);
  expect_dtype("x1", x1, at::kChar);
  expect_dtype("x2", x2.elements, at::kChar);
  expect_dtype("x1Scale", x1Scale, at::kFloat);
  expect_dtype("x2Scale", x2Scale, at::kBFloat16);
  expect_dtype("out", out, at::kBFloat16);
  EXPECT(is_fractal_nz(x2.format), "x2 has format ", static_cast<int>(x2.format),
         ", expected FRACTAL_NZ (29); convert it with aclnnTransMatmulWeight");
  EXPECT(x1.numel() > 0 && x2.elements.numel() > 0, "x1 has shape ", x1.sizes(),
         " and x2 has shape ", x2.elements.sizes(), ", expected elements");
  expect_shape("x2", x2.elements, {x1.size(0), x1.size(2), x2.elements.size(2)});
  expect_shape("x1Scale", x1Scale, {x1.size(0), x1.size(1)});
  expect_shape("x2Scale", x2Scale, {x2.elements.size(2)});
  const at::Tensor products = exact_product(x1, x2.elements).to(at::kDouble);
  out = (products * x1Scale.unsqueeze(-1)).sum(0) * wide(x2Scale);
}

// quantParam has an element for each column, padded to a multiple of 16, or one element.
ACLNN(BatchMatmulQuant, (In, x1), (In, x2), (In, quantParam), (Optional<In>, bias),
      (bool, transposeX1), (bool, transposeX2), (Out, out)) {
  expect_dims("x1", x1, 2, 6);
  expect_dims("x2", x2, x1.dim());
  expect_dtype("x1", x1, at::kHalf);
  expect_dtype("x2", x2, at::kHalf);
  expect_dtype("quantParam", quantParam, at::kUInt64);
  expect_dtype("out", out, at::kChar);
  EXPECT(x1.numel() > 0 && x2.numel() > 0, "x1 has shape ", x1.sizes(), " and x2 has shape ",
         x2.sizes(), ", expected elements");
  at::Tensor sums = at::matmul(wide(transposeX1 ? x1.transpose(-1, -2) : x1),
                               wide(transposeX2 ? x2.transpose(-1, -2) : x2));
  const int64_t n = sums.size(-1);
  if (bias) {
    expect_dtype("bias", *bias, at::kHalf);
    expect_shape("bias", *bias, {n});
    sums = sums + wide(*bias);
  }
  const bool is_one = quantParam.dim() == 1 && quantParam.size(0) == 1;
  if (!is_one) expect_shape("quantParam", quantParam, {(n + 15) / 16 * 16});
  out = quantized(sums, is_one ? quantParam : quantParam.narrow(0, 0, n), std::nullopt);
}

ACLNN(QuantMatmulActivationQuantWeightNz, (Stored<In>, x1), (Stored<In>, x2),
      (Stored<In>, x1ScaleOptional), (Stored<In>, x2Scale), (Optional<In>, biasOptional),
      (bool, transposeX1), (bool, transposeX2), (int64_t, groupSize), (const char*, activationType),
      (const char*, quantMode), (char*, roundMode), (int64_t, scaleAlg), (double, dstTypeMax),
      (Stored<Out>, yOut), (Stored<Out>, yScaleOut)) {
  EXPECT(is_float8(x1.dtype) && x2.dtype == ACL_FLOAT8_E4M3FN, "x1 has dtype ",
         dtype_name(x1.dtype), " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected FLOAT8_E4M3FN or FLOAT8_E5M2, and FLOAT8_E4M3FN");
  EXPECT(is_float8(yOut.dtype()) && yScaleOut.dtype() == ACL_FLOAT8_E8M0, "yOut has dtype ",
         dtype_name(yOut.dtype()), " and yScaleOut has dtype ", dtype_name(yScaleOut.dtype()),
         ", expected FLOAT8_E4M3FN or FLOAT8_E5M2, and FLOAT8_E8M0");
  EXPECT(activationType == "gelu_tanh" || activationType == "gelu_erf", "activationType is \"",
         activationType, "\", expected \"gelu_tanh\" or \"gelu_erf\"");
  EXPECT(quantMode == "mx", "quantMode is \"", quantMode, "\", expected \"mx\"");
  EXPECT(roundMode.empty() || roundMode == "rint", "roundMode is \"", roundMode,
         "\", expected \"rint\"");
  EXPECT(scaleAlg == 0 || scaleAlg == 1, "scaleAlg is ", scaleAlg.value(), ", expected 0 or 1");
  EXPECT(dstTypeMax == 0.0 || (scaleAlg == 0 && dstTypeMax >= 6.0 && dstTypeMax <= 12.0),
         "dstTypeMax is ", dstTypeMax.value(),
         ", expected 0, or 6 to 12 with the scaleAlg 0, which does without it");
  const at::Tensor product =
      product_of({x1, x2, x1ScaleOptional, x2Scale, std::nullopt, std::nullopt, std::nullopt,
                  biasOptional, transposeX1, transposeX2, groupSize, at::kFloat, true});
  EXPECT(product.numel() > 0, "x1 or x2 has no elements, expected some");
  quantize_mx(at::gelu(product, activationType == "gelu_erf" ? "none" : "tanh"), scaleAlg, yOut,
              yScaleOut);
}

ACLNN(TransposeQuantBatchMatMul, (Stored<In>, x1), (Stored<In>, x2), (Optional<In>, bias),
      (Stored<In>, x1Scale), (Stored<In>, x2Scale), (int32_t, dtype), (int64_t, groupSize),
      (Ints, permX1), (Ints, permX2), (Ints, permY), (int32_t, batchSplitFactor), (Out, out)) {
  expect_absent("bias", bias);
  const Permutations perm{permX1, permX2, permY};
  check_permutations(perm, batchSplitFactor);
  expect_format("x2", x2);
  out = permuted_product(x1, x2, x1Scale, x2Scale, dtype, groupSize, perm, out);
}
ACLNN(TransposeQuantBatchMatMulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (Optional<In>, bias),
      (Stored<In>, x1Scale), (Stored<In>, x2Scale), (int32_t, dtype), (int64_t, groupSize),
      (Ints, permX1), (Ints, permX2), (Ints, permY), (int32_t, batchSplitFactor), (Out, out)) {
  expect_absent("bias", bias);
  const Permutations perm{permX1, permX2, permY};
  check_permutations(perm, batchSplitFactor);
  expect_blocked_matrix("x2", x2);
  EXPECT(x1Scale.dtype == ACL_FLOAT8_E8M0, "x1Scale has dtype ", dtype_name(x1Scale.dtype),
         ", expected FLOAT8_E8M0");
  out = permuted_product(x1, x2, x1Scale, x2Scale, dtype, groupSize, perm, out);
}

// Two levels of scales: for 512 elements, and for each 32 of them. An INT8 element of x2 may hold
// two elements.
ACLNN(DualLevelQuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (In, x1Level0Scale),
      (In, x2Level0Scale), (Stored<In>, x1Level1Scale), (Stored<In>, x2Level1Scale),
      (Optional<In>, optionalBias), (bool, transposeX1), (bool, transposeX2),
      (int64_t, level0GroupSize), (int64_t, level1GroupSize), (Out, out)) {
  EXPECT(!transposeX1 && transposeX2, "transposeX1 is ", transposeX1.value(),
         " and transposeX2 is ", transposeX2.value(), ", expected false and true");
  EXPECT(level0GroupSize == 512 && level1GroupSize == 32, "level0GroupSize is ",
         level0GroupSize.value(), " and level1GroupSize is ", level1GroupSize.value(),
         ", expected 512 and 32");
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  const bool is_packed = x2.dtype == ACL_INT8;
  EXPECT(x1.dtype == ACL_FLOAT4_E2M1 && (is_packed || x2.dtype == ACL_FLOAT4_E2M1), "x1 has dtype ",
         dtype_name(x1.dtype), " and x2 has dtype ", dtype_name(x2.dtype),
         ", expected FLOAT4_E2M1");
  expect_format("x1", x1);
  expect_blocked_matrix("x2", x2);
  const int64_t m = x1.elements.size(0);
  const int64_t k = x1.elements.size(1);
  const int64_t n = x2.elements.size(0);
  EXPECT(m > 0 && n > 0 && k > 0 && x2.elements.size(1) * (is_packed ? 2 : 1) == k, "x1 has shape ",
         x1.elements.sizes(), " and x2 has shape ", x2.elements.sizes(),
         ", expected (m, k) and (n, ", is_packed ? "k / 2" : "k", ")");
  EXPECT(out->scalar_type() == at::kHalf || out->scalar_type() == at::kBFloat16, "out has dtype ",
         dtype_text(out->scalar_type()), ", expected FLOAT16 or BFLOAT16");
  const int64_t groups = (k + 511) / 512;
  const int64_t pairs = (k + 63) / 64;
  expect_dtype("x1Level0Scale", x1Level0Scale, at::kFloat);
  expect_dtype("x2Level0Scale", x2Level0Scale, at::kFloat);
  expect_shape("x1Level0Scale", x1Level0Scale, {m, groups});
  expect_shape("x2Level0Scale", x2Level0Scale, {groups, n});
  EXPECT(x1Level1Scale.dtype == ACL_FLOAT8_E8M0 && x2Level1Scale.dtype == ACL_FLOAT8_E8M0,
         "x1Level1Scale has dtype ", dtype_name(x1Level1Scale.dtype),
         " and x2Level1Scale has dtype ", dtype_name(x2Level1Scale.dtype),
         ", expected FLOAT8_E8M0");
  expect_shape("x1Level1Scale", x1Level1Scale.elements, {m, pairs, 2});
  expect_shape("x2Level1Scale", x2Level1Scale.elements, {n, pairs, 2});
  const auto scaled = [k](const at::Tensor& x, const at::Tensor& level0,
                          const StoredTensor& level1) {
    return x.to(at::kDouble) * spread(level0, 1, 512, k) *
           spread(level1.elements.flatten(1), 1, 32, k);
  };
  const at::Tensor weight =
      is_packed ? float4_values(unpack_int4(x2.elements.contiguous().view(at::kByte))).view({n, k})
                : x2.elements;
  const at::Tensor product = at::matmul(scaled(x1.elements, x1Level0Scale, x1Level1Scale),
                                        scaled(weight, x2Level0Scale.t(), x2Level1Scale).t());
  if (optionalBias) {
    expect_dtype("optionalBias", *optionalBias, at::kFloat);
    expect_shape("optionalBias", *optionalBias, {n});
  }
  out = optionalBias ? product + *optionalBias : product;
}

// sparseWeight and index are results of aclnnTransSparse4to2Para, stored in blocks even if their
// tensors declare ND.
ACLNN(Sparse4to2QuantMatmulWeightNz, (In, x), (Stored<In>, sparseWeight), (In, index), (In, xScale),
      (In, sparseWeightScale), (Optional<In>, biasOptional), (Out, out)) {
  expect_dims("x", x, 2);
  expect_dims("sparseWeight", sparseWeight.elements, 2);
  expect_dtype("x", x, at::kChar);
  expect_dtype("sparseWeight", sparseWeight.elements, at::kChar);
  expect_dtype("index", index, at::kByte);
  expect_dtype("xScale", xScale, at::kFloat);
  expect_dtype("sparseWeightScale", sparseWeightScale, at::kFloat);
  expect_dtype("out", out, at::kBFloat16);
  const int64_t k = x.size(1);
  const int64_t n = sparseWeight.elements.size(0);
  constexpr int64_t kMost = 65535;
  EXPECT(x.size(0) > 0 && k > 0 && k <= kMost && n > 0, "x has shape ", x.sizes(),
         ", expected elements, and at most ", kMost, " columns");
  const int64_t kept = (k + 7) / 8 * 4;
  expect_shape("sparseWeight", sparseWeight.elements, {n, kept});
  expect_shape("xScale", xScale, {x.size(0)});
  expect_shape("sparseWeightScale", sparseWeightScale, {n});
  expect_format("sparseWeight", sparseWeight, /*or_blocked=*/true);
  const at::Tensor values = is_fractal_nz(sparseWeight.format)
                                ? sparseWeight.elements
                                : from_memory("sparseWeight", sparseWeight.elements, n, kept, 32);
  const at::Tensor codes = from_memory("index", index, n, (kept + 31) / 32 * 8, 8);
  const at::Tensor weight =
      dense_weight(values.contiguous(), codes.narrow(1, 0, kept / 4)).narrow(1, 0, k);
  const at::Tensor sums = exact_product(x, weight.t());
  at::Tensor result = sums.to(at::kDouble) * sparseWeightScale * xScale.unsqueeze(-1);
  if (biasOptional) {
    expect_dtype("biasOptional", *biasOptional, at::kBFloat16);
    expect_shape("biasOptional", *biasOptional, {n});
    result = result + *biasOptional;
  }
  out = result;
}

}  // namespace aclnn_host::quantized_quantized_matmul_variants_rows
