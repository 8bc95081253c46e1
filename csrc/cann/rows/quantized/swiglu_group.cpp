// SwiGLU of groups of rows, with or without quantisation, and gradients. Computed in FP32 and
// rounded once. Rows after the last group are computed with its parameters.

#include "cann/rows/activation/gated_rows.h"
#include "cann/rows/activation/gated_units.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_arguments.h"
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
  const at::Tensor gate = is_clamped ? at::clamp_max(parts.gate, limit) : parts.gate;
  const at::Tensor up = is_clamped ? at::clamp(parts.up, -limit, limit) : parts.up;
  const at::Tensor sigmoid = at::sigmoid(gate);
  at::Tensor of_gate = gradient * up * sigmoid * (1 + gate * (1 - sigmoid));
  at::Tensor of_up = gradient * gate * sigmoid;
  if (is_clamped) {
    of_gate = of_gate.masked_fill(at::lt(parts.gate, limit).logical_not(), 0);
    of_up = of_up.masked_fill(at::lt(parts.up.abs(), limit).logical_not(), 0);
  }
  return at::cat({of_gate, of_up}, -1);
}

struct GroupGradient {
  const at::Tensor &gradient, &x;
  const OptionalTensor &weight, &y, &groups;
  double limit;
  bool masks_weight;  // the weights' gradient is 0 after the groups, too
};
void swiglu_group_gradient(const GroupGradient& in, Output& gradient_out,
                           OptionalOutput& weight_out) {
  const int64_t last = in.x.dim() - 1;
  expect_half("gradY", in.gradient, in.x, last);
  const int64_t rows = rows_before(in.x, last);
  at::Tensor gradient = wide(in.gradient).reshape({rows, in.gradient.size(-1)});
  const at::Tensor unweighted = gradient;
  if (in.weight) {
    expect_dtype("weightOptional", *in.weight, at::kFloat);
    EXPECT(in.weight->numel() == rows, "weightOptional has ", in.weight->numel(),
           " elements, expected ", rows, ", one for each row of x");
    expect_like("yOriginOptional", *in.y, in.gradient);
    gradient = gradient * in.weight->reshape({rows, 1});
  }
  at::Tensor result = swiglu_gradient(gradient, as_matrix(wide(in.x), last), in.limit);
  at::Tensor of_weight;
  if (in.weight) of_weight = (unweighted * wide(*in.y).reshape_as(unweighted)).sum(1);
  if (in.groups) {
    const at::Tensor counts = is_in_groups(*in.groups, rows);
    result = at::where(counts, result, at::zeros_like(result));
    if (in.weight && in.masks_weight) {
      of_weight = at::where(counts.squeeze(1), of_weight, at::zeros_like(of_weight));
    }
  }
  gradient_out = result.reshape(in.x.sizes());
  if (!in.weight) return;
  EXPECT(weight_out, "gradWeightOutOptional is null, expected a tensor as weightOptional is");
  weight_out = of_weight.reshape(in.weight->sizes());
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
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
         ", expected -1 or more than 0");
  const int64_t last = x.dim() - 1;
  expect_half("out", out, x, last);
  Halves parts = halves(as_matrix(wide(x), last), 1, /*gate_is_left=*/true);
  if (clampLimit > 0.0) {
    parts.gate = at::clamp_max(parts.gate, clampLimit.value());
    parts.up = at::clamp(parts.up, -clampLimit.value(), clampLimit.value());
  }
  at::Tensor result = swiglu(parts);
  const int64_t rows = rows_before(x, last);
  if (weightOptional) {
    expect_dtype("weightOptional", *weightOptional, at::kFloat);
    EXPECT(weightOptional->numel() == rows, "weightOptional has ", weightOptional->numel(),
           " elements, expected ", rows, ", one for each row of x");
    result = result * weightOptional->reshape({rows, 1});
  }
  if (groupIndexOptional) {
    result = at::where(is_in_groups(*groupIndexOptional, rows), result, as_matrix(wide(out), last));
  }
  out = result.reshape(out->sizes());
}
ACLNN(SwigluGroupGrad, (Floating<In>, gradY), (Floating<In>, x), (Optional<In>, weightOptional),
      (Optional<In>, yOriginOptional), (Optional<In>, groupIndexOptional), (float, clampLimit),
      (Like<Out>, gradXOut, "x"), (Like<Optional<Out>>, gradWeightOutOptional, "weightOptional")) {
  expect_dims("x", x, 2, 3);
  EXPECT(x.size(-1) > 0, "x has no elements in its last dimension, expected some");
  EXPECT(clampLimit >= 0.0, "clampLimit is ", clampLimit.value(), ", expected 0 or more");
  EXPECT(weightOptional.has_value() == yOriginOptional.has_value(),
         "only one of weightOptional and yOriginOptional is null, expected both or none");
  if (weightOptional) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = 1;
    expect_shape("weightOptional", *weightOptional, shape);
  }
  swiglu_group_gradient({gradY, x, weightOptional, yOriginOptional, groupIndexOptional, clampLimit,
                         /*masks_weight=*/false},
                        gradXOut, gradWeightOutOptional);
}

// quantMode 0 uses blocks of 128 with FLOAT scales, mode 1 blocks of 32 with powers of two; the
// other modes are for HIFLOAT8. Modes 0 and 1 do not write yOriginOut.
ACLNN(SwigluGroupQuant, (Floating<In>, x), (Optional<In>, weightOptional),
      (Optional<In>, groupIndexOptional), (Optional<In>, scaleOptional), (int64_t, dstType),
      (int64_t, quantMode), (int64_t, blockSize), (bool, roundScale), (double, clampLimit),
      (double, dstTypeMax), (bool, outputOrigin), (Stored<Out>, yOut), (Stored<Out>, yScaleOut),
      (SameDtype<Out>, yOriginOut, "x")) {
  static_cast<void>(scaleOptional);
  static_cast<void>(dstTypeMax);
  EXPECT(quantMode == 0 || quantMode == 1, "quantMode is ", quantMode.value(),
         ", expected 0 or 1: the host CANN does not emulate HIFLOAT8");
  const bool is_mx = quantMode == 1;
  expect_dims("x", x, 2, is_mx ? 7 : 8);
  EXPECT(at::isReducedFloatingType(x.scalar_type()), "x has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT16 or BFLOAT16");
  EXPECT(x.numel() > 0 && x.size(-1) % 256 == 0, "x has shape ", x.sizes(),
         ", expected elements, a multiple of 256 in the last dimension");
  const bool is_float4 = yOut.dtype() == ACL_FLOAT4_E2M1;
  expect_type("dstType", dstType, yOut, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  EXPECT(is_mx || !is_float4, "quantMode is 0, expected 1 as dstType is FLOAT4_E2M1");
  const int64_t block = is_mx ? 32 : 128;
  EXPECT(blockSize == 0 || blockSize == block, "blockSize is ", blockSize.value(),
         ", expected 0 or ", block);
  EXPECT(roundScale == true || !is_mx, "roundScale is false, expected true as quantMode is 1");
  EXPECT(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
         ", expected -1 or more than 0");
  EXPECT(outputOrigin == false, "outputOrigin is true, expected false as quantMode is 0 or 1");
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() /= 2;
  expect_values(yOut, shape);
  expect_shape("yOriginOut", yOriginOut, shape);
  const aclDataType of_scale = is_mx ? ACL_FLOAT8_E8M0 : ACL_FLOAT;
  EXPECT(yScaleOut.dtype() == of_scale, "yScaleOut has dtype ", dtype_name(yScaleOut.dtype()),
         ", expected ", dtype_name(of_scale));
  if (groupIndexOptional) {
    expect_dtype("groupIndexOptional", *groupIndexOptional, at::kLong);
    expect_group_list("groupIndexOptional", *groupIndexOptional);
  }
  Halves parts = halves(wide(x), x.dim() - 1, /*gate_is_left=*/true);
  if (clampLimit > 0.0) {
    parts.gate = at::clamp_max(parts.gate, clampLimit.value());
    parts.up = at::clamp(parts.up, -clampLimit.value(), clampLimit.value());
  }
  at::Tensor result = swiglu(parts);
  if (weightOptional) {
    expect_dtype("weightOptional", *weightOptional, at::kFloat);
    std::vector<int64_t> rows = shape;
    rows.back() = 1;
    EXPECT(weightOptional->numel() == c10::multiply_integers(rows), "weightOptional has ",
           weightOptional->numel(), " elements, expected ", c10::multiply_integers(rows),
           ", one for each row of x");
    result = result * weightOptional->reshape(rows);
  }
  if (is_float4) {
    // Computed in the type of x, with the exponent of a block's maximum.
    const at::Tensor narrow = result.to(x.scalar_type());
    const MxRule rule = mx_rule(narrow, "rint", dstType, /*algorithm=*/0, /*largest=*/0, yOut);
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
ACLNN(SwigluGroupQuantGrad, (Floating<In>, gradY), (Floating<In>, x),
      (Optional<In>, weightOptional), (Optional<In>, yOriginOptional),
      (Optional<In>, groupIndexOptional), (double, clampLimit), (Like<Out>, gradXOut, "x"),
      (Like<Optional<Out>>, gradWeightOutOptional, "weightOptional")) {
  expect_dims("x", x, 2, 8);
  EXPECT(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
         ", expected -1 or more than 0");
  EXPECT(yOriginOptional || !weightOptional,
         "yOriginOptional is null, expected a tensor as weightOptional is");
  swiglu_group_gradient({gradY, x, weightOptional, yOriginOptional, groupIndexOptional, clampLimit,
                         /*masks_weight=*/true},
                        gradXOut, gradWeightOutOptional);
}

}  // namespace aclnn_host::quantized_swiglu_group_rows
