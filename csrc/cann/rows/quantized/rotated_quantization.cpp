// Quantisation of products with small matrices, which spread outliers. The products are rounded to
// the type of x, as the matrix units do.

#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_rotated_quantization_rows {

namespace {

at::Tensor product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& like) {
  return at::matmul(wide(a), wide(b)).to(like.scalar_type());
}

void check_source(const at::Tensor& x) {
  expect_reduced_float("x", x);
  expect_elements("x", x);
}

// Rounds by a mode; "round" rounds ties away from 0.
at::Tensor whole(const at::Tensor& values, const std::string& mode) {
  if (mode == "floor") return at::floor(values);
  if (mode != "round") return values;
  const at::Tensor magnitude = at::floor(values.abs() + 0.5);
  return at::where(values.lt(0), -magnitude, magnitude);
}

// ---- RotateQuant

// Splits x into rows of k elements and multiplies them with the rotation. Each k columns of x may
// have their own rotation.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& rotation) {
  expect_dims("rotation", rotation, 2, 3);
  const int64_t k = rotation.size(-1);
  EXPECT(k > 0 && rotation.size(-2) == k, "rotation has shape ", rotation.sizes(),
         ", expected square matrices");
  const int64_t size = x.size(-1);
  EXPECT(size % k == 0, "x has ", size, " elements in its last dimension, expected a multiple of ",
         k, ", the size of rotation");
  EXPECT(rotation.dim() == 2 || rotation.size(0) == size / k, "rotation has ", rotation.size(0),
         " matrices, expected ", size / k);
  const at::Tensor parts = x.reshape({-1, size / k, 1, k});
  return product(parts, rotation, x).reshape(x.sizes());
}

// Clamps each 32 elements to alpha times their largest magnitude, if alpha is between 0 and 1.
at::Tensor bounded(const at::Tensor& x, const at::Tensor& alpha) {
  expect_tensor("alpha", alpha, at::kBFloat16, {1});
  const at::Tensor factor = wide(alpha).reshape({});
  const at::Tensor values = wide(x).unflatten(-1, {x.size(-1) / kMxBlock, kMxBlock});
  const at::Tensor limit = at::amax(values.abs(), -1, /*keepdim=*/true) * factor;
  const at::Tensor result = at::clamp(values, -limit, limit);
  return at::where((factor > 0) & (factor < 1), result, values).flatten(-2).to(x.scalar_type());
}

void rotate_to_integers(const at::Tensor& x, const at::Tensor& rotation, const std::string& mode,
                        StoredOutput& y, StoredOutput& scale) {
  expect_dims("x", x, 2);
  expect_dims("rotation", rotation, 2);
  const int64_t size = x.size(1);
  EXPECT(size % 8 == 0 && size >= 128 && size <= 16000, "x has ", size,
         " columns, expected a multiple of 8 from 128 to 16000");
  expect_range("the number of columns of rotation", rotation.size(-1), 16, 1024);
  expect_row_scales(scale, {x.size(0)});
  expect_values(y, x.sizes());
  const at::Tensor values = wide(rotated(x, rotation));
  const at::Tensor factor = at::amax(values.abs(), -1, /*keepdim=*/true) / largest_of(y.dtype());
  quantize(y, whole(values / factor, mode));
  scale = factor.squeeze(1);
}

void rotate_to_blocks(const at::Tensor& x, const at::Tensor& rotation,
                      const std::optional<at::Tensor>& alpha, const std::string& mode,
                      int64_t algorithm, double most, StoredOutput& y, StoredOutput& scale) {
  expect_dims("x", x, 1, 7);
  const int64_t k = rotation.dim() > 0 ? rotation.size(-1) : 0;
  expect_one_of("the number of columns of rotation", k, {32, 64, 128});
  const bool is_float4 = y.dtype() == ACL_FLOAT4_E2M1;
  const std::string reason = text_of({" as ", y.name(), " is ", dtype_name(y.dtype())});
  expect_one_of("scaleAlg", algorithm, {0, is_float4 ? 2 : 1}, reason.c_str());
  EXPECT(algorithm == 2 ? most >= 6 && most <= 12 : most == 0, "dstTypeMax is ", most,
         ", expected ", algorithm == 2 ? "6 to 12" : "0", " as scaleAlg is ", algorithm);
  at::Tensor values = rotated(x, rotation);
  if (alpha) values = bounded(values, *alpha);
  const MxRule rule = mx_rule(values, "roundMode", mode, y.dtype(), algorithm, most, y);
  quantize_mx(values, x.dim() - 1, kMxBlock, rule, y, scale);
}

// ---- FlatQuant

// x with a matrix on the left and one on the right of each of its matrices. `row` is the struct of
// a version, here and below.
template <class Version>
at::Tensor flat_product(const Version& row, bool may_lack_right) {
  const at::Tensor &x = row.x, &left = row.kroneckerP1, &right = row.kroneckerP2;
  check_source(x);
  expect_dims("x", x, 3);
  EXPECT(x.size(0) <= 262144 && x.size(1) <= 256 && x.size(2) <= 256, "x has shape ", x.sizes(),
         ", expected at most [262144, 256, 256]");
  expect_shape("kroneckerP1", left, {x.size(1), x.size(1)});
  EXPECT(row.clipRatio > 0 && row.clipRatio <= 1, "clipRatio is ", row.clipRatio,
         ", expected more than 0 and at most 1");
  if (may_lack_right && right.sizes() == at::IntArrayRef{0, 0}) return product(left, x, x);
  expect_shape("kroneckerP2", right, {x.size(2), x.size(2)});
  return product(left, product(x, right, x), x);
}

// Quantises to INT4 with a scale for each matrix of x, or to FLOAT4 with a scale for 32 elements.
template <class Version>
void flat_quant(Version& row, double largest) {
  StoredOutput &out = row.out, &scale = row.quantScale;
  expect_type(out, {ACL_INT4, ACL_INT32, ACL_FLOAT4_E2M1});
  const bool is_float4 = out.dtype() == ACL_FLOAT4_E2M1;
  EXPECT(largest == 0 || (is_float4 && largest >= 6 && largest <= 12), "dstTypeMax is ", largest,
         ", expected 0, or 6 to 12 for FLOAT4_E2M1");
  const at::Tensor result = flat_product(row, is_float4);
  if (is_float4) {
    expect_even_for_float4("x", row.x, out.dtype());
    const at::Tensor rows = result.flatten(1);
    const MxRule rule =
        mx_rule(rows, "roundMode", "rint", out.dtype(), largest == 0 ? 0 : 2, largest, out);
    return quantize_mx(rows, 1, kMxBlock, rule, out, scale);
  }
  expect_values(out, row.x.sizes());
  expect_row_scales(scale, {row.x.size(0)});
  const at::Tensor values = wide(result);
  const at::Tensor factor =
      at::amax(values.abs(), {1, 2}, /*keepdim=*/true) / (7 / row.clipRatio.value());
  quantize(out, values / factor);
  scale = factor.flatten();
}

}  // namespace

// The type of yOut selects the quantisation: integers by rows, or MX in blocks.
ACLNN(RotateQuant, (In, x), (SameDtype<In>, rotation, "x"), (Optional<In>, alpha), (int64_t, axis),
      (char*, roundMode), (int64_t, scaleAlg), (double, dstTypeMax), (bool, trans),
      (Stored<Out>, yOut), (Stored<Out>, scaleOut)) {
  check_source(x);
  EXPECT(axis == -1 || axis == x.dim() - 1, "axis is ", axis.value(), ", expected -1 or ",
         x.dim() - 1);
  EXPECT(trans == false, "trans is true, expected false");
  expect_text("roundMode", roundMode, {"", "rint", "round", "floor"});
  expect_type(yOut, {ACL_INT8, ACL_INT32, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  if (is_floating(yOut.dtype())) {
    return rotate_to_blocks(x, rotation, alpha, roundMode, scaleAlg, dstTypeMax, yOut, scaleOut);
  }
  EXPECT(!alpha, "alpha is a tensor, expected null for INT8 and INT32");
  expect_one_of("scaleAlg", scaleAlg, {0}, " for INT8 and INT32");
  EXPECT(dstTypeMax == 0.0, "dstTypeMax is ", dstTypeMax.value(),
         ", expected 0 for INT8 and INT32");
  rotate_to_integers(x, rotation, roundMode, yOut, scaleOut);
}

ACLNN_STRUCT(FlatQuant, (In, x), (SameDtype<In>, kroneckerP1, "x"),
             (SameDtype<In>, kroneckerP2, "x"), (double, clipRatio), (Stored<Out>, out),
             (Stored<Out>, quantScale)) {
  flat_quant(*this, 0);
}
ACLNN_STRUCT(FlatQuantV2, (In, x), (SameDtype<In>, kroneckerP1, "x"),
             (SameDtype<In>, kroneckerP2, "x"), (double, clipRatio), (double, dstTypeMax),
             (Stored<Out>, out), (Stored<Out>, quantScale)) {
  flat_quant(*this, dstTypeMax);
}
// The groups determine the number of valid matrices of x. The document leaves the results of the
// others undefined; they are computed like the valid ones.
ACLNN_STRUCT(FlatQuantV3, (In, x), (SameDtype<In>, kroneckerP1, "x"),
             (SameDtype<In>, kroneckerP2, "x"), (Optional<In>, groupListOptional),
             (double, clipRatio), (double, dstTypeMax), (int64_t, groupListType),
             (Stored<Out>, out), (Stored<Out>, quantScale)) {
  if (groupListOptional) {
    const at::Tensor& groups = *groupListOptional;
    expect_dtype("groupListOptional", groups, at::kLong);
    expect_range("groupListType", groupListType, 0, 2);
    expect_dims("groupListOptional", groups, groupListType == 2 ? 2 : 1);
    EXPECT(
        groups.size(0) > 0 && groups.size(0) <= 1024 && (groupListType != 2 || groups.size(1) == 2),
        "groupListOptional has shape ", groups.sizes(),
        ", expected 1 to 1024 groups, with groupListType 2 in pairs");
  }
  flat_quant(*this, dstTypeMax);
}

}  // namespace aclnn_host::quantized_rotated_quantization_rows
