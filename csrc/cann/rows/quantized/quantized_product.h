#pragma once

#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

// The parts of quantised matrix products: elements, exact sums, and scales in CANN's forms.
namespace aclnn_host {

// True for FLOAT8_E4M3FN and FLOAT8_E5M2.
bool is_float8(aclDataType dtype);
// True for INT4, and INT32, which packs eight of them.
bool is_int4(aclDataType dtype);
// True for FLOAT4_E2M1, and FLOAT, which packs eight of them.
bool is_float4(aclDataType dtype);

// Wraps a tensor of a type and a format that ATen has.
StoredTensor as_stored(const at::Tensor& tensor);

// Converts sign-extended FLOAT4_E2M1 codes in the INT8 tensor `nibbles` to values, and values to
// codes.
at::Tensor float4_values(const at::Tensor& nibbles);
at::Tensor float4_codes(const at::Tensor& values);

// A matrix (..., k, n). INT32 and FLOAT pack eight elements along the dimension that then fits k.
at::Tensor unpacked_weight(const char* name, const at::Tensor& weight, aclDataType dtype,
                           int64_t k);
// Unpacks INT32 or FLOAT elements, which pack eight 4-bit codes along the last dimension.
at::Tensor unpacked_rows(const at::Tensor& packed);

// The sums of INT8 products in INT32, with wrap-around.
at::Tensor exact_product(const at::Tensor& a, const at::Tensor& b);

// True if a scale has the bits that aclnnTransQuantParam makes.
bool holds_bits(const at::Tensor& scale);
// The scale and the offset, decoded if they are given as bits.
at::Tensor decoded_scale(const at::Tensor& scale);
at::Tensor decoded_offset(const at::Tensor& bits);

// value * scale + offset as INT8; without a given offset, that in the scale's bits is used.
at::Tensor quantized(const at::Tensor& values, const at::Tensor& scale,
                     const std::optional<at::Tensor>& offset);

// The rows of x in INT8, and their scales as a column.
struct QuantizedRows {
  at::Tensor x;
  at::Tensor scale;
};
// Quantises FLOAT16 rows, times `smooth`, with a given scale for each row ("pertoken") or for all
// rows ("pertensor"), or with 1/127 of the largest magnitude of each row. If the scale of a weight
// is given as bits, it includes x's scale. The names in error texts are those of the functions that
// quantise x.
QuantizedRows quantized_rows(const at::Tensor& x, const std::optional<at::Tensor>& smooth,
                             const std::optional<at::Tensor>& scale, const std::string& mode,
                             bool weight_has_bits);

// Repeats the number of each group `group` times along a dimension, to `size` elements in all.
at::Tensor spread(const at::Tensor& groups, int64_t dim, int64_t group, int64_t size);

// Expands paired MX scales, (pairs, columns, 2), to one for each of `rows` rows and each column.
at::Tensor spread_pairs(const at::Tensor& pairs, int64_t rows);

// Refuses matrices whose batches do not broadcast.
void expect_batches(const char* name, const at::Tensor& matrices, const char* other_name,
                    const at::Tensor& other);
// True if an argument is null or empty.
bool is_absent(const std::optional<at::Tensor>& tensor);
// Refuses an argument that is neither null nor empty.
void expect_absent(const char* name, const std::optional<at::Tensor>& tensor);
// Refuses tensors that are not in FRACTAL_NZ; of matrices also those with a dimension of size 1,
// which FRACTAL_NZ excludes.
void expect_blocked(const char* name, const StoredTensor& tensor);
void expect_blocked_matrix(const char* name, const StoredTensor& matrix);
// Refuses private formats; with `or_blocked`, all but FRACTAL_NZ.
void expect_format(const char* name, const StoredTensor& tensor, bool or_blocked = false);

}  // namespace aclnn_host
