// Splits one product into keys, values and queries, normalises them and applies rotary embeddings;
// keys and values are optionally quantised, and written to their caches.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/integers.h"
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

// As `updated`, with tokens of (tokens, heads, elements), for a fractal cache of (pages, heads,
// parts, tokens of the page, `width_of` elements).
at::Tensor updated_fractals(const Output& cache, const at::Tensor& positions,
                            const at::Tensor& tokens, int64_t page) {
  const int64_t heads = tokens.size(1), width = width_of(cache), parts = tokens.size(2) / width;
  return updated_blocks(cache, positions, tokens.unflatten(2, {parts, width}),
                        [&](const at::Tensor& all) {
                          return all.view({-1, heads, parts, page, width}).permute({0, 3, 1, 2, 4});
                        });
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
    EXPECT(!by.offset, by.scale_name, " is null, expected a tensor as ", by.offset_name,
           " is given");
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
      EXPECT(cache->size(2) > 0, cache.name(), " has shape ", cache->sizes(),
             ", expected room for tokens in dimension 2");
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
  at::Tensor positions(const at::Tensor& index, const at::Tensor& cache) const {
    const int64_t page = mode.is_paged ? cache.size(1) : cache.size(2);
    const int64_t limit = mode.is_paged ? cache.size(0) * page : page;
    const int64_t pages = (sequence + page - 1) / page;
    std::vector<int64_t> shape{batch, sequence};
    if (mode.is_paged) shape = {batch * (mode.by_page ? pages : sequence)};
    expect_shape("index", index, shape);
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

  // The cache with `elements`, (batch, heads, sequence, elements), at the tokens' positions.
  at::Tensor with(const at::Tensor& elements, const Output& cache,
                  const at::Tensor& positions) const {
    const at::Tensor tokens = elements.transpose(1, 2).flatten(0, 1);
    if (!mode.is_paged) return updated(cache, positions, tokens, heads_last);
    if (!mode.is_fractal) return updated(cache, positions, tokens);
    return updated_fractals(cache, positions, tokens, cache->size(1));
  }
};

// The keys and values of a call, (batch, heads, sequence, elements).
struct KeysAndValues {
  at::Tensor key;
  at::Tensor value;
};

// The first elements of kv are the values, which are normalised; the others are the keys, which are
// rotated.
KeysAndValues keys_after_values(const at::Tensor& kv, const at::Tensor& gamma,
                                const at::Tensor& cos, const at::Tensor& sin, double epsilon) {
  const int64_t key_size = cos.size(3), value_size = kv.size(3) - key_size;
  EXPECT(kv.size(1) == 1, "kv has ", kv.size(1), " heads, expected 1");
  EXPECT(value_size > 0, "cos has shape ", cos.sizes(), ", expected less than the ", kv.size(3),
         " elements of kv as last dimension");
  expect_shape("gamma", gamma, {value_size});
  return {rotated_pairs(wide(kv).narrow(-1, value_size, key_size), wide(cos), wide(sin)),
          rms_normalized(wide(kv).narrow(-1, 0, value_size), gamma, epsilon)};
}

// kv has the keys, which are normalised, and their first elements are rotated.
KeysAndValues keys_beside_values(const at::Tensor& kv, const at::Tensor& values,
                                 const at::Tensor& gamma, const at::Tensor& cos,
                                 const at::Tensor& sin, double epsilon, bool is_fractal) {
  const int64_t heads = kv.size(1), size = kv.size(3), rotary_size = cos.size(3);
  EXPECT(heads == 1 || heads == 2 || heads == 4 || heads == 8, "kv has ", heads,
         " heads, expected 1, 2, 4 or 8");
  EXPECT(!is_fractal || heads == 1, "kv has ", heads,
         " heads, expected 1; no layout in FRACTAL_NZ is published for several");
  expect_shape("gamma", gamma, {size});
  expect_dims("vOptional", values, 4);
  expect_shape("vOptional", values, {kv.size(0), heads, kv.size(2), values.size(3)});
  const at::Tensor keys = rms_normalized(wide(kv), gamma, epsilon);
  return {at::cat({rotated_pairs(keys.narrow(-1, 0, rotary_size), wide(cos), wide(sin)),
                   keys.narrow(-1, rotary_size, size - rotary_size)},
                  -1),
          wide(values)};
}

// Writes keys and values to their two caches.
template <class Version>
void write_caches(Version& row) {
  const at::Tensor &kv = row.kv, &cos = row.cos;
  expect_dtype("kv", kv, {at::kHalf, at::kBFloat16});
  expect_dims("kv", kv, 4);
  expect_elements("kv", kv);
  const Caches caches{mode_of(row.cacheModeOptional), kv.size(0), kv.size(1), kv.size(2)};
  expect_dims("cos", cos, 4);
  expect_sizes(
      "cos", cos,
      {caches.batch, Size::or_one(caches.heads), Size::or_one(caches.sequence), cos.size(3)});
  EXPECT(cos.size(3) > 0 && cos.size(3) % 2 == 0 && cos.size(3) <= kv.size(3), "cos has shape ",
         cos.sizes(), ", expected an even last dimension up to ", kv.size(3));
  std::optional<at::Tensor> values;
  if constexpr (requires { row.vOptional; }) values = row.vOptional;
  const auto [key, value] = values ? keys_beside_values(kv, *values, row.gamma, cos, row.sin,
                                                        row.epsilon, caches.mode.is_fractal)
                                   : keys_after_values(kv, row.gamma, cos, row.sin, row.epsilon);
  const Output &key_cache = row.kCacheRef, &value_cache = row.ckvCacheRef;
  caches.check(key_cache, key.size(3));
  caches.check(value_cache, value.size(3));
  const int64_t along = caches.mode.is_paged ? 1 : 2;
  EXPECT(key_cache->size(0) == value_cache->size(0) &&
             key_cache->size(along) == value_cache->size(along),
         "ckvCacheRef has shape ", value_cache->sizes(),
         ", expected room for tokens as kCacheRef, ", key_cache->sizes(), ", has");
  const at::Tensor positions = caches.positions(row.index, key_cache);
  const auto in_cache = [&](const at::Tensor& elements, const Output& cache,
                            const Quantization& quantization) {
    const at::Tensor tokens = stored(elements.transpose(1, 2), cache, kv, quantization);
    return caches.with(tokens.transpose(1, 2), cache, positions);
  };
  const at::Tensor new_keys =
      in_cache(key, key_cache,
               {"kRopeScaleOptional", row.kRopeScaleOptional, "kRopeOffsetOptional",
                row.kRopeOffsetOptional, /*divides=*/false});
  const at::Tensor new_values =
      in_cache(value, value_cache,
               {"cKvScaleOptional", row.cKvScaleOptional, "cKvOffsetOptional",
                row.cKvOffsetOptional, /*divides=*/false});
  if (row.isOutputKv) {
    EXPECT(row.kRopeOut && row.cKvOut,
           "kRopeOut or cKvOut is null, expected tensors as isOutputKv is true");
    expect_dtype(*row.kRopeOut, kv);
    expect_dtype(*row.cKvOut, kv);
    row.kRopeOut = key;
    row.cKvOut = value;
  }
  row.kCacheRef = new_keys;
  row.ckvCacheRef = new_values;
}

// ---- with dynamic scales of keys

constexpr int64_t kHeadSize = 128;  // the only one that CANN supports

// The numbers of heads of queries, of keys and of values.
void check_heads(at::IntArrayRef heads) {
  EXPECT(heads.size() == 3 && heads[0] > 0 && heads[1] > 0 && heads[1] == heads[2], "headNums is ",
         heads, ", expected heads of queries, keys and values, of which the last two are equal");
  constexpr int64_t kMostOfBoth = 128, kMost = 160;
  EXPECT(heads[0] <= kMostOfBoth && heads[1] <= kMostOfBoth - heads[0] &&
             heads[2] <= kMost - heads[0] - heads[1],
         "headNums is ", heads, ", expected ", kMostOfBoth, " heads or fewer of queries and keys, ",
         kMost, " or fewer in all");
}

// The row of cosSin for each token: the last tokens of each sequence are those of the call.
at::Tensor rotary_rows(const at::Tensor& starts, const at::Tensor& lengths, int64_t tokens,
                       int64_t limit) {
  const std::vector<int64_t> begins = integers_in(starts), totals = integers_in(lengths);
  EXPECT(begins.front() == 0 && begins.back() == tokens && std::ranges::is_sorted(begins),
         "queryStartLoc is ", begins, ", expected numbers from 0 to ", tokens,
         " that do not decrease");
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i < totals.size(); ++i) {
    const int64_t count = begins[i + 1] - begins[i];
    EXPECT(totals[i] >= count && totals[i] <= limit, "seqLens has ", totals[i], ", expected ",
           count, " to ", limit, ", the rows of cosSin");
    rows.push_back(at::arange(totals[i] - count, totals[i], at::kLong));
  }
  return at::cat(rows);
}

// Normalises heads of (tokens, heads, elements), rotates them by cosSin and by a matrix. The matrix
// product is of BFLOAT16.
at::Tensor rotated_heads(const at::Tensor& heads, const at::Tensor& gamma,
                         const at::Tensor& cos_sin, double epsilon, const at::Tensor& rotation) {
  const auto angles = cos_sin.unsqueeze(1).chunk(2, -1);
  const auto both = [](const at::Tensor& half) { return at::cat({half, half}, -1); };
  const at::Tensor turned =
      rotated_halves(rms_normalized(heads, gamma, epsilon), both(angles[0]), both(angles[1]));
  return at::matmul(wide(turned.to(at::kBFloat16)), wide(rotation));
}

// The scale of each head of each token, (tokens, heads, 1).
at::Tensor scales_of(const at::Tensor& heads) {
  return at::amax(heads.abs(), -1, /*keepdim=*/true) / largest_of(ACL_FLOAT8_E4M3FN);
}

// Checks the shapes of a call of QkvRmsNormRopeCacheWithKScale; `tokens` are those of qkv.
template <class Row>
void check_scaled(const Row& row, int64_t tokens) {
  const at::IntArrayRef heads = row.headNums;
  expect_float("qGamma", row.qGamma, {kHeadSize});
  expect_float("kGamma", row.kGamma, {kHeadSize});
  expect_dims("cosSin", row.cosSin, 2);
  expect_float("cosSin", row.cosSin, {row.cosSin.size(0), kHeadSize});
  expect_elements("cosSin", row.cosSin);
  expect_tensor("slotMapping", row.slotMapping, at::kInt, {tokens});
  expect_type(row.kCacheRef, {ACL_FLOAT8_E4M3FN});
  expect_type(row.vCacheRef, {ACL_FLOAT8_E4M3FN});
  const at::Tensor& cache = row.kCacheRef;
  expect_dims("kCacheRef", cache, 4);
  expect_elements("kCacheRef", cache);
  expect_shape("kCacheRef", cache, {cache.size(0), heads[1], cache.size(2), kHeadSize});
  expect_shape("vCacheRef", row.vCacheRef, cache.sizes());
  expect_float(row.kScaleCacheRef, {cache.size(0), heads[1], cache.size(2), 1});
  expect_dtype("queryStartLoc", row.queryStartLoc, at::kInt);
  expect_dims("queryStartLoc", row.queryStartLoc, 1);
  const int64_t batch = row.queryStartLoc.size(0) - 1;
  EXPECT(batch >= 1, "queryStartLoc has ", batch + 1, " elements, expected 2 or more");
  expect_tensor("seqLens", row.seqLens, at::kInt, {batch});
  expect_tensor("rotationOptional", row.rotationOptional, at::kBFloat16, {kHeadSize, kHeadSize});
  expect_float("vScaleOptional", row.vScaleOptional, {heads[2]});
  if (has_values(row.slotMapping)) {
    check_bounds("slotMapping", row.slotMapping, cache.size(0) * cache.size(2));
  }
}

}  // namespace

// Behaviour of KvRmsNormRopeCache, QkvRmsNormRopeCache: Everything is computed in FLOAT and rounded
// once. A cache has INT8 or the type of the keys. Offsets count on every product.
// Limit of KvRmsNormRopeCache, QkvRmsNormRopeCache: FLOAT8 caches, for which no rounding is
// published, and several heads in FRACTAL_NZ are refused with 161002.
ACLNN_STRUCT(KvRmsNormRopeCache, (Floating<In>, kv), (SameDtype<Floating<In>>, gamma, "kv"),
             (SameDtype<Floating<In>>, cos, "kv"), (Like<Floating<In>>, sin, "cos"),
             (IndexIn, index), (InOut, kCacheRef), (InOut, ckvCacheRef),
             (Optional<In>, kRopeScaleOptional), (Optional<In>, cKvScaleOptional),
             (Optional<In>, kRopeOffsetOptional), (Optional<In>, cKvOffsetOptional),
             (double, epsilon), (char*, cacheModeOptional), (bool, isOutputKv),
             (Optional<Out>, kRopeOut), (Optional<Out>, cKvOut)) {
  write_caches(*this);
}
ACLNN_STRUCT(KvRmsNormRopeCacheV2, (Floating<In>, kv), (SameDtype<Floating<In>>, gamma, "kv"),
             (SameDtype<Floating<In>>, cos, "kv"), (Like<Floating<In>>, sin, "cos"),
             (IndexIn, index), (InOut, kCacheRef), (InOut, ckvCacheRef),
             (Optional<In>, kRopeScaleOptional), (Optional<In>, cKvScaleOptional),
             (Optional<In>, kRopeOffsetOptional), (Optional<In>, cKvOffsetOptional),
             (SameDtype<Optional<In>>, vOptional, "kv"), (double, epsilon),
             (char*, cacheModeOptional), (bool, isOutputKv), (Optional<Out>, kRopeOut),
             (Optional<Out>, cKvOut)) {
  write_caches(*this);
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
  expect_text("cacheModeOptional", cacheModeOptional, {"", "PA_NZ"});
  expect_dtype("qkv", qkv, {at::kHalf, at::kBFloat16});
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
  const at::Tensor cosines = wide(cos).unsqueeze(1), sines = wide(sin).unsqueeze(1);
  const at::Tensor query =
      rotated_halves(rms_normalized(parts[0], qGamma, epsilon), cosines, sines);
  const at::Tensor key = rotated_halves(rms_normalized(parts[1], kGamma, epsilon), cosines, sines);
  const auto in_cache = [&](const at::Tensor& elements, const Output& cache,
                            const Quantization& by) {
    return updated_fractals(cache, index, stored(elements, cache, qkv, by), page);
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

// Queries and keys are quantised by the largest element of a head, values by vScaleOptional.
// Behaviour of QkvRmsNormRopeCacheWithKScale: Queries and keys are rounded to BFLOAT16 before the
// product with rotationOptional, as in CANN's kernel; everything else is computed in FLOAT. A head
// of zeros has the scale 0 and NaN.
ACLNN_STRUCT(QkvRmsNormRopeCacheWithKScale, (Floating<In>, qkv), (In, qGamma), (In, kGamma),
             (In, cosSin), (In, slotMapping), (EncodedInOut, kCacheRef), (EncodedInOut, vCacheRef),
             (InOut, kScaleCacheRef), (In, queryStartLoc), (In, seqLens), (In, rotationOptional),
             (In, vScaleOptional), (Ints, headNums), (char*, layoutQkv), (char*, layoutQOut),
             (float, epsilon), (Stored<Out>, qOut), (Out, qScale)) {
  expect_text("layoutQkv", layoutQkv, {"TND", "NTD", ""});
  expect_text("layoutQOut", layoutQOut, {"TND", "NTD", ""});
  const bool heads_first = layoutQkv == "NTD", is_out_by_token = layoutQOut == "TND";
  EXPECT(!heads_first || !is_out_by_token, "layoutQOut is TND, expected NTD as layoutQkv is NTD");
  check_heads(headNums);
  expect_dtype("qkv", qkv, at::kBFloat16);
  expect_dims("qkv", qkv, 3);
  expect_elements("qkv", qkv);
  const int64_t heads = headNums[0] + headNums[1] + headNums[2];
  const int64_t tokens = qkv.size(heads_first ? 1 : 0);
  expect_shape("qkv", heads_first ? qkv.transpose(0, 1) : qkv, {tokens, heads, kHeadSize});
  check_scaled(*this, tokens);
  expect_type(qOut, {ACL_FLOAT8_E4M3FN});
  const int64_t first = is_out_by_token ? tokens : headNums[0];
  const int64_t second = is_out_by_token ? headNums[0] : tokens;
  expect_shape("qOut", qOut, {first, second, kHeadSize});
  expect_float(qScale, {first, second});

  const at::Tensor rows = has_values(qkv)
                              ? rotary_rows(queryStartLoc, seqLens, tokens, cosSin.size(0))
                              : at::zeros({tokens}, slotMapping.options().dtype(at::kLong));
  const at::Tensor angles = cosSin.index_select(0, rows);
  const auto parts = wide(heads_first ? qkv.transpose(0, 1) : qkv).split_with_sizes(headNums, 1);
  const at::Tensor query = rotated_heads(parts[0], qGamma, angles, epsilon, rotationOptional);
  const at::Tensor key = rotated_heads(parts[1], kGamma, angles, epsilon, rotationOptional);
  const double most = largest_of(ACL_FLOAT8_E4M3FN);
  const at::Tensor value = at::clamp(parts[2] * vScaleOptional.unsqueeze(-1), -most, most);
  const at::Tensor query_scale = scales_of(query), key_scale = scales_of(key);
  const at::Tensor slots = slotMapping.to(at::kLong);
  const auto in_cache = [&](const Output& cache, const at::Tensor& elements) {
    return updated(cache, slots, elements, heads_last);
  };
  const auto in_layout = [&](const at::Tensor& of_tokens) {
    return is_out_by_token ? of_tokens : of_tokens.transpose(0, 1);
  };
  const at::Tensor new_keys = in_cache(kCacheRef, kCacheRef.encoded(key / key_scale)),
                   new_values = in_cache(vCacheRef, vCacheRef.encoded(value)),
                   new_scales = in_cache(kScaleCacheRef, key_scale);
  kCacheRef = new_keys;
  vCacheRef = new_values;
  kScaleCacheRef = new_scales;
  qOut = in_layout(query / query_scale);
  qScale = in_layout(query_scale.squeeze(-1));
}

}  // namespace aclnn_host::attention_normalized_cache_rows
