// MX quantisation along both of the last two dimensions, also of groups of rows and of gated
// activations, and conversion from FLOAT4 in rows to FLOAT8 in squares.

#include "cann/rows/activation/gated_rows.h"
#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_dual_axis_rows {

namespace {

struct Along {
  StoredOutput &y, &scale;
};
// Quantises x along its last dimension, and along the one before it within the groups. `row` is the
// struct of a row.
template <class Row>
void quantize_both(const Row& row, const at::Tensor& x, const char* groups_name,
                   const OptionalTensor& groups, int64_t least_rows, const char* dtype_name,
                   int64_t dtype, Along last, Along second_last) {
  EXPECT(row.maxDtypeValue == 0, "maxDtypeValue is ", row.maxDtypeValue, ", expected 0");
  const auto rule = [&](const StoredOutput& y) {
    return mx_rule(x, "roundModeOptional", row.roundModeOptional, dtype, row.scaleAlg, 0, y,
                   dtype_name);
  };
  const MxRule second_rule = rule(second_last.y);
  quantize_mx(x, x.dim() - 1, kMxBlock, rule(last.y), last.y, last.scale);
  if (!groups) {
    return quantize_mx(x, x.dim() - 2, kMxBlock, second_rule, second_last.y, second_last.scale);
  }
  expect_dtype(groups_name, *groups, at::kLong);
  expect_group_list(groups_name, *groups);
  EXPECT(x.dim() == 2, "x has ", x.dim(), " dimensions, expected 2 beside groups");
  expect_mx_scale(second_last.scale.name(), second_last.scale, second_last.scale.dtype(),
                  mx_group_scale_shape(x, groups->size(0)));
  if (!second_last.y.is_written()) return;
  const std::vector<int64_t> ends = group_ends(groups_name, *groups, x.size(0), least_rows);
  EXPECT(ends.back() == x.size(0), groups_name, " ends with ", ends.back(), ", expected ",
         x.size(0), ", the rows of x");
  quantize_mx_groups(x, ends, second_rule, second_last.y, second_last.scale);
}

// The gradient of SwiGLU for both halves of x. The gradient of the gate comes first if the gate
// does, as documented.
at::Tensor swiglu_gradient(const at::Tensor& gradient, const at::Tensor& x, bool gate_is_left) {
  const Halves parts = halves(x, x.dim() - 1, gate_is_left);
  return at::cat(
      {at::silu_backward(gradient * parts.up, parts.gate), gradient * at::silu(parts.gate)}, -1);
}

// ---- from rows to squares

// The exponent bits of FLOAT8_E8M0; NaN has the largest.
int biased_exponent(float scale) {
  return std::isnan(scale) ? 255 : std::ilogb(scale) + 127;
}

// A square gets the largest scale of its rows, divided by 2^steps, with which the largest FLOAT4
// element is still in FLOAT8's range.
struct Squares {
  const float *x, *row_scales;
  float *y, *scale1, *scale2;
  int64_t rows, columns;
  int steps;

  int64_t blocks() const { return (columns + 2 * kMxBlock - 1) / (2 * kMxBlock) * 2; }

  void convert(int64_t first_row, int64_t block) const {
    const int64_t last_row = std::min(first_row + kMxBlock, rows);
    const int64_t first = block * kMxBlock;
    const int64_t last = std::min(first + kMxBlock, columns);
    int most = steps;
    for (int64_t row = first_row; row < last_row; ++row) {
      most = std::max(most, biased_exponent(row_scales[row * blocks() + block]));
    }
    const float scale = std::ldexp(1.0F, most - steps - 127);
    for (int64_t row = first_row; row < last_row; ++row) {
      const int shift = biased_exponent(row_scales[row * blocks() + block]) - most + steps;
      for (int64_t column = first; column < last; ++column) {
        y[row * columns + column] = std::ldexp(x[row * columns + column], std::max(shift, -127));
      }
      scale1[row * blocks() + block] = scale;
    }
    const int64_t k = first_row / kMxBlock;
    for (int64_t column = first; column < last; ++column) {
      scale2[(k / 2 * columns + column) * 2 + k % 2] = scale;
    }
  }

  void convert() const {
    for (int64_t row = 0; row < rows; row += kMxBlock) {
      for (int64_t block = 0; block * kMxBlock < columns; ++block) convert(row, block);
    }
  }
};

}  // namespace

ACLNN_STRUCT(GroupedDynamicMxQuantWithDualAxis, (In, x), (In, groupIndex),
             (char*, roundModeOptional), (int64_t, scaleAlg), (int64_t, dstDtype),
             (double, maxDtypeValue), (Stored<Out>, y1Out), (Stored<Out>, y1ScaleOut),
             (Stored<Out>, y2Out), (Stored<Out>, y2ScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  EXPECT(x.size(1) > 0 && x.size(1) % 64 == 0, "x has ", x.size(1),
         " columns, expected a positive multiple of 64");
  expect_one_of("scaleAlg", scaleAlg, {1});
  expect_type("dstDtype", dstDtype, y1Out, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  quantize_both(*this, x, "groupIndex", groupIndex, 0, "dstDtype", dstDtype, {y1Out, y1ScaleOut},
                {y2Out, y2ScaleOut});
}

// The activation is rounded to the type of x before it is quantised.
ACLNN_STRUCT(SwigluMxQuantWithDualAxis, (In, x), (Optional<In>, groupIndexOptional),
             (bool, activateLeft), (char*, roundModeOptional), (int64_t, scaleAlg),
             (int64_t, dstType), (double, maxDtypeValue), (Stored<Out>, y1Out),
             (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out), (Stored<Out>, mxscale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  expect_elements("x", x);
  expect_mx_algorithm(scaleAlg, dstType, /*has_second=*/false);
  const at::Tensor result = swiglu(halves(wide(x), 1, activateLeft)).to(x.scalar_type());
  quantize_both(*this, result, "groupIndexOptional", groupIndexOptional, 1, "dstType", dstType,
                {y1Out, mxscale1Out}, {y2Out, mxscale2Out});
}
ACLNN_STRUCT(SwigluBackwardMxQuantWithDualAxis, (In, x), (SameDtype<In>, yGrad, "x"),
             (Optional<In>, groupIndexOptional), (bool, activateLeft), (char*, roundModeOptional),
             (int64_t, scaleAlg), (int64_t, dstDtype), (double, maxDtypeValue),
             (Stored<Out>, y1Out), (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out),
             (Stored<Out>, mxscale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 6);
  expect_elements("x", x);
  EXPECT(x.size(-1) % 64 == 0, "x has ", x.size(-1),
         " elements in its last dimension, expected a multiple of 64");
  expect_shape("yGrad", yGrad, half_shape(x, x.dim() - 1));
  expect_one_of("scaleAlg", scaleAlg, {1});
  expect_type("dstDtype", dstDtype, y1Out, {ACL_FLOAT8_E4M3FN});
  const at::Tensor result = swiglu_gradient(wide(yGrad), wide(x), activateLeft).to(x.scalar_type());
  quantize_both(*this, result, "groupIndexOptional", groupIndexOptional, 1, "dstDtype", dstDtype,
                {y1Out, mxscale1Out}, {y2Out, mxscale2Out});
}

ACLNN(SituMxQuant, (In, x), (float, beta), (float, linearBeta), (bool, activateLeft),
      (int64_t, axis), (int64_t, dstType), (char*, roundModeOptional), (Stored<Out>, yOut),
      (Stored<Out>, yScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 8);
  expect_elements("x", x);
  expect_beta(beta);
  expect_one_of("axis", axis, {-1});
  expect_type("dstType", dstType, yOut, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  const int64_t last = x.dim() - 1;
  const at::Tensor result =
      situ(halves(wide(x), last, activateLeft), beta, linearBeta).to(x.scalar_type());
  const MxRule rule = mx_rule(result, "roundModeOptional", roundModeOptional, dstType, 0, 0, yOut);
  quantize_mx(result, last, kMxBlock, rule, yOut, yScaleOut);
}

ACLNN(MxToBlockMxQuant, (Stored<In>, x), (Stored<In>, mxscale), (int64_t, dstType),
      (Stored<Out>, y), (Stored<Out>, scale1), (Stored<Out>, scale2)) {
  const at::Tensor& elements = x.elements;
  expect_type("x", x, {ACL_FLOAT4_E2M1});
  expect_dims("x", elements, 2, 3);
  expect_elements("x", elements);
  expect_even_for_float4("x", elements, x.dtype);
  expect_type("dstType", dstType, y, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_shape("y", y, elements.sizes());
  const auto along_rows = mx_scale_shape(elements, elements.dim() - 1, kMxBlock);
  const auto along_columns = mx_scale_shape(elements, elements.dim() - 2, kMxBlock);
  expect_mx_scale("mxscale", mxscale.elements, mxscale.dtype, along_rows);
  expect_mx_scale("scale1", scale1, scale1.dtype(), along_rows);
  expect_mx_scale("scale2", scale2, scale2.dtype(), along_columns);
  if (!y.is_written()) return;
  const at::Tensor source = elements.contiguous();
  const at::Tensor scales = mxscale.elements.contiguous();
  const at::Tensor result = at::zeros(source.sizes(), source.options());
  const at::Tensor result1 = at::zeros(along_rows, source.options());
  const at::Tensor result2 = at::zeros(along_columns, source.options());
  const int64_t matrices = source.dim() == 3 ? source.size(0) : 1;
  for (int64_t i = 0; i < matrices; ++i) {
    const auto first_of = [&](const at::Tensor& tensor) { return tensor.numel() / matrices * i; };
    Squares{source.const_data_ptr<float>() + first_of(source),
            scales.const_data_ptr<float>() + first_of(scales),
            result.mutable_data_ptr<float>() + first_of(result),
            result1.mutable_data_ptr<float>() + first_of(result1),
            result2.mutable_data_ptr<float>() + first_of(result2),
            source.size(-2),
            source.size(-1),
            dstType == int64_t{ACL_FLOAT8_E5M2} ? 13 : 6}
        .convert();
  }
  y = result;
  scale1 = result1;
  scale2 = result2;
}

}  // namespace aclnn_host::quantized_mx_dual_axis_rows
