// Quantisation to MX and back, in blocks along a dimension or of 32 x 32 elements.

#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_quantization_rows {

namespace {

// The largest value of the quantised type, which callers may set for FLOAT4_E2M1. Only algorithm 2
// uses it.
void check_largest(double largest, bool may_be_set) {
  EXPECT(largest == 0 || (may_be_set && largest >= 6 && largest <= 12), "dstTypeMax is ", largest,
         ", expected ", may_be_set ? "0 or 6 to 12" : "0 for these other arguments");
}

// `row` is the struct of a version.
template <class Version>
void dynamic_mx_quant(Version& row, bool has_second, double largest, double least_maximum) {
  const at::Tensor& x = row.x;
  const int64_t dtype = row.dstType, algorithm = row.scaleAlg, block_size = row.blocksize;
  expect_mx_source("x", x, /*may_be_float=*/true, 1, 7);
  const int64_t axis = mx_axis(x, row.axis);
  expect_mx_algorithm(algorithm, dtype, has_second);
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
  MxRule rule =
      mx_rule(x, "roundModeOptional", row.roundModeOptional, dtype, algorithm, largest, row.yOut);
  rule.least_maximum = static_cast<float>(least_maximum);
  quantize_mx(x, axis, block_size, rule, row.yOut, row.mxscaleOut);
}

template <class Version>
void quantize_along_both(Version& row, bool has_second, double largest) {
  expect_mx_source("x", row.x, /*may_be_float=*/false, 2, 7);
  expect_mx_algorithm(row.scaleAlg, row.dstType, has_second);
  check_largest(largest, row.scaleAlg == 2);
  const auto quantize = [&](int64_t dim, StoredOutput& y, StoredOutput& scale) {
    const MxRule rule = mx_rule(row.x, "roundModeOptional", row.roundModeOptional, row.dstType,
                                row.scaleAlg, largest, y);
    quantize_mx(row.x, row.x.dim() + dim, kMxBlock, rule, y, scale);
  };
  quantize(-1, row.y1Out, row.mxscale1Out);
  quantize(-2, row.y2Out, row.mxscale2Out);
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
        const int64_t offset = (matrix * rows + row) * columns + column;
        const float scale = quantize_block(rule, block, source.const_data_ptr<float>() + offset,
                                           elements.mutable_data_ptr<float>() + offset);
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

template <class Version>
void grouped_mx_quant(Version& row, int64_t algorithm, double largest) {
  const at::Tensor& x = row.x;
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 2);
  expect_dtype("groupIndex", row.groupIndex, at::kInt);
  expect_group_list("groupIndex", row.groupIndex);
  expect_one_of("blocksize", row.blocksize, {kMxBlock});
  check_largest(largest, row.dstType == int64_t{ACL_FLOAT4_E2M1});
  const MxRule rule =
      mx_rule(x, "roundMode", row.roundMode, row.dstType, algorithm, largest, row.y);
  expect_mx_scale("mxscale", row.mxscale, row.mxscale.dtype(),
                  mx_group_scale_shape(x, row.groupIndex.size(0)));
  if (!row.y.is_written()) return;
  if (x.numel() == 0) {
    row.mxscale = at::zeros(row.mxscale->sizes());
    return;
  }
  quantize_mx_groups(x, group_ends("groupIndex", row.groupIndex, x.size(0)), rule, row.y,
                     row.mxscale);
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
ACLNN_STRUCT(DynamicMxQuant, (In, x), (int64_t, axis), (char*, roundModeOptional),
             (int64_t, dstType), (int64_t, blocksize), (int64_t, scaleAlg), (Stored<Out>, yOut),
             (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(*this, /*has_second=*/false, 0, 0);
}
ACLNN_STRUCT(DynamicMxQuantV2, (In, x), (int64_t, axis), (char*, roundModeOptional),
             (int64_t, dstType), (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax),
             (Stored<Out>, yOut), (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(*this, /*has_second=*/true, dstTypeMax, 0);
}
ACLNN_STRUCT(DynamicMxQuantV3, (In, x), (int64_t, axis), (char*, roundModeOptional),
             (int64_t, dstType), (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax),
             (double, maxLowBound), (Stored<Out>, yOut), (Stored<Out>, mxscaleOut)) {
  dynamic_mx_quant(*this, /*has_second=*/true, dstTypeMax, maxLowBound);
}

ACLNN(AntiMxQuant, (Stored<In>, x), (Stored<In>, mxscale), (int64_t, axis), (int64_t, dstType),
      (Out, y)) {
  expect_type("x", x, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  expect_dims("x", x.elements, 1, 7);
  expect_even_for_float4("x", x.elements, x.dtype);
  expect_dtype("y", y, {at::kFloat, at::kHalf, at::kBFloat16});
  EXPECT(acl_type(y->scalar_type()) == dstType.value(), "dstType is ", dstType, ", expected ",
         acl_type(y->scalar_type()), " as y is ", y->scalar_type());
  const int64_t dim = mx_axis(x.elements, axis);
  expect_mx_scale("mxscale", mxscale.elements, mxscale.dtype,
                  mx_scale_shape(x.elements, dim, kMxBlock));
  y = x.elements * scale_of_elements(x.elements, mxscale.elements, dim);
}

ACLNN_STRUCT(DynamicMxQuantWithDualAxis, (In, x), (char*, roundModeOptional), (int64_t, dstType),
             (int64_t, scaleAlg), (Stored<Out>, y1Out), (Stored<Out>, mxscale1Out),
             (Stored<Out>, y2Out), (Stored<Out>, mxscale2Out)) {
  quantize_along_both(*this, /*has_second=*/false, 0);
}
ACLNN_STRUCT(DynamicMxQuantWithDualAxisV2, (In, x), (char*, roundModeOptional), (int64_t, dstType),
             (int64_t, scaleAlg), (double, dstTypeMax), (Stored<Out>, y1Out),
             (Stored<Out>, mxscale1Out), (Stored<Out>, y2Out), (Stored<Out>, mxscale2Out)) {
  quantize_along_both(*this, /*has_second=*/true, dstTypeMax);
}

ACLNN(DynamicBlockMxQuant, (In, x), (char*, roundModeOptional), (int64_t, dstType),
      (int64_t, scaleAlg), (double, dstTypeMax), (Stored<Out>, yOut), (Stored<Out>, scale1Out),
      (Stored<Out>, scale2Out)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 3);
  expect_elements("x", x);
  EXPECT(scaleAlg == 0 || (scaleAlg == 2 && dstType == int64_t{ACL_FLOAT4_E2M1}), "scaleAlg is ",
         scaleAlg, ", expected 0, or 2 for FLOAT4_E2M1");
  EXPECT(dstTypeMax == 0 || dstTypeMax == 6 || dstTypeMax == 7, "dstTypeMax is ", dstTypeMax,
         ", expected 0, 6 or 7");
  const MxRule rule = mx_rule(x, "roundModeOptional", roundModeOptional, dstType, scaleAlg,
                              dstTypeMax.value(), yOut);
  expect_mx_scale("scale1Out", scale1Out, scale1Out.dtype(),
                  mx_scale_shape(x, x.dim() - 1, kMxBlock));
  expect_mx_scale("scale2Out", scale2Out, scale2Out.dtype(),
                  mx_scale_shape(x, x.dim() - 2, kMxBlock));
  if (yOut.is_written()) quantize_squares(x, rule, yOut, scale1Out, scale2Out);
}

ACLNN_STRUCT(GroupedDynamicMxQuant, (In, x), (In, groupIndex), (const char*, roundMode),
             (int64_t, dstType), (int64_t, blocksize), (Stored<Out>, y), (Stored<Out>, mxscale)) {
  expect_type("dstType", dstType, y, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_text("roundMode", roundMode, {"rint"});
  grouped_mx_quant(*this, 0, 0);
}
ACLNN_STRUCT(GroupedDynamicMxQuantV2, (In, x), (In, groupIndex), (const char*, roundMode),
             (int64_t, dstType), (int64_t, blocksize), (int64_t, scaleAlg), (double, dstTypeMax),
             (Stored<Out>, y), (Stored<Out>, mxscale)) {
  expect_text("roundMode", roundMode, {"rint", "floor", "round"});
  expect_mx_algorithm(scaleAlg, dstType, /*has_second=*/true);
  grouped_mx_quant(*this, scaleAlg, dstTypeMax);
}

}  // namespace aclnn_host::quantized_mx_quantization_rows
