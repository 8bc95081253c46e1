#pragma once

#include "cann/atb/atb_operation.h"

// What both kinds of attention share: the attention of one sequence, and sequences in blocks.
namespace aclnn_host {

struct AttentionOfOne {
  double scale = 1;
  // Added to the scores, broadcastable to (heads, queries, keys).
  std::optional<at::Tensor> bias = {};
  std::optional<std::pair<double, double>> clamp = {};
};

// The attention of queries (queries, heads, size) to keys (keys, key heads, size) and values
// (keys, key heads, size of values), as (queries, heads, size of values). Everything is computed in
// FLOAT. Head h reads key head h / (heads / key heads).
inline at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const AttentionOfOne& how) {
  const int64_t queries = query.size(0), heads = query.size(1), keys = key.size(0),
                key_heads = key.size(1);
  const int64_t rows = heads / key_heads * queries;
  const at::Tensor grouped = wide(query).transpose(0, 1).reshape({key_heads, rows, query.size(2)});
  at::Tensor scores = at::bmm(grouped, wide(key).permute({1, 2, 0})) * c10::Scalar(how.scale);
  scores = scores.view({heads, queries, keys});
  if (how.clamp) scores = scores.clamp(how.clamp->first, how.clamp->second);
  if (how.bias) scores = scores + *how.bias;
  const at::Tensor weights = scores.softmax(-1).view({key_heads, rows, keys});
  return at::bmm(weights, wide(value).transpose(0, 1))
      .view({heads, queries, value.size(2)})
      .transpose(0, 1);
}

// The first `length` tokens of a cache (blocks, block, heads, size), which a row of a table lists.
inline at::Tensor tokens_of(const char* name, const at::Tensor& cache, const at::Tensor& row,
                            int64_t length) {
  const int64_t block = cache.size(1), count = (length + block - 1) / block;
  const at::Tensor blocks = row.narrow(0, 0, count).to(at::kLong);
  check_bounds(name, blocks, cache.size(0));
  return cache.index_select(0, blocks).flatten(0, 1).narrow(0, 0, length);
}

// -inf for the keys that a causal query does not see: those after its own position, if queries and
// keys end together.
inline at::Tensor causal_bias(int64_t queries, int64_t keys) {
  const at::Tensor ahead = at::arange(keys, at::kLong) -
                           (at::arange(queries, at::kLong) + (keys - queries)).unsqueeze(1);
  return at::zeros({queries, keys}, at::kFloat)
      .masked_fill_(ahead > 0, -std::numeric_limits<float>::infinity());
}

// Checks the numbers of heads. Returns the number of key heads.
inline int64_t checked_heads(int64_t heads, int64_t key_heads) {
  EXPECT_OR(ERROR_INVALID_PARAM, heads > 0, "headNum is ", heads, ", expected 1 or more");
  EXPECT_OR(ERROR_INVALID_PARAM, key_heads >= 0, "kvHeadNum is ", key_heads,
            ", expected 0 or more");
  EXPECT_OR(ERROR_INVALID_PARAM, key_heads == 0 || heads % key_heads == 0, "headNum is ", heads,
            ", expected a multiple of kvHeadNum, ", key_heads);
  return key_heads == 0 ? heads : key_heads;
}

// Checks lengths of sequences: each in [least, most], and their sum.
inline int64_t checked_lengths(const char* name, const std::vector<int64_t>& lengths, int64_t least,
                               int64_t most) {
  int64_t sum = 0;
  for (const int64_t length : lengths) {
    EXPECT_OR(ERROR_INVALID_PARAM, length >= least && length <= most, name, " has ", length,
              ", expected ", least, " to ", most);
    sum += length;
  }
  return sum;
}

}  // namespace aclnn_host
