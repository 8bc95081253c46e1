// Rotary position embeddings whose cosines and sines are looked up by positions.

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/stack.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

bool is_absent(const at::OptionalIntArrayRef& sections) {
  if (!sections) return true;
  for (const int64_t section : *sections) {
    if (section != 0) return false;
  }
  return true;
}

// The cosines and sines of each token: a row of the cache, or of several rows a section each.
at::Tensor looked_up(const at::Tensor& cache, const at::Tensor& positions,
                     const at::OptionalIntArrayRef& sections) {
  const at::Tensor rows = at::embedding(wide(cache), positions).unflatten(-1, {2, -1});
  if (positions.dim() == 1) return rows;
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
    TORCH_CHECK(is_absent(sections), "mropeSection is ", *sections,
                ", expected null for positions of one dimension");
    return;
  }
  const auto count = sections ? static_cast<int64_t>(sections->size()) : 0;
  TORCH_CHECK(count == positions.size(0), "mropeSection has ", count, " elements, expected ",
              positions.size(0), ", the rows of positions");
  int64_t left = half;
  for (const int64_t section : *sections) {
    TORCH_CHECK(section >= 0 && section <= left, "mropeSection is ", *sections,
                ", expected sizes with the sum ", half, ", half of the dimension of cosSinCache");
    left -= section;
  }
  TORCH_CHECK(left == 0, "mropeSection is ", *sections, ", expected sizes with the sum ", half,
              ", half of the dimension of cosSinCache");
}

// Turns the first elements of each head, pairs of them by one angle; the others stay.
at::Tensor turned(const at::Tensor& tokens, const at::Tensor& angles, int64_t head_size,
                  bool by_halves) {
  const at::Tensor heads = wide(tokens).unflatten(1, {tokens.size(1) / head_size, head_size});
  const at::Tensor cos = angles.select(1, 0).unsqueeze(1);
  const at::Tensor sin = angles.select(1, 1).unsqueeze(1);
  const int64_t size = 2 * cos.size(-1);
  const at::Tensor part = heads.narrow(-1, 0, size);
  const at::Tensor first = by_halves ? part.narrow(-1, 0, size / 2) : part.slice(-1, 0, size, 2);
  const at::Tensor second =
      by_halves ? part.narrow(-1, size / 2, size / 2) : part.slice(-1, 1, size, 2);
  const at::Tensor results[] = {first * cos - second * sin, second * cos + first * sin};
  const at::TensorList pair(results);
  const at::Tensor parts[] = {by_halves ? at::cat(pair, -1) : at::stack(pair, -1).flatten(-2),
                              heads.narrow(-1, size, head_size - size)};
  return at::cat(at::TensorList(parts), -1).flatten(1);
}

}  // namespace

ACLNN(RopeWithSinCosCache, (IndexIn, positions), (FloatIn, queryIn), (FloatIn, keyIn),
      (FloatIn, cosSinCache), (OptionalInts, mropeSection), (int64_t, headSize),
      (bool, isNeoxStyle), (Out, queryOut), (Out, keyOut)) {
  expect_dims("positions", positions, 1, 2);
  expect_dims("queryIn", queryIn, 2);
  expect_dims("keyIn", keyIn, 2);
  expect_dims("cosSinCache", cosSinCache, 2);
  expect_dtype("keyIn", keyIn, queryIn);
  expect_dtype("cosSinCache", cosSinCache, queryIn);
  expect_dtype(queryOut, queryIn);
  expect_dtype(keyOut, keyIn);
  const int64_t tokens = queryIn.size(0);
  const int64_t head_size = headSize;
  const int64_t rotary_size = cosSinCache.size(1);
  const int64_t multiple = queryIn.scalar_type() == at::kFloat ? 16 : 32;
  TORCH_CHECK(head_size >= 16 && head_size <= 128 && head_size % multiple == 0, "headSize is ",
              head_size, ", expected a multiple of ", multiple, " up to 128");
  TORCH_CHECK(rotary_size >= 16 && rotary_size <= head_size && rotary_size % multiple == 0,
              "cosSinCache has shape ", cosSinCache.sizes(), ", expected a multiple of ", multiple,
              " up to headSize as last dimension");
  TORCH_CHECK(queryIn.size(1) % head_size == 0, "queryIn has shape ", queryIn.sizes(),
              ", expected a multiple of headSize as last dimension");
  TORCH_CHECK(keyIn.size(0) == tokens && keyIn.size(1) % head_size == 0, "keyIn has shape ",
              keyIn.sizes(), ", expected ", tokens,
              " tokens of a multiple of headSize elements each");
  TORCH_CHECK(positions.size(-1) == tokens, "positions has shape ", positions.sizes(),
              ", expected one for each of the ", tokens, " tokens");
  TORCH_CHECK(positions.dim() == 1 || positions.size(0) == 3 || positions.size(0) == 4,
              "positions has shape ", positions.sizes(), ", expected three or four rows");
  check_sections(positions, mropeSection, rotary_size / 2);
  if (!is_rehearsed()) check_bounds("positions", positions, cosSinCache.size(0));
  expect_shape("queryOut", queryOut, queryIn.sizes());
  expect_shape("keyOut", keyOut, keyIn.sizes());
  // The ones of a rehearsal may be no places of the cache.
  if (is_rehearsed() && cosSinCache.size(0) <= 1) return;
  const at::Tensor angles = looked_up(cosSinCache, positions, mropeSection);
  queryOut = turned(queryIn, angles, head_size, isNeoxStyle);
  keyOut = turned(keyIn, angles, head_size, isNeoxStyle);
}
