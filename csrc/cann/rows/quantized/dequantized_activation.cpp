// Activations with a quantised result, of dequantised INT8 and INT32 or of FLOAT16 and BFLOAT16.
// All computations are in FP32. If there are groups, rows after the last group are computed with
// its parameters.

#include <cmath>

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/quantized_arguments.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_dequantized_activation_rows {

namespace {

// ---- parameters of groups

// The parameters of each row; without groups, all rows use the first ones.
struct Rows {
  OptionalTensor groups;  // of the rows
};

// A parameter for the rows of x: one number, one for each of `size` columns, or one of these for
// each group.
at::Tensor parameter(const char* name, const at::Tensor& tensor, const Rows& rows, int64_t size,
                     bool may_be_number) {
  expect_dims(name, tensor, 1, 2);
  const bool is_row = tensor.size(-1) == size && (tensor.dim() == 1 || tensor.size(0) == 1);
  if (tensor.dim() == 1 && !rows.groups) {
    EXPECT(is_row || (may_be_number && tensor.size(0) == 1), name, " has shape ", tensor.sizes(),
           ", expected ", may_be_number ? "[1] or " : "", "[", size, "]");
    return wide(tensor);
  }
  if (!rows.groups) {
    EXPECT(is_row, name, " has shape ", tensor.sizes(), ", expected [", size, "]");
    return wide(tensor).reshape({size});
  }
  if (may_be_number && tensor.numel() == 1) return wide(tensor).reshape({1});
  EXPECT(tensor.dim() == 2 && tensor.size(1) == size && tensor.size(0) > 0, name, " has shape ",
         tensor.sizes(), ", expected [groups, ", size, "]");
  if (has_values(*rows.groups)) check_bounds("the group of a row", *rows.groups, tensor.size(0));
  return wide(tensor).index_select(0, rows.groups->clamp(0, tensor.size(0) - 1));
}

// ---- DequantSwigluQuant

struct DequantSwiGlu {
  const at::Tensor& x;
  const OptionalTensor &weight_scale, &activation_scale, &bias, &quant_scale, &quant_offset,
      &groups;
  bool gate_is_left, is_dynamic;
  int64_t dim, mode;
  double limit, alpha, glu_bias;
};

// The group of each row, from the groups' counts, which may be paired with the numbers of the
// groups.
Rows rows_of(const OptionalTensor& groups, int64_t count) {
  if (!groups) return {};
  const at::ScalarType dtype = groups->scalar_type();
  EXPECT(dtype == at::kInt || dtype == at::kLong, "groupIndexOptional has dtype ",
         dtype_text(dtype), ", expected INT32 or INT64");
  expect_dims("groupIndexOptional", *groups, 1, 2);
  EXPECT(groups->size(0) > 0 && (groups->dim() == 1 || groups->size(1) == 2),
         "groupIndexOptional has shape ", groups->sizes(), ", expected [groups] or [groups, 2]");
  const at::Tensor list = groups->to(at::kLong);
  if (list.dim() == 1) return {group_of_rows(list.cumsum(0), count)};
  const at::Tensor place = group_of_rows(list.select(1, 1).cumsum(0), count);
  return {list.select(1, 0).index_select(0, place)};
}

// INT32 rows times the scales of their columns and of the rows. An INT32 bias is added before the
// scales, other biases after them. Rows of other types are returned unchanged.
at::Tensor dequantized(const DequantSwiGlu& in, const at::Tensor& x, const Rows& rows) {
  const int64_t size = x.size(1);
  if (x.scalar_type() != at::kInt) {
    EXPECT(at::isReducedFloatingType(x.scalar_type()), "x has dtype ", dtype_text(x.scalar_type()),
           ", expected FLOAT16, BFLOAT16 or INT32");
    EXPECT(!in.weight_scale && !in.activation_scale && !in.bias,
           "weightScaleOptional, activationScaleOptional or biasOptional is a tensor, expected"
           " null as x is not INT32");
    return wide(x);
  }
  EXPECT(in.weight_scale, "weightScaleOptional is null, expected a tensor as x is INT32");
  expect_dtype("weightScaleOptional", *in.weight_scale, at::kFloat);
  at::Tensor sum = x;
  const bool is_integer = in.bias && in.bias->scalar_type() == at::kInt;
  if (in.bias) {
    EXPECT(is_integer || in.bias->is_floating_point(), "biasOptional has dtype ",
           dtype_text(in.bias->scalar_type()), ", expected FLOAT, FLOAT16, BFLOAT16 or INT32");
  }
  if (is_integer) sum = sum + parameter("biasOptional", *in.bias, rows, size, false);
  at::Tensor result =
      sum.to(at::kFloat) * parameter("weightScaleOptional", *in.weight_scale, rows, size, false);
  if (in.activation_scale) {
    expect_dtype("activationScaleOptional", *in.activation_scale, at::kFloat);
    EXPECT(in.activation_scale->numel() == x.size(0), "activationScaleOptional has ",
           in.activation_scale->numel(), " elements, expected ", x.size(0),
           ", one for each row of x");
    result = result * in.activation_scale->reshape({-1, 1});
  }
  if (in.bias && !is_integer) {
    result = result + parameter("biasOptional", *in.bias, rows, size, false);
  }
  return result;
}

// The variants of SwiGLU by mode: plain; with bounds and the gate in the even columns; with bounds
// and the gate in one half; and with a bound on the gate after its activation.
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
  EXPECT(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  EXPECT(in.x.size(in.dim) % 2 == 0, "x has ", in.x.size(in.dim), " elements in dimension ", in.dim,
         ", expected an even number");
  const bool is_last = in.dim == in.x.dim() - 1;
  EXPECT(is_last || (!in.groups && !in.is_dynamic && in.mode == 0),
         "activateDim is not the last dimension, expected no groups, quantModeOptional "
         "\"static\" and swigluMode 0 in that case");
  EXPECT(in.mode >= 0 && in.mode <= 3, "swigluMode is ", in.mode, ", expected 0 to 3");
  EXPECT(in.mode != 1 || in.gate_is_left,
         "activateLeft is false, expected true as swigluMode"
         " is 1");
  EXPECT(in.mode == 0 || (in.limit > 0 && std::isfinite(in.limit)), "clampLimit is ", in.limit,
         ", expected a positive finite number");
  EXPECT(in.quant_scale || in.is_dynamic,
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

// Checks a vector of one or `size` elements.
at::Tensor one_or_each(const char* name, const at::Tensor& tensor, int64_t size) {
  expect_dtype(name, tensor, at::kFloat);
  EXPECT(tensor.dim() == 1 && (tensor.size(0) == 1 || tensor.size(0) == size), name, " has shape ",
         tensor.sizes(), ", expected 1 or ", size, " elements");
  return tensor;
}

struct DequantSitu {
  const at::Tensor& x;
  const OptionalTensor &weight_scale, &activation_scale, &bias, &quant_scale, &quant_offset,
      &groups;
};
void check_situ(const DequantSitu& in, bool is_dynamic) {
  const at::ScalarType dtype = in.x.scalar_type();
  const bool is_integer = dtype == at::kChar || dtype == at::kInt;
  EXPECT(is_integer || at::isReducedFloatingType(dtype), "x has dtype ", dtype_text(dtype),
         ", expected INT8, INT32, FLOAT16 or BFLOAT16");
  expect_dims("x", in.x, 2, dtype == at::kChar ? 8 : 2);
  EXPECT(in.x.numel() > 0, "x has shape ", in.x.sizes(), ", expected elements");
  EXPECT(!in.groups,
         "groupIndexOptional is a tensor, expected null: what it does is not "
         "documented");
  EXPECT(in.weight_scale.has_value() == is_integer, "weightScaleOptional is ",
         in.weight_scale ? "a tensor" : "null",
         ", expected a tensor if and only if x is INT8 "
         "or INT32");
  EXPECT(in.activation_scale.has_value() == (dtype == at::kInt), "activationScaleOptional is ",
         in.activation_scale ? "a tensor" : "null",
         ", expected a tensor if and only if x is INT32");
  EXPECT(is_integer || !in.bias,
         "biasOptional is a tensor, expected null as x is not INT8 or "
         "INT32");
  EXPECT(dtype == at::kChar || (!in.quant_scale && !in.quant_offset),
         "quantScaleOptional or quantOffsetOptional is a tensor, expected null as x is not "
         "INT8");
  EXPECT(in.quant_scale || is_dynamic,
         "quantScaleOptional is null, expected a tensor as quantTypeOptional is \"static\"");
}

}  // namespace

ACLNN(DequantSwigluQuant, (In, x), (Optional<In>, weightScaleOptional),
      (Optional<In>, activationScaleOptional), (Optional<In>, biasOptional),
      (Optional<In>, quantScaleOptional), (Optional<In>, quantOffsetOptional),
      (Optional<In>, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (Stored<Out>, yOut), (Out, scaleOut)) {
  expect_dims("x", x, 2, 8);
  expect_quantized(yOut, {ACL_INT8});
  dequant_swiglu_quant({x, weightScaleOptional, activationScaleOptional, biasOptional,
                        quantScaleOptional, quantOffsetOptional, groupIndexOptional, activateLeft,
                        is_dynamic(quantModeOptional, "static"), x.dim() - 1, 0, 0, 0, 0},
                       yOut, scaleOut);
}
ACLNN(DequantSwigluQuantV2, (In, x), (Optional<In>, weightScaleOptional),
      (Optional<In>, activationScaleOptional), (Optional<In>, biasOptional),
      (Optional<In>, quantScaleOptional), (Optional<In>, quantOffsetOptional),
      (Optional<In>, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (int64_t, dstType), (char*, roundModeOptional), (int64_t, activateDim), (int64_t, swigluMode),
      (double, clampLimit), (double, gluAlpha), (double, gluBias), (Stored<Out>, yOut),
      (Out, scaleOut)) {
  expect_dims("x", x, 2, 8);
  EXPECT(activateDim >= -x.dim() && activateDim < x.dim(), "activateDim is ", activateDim.value(),
         ", expected ", -x.dim(), " to ", x.dim() - 1);
  expect_type("dstType", dstType, yOut,
              {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  expect_rint("roundModeOptional", roundModeOptional);
  const bool dynamic = is_dynamic(quantModeOptional, "static");
  require_given(weightScaleOptional || x.scalar_type() != at::kInt,
                "weightScaleOptional is null, expected a tensor as x is INT32");
  require_given(quantScaleOptional || dynamic,
                "quantScaleOptional is null, expected a tensor as quantModeOptional is \"static\"");
  EXPECT(dynamic != quantOffsetOptional.has_value(), "quantOffsetOptional is ",
         quantOffsetOptional ? "a tensor" : "null",
         ", expected a tensor if and only if quantModeOptional is \"static\"");
  const int64_t dim = activateDim < 0 ? activateDim.value() + x.dim() : activateDim.value();
  dequant_swiglu_quant({x, weightScaleOptional, activationScaleOptional, biasOptional,
                        quantScaleOptional, quantOffsetOptional, groupIndexOptional, activateLeft,
                        dynamic, dim, swigluMode, clampLimit, gluAlpha, gluBias},
                       yOut, scaleOut);
}

// The document truncates the quotients instead of rounding them.
ACLNN(DequantSituQuant, (In, x), (Optional<In>, weightScaleOptional),
      (Optional<In>, activationScaleOptional), (Optional<In>, biasOptional),
      (Optional<In>, quantScaleOptional),
      (Like<Optional<In>>, quantOffsetOptional, "quantScaleOptional"),
      (Optional<In>, groupIndexOptional), (float, beta), (float, linearBeta), (bool, activateLeft),
      (char*, quantTypeOptional), (Stored<Out>, yOut), (Out, yScaleOut)) {
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
    const at::Tensor maximum = at::amax(result.abs(), -1, /*keepdim=*/true);
    // Computed so that the quotient of the largest element is exactly 127.
    quantize(yOut, at::trunc(result.to(at::kDouble) * 127 / maximum));
    yScaleOut = (maximum / 127).squeeze(-1);
    return;
  }
  result = result / one_or_each("quantScaleOptional", *quantScaleOptional, size / 2);
  if (quantOffsetOptional) result = result + *quantOffsetOptional;
  quantize(yOut, at::trunc(result));
}

}  // namespace aclnn_host::quantized_dequantized_activation_rows
