#include "cann/rows/quantized/mx_blocks.h"

#include <bit>

#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

constexpr int kLeastExponent = -127;
constexpr int kNoExponent = 128;  // NaN

struct ElementType {
  int largest_exponent, least_exponent, mantissa_bits;
  float largest;
};
ElementType type_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT8_E5M2: return {15, -14, 2, 57344};
    case ACL_FLOAT8_E4M3FN: return {8, -6, 3, 448};
    default: return {2, 0, 1, 6};  // FLOAT4_E2M1
  }
}

// The exponent of the least power of two that keeps the elements in range, from the bits of the
// exact scale.
int exponent_above(const MxRule& rule, float maximum) {
  const float largest = rule.largest != 0 ? rule.largest : type_of(rule.dtype).largest;
  const auto bits = std::bit_cast<uint32_t>(std::max(maximum, rule.least_maximum) / largest);
  const int biased = static_cast<int>(bits >> 23);
  const uint32_t mantissa = bits & 0x7fffff;
  const bool is_normal = biased > 0;
  const bool goes_up =
      is_normal ? biased < 254 && mantissa > 0 : rule.algorithm == 1 && mantissa > 0x400000;
  return biased + static_cast<int>(goes_up) - 127;
}

int scale_exponent(const MxRule& rule, float maximum) {
  if (!std::isfinite(maximum)) return kNoExponent;
  if (rule.algorithm != 0) return exponent_above(rule, maximum);
  if (maximum == 0) return kLeastExponent;
  return std::max(std::ilogb(maximum) - type_of(rule.dtype).largest_exponent, kLeastExponent);
}

double rounded(double value, const std::string& mode) {
  if (mode == "floor") return std::floor(value);
  return mode == "round" ? std::round(value) : std::nearbyint(value);
}

float element_of(const MxRule& rule, const ElementType& type, float x, int exponent) {
  const double value = std::ldexp(static_cast<double>(x), -exponent);
  if (value == 0) return static_cast<float>(value);
  const int unit = std::max(std::ilogb(value), type.least_exponent) - type.mantissa_bits;
  const double result = std::ldexp(rounded(std::ldexp(value, -unit), rule.rounding), unit);
  return std::clamp(static_cast<float>(result), -type.largest, type.largest);
}

}  // namespace

float quantize_block(const MxRule& rule, const MxBlock& block, const float* x, float* y) {
  const auto for_each = [&block](auto body) {
    for (int64_t row = 0; row < block.rows; ++row) {
      for (int64_t column = 0; column < block.columns; ++column) {
        body(row * block.row_stride + column * block.column_stride);
      }
    }
  };
  float maximum = 0;
  for_each([&](int64_t i) {
    const float magnitude = std::abs(x[i]);
    if (magnitude > maximum || std::isnan(magnitude)) maximum = magnitude;
  });
  const int exponent = scale_exponent(rule, maximum);
  const ElementType type = type_of(rule.dtype);
  const bool has_scale = exponent != kNoExponent;
  for_each([&](int64_t i) { y[i] = has_scale ? element_of(rule, type, x[i], exponent) : 0.0f; });
  return has_scale ? std::ldexp(1.0f, exponent) : std::numeric_limits<float>::quiet_NaN();
}

void expect_mx_source(const char* name, const at::Tensor& x, bool may_be_float, int64_t least_dims,
                      int64_t most_dims) {
  if (may_be_float) {
    expect_dtype(name, x, {at::kHalf, at::kBFloat16, at::kFloat});
  } else {
    expect_reduced_float(name, x);
  }
  expect_dims(name, x, least_dims, most_dims);
}

void expect_even_for_float4(const char* name, const at::Tensor& x, aclDataType dtype) {
  EXPECT(dtype != ACL_FLOAT4_E2M1 || x.size(-1) % 2 == 0, name, " has ", x.size(-1),
         " elements in its last dimension, expected an even number for FLOAT4");
}

MxRule mx_rule(const at::Tensor& x, const char* mode_name, const std::string& mode, int64_t dtype,
               int64_t algorithm, double largest, const StoredOutput& y, const char* dtype_name) {
  const bool is_float4 = dtype == ACL_FLOAT4_E2M1;
  expect_type(dtype_name, dtype, y, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN, ACL_FLOAT4_E2M1});
  const std::string rounding = mode.empty() ? "rint" : mode;
  EXPECT(rounding == "rint" || (is_float4 && (rounding == "floor" || rounding == "round")),
         mode_name, " is \"", mode,
         "\", expected \"rint\", or for FLOAT4 also \"floor\" or \"round\"");
  expect_shape(y.name(), y, x.sizes());
  expect_even_for_float4(y.name(), x, y.dtype());
  return {static_cast<aclDataType>(dtype), rounding, algorithm, static_cast<float>(largest)};
}

void expect_mx_algorithm(int64_t algorithm, int64_t dtype, bool has_second) {
  const bool is_float4 = dtype == ACL_FLOAT4_E2M1;
  EXPECT(algorithm == 0 || (algorithm == 1 && !is_float4) ||
             (algorithm == 2 && is_float4 && has_second),
         "scaleAlg is ", algorithm, ", expected 0, or 1 for FLOAT8",
         has_second ? ", or 2 for FLOAT4" : "");
}

int64_t mx_axis(const at::Tensor& x, int64_t axis) {
  expect_range("axis", axis, -x.dim(), x.dim() - 1);
  return axis < 0 ? axis + x.dim() : axis;
}

std::vector<int64_t> mx_scale_shape(const at::Tensor& x, int64_t axis, int64_t block_size) {
  std::vector<int64_t> shape = x.sizes().vec();
  int64_t& size = shape[static_cast<size_t>(axis)];
  const int64_t blocks = size / block_size + (size % block_size != 0 ? 1 : 0);
  size = (blocks + 1) / 2;
  shape.push_back(2);
  return shape;
}

void expect_mx_scale(const char* name, const at::Tensor& scale, aclDataType dtype,
                     at::IntArrayRef shape) {
  expect_type(name, dtype, {ACL_FLOAT8_E8M0});
  expect_shape(name, scale, shape);
}

MxValues mx_values(const at::Tensor& x, int64_t axis, int64_t block_size, const MxRule& rule) {
  const std::vector<int64_t> shape = mx_scale_shape(x, axis, block_size);
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::empty_like(source);
  // The scale that pads to an even number is 0 in memory, which stands for 2 to the power of -127.
  const at::Tensor scales = at::zeros(shape, source.options());
  const auto* from = source.const_data_ptr<float>();
  auto* to = elements.mutable_data_ptr<float>();
  auto* to_scale = scales.mutable_data_ptr<float>();
  const int64_t size = x.size(axis);
  const int64_t pairs = shape[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < x.dim(); ++d) inner *= x.size(d);
  const int64_t outer = x.numel() / size / inner;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t first = 0; first < size; first += block_size) {
      const int64_t k = first / block_size;
      const MxBlock block{1, 0, std::min(block_size, size - first), inner};
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t offset = (o * size + first) * inner + i;
        to_scale[((o * pairs + k / 2) * inner + i) * 2 + k % 2] =
            quantize_block(rule, block, from + offset, to + offset);
      }
    }
  }
  return {elements, scales};
}

void quantize_mx(const at::Tensor& x, int64_t axis, int64_t block_size, const MxRule& rule,
                 StoredOutput& y, StoredOutput& scale) {
  const std::vector<int64_t> shape = mx_scale_shape(x, axis, block_size);
  expect_mx_scale(scale.name(), scale, scale.dtype(), shape);
  if (!y.is_written() || x.numel() == 0) return;
  const MxValues values = mx_values(x, axis, block_size, rule);
  y = values.elements;
  scale = values.scales;
}

std::vector<int64_t> mx_group_scale_shape(const at::Tensor& x, int64_t groups) {
  return {x.size(0) / (2 * kMxBlock) + groups, x.size(1), 2};
}

void quantize_mx_groups(const at::Tensor& x, const std::vector<int64_t>& ends, const MxRule& rule,
                        StoredOutput& y, StoredOutput& scale) {
  const at::Tensor source = x.to(at::kFloat).contiguous();
  const at::Tensor elements = at::zeros(x.sizes(), source.options());
  const at::Tensor scales = at::zeros(scale->sizes(), source.options());
  const int64_t columns = x.size(1);
  int64_t begin = 0;
  int64_t group = 0;
  for (const int64_t end : ends) {
    const int64_t first_pair = begin / (2 * kMxBlock) + group++;
    for (int64_t row = begin; row < end; row += kMxBlock) {
      const int64_t k = (row - begin) / kMxBlock;
      const MxBlock block{1, 0, std::min(kMxBlock, end - row), columns};
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t offset = row * columns + column;
        const int64_t pair = (first_pair + k / 2) * columns + column;
        scales.mutable_data_ptr<float>()[pair * 2 + k % 2] =
            quantize_block(rule, block, source.const_data_ptr<float>() + offset,
                           elements.mutable_data_ptr<float>() + offset);
      }
    }
    begin = end;
  }
  y = elements;
  scale = scales;
}

}  // namespace aclnn_host
