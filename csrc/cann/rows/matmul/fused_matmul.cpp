// Matrix products fused with later steps, without rounding in between.

#include "cann/rows/matmul/matrix_units.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::matmul_fused_matmul_rows {

namespace {

bool is_reduced(const at::Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type());
}

void check_fused_types(const at::Tensor& x1, const std::optional<at::Tensor>& x3,
                       const std::string& type, int64_t cube_math_type, const Output& y) {
  const bool is_gelu = type == "gelu_erf" || type == "gelu_tanh";
  const bool is_cast = type == "16cast32";
  EXPECT(is_reduced(x1) || (x1.scalar_type() == at::kFloat && !is_gelu && !is_cast),
         "x1 has dtype ", dtype_text(x1.scalar_type()),
         ", expected FLOAT16, BFLOAT16 or, for the fusedOpType \"\", \"add\", \"mul\" and "
         "\"relu\", FLOAT");
  EXPECT(is_reduced(x1) || cube_math_type == 3, "cubeMathType is ", cube_math_type,
         ", expected 3 for x1 of FLOAT");
  EXPECT(!is_reduced(x1) || cube_math_type != 3,
         "cubeMathType is 3, expected 0, 1, 2 or 4 as x1 has dtype ", x1.scalar_type());
  EXPECT(cube_math_type != 2 || x1.scalar_type() != at::kBFloat16,
         "cubeMathType is 2, expected 0, 1 or 4 as x1 has dtype BFLOAT16");
  EXPECT(cube_math_type != 4 || x3, "cubeMathType is 4, expected 0 to 2 as fusedOpType is \"", type,
         "\"");
  expect_dtype("y", y, is_cast ? at::kFloat : x1.scalar_type());
}

void check_fused_shapes(const at::Tensor& x1, const at::Tensor& x2, const std::string& type) {
  const bool is_any = type.empty() || type == "relu";
  const bool is_binary = type == "add" || type == "mul";
  const int64_t most = is_any ? 6 : is_binary ? 3 : 2;
  expect_dims("x1", x1, 2, most);
  expect_dims("x2", x2, x1.dim());
  const size_t batch = static_cast<size_t>(x1.dim()) - 2;
  EXPECT(x1.sizes().slice(0, batch) == x2.sizes().slice(0, batch) && x1.size(-1) == x2.size(-2),
         "x2 has shape ", x2.sizes(), ", expected the batch of x1 and ", x1.size(-1),
         " rows, as x1 has shape ", x1.sizes());
}

at::Tensor followed(const at::Tensor& product, const std::optional<at::Tensor>& x3,
                    const std::string& type) {
  if (type.empty() || type == "16cast32") return product;
  if (type == "relu") return at::relu(product);
  if (type == "gelu_erf") return at::gelu(product, "none");
  if (type == "gelu_tanh") return at::gelu(product, "tanh");
  return type == "add" ? product + wide(*x3) : product * wide(*x3);
}

// Permutes (B, M, N) to (parts, M, B / parts * N).
at::Tensor joined_batches(const at::Tensor& product, int64_t parts) {
  const int64_t batch = product.size(0);
  return product.reshape({parts, batch / parts, product.size(1), product.size(2)})
      .transpose(1, 2)
      .flatten(2);
}

// `row` is the struct of a function.
template <class Row>
void transposed_product(Row& row, const at::Tensor& x2) {
  const at::Tensor& x1 = row.x1;
  const int64_t parts = row.batchSplitFactor;
  expect_absent("bias", row.bias);
  expect_dims("x1", x1, 3);
  expect_dims("x2", x2, 3);
  const int64_t same[] = {0, 1, 2};
  const int64_t exchanged[] = {1, 0, 2};
  const int64_t transposed[] = {0, 2, 1};
  EXPECT(row.permX1.equals(same) || row.permX1.equals(exchanged), "permX1 is ", row.permX1,
         ", expected [0, 1, 2] or [1, 0, 2]");
  EXPECT(row.permX2.equals(same) || row.permX2.equals(transposed), "permX2 is ", row.permX2,
         ", expected [0, 1, 2] or [0, 2, 1]");
  EXPECT(row.permY.equals(exchanged), "permY is ", row.permY, ", expected [1, 0, 2]");
  const at::Tensor a = x1.permute(row.permX1);
  const at::Tensor b = x2.permute(row.permX2);
  const int64_t batch = a.size(0);
  EXPECT(b.size(0) == batch && b.size(1) == a.size(2), "x2 has shape ", x2.sizes(),
         ", expected a batch of ", batch, " and ", a.size(2), " elements to sum over");
  EXPECT(parts >= 1 && parts <= batch && batch % parts == 0, "batchSplitFactor is ", parts,
         ", expected a divisor of ", batch);
  EXPECT((x1.scalar_type() == at::kBFloat16) == (x2.scalar_type() == at::kBFloat16),
         "x2 has dtype ", x2.scalar_type(), ", expected that of x1 where one is BFLOAT16");
  const MatrixUnits units(row.cubeMathType, x1, x2);
  const at::Tensor product = units.result(at::matmul(units.read(a), units.read(b)));
  if (!row.scale) {
    expect_dtype("out", row.out, c10::promoteTypes(x1.scalar_type(), x2.scalar_type()));
    row.out = parts == 1 ? product.transpose(0, 1) : joined_batches(product, parts);
    return;
  }
  expect_dtype("scale", *row.scale, {at::kLong, at::kUInt64});
  expect_one_of("batchSplitFactor", parts, {1}, " with a scale");
  expect_dtype("x1", x1, at::kHalf);
  expect_dtype("x2", x2, at::kHalf);
  expect_dtype("out", row.out, at::kChar);
  expect_shape("scale", *row.scale, {batch * product.size(2)});
  row.out = quantized(joined_batches(product, 1).transpose(0, 1), *row.scale, std::nullopt);
}

}  // namespace

ACLNN(FusedMatmul, (In, x1), (SameDtype<In>, x2, "x1"), (Optional<In>, bias),
      (SameDtype<Optional<In>>, x3, "x1"), (const char*, fusedOpType), (int8_t, cubeMathType),
      (Out, y)) {
  const std::string& type = fusedOpType;
  const bool is_gelu = type == "gelu_erf" || type == "gelu_tanh";
  const bool is_binary = type == "add" || type == "mul";
  expect_text("fusedOpType", type, {"", "16cast32", "add", "mul", "gelu_erf", "gelu_tanh", "relu"});
  require_given(x3 || !is_binary, "x3 is null, expected a tensor for the fusedOpType \"", type,
                "\"");
  EXPECT(is_binary || !x3, "x3 is given, expected null for the fusedOpType \"", type, "\"");
  EXPECT(!is_gelu || !bias, "bias is given, expected null for the fusedOpType \"", type, "\"");
  check_fused_types(x1, x3, type, cubeMathType, y);
  check_fused_shapes(x1, x2, type);
  const MatrixUnits units(without_fp32_add(cubeMathType), x1, x2);
  at::Tensor product = at::matmul(units.read(x1), units.read(x2));
  if (bias) {
    expect_dtype("bias", *bias, {at::kHalf, at::kBFloat16, at::kFloat});
    const int64_t n = product.size(-1);
    EXPECT(bias->numel() == n && bias->dim() >= 1 && bias->dim() <= 2 && bias->size(-1) == n,
           "bias has shape ", bias->sizes(), ", expected [", n, "] or [1, ", n, "] as x2 has ", n,
           " columns");
    product = product + units.widen(*bias).reshape({n});
  }
  if (x3) {
    const at::IntArrayRef shape = product.sizes();
    const bool is_matrix = x3->sizes() == shape.slice(shape.size() - 2);
    const bool is_batch = x3->dim() == 3 && shape.size() == 3 &&
                          x3->sizes().slice(1) == shape.slice(1) &&
                          (x3->size(0) == shape[0] || x3->size(0) == 1);
    EXPECT(is_matrix || is_batch, "x3 has shape ", x3->sizes(), ", expected ", shape,
           " as y has, or a batch of 1 or none");
  }
  y = followed(product, x3, type);
}

// The result is (M, B, N); (M, 1, B N) if it is quantised; or (parts, M, B / parts N).
ACLNN_STRUCT(TransposeBatchMatMul, (In, x1), (In, x2), (Optional<In>, bias), (Optional<In>, scale),
             (Ints, permX1), (Ints, permX2), (Ints, permY), (int8_t, cubeMathType),
             (int32_t, batchSplitFactor), (Out, out)) {
  transposed_product(*this, x2);
}
ACLNN_STRUCT(TransposeBatchMatMulWeightNz, (In, x1), (Stored<In>, x2), (Optional<In>, bias),
             (Optional<In>, scale), (Ints, permX1), (Ints, permX2), (Ints, permY),
             (int8_t, cubeMathType), (int32_t, batchSplitFactor), (Out, out)) {
  expect_weight("x2", x2);
  EXPECT(x2.dtype != ACL_FLOAT, "x2 has dtype FLOAT, expected FLOAT16 or BFLOAT16");
  transposed_product(*this, x2.elements);
}

}  // namespace aclnn_host::matmul_fused_matmul_rows
