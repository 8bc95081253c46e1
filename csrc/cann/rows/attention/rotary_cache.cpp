// Rotary position embeddings whose cosines and sines are looked up by position.

#include "cann/rows/row.h"

namespace aclnn_host::attention_rotary_cache_rows {

namespace {

// With several positions for each token: takes its angles from sections of the positions' rows, one
// after the other, or takes every third angle from the second and the third row.
enum CacheMode : int64_t { kSections, kInterleaved };

// The first of three rows of angles, with elements 1, 4, 7, ... from the second row and 2, 5, 8,
// ... from the third; only below three times the second section, as published.
at::Tensor interleaved(const at::Tensor& rows, at::IntArrayRef sections) {
  at::Tensor angles = rows.select(0, 0).clone();
  for (int64_t row = 1; row <= 2; ++row) {
    const int64_t end = std::min(3 * sections[1], rows.size(-1));
    if (row >= end) continue;
    angles.slice(-1, row, end, 3).copy_(rows.select(0, row).slice(-1, row, end, 3));
  }
  return angles;
}

// The cosines and sines of each token: a row of the cache, or a combination of several rows by the
// mode.
at::Tensor looked_up(const at::Tensor& cache, const at::Tensor& positions,
                     const at::OptionalIntArrayRef& sections, CacheMode mode) {
  const at::Tensor rows = at::embedding(wide(cache), positions).unflatten(-1, {2, -1});
  if (positions.dim() == 1) return rows;
  if (mode == kInterleaved) return interleaved(rows, *sections);
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (size_t i = 0; i < sections->size(); ++i) {
    parts.push_back(rows.select(0, static_cast<int64_t>(i)).narrow(-1, first, (*sections)[i]));
    first += (*sections)[i];
  }
  return at::cat(parts, -1);
}

void check_sections(const at::Tensor& positions, const at::OptionalIntArrayRef& sections,
                    int64_t half) {
  if (positions.dim() == 1) {
    const auto is_zero = [](int64_t section) { return section == 0; };
    EXPECT(!sections || std::ranges::all_of(*sections, is_zero), "mropeSection is ", *sections,
           ", expected null for positions of one dimension");
    return;
  }
  const auto count = sections ? static_cast<int64_t>(sections->size()) : 0;
  EXPECT(count == positions.size(0), "mropeSection has ", count, " elements, expected ",
         positions.size(0), ", the rows of positions");
  int64_t left = half;
  for (const int64_t section : *sections) {
    left = section < 0 || section > left ? -1 : left - section;
  }
  EXPECT(left == 0, "mropeSection is ", *sections, ", expected sizes with the sum ", half,
         ", half of the dimension of cosSinCache");
}

// Rotates the first elements of each head, each pair by one angle, and keeps the others.
at::Tensor rotated(const at::Tensor& tokens, const at::Tensor& angles, int64_t head_size,
                   bool by_halves) {
  const at::Tensor heads = wide(tokens).unflatten(1, {tokens.size(1) / head_size, head_size});
  const at::Tensor cos = angles.select(1, 0).unsqueeze(1);
  const at::Tensor sin = angles.select(1, 1).unsqueeze(1);
  const int64_t size = 2 * cos.size(-1);
  const at::Tensor part = heads.narrow(-1, 0, size);
  const at::Tensor first = by_halves ? part.narrow(-1, 0, size / 2) : part.slice(-1, 0, size, 2);
  const at::Tensor second =
      by_halves ? part.narrow(-1, size / 2, size / 2) : part.slice(-1, 1, size, 2);
  const at::Tensor pairs =
      at::stack({first * cos - second * sin, second * cos + first * sin}, by_halves ? -2 : -1);
  return at::cat({pairs.flatten(-2), heads.narrow(-1, size, head_size - size)}, -1).flatten(1);
}

// Queries and keys are rows of tokens, with the heads side by side.
void embed(const at::Tensor& positions, const at::Tensor& query, const at::Tensor& key,
           const at::Tensor& cache, const at::OptionalIntArrayRef& sections, int64_t head_size,
           bool by_halves, CacheMode mode, Output& query_out, Output& key_out) {
  expect_dims("positions", positions, 1, 2);
  expect_dims("queryIn", query, 2);
  expect_dims("keyIn", key, 2);
  expect_dims("cosSinCache", cache, 2);
  const int64_t tokens = query.size(0);
  const int64_t rotary_size = cache.size(1);
  const int64_t multiple = query.scalar_type() == at::kFloat ? 16 : 32;
  EXPECT(head_size >= 16 && head_size <= 128 && head_size % multiple == 0, "headSize is ",
         head_size, ", expected a multiple of ", multiple, " up to 128");
  EXPECT(rotary_size >= 16 && rotary_size <= head_size && rotary_size % multiple == 0,
         "cosSinCache has shape ", cache.sizes(), ", expected a multiple of ", multiple,
         " up to headSize as last dimension");
  EXPECT(query.size(1) % head_size == 0, "queryIn has shape ", query.sizes(),
         ", expected a multiple of headSize as last dimension");
  EXPECT(key.size(0) == tokens && key.size(1) % head_size == 0, "keyIn has shape ", key.sizes(),
         ", expected ", tokens, " tokens of a multiple of headSize elements each");
  EXPECT(positions.size(-1) == tokens, "positions has shape ", positions.sizes(),
         ", expected one for each of the ", tokens, " tokens");
  EXPECT(positions.dim() == 1 || positions.size(0) == 3 ||
             (positions.size(0) == 4 && mode == kSections),
         "positions has shape ", positions.sizes(), ", expected three rows",
         mode == kSections ? " or four" : " as cacheMode is 1");
  check_sections(positions, sections, rotary_size / 2);
  if (has_values(positions)) check_bounds("positions", positions, cache.size(0));
  // The ones of a rehearsal may be out of the cache's range.
  if (is_rehearsed() && cache.size(0) <= 1) return;
  const at::Tensor angles = looked_up(cache, positions, sections, mode);
  query_out = rotated(query, angles, head_size, by_halves);
  key_out = rotated(key, angles, head_size, by_halves);
}

}  // namespace

ACLNN(RopeWithSinCosCache, (IndexIn, positions), (Floating<In>, queryIn),
      (SameDtype<Floating<In>>, keyIn, "queryIn"),
      (SameDtype<Floating<In>>, cosSinCache, "queryIn"), (Optional<Ints>, mropeSection),
      (int64_t, headSize), (bool, isNeoxStyle), (Like<Out>, queryOut, "queryIn"),
      (Like<Out>, keyOut, "keyIn")) {
  embed(positions, queryIn, keyIn, cosSinCache, mropeSection, headSize, isNeoxStyle, kSections,
        queryOut, keyOut);
}
ACLNN(RopeWithSinCosCacheV2, (IndexIn, positions), (Floating<In>, queryIn),
      (SameDtype<Floating<In>>, keyIn, "queryIn"),
      (SameDtype<Floating<In>>, cosSinCache, "queryIn"), (Optional<Ints>, mropeSection),
      (int64_t, headSize), (bool, isNeoxStyle), (int64_t, cacheMode),
      (Like<Out>, queryOut, "queryIn"), (Like<Out>, keyOut, "keyIn")) {
  expect_one_of("cacheMode", cacheMode, {kSections, kInterleaved}, " (sections or interleaved)");
  embed(positions, queryIn, keyIn, cosSinCache, mropeSection, headSize, isNeoxStyle,
        static_cast<CacheMode>(cacheMode.value()), queryOut, keyOut);
}

}  // namespace aclnn_host::attention_rotary_cache_rows
