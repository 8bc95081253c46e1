// Quantisation to MX and back, in blocks along a dimension or of 32 x 32 elements.

#include <algorithm>
#include <string>

#include "cann/rows/checks.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_quantization_rows {

namespace {

void check_algorithm(int64_t algorithm, int64_t dtype, bool has_second) {
  const bool is_float4 = dtype == ACL_FLOAT4_E2M1;
  EXPECT(algorithm == 0 || (algorithm == 1 && !is_float4) ||
             (algorithm == 2 && is_float4 && has_second),
         "scaleAlg is ", algorithm, ", expected 0, or 1 for FLOAT8",
         has_second ? ", or 2 for FLOAT4" : "");
}

// The largest value of the quantised type, which callers may set for FLOAT4_E2M1. Only algorithm 2
// uses it.
void check_largest(double largest, bool may_be_set) {
  EXPECT(largest == 0 || (may_be_set && largest >= 6 && largest <= 12), "dstTypeMax is ", largest,
         ", expected ", may_be_set ? "0 or 6 to 12" : "0 for these other arguments");
}

void dynamic_mx_quant(const at::Tensor& x, int64_t axis, const std::string& mode, int64_t dtype,
                      int64_t block_size, int64_t algorithm, bool has_second, double largest,
                      double least_maximum, StoredOutput& y, StoredOutput& scale) {
  expect_mx_source("x", x, /*may_be_float=*/true, 1, 7);
  axis = mx_axis(x, axis);
  check_algorithm(algorithm, dtype, has_second);
  check_largest(largest, dtype == ACL_FLOAT4_E2M1 && block_size == kMxBlock);
  EXPECT(block_size > 0 && block_size <= 1024 && block_size % kMxBlock == 0, "blocksize is ",
         block_size, ", expected a multiple of 32 from 32 to 1024");
  const bool is_float = x.scalar_type() == at::kFloat;
  EXPECT(block_size == kMxBlock || !(is_float || algorithm == 2), "blocksize is ", block_size,
         ", expected 32 as x is FLOAT or scaleAlg is 2");
  EXPECT(!is_float || x.size(axis) >= kMxBlock, "x has ", x.size(axis),
         " elements along the axis, expected at least 32 as it is FLOAT");
  EXPECT(least_maximum == 0 || (algorithm == 1 && least_maximum > 0), "maxLowBound is ",
         least_maximum, ", expected 0, or a positive number if scaleAlg is 1");
  MxRule rule = mx_rule(x, mode, dtype, algorithm, largest, y);
  rule.least_maximum = static_cast<float>(least_maximum);
  expect_mx_scale(scale.name(), scale, scale.dtype(), mx_scale_shape(x, axis, block_size));
  quantize_mx(x, axis, block_size, rule, y, scale);
}

void quantize_along_both(const at::Tensor& x, const std::string& mode, int64_t dtype,
                         int64_t algorithm, bool has_second, double largest, StoredOutput& y1,
                         StoredOutput& scale1, StoredOutput& y2, StoredOutput& scale2) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 7);
  check_algorithm(algorithm, dtype, has_second);
  check_largest(largest, algorithm == 2);
  const MxRule rule1 = mx_rule(x, mode, dtype, algorithm, largest, y1);
  const MxRule rule2 = mx_rule(x, mode, dtype, algorithm, largest, y2);
  quantize_mx(x, x.dim() - 1, kMxBlock, rule1, y1, scale1);
  quantize_mx(x, x.dim() - 2, kMxBlock, rule2, y2, scale2);
}

// Quantises blocks of 32 x 32. The scale of a block is written for each of its rows to one output
// and for each of its columns to the other.
void quantize_squares(const at::Tensor& x, const MxRule& rule, StoredOutput& y,
                      StoredOutput& scale1, StoredOutput& scale2) {
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::empty_like(source);
  const at::Tensor by_row = at::zeros(scale1->sizes(), source.options());
  const at::Tensor by_column = at::zeros(scale2->sizes(), source.options());
  const int64_t rows = x.size(-2);
  const int64_t columns = x.size(-1);
  const int64_t row_scales = by_row.size(-2) * 2;
  const int64_t column_pairs = by_column.size(-3);
  auto* to_rows = by_row.mutable_data_ptr<float>();
  auto* to_columns = by_column.mutable_data_ptr<float>();
  for (int64_t matrix = 0; matrix < x.numel() / (rows * columns); ++matrix) {
    for (int64_t row = 0; row < rows; row += kMxBlock) {
      for (int64_t column = 0; column < columns; column += kMxBlock) {
        const MxBlock block{std::min(kMxBlock, rows - row), columns,
                            std::min(kMxBlock, columns - column), 1};
        const int64_t place = (matrix * rows + row) * columns + column;
        const float scale = quantize_block(rule, block, source.const_data_ptr<float>() + place,
                                           elements.mutable_data_ptr<float>() + place);
        for (int64_t i = 0; i < block.rows; ++i) {
          to_rows[(matrix * rows + row + i) * row_scales + column / kMxBlock] = scale;
        }
        const int64_t k = row / kMxBlock;
        for (int64_t j = 0; j < block.columns; ++j) {
          const int64_t pair = (matrix * column_pairs + k / 2) * columns + column + j;
          to_columns[pair * 2 + k % 2] = scale;
        }
      }
    }
  }
  y = elements;
  scale1 = by_row;
  scale2 = by_column;
}

void grouped_mx_quant(const at::Tensor& x, const at::Tensor& groups, const std::string& mode,
                      int64_t dtype, int64_t block_size, int64_t algorithm, double largest,
                      StoredOutput& y, StoredOutput& scale) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  expect_dtype("groupIndex", groups, at::kInt);
  EXPECT(groups.dim() == 1 && groups.size(0) > 0, "groupIndex has shape ", groups.sizes(),
         ", expected one dimension with elements");
  EXPECT(block_size == kMxBlock, "blocksize is ", block_size, ", expected 32");
  check_largest(largest, dtype == ACL_FLOAT4_E2M1);
  const MxRule rule = mx_rule(x, mode, dtype, algorithm, largest, y);
  const int64_t pairs = x.size(0) / (2 * kMxBlock) + groups.size(0);
  expect_mx_scale(scale.name(), scale, scale.dtype(), {pairs, x.size(1), 2});
  if (!y.is_written() || x.numel() == 0) return;
  quantize_mx_groups(x, mx_group_ends("groupIndex", groups, x.size(0), 0), rule, y, scale);
}

// The scale of each element of x.
at::Tensor scale_of_elements(const at::Tensor& x, const at::Tensor& scale, int64_t axis) {
  return scale.movedim(-1, axis + 1)
      .flatten(axis, axis + 1)
      .repeat_interleave(kMxBlock, axis)
      .narrow(axis, 0, x.size(axis));
}

}  // namespace

// Behaviour of *Mx*: Scales and elements follow the formulas of OCP's specification of MX formats.
// A block with inf or NaN has the scale NaN and elements of 0.
// Deviation of *Mx*: Devices multiply by reciprocals where the documents divide, which may change
// the last bit.
ACLNN(DynamicMxQuant, (In, x), (int64_t, axis), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, blocksize), (int64_t, scaleAlg), (Stored<Out>, yOut), (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(x, axis, roundModeOptional, dstType, blocksize, scaleAlg, /*has_second=*/false,
                   0, 0, yOut, mxscaleOut);
}
ACLNN(DynamicMxQuantV2, (In, x), (int64_t, axis), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax), (Stored<Out>, yOut),
      (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(x, axis, roundModeOptional, dstType, blocksize, scaleAlg, /*has_second=*/true,
                   dstTypeMax, 0, yOut, mxscaleOut);
}
ACLNN(DynamicMxQuantV3, (In, x), (int64_t, axis), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax), (double, maxLowBound),
      (Stored<Out>, yOut), (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(x, axis, roundModeOptional, dstType, blocksize, scaleAlg, /*has_second=*/true,
                   dstTypeMax, maxLowBound, yOut, mxscaleOut);
}

ACLNN(AntiMxQuant, (Stored<In>, x), (Stored<In>, mxscale), (int64_t, axis), (int64_t, dstType),
      (Out, y)) {
  const aclDataType dtype = x.dtype;
  EXPECT(dtype == ACL_FLOAT8_E5M2 || dtype == ACL_FLOAT8_E4M3FN || dtype == ACL_FLOAT4_E2M1,
         "x has dtype ", dtype_name(dtype), ", expected FLOAT8_E5M2, FLOAT8_E4M3FN or FLOAT4_E2M1");
  expect_dims("x", x.elements, 1, 7);
  EXPECT(dtype != ACL_FLOAT4_E2M1 || x.elements.size(-1) % 2 == 0, "x has ", x.elements.size(-1),
         " elements in its last dimension, expected an even number for FLOAT4");
  EXPECT(dstType == 0 || dstType == 1 || dstType == 27, "dstType is ", dstType,
         ", expected 0 (FLOAT), 1 (FLOAT16) or 27 (BFLOAT16)");
  EXPECT(acl_type(y->scalar_type()) == dstType.value(), "y has dtype ",
         dtype_text(y->scalar_type()), ", expected ",
         dtype_name(static_cast<aclDataType>(dstType.value())), " as dstType says");
  const int64_t dim = mx_axis(x.elements, axis);
  expect_mx_scale("mxscale", mxscale.elements, mxscale.dtype,
                  mx_scale_shape(x.elements, dim, kMxBlock));
  y = x.elements * scale_of_elements(x.elements, mxscale.elements, dim);
}

ACLNN(DynamicMxQuantWithDualAxis, (In, x), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, scaleAlg), (Stored<Out>, y1Out), (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out),
      (Stored<Out>, mxscale2Out)) {
  quantize_along_both(x, roundModeOptional, dstType, scaleAlg, /*has_second=*/false, 0, y1Out,
                      mxscale1Out, y2Out, mxscale2Out);
}
ACLNN(DynamicMxQuantWithDualAxisV2, (In, x), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, scaleAlg), (double, dstTypeMax), (Stored<Out>, y1Out), (Stored<Out>, mxscale1Out),
      (Stored<Out>, y2Out), (Stored<Out>, mxscale2Out)) {
  quantize_along_both(x, roundModeOptional, dstType, scaleAlg, /*has_second=*/true, dstTypeMax,
                      y1Out, mxscale1Out, y2Out, mxscale2Out);
}

ACLNN(DynamicBlockMxQuant, (In, x), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, scaleAlg), (double, dstTypeMax), (Stored<Out>, yOut), (Stored<Out>, scale1Out),
      (Stored<Out>, scale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 3);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(scaleAlg == 0 || (scaleAlg == 2 && dstType == int64_t{ACL_FLOAT4_E2M1}), "scaleAlg is ",
         scaleAlg, ", expected 0, or 2 for FLOAT4_E2M1");
  EXPECT(dstTypeMax == 0 || dstTypeMax == 6 || dstTypeMax == 7, "dstTypeMax is ", dstTypeMax,
         ", expected 0, 6 or 7");
  const MxRule rule = mx_rule(x, roundModeOptional, dstType, scaleAlg, dstTypeMax.value(), yOut);
  expect_mx_scale("scale1Out", scale1Out, scale1Out.dtype(),
                  mx_scale_shape(x, x.dim() - 1, kMxBlock));
  expect_mx_scale("scale2Out", scale2Out, scale2Out.dtype(),
                  mx_scale_shape(x, x.dim() - 2, kMxBlock));
  if (yOut.is_written()) quantize_squares(x, rule, yOut, scale1Out, scale2Out);
}

ACLNN(GroupedDynamicMxQuant, (In, x), (In, groupIndex), (const char*, roundMode),
      (int64_t, dstType), (int64_t, blocksize), (Stored<Out>, y), (Stored<Out>, mxscale)) {
  EXPECT(dstType == int64_t{ACL_FLOAT8_E5M2} || dstType == int64_t{ACL_FLOAT8_E4M3FN},
         "dstType is ", dstType, ", expected 35 (FLOAT8_E5M2) or 36 (FLOAT8_E4M3FN)");
  EXPECT(roundMode == "rint", "roundMode is \"", roundMode, "\", expected \"rint\"");
  grouped_mx_quant(x, groupIndex, roundMode, dstType, blocksize, 0, 0, y, mxscale);
}
ACLNN(GroupedDynamicMxQuantV2, (In, x), (In, groupIndex), (const char*, roundMode),
      (int64_t, dstType), (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax),
      (Stored<Out>, y), (Stored<Out>, mxscale)) {
  EXPECT(!roundMode.empty(), "roundMode is empty, expected \"rint\", \"floor\" or \"round\"");
  check_algorithm(scaleAlg, dstType, /*has_second=*/true);
  grouped_mx_quant(x, groupIndex, roundMode, dstType, blocksize, scaleAlg, dstTypeMax, y, mxscale);
}

}  // namespace aclnn_host::quantized_mx_quantization_rows
