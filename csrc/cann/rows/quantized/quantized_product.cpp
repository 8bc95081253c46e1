#include "cann/rows/quantized/quantized_product.h"

#include "cann/rows/engine/stored.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host {

bool is_float8(aclDataType dtype) {
  return dtype == ACL_FLOAT8_E4M3FN || dtype == ACL_FLOAT8_E5M2;
}
bool is_int4(aclDataType dtype) {
  return dtype == ACL_INT4 || dtype == ACL_INT32;
}
bool is_float4(aclDataType dtype) {
  return dtype == ACL_FLOAT4_E2M1 || dtype == ACL_FLOAT;
}

StoredTensor as_stored(const at::Tensor& tensor) {
  return {tensor, acl_type(tensor.scalar_type()), ACL_FORMAT_ND};
}

at::Tensor float4_values(const at::Tensor& nibbles) {
  const at::Tensor table =
      at::tensor({0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f}).to(nibbles.device());
  const at::Tensor magnitude =
      table.index_select(0, nibbles.bitwise_and(7).to(at::kLong).flatten()).view(nibbles.sizes());
  return at::where(nibbles.lt(0), -magnitude, magnitude);
}

at::Tensor float4_codes(const at::Tensor& values) {
  const at::Tensor middles =
      at::tensor({0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f}).to(values.device());
  const at::Tensor code = at::bucketize(values.abs(), middles);
  return at::where(values.signbit(), code - 8, code).to(at::kChar);
}

at::Tensor unpacked_rows(const at::Tensor& packed) {
  std::vector<int64_t> shape = packed.sizes().vec();
  shape.back() *= 8;
  return unpack_int4(packed.contiguous().view(at::kByte)).view(shape);
}

at::Tensor unpacked_weight(const char* name, const at::Tensor& weight, aclDataType dtype,
                           int64_t k) {
  if (dtype != ACL_INT32 && dtype != ACL_FLOAT) return weight;
  const bool is_along_k = weight.size(-2) != k;
  EXPECT(!is_along_k || weight.size(-2) * 8 == k, name, " has ", weight.size(-2), " rows of ",
         dtype_name(dtype), ", expected ", k, " or, where eight elements of 4 bits lie along ",
         "that dimension, ", k / 8);
  const at::Tensor nibbles = is_along_k ? unpacked_rows(weight.transpose(-1, -2)).transpose(-1, -2)
                                        : unpacked_rows(weight);
  return dtype == ACL_FLOAT ? float4_values(nibbles) : nibbles;
}

at::Tensor exact_product(const at::Tensor& a, const at::Tensor& b) {
  // A sum of this many products has a magnitude of at most 2^24, as have its partial sums, so FLOAT
  // is exact.
  constexpr int64_t kMostProducts = 1024;
  const auto part = [&](int64_t begin) {
    const int64_t size = std::min(kMostProducts, a.size(-1) - begin);
    return at::matmul(a.narrow(-1, begin, size).to(at::kFloat),
                      b.narrow(-2, begin, size).to(at::kFloat))
        .to(at::kInt);
  };
  at::Tensor sums = part(0);
  for (int64_t begin = kMostProducts; begin < a.size(-1); begin += kMostProducts) {
    sums.add_(part(begin));
  }
  return sums;
}

bool holds_bits(const at::Tensor& scale) {
  return scale.scalar_type() == at::kLong || scale.scalar_type() == at::kUInt64;
}

at::Tensor decoded_scale(const at::Tensor& scale) {
  if (!holds_bits(scale)) return wide(scale);
  return as_movable(scale).to(at::kInt).view(at::kFloat);
}

at::Tensor decoded_offset(const at::Tensor& bits) {
  const at::Tensor code = as_movable(bits).bitwise_right_shift(37).bitwise_and(0x1FF);
  return at::where(code >= 256, code - 512, code).to(at::kDouble);
}

at::Tensor quantized(const at::Tensor& values, const at::Tensor& scale,
                     const std::optional<at::Tensor>& offset) {
  const at::Tensor rounded = at::round(values.to(at::kDouble) * decoded_scale(scale));
  if (offset) return to_int8(rounded + at::round(wide(*offset)));
  return to_int8(holds_bits(scale) ? rounded + decoded_offset(scale) : rounded);
}

QuantizedRows quantized_rows(const at::Tensor& x, const std::optional<at::Tensor>& smooth,
                             const std::optional<at::Tensor>& scale, const std::string& mode,
                             bool weight_has_bits) {
  expect_text("xQuantMode", mode, {"pertoken", "pertensor"});
  const bool by_rows = mode == "pertoken";
  at::Tensor values = wide(x);
  if (!is_absent(smooth)) {
    expect_tensor("smoothScaleOptional", *smooth, at::kHalf, {x.size(1)});
    values = values * wide(*smooth);
  }
  EXPECT(by_rows || !is_absent(scale),
         "xQuantMode is \"pertensor\", expected \"pertoken\" without xScaleOptional");
  EXPECT(!weight_has_bits || !by_rows,
         "weightScale has dtype INT64, expected FLOAT with the mode \"pertoken\"");
  at::Tensor divisor;
  if (is_absent(scale)) {
    divisor = at::amax(values.abs(), -1, /*keepdim=*/true) / 127;
  } else {
    expect_dtype("xScaleOptional", *scale, weight_has_bits ? at::kHalf : at::kFloat);
    expect_shape("xScaleOptional", *scale, {by_rows ? x.size(0) : 1});
    divisor = wide(*scale).unsqueeze(-1);
  }
  return {to_int8(values / divisor), divisor};
}

at::Tensor spread(const at::Tensor& groups, int64_t dim, int64_t group, int64_t size) {
  return groups.repeat_interleave(group, dim).narrow(dim, 0, size);
}

at::Tensor spread_pairs(const at::Tensor& pairs, int64_t rows) {
  constexpr int64_t kBlock = 32;
  return spread(pairs.to(at::kDouble).transpose(1, 2).flatten(0, 1), 0, kBlock, rows);
}

void expect_batches(const char* name, const at::Tensor& matrices, const char* other_name,
                    const at::Tensor& other) {
  for (int64_t dim = 3; dim <= std::min(matrices.dim(), other.dim()); ++dim) {
    const int64_t size = matrices.size(-dim), expected = other.size(-dim);
    EXPECT(size == expected || size == 1 || expected == 1, name, " has shape ", matrices.sizes(),
           ", expected a batch that broadcasts with that of ", other_name, ", which has shape ",
           other.sizes());
  }
}

bool is_absent(const std::optional<at::Tensor>& tensor) {
  return !tensor || tensor->numel() == 0;
}

void expect_absent(const char* name, const std::optional<at::Tensor>& tensor) {
  EXPECT(is_absent(tensor), name, " has shape ", tensor ? tensor->sizes() : at::IntArrayRef(),
         ", expected null in this case");
}

void expect_blocked(const char* name, const StoredTensor& tensor) {
  EXPECT(is_fractal_nz(tensor.format), name, " has format ", static_cast<int>(tensor.format),
         ", expected FRACTAL_NZ (", static_cast<int>(ACL_FORMAT_FRACTAL_NZ),
         "); convert it with aclnnTransMatmulWeight or aclnnNpuFormatCast");
}

void expect_blocked_matrix(const char* name, const StoredTensor& matrix) {
  expect_blocked(name, matrix);
  const at::Tensor& elements = matrix.elements;
  EXPECT(elements.dim() < 2 || (elements.size(-1) != 1 && elements.size(-2) != 1), name,
         " has shape ", elements.sizes(), ", expected last two dimensions other than 1");
}

void expect_format(const char* name, const StoredTensor& tensor, bool or_blocked) {
  EXPECT(!is_private(tensor.format) || (or_blocked && is_fractal_nz(tensor.format)), name,
         " has format ", static_cast<int>(tensor.format), ", expected ND",
         or_blocked ? " or FRACTAL_NZ" : "");
}

}  // namespace aclnn_host
