// Tokens that are quantised and written to their slots in caches in pages: keys of attention with
// compressed keys, and those of the lightning indexer.

#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_quantized_token_cache_rows {

namespace {

constexpr float kLeastMaximum = 1e-4f;

// Checks a cache of (pages, tokens of a page, 1, elements).
void expect_cache(const char* name, const at::Tensor& cache, int64_t least) {
  expect_dims(name, cache, 4);
  expect_elements(name, cache);
  EXPECT(cache.size(2) == 1 && cache.size(3) >= least, name, " has shape ", cache.sizes(),
         ", expected (pages, tokens, 1, ", least, " or more)");
}

// Checks the tokens, and returns their slots in one dimension.
at::Tensor checked_slots(const at::Tensor& x, const at::Tensor& slots, const at::Tensor& cache) {
  expect_elements("x", x);
  expect_shape("slotMapping", slots, leading(x));
  check_bounds("slotMapping", slots, cache.size(0) * cache.size(1), -1);
  return slots.flatten().to(at::kLong);
}

// The cache with the first elements of some tokens replaced.
at::Tensor with_tokens(const Output& cache, const at::Tensor& slots, const at::Tensor& tokens) {
  return updated(cache, slots, tokens.unsqueeze(1),
                 [&](const at::Tensor& all) { return all.narrow(3, 0, tokens.size(-1)); });
}

// The powers of two that are not less than positive numbers.
at::Tensor rounded_up(const at::Tensor& numbers) {
  const auto [mantissa, exponent] = at::frexp(numbers);
  return at::ldexp(at::ones_like(numbers), exponent - (mantissa == 0.5).to(exponent.scalar_type()));
}

// The largest magnitude of each group of the last dimension, divided by the largest quantised
// number.
at::Tensor scales_of(const at::Tensor& groups, double largest) {
  return at::amax(groups.abs(), -1, /*keepdim=*/true).clamp_min(kLeastMaximum) * (1 / largest);
}

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.contiguous().view(at::kByte);
}

// Quantised elements and a scale for each row, or each block of 32.
struct Quantized {
  at::Tensor elements;
  at::Tensor scales;
};

// FLOAT8 with scales of blocks that are powers of two.
Quantized in_float8_blocks(const at::Tensor& rows, aclDataType dtype) {
  const at::Tensor blocks = rows.unflatten(1, {-1, kMxBlock});
  const at::Tensor scales = rounded_up(scales_of(blocks, largest_of(dtype)));
  return {(blocks / scales).flatten(1), scales.squeeze(-1)};
}

Quantized in_float4_blocks(const at::Tensor& rows) {
  const at::Tensor source = rows.contiguous();
  const Quantized result{at::zeros_like(source),
                         at::zeros({rows.size(0), rows.size(1) / kMxBlock}, rows.options())};
  if (!has_values(rows)) return result;
  const MxRule rule{ACL_FLOAT4_E2M1, "rint", 0, 0};
  const auto* const from = source.const_data_ptr<float>();
  auto* const to = result.elements.mutable_data_ptr<float>();
  auto* const scale = result.scales.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.scales.numel(); ++i) {
    const MxBlock block{1, 0, kMxBlock, 1};
    scale[i] = quantize_block(rule, block, from + i * kMxBlock, to + i * kMxBlock);
  }
  return result;
}

// FLOAT8 with a scale of each row. Numbers that are not finite do not count in the maximum, and
// stay as they are; so do those of a row of zeros.
Quantized by_rows(const at::Tensor& rows, aclDataType dtype, bool rounds) {
  const at::Tensor maximum =
      at::amax(rows.abs().masked_fill(~rows.isfinite(), 0), 1, /*keepdim=*/true);
  const at::Tensor exact = maximum * (1 / largest_of(dtype));
  const at::Tensor scales = rounds ? at::where(exact == 0, exact, rounded_up(exact)) : exact;
  const at::Tensor quotient = rows * scales.reciprocal();
  return {at::where(quotient.isfinite(), quotient, rows), scales};
}

}  // namespace

// A token's bytes are its last 64 elements in BFLOAT16, the others in FLOAT8_E4M3FN in groups of
// 64, and the scales of the groups: in quantMode 0 in BFLOAT16, followed by zeros up to a multiple
// of 32 bytes, in quantMode 1 their exponents.
// Behaviour of KvCompressEpilog: A group's largest magnitude counts as 1e-4 or more. In quantMode 1
// without roundScale, elements are divided by the exact scale, of which the exponent is stored.
// Limit of KvCompressEpilog, IndexerQuantCache: quantMode 2 is refused with 161002, because the
// host CANN does not emulate HIFLOAT8.
ACLNN(KvCompressEpilog, (InOut, cacheRef), (In, x), (In, slotMapping),
      (Unused<int64_t>, quantGroupSize, "counts in quantMode 2 only; groups have 64 elements"),
      (int64_t, quantMode), (bool, roundScale),
      (Unused<float>, xScale, "counts in quantMode 2 only")) {
  constexpr int64_t kGroup = 64, kMostSize = 8192, kAlignment = 32;
  expect_dtype("cacheRef", cacheRef, at::kByte);
  expect_dtype("x", x, at::kBFloat16);
  expect_dtype("slotMapping", slotMapping, {at::kInt, at::kLong});
  expect_dims("x", x, 2, 8);
  const int64_t size = x.size(-1), rest = size - kGroup, groups = rest / kGroup;
  EXPECT(size % kGroup == 0 && rest > 0 && size <= kMostSize, "x has shape ", x.sizes(),
         ", expected a multiple of ", kGroup, " elements from ", 2 * kGroup, " to ", kMostSize);
  expect_one_of("quantMode", quantMode, {0, 1}, "; the host CANN does not emulate HIFLOAT8");
  const int64_t used = rest + kGroup * 2 + groups * (quantMode == 0 ? 2 : 1);
  const int64_t padding = quantMode == 0 ? (kAlignment - used % kAlignment) % kAlignment : 0;
  expect_cache("cacheRef", cacheRef, used + padding);
  const at::Tensor slots = checked_slots(x, slotMapping, cacheRef);

  const at::Tensor rows = x.reshape({-1, size});
  const at::Tensor rope = bytes_of(rows.narrow(1, rest, kGroup));
  const at::Tensor grouped = wide(rows.narrow(1, 0, rest)).unflatten(1, {groups, kGroup});
  const double largest = largest_of(ACL_FLOAT8_E4M3FN);
  at::Tensor scales = scales_of(grouped, largest);
  if (roundScale) scales = rounded_up(scales);
  const at::Tensor elements =
      (grouped / scales).clamp(-largest, largest).to(at::kFloat8_e4m3fn).flatten(1);
  constexpr int64_t kMantissaBits = 23;
  const at::Tensor stored = quantMode == 0 ? bytes_of(scales.squeeze(-1).to(at::kBFloat16))
                                           : scales.squeeze(-1)
                                                 .contiguous()
                                                 .view(at::kInt)
                                                 .bitwise_right_shift(kMantissaBits)
                                                 .to(at::kByte);
  const at::Tensor zeros = at::zeros({rows.size(0), padding}, stored.options());
  cacheRef = with_tokens(cacheRef, slots, at::cat({rope, bytes_of(elements), stored, zeros}, 1));
}

// The scales are those of blocks of 32 in quantMode 0 and 3, and of the whole token in quantMode 1.
// Behaviour of IndexerQuantCache: As in the published kernel, the scale of a token is rounded up to
// a power of two if roundScale is true, and the scale of a block always. In quantMode 0 a block's
// largest magnitude counts as 1e-4 or more. In quantMode 1 infinite numbers and NaN do not count in
// the maximum, and are not divided by the scale.
// Limit of IndexerQuantCache: Caches of UINT8, whose elements are HIFLOAT8, and of FLOAT4_E1M2 are
// refused with 161002, because the host CANN does not emulate these types.
ACLNN(IndexerQuantCache, (EncodedInOut, cacheRef), (EncodedInOut, cacheScaleRef), (In, x),
      (In, slotMapping), (int64_t, quantMode), (bool, roundScale),
      (Unused<float>, xScale, "counts in quantMode 2 only")) {
  constexpr int64_t kMostSize = 8192;
  expect_one_of("quantMode", quantMode, {0, 1, 3}, "; the host CANN does not emulate HIFLOAT8");
  if (quantMode == 3) {
    expect_type(cacheRef, {ACL_FLOAT4_E2M1}, " as quantMode is 3");
  } else {
    expect_type(cacheRef, {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2},
                " as quantMode is 0 or 1; the host CANN does not emulate HIFLOAT8");
  }
  const bool has_blocks = quantMode != 1;
  expect_type(cacheScaleRef, {has_blocks ? ACL_FLOAT8_E8M0 : ACL_FLOAT});
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  expect_dtype("slotMapping", slotMapping, at::kInt);
  expect_dims("x", x, 2, 8);
  const int64_t size = x.size(-1);
  EXPECT(size > 0 && size % kMxBlock == 0 && size <= kMostSize, "x has shape ", x.sizes(),
         ", expected a multiple of ", kMxBlock, " elements up to ", kMostSize);
  const at::Tensor elements = cacheRef.elements();
  expect_cache("cacheRef", elements, size);
  expect_cache("cacheScaleRef", cacheScaleRef, has_blocks ? size / kMxBlock : 1);
  EXPECT(cacheScaleRef->sizes().slice(0, 2) == elements.sizes().slice(0, 2),
         "cacheScaleRef has shape ", cacheScaleRef->sizes(), ", expected the pages of cacheRef, ",
         elements.sizes());
  const at::Tensor slots = checked_slots(x, slotMapping, elements);

  const at::Tensor rows = x.reshape({-1, size}).to(at::kFloat);
  const Quantized tokens = quantMode == 0   ? in_float8_blocks(rows, cacheRef.dtype())
                           : quantMode == 1 ? by_rows(rows, cacheRef.dtype(), roundScale)
                                            : in_float4_blocks(rows);
  const at::Tensor cache = with_tokens(cacheRef, slots, cacheRef.encoded(tokens.elements));
  const at::Tensor scales = with_tokens(cacheScaleRef, slots, cacheScaleRef.encoded(tokens.scales));
  cacheRef = cache;
  cacheScaleRef = scales;
}

}  // namespace aclnn_host::attention_quantized_token_cache_rows
