// Quantisation of matrix blocks to FLOAT8 and INT8, with a FLOAT scale for each block.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_block_quantization_rows {

namespace {

struct BlockRule {
  float largest;    // of the type of the elements
  bool is_integer;  // round the elements to integers
  bool rounds_even;
  float most;           // of a scale
  bool skips_infinite;  // infinity and NaN are copied, and ignored when the scale is computed
  int64_t rows, columns;
};

int64_t blocks_in(int64_t size, int64_t block) {
  return size / block + (size % block != 0 ? 1 : 0);
}

float largest_of(int64_t dtype) {
  switch (dtype) {
    case ACL_INT8: return 127;
    case ACL_FLOAT8_E5M2: return 57344;
    default: return 448;  // FLOAT8_E4M3FN
  }
}

BlockRule block_rule(const at::Tensor& x, double least_scale, const std::string& mode,
                     int64_t dtype, int64_t rows, int64_t columns, const StoredOutput& y,
                     const Output& scale) {
  EXPECT(y.dtype() == dtype, "yOut has dtype ", dtype_name(y.dtype()),
         ", expected the one that dstType says, which is ", dtype);
  expect_dims("x", x, 2, 3);
  expect_shape("yOut", y, x.sizes());
  expect_dtype("scaleOut", scale, at::kFloat);
  EXPECT(least_scale >= 0, "minScale is ", least_scale, ", expected 0 or more");
  expect_one_of("colBlockSize", columns, {64, 128, 192, 256});
  const bool is_integer = dtype == ACL_INT8;
  EXPECT(mode.empty() || mode == "rint" || (is_integer && mode == "round"),
         "roundModeOptional is \"", mode, "\", expected \"rint\", or for INT8 also \"round\"");
  const float most = least_scale > 0 ? static_cast<float>(1 / least_scale)
                                     : std::numeric_limits<float>::infinity();
  return {largest_of(dtype), is_integer, mode != "round", most, false, rows, columns};
}

float element_of(const BlockRule& rule, float x, float scale) {
  float value = rule.skips_infinite && !std::isfinite(x) ? x : x / scale;
  if (std::isnan(value)) return 0;
  if (rule.is_integer) value = rule.rounds_even ? std::nearbyint(value) : std::round(value);
  const float least = rule.is_integer ? -128.0f : -rule.largest;
  return std::clamp(value, least, rule.largest);
}

// Quantises the rows from begin to end of a matrix of `width` columns.
void quantize_rows(const BlockRule& rule, const float* x, float* y, float* scale, int64_t begin,
                   int64_t end, int64_t width) {
  for (int64_t row = begin; row < end; row += rule.rows) {
    const int64_t last_row = std::min(end - row, rule.rows) + row;
    for (int64_t column = 0; column < width; column += rule.columns) {
      const int64_t last_column = std::min(width - column, rule.columns) + column;
      float maximum = 0;
      for (int64_t i = row; i < last_row; ++i) {
        for (int64_t j = column; j < last_column; ++j) {
          const float magnitude = std::abs(x[i * width + j]);
          if (rule.skips_infinite && !std::isfinite(magnitude)) continue;
          if (magnitude > maximum || std::isnan(magnitude)) maximum = magnitude;
        }
      }
      float factor = maximum / rule.largest;
      if (std::isfinite(factor)) factor = std::min(factor, rule.most);
      for (int64_t i = row; i < last_row; ++i) {
        for (int64_t j = column; j < last_column; ++j) {
          y[i * width + j] = element_of(rule, x[i * width + j], factor);
        }
      }
      *scale++ = factor;
    }
  }
}

void store_elements(const BlockRule& rule, const at::Tensor& elements, StoredOutput& y) {
  y = rule.is_integer ? elements.to(at::kChar) : elements;
}

void dynamic_block_quant(const at::Tensor& x, BlockRule rule, StoredOutput& y, Output& scale) {
  std::vector<int64_t> shape = x.sizes().vec();
  const size_t dims = shape.size();
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  shape[dims - 2] = blocks_in(shape[dims - 2], rule.rows);
  shape[dims - 1] = blocks_in(shape[dims - 1], rule.columns);
  expect_shape("scaleOut", scale, shape);
  if (!y.is_written()) return;
  rule.skips_infinite = true;
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::zeros(x.sizes(), source.options());
  const at::Tensor scales = at::zeros(shape, source.options());
  const int64_t area = x.size(-2) * x.size(-1);
  const int64_t blocks = shape[dims - 2] * shape[dims - 1];
  for (int64_t i = 0; i < x.numel() / area; ++i) {
    quantize_rows(rule, source.const_data_ptr<float>() + i * area,
                  elements.mutable_data_ptr<float>() + i * area,
                  scales.mutable_data_ptr<float>() + i * blocks, 0, x.size(-2), x.size(-1));
  }
  store_elements(rule, elements, y);
  scale = scales;
}

// The scales of a group start in the row whose index is the number of whole blocks and of groups
// before the group.
void quantize_groups(const at::Tensor& x, const at::Tensor& ends, const BlockRule& rule,
                     StoredOutput& y, Output& scale) {
  check_bounds("groupList", ends, x.size(-2) + 1);
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::zeros(x.sizes(), source.options());
  const at::Tensor scales = at::zeros(scale->sizes(), source.options());
  const at::Tensor places = ends.to(at::kLong).contiguous();
  const int64_t area = x.size(-2) * x.size(-1);
  const int64_t width = scales.size(-1);
  for (int64_t matrix = 0; matrix < x.numel() / area; ++matrix) {
    int64_t begin = 0;
    for (int64_t group = 0; group < places.numel(); ++group) {
      const int64_t end = places.const_data_ptr<int64_t>()[group];
      EXPECT(end >= begin, "groupList has ", end, " after ", begin,
             ", expected numbers that do not decrease");
      const int64_t row = matrix * scales.size(-2) + begin / rule.rows + group;
      quantize_rows(rule, source.const_data_ptr<float>() + matrix * area,
                    elements.mutable_data_ptr<float>() + matrix * area,
                    scales.mutable_data_ptr<float>() + row * width, begin, end, x.size(-1));
      begin = end;
    }
  }
  y = elements;
  scale = scales;
}

void check_source(const at::Tensor& x, bool may_be_float) {
  const at::ScalarType dtype = x.scalar_type();
  EXPECT(at::isReducedFloatingType(dtype) || (may_be_float && dtype == at::kFloat), "x has dtype ",
         dtype_text(dtype), ", expected ",
         may_be_float ? "FLOAT16, BFLOAT16 or FLOAT" : "FLOAT16 or BFLOAT16");
}

void check_block_type(int64_t dtype, bool may_be_integer) {
  const bool is_float8 = dtype == ACL_FLOAT8_E5M2 || dtype == ACL_FLOAT8_E4M3FN;
  EXPECT(is_float8 || (may_be_integer && dtype == ACL_INT8), "dstType is ", dtype, ", expected ",
         may_be_integer ? "2 (INT8), " : "",
         "35 (FLOAT8_E5M2) or 36 (FLOAT8_E4M3FN), the ones that the host CANN emulates");
}

void grouped_block_quant(const at::Tensor& x, const at::Tensor& groups, double least_scale,
                         const std::string& mode, int64_t dtype, int64_t rows, int64_t columns,
                         int64_t group_list_type, StoredOutput& y, Output& scale) {
  check_source(x, /*may_be_float=*/false);
  check_block_type(dtype, /*may_be_integer=*/false);
  expect_one_of("rowBlockSize", rows, {1, 128, 256, 512});
  expect_dtype("groupList", groups, at::kInt);
  EXPECT(groups.dim() == 1 && groups.size(0) > 0, "groupList has shape ", groups.sizes(),
         ", expected one dimension with elements");
  EXPECT(group_list_type == 0, "groupListType is ", group_list_type, ", expected 0");
  const BlockRule rule = block_rule(x, least_scale, mode, dtype, rows, columns, y, scale);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[shape.size() - 2] = x.size(-2) / rule.rows + groups.size(0);
  shape[shape.size() - 1] = blocks_in(x.size(-1), rule.columns);
  expect_shape("scaleOut", scale, shape);
  if (y.is_written() && x.numel() > 0) quantize_groups(x, groups, rule, y, scale);
}

}  // namespace

ACLNN(DynamicBlockQuant, (In, x), (double, minScale), (char*, roundModeOptional),
      (int64_t, dstType), (int64_t, rowBlockSize), (int64_t, colBlockSize), (Stored<Out>, yOut),
      (Out, scaleOut)) {
  check_source(x, /*may_be_float=*/true);
  check_block_type(dstType, /*may_be_integer=*/true);
  expect_one_of("rowBlockSize", rowBlockSize, {1, 64, 128, 256, 512});
  dynamic_block_quant(x,
                      block_rule(x, minScale, roundModeOptional, dstType, rowBlockSize,
                                 colBlockSize, yOut, scaleOut),
                      yOut, scaleOut);
}
// dstTypeMax applies to HIFLOAT8 only.
ACLNN(DynamicBlockQuantV2, (In, x), (double, minScale), (char*, roundModeOptional),
      (int64_t, dstType), (int64_t, rowBlockSize), (int64_t, colBlockSize), (double, dstTypeMax),
      (Stored<Out>, yOut), (Out, scaleOut)) {
  check_source(x, /*may_be_float=*/true);
  check_block_type(dstType, /*may_be_integer=*/true);
  expect_one_of("rowBlockSize", rowBlockSize, {1, 128, 256, 512});
  EXPECT(dstTypeMax == 0, "dstTypeMax is ", dstTypeMax, ", expected 0 as yOut is not HIFLOAT8");
  dynamic_block_quant(x,
                      block_rule(x, minScale, roundModeOptional, dstType, rowBlockSize,
                                 colBlockSize, yOut, scaleOut),
                      yOut, scaleOut);
}

ACLNN(GroupedDynamicBlockQuant, (In, x), (In, groupList), (double, minScale),
      (char*, roundModeOptional), (int64_t, dstType), (int64_t, rowBlockSize),
      (int64_t, colBlockSize), (int64_t, groupListType), (Stored<Out>, yOut), (Out, scaleOut)) {
  grouped_block_quant(x, groupList, minScale, roundModeOptional, dstType, rowBlockSize,
                      colBlockSize, groupListType, yOut, scaleOut);
}
// dstTypeMax applies to HIFLOAT8 only.
ACLNN(GroupedDynamicBlockQuantV2, (In, x), (In, groupList), (double, minScale),
      (char*, roundModeOptional), (int64_t, dstType), (int64_t, rowBlockSize),
      (int64_t, colBlockSize), (int64_t, groupListType), (double, dstTypeMax), (Stored<Out>, yOut),
      (Out, scaleOut)) {
  EXPECT(dstTypeMax == 0, "dstTypeMax is ", dstTypeMax, ", expected 0 as yOut is not HIFLOAT8");
  grouped_block_quant(x, groupList, minScale, roundModeOptional, dstType, rowBlockSize,
                      colBlockSize, groupListType, yOut, scaleOut);
}

}  // namespace aclnn_host::quantized_block_quantization_rows
