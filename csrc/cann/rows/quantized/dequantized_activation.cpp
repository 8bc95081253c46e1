// Activations with a quantised result, of dequantised INT8 and INT32 or of FLOAT16 and BFLOAT16.
// All computations are in FP32. If there are groups, rows after the last group are computed with
// its parameters.

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_dequantized_activation_rows {

namespace {

// ---- parameters of groups

// A parameter for the rows of x: one number, one for each of `size` columns, or one of these for
// each group. Without groups, all rows use the first parameters.
at::Tensor parameter(const char* name, const at::Tensor& tensor, const OptionalTensor& groups,
                     int64_t size, bool may_be_number = false) {
  expect_dims(name, tensor, 1, 2);
  const bool has_dims_of_number = groups || tensor.dim() == 1;
  if (may_be_number && has_dims_of_number && tensor.numel() == 1) return wide(tensor).reshape({1});
  if (!groups) {
    EXPECT(tensor.size(-1) == size && tensor.numel() == size, name, " has shape ", tensor.sizes(),
           ", expected ", may_be_number ? "[1] or " : "", "[", size, "]");
    return wide(tensor).reshape({size});
  }
  EXPECT(tensor.dim() == 2 && tensor.size(1) == size && tensor.size(0) > 0, name, " has shape ",
         tensor.sizes(), ", expected [groups, ", size, "]");
  if (has_values(*groups))
    check_bounds("the group of a row by groupIndexOptional", *groups, tensor.size(0));
  return wide(tensor).index_select(0, groups->clamp(0, tensor.size(0) - 1));
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
// groups. One group without a number is all rows, whose parameters may have one dimension.
OptionalTensor group_numbers(const OptionalTensor& groups, int64_t rows) {
  if (!groups) return {};
  expect_dtype("groupIndexOptional", *groups, {at::kInt, at::kLong});
  expect_dims("groupIndexOptional", *groups, 1, 2);
  EXPECT(groups->size(0) > 0 && (groups->dim() == 1 || groups->size(1) == 2),
         "groupIndexOptional has shape ", groups->sizes(), ", expected [groups] or [groups, 2]");
  const at::Tensor list = groups->to(at::kLong);
  const bool has_numbers = list.dim() == 2;
  const at::Tensor sizes = has_numbers ? list.select(1, 1) : list;
  const at::Tensor index = group_of_rows(ends_of_sizes("groupIndexOptional", sizes, rows), rows);
  if (!has_numbers) return list.size(0) == 1 ? OptionalTensor{} : index;
  return list.select(1, 0).index_select(0, index);
}

// INT32 rows times the scales of their columns and of the rows. An INT32 bias is added before the
// scales, other biases after them. Rows of other types are returned unchanged.
at::Tensor dequantized(const DequantSwiGlu& in, const at::Tensor& x, const OptionalTensor& groups) {
  const int64_t size = x.size(1);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16, at::kInt});
  if (x.scalar_type() != at::kInt) {
    EXPECT(!in.weight_scale && !in.activation_scale && !in.bias,
           "weightScaleOptional, activationScaleOptional or biasOptional is a tensor, expected"
           " null as x is not INT32");
    return wide(x);
  }
  EXPECT(in.weight_scale, "weightScaleOptional is null, expected a tensor as x is INT32");
  expect_dtype("weightScaleOptional", *in.weight_scale, at::kFloat);
  OptionalTensor bias;
  if (in.bias) {
    expect_dtype("biasOptional", *in.bias, {at::kFloat, at::kHalf, at::kBFloat16, at::kInt});
    bias = parameter("biasOptional", *in.bias, groups, size);
  }
  const bool is_integer = bias && bias->scalar_type() == at::kInt;
  at::Tensor result = (is_integer ? x + *bias : x).to(at::kFloat) *
                      parameter("weightScaleOptional", *in.weight_scale, groups, size);
  if (in.activation_scale) {
    expect_dtype("activationScaleOptional", *in.activation_scale, at::kFloat);
    EXPECT(in.activation_scale->numel() == x.size(0), "activationScaleOptional has ",
           in.activation_scale->numel(), " elements, expected ", x.size(0),
           ", one for each row of x");
    result = result * in.activation_scale->reshape({-1, 1});
  }
  return bias && !is_integer ? result + *bias : result;
}

// The variants of SwiGLU by mode: plain; with bounds and the gate in the even columns; with bounds
// and the gate in one half; and with a bound on the gate after its activation.
at::Tensor gated(const DequantSwiGlu& in, const at::Tensor& x) {
  if (in.mode == 0) return swiglu(halves(x, in.dim, in.gate_is_left));
  const Halves parts = in.mode == 1 ? interleaved_halves(x) : halves(x, in.dim, in.gate_is_left);
  if (in.mode == 3) {
    return at::clamp_max(at::silu(parts.gate), in.limit) * at::clamp(parts.up, -in.limit, in.limit);
  }
  return biased_swiglu(clamped(parts, in.limit), in.alpha, in.glu_bias);
}

void check_dequant(const DequantSwiGlu& in) {
  expect_dims("x", in.x, 2, 8);
  expect_elements("x", in.x);
  EXPECT(in.x.size(in.dim) % 2 == 0, "x has ", in.x.size(in.dim), " elements in dimension ", in.dim,
         ", expected an even number");
  const bool is_last = in.dim == in.x.dim() - 1;
  EXPECT(is_last || (!in.groups && !in.is_dynamic && in.mode == 0),
         "activateDim is not the last dimension, expected no groups, quantModeOptional "
         "\"static\" and swigluMode 0 in that case");
  expect_range("swigluMode", in.mode, 0, 3);
  EXPECT(in.mode != 1 || in.gate_is_left,
         "activateLeft is false, expected true as swigluMode is 1");
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
  const int64_t size = shape.back();
  const int64_t rows = rows_before(in.x, in.x.dim() - 1);
  const OptionalTensor groups = group_numbers(in.groups, rows);
  const at::Tensor x = dequantized(in, in.x.reshape({rows, in.x.size(-1)}), groups);
  at::Tensor result = gated(in, x.reshape(in.x.sizes())).reshape({-1, size});
  if (in.quant_scale) expect_dtype("quantScaleOptional", *in.quant_scale, at::kFloat);
  if (in.is_dynamic) {
    if (in.quant_scale) {
      result = result * parameter("quantScaleOptional", *in.quant_scale, groups, size);
    }
    expect_row_scales(scale_out, leading(in.x));
    scale_out = quantize_rows(y, result.reshape(shape));
    return;
  }
  result = result / parameter("quantScaleOptional", *in.quant_scale, groups, size, true);
  if (in.quant_offset) {
    expect_like("quantOffsetOptional", *in.quant_offset, *in.quant_scale);
    result = result + parameter("quantOffsetOptional", *in.quant_offset, groups, size, true);
  }
  quantize(y, result.reshape(shape));
}

// ---- DequantSituQuant

// Checks a vector of one or `size` elements.
at::Tensor one_or_each(const char* name, const at::Tensor& tensor, int64_t size) {
  expect_dtype(name, tensor, at::kFloat);
  EXPECT(tensor.dim() == 1 && (tensor.size(0) == 1 || tensor.size(0) == size), name, " has shape ",
         tensor.sizes(), ", expected ",
         size == 1 ? "1 element" : text_of({"1 or ", size, " elements"}));
  return tensor;
}

// `in` is the struct of the row.
template <class Row>
void check_situ(const Row& in, bool is_dynamic) {
  expect_dtype("x", in.x, {at::kChar, at::kInt, at::kHalf, at::kBFloat16});
  const at::ScalarType dtype = in.x.scalar_type();
  const bool is_integer = dtype == at::kChar || dtype == at::kInt;
  expect_dims("x", in.x, 2, dtype == at::kChar ? 8 : 2);
  expect_elements("x", in.x);
  EXPECT(in.weightScaleOptional.has_value() == is_integer, "weightScaleOptional is ",
         in.weightScaleOptional ? "a tensor" : "null",
         ", expected a tensor if and only if x is INT8 or INT32");
  EXPECT(in.activationScaleOptional.has_value() == (dtype == at::kInt),
         "activationScaleOptional is ", in.activationScaleOptional ? "a tensor" : "null",
         ", expected a tensor if and only if x is INT32");
  EXPECT(is_integer || !in.biasOptional,
         "biasOptional is a tensor, expected null as x is not INT8 or INT32");
  EXPECT(dtype == at::kChar || is_dynamic,
         "quantTypeOptional is \"static\", expected \"dynamic\" as x is not INT8");
  EXPECT(dtype == at::kChar || (!in.quantScaleOptional && !in.quantOffsetOptional),
         "quantScaleOptional or quantOffsetOptional is a tensor, expected null as x is not INT8");
  EXPECT(in.quantScaleOptional || is_dynamic,
         "quantScaleOptional is null, expected a tensor as quantTypeOptional is \"static\"");
}

}  // namespace

ACLNN(DequantSwigluQuant, (In, x), (Optional<In>, weightScaleOptional),
      (Optional<In>, activationScaleOptional), (Optional<In>, biasOptional),
      (Optional<In>, quantScaleOptional), (Optional<In>, quantOffsetOptional),
      (Optional<In>, groupIndexOptional), (bool, activateLeft), (char*, quantModeOptional),
      (Stored<Out>, yOut), (Out, scaleOut)) {
  expect_dims("x", x, 2, 8);
  expect_type(yOut, {ACL_INT8});
  dequant_swiglu_quant(
      {x, weightScaleOptional, activationScaleOptional, biasOptional, quantScaleOptional,
       quantOffsetOptional, groupIndexOptional, activateLeft,
       is_dynamic("quantModeOptional", quantModeOptional, "static"), x.dim() - 1, 0, 0, 0, 0},
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
  expect_range("activateDim", activateDim, -x.dim(), x.dim() - 1);
  expect_type("dstType", dstType, yOut,
              {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  expect_text("roundModeOptional", roundModeOptional, {"", "rint"});
  const bool dynamic = is_dynamic("quantModeOptional", quantModeOptional, "static");
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
ACLNN_STRUCT(DequantSituQuant, (In, x), (Optional<In>, weightScaleOptional),
             (Optional<In>, activationScaleOptional), (Optional<In>, biasOptional),
             (Optional<In>, quantScaleOptional),
             (Like<Optional<In>>, quantOffsetOptional, "quantScaleOptional"),
             (Refused<In>, groupIndexOptional, "what it does is not documented"), (float, beta),
             (float, linearBeta), (bool, activateLeft), (char*, quantTypeOptional),
             (Stored<Out>, yOut), (Out, yScaleOut)) {
  const bool dynamic = is_dynamic("quantTypeOptional", quantTypeOptional, "dynamic");
  check_situ(*this, dynamic);
  expect_beta(beta);
  const int64_t size = x.size(-1);
  expect_type(yOut, {ACL_INT8});
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
  expect_values(yOut, result.sizes());
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
