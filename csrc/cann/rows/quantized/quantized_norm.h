#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/engine/stored.h"
#include "cann/rows/row.h"

// Shared by normalisations followed by quantisation. Sums, statistics and norms are FP32 and not
// rounded in between. Quantisation to integers rounds to nearest, ties to even, and saturates, as
// does that to FLOAT8; NaN becomes the integer 0.
namespace aclnn_host {

using OptionalTensor = std::optional<at::Tensor>;

// The largest number of a type, to which dynamic scales map the largest element of a row. INT32
// stands for eight INT4.
inline double largest(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT4:
    case ACL_INT32: return 7;
    case ACL_FLOAT8_E4M3FN: return 448;
    case ACL_FLOAT8_E5M2: return 57344;
    default: return 127;
  }
}

inline bool is_float8(aclDataType dtype) {
  return dtype == ACL_FLOAT8_E4M3FN || dtype == ACL_FLOAT8_E5M2;
}

inline void expect_quantized(const char* name, aclDataType dtype, bool with_int4) {
  const bool is_int4 = dtype == ACL_INT4 || dtype == ACL_INT32;
  EXPECT(dtype == ACL_INT8 || is_float8(dtype) || (with_int4 && is_int4), name, " has dtype ",
         dtype_name(dtype), ", expected ", with_int4 ? "INT4, INT32, " : "",
         "INT8, FLOAT8_E4M3FN or FLOAT8_E5M2");
}

// Converts numbers to elements of a quantised type; INT32 packs eight INT4.
inline at::Tensor quantized(const at::Tensor& x, aclDataType dtype) {
  const double high = largest(dtype);
  if (is_float8(dtype)) return at::clamp(x, -high, high);
  const at::Tensor integers =
      at::clamp(at::nan_to_num(at::round(x), 0.0, high, -high - 1), -high - 1, high).to(at::kChar);
  if (dtype != ACL_INT32) return integers;
  std::vector<int64_t> shape = x.sizes().vec();
  EXPECT(!shape.empty() && shape.back() % 8 == 0, "x has shape ", x.sizes(),
         ", expected a multiple of 8 in the last dimension");
  shape.back() /= 8;
  return pack_int4(integers.contiguous()).view(at::kInt).reshape(shape);
}

// INT4 requires an even last dimension, as the documents say.
inline void store_quantized(StoredOutput& y, const at::Tensor& x) {
  EXPECT(y.dtype() != ACL_INT4 || x.size(-1) % 2 == 0, "x has shape ", x.sizes(),
         ", expected an even last dimension as ", y.name(), " is INT4");
  y = quantized(x, y.dtype());
}

// Quantises with given parameters, which have the shape of the last dimensions of x or one element.
inline at::Tensor scaled(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& offset,
                         bool divides) {
  const at::Tensor result = divides ? x / wide(scale) : x * wide(scale);
  return offset ? result + offset->to(result.scalar_type()) : result;
}

struct RowQuotients {
  at::Tensor quotients, scales;
};
// Quantises each row by its largest magnitude. A row of zeros stays zero.
inline RowQuotients scaled_by_rows(const at::Tensor& y, const OptionalTensor& smooth, double high) {
  const at::Tensor rows = smooth ? y * wide(*smooth) : y;
  const at::Tensor scales = at::amax(rows.abs(), -1, /*keepdim=*/true) / high;
  return {at::where(scales == 0, at::zeros_like(rows), rows / scales), scales.squeeze(-1)};
}

inline void expect_elements(const at::Tensor& x) {
  EXPECT(x.dim() > 0 && x.numel() > 0, "x has shape ", x.sizes(),
         ", expected a tensor with elements");
}

inline void expect_half(const char* name, const at::Tensor& x) {
  EXPECT(at::isReducedFloatingType(x.scalar_type()), name, " has dtype ",
         dtype_text(x.scalar_type()), ", expected FLOAT16 or BFLOAT16");
}

// Requires the type of x or FLOAT.
inline void expect_dtype_or_float(const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  if (tensor.scalar_type() != at::kFloat) expect_dtype(name, tensor, x);
}

inline void expect_offset(const char* name, const OptionalTensor& offset, const at::Tensor& scale,
                          at::ScalarType integer) {
  if (!offset) return;
  expect_shape(name, *offset, scale.sizes());
  if (offset->scalar_type() != integer) expect_dtype(name, *offset, scale);
}

// Parameters of the last dimension of x, [size] or [1, size], as [size].
inline at::Tensor of_last(const char* name, const at::Tensor& parameters, const at::Tensor& x) {
  const int64_t size = x.size(-1);
  const bool is_row = parameters.dim() == 2 && parameters.size(0) == 1;
  if (!is_row || parameters.size(1) != size) expect_shape(name, parameters, {size});
  return parameters.reshape({size});
}

// The last dimensions of x that gamma covers.
inline std::vector<int64_t> normalized_dims(const at::Tensor& x, const at::Tensor& gamma) {
  const int64_t count = gamma.dim();
  EXPECT(count >= 1 && count <= x.dim() &&
             gamma.sizes() == x.sizes().slice(static_cast<size_t>(x.dim() - count)),
         "gamma has shape ", gamma.sizes(), ", expected the last dimensions of ", x.sizes());
  std::vector<int64_t> dims;
  for (int64_t dim = -count; dim < 0; ++dim) dims.push_back(dim);
  return dims;
}

inline at::Tensor reciprocal_root(const at::Tensor& x, double epsilon, at::IntArrayRef dims) {
  return (x.square().mean(dims, /*keepdim=*/true) + epsilon).rsqrt();
}
inline at::Tensor layer_norm(const at::Tensor& x, double epsilon, at::IntArrayRef dims) {
  const at::Tensor centred = x - x.mean(dims, /*keepdim=*/true);
  return centred * reciprocal_root(centred, epsilon, dims);
}

}  // namespace aclnn_host
