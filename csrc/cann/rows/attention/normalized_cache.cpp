// Splits one product into keys, values and queries, normalises them and applies rotary embeddings;
// keys and values are optionally quantised, and written to their caches.

#include <algorithm>
#include <string>

#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_normalized_cache_rows {

namespace {

// The layout of a cache, and the meaning of an index: the position of a token in its sequence, its
// position in all pages, or the beginning of the page of several tokens.
struct CacheMode {
  bool is_paged = false;
  bool by_page = false;
  bool is_fractal = false;
};
CacheMode mode_of(const std::string& name) {
  if (name.empty() || name == "Norm") return {};
  if (name == "PA" || name == "PA_BNSD") return {.is_paged = true};
  if (name == "PA_NZ") return {.is_paged = true, .is_fractal = true};
  if (name == "PA_BLK_BNSD") return {.is_paged = true, .by_page = true};
  if (name == "PA_BLK_NZ") return {.is_paged = true, .by_page = true, .is_fractal = true};
  EXPECT(false, "cacheModeOptional is \"", name,
         "\", expected Norm, PA, PA_BNSD, PA_NZ, PA_BLK_BNSD or PA_BLK_NZ");
}

// The number of elements in 32 bytes, which are contiguous in a fractal cache.
int64_t width_of(const at::Tensor& cache) {
  return 32 / cache.element_size();
}

// Converts a fractal cache of (pages, heads, parts, tokens of the page, `width_of` elements) to
// (pages, tokens, heads, elements).
at::Tensor from_fractals(const at::Tensor& cache, int64_t heads, int64_t page, int64_t size) {
  const int64_t width = width_of(cache);
  return cache.reshape({-1, heads, size / width, page, width}).permute({0, 3, 1, 2, 4}).flatten(3);
}
at::Tensor to_fractals(const at::Tensor& tokens, at::IntArrayRef shape) {
  return tokens.unflatten(3, {-1, width_of(tokens)}).permute({0, 2, 3, 1, 4}).reshape(shape);
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& gamma, double epsilon) {
  return x * at::rsqrt((x * x).mean(-1, /*keepdim=*/true).add(c10::Scalar(epsilon))) * wide(gamma);
}
at::Tensor joined(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor parts[] = {first, second};
  return at::cat(at::TensorList(parts), -1);
}
at::Tensor turned(const at::Tensor& first, const at::Tensor& second, const at::Tensor& cos,
                  const at::Tensor& sin) {
  return joined(first, second) * wide(cos) + joined(-second, first) * wide(sin);
}
// Rotates pairs of neighbours by their angles; the result has the first elements of all pairs
// first.
at::Tensor turned_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return turned(x.slice(-1, 0, std::nullopt, 2), x.slice(-1, 1, std::nullopt, 2), cos, sin);
}
at::Tensor turned_halves(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto halves = x.chunk(2, -1);
  return turned(halves[0], halves[1], cos, sin);
}

// Scale and offset of an INT8 cache.
struct Quantization {
  const char* scale_name;
  const std::optional<at::Tensor>& scale;
  const char* offset_name;
  const std::optional<at::Tensor>& offset;
  bool divides;
};
void check_factors(const char* name, const at::Tensor& factors, const at::Tensor& elements) {
  const int64_t heads = elements.size(-2), size = elements.size(-1);
  expect_dtype(name, factors, at::kFloat);
  expect_dims(name, factors, 1, 2);
  const at::IntArrayRef shape = factors.sizes();
  EXPECT(
      shape.size() == 1 ? shape[0] == size || shape[0] == 1 : shape[0] == heads && shape[1] == size,
      name, " has shape ", shape, ", expected [", heads, ", ", size, "], [", size, "] or [1]");
}
// Converts elements of (..., heads, size) to the cache's type.
at::Tensor stored(const at::Tensor& elements, const Output& cache, const at::Tensor& like,
                  const Quantization& by) {
  if (!by.scale) {
    EXPECT(!by.offset, by.offset_name, " is given and ", by.scale_name, " is null");
    expect_dtype(cache, like);
    return elements;
  }
  EXPECT(cache->scalar_type() == at::kChar, cache.name(), " has dtype ",
         dtype_text(cache->scalar_type()), ", expected INT8 as ", by.scale_name,
         " is given; no formula is published for other types");
  check_factors(by.scale_name, *by.scale, elements);
  at::Tensor values = by.divides ? elements / *by.scale : elements * *by.scale;
  if (by.offset) {
    check_factors(by.offset_name, *by.offset, elements);
    values = values + *by.offset;
  }
  return saturated(at::round(values), -128, 127);
}

// The caches of one call, whose elements are (batch, heads, sequence, elements).
struct Caches {
  CacheMode mode;
  int64_t batch, heads, sequence;

  void check(const Output& cache, int64_t size) const {
    expect_dims(cache.name(), cache, 4);
    if (!mode.is_paged) {
      expect_shape(cache.name(), cache,
                   {std::max(batch, cache->size(0)), heads, cache->size(2), size});
      EXPECT(cache->size(2) > 0, cache.name(), " has no room for tokens");
      return;
    }
    expect_shape(cache.name(), cache, {cache->size(0), cache->size(1), heads, size});
    const int64_t width = width_of(cache);
    EXPECT(cache->size(0) > 0 && cache->size(1) > 0 && cache->size(1) % width == 0, cache.name(),
           " has shape ", cache->sizes(), ", expected pages of a multiple of ", width, " tokens");
    EXPECT(!mode.is_fractal || size % width == 0, cache.name(), " has shape ", cache->sizes(),
           ", expected a last dimension of a multiple of ", width, " in FRACTAL_NZ");
  }

  // The positions of the tokens of all sequences in the cache; -1 for a token that is not written.
  at::Tensor places(const at::Tensor& index, const at::Tensor& cache) const {
    const int64_t page = mode.is_paged ? cache.size(1) : cache.size(2);
    const int64_t limit = mode.is_paged ? cache.size(0) * page : page;
    const int64_t pages = (sequence + page - 1) / page;
    if (!mode.is_paged) {
      expect_shape("index", index, {batch, sequence});
    } else {
      expect_shape("index", index, {batch * (mode.by_page ? pages : sequence)});
    }
    if (has_values(index)) check_bounds("index", index, limit, -1);
    if (!mode.is_paged) {
      const at::Tensor first = at::arange(batch, index.options()).unsqueeze(1) * page;
      return at::where(index < 0, -1, index + first).flatten();
    }
    if (!mode.by_page) return index;
    const at::Tensor token = at::arange(sequence, index.options());
    const at::Tensor number = at::div(token, page, "floor");
    const at::Tensor start = index.view({batch, pages}).index_select(1, number);
    return at::where(start < 0, -1, at::div(start, page, "floor") * page + token - number * page)
        .flatten();
  }

  // A copy of the cache with `elements`, (batch, heads, sequence, elements), at the tokens'
  // positions.
  at::Tensor written(const at::Tensor& cache, const at::Tensor& places,
                     const at::Tensor& elements) const {
    const at::Tensor tokens = elements.transpose(1, 2).flatten(0, 1);
    if (!mode.is_paged) return updated(cache.transpose(1, 2), places, tokens).transpose(1, 2);
    if (!mode.is_fractal) return updated(cache, places, tokens);
    return to_fractals(
        updated(from_fractals(cache, heads, cache.size(1), cache.size(3)), places, tokens),
        cache.sizes());
  }
};

void expect_reduced(const char* name, const at::Tensor& x) {
  EXPECT(at::isReducedFloatingType(x.scalar_type()), name, " has dtype ",
         dtype_text(x.scalar_type()), ", expected FLOAT16 or BFLOAT16");
}

// Writes keys and values to their two caches. If the values have no tensor of their own, the first
// elements of kv are the values, which are normalised, and the others are the keys, which are
// rotated. Otherwise kv has the keys, which are normalised, and their first elements are rotated.
void write_keys_and_values(const at::Tensor& kv, const at::Tensor& gamma, const at::Tensor& cos,
                           const at::Tensor& sin, const at::Tensor& index,
                           const std::optional<at::Tensor>& values, double epsilon,
                           const std::string& mode_name, bool writes_both, Output& key_cache,
                           Output& value_cache, const Quantization& of_keys,
                           const Quantization& of_values, OptionalOutput& key_out,
                           OptionalOutput& value_out) {
  expect_reduced("kv", kv);
  expect_dims("kv", kv, 4);
  EXPECT(kv.numel() > 0, "kv is empty");
  const int64_t batch = kv.size(0), heads = kv.size(1), sequence = kv.size(2), size = kv.size(3);
  const Caches caches{mode_of(mode_name), batch, heads, sequence};
  expect_dims("cos", cos, 4);
  const int64_t turned_size = cos.size(3);
  expect_shape("cos", cos,
               {batch, cos.size(1) == 1 ? 1 : heads, cos.size(2) == 1 ? 1 : sequence, turned_size});
  EXPECT(turned_size > 0 && turned_size % 2 == 0 && turned_size <= size, "cos has shape ",
         cos.sizes(), ", expected an even last dimension up to ", size);
  at::Tensor key, value;
  if (values) {
    EXPECT(heads == 1 || heads == 2 || heads == 4 || heads == 8, "kv has ", heads,
           " heads, expected 1, 2, 4 or 8");
    EXPECT(!caches.mode.is_fractal || heads == 1, "kv has ", heads,
           " heads, expected 1; no layout in FRACTAL_NZ is published for several");
    expect_shape("gamma", gamma, {size});
    expect_dims("vOptional", *values, 4);
    expect_shape("vOptional", *values, {batch, heads, sequence, values->size(3)});
    const at::Tensor keys = normalized(wide(kv), gamma, epsilon);
    key = joined(turned_pairs(keys.narrow(-1, 0, turned_size), cos, sin),
                 keys.narrow(-1, turned_size, size - turned_size));
    value = wide(*values);
  } else {
    EXPECT(heads == 1, "kv has ", heads, " heads, expected 1");
    const int64_t value_size = size - turned_size;
    EXPECT(value_size > 0, "cos has shape ", cos.sizes(), ", expected less than the ", size,
           " elements of kv as last dimension");
    expect_shape("gamma", gamma, {value_size});
    const at::Tensor all = wide(kv);
    key = turned_pairs(all.narrow(-1, value_size, turned_size), cos, sin);
    value = normalized(all.narrow(-1, 0, value_size), gamma, epsilon);
  }
  caches.check(key_cache, key.size(3));
  caches.check(value_cache, value.size(3));
  const int64_t along = caches.mode.is_paged ? 1 : 2;
  EXPECT(key_cache->size(0) == value_cache->size(0) &&
             key_cache->size(along) == value_cache->size(along),
         "ckvCacheRef has shape ", value_cache->sizes(), ", expected places as kCacheRef, ",
         key_cache->sizes(), ", has");
  const at::Tensor places = caches.places(index, key_cache);
  const auto in_cache = [&](const at::Tensor& elements, const Output& cache,
                            const Quantization& by) {
    const at::Tensor tokens = stored(elements.transpose(1, 2), cache, kv, by);
    return caches.written(cache, places, tokens.transpose(1, 2));
  };
  const at::Tensor new_keys = in_cache(key, key_cache, of_keys);
  const at::Tensor new_values = in_cache(value, value_cache, of_values);
  if (writes_both) {
    EXPECT(key_out && value_out,
           "kRopeOut or cKvOut is null, expected tensors as isOutputKv is true");
    expect_dtype(*key_out, kv);
    expect_dtype(*value_out, kv);
    key_out = key;
    value_out = value;
  }
  key_cache = new_keys;
  value_cache = new_values;
}

}  // namespace

// Behaviour of KvRmsNormRopeCache, QkvRmsNormRopeCache: Everything is computed in FLOAT and rounded
// once. A cache has INT8 or the type of the keys. Offsets count on every product.
// Limit of KvRmsNormRopeCache, QkvRmsNormRopeCache: FLOAT8 caches, for which no rounding is
// published, and several heads in FRACTAL_NZ are refused with 161002.
ACLNN(KvRmsNormRopeCache, (Floating<In>, kv), (SameDtype<Floating<In>>, gamma, "kv"),
      (SameDtype<Floating<In>>, cos, "kv"), (Like<Floating<In>>, sin, "cos"), (IndexIn, index),
      (InOut, kCacheRef), (InOut, ckvCacheRef), (Optional<In>, kRopeScaleOptional),
      (Optional<In>, cKvScaleOptional), (Optional<In>, kRopeOffsetOptional),
      (Optional<In>, cKvOffsetOptional), (double, epsilon), (char*, cacheModeOptional),
      (bool, isOutputKv), (Optional<Out>, kRopeOut), (Optional<Out>, cKvOut)) {
  write_keys_and_values(
      kv, gamma, cos, sin, index, std::nullopt, epsilon, cacheModeOptional, isOutputKv, kCacheRef,
      ckvCacheRef,
      {"kRopeScaleOptional", kRopeScaleOptional, "kRopeOffsetOptional", kRopeOffsetOptional, false},
      {"cKvScaleOptional", cKvScaleOptional, "cKvOffsetOptional", cKvOffsetOptional, false},
      kRopeOut, cKvOut);
}
ACLNN(KvRmsNormRopeCacheV2, (Floating<In>, kv), (SameDtype<Floating<In>>, gamma, "kv"),
      (SameDtype<Floating<In>>, cos, "kv"), (Like<Floating<In>>, sin, "cos"), (IndexIn, index),
      (InOut, kCacheRef), (InOut, ckvCacheRef), (Optional<In>, kRopeScaleOptional),
      (Optional<In>, cKvScaleOptional), (Optional<In>, kRopeOffsetOptional),
      (Optional<In>, cKvOffsetOptional), (SameDtype<Optional<In>>, vOptional, "kv"),
      (double, epsilon), (char*, cacheModeOptional), (bool, isOutputKv), (Optional<Out>, kRopeOut),
      (Optional<Out>, cKvOut)) {
  write_keys_and_values(
      kv, gamma, cos, sin, index, vOptional, epsilon, cacheModeOptional, isOutputKv, kCacheRef,
      ckvCacheRef,
      {"kRopeScaleOptional", kRopeScaleOptional, "kRopeOffsetOptional", kRopeOffsetOptional, false},
      {"cKvScaleOptional", cKvScaleOptional, "cKvOffsetOptional", cKvOffsetOptional, false},
      kRopeOut, cKvOut);
}

// The caches are fractal: pages, heads and parts, tokens of the page, elements.
ACLNN(QkvRmsNormRopeCache, (Floating<In>, qkv), (SameDtype<Floating<In>>, qGamma, "qkv"),
      (SameDtype<Floating<In>>, kGamma, "qkv"), (SameDtype<Floating<In>>, cos, "qkv"),
      (SameDtype<Floating<In>>, sin, "qkv"), (IndexIn, index), (SameDtype<InOut>, qOut, "qkv"),
      (InOut, kCache), (InOut, vCache), (Optional<In>, kScaleOptional),
      (Optional<In>, vScaleOptional), (Optional<In>, kOffsetOptional),
      (Optional<In>, vOffsetOptional), (Ints, qkvSize), (Ints, headNums), (double, epsilon),
      (char*, cacheModeOptional), (Optional<Out>, qOutBeforeQuant),
      (Optional<Out>, kOutBeforeQuant), (Optional<Out>, vOutBeforeQuant)) {
  constexpr int64_t kSize = 128;  // the only published value
  EXPECT(cacheModeOptional.empty() || cacheModeOptional == "PA_NZ", "cacheModeOptional is \"",
         cacheModeOptional, "\", expected \"PA_NZ\"");
  expect_reduced("qkv", qkv);
  expect_dims("qkv", qkv, 2);
  const int64_t tokens = qkv.size(0), heads = qkv.size(1) / kSize;
  EXPECT(tokens > 0 && heads > 0 && qkv.size(1) % kSize == 0, "qkv has shape ", qkv.sizes(),
         ", expected tokens of heads of ", kSize, " elements");
  EXPECT(qkvSize.size() == 4 && qkvSize[0] > 0 && tokens % qkvSize[0] == 0 &&
             qkvSize[1] == tokens / qkvSize[0] && qkvSize[2] == heads && qkvSize[3] == kSize,
         "qkvSize is ", qkvSize, ", expected batch, sequence, heads and elements of qkv, ",
         qkv.sizes());
  EXPECT(headNums.size() == 3 && headNums[0] > 0 && headNums[1] > 0 && headNums[1] == headNums[2] &&
             headNums[0] <= heads && headNums[1] <= heads &&
             headNums[0] + headNums[1] + headNums[2] == heads,
         "headNums is ", headNums,
         ", expected the heads of queries, keys and values, of which the last two are equal; ",
         heads, " in all");
  expect_shape("qGamma", qGamma, {kSize});
  expect_shape("kGamma", kGamma, {kSize});
  expect_shape("cos", cos, {tokens, kSize});
  expect_shape("sin", sin, {tokens, kSize});
  expect_shape("index", index, {tokens});
  expect_shape("qOut", qOut, {tokens, headNums[0] * kSize});
  expect_dims("kCache", kCache, 4);
  const int64_t pages = kCache->size(0), page = kCache->size(2), of_page = headNums[1] * kSize;
  EXPECT(pages > 0 && page > 0, "kCache has shape ", kCache->sizes(),
         ", expected one page or more of one token or more");
  for (const Output* cache : {&kCache, &vCache}) {
    const int64_t width = width_of(*cache);
    expect_shape(cache->name(), *cache, {pages, of_page / width, page, width});
    EXPECT(page % width == 0, cache->name(), " has shape ", (*cache)->sizes(),
           ", expected pages of a multiple of ", width, " tokens");
  }
  if (has_values(index)) check_bounds("index", index, pages * page, -1);

  const auto parts = wide(qkv).view({tokens, heads, kSize}).split_with_sizes(headNums, 1);
  const at::Tensor cosines = cos.unsqueeze(1), sines = sin.unsqueeze(1);
  const at::Tensor query = turned_halves(normalized(parts[0], qGamma, epsilon), cosines, sines);
  const at::Tensor key = turned_halves(normalized(parts[1], kGamma, epsilon), cosines, sines);
  const auto in_cache = [&](const at::Tensor& elements, const Output& cache,
                            const Quantization& by) {
    const at::Tensor before = from_fractals(cache, headNums[1], page, kSize);
    return to_fractals(updated(before, index, stored(elements, cache, qkv, by)), cache->sizes());
  };
  const at::Tensor new_keys = in_cache(
      key, kCache, {"kScaleOptional", kScaleOptional, "kOffsetOptional", kOffsetOptional, true});
  const at::Tensor new_values =
      in_cache(parts[2], vCache,
               {"vScaleOptional", vScaleOptional, "vOffsetOptional", vOffsetOptional, true});
  qOut = query.flatten(1);
  qOutBeforeQuant = query.flatten(1);
  kOutBeforeQuant = key.flatten(1);
  vOutBeforeQuant = parts[2].flatten(1);
  kCache = new_keys;
  vCache = new_values;
}

}  // namespace aclnn_host::attention_normalized_cache_rows
