#pragma once

#include "cann/rows/row.h"

// MX quantisation: the elements of a block, FLOAT8 or FLOAT4, share a FLOAT8_E8M0 scale, a power of
// two. A block with infinity or NaN has the scale NaN and elements 0.
namespace aclnn_host {

inline constexpr int64_t kMxBlock = 32;  // elements of a block, by default

// The quantisation of the blocks of a call.
struct MxRule {
  aclDataType dtype;          // of the elements
  std::string rounding;       // "rint", "floor" or "round"
  int64_t algorithm;          // scaleAlg of the call: 0, 1 or 2
  float largest;              // if not 0, the limit of a block's largest quantised element
  float least_maximum = 0.0;  // a lower bound for a block's largest magnitude
};

// The scale and the elements of one block. Its rows and columns are row_stride and column_stride
// elements apart.
struct MxBlock {
  int64_t rows, row_stride, columns, column_stride;
};
float quantize_block(const MxRule& rule, const MxBlock& block, const float* x, float* y);

// Checks the tensor to quantise.
void expect_mx_source(const char* name, const at::Tensor& x, bool may_be_float, int64_t least_dims,
                      int64_t most_dims);
void expect_even_for_float4(const char* name, const at::Tensor& x, aclDataType dtype);
// Checks dstType, the rounding mode and y, which has the shape of x. An absent mode is "rint".
MxRule mx_rule(const at::Tensor& x, const char* mode_name, const std::string& mode, int64_t dtype,
               int64_t algorithm, double largest, const StoredOutput& y,
               const char* dtype_name = "dstType");

// Checks scaleAlg; `has_second` says that the function knows algorithm 2.
void expect_mx_algorithm(int64_t algorithm, int64_t dtype, bool has_second);

int64_t mx_axis(const at::Tensor& x, int64_t axis);
// The shape of the scales of blocks along a dimension of x: pairs of scales are the last dimension.
std::vector<int64_t> mx_scale_shape(const at::Tensor& x, int64_t axis, int64_t block_size);
void expect_mx_scale(const char* name, const at::Tensor& scale, aclDataType dtype,
                     at::IntArrayRef shape);

// x in blocks along a dimension: the quantised elements, and the scales in the shape of
// mx_scale_shape(), both in FLOAT.
struct MxValues {
  at::Tensor elements, scales;
};
MxValues mx_values(const at::Tensor& x, int64_t axis, int64_t block_size, const MxRule& rule);
// Quantises x in blocks along a dimension. The scales' shapes have been checked.
void quantize_mx(const at::Tensor& x, int64_t axis, int64_t block_size, const MxRule& rule,
                 StoredOutput& y, StoredOutput& scale);

// The shape of the scales of blocks along the rows of a matrix within each of this many groups.
std::vector<int64_t> mx_group_scale_shape(const at::Tensor& x, int64_t groups);
// Quantises the rows of each group in blocks of 32. The scales of a group start in the pair of rows
// whose index is the number of whole pairs of blocks and of groups before the group.
void quantize_mx_groups(const at::Tensor& x, const std::vector<int64_t>& ends, const MxRule& rule,
                        StoredOutput& y, StoredOutput& scale);

}  // namespace aclnn_host
