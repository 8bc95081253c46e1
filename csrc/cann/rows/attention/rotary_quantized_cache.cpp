// Splits one product into queries, keys and values, dequantises them and applies rotary embeddings;
// keys and values are quantised into their caches.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_rotary_quantized_cache_rows {

namespace {

// The sizes of a call: batches of sequences of tokens with heads.
struct Layout {
  int64_t batch, sequence, query_heads, heads, head_size;

  int64_t tokens() const { return batch * sequence; }
};

// Accepts more elements than tokens or columns, as a vendor's sample has them.
at::Tensor at_least(const char* name, const at::Tensor& numbers, int64_t count) {
  EXPECT(numbers.dim() == 1 && numbers.size(0) >= count, name, " has shape ", numbers.sizes(),
         ", expected ", count, " elements");
  return numbers.narrow(0, 0, count);
}

// Dequantises INT32. A bias of INT32 is added before the scales are applied.
at::Tensor dequantized(const at::Tensor& x, const at::Tensor& weight_scale,
                       const std::optional<at::Tensor>& activation_scale,
                       const std::optional<at::Tensor>& bias) {
  expect_dtype("weightScaleOptional", weight_scale, at::kFloat);
  const bool is_early = bias && bias->scalar_type() == at::kInt;
  at::Tensor addend;
  if (bias) {
    expect_dtype("biasOptional", *bias, {at::kFloat, at::kHalf, at::kBFloat16, at::kInt});
    addend = at_least("biasOptional", *bias, x.size(1));
  }
  at::Tensor values = (is_early ? x + addend : x).to(at::kFloat) *
                      at_least("weightScaleOptional", weight_scale, x.size(1));
  if (activation_scale) {
    expect_dtype("activationScaleOptional", *activation_scale, at::kFloat);
    values =
        values * at_least("activationScaleOptional", *activation_scale, x.size(0)).unsqueeze(1);
  }
  return bias && !is_early ? values + wide(addend) : values;
}

at::Tensor quantized(const at::Tensor& heads, const char* scale_name, const at::Tensor& scale,
                     const char* offset_name, const std::optional<at::Tensor>& offset) {
  const at::IntArrayRef shape = heads.sizes().slice(1);
  const auto shaped = [&](const char* name, const at::Tensor& parameters) {
    expect_dtype(name, parameters, at::kFloat);
    EXPECT(parameters.numel() == c10::multiply_integers(shape), name, " has shape ",
           parameters.sizes(), ", expected ", shape);
    return parameters.reshape(shape);
  };
  at::Tensor values = heads / shaped(scale_name, scale);
  if (offset) values = values + shaped(offset_name, *offset);
  return saturated(at::round(values), -128, 127).to(at::kChar);
}

// The positions of the tokens' rows in a cache of [blocks, rows, heads, size]. In a paged cache a
// token with a negative index is not written.
at::Tensor positions_in(const at::Tensor& cache, const at::Tensor& indices, const Layout& layout,
                        bool is_paged) {
  const int64_t count = is_paged ? layout.tokens() : layout.batch;
  EXPECT(indices.numel() == count, "indices has shape ", indices.sizes(), ", expected ", count,
         " elements");
  const at::Tensor flat = indices.flatten();
  if (is_paged) {
    check_bounds("indices", flat.clamp_min(-1), cache.size(0) * cache.size(1), -1);
    return flat;
  }
  EXPECT(cache.size(0) >= layout.batch, "kCacheRef has shape ", cache.sizes(), ", expected ",
         layout.batch, " blocks or more as x has");
  const int64_t last = cache.size(1) - layout.sequence;
  EXPECT(last >= 0, "kCacheRef has shape ", cache.sizes(), ", expected ", layout.sequence,
         " rows or more as x has");
  check_bounds("indices", flat, last + 1);
  const at::Tensor block = at::arange(layout.batch, flat.options());
  const at::Tensor row = at::arange(layout.sequence, flat.options());
  return ((block * cache.size(1) + flat).unsqueeze(1) + row).flatten();
}

Layout layout_of(const at::Tensor& x, at::IntArrayRef splits, const at::Tensor& cache) {
  expect_dims("x", x, 2, 3);
  EXPECT(splits.size() == 3 && splits[0] > 0 && splits[1] > 0 && splits[1] == splits[2],
         "sizeSplits is ", splits,
         ", expected the sizes of queries, keys and values, of which the last two are equal");
  const int64_t width = x.size(-1);
  constexpr int64_t kMostColumns = 4096, kMultiple = 64;
  EXPECT(width <= kMostColumns && width % kMultiple == 0 && splits[0] <= width &&
             splits[1] <= width && splits[0] + splits[1] + splits[2] == width,
         "the last dimension of x is ", width, ", expected the sum of sizeSplits ", splits,
         ", a multiple of ", kMultiple, " up to ", kMostColumns);
  expect_dims("kCacheRef", cache, 4);
  const int64_t heads = cache.size(2), size = cache.size(3);
  EXPECT(size > 0 && size % 2 == 0 && heads * size == splits[1] && splits[0] % size == 0,
         "kCacheRef has shape ", cache.sizes(), ", expected ", splits[1],
         " elements in each row and heads of which sizeSplits ", splits, " has whole ones");
  return {x.size(0), x.dim() == 3 ? x.size(1) : 1, splits[0] / size, heads, size};
}

}  // namespace

// If x is not INT32, the arguments of the dequantisation are ignored. Offsets and scales have the
// shape [heads, head size].
// Behaviour of DequantRopeQuantKvcache: In a cache of pages, a token with a negative index is not
// written.
ACLNN(DequantRopeQuantKvcache, (In, x), (Floating<In>, cos), (Like<Floating<In>>, sin, "cos"),
      (InOut, kCacheRef), (Like<InOut>, vCacheRef, "kCacheRef"), (IndexIn, indices), (In, scaleK),
      (In, scaleV), (Optional<In>, offsetKOptional), (Optional<In>, offsetVOptional),
      (Optional<In>, weightScaleOptional), (Optional<In>, activationScaleOptional),
      (Optional<In>, biasOptional), (Ints, sizeSplits), (char*, quantModeOptional),
      (char*, layoutOptional), (bool, kvOutput), (char*, cacheModeOptional),
      (SameDtype<Out>, qOut, "cos"), (Optional<Out>, kOut), (Optional<Out>, vOut)) {
  expect_text("quantModeOptional", quantModeOptional, {"", "static"});
  expect_text("layoutOptional", layoutOptional, {"", "BSND"});
  expect_text("cacheModeOptional", cacheModeOptional, {"", "contiguous", "page"});
  const bool is_paged = cacheModeOptional == "page";
  expect_dtype("kCacheRef", kCacheRef, at::kChar);
  const Layout layout = layout_of(x, sizeSplits, kCacheRef);
  const bool is_dequantized = x.scalar_type() == at::kInt;
  expect_dtype("cos", cos, {at::kHalf, at::kBFloat16});
  if (!is_dequantized) expect_dtype("x", x, cos);
  std::vector<int64_t> angles{layout.batch, layout.sequence, 1, layout.head_size};
  if (x.dim() == 2) angles = {layout.batch, layout.head_size};
  expect_shape("cos", cos, angles);

  at::Tensor values = x.flatten(0, -2);
  if (is_dequantized) {
    EXPECT(weightScaleOptional, "weightScaleOptional is null, expected a tensor as x is INT32");
    values = dequantized(values, *weightScaleOptional, activationScaleOptional, biasOptional);
  }
  const auto parts = wide(values).split_with_sizes(sizeSplits, -1);
  const auto in_heads = [&](const at::Tensor& part, int64_t heads) {
    return part.unflatten(1, {heads, layout.head_size});
  };
  const at::Tensor cosines = wide(cos).reshape({layout.tokens(), 1, layout.head_size});
  const at::Tensor sines = wide(sin).reshape({layout.tokens(), 1, layout.head_size});
  const at::Tensor queries = rotated_halves(in_heads(parts[0], layout.query_heads), cosines, sines);
  const at::Tensor keys = rotated_halves(in_heads(parts[1], layout.heads), cosines, sines);
  const at::Tensor rows = in_heads(parts[2], layout.heads);
  const auto shaped = [&](const at::Tensor& heads) {
    return x.dim() == 2 ? heads : heads.unflatten(0, {layout.batch, layout.sequence});
  };
  const at::Tensor positions = positions_in(kCacheRef, indices, layout, is_paged);
  const at::Tensor new_keys = quantized(keys, "scaleK", scaleK, "offsetKOptional", offsetKOptional);
  const at::Tensor new_values =
      quantized(rows, "scaleV", scaleV, "offsetVOptional", offsetVOptional);
  const at::Tensor key_cache = updated(kCacheRef, positions, new_keys);
  const at::Tensor value_cache = updated(vCacheRef, positions, new_values);
  // Values that were not dequantised may be a view of the caller's memory.
  const at::Tensor value_rows = kvOutput ? shaped(rows).clone() : rows;
  qOut = shaped(queries);
  if (kvOutput) {
    EXPECT(kOut && vOut, "kOut or vOut is null, expected tensors as kvOutput is true");
    expect_dtype(*kOut, cos);
    expect_dtype(*vOut, cos);
    kOut = shaped(keys);
    vOut = value_rows;
  }
  kCacheRef = key_cache;
  vCacheRef = value_cache;
}

}  // namespace aclnn_host::attention_rotary_quantized_cache_rows
