#pragma once

#include <vector>

#include "cann/rows/quantized/quantized_values.h"

// Shared by normalisations followed by quantisation. Sums, statistics and norms are FP32 and not
// rounded in between. Quantisation to integers rounds to nearest, ties to even, and saturates, as
// does that to FLOAT8; NaN becomes the integer 0.
namespace aclnn_host {

inline void store_quantized(StoredOutput& y, const at::Tensor& x) {
  expect_values(y, x.sizes());
  quantize_saturated(y, x);
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

// Parameters of the last dimension of x, [size] or [1, size], as [size] in the type of the
// computation.
inline at::Tensor last_parameters(const char* name, const at::Tensor& parameters,
                                  const at::Tensor& x) {
  const int64_t size = x.size(-1);
  const bool is_row = parameters.dim() == 2 && parameters.size(0) == 1;
  if (!is_row || parameters.size(1) != size) expect_shape(name, parameters, {size});
  return wide(parameters).reshape({size});
}

// The last dimensions of x that gamma covers.
inline std::vector<int64_t> normalized_dims(const at::Tensor& x, const at::Tensor& gamma) {
  const int64_t count = gamma.dim();
  expect_dims("gamma", gamma, 1, x.dim());
  expect_shape("gamma", gamma, x.sizes().slice(static_cast<size_t>(x.dim() - count)));
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
