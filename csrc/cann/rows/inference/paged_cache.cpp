// Caches of keys and values in blocks (paged attention): written token by token, and gathered
// sequence by sequence.

#include <numeric>

#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/integers.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::inference_paged_cache_rows {

namespace {

void expect_plain_cache(std::string_view mode) {
  EXPECT(mode.empty() || mode == "Norm", "cacheMode is \"", mode,
         "\", expected \"Norm\" or null; the host CANN does not emulate caches in FRACTAL_NZ");
}

void refuse_compressed(const std::optional<at::Tensor>& lengths,
                       const std::optional<at::Tensor>& offsets,
                       const std::optional<at::Tensor>& sequence_lengths) {
  EXPECT(!lengths && !offsets && !sequence_lengths,
         "compressLensOptional, compressSeqOffsetOptional or seqLensOptional is given, expected",
         " null; the host CANN does not emulate compressed keys");
}

// Checks a cache (blocks, block, heads, size) for tokens (tokens, heads, size).
void expect_cache(const char* name, const at::Tensor& cache, const at::Tensor& tokens) {
  expect_dtype(name, cache, tokens);
  expect_dims(name, cache, 4);
  expect_shape(name, cache, {cache.size(0), cache.size(1), tokens.size(1), tokens.size(2)});
}

// A token with a negative slot is padding and is not written.
void expect_slots(const at::Tensor& slots, const at::Tensor& tokens, int64_t blocks,
                  int64_t block) {
  expect_shape("slotMapping", slots, {tokens.size(0)});
  EXPECT(block > 0, "keyCacheRef has blocks of no tokens, expected 1 or more");
  if (!slots.is_cpu() || slots.numel() == 0) return;
  const int64_t last = at::amax(slots).item().toLong();
  EXPECT(last < blocks * block, "slotMapping has ", last, ", expected less than ", blocks * block,
         ", or a negative number for a token that is not written");
}

// A cache and its tokens, both split into pieces: the elements of a head, or 32 bytes (PA_NZ).
struct Cache {
  // Checks the cache for tokens of (tokens, heads, size).
  Cache(const char* name, const at::Tensor& cache, const at::Tensor& of_tokens, bool in_pieces) {
    if (!in_pieces) {
      expect_cache(name, cache, of_tokens);
      blocks = cache;
      tokens = of_tokens;
      return;
    }
    const int64_t piece = 32 / static_cast<int64_t>(of_tokens.element_size());
    const int64_t size = of_tokens.size(1) * of_tokens.size(2);
    EXPECT(size % piece == 0, "a token of ", name, " has ", size,
           " elements, expected a multiple of ", piece, ", 32 bytes, as cacheMode is PA_NZ");
    expect_dtype(name, cache, of_tokens);
    expect_dims(name, cache, 4);
    expect_shape(name, cache, {cache.size(0), size / piece, cache.size(2), piece});
    blocks = cache.transpose(1, 2);
    tokens = of_tokens.flatten(1).unflatten(1, {size / piece, piece});
  }

  at::Tensor blocks;  // (blocks, block, pieces, size of a piece)
  at::Tensor tokens;  // (tokens, pieces, size of a piece)
};

// The row of the cache that holds each token of the sequences; -1 if the table has no block for it.
// A sequence starts in block `skipped` of its table.
std::vector<int64_t> rows_of(const std::vector<int64_t>& lengths, const at::Tensor& tables,
                             const std::vector<int64_t>& skipped, int64_t blocks, int64_t block) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int64_t> table = integers_in(tables.select(0, static_cast<int64_t>(i)));
    for (int64_t token = 0; token < lengths[i]; ++token) {
      const auto column = static_cast<size_t>(skipped[i] + token / block);
      const int64_t number = column < table.size() ? table[column] : -1;
      rows.push_back(number >= 0 && number < blocks ? number * block + token % block : -1);
    }
  }
  return rows;
}

// Copies the rows, zeros for -1, to the beginning of `tokens`.
void gather_rows(const at::Tensor& tokens, const at::Tensor& cache,
                 const std::vector<int64_t>& rows) {
  const at::Tensor from = as_movable(cache).flatten(0, 1), to = as_movable(tokens);
  for (size_t i = 0; i < rows.size(); ++i) {
    const at::Tensor token = to.select(0, static_cast<int64_t>(i));
    rows[i] < 0 ? token.zero_() : token.copy_(from.select(0, rows[i]));
  }
}

// Checks the shapes of tokens (tokens, heads, size) and their cache (blocks, heads, block, size).
struct HeadCache {
  const char* name;
  const at::Tensor& tokens;
  const Output& cache;

  void check(const at::Tensor& like, at::IntArrayRef cache_like) const {
    expect_dims(name, tokens, 3);
    expect_elements(name, tokens);
    expect_shape(name, tokens, {like.size(0), like.size(1), tokens.size(2)});
    expect_dims(cache.name(), cache, 4);
    expect_elements(cache.name(), cache);
    expect_shape(cache.name(), cache,
                 {cache_like[0], tokens.size(1), cache_like[2], tokens.size(2)});
  }
};

}  // namespace

// Token i is written to slot slotMapping[i] of the cache.
// Behaviour of ScatterPaCache, ScatterPaKvCache: A token with a negative slot is not written.
// Limit of ScatterPaCache, ScatterPaKvCache: Tokens that are not compressed are written; the
// arguments of compressed ones are refused with 161002.
ACLNN(ScatterPaCache, (In, key), (InOut, keyCacheRef), (IndexIn, slotMapping),
      (Optional<In>, compressLensOptional), (Optional<In>, compressSeqOffsetOptional),
      (Optional<In>, seqLensOptional), (Unused<char*>, cacheMode, "reserved")) {
  refuse_compressed(compressLensOptional, compressSeqOffsetOptional, seqLensOptional);
  expect_dims("key", key, 3);
  expect_cache("keyCacheRef", keyCacheRef, key);
  expect_slots(slotMapping, key, keyCacheRef->size(0), keyCacheRef->size(1));
  write_tokens(as_movable(keyCacheRef), slotMapping, as_movable(key));
}
// Token i is written to slot slotMapping[i] of both caches. Without a value only keys are written.
ACLNN(ScatterPaKvCache, (In, key), (InOut, keyCacheRef), (IndexIn, slotMapping), (In, value),
      (InOut, valueCacheRef), (Optional<In>, compressLensOptional),
      (Optional<In>, compressSeqOffsetOptional), (Optional<In>, seqLensOptional),
      (char*, cacheModeOptional), (char*, scatterModeOptional),
      (Unused<Optional<Ints>>, stridesOptional,
       "counts only in scatterModeOptional 'Nct', which is refused"),
      (Unused<Optional<Ints>>, offsetsOptional,
       "counts only in scatterModeOptional 'Nct', which is refused")) {
  const std::string_view form = cacheModeOptional;
  EXPECT(form.empty() || form == "Norm" || form == "PA_NZ", "cacheModeOptional is \"", form,
         "\", expected \"Norm\", \"PA_NZ\" or null");
  const bool in_pieces = form == "PA_NZ";
  const std::string_view mode = scatterModeOptional;
  EXPECT(mode.empty() || mode == "None", "scatterModeOptional is \"", mode,
         "\", expected \"None\" or null; the host CANN does not emulate the others");
  refuse_compressed(compressLensOptional, compressSeqOffsetOptional, seqLensOptional);
  expect_dims("key", key, 3);
  const Cache keys("keyCacheRef", keyCacheRef, key, in_pieces);
  const int64_t blocks = keys.blocks.size(0), block = keys.blocks.size(1);
  std::optional<Cache> values;
  if (value.numel() > 0) {
    expect_dims("value", value, 3);
    expect_shape("value", value, {key.size(0), key.size(1), value.size(2)});
    expect_dtype("value", value, key);
    values.emplace("valueCacheRef", valueCacheRef, value, in_pieces);
    EXPECT(values->blocks.size(0) == blocks && values->blocks.size(1) == block,
           "valueCacheRef has shape ", valueCacheRef->sizes(), ", expected ", blocks, " blocks of ",
           block);
  }
  expect_slots(slotMapping, key, blocks, block);
  write_tokens(as_movable(keys.blocks), slotMapping, as_movable(keys.tokens));
  if (values) {
    write_tokens(as_movable(values->blocks), slotMapping, as_movable(values->tokens));
  }
}

// As ScatterPaKvCache, for FLOAT8 tokens and the scales of keys, with the heads before the tokens
// of a block. Behaviour of ScatterPaKvCacheWithKScale: A token whose slot is outside the caches is
// not written, as in CANN's kernel.
ACLNN(ScatterPaKvCacheWithKScale, (Stored<In>, key), (Stored<In>, value),
      (EncodedInOut, keyCacheRef), (EncodedInOut, valueCacheRef), (IndexIn, slotMapping),
      (In, keyScale), (InOut, keyScaleCacheRef), (char*, cacheLayoutOptional)) {
  expect_text("cacheLayoutOptional", cacheLayoutOptional, {"BNBD", ""});
  expect_type("key", key, {ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN});
  expect_type("value", value, {key.dtype});
  expect_type(keyCacheRef, {key.dtype});
  expect_type(valueCacheRef, {key.dtype});
  expect_dtype("keyScale", keyScale, at::kFloat);
  expect_dtype(keyScaleCacheRef, keyScale);
  expect_dims("keyCacheRef", keyCacheRef, 4);
  expect_dims("key", key.elements, 3);
  expect_dims("keyScale", keyScale, 2);
  const at::Tensor scales = keyScale.unsqueeze(-1);
  const HeadCache caches[] = {{"key", key.elements, keyCacheRef},
                              {"value", value.elements, valueCacheRef},
                              {"keyScale", scales, keyScaleCacheRef}};
  for (const HeadCache& each : caches) each.check(key.elements, keyCacheRef->sizes());
  expect_shape("slotMapping", slotMapping, {keyScale.size(0)});
  const auto in_cache = [&](const Output& cache, const at::Tensor& tokens) {
    return updated(cache, slotMapping, tokens, heads_last);
  };
  const at::Tensor keys = in_cache(keyCacheRef, keyCacheRef.encoded(key.elements)),
                   values = in_cache(valueCacheRef, valueCacheRef.encoded(value.elements)),
                   key_scales = in_cache(keyScaleCacheRef, scales);
  keyCacheRef = keys;
  valueCacheRef = values;
  keyScaleCacheRef = key_scales;
}

// seqLens has the length of each sequence, or the cumulative lengths; seqOffsetOptional has the
// number of tokens of each to skip, in whole blocks.
ACLNN(GatherPaKvCache, (In, keyCache), (In, valueCache), (IndexIn, blockTables), (IndexIn, seqLens),
      (InOut, keyRef), (InOut, valueRef), (Optional<In>, seqOffsetOptional), (char*, cacheMode),
      (bool, isSeqLensCumsum)) {
  expect_plain_cache(cacheMode);
  expect_dims("keyRef", keyRef, 3);
  expect_dims("valueRef", valueRef, 3);
  expect_cache("keyCache", keyCache, keyRef);
  expect_cache("valueCache", valueCache, valueRef);
  const int64_t blocks = keyCache.size(0), block = keyCache.size(1), tokens = keyRef->size(0);
  EXPECT(valueCache.size(0) == blocks && valueCache.size(1) == block && valueRef->size(0) == tokens,
         "valueCache has shape ", valueCache.sizes(), " and valueRef ", valueRef->sizes(),
         ", expected as many blocks and tokens as keyCache and keyRef have, ", blocks, " of ",
         block, " and ", tokens);
  EXPECT(block > 0, "keyCache has blocks of no tokens, expected 1 or more");
  expect_dims("blockTables", blockTables, 2);
  const int64_t batch = blockTables.size(0);
  expect_shape("seqLens", seqLens, {isSeqLensCumsum ? batch + 1 : batch});
  if (seqOffsetOptional) expect_shape("seqOffsetOptional", *seqOffsetOptional, {batch});
  if (!has_values(keyRef)) return;

  std::vector<int64_t> lengths = integers_in(seqLens), skipped(static_cast<size_t>(batch), 0);
  if (isSeqLensCumsum) {
    std::adjacent_difference(lengths.begin(), lengths.end(), lengths.begin());
    lengths.erase(lengths.begin());
  }
  if (seqOffsetOptional) skipped = integers_in(*seqOffsetOptional);
  int64_t left = tokens;
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT(lengths[i] >= 0 && skipped[i] >= 0, "sequence ", i, " has ", lengths[i],
           " tokens after ", skipped[i], ", expected 0 or more");
    skipped[i] = std::min(skipped[i] / block, blockTables.size(1));  // without overflow
    lengths[i] = std::min(lengths[i], left);
    left -= lengths[i];
  }
  const std::vector<int64_t> rows = rows_of(lengths, blockTables, skipped, blocks, block);
  gather_rows(keyRef, keyCache, rows);
  gather_rows(valueRef, valueCache, rows);
}

}  // namespace aclnn_host::inference_paged_cache_rows
