// MX quantisation along both of the last two dimensions, also of groups of rows and of gated
// activations, and conversion from FLOAT4 in rows to FLOAT8 in squares.

#include <algorithm>
#include <cmath>
#include <limits>

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_dual_axis_rows {

namespace {

struct Along {
  StoredOutput &y, &scale;
};
// Quantises x along its last dimension, and along the one before it within the groups.
void quantize_both(const at::Tensor& x, const std::optional<at::Tensor>& groups, int64_t least_rows,
                   const std::string& mode, int64_t dtype, int64_t algorithm, Along last,
                   Along second_last) {
  const MxRule rule1 = mx_rule(x, mode, dtype, algorithm, 0, last.y);
  const MxRule rule2 = mx_rule(x, mode, dtype, algorithm, 0, second_last.y);
  quantize_mx(x, x.dim() - 1, kMxBlock, rule1, last.y, last.scale);
  if (!groups) {
    return quantize_mx(x, x.dim() - 2, kMxBlock, rule2, second_last.y, second_last.scale);
  }
  expect_dtype("the index of groups", *groups, at::kLong);
  EXPECT(groups->dim() == 1 && groups->size(0) > 0, "the index of groups has shape ",
         groups->sizes(), ", expected one dimension with elements");
  EXPECT(x.dim() == 2, "x has ", x.dim(), " dimensions, expected 2 beside groups");
  const int64_t pairs = x.size(0) / (2 * kMxBlock) + groups->size(0);
  expect_mx_scale(second_last.scale.name(), second_last.scale, second_last.scale.dtype(),
                  {pairs, x.size(1), 2});
  if (!second_last.y.is_written()) return;
  const std::vector<int64_t> ends =
      mx_group_ends("the index of groups", *groups, x.size(0), least_rows);
  EXPECT(ends.back() == x.size(0), "the index of groups ends with ", ends.back(), ", expected ",
         x.size(0), ", the rows of x");
  quantize_mx_groups(x, ends, rule2, second_last.y, second_last.scale);
}

void expect_no_largest(const char* name, double largest) {
  EXPECT(largest == 0, name, " is ", largest, ", expected 0");
}
void expect_float8(const char* name, int64_t dtype) {
  EXPECT(dtype == int64_t{ACL_FLOAT8_E5M2} || dtype == int64_t{ACL_FLOAT8_E4M3FN}, name, " is ",
         dtype, ", expected 35 (FLOAT8_E5M2) or 36 (FLOAT8_E4M3FN)");
}

// The gradient of SwiGLU for both halves of x. The gradient of the gate comes first if the gate
// does, as documented.
at::Tensor swiglu_gradient(const at::Tensor& gradient, const at::Tensor& x, bool gate_is_left) {
  const Halves parts = halves(x, x.dim() - 1, gate_is_left);
  const at::Tensor sigmoid = at::sigmoid(parts.gate);
  const at::Tensor activated = parts.gate * sigmoid;
  const at::Tensor of_gate = gradient * parts.up * sigmoid * (1 + parts.gate - activated);
  const at::Tensor of_up = gradient * activated;
  return at::cat({of_gate, of_up}, -1);
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

ACLNN(GroupedDynamicMxQuantWithDualAxis, (In, x), (In, groupIndex), (char*, roundModeOptional),
      (int64_t, scaleAlg), (int64_t, dstDtype), (double, maxDtypeValue), (Stored<Out>, y1Out),
      (Stored<Out>, y1ScaleOut), (Stored<Out>, y2Out), (Stored<Out>, y2ScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  EXPECT(x.size(1) > 0 && x.size(1) % 64 == 0, "x has ", x.size(1),
         " columns, expected a positive multiple of 64");
  EXPECT(scaleAlg == 1, "scaleAlg is ", scaleAlg, ", expected 1");
  expect_float8("dstDtype", dstDtype.value());
  expect_no_largest("maxDtypeValue", maxDtypeValue);
  quantize_both(x, groupIndex, 0, roundModeOptional, dstDtype, scaleAlg, {y1Out, y1ScaleOut},
                {y2Out, y2ScaleOut});
}

// The activation is rounded to the type of x before it is quantised.
ACLNN(SwigluMxQuantWithDualAxis, (In, x), (Optional<In>, groupIndexOptional), (bool, activateLeft),
      (char*, roundModeOptional), (int64_t, scaleAlg), (int64_t, dstType), (double, maxDtypeValue),
      (Stored<Out>, y1Out), (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out),
      (Stored<Out>, mxscale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(scaleAlg == 0 || (scaleAlg == 1 && dstType != int64_t{ACL_FLOAT4_E2M1}), "scaleAlg is ",
         scaleAlg, ", expected 0, or 1 for FLOAT8");
  expect_no_largest("maxDtypeValue", maxDtypeValue);
  const at::Tensor result = swiglu(halves(wide(x), 1, activateLeft)).to(x.scalar_type());
  quantize_both(result, groupIndexOptional, 1, roundModeOptional, dstType, scaleAlg,
                {y1Out, mxscale1Out}, {y2Out, mxscale2Out});
}
ACLNN(SwigluBackwardMxQuantWithDualAxis, (In, x), (SameDtype<In>, yGrad, "x"),
      (Optional<In>, groupIndexOptional), (bool, activateLeft), (char*, roundModeOptional),
      (int64_t, scaleAlg), (int64_t, dstDtype), (double, maxDtypeValue), (Stored<Out>, y1Out),
      (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out), (Stored<Out>, mxscale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 6);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(x.size(-1) % 64 == 0, "x has ", x.size(-1),
         " elements in its last dimension, expected a multiple of 64");
  std::vector<int64_t> half = x.sizes().vec();
  half.back() /= 2;
  expect_shape("yGrad", yGrad, half);
  EXPECT(scaleAlg == 1, "scaleAlg is ", scaleAlg, ", expected 1");
  EXPECT(dstDtype == int64_t{ACL_FLOAT8_E4M3FN}, "dstDtype is ", dstDtype,
         ", expected 36 (FLOAT8_E4M3FN)");
  expect_no_largest("maxDtypeValue", maxDtypeValue);
  const at::Tensor result = swiglu_gradient(wide(yGrad), wide(x), activateLeft).to(x.scalar_type());
  quantize_both(result, groupIndexOptional, 1, roundModeOptional, dstDtype, scaleAlg,
                {y1Out, mxscale1Out}, {y2Out, mxscale2Out});
}

ACLNN(SituMxQuant, (In, x), (float, beta), (float, linearBeta), (bool, activateLeft),
      (int64_t, axis), (int64_t, dstType), (char*, roundModeOptional), (Stored<Out>, yOut),
      (Stored<Out>, yScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 8);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  expect_beta(beta);
  EXPECT(axis == -1, "axis is ", axis, ", expected -1");
  expect_float8("dstType", dstType.value());
  const int64_t last = x.dim() - 1;
  const at::Tensor result =
      situ(halves(wide(x), last, activateLeft), beta, linearBeta).to(x.scalar_type());
  const MxRule rule = mx_rule(result, roundModeOptional, dstType, 0, 0, yOut);
  quantize_mx(result, last, kMxBlock, rule, yOut, yScaleOut);
}

ACLNN(MxToBlockMxQuant, (Stored<In>, x), (Stored<In>, mxscale), (int64_t, dstType),
      (Stored<Out>, y), (Stored<Out>, scale1), (Stored<Out>, scale2)) {
  const at::Tensor& elements = x.elements;
  EXPECT(x.dtype == ACL_FLOAT4_E2M1, "x has dtype ", dtype_name(x.dtype), ", expected FLOAT4_E2M1");
  expect_dims("x", elements, 2, 3);
  EXPECT(elements.numel() > 0, "x has shape ", elements.sizes(), ", expected elements");
  EXPECT(elements.size(-1) % 2 == 0, "x has ", elements.size(-1),
         " elements in its last dimension, expected an even number for FLOAT4");
  expect_float8("dstType", dstType.value());
  EXPECT(y.dtype() == dstType.value(), "y has dtype ", dtype_name(y.dtype()), ", expected ",
         dtype_name(static_cast<aclDataType>(dstType.value())), " as dstType says");
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
