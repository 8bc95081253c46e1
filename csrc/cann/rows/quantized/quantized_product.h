#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "cann/rows/row.h"

// What products of quantised matrices are made of: their elements, exact sums, and scales in the
// forms that CANN has for them.
namespace aclnn_host {

// FLOAT8_E4M3FN or FLOAT8_E5M2.
bool is_float8(aclDataType dtype);
// INT4, or INT32 that holds eight of them.
bool is_int4(aclDataType dtype);
// FLOAT4_E2M1, or FLOAT that holds eight of them.
bool is_float4(aclDataType dtype);

// A tensor that is stored as it is.
StoredTensor as_stored(const at::Tensor& tensor);

// The values of the INT8 tensor `nibbles`, which holds codes of FLOAT4_E2M1 with sign extended; and
// the codes of values.
at::Tensor float4_values(const at::Tensor& nibbles);
at::Tensor float4_codes(const at::Tensor& values);

// A matrix (..., k, n), where INT32 and FLOAT hold eight elements each along whichever dimension
// then fits k.
at::Tensor unpacked_weight(const char* name, const at::Tensor& weight, aclDataType dtype,
                           int64_t k);
// A tensor whose INT32 hold eight INT4 each along the last dimension.
at::Tensor unpacked_rows(const at::Tensor& packed);

// The sums of INT8 products in INT32, which wrap.
at::Tensor exact_product(const at::Tensor& a, const at::Tensor& b);

// Whether a scale is given as the bits that aclnnTransQuantParam makes.
bool holds_bits(const at::Tensor& scale);
// The numbers of a scale, and the offsets that such bits have, too.
at::Tensor decoded_scale(const at::Tensor& scale);
at::Tensor decoded_offset(const at::Tensor& bits);

// Rounded to the nearest integer, halves to the even one, and saturated. NaN becomes 0.
at::Tensor to_int8(const at::Tensor& values);
// value * scale + offset as INT8: the offset is a given one, else that of the scale's bits.
at::Tensor quantized(const at::Tensor& values, const at::Tensor& scale,
                     const std::optional<at::Tensor>& offset);

// The rows of x in INT8, and the scales by which they were divided, a column.
struct QuantizedRows {
  at::Tensor x;
  at::Tensor scale;
};
// Divides rows of FLOAT16, times `smooth`, by a scale that is given, of each row ("pertoken") or of
// all ("pertensor"), or by a 127th of the largest magnitude in each. Where the scale of a weight is
// given as bits, it has x's scale in it. The names in errors are those of the functions that
// quantise x.
QuantizedRows quantized_rows(const at::Tensor& x, const std::optional<at::Tensor>& smooth,
                             const std::optional<at::Tensor>& scale, const std::string& mode,
                             bool weight_has_bits);

// Each of the numbers of groups along a dimension for all `group` elements of its group, `size` in
// all.
at::Tensor spread(const at::Tensor& groups, int64_t dim, int64_t group, int64_t size);

// The scales of MX in pairs, (pairs, columns, 2), as one for each of `rows` rows and each column.
at::Tensor spread_pairs(const at::Tensor& pairs, int64_t rows);

// An argument that is null or empty.
bool is_absent(const std::optional<at::Tensor>& tensor);
// Refuses anything but a missing argument or one without elements.
void expect_absent(const char* name, const std::optional<at::Tensor>& tensor);
// Refuses matrices that are not in FRACTAL_NZ, or have a size of 1, which it does not take.
void expect_blocked_matrix(const char* name, const StoredTensor& matrix);
// Refuses private formats; with `or_blocked`, others than FRACTAL_NZ.
void expect_format(const char* name, const StoredTensor& tensor, bool or_blocked = false);

}  // namespace aclnn_host
