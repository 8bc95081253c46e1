// Matrix products followed by SwiGLU: the activated first half of the columns times the second
// half.

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/matmul/matrix_units.h"
#include "cann/rows/row.h"

namespace aclnn_host::matmul_gated_matmul_rows {

// Deviation of SwigluGatedMlp: Results between the steps stay in FLOAT; devices round them to the
// dtype of x.
ACLNN(SwigluGatedMlp, (In, x), (SameDtype<In>, gateUpWeight, "x"), (SameDtype<In>, downWeight, "x"),
      (int64_t, cubeMathType), (SameDtype<Out>, y, "x")) {
  constexpr int64_t kMostDims = 8;
  expect_dtype("x", x, {at::kHalf, at::kBFloat16, at::kFloat});
  expect_dims("x", x, 2, kMostDims);
  expect_dims("gateUpWeight", gateUpWeight, 2);
  expect_dims("downWeight", downWeight, 2);
  const int64_t between = gateUpWeight.size(1) / 2;
  expect_shape("gateUpWeight", gateUpWeight, {x.size(-1), 2 * between});
  expect_shape("downWeight", downWeight, {between, downWeight.size(1)});
  expect_elements("gateUpWeight", gateUpWeight);
  expect_elements("downWeight", downWeight);
  expect_range("cubeMathType", cubeMathType, 0, 1);
  const MatrixUnits units(cubeMathType, x, gateUpWeight);
  const at::Tensor product = at::matmul(units.read(x), units.read(gateUpWeight));
  const at::Tensor hidden = swiglu(halves(product, -1, /*gate_is_left=*/true));
  const bool may_lose_bits = x.scalar_type() == at::kFloat;
  y = at::matmul(may_lose_bits ? units.read(hidden) : hidden, units.read(downWeight));
}

ACLNN(MatmulSwiglu, (In, x), (SameDtype<In>, weight, "x"), (In, bias), (bool, transposeWeight),
      (SameDtype<Out>, out, "x")) {
  expect_dtype("x", x, {at::kHalf, at::kBFloat16, at::kFloat});
  expect_dims("x", x, 2);
  expect_dims("weight", weight, 2);
  const at::Tensor right = transposeWeight ? weight.t() : weight;
  const int64_t columns = right.size(1);
  EXPECT(right.size(0) == x.size(1) && columns % 2 == 0, "weight has shape ", weight.sizes(),
         ", expected ", x.size(1), " rows, as x has columns, and an even number of columns",
         transposeWeight ? " after its transposition" : "");
  expect_float("bias", bias, {columns});
  const at::Tensor product = at::addmm(bias, wide(x), wide(right));
  out = swiglu(halves(product, -1, /*gate_is_left=*/true));
}

}  // namespace aclnn_host::matmul_gated_matmul_rows
