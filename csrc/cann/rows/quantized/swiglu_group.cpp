// SwiGLU of groups of rows, with or without quantisation, and gradients. Computed in FP32 and
// rounded once. Rows after the last group are computed with its parameters.

#include "cann/rows/activation/gated_rows.h"
#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_swiglu_group_rows {

namespace {

// The gradient of silu(gate) * up for the clamped halves of x; a limit of 0 disables clamping.
// Elements at the limits have no gradient.
at::Tensor swiglu_gradient(const at::Tensor& gradient, const at::Tensor& x, double limit) {
  const Halves parts = halves(x, x.dim() - 1, /*gate_is_left=*/true);
  const bool is_clamped = limit > 0;
  const auto [gate, up] = is_clamped ? clamped(parts, limit) : parts;
  at::Tensor gate_gradient = at::silu_backward(gradient * up, gate);
  at::Tensor up_gradient = gradient * at::silu(gate);
  if (is_clamped) {
    gate_gradient = gate_gradient.masked_fill(at::lt(parts.gate, limit).logical_not(), 0);
    up_gradient = up_gradient.masked_fill(at::lt(parts.up.abs(), limit).logical_not(), 0);
  }
  return at::cat({gate_gradient, up_gradient}, -1);
}

// SwiGLU of the halves of x, times the weights of the rows. A limit of -1 disables clamping.
at::Tensor weighted_swiglu(const at::Tensor& x, double limit, const OptionalTensor& weight) {
  const Halves parts = halves(wide(x), x.dim() - 1, /*gate_is_left=*/true);
  const at::Tensor result = swiglu(limit > 0 ? clamped(parts, limit) : parts);
  if (!weight) return result;
  std::vector<int64_t> rows = leading(x).vec();
  rows.push_back(1);
  expect_dtype("weightOptional", *weight, at::kFloat);
  EXPECT(weight->numel() == c10::multiply_integers(rows), "weightOptional has ", weight->numel(),
         " elements, expected ", c10::multiply_integers(rows), ", one for each row of x");
  return result * weight->reshape(rows);
}

void expect_limit(double limit) {
  EXPECT(limit == -1 || limit > 0, "clampLimit is ", limit, ", expected -1 or more than 0");
}

// Writes the gradients. With `masks_weight` the weights' gradient is 0 after the groups, too. `row`
// is the struct of a function.
template <class Row>
void swiglu_group_gradient(Row& row, bool masks_weight) {
  const at::Tensor& x = row.x;
  const OptionalTensor& weight = row.weightOptional;
  const int64_t last = x.dim() - 1;
  expect_halved("gradY", row.gradY, x, last);
  const int64_t rows = rows_before(x, last);
  const at::Tensor unweighted = wide(row.gradY).reshape({rows, row.gradY.size(-1)});
  at::Tensor gradient = unweighted;
  if (weight) {
    expect_dtype("weightOptional", *weight, at::kFloat);
    EXPECT(weight->numel() == rows, "weightOptional has ", weight->numel(), " elements, expected ",
           rows, ", one for each row of x");
    expect_like("yOriginOptional", *row.yOriginOptional, row.gradY);
    EXPECT(row.gradWeightOutOptional,
           "gradWeightOutOptional is null, expected a tensor as weightOptional is");
    gradient = gradient * weight->reshape({rows, 1});
  }
  at::Tensor result = swiglu_gradient(gradient, as_matrix(wide(x), last), row.clampLimit);
  at::Tensor weight_gradient;
  if (weight) {
    weight_gradient =
        (unweighted * wide(*row.yOriginOptional).reshape_as(unweighted)).sum(1, /*keepdim=*/true);
  }
  if (row.groupIndexOptional) {
    const at::Tensor after = is_in_groups(*row.groupIndexOptional, rows).logical_not();
    result = result.masked_fill(after, 0);
    if (weight && masks_weight) weight_gradient = weight_gradient.masked_fill(after, 0);
  }
  row.gradXOut = result.reshape(x.sizes());
  if (weight) row.gradWeightOutOptional = weight_gradient.reshape(weight->sizes());
}

// ---- SwigluGroupQuant

// The least power of two that is at least x.
at::Tensor power_above(const at::Tensor& x) {
  const auto [mantissa, exponent] = at::frexp(x);
  const at::Tensor is_power = mantissa.eq(0.5);
  return at::ldexp(at::ones_like(x), exponent - is_power.to(at::kInt));
}

// Blocks of the last dimension. The scale is their largest finite magnitude, at least 1e-4, divided
// by the largest number of FLOAT8.
struct Blocks {
  at::Tensor values;  // [..., blocks, block]
  at::Tensor scale;   // [..., blocks, 1]
  at::Tensor factor;  // 1 / scale, rounded once
};
Blocks blocks_of(const at::Tensor& x, int64_t size, bool skips_infinite, double most) {
  const at::Tensor values = x.unflatten(-1, {x.size(-1) / size, size});
  at::Tensor magnitude = values.abs();
  if (skips_infinite) magnitude = at::where(magnitude.isfinite(), magnitude, 0.0);
  const at::Tensor maximum = at::clamp_min(at::amax(magnitude, -1, /*keepdim=*/true), 1e-4);
  return {values, maximum / most, at::full_like(maximum, most) / maximum};
}

}  // namespace

// Only the rows of the groups are written.
ACLNN(SwigluGroup, (Floating<In>, x), (Optional<In>, weightOptional),
      (Optional<In>, groupIndexOptional), (double, clampLimit), (Out, out)) {
  expect_dims("x", x, 1, 8);
  expect_elements("x", x);
  expect_limit(clampLimit);
  const int64_t last = x.dim() - 1;
  expect_halved("out", out, x, last);
  at::Tensor result = as_matrix(weighted_swiglu(x, clampLimit, weightOptional), last);
  if (groupIndexOptional) {
    result = at::where(is_in_groups(*groupIndexOptional, rows_before(x, last)), result,
                       as_matrix(wide(out), last));
  }
  out = result.reshape(out->sizes());
}
ACLNN_STRUCT(SwigluGroupGrad, (Floating<In>, gradY), (Floating<In>, x),
             (Optional<In>, weightOptional), (Optional<In>, yOriginOptional),
             (Optional<In>, groupIndexOptional), (float, clampLimit), (Like<Out>, gradXOut, "x"),
             (Like<Optional<Out>>, gradWeightOutOptional, "weightOptional")) {
  expect_dims("x", x, 2, 3);
  EXPECT(x.size(-1) > 0, "x has no elements in its last dimension, expected some");
  EXPECT(clampLimit >= 0.0, "clampLimit is ", clampLimit.value(), ", expected 0 or more");
  expect_both_or_none("weightOptional", weightOptional.has_value(), "yOriginOptional",
                      yOriginOptional.has_value());
  if (weightOptional) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = 1;
    expect_shape("weightOptional", *weightOptional, shape);
  }
  swiglu_group_gradient(*this, /*masks_weight=*/false);
}

// quantMode 0 uses blocks of 128 with FLOAT scales, mode 1 blocks of 32 with powers of two; the
// other modes are for HIFLOAT8. Modes 0 and 1 do not write yOriginOut.
ACLNN(SwigluGroupQuant, (Floating<In>, x), (Optional<In>, weightOptional),
      (Optional<In>, groupIndexOptional),
      (Unused<Optional<In>>, scaleOptional, "is of the modes of HIFLOAT8"), (int64_t, dstType),
      (int64_t, quantMode), (int64_t, blockSize), (bool, roundScale), (double, clampLimit),
      (Unused<double>, dstTypeMax, "is of the modes of HIFLOAT8"), (bool, outputOrigin),
      (Stored<Out>, yOut), (Stored<Out>, yScaleOut), (SameDtype<Out>, yOriginOut, "x")) {
  expect_one_of("quantMode", quantMode, {0, 1}, ": the host CANN does not emulate HIFLOAT8");
  const bool is_mx = quantMode == 1;
  expect_dims("x", x, 2, is_mx ? 7 : 8);
  expect_reduced_float("x", x);
  EXPECT(x.numel() > 0 && x.size(-1) % 256 == 0, "x has shape ", x.sizes(),
         ", expected elements, a multiple of 256 in the last dimension");
  const bool is_float4 = yOut.dtype() == ACL_FLOAT4_E2M1;
  expect_type("dstType", dstType, yOut, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  EXPECT(is_mx || !is_float4, "quantMode is 0, expected 1 as dstType is FLOAT4_E2M1");
  const int64_t block = is_mx ? 32 : 128;
  expect_one_of("blockSize", blockSize, {0, block});
  EXPECT(roundScale == true || !is_mx, "roundScale is false, expected true as quantMode is 1");
  expect_limit(clampLimit);
  EXPECT(outputOrigin == false, "outputOrigin is true, expected false as quantMode is 0 or 1");
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() /= 2;
  expect_values(yOut, shape);
  expect_shape("yOriginOut", yOriginOut, shape);
  expect_type(yScaleOut, {is_mx ? ACL_FLOAT8_E8M0 : ACL_FLOAT});
  if (groupIndexOptional) {
    expect_dtype("groupIndexOptional", *groupIndexOptional, at::kLong);
    expect_group_list("groupIndexOptional", *groupIndexOptional);
  }
  const at::Tensor result = weighted_swiglu(x, clampLimit, weightOptional);
  if (is_float4) {
    // Computed in the type of x, with the exponent of a block's maximum.
    const at::Tensor narrow = result.to(x.scalar_type());
    const MxRule rule =
        mx_rule(narrow, "roundMode", "rint", dstType, /*algorithm=*/0, /*largest=*/0, yOut);
    return quantize_mx(narrow, narrow.dim() - 1, kMxBlock, rule, yOut, yScaleOut);
  }
  const Blocks blocks =
      blocks_of(result, block, /*skips_infinite=*/!is_mx, largest_of(yOut.dtype()));
  const at::Tensor scale = roundScale ? power_above(blocks.scale) : blocks.scale;
  at::Tensor values = blocks.values * (roundScale ? scale.reciprocal() : blocks.factor);
  if (!is_mx) values = at::where(values.isfinite(), values, blocks.values);
  shape.back() /= block;
  std::vector<int64_t> scale_shape = shape;
  if (is_mx) {
    scale_shape.back() /= 2;
    scale_shape.push_back(2);
  }
  expect_shape("yScaleOut", yScaleOut, scale_shape);
  quantize(yOut, values.flatten(-2));
  yScaleOut = scale.reshape(scale_shape);
}
ACLNN_STRUCT(SwigluGroupQuantGrad, (Floating<In>, gradY), (Floating<In>, x),
             (Optional<In>, weightOptional), (Optional<In>, yOriginOptional),
             (Optional<In>, groupIndexOptional), (double, clampLimit), (Like<Out>, gradXOut, "x"),
             (Like<Optional<Out>>, gradWeightOutOptional, "weightOptional")) {
  expect_dims("x", x, 2, 8);
  expect_limit(clampLimit);
  EXPECT(yOriginOptional || !weightOptional,
         "yOriginOptional is null, expected a tensor as weightOptional is");
  swiglu_group_gradient(*this, /*masks_weight=*/true);
}

}  // namespace aclnn_host::quantized_swiglu_group_rows
