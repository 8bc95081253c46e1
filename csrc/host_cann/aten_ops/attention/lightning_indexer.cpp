// Which keys matter most to each query, by a small attention of its own (DeepSeek sparse
// attention).

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/attention/token_sequences.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

bool is_published_count(int64_t count) {
  constexpr int64_t kSmall = 2048, kStep = 1024, kMost = 8192;
  return (count >= 1 && count <= kSmall) ||
         (count > kSmall && count <= kMost && count % kStep == 0);
}

void expect_reduced(const char* name, const at::Tensor& tensor) {
  TORCH_CHECK(at::isReducedFloatingType(tensor.scalar_type()), name, " has dtype ",
              dtype_text(tensor.scalar_type()), ", expected FLOAT16 or BFLOAT16");
}

}  // namespace

// The score of a key is the sum over heads of weight relu(query key). Places and values of the best
// ones stand in order, -1 and -inf behind them.
ACLNN(LightningIndexer, (FloatIn, query), (FloatIn, key), (FloatIn, weights),
      (OptionalIn, actualSeqLengthsQueryOptional), (OptionalIn, actualSeqLengthsKeyOptional),
      (OptionalIn, blockTableOptional), (char*, layoutQueryOptional), (char*, layoutKeyOptional),
      (int64_t, sparseCount), (int64_t, sparseMode), (int64_t, preTokens), (int64_t, nextTokens),
      (bool, returnValues), (Out, sparseIndicesOut), (OptionalOut, sparseValuesOut)) {
  constexpr int64_t kSize = 128, kMostHeads = 64;
  expect_reduced("query", query);
  expect_dtype("key", key, query);
  TORCH_CHECK(layoutQueryOptional != "PA_BSND",
              "layoutQueryOptional is \"PA_BSND\", expected BSND "
              "or TND");
  TokenSequences queries("query", query, layoutQueryOptional, "actualSeqLengthsQueryOptional",
                         actualSeqLengthsQueryOptional);
  TokenSequences keys("key", key, layoutKeyOptional, "actualSeqLengthsKeyOptional",
                      actualSeqLengthsKeyOptional, blockTableOptional);
  TORCH_CHECK(queries.count() == keys.count(), "key has ", keys.count(), " sequences, expected ",
              queries.count(), " as query has");
  TORCH_CHECK(queries.heads() <= kMostHeads && query.size(-1) == kSize, "query has shape ",
              query.sizes(), ", expected up to ", kMostHeads, " heads of ", kSize, " elements");
  TORCH_CHECK(keys.heads() == 1 && key.size(-1) == kSize, "key has shape ", key.sizes(),
              ", expected one head of ", kSize, " elements");
  if (weights.scalar_type() != at::kFloat) expect_dtype("weights", weights, query);
  const at::IntArrayRef of_tokens = query.sizes().slice(0, static_cast<size_t>(query.dim() - 1));
  expect_shape("weights", weights, of_tokens);
  TORCH_CHECK(is_published_count(sparseCount), "sparseCount is ", sparseCount.value(),
              ", expected 1 to 2048, or a multiple of 1024 up to 8192");
  TORCH_CHECK(sparseMode == 0 || sparseMode == 3, "sparseMode is ", sparseMode.value(),
              ", expected 0 or 3");
  TORCH_CHECK(preTokens == INT64_MAX && nextTokens == INT64_MAX,
              "preTokens or nextTokens is not the largest number, the only one supported");
  std::vector<int64_t> shape = of_tokens.vec();
  shape.back() = 1;
  shape.push_back(sparseCount);
  expect_dtype("sparseIndicesOut", sparseIndicesOut, at::kInt);
  expect_shape("sparseIndicesOut", sparseIndicesOut, shape);
  if (returnValues) {
    TORCH_CHECK(sparseValuesOut && !keys.is_paged(),
                "returnValues is true, expected a tensor sparseValuesOut and no pages of keys");
    expect_dtype(*sparseValuesOut, query);
    expect_shape("sparseValuesOut", *sparseValuesOut, shape);
  }

  const int64_t tokens = query.numel() / (queries.heads() * kSize);
  const auto options = query.options().dtype(at::kFloat);
  const at::Tensor indices = at::full({tokens, sparseCount.value()}, -1, options.dtype(at::kInt));
  const at::Tensor values = at::full({tokens, sparseCount.value()}, kHidden, options);
  if (query.is_cpu() && !is_rehearsed()) {
    queries.measure();
    keys.measure();
    for (int64_t i = 0; i < queries.count(); ++i) {
      const int64_t rows = queries.length(i), columns = keys.length(i);
      if (rows == 0 || columns == 0) continue;
      const at::Tensor of_keys = keys.read(key, i).squeeze(1).t();
      at::Tensor scores = (at::relu(at::matmul(queries.read(query, i), of_keys)) *
                           queries.read(weights, i).unsqueeze(-1))
                              .sum(1);
      if (sparseMode == 3) {
        const auto places = options.dtype(at::kLong);
        const at::Tensor ahead =
            at::arange(columns, places) - at::arange(rows, places).unsqueeze(1);
        scores = scores.masked_fill(ahead > columns - rows, kHidden);
      }
      const int64_t count = std::min(sparseCount.value(), columns);
      const auto [sorted, order] = at::sort(scores, /*stable=*/true, -1, /*descending=*/true);
      const at::Tensor best = sorted.narrow(1, 0, count);
      const at::Tensor place = at::where(best == kHidden, -1, order.narrow(1, 0, count));
      indices.narrow(0, queries.first(i), rows).narrow(1, 0, count).copy_(place);
      values.narrow(0, queries.first(i), rows).narrow(1, 0, count).copy_(best);
    }
  }
  sparseIndicesOut = indices.view(shape);
  if (returnValues) sparseValuesOut = values.view(shape);
}
