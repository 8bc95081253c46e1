// Quantised matrix products that also quantise x or the result, sum over a batch, permute it, or
// take matrices in special layouts.

#include <tuple>

#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantization_modes.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::quantized_quantized_matmul_variants_rows {

namespace {

// ---- permuted batches

void check_permutations(at::IntArrayRef x1, at::IntArrayRef x2, at::IntArrayRef y) {
  const int64_t exchanged[] = {1, 0, 2};
  const int64_t same[] = {0, 1, 2};
  const int64_t transposed[] = {0, 2, 1};
  EXPECT(x1.equals(exchanged), "permX1 is ", x1, ", expected [1, 0, 2]");
  EXPECT(x2.equals(same) || x2.equals(transposed), "permX2 is ", x2,
         ", expected [0, 1, 2] or [0, 2, 1]");
  EXPECT(y.equals(exchanged), "permY is ", y, ", expected [1, 0, 2]");
}

// x1 is (M, B, K), as are its MX scales, and the result is (M, B, N).
// `row` is the struct of a version.
template <class Version>
at::Tensor permuted_product(const Version& row) {
  const auto& [x1, x2, x1_scale, x2_scale] = std::tie(row.x1, row.x2, row.x1Scale, row.x2Scale);
  expect_absent("bias", row.bias);
  check_permutations(row.permX1, row.permX2, row.permY);
  expect_one_of("batchSplitFactor", row.batchSplitFactor, {1});
  expect_dims("x1", x1.elements, 3);
  expect_dims("x2", x2.elements, 3);
  const bool is_mx = x1_scale.dtype == ACL_FLOAT8_E8M0;
  for (const auto& [name, x] : {std::pair("x1", &x1), std::pair("x2", &x2)}) {
    if (is_mx) {
      expect_type(name, *x, {ACL_FLOAT8_E4M3FN});
    } else {
      expect_type(name, *x, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
    }
  }
  EXPECT(row.dtype == 1 || row.dtype == 27, "dtype is ", row.dtype,
         ", expected 1 (FLOAT16) or 27 (BFLOAT16)");
  expect_dtype("out", row.out, row.dtype == 1 ? at::kHalf : at::kBFloat16);
  const bool is_transposed = row.permX2[1] == 2;
  const int64_t k = x1.elements.size(2);
  const int64_t n = x2.elements.size(is_transposed ? 1 : 2);
  StoredTensor scale = x1_scale;
  if (is_mx) {
    EXPECT(k % 64 == 0, "x1 has shape ", x1.elements.sizes(),
           ", expected a multiple of 64 as its last size");
    expect_dims("x1Scale", x1_scale.elements, 4);
    scale.elements = x1_scale.elements.transpose(0, 1);
  } else {
    expect_type("x1Scale", x1_scale, {ACL_FLOAT, ACL_FLOAT8_E8M0});
    expect_type("x2Scale", x2_scale, {ACL_FLOAT}, " as x1Scale is");
    EXPECT(!is_transposed, "permX2 is ", row.permX2, ", expected [0, 1, 2] for scales of FLOAT");
    EXPECT(k == 512 && n == 128, "x1 has ", k, " columns and x2 has ", n,
           ", expected 512 and 128 for scales of FLOAT");
    expect_shape("x1Scale", x1_scale.elements, {x1.elements.size(0)});
    expect_shape("x2Scale", x2_scale.elements, {n});
  }
  const StoredTensor batches{x1.elements.transpose(0, 1), x1.dtype, x1.format};
  EXPECT(batches.elements.size(0) == x2.elements.size(0), "x2 has shape ", x2.elements.sizes(),
         ", expected a batch of ", batches.elements.size(0), " as x1 has");
  return product_of({.x1 = batches,
                     .x2 = x2,
                     .x1_scale = scale,
                     .x2_scale = x2_scale,
                     .transpose_x2 = is_transposed,
                     .group_size = is_mx ? row.groupSize.value() : 0,
                     .out = row.out->scalar_type()})
      .transpose(0, 1);
}

// ---- sparse weights

// Expands a 2:4 sparse weight: `values` has two of every four elements, and `codes` their
// positions, with 2 bits for the first and 2 bits for the second minus 1. Both are (n, ...).
at::Tensor dense_weight(const at::Tensor& values, const at::Tensor& codes) {
  const at::Tensor code = codes.to(at::kLong);
  const auto position = [&](int64_t shift) {
    return code.bitwise_right_shift(shift).bitwise_and(3);
  };
  const at::Tensor second = at::stack({position(2), position(6)}, -1);
  if (has_values(second)) check_bounds("the second position of four in index", second, 3);
  const at::Tensor positions =
      at::stack({position(0), position(2) + 1, position(4) + 4, position(6) + 5}, -1);
  const at::Tensor eights = at::zeros({values.size(0), codes.size(1), 8}, values.options());
  // If both positions are the same, one of the values is 0.
  return eights.scatter_add(-1, positions.clamp_max(7), values.view({values.size(0), -1, 4}))
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

}  // namespace

// x is quantised with a scale for each row, or with a given scale. A weightScale given as bits
// includes x's scale.
ACLNN(QuantMatmulDequant, (In, x), (Stored<In>, weight), (In, weightScale),
      (Refused<In>, biasOptional, "the host CANN does not compute it"),
      (Optional<In>, xScaleOptional),
      (Refused<In>, xOffsetOptional, "the host CANN does not compute it"),
      (Optional<In>, smoothScaleOptional), (char*, xQuantMode), (bool, transposeWeight),
      (Out, out)) {
  expect_dims("x", x, 2);
  expect_dims("weight", weight.elements, 2);
  expect_format("weight", weight, /*or_blocked=*/true);
  expect_dtype("x", x, at::kHalf);
  expect_dtype("weight", weight.elements, at::kChar);
  expect_dtype("out", out, at::kHalf);
  EXPECT(transposeWeight, "transposeWeight is false, expected true");
  const int64_t n = weight.elements.size(0);
  const int64_t k = weight.elements.size(1);
  EXPECT(n > 0 && k > 0 && n % 16 == 0 && k % 16 == 0, "weight has shape ", weight.elements.sizes(),
         ", expected multiples of 16");
  EXPECT(x.size(0) > 0 && x.size(1) == k, "x has shape ", x.sizes(), ", expected (m, ", k,
         ") with m of 1 or more");
  expect_shape("weightScale", weightScale, {n});
  expect_dtype("weightScale", weightScale, {at::kFloat, at::kLong});
  const bool has_bits = holds_bits(weightScale);
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
  EXPECT(!yScale, "yScale is given, expected null");
  EXPECT(!x1Offset, "x1Offset is given, expected null");
  EXPECT(!x2Offset, "x2Offset is given, expected null");
  EXPECT(!yOffset, "yOffset is given, expected null");
  EXPECT(!bias, "bias is given, expected null");
  EXPECT(!transposeX1, "transposeX1 is true, expected false");
  EXPECT(!transposeX2, "transposeX2 is true, expected false");
  EXPECT(!keepDims, "keepDims is true, expected false");
  expect_one_of("groupSize", groupSize, {0});
  EXPECT(dims.size() == 1 && dims[0] == 0, "dims is ", dims, ", expected [0]");
  expect_dims("x1", x1, 3);
  expect_dims("x2", x2.elements, 3);
  expect_dtype("x1", x1, at::kChar);
  expect_dtype("out", out, at::kBFloat16);
  expect_blocked("x2", x2);
  expect_elements("x1", x1);
  expect_elements("x2", x2.elements);
  expect_tensor("x2", x2.elements, at::kChar, {x1.size(0), x1.size(2), x2.elements.size(2)});
  expect_tensor("x1Scale", x1Scale, at::kFloat, {x1.size(0), x1.size(1)});
  expect_tensor("x2Scale", x2Scale, at::kBFloat16, {x2.elements.size(2)});
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
  expect_elements("x1", x1);
  expect_elements("x2", x2);
  const at::Tensor a = transposeX1 ? x1.transpose(-1, -2) : x1;
  const at::Tensor b = transposeX2 ? x2.transpose(-1, -2) : x2;
  EXPECT(b.size(-2) == a.size(-1), "x2 has ", b.size(-2), " elements to sum over, expected ",
         a.size(-1), " as x1 has");
  expect_batches("x2", b, "x1", a);
  at::Tensor sums = at::matmul(wide(a), wide(b));
  const int64_t n = sums.size(-1);
  if (bias) {
    expect_tensor("bias", *bias, at::kHalf, {n});
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
  expect_type("x1", x1, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_type("x2", x2, {ACL_FLOAT8_E4M3FN});
  expect_type(yOut, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_type(yScaleOut, {ACL_FLOAT8_E8M0});
  expect_text("activationType", activationType, {"gelu_tanh", "gelu_erf"});
  expect_text("quantMode", quantMode, {"mx"});
  expect_text("roundMode", roundMode, {"", "rint"});
  expect_one_of("scaleAlg", scaleAlg, {0, 1});
  EXPECT(scaleAlg == 0 || dstTypeMax == 0.0, "dstTypeMax is ", dstTypeMax.value(),
         ", expected 0 as scaleAlg is 1");
  EXPECT(dstTypeMax == 0.0 || (dstTypeMax >= 6.0 && dstTypeMax <= 12.0), "dstTypeMax is ",
         dstTypeMax.value(), ", expected 0 or 6 to 12 as scaleAlg is 0");
  const at::Tensor product =
      product_of({.x1 = x1,
                  .x2 = x2,
                  .x1_scale = x1ScaleOptional,
                  .x2_scale = x2Scale,
                  .bias = biasOptional,
                  .transpose_x1 = transposeX1,
                  .transpose_x2 = transposeX2,
                  .group_size = groupSize,
                  .out = at::kFloat,
                  .is_blocked = true,
                  .names = {.x1_scale = "x1ScaleOptional", .bias = "biasOptional"}});
  expect_elements("x1", x1.elements);
  expect_elements("x2", x2.elements);
  const at::Tensor activated =
      at::gelu(product, activationType == "gelu_erf" ? "none" : "tanh").to(at::kFloat);
  const MxRule rule = mx_rule(activated, "roundMode", roundMode, yOut.dtype(), scaleAlg, 0, yOut);
  quantize_mx(activated, activated.dim() - 1, kMxBlock, rule, yOut, yScaleOut);
}

ACLNN_STRUCT(TransposeQuantBatchMatMul, (Stored<In>, x1), (Stored<In>, x2), (Optional<In>, bias),
             (Stored<In>, x1Scale), (Stored<In>, x2Scale), (int32_t, dtype), (int64_t, groupSize),
             (Ints, permX1), (Ints, permX2), (Ints, permY), (int32_t, batchSplitFactor),
             (Out, out)) {
  expect_format("x2", x2);
  out = permuted_product(*this);
}
ACLNN_STRUCT(TransposeQuantBatchMatMulWeightNz, (Stored<In>, x1), (Stored<In>, x2),
             (Optional<In>, bias), (Stored<In>, x1Scale), (Stored<In>, x2Scale), (int32_t, dtype),
             (int64_t, groupSize), (Ints, permX1), (Ints, permX2), (Ints, permY),
             (int32_t, batchSplitFactor), (Out, out)) {
  expect_blocked_matrix("x2", x2);
  expect_type("x1Scale", x1Scale, {ACL_FLOAT8_E8M0});
  out = permuted_product(*this);
}

// Two levels of scales: for 512 elements, and for each 32 of them. An INT8 element of x2 may hold
// two elements.
ACLNN(DualLevelQuantMatmulWeightNz, (Stored<In>, x1), (Stored<In>, x2), (In, x1Level0Scale),
      (In, x2Level0Scale), (Stored<In>, x1Level1Scale), (Stored<In>, x2Level1Scale),
      (Optional<In>, optionalBias), (bool, transposeX1), (bool, transposeX2),
      (int64_t, level0GroupSize), (int64_t, level1GroupSize), (Out, out)) {
  EXPECT(!transposeX1 && transposeX2, "transposeX1 is ", transposeX1, " and transposeX2 is ",
         transposeX2, ", expected false and true");
  EXPECT(level0GroupSize == 512 && level1GroupSize == 32, "level0GroupSize is ",
         level0GroupSize.value(), " and level1GroupSize is ", level1GroupSize.value(),
         ", expected 512 and 32");
  expect_dims("x1", x1.elements, 2);
  expect_dims("x2", x2.elements, 2);
  const bool is_packed = x2.dtype == ACL_INT8;
  expect_type("x1", x1, {ACL_FLOAT4_E2M1});
  expect_type("x2", x2, {ACL_FLOAT4_E2M1, ACL_INT8});
  expect_format("x1", x1);
  expect_blocked_matrix("x2", x2);
  const int64_t m = x1.elements.size(0);
  const int64_t k = x1.elements.size(1);
  const int64_t n = x2.elements.size(0);
  EXPECT(m > 0 && n > 0 && k > 0 && x2.elements.size(1) * (is_packed ? 2 : 1) == k, "x1 has shape ",
         x1.elements.sizes(), " and x2 has shape ", x2.elements.sizes(),
         ", expected (m, k) and (n, ", is_packed ? "k / 2" : "k", ")");
  expect_reduced_float("out", out);
  const int64_t groups = (k + 511) / 512;
  const int64_t pairs = (k + 63) / 64;
  expect_tensor("x1Level0Scale", x1Level0Scale, at::kFloat, {m, groups});
  expect_tensor("x2Level0Scale", x2Level0Scale, at::kFloat, {groups, n});
  expect_type("x1Level1Scale", x1Level1Scale, {ACL_FLOAT8_E8M0});
  expect_type("x2Level1Scale", x2Level1Scale, {ACL_FLOAT8_E8M0});
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
    expect_tensor("optionalBias", *optionalBias, at::kFloat, {n});
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
  expect_dtype("index", index, at::kByte);
  expect_dtype("out", out, at::kBFloat16);
  const int64_t k = x.size(1);
  const int64_t n = sparseWeight.elements.size(0);
  constexpr int64_t kMost = 65535;
  EXPECT(x.size(0) > 0 && k > 0 && k <= kMost && n > 0, "x has shape ", x.sizes(),
         ", expected elements, and at most ", kMost, " columns");
  const int64_t kept = (k + 7) / 8 * 4;
  expect_tensor("sparseWeight", sparseWeight.elements, at::kChar, {n, kept});
  expect_tensor("xScale", xScale, at::kFloat, {x.size(0)});
  expect_tensor("sparseWeightScale", sparseWeightScale, at::kFloat, {n});
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
    expect_tensor("biasOptional", *biasOptional, at::kBFloat16, {n});
    result = result + *biasOptional;
  }
  out = result;
}

}  // namespace aclnn_host::quantized_quantized_matmul_variants_rows
