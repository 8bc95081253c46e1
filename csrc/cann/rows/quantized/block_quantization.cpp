// Quantisation of matrix blocks to FLOAT8 and INT8, with a FLOAT scale for each block.

#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/quantized/row_groups.h"
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

// Checks the arguments that all versions have. `row` is a row's struct.
template <class Version>
BlockRule block_rule(const Version& row, std::initializer_list<int64_t> block_rows) {
  expect_one_of("rowBlockSize", row.rowBlockSize, block_rows);
  expect_one_of("colBlockSize", row.colBlockSize, {64, 128, 192, 256});
  expect_dims("x", row.x, 2, 3);
  expect_shape("yOut", row.yOut, row.x.sizes());
  expect_dtype("scaleOut", row.scaleOut, at::kFloat);
  EXPECT(row.minScale >= 0, "minScale is ", row.minScale, ", expected 0 or more");
  if constexpr (requires { row.dstTypeMax; }) {  // applies to HIFLOAT8 only
    EXPECT(row.dstTypeMax == 0, "dstTypeMax is ", row.dstTypeMax,
           ", expected 0 as yOut is not HIFLOAT8");
  }
  const bool is_integer = row.yOut.dtype() == ACL_INT8;
  const std::string& mode = row.roundModeOptional;
  EXPECT(mode.empty() || mode == "rint" || (is_integer && mode == "round"),
         "roundModeOptional is \"", mode, "\", expected \"rint\", or for INT8 also \"round\"");
  const float most = row.minScale > 0 ? static_cast<float>(1 / row.minScale.value())
                                      : std::numeric_limits<float>::infinity();
  return {static_cast<float>(largest_of(row.yOut.dtype())),
          is_integer,
          mode != "round",
          most,
          false,
          row.rowBlockSize,
          row.colBlockSize};
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

// Quantises the groups of rows of each matrix. The scales of a group start in the row whose index
// is the number of whole blocks and of groups before the group.
void quantize_groups(const at::Tensor& x, const std::vector<int64_t>& ends, const BlockRule& rule,
                     StoredOutput& y, Output& scale) {
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::zeros(x.sizes(), source.options());
  const at::Tensor scales = at::zeros(scale->sizes(), source.options());
  const int64_t area = x.size(-2) * x.size(-1);
  const int64_t width = scales.size(-1);
  for (int64_t matrix = 0; matrix < x.numel() / area; ++matrix) {
    int64_t begin = 0;
    int64_t row = matrix * scales.size(-2);
    for (const int64_t end : ends) {
      quantize_rows(rule, source.const_data_ptr<float>() + matrix * area,
                    elements.mutable_data_ptr<float>() + matrix * area,
                    scales.mutable_data_ptr<float>() + (row + begin / rule.rows) * width, begin,
                    end, x.size(-1));
      begin = end;
      ++row;
    }
  }
  y = rule.is_integer ? elements.to(at::kChar) : elements;
  scale = scales;
}

// The shape of the scales, with this many of them along the rows.
std::vector<int64_t> scale_shape(const at::Tensor& x, int64_t rows, int64_t block_columns) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[shape.size() - 2] = rows;
  shape.back() = blocks_in(x.size(-1), block_columns);
  return shape;
}

template <class Version>
void dynamic_block_quant(Version& row, std::initializer_list<int64_t> block_rows) {
  const at::Tensor& x = row.x;
  expect_dtype("x", x, {at::kHalf, at::kBFloat16, at::kFloat});
  expect_type("dstType", row.dstType, row.yOut, {ACL_INT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  BlockRule rule = block_rule(row, block_rows);
  rule.skips_infinite = true;
  expect_elements("x", x);
  expect_shape("scaleOut", row.scaleOut,
               scale_shape(x, blocks_in(x.size(-2), rule.rows), rule.columns));
  if (row.yOut.is_written()) quantize_groups(x, {x.size(-2)}, rule, row.yOut, row.scaleOut);
}

template <class Version>
void grouped_block_quant(Version& row) {
  const at::Tensor& x = row.x;
  const at::Tensor& groups = row.groupList;
  expect_reduced_float("x", x);
  expect_type("dstType", row.dstType, row.yOut, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_dtype("groupList", groups, at::kInt);
  expect_group_list("groupList", groups);
  expect_one_of("groupListType", row.groupListType, {0});
  const BlockRule rule = block_rule(row, {1, 128, 256, 512});
  expect_shape("scaleOut", row.scaleOut,
               scale_shape(x, x.size(-2) / rule.rows + groups.size(0), rule.columns));
  if (!row.yOut.is_written()) return;
  if (x.numel() == 0) {
    row.scaleOut = at::zeros(row.scaleOut->sizes());
    return;
  }
  quantize_groups(x, group_ends("groupList", groups, x.size(-2)), rule, row.yOut, row.scaleOut);
}

}  // namespace

ACLNN_STRUCT(DynamicBlockQuant, (In, x), (double, minScale), (char*, roundModeOptional),
             (int64_t, dstType), (int64_t, rowBlockSize), (int64_t, colBlockSize),
             (Stored<Out>, yOut), (Out, scaleOut)) {
  dynamic_block_quant(*this, {1, 64, 128, 256, 512});
}
ACLNN_STRUCT(DynamicBlockQuantV2, (In, x), (double, minScale), (char*, roundModeOptional),
             (int64_t, dstType), (int64_t, rowBlockSize), (int64_t, colBlockSize),
             (double, dstTypeMax), (Stored<Out>, yOut), (Out, scaleOut)) {
  dynamic_block_quant(*this, {1, 128, 256, 512});
}

ACLNN_STRUCT(GroupedDynamicBlockQuant, (In, x), (In, groupList), (double, minScale),
             (char*, roundModeOptional), (int64_t, dstType), (int64_t, rowBlockSize),
             (int64_t, colBlockSize), (int64_t, groupListType), (Stored<Out>, yOut),
             (Out, scaleOut)) {
  grouped_block_quant(*this);
}
ACLNN_STRUCT(GroupedDynamicBlockQuantV2, (In, x), (In, groupList), (double, minScale),
             (char*, roundModeOptional), (int64_t, dstType), (int64_t, rowBlockSize),
             (int64_t, colBlockSize), (int64_t, groupListType), (double, dstTypeMax),
             (Stored<Out>, yOut), (Out, scaleOut)) {
  grouped_block_quant(*this);
}

}  // namespace aclnn_host::quantized_block_quantization_rows
