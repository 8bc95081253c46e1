// Activations whose result is quantised. All is computed in FP32. Where groups are given, rows
// after the last group are computed as its rows are.

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/frexp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ldexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_arguments.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_activation_rows {

namespace {

using Optional = std::optional<at::Tensor>;

// ---- SwiGluQuant

struct SwiGlu {
  const at::Tensor& x;
  const Optional &smooth, &offsets, &groups;
  bool gate_is_left, is_dynamic, counts;
};

// A parameter for each group, or for each of its columns. Without groups it is the first.
at::Tensor of_group(const char* name, const at::Tensor& tensor, const Optional& group,
                    int64_t groups, int64_t size) {
  expect_dtype(name, tensor, at::kFloat);
  expect_dims(name, tensor, 1, 2);
  EXPECT(tensor.size(0) > 0 && (!group || tensor.size(0) == groups) &&
             (tensor.dim() == 1 || tensor.size(1) == size),
         name, " has shape ", tensor.sizes(), ", expected [groups] or [groups, ", size, "]");
  const at::Tensor matrix = tensor.dim() == 1 ? tensor.unsqueeze(1) : tensor;
  return group ? matrix.index_select(0, *group) : matrix.narrow(0, 0, 1);
}

void swi_glu_quant(const SwiGlu& in, StoredOutput& y, Output& scale_out) {
  expect_dims("x", in.x, 2, 8);
  EXPECT(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  EXPECT(in.x.size(-1) <= 8192, "x has ", in.x.size(-1),
         " elements in its last dimension, expected at most 8192");
  const int64_t size = in.x.size(-1) / 2;
  const int64_t count = rows_before(in.x, in.x.dim() - 1);
  std::vector<int64_t> shape = in.x.sizes().vec();
  shape.back() = size;
  expect_values(y, shape);
  expect_row_scales(scale_out, leading(in.x));
  at::Tensor result =
      swiglu(halves(wide(in.x).reshape({count, in.x.size(-1)}), 1, in.gate_is_left));
  Optional group;
  if (in.groups) {
    expect_dtype("groupIndexOptional", *in.groups, at::kInt);
    expect_group_list("groupIndexOptional", *in.groups);
    EXPECT(in.groups->size(0) <= count, "groupIndexOptional has ", in.groups->size(0),
           " elements, expected at most ", count, ", the rows of x");
    group = group_of_rows(in.counts ? in.groups->cumsum(0) : *in.groups, count);
  }
  const int64_t groups = in.groups ? in.groups->size(0) : 1;
  EXPECT(in.smooth || in.is_dynamic,
         "smoothScalesOptional is null, expected a tensor in static quantisation");
  if (in.smooth) {
    result = result * of_group("smoothScalesOptional", *in.smooth, group, groups, size);
  }
  if (!in.is_dynamic) {
    if (in.offsets) {
      expect_shape("offsetsOptional", *in.offsets, in.smooth->sizes());
      result = result + of_group("offsetsOptional", *in.offsets, group, groups, size);
    }
    quantize(y, result.reshape(shape));
    return;
  }
  // The scale is what the values are multiplied by, not what they are divided by as elsewhere.
  const at::Tensor scale =
      at::amax(result.abs(), 1, /*keepdim=*/true).reciprocal() * largest_of(y.dtype());
  quantize(y, (result * scale).reshape(shape));
  scale_out = scale.reshape(leading(in.x));
}

// ---- SwigluGroupQuant

// The least power of two that is not less than x.
at::Tensor power_above(const at::Tensor& x) {
  const auto [mantissa, exponent] = at::frexp(x);
  const at::Tensor is_power = mantissa.eq(0.5);
  return at::ldexp(at::ones_like(x), exponent - is_power.to(at::kInt));
}

// Blocks of the last dimension, whose scale is their largest finite magnitude, at least 1e-4, by
// the largest number of FLOAT8.
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

ACLNN(GeluQuant, (FloatIn, self), (OptionalIn, inputScaleOptional),
      (OptionalIn, inputOffsetOptional), (const char*, approximate), (const char*, quantMode),
      (const char*, roundMode), (int64_t, dstType), (StoredOut, y),
      (OptionalOut, outScaleOptional)) {
  expect_mode("quantMode", quantMode);
  const bool is_static = quantMode == "static";
  expect_dims("self", self, is_static ? 1 : 2, 8);
  EXPECT(self.numel() > 0, "self has shape ", self.sizes(), ", expected elements");
  EXPECT(approximate == "none" || approximate == "tanh", "approximate is \"", approximate,
         "\", expected \"none\" or \"tanh\"");
  EXPECT(roundMode == "rint", "roundMode is \"", roundMode, "\", expected \"rint\"");
  expect_type("dstType", dstType, y, {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_values(y, self.sizes());
  require_given(inputScaleOptional || (!is_static && !inputOffsetOptional),
                "inputScaleOptional is null, expected a tensor in static quantisation and beside "
                "inputOffsetOptional");
  at::Tensor result = at::gelu(wide(self), approximate);
  if (inputScaleOptional) {
    const at::Tensor& scale = *inputScaleOptional;
    if (scale.scalar_type() != at::kFloat) expect_dtype("inputScaleOptional", scale, self);
    EXPECT(scale.dim() == 1 && (scale.size(0) == 1 || scale.size(0) == self.size(-1)),
           "inputScaleOptional has shape ", scale.sizes(), ", expected 1 or ", self.size(-1),
           " elements");
    result = result * wide(scale);
  }
  if (inputOffsetOptional) {
    expect_like("inputOffsetOptional", *inputOffsetOptional, *inputScaleOptional);
  }
  if (is_static) {
    EXPECT(!outScaleOptional,
           "outScaleOptional is a tensor, expected null as quantMode is \"static\"");
    if (inputOffsetOptional) result = result + wide(*inputOffsetOptional);
    return quantize(y, result);
  }
  require_given(static_cast<bool>(outScaleOptional),
                "outScaleOptional is null, expected a tensor as quantMode is \"dynamic\"");
  expect_row_scales(*outScaleOptional, leading(self));
  const auto scale = quantize_rows(y, result);
  if (scale) outScaleOptional = scale->squeeze(-1);
}

ACLNN(SwiGluQuant, (FloatIn, x), (OptionalIn, smoothScalesOptional), (OptionalIn, offsetsOptional),
      (OptionalIn, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (StoredOut, yOut), (Out, scaleOut)) {
  EXPECT(smoothScalesOptional && groupIndexOptional,
         "smoothScalesOptional or groupIndexOptional is null, expected tensors");
  expect_quantized(yOut, {ACL_INT8});
  swi_glu_quant({x, smoothScalesOptional, offsetsOptional, groupIndexOptional, activateLeft,
                 is_dynamic(quantModeOptional, "dynamic"), /*counts=*/false},
                yOut, scaleOut);
}
ACLNN(SwiGluQuantV2, (FloatIn, x), (OptionalIn, smoothScalesOptional),
      (OptionalIn, offsetsOptional), (OptionalIn, groupIndexOptional), (bool, activateLeft),
      (char*, quantModeOptional), (int64_t, groupListType), (int64_t, dstType), (StoredOut, yOut),
      (Out, scaleOut)) {
  EXPECT(groupListType == 0 || groupListType == 1, "groupListType is ", groupListType.value(),
         ", expected 0 or 1");
  expect_type("dstType", dstType, yOut, {ACL_INT8, ACL_INT4});
  swi_glu_quant({x, smoothScalesOptional, offsetsOptional, groupIndexOptional, activateLeft,
                 is_dynamic(quantModeOptional, "dynamic"), groupListType == 1},
                yOut, scaleOut);
}

// quantMode is 0, blocks of 128 with scales in FLOAT, or 1, of 32 with powers of two; the others
// are for HIFLOAT8. yOriginOut is not written in these.
ACLNN(SwigluGroupQuant, (FloatIn, x), (OptionalIn, weightOptional),
      (OptionalIn, groupIndexOptional), (OptionalIn, scaleOptional), (int64_t, dstType),
      (int64_t, quantMode), (int64_t, blockSize), (bool, roundScale), (double, clampLimit),
      (double, dstTypeMax), (bool, outputOrigin), (StoredOut, yOut), (StoredOut, yScaleOut),
      (Out, yOriginOut)) {
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
  expect_dtype(yOriginOut, x);
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
    // In the type of x, and by the exponent of a block's maximum.
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

}  // namespace aclnn_host::quantized_quantized_activation_rows
