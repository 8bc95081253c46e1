// Products of matrices and vectors.

#include "cann/named_ops/operator.h"
#include "cann/named_ops/precision.h"

namespace aclnn_host::named_matmul {

namespace {

at::Tensor transposed(const at::Tensor& x, bool is_transposed) {
  return is_transposed ? x.transpose(-1, -2) : x;
}

at::Tensor product(const at::Tensor& x1, const at::Tensor& x2, bool transpose_x1, bool transpose_x2,
                   const std::optional<at::Tensor>& bias) {
  EXPECT(x1.dim() >= 2 && x2.dim() >= 2, "x1 has shape ", x1.sizes(), " and x2 ", x2.sizes(),
         ", expected matrices");
  const at::Tensor left = transposed(x1, transpose_x1), right = transposed(x2, transpose_x2);
  if (at::isIntegralType(left.scalar_type(), false)) {
    const at::Tensor result = at::matmul(left.to(at::kInt), right.to(at::kInt));
    return bias ? result + *bias : result;
  }
  const MatrixUnits units(cube_math_type_by_name(), left, right);
  const at::Tensor result = at::matmul(units.read(left), units.read(right));
  return units.result(bias ? result + units.widen(*bias) : result);
}

}  // namespace

NAMED_OPERATOR(MatMul, (In, x1), (In, x2), (Optional<In>, bias), (Out, y),
               (Attribute<bool>, transpose_x1), (Attribute<bool>, transpose_x2)) {
  y = product(x1, x2, transpose_x1.value_or(false), transpose_x2.value_or(false), bias);
}
NAMED_OPERATOR(MatMulV2, (In, x1), (In, x2), (Optional<In>, bias), (Out, y),
               (Attribute<bool>, transpose_x1), (Attribute<bool>, transpose_x2),
               (Attribute<int64_t>, offset_x)) {
  EXPECT(offset_x.value_or(0) == 0, "offset_x is ", *offset_x, ", expected 0");
  y = product(x1, x2, transpose_x1.value_or(false), transpose_x2.value_or(false), bias);
}
NAMED_OPERATOR(BatchMatMul, (In, x1), (In, x2), (Optional<In>, addend), (Out, y),
               (Attribute<bool>, adj_x1), (Attribute<bool>, adj_x2), (Only, bias, "0")) {
  y = product(x1, x2, adj_x1.value_or(false), adj_x2.value_or(false), addend);
}
NAMED_OPERATOR(Dot, (In, input_x), (In, input_y), (Out, output)) {
  output = at::dot(wide(input_x), wide(input_y));
}
NAMED_OPERATOR(Trace, (In, x), (Out, y)) {
  y = x.trace();
}

}  // namespace aclnn_host::named_matmul
