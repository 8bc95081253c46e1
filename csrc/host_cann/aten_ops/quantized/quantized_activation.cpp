// Activations whose result is quantised, and INT32 that is scaled back before them. All is computed
// in FP32. Where groups are given, rows after the last group are computed as its rows are.

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/frexp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ldexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/quantized/gated_units.h"
#include "host_cann/aten_ops/quantized/quantized_values.h"
#include "host_cann/aten_ops/quantized/row_groups.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

using Optional = std::optional<at::Tensor>;

at::IntArrayRef leading(const at::Tensor& x) {
  return x.sizes().slice(0, static_cast<size_t>(x.dim()) - 1);
}

void expect_mode(const char* name, const std::string& mode) {
  TORCH_CHECK(mode == "static" || mode == "dynamic", name, " is \"", mode,
              "\", expected \"static\" or \"dynamic\"");
}
void expect_type(const char* name, int64_t dtype, const StoredOutput& y,
                 std::initializer_list<aclDataType> allowed) {
  expect_quantized(y, allowed);
  TORCH_CHECK(dtype == int64_t{y.dtype()}, name, " is ", dtype, ", expected ", int64_t{y.dtype()},
              " as ", y.name(), " is ", dtype_name(y.dtype()));
}
void expect_rint(const char* name, const std::string& mode) {
  TORCH_CHECK(mode.empty() || mode == "rint", name, " is \"", mode, "\", expected \"rint\"");
}
void expect_row_scales(const Output& scale, at::IntArrayRef shape) {
  expect_dtype(scale.name(), scale, at::kFloat);
  expect_shape(scale.name(), scale, shape);
}

// ---- parameters of groups

// Where each row finds its parameters; without groups, all find the first.
struct Rows {
  Optional groups;  // of the rows
};

// A parameter for the rows of x: one number, one for each of `size` columns, or one of these for
// each group.
at::Tensor parameter(const char* name, const at::Tensor& tensor, const Rows& rows, int64_t size,
                     bool may_be_number) {
  expect_dims(name, tensor, 1, 2);
  const bool is_row = tensor.size(-1) == size && (tensor.dim() == 1 || tensor.size(0) == 1);
  if (tensor.dim() == 1 && !rows.groups) {
    TORCH_CHECK(is_row || (may_be_number && tensor.size(0) == 1), name, " has shape ",
                tensor.sizes(), ", expected ", may_be_number ? "[1] or " : "", "[", size, "]");
    return wide(tensor);
  }
  if (!rows.groups) {
    TORCH_CHECK(is_row, name, " has shape ", tensor.sizes(), ", expected [", size, "]");
    return wide(tensor).reshape({size});
  }
  if (may_be_number && tensor.numel() == 1) return wide(tensor).reshape({1});
  TORCH_CHECK(tensor.dim() == 2 && tensor.size(1) == size && tensor.size(0) > 0, name,
              " has shape ", tensor.sizes(), ", expected [groups, ", size, "]");
  if (!is_rehearsed()) check_bounds("the group of a row", *rows.groups, tensor.size(0));
  return wide(tensor).index_select(0, rows.groups->clamp(0, tensor.size(0) - 1));
}

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
  TORCH_CHECK(tensor.size(0) > 0 && (!group || tensor.size(0) == groups) &&
                  (tensor.dim() == 1 || tensor.size(1) == size),
              name, " has shape ", tensor.sizes(), ", expected [groups] or [groups, ", size, "]");
  const at::Tensor matrix = tensor.dim() == 1 ? tensor.unsqueeze(1) : tensor;
  return group ? matrix.index_select(0, *group) : matrix.narrow(0, 0, 1);
}

void swi_glu_quant(const SwiGlu& in, StoredOutput& y, Output& scale_out) {
  expect_dims("x", in.x, 2, 8);
  TORCH_CHECK(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  TORCH_CHECK(in.x.size(-1) <= 8192, "x has ", in.x.size(-1),
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
    TORCH_CHECK(in.groups->size(0) <= count, "groupIndexOptional has ", in.groups->size(0),
                " elements, expected at most ", count, ", the rows of x");
    group = group_of_rows(in.counts ? in.groups->cumsum(0) : *in.groups, count);
  }
  const int64_t groups = in.groups ? in.groups->size(0) : 1;
  TORCH_CHECK(in.smooth || in.is_dynamic,
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

bool is_dynamic(const std::string& mode, const char* otherwise) {
  const std::string chosen = mode.empty() ? otherwise : mode;
  expect_mode("quantModeOptional", chosen);
  return chosen == "dynamic";
}

// ---- DequantSwigluQuant

struct DequantSwiGlu {
  const at::Tensor& x;
  const Optional &weight_scale, &activation_scale, &bias, &quant_scale, &quant_offset, &groups;
  bool gate_is_left, is_dynamic;
  int64_t dim, mode;
  double limit, alpha, glu_bias;
};

// The group of each row by the groups' counts, which may stand beside the numbers of the groups.
Rows rows_of(const Optional& groups, int64_t count) {
  if (!groups) return {};
  const at::ScalarType dtype = groups->scalar_type();
  TORCH_CHECK(dtype == at::kInt || dtype == at::kLong, "groupIndexOptional has dtype ",
              dtype_name(acl_type(dtype)), ", expected INT32 or INT64");
  expect_dims("groupIndexOptional", *groups, 1, 2);
  TORCH_CHECK(groups->size(0) > 0 && (groups->dim() == 1 || groups->size(1) == 2),
              "groupIndexOptional has shape ", groups->sizes(),
              ", expected [groups] or [groups, 2]");
  const at::Tensor list = groups->to(at::kLong);
  if (list.dim() == 1) return {group_of_rows(list.cumsum(0), count)};
  const at::Tensor place = group_of_rows(list.select(1, 1).cumsum(0), count);
  return {list.select(1, 0).index_select(0, place)};
}

// INT32 rows times the scales of their columns and of themselves. A bias that is INT32 is added
// before, another one after that. Other types are as they are.
at::Tensor dequantized(const DequantSwiGlu& in, const at::Tensor& x, const Rows& rows) {
  const int64_t size = x.size(1);
  if (x.scalar_type() != at::kInt) {
    TORCH_CHECK(at::isReducedFloatingType(x.scalar_type()), "x has dtype ",
                dtype_name(acl_type(x.scalar_type())), ", expected FLOAT16, BFLOAT16 or INT32");
    TORCH_CHECK(!in.weight_scale && !in.activation_scale && !in.bias,
                "weightScaleOptional, activationScaleOptional or biasOptional is a tensor, expected"
                " null as x is not INT32");
    return wide(x);
  }
  TORCH_CHECK(in.weight_scale, "weightScaleOptional is null, expected a tensor as x is INT32");
  expect_dtype("weightScaleOptional", *in.weight_scale, at::kFloat);
  at::Tensor sum = x;
  const bool is_integer = in.bias && in.bias->scalar_type() == at::kInt;
  if (in.bias) {
    TORCH_CHECK(is_integer || in.bias->is_floating_point(), "biasOptional has dtype ",
                dtype_name(acl_type(in.bias->scalar_type())),
                ", expected FLOAT, FLOAT16, BFLOAT16 or INT32");
  }
  if (is_integer) sum = sum + parameter("biasOptional", *in.bias, rows, size, false);
  at::Tensor result =
      sum.to(at::kFloat) * parameter("weightScaleOptional", *in.weight_scale, rows, size, false);
  if (in.activation_scale) {
    expect_dtype("activationScaleOptional", *in.activation_scale, at::kFloat);
    TORCH_CHECK(in.activation_scale->numel() == x.size(0), "activationScaleOptional has ",
                in.activation_scale->numel(), " elements, expected ", x.size(0),
                ", one for each row of x");
    result = result * in.activation_scale->reshape({-1, 1});
  }
  if (in.bias && !is_integer) {
    result = result + parameter("biasOptional", *in.bias, rows, size, false);
  }
  return result;
}

// The variants of SwiGLU by the mode: plain, with the gate in the even columns and bounds, with
// both in halves, and with the bound of the gate after its activation.
at::Tensor gated(const DequantSwiGlu& in, const at::Tensor& x) {
  if (in.mode == 0) return swiglu(halves(x, in.dim, in.gate_is_left));
  const Halves parts =
      in.mode == 1 ? Halves{x.slice(-1, 0, std::nullopt, 2), x.slice(-1, 1, std::nullopt, 2)}
                   : halves(x, in.dim, in.gate_is_left);
  const at::Tensor up = at::clamp(parts.up, -in.limit, in.limit);
  if (in.mode == 3) return at::clamp_max(at::silu(parts.gate), in.limit) * up;
  const at::Tensor gate = at::clamp_max(parts.gate, in.limit);
  return gate * at::sigmoid(gate * in.alpha) * (up + in.glu_bias);
}

void check_dequant(const DequantSwiGlu& in) {
  expect_dims("x", in.x, 2, 8);
  TORCH_CHECK(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  TORCH_CHECK(in.x.size(in.dim) % 2 == 0, "x has ", in.x.size(in.dim), " elements in dimension ",
              in.dim, ", expected an even number");
  const bool is_last = in.dim == in.x.dim() - 1;
  TORCH_CHECK(is_last || (!in.groups && !in.is_dynamic && in.mode == 0),
              "activateDim is not the last dimension, expected no groups, quantModeOptional "
              "\"static\" and swigluMode 0 in that case");
  TORCH_CHECK(in.mode >= 0 && in.mode <= 3, "swigluMode is ", in.mode, ", expected 0 to 3");
  TORCH_CHECK(in.mode != 1 || in.gate_is_left,
              "activateLeft is false, expected true as swigluMode"
              " is 1");
  TORCH_CHECK(in.mode == 0 || (in.limit > 0 && std::isfinite(in.limit)), "clampLimit is ", in.limit,
              ", expected a positive finite number");
  TORCH_CHECK(in.quant_scale || in.is_dynamic,
              "quantScaleOptional is null, expected a tensor in static quantisation");
}

void dequant_swiglu_quant(const DequantSwiGlu& in, StoredOutput& y, Output& scale_out) {
  check_dequant(in);
  std::vector<int64_t> shape = in.x.sizes().vec();
  shape[static_cast<size_t>(in.dim)] /= 2;
  expect_values(y, shape);
  const int64_t count = rows_before(in.x, in.x.dim() - 1);
  const Rows rows = rows_of(in.groups, count);
  const at::Tensor x = dequantized(in, in.x.reshape({count, in.x.size(-1)}), rows);
  at::Tensor result = gated(in, x.reshape(in.x.sizes())).reshape({-1, shape.back()});
  if (in.is_dynamic) {
    if (in.quant_scale) {
      expect_dtype("quantScaleOptional", *in.quant_scale, at::kFloat);
      result = result * parameter("quantScaleOptional", *in.quant_scale, rows, shape.back(), false);
    }
    expect_row_scales(scale_out, leading(in.x));
    const auto scale = quantize_rows(y, result.reshape(shape));
    if (scale) scale_out = scale->squeeze(-1);
    return;
  }
  expect_dtype("quantScaleOptional", *in.quant_scale, at::kFloat);
  result = result / parameter("quantScaleOptional", *in.quant_scale, rows, shape.back(), true);
  if (in.quant_offset) {
    expect_like("quantOffsetOptional", *in.quant_offset, *in.quant_scale);
    result = result + parameter("quantOffsetOptional", *in.quant_offset, rows, shape.back(), true);
  }
  quantize(y, result.reshape(shape));
}

// ---- DequantSituQuant

// A vector of one element or of `size`.
at::Tensor one_or_each(const char* name, const at::Tensor& tensor, int64_t size) {
  expect_dtype(name, tensor, at::kFloat);
  TORCH_CHECK(tensor.dim() == 1 && (tensor.size(0) == 1 || tensor.size(0) == size), name,
              " has shape ", tensor.sizes(), ", expected 1 or ", size, " elements");
  return tensor;
}

struct DequantSitu {
  const at::Tensor& x;
  const Optional &weight_scale, &activation_scale, &bias, &quant_scale, &quant_offset, &groups;
};
void check_situ(const DequantSitu& in, bool is_dynamic) {
  const at::ScalarType dtype = in.x.scalar_type();
  const bool is_integer = dtype == at::kChar || dtype == at::kInt;
  TORCH_CHECK(is_integer || at::isReducedFloatingType(dtype), "x has dtype ",
              dtype_name(acl_type(dtype)), ", expected INT8, INT32, FLOAT16 or BFLOAT16");
  expect_dims("x", in.x, 2, dtype == at::kChar ? 8 : 2);
  TORCH_CHECK(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  TORCH_CHECK(!in.groups,
              "groupIndexOptional is a tensor, expected null: what it does is not "
              "documented");
  TORCH_CHECK(in.weight_scale.has_value() == is_integer, "weightScaleOptional is ",
              in.weight_scale ? "a tensor" : "null",
              ", expected a tensor if and only if x is INT8 "
              "or INT32");
  TORCH_CHECK(in.activation_scale.has_value() == (dtype == at::kInt), "activationScaleOptional is ",
              in.activation_scale ? "a tensor" : "null",
              ", expected a tensor if and only if x is INT32");
  TORCH_CHECK(is_integer || !in.bias,
              "biasOptional is a tensor, expected null as x is not INT8 or "
              "INT32");
  TORCH_CHECK(dtype == at::kChar || (!in.quant_scale && !in.quant_offset),
              "quantScaleOptional or quantOffsetOptional is a tensor, expected null as x is not "
              "INT8");
  TORCH_CHECK(in.quant_scale || is_dynamic,
              "quantScaleOptional is null, expected a tensor as quantTypeOptional is \"static\"");
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
  TORCH_CHECK(self.numel() > 0, "self has shape ", self.sizes(), ", expected elements");
  TORCH_CHECK(approximate == "none" || approximate == "tanh", "approximate is \"", approximate,
              "\", expected \"none\" or \"tanh\"");
  TORCH_CHECK(roundMode == "rint", "roundMode is \"", roundMode, "\", expected \"rint\"");
  expect_type("dstType", dstType, y, {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_values(y, self.sizes());
  TORCH_CHECK(inputScaleOptional || (!is_static && !inputOffsetOptional),
              "inputScaleOptional is null, expected a tensor in static quantisation and beside "
              "inputOffsetOptional");
  at::Tensor result = at::gelu(wide(self), approximate);
  if (inputScaleOptional) {
    const at::Tensor& scale = *inputScaleOptional;
    if (scale.scalar_type() != at::kFloat) expect_dtype("inputScaleOptional", scale, self);
    TORCH_CHECK(scale.dim() == 1 && (scale.size(0) == 1 || scale.size(0) == self.size(-1)),
                "inputScaleOptional has shape ", scale.sizes(), ", expected 1 or ", self.size(-1),
                " elements");
    result = result * wide(scale);
  }
  if (inputOffsetOptional) {
    expect_like("inputOffsetOptional", *inputOffsetOptional, *inputScaleOptional);
  }
  if (is_static) {
    TORCH_CHECK(!outScaleOptional,
                "outScaleOptional is a tensor, expected null as quantMode is \"static\"");
    if (inputOffsetOptional) result = result + wide(*inputOffsetOptional);
    return quantize(y, result);
  }
  TORCH_CHECK(outScaleOptional,
              "outScaleOptional is null, expected a tensor as quantMode is \"dynamic\"");
  expect_row_scales(*outScaleOptional, leading(self));
  const auto scale = quantize_rows(y, result);
  if (scale) outScaleOptional = scale->squeeze(-1);
}

ACLNN(SwiGluQuant, (FloatIn, x), (OptionalIn, smoothScalesOptional), (OptionalIn, offsetsOptional),
      (OptionalIn, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (StoredOut, yOut), (Out, scaleOut)) {
  TORCH_CHECK(smoothScalesOptional && groupIndexOptional,
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
  TORCH_CHECK(groupListType == 0 || groupListType == 1, "groupListType is ", groupListType.value(),
              ", expected 0 or 1");
  expect_type("dstType", dstType, yOut, {ACL_INT8, ACL_INT4});
  swi_glu_quant({x, smoothScalesOptional, offsetsOptional, groupIndexOptional, activateLeft,
                 is_dynamic(quantModeOptional, "dynamic"), groupListType == 1},
                yOut, scaleOut);
}

ACLNN(DequantSwigluQuant, (In, x), (OptionalIn, weightScaleOptional),
      (OptionalIn, activationScaleOptional), (OptionalIn, biasOptional),
      (OptionalIn, quantScaleOptional), (OptionalIn, quantOffsetOptional),
      (OptionalIn, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (StoredOut, yOut), (Out, scaleOut)) {
  expect_dims("x", x, 2, 8);
  expect_quantized(yOut, {ACL_INT8});
  dequant_swiglu_quant({x, weightScaleOptional, activationScaleOptional, biasOptional,
                        quantScaleOptional, quantOffsetOptional, groupIndexOptional, activateLeft,
                        is_dynamic(quantModeOptional, "static"), x.dim() - 1, 0, 0, 0, 0},
                       yOut, scaleOut);
}
ACLNN(DequantSwigluQuantV2, (In, x), (OptionalIn, weightScaleOptional),
      (OptionalIn, activationScaleOptional), (OptionalIn, biasOptional),
      (OptionalIn, quantScaleOptional), (OptionalIn, quantOffsetOptional),
      (OptionalIn, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (int64_t, dstType), (char*, roundModeOptional), (int64_t, activateDim), (int64_t, swigluMode),
      (double, clampLimit), (double, gluAlpha), (double, gluBias), (StoredOut, yOut),
      (Out, scaleOut)) {
  expect_dims("x", x, 2, 8);
  TORCH_CHECK(activateDim >= -x.dim() && activateDim < x.dim(), "activateDim is ",
              activateDim.value(), ", expected ", -x.dim(), " to ", x.dim() - 1);
  expect_type("dstType", dstType, yOut,
              {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  expect_rint("roundModeOptional", roundModeOptional);
  const bool dynamic = is_dynamic(quantModeOptional, "static");
  TORCH_CHECK(dynamic != quantOffsetOptional.has_value(), "quantOffsetOptional is ",
              quantOffsetOptional ? "a tensor" : "null",
              ", expected a tensor if and only if quantModeOptional is \"static\"");
  const int64_t dim = activateDim < 0 ? activateDim.value() + x.dim() : activateDim.value();
  dequant_swiglu_quant({x, weightScaleOptional, activationScaleOptional, biasOptional,
                        quantScaleOptional, quantOffsetOptional, groupIndexOptional, activateLeft,
                        dynamic, dim, swigluMode, clampLimit, gluAlpha, gluBias},
                       yOut, scaleOut);
}

// The document truncates the quotients, and does not round them.
ACLNN(DequantSituQuant, (In, x), (OptionalIn, weightScaleOptional),
      (OptionalIn, activationScaleOptional), (OptionalIn, biasOptional),
      (OptionalIn, quantScaleOptional), (OptionalIn, quantOffsetOptional),
      (OptionalIn, groupIndexOptional), (float, beta), (float, linearBeta), (bool, activateLeft),
      (char*, quantTypeOptional), (StoredOut, yOut), (Out, yScaleOut)) {
  const std::string mode = quantTypeOptional.empty() ? "dynamic" : quantTypeOptional;
  expect_mode("quantTypeOptional", mode);
  const bool dynamic = mode == "dynamic";
  check_situ({x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
              quantOffsetOptional, groupIndexOptional},
             dynamic);
  expect_beta(beta);
  const int64_t size = x.size(-1);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = size / 2;
  expect_quantized(yOut, {ACL_INT8});
  expect_values(yOut, shape);
  expect_row_scales(yScaleOut, leading(x));
  at::Tensor values = x.to(at::kFloat);
  if (weightScaleOptional) {
    values = values * one_or_each("weightScaleOptional", *weightScaleOptional, size);
  }
  if (activationScaleOptional) {
    values = values * one_or_each("activationScaleOptional", *activationScaleOptional, 1);
  }
  if (biasOptional) values = values + one_or_each("biasOptional", *biasOptional, size);
  at::Tensor result = situ(halves(values, x.dim() - 1, activateLeft), beta, linearBeta);
  if (dynamic) {
    if (quantScaleOptional) {
      result = result * one_or_each("quantScaleOptional", *quantScaleOptional, size / 2);
    }
    const at::Tensor scale = at::amax(result.abs(), -1, /*keepdim=*/true) / 127;
    quantize(yOut, at::trunc(result / scale));
    yScaleOut = scale.squeeze(-1);
    return;
  }
  result = result / one_or_each("quantScaleOptional", *quantScaleOptional, size / 2);
  if (quantOffsetOptional) {
    expect_like("quantOffsetOptional", *quantOffsetOptional, *quantScaleOptional);
    result = result + *quantOffsetOptional;
  }
  quantize(yOut, at::trunc(result));
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
  TORCH_CHECK(quantMode == 0 || quantMode == 1, "quantMode is ", quantMode.value(),
              ", expected 0 or 1: the host CANN does not emulate HIFLOAT8");
  const bool is_mx = quantMode == 1;
  expect_dims("x", x, 2, is_mx ? 7 : 8);
  TORCH_CHECK(at::isReducedFloatingType(x.scalar_type()), "x has dtype ",
              dtype_name(acl_type(x.scalar_type())), ", expected FLOAT16 or BFLOAT16");
  TORCH_CHECK(x.numel() > 0 && x.size(-1) % 256 == 0, "x has shape ", x.sizes(),
              ", expected elements, a multiple of 256 in the last dimension");
  expect_type("dstType", dstType, yOut, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  const int64_t block = is_mx ? 32 : 128;
  TORCH_CHECK(blockSize == 0 || blockSize == block, "blockSize is ", blockSize.value(),
              ", expected 0 or ", block);
  TORCH_CHECK(roundScale == true || !is_mx, "roundScale is false, expected true as quantMode is 1");
  TORCH_CHECK(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
              ", expected -1 or more than 0");
  TORCH_CHECK(outputOrigin == false, "outputOrigin is true, expected false as quantMode is 0 or 1");
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() /= 2;
  expect_values(yOut, shape);
  expect_dtype(yOriginOut, x);
  expect_shape("yOriginOut", yOriginOut, shape);
  const aclDataType of_scale = is_mx ? ACL_FLOAT8_E8M0 : ACL_FLOAT;
  TORCH_CHECK(yScaleOut.dtype() == of_scale, "yScaleOut has dtype ", dtype_name(yScaleOut.dtype()),
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
    TORCH_CHECK(weightOptional->numel() == c10::multiply_integers(rows), "weightOptional has ",
                weightOptional->numel(), " elements, expected ", c10::multiply_integers(rows),
                ", one for each row of x");
    result = result * weightOptional->reshape(rows);
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
