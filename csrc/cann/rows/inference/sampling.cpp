// Samples tokens by their logits: the top k, the top p (the largest whose probabilities sum up to
// p), and min p (those of at least a share of the largest probability).

#include "cann/rows/row.h"

namespace aclnn_host::inference_sampling_rows {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A number for each row, [rows] or [rows, 1].
at::Tensor per_row(const char* name, const at::Tensor& tensor, const at::Tensor& logits) {
  EXPECT((tensor.dim() == 1 || (tensor.dim() == 2 && tensor.size(1) == 1)) &&
             tensor.size(0) == logits.size(0),
         name, " has shape ", tensor.sizes(), ", expected [", logits.size(0), "]");
  return tensor.reshape({-1});
}
at::Tensor counts(const char* name, const at::Tensor& tensor, const at::Tensor& logits) {
  expect_dtype(name, tensor, {at::kInt, at::kLong});
  return per_row(name, tensor, logits).to(at::kLong);
}
at::Tensor shares(const char* name, const at::Tensor& tensor, const at::Tensor& logits) {
  return wide(per_row(name, tensor, logits));
}

// The filters of a row of logits.
struct Filter {
  int64_t most;         // the largest k that is applied
  bool is_logits;       // otherwise the row has probabilities
  bool includes_equal;  // keep one more token if the sum is exactly p
  int64_t k = 0;
  double p = 1;
  double min_p = 0;
};

// The tokens that pass the filters and their probabilities: in descending order, or in the order of
// the row if neither k nor p filters.
struct Tokens {
  at::Tensor ids;
  at::Tensor probabilities;

  void select(const at::Tensor& chosen) {
    ids = ids.index_select(0, chosen);
    probabilities = probabilities.index_select(0, chosen);
  }
  void keep_first(int64_t count) {
    ids = ids.narrow(0, 0, count);
    probabilities = probabilities.narrow(0, 0, count);
  }
};

// The number of descending probabilities that are needed for a sum of p; at least 1.
int64_t nucleus(const at::Tensor& probabilities, const Filter& filter) {
  if (filter.p <= 0) return 1;
  const at::Tensor sums = at::cumsum(probabilities, 0).narrow(0, 0, probabilities.numel() - 1);
  const at::Tensor is_short = filter.includes_equal ? sums <= filter.p : sums < filter.p;
  return 1 + is_short.sum().item().toLong();
}

Tokens tokens_of(const at::Tensor& row, const Filter& filter) {
  const auto probabilities = [&](const at::Tensor& logits) {
    return filter.is_logits ? at::softmax(logits, 0) : logits;
  };
  const bool uses_k = filter.k >= 1 && filter.k <= filter.most;
  const bool uses_p = filter.p < 1;
  Tokens tokens;
  if (!uses_k && !uses_p && filter.min_p < 1) {
    tokens = {at::arange(row.numel(), row.options().dtype(at::kLong)), probabilities(row)};
  } else {
    const auto [values, ids] = at::sort(row, /*stable=*/true, 0, /*descending=*/true);
    const int64_t count = uses_k ? filter.k : row.numel();
    tokens = {ids.narrow(0, 0, count), probabilities(values.narrow(0, 0, count))};
  }
  if (uses_p) tokens.keep_first(nucleus(tokens.probabilities, filter));
  if (filter.min_p >= 1) {
    tokens.keep_first(1);
  } else if (filter.min_p > 0) {
    const at::Tensor least = tokens.probabilities.max() * filter.min_p;
    const at::Tensor kept = at::ge(tokens.probabilities, least).nonzero().squeeze(1);
    if (kept.numel() == 0) {  // with NaN
      tokens.keep_first(1);
    } else {
      tokens.select(kept);
    }
  }
  return tokens;
}

// The token with the largest probability, or the largest ratio of it to its number in q.
at::Tensor chosen(const Tokens& tokens, const std::optional<at::Tensor>& q, int64_t row,
                  double eps) {
  at::Tensor weights = tokens.probabilities;
  if (q) weights = weights / (q->select(0, row).narrow(0, 0, weights.numel()) + eps);
  return tokens.ids.index_select(0, at::argmax(weights).reshape({1}));
}

void check_logits(const at::Tensor& logits, const std::optional<at::Tensor>& q) {
  expect_dims("logits", logits, 2);
  constexpr int64_t kMost = 1 << 20;
  EXPECT(logits.size(0) > 0 && logits.size(1) > 0 && logits.size(1) <= kMost, "logits has shape ",
         logits.sizes(), ", expected rows of 1 to ", kMost, " elements");
  if (q) expect_dtype("q", *q, at::kFloat);
}

// Refuses an output that is requested and absent, or has another dtype or shape.
void check_requested(const char* name, const OptionalOutput& out, const char* why,
                     at::ScalarType dtype, at::IntArrayRef shape) {
  EXPECT(out, name, " is null, expected a tensor as ", why);
  expect_dtype(name, *out, dtype);
  expect_shape(name, *out, shape);
}

// The logits of the tokens that pass, at their positions, and `otherwise` elsewhere.
at::Tensor left_of(const at::Tensor& row, const Tokens& tokens, double otherwise) {
  return at::full({row.numel()}, otherwise, row.options())
      .index_copy(0, tokens.ids, row.index_select(0, tokens.ids));
}

}  // namespace

// Values equal to the k-th largest are kept, too.
// Behaviour of TopKTopPSample*, ApplyTopKTopP: Tokens are sorted stably, and their probabilities
// are added one at a time. Nothing is drawn.
ACLNN(ApplyTopKTopP, (Floating<In>, logits), (SameDtype<Optional<In>>, p, "logits"),
      (Optional<In>, k), (Like<Out>, out, "logits")) {
  EXPECT(p || k, "p and k are null, expected a tensor for one of them");
  expect_dims("logits", logits, 2);
  std::optional<at::Tensor> shares_left, counts_left;
  if (p) shares_left = shares("p", *p, logits);
  if (k) counts_left = counts("k", *k, logits);
  if (logits.numel() == 0) return;
  const auto [sorted, ids] = at::sort(wide(logits), /*stable=*/true, 1, /*descending=*/false);
  at::Tensor values = sorted;
  const int64_t size = logits.size(1);
  if (counts_left) {
    const at::Tensor is_used = (*counts_left > 0).logical_and(*counts_left < size);
    const at::Tensor count = at::where(is_used, *counts_left, c10::Scalar(size));
    const at::Tensor least = values.gather(1, (size - count).unsqueeze(1));
    values = values.masked_fill(values < least, kNever);
  }
  if (shares_left) {
    const at::Tensor sums = at::cumsum(at::softmax(values, 1), 1);
    const at::Tensor is_dropped = sums <= (1 - *shares_left).unsqueeze(1);
    is_dropped.select(1, size - 1).fill_(false);
    values = values.masked_fill(is_dropped, kNever);
  }
  out = at::scatter(values, 1, ids, values);
}

// topKGuess is the number of tokens that a device tries first; it does not change the result.
// Outputs that are not requested keep their values.
ACLNN(TopKTopPSample, (Floating<In>, logits), (In, topK), (SameDtype<In>, topP, "logits"),
      (SameShape<Optional<In>>, q, "logits"), (double, eps), (bool, isNeedLogits),
      (int64_t, topKGuess), (Out, logitsSelectIdx), (Optional<Out>, logitsTopKPSelect)) {
  check_logits(logits, q);
  expect_at_least("topKGuess", topKGuess, 1);
  const at::Tensor ks = counts("topK", topK, logits), ps = shares("topP", topP, logits);
  expect_dtype("logitsSelectIdx", logitsSelectIdx, at::kLong);
  expect_shape("logitsSelectIdx", logitsSelectIdx, {logits.size(0)});
  if (isNeedLogits) {
    check_requested("logitsTopKPSelect", logitsTopKPSelect, "isNeedLogits is true", at::kFloat,
                    logits.sizes());
  }
  if (!logitsSelectIdx.is_written()) return;
  const at::Tensor all = logits.to(at::kFloat);
  const at::Tensor index = at::zeros({all.size(0)}, topK.options().dtype(at::kLong));
  const at::Tensor left = at::zeros(all.sizes(), all.options());
  Filter filter{std::min<int64_t>(1024, all.size(1)), /*is_logits=*/true, /*includes_equal=*/true};
  for (int64_t row = 0; row < all.size(0); ++row) {
    filter.k = ks.select(0, row).item().toLong();
    filter.p = ps.select(0, row).item().toDouble();
    const Tokens tokens = tokens_of(all.select(0, row), filter);
    index.select(0, row).copy_(chosen(tokens, q, row, eps.value()).squeeze(0));
    if (isNeedLogits) left.select(0, row).copy_(left_of(all.select(0, row), tokens, kNever));
  }
  logitsSelectIdx = index;
  if (isNeedLogits) logitsTopKPSelect = left;
}
// With isNeedSampleResult the result is the tokens that pass and their probabilities, followed by
// zeros, and no token is chosen.
ACLNN(TopKTopPSampleV2, (Floating<In>, logits), (In, topK), (SameDtype<In>, topP, "logits"),
      (SameShape<Optional<In>>, q, "logits"), (SameDtype<Optional<In>>, minPs, "logits"),
      (double, eps), (bool, isNeedLogits),
      (Unused<int64_t>, topKGuess, "CANN sorts so many tokens first; the result is the same"),
      (int64_t, ksMax), (bool, inputIsLogits), (bool, isNeedSampleResult),
      (Optional<Out>, logitsSelectIdx), (Optional<Out>, logitsTopKPSelect),
      (Optional<Out>, logitsIdx), (Optional<Out>, logitsSortMasked)) {
  check_logits(logits, q);
  expect_range("ksMax", ksMax, 1, 1024);
  const at::Tensor ks = counts("topK", topK, logits), ps = shares("topP", topP, logits);
  std::optional<at::Tensor> min_ps;
  if (minPs) min_ps = shares("minPs", *minPs, logits);
  if (isNeedSampleResult) {
    const char* const why = "isNeedSampleResult is true";
    check_requested("logitsIdx", logitsIdx, why, at::kLong, logits.sizes());
    check_requested("logitsSortMasked", logitsSortMasked, why, at::kFloat, logits.sizes());
  } else {
    check_requested("logitsSelectIdx", logitsSelectIdx, "isNeedSampleResult is false", at::kLong,
                    {logits.size(0)});
  }
  if (isNeedLogits) {
    check_requested("logitsTopKPSelect", logitsTopKPSelect, "isNeedLogits is true", at::kFloat,
                    logits.sizes());
  }
  if (!(isNeedSampleResult ? *logitsIdx : *logitsSelectIdx).is_written()) return;
  const at::Tensor all = logits.to(at::kFloat);
  const auto integers = all.options().dtype(at::kLong);
  const at::Tensor index = at::zeros({all.size(0)}, integers);
  const at::Tensor left = at::zeros(all.sizes(), all.options());
  const at::Tensor ids = at::zeros(all.sizes(), integers);
  const at::Tensor probabilities = at::zeros(all.sizes(), all.options());
  const int64_t most = std::min<int64_t>((ksMax.value() + 7) / 8 * 8, all.size(1));
  Filter filter{most, inputIsLogits, /*includes_equal=*/false};
  for (int64_t row = 0; row < all.size(0); ++row) {
    filter.k = ks.select(0, row).item().toLong();
    filter.p = ps.select(0, row).item().toDouble();
    if (min_ps) filter.min_p = min_ps->select(0, row).item().toDouble();
    Tokens tokens = tokens_of(all.select(0, row), filter);
    // If p is 0 or less, one token remains, with probability 1.
    if (inputIsLogits && filter.p <= 0) tokens.probabilities = at::ones({1}, all.options());
    const int64_t count = tokens.ids.numel();
    if (isNeedSampleResult) {
      ids.select(0, row).narrow(0, 0, count).copy_(tokens.ids);
      probabilities.select(0, row).narrow(0, 0, count).copy_(tokens.probabilities);
    } else {
      index.select(0, row).copy_(chosen(tokens, q, row, eps.value()).squeeze(0));
    }
    if (isNeedLogits) {
      left.select(0, row).copy_(left_of(all.select(0, row), tokens, inputIsLogits ? kNever : 0.0));
    }
  }
  if (isNeedSampleResult) {
    logitsIdx = ids;
    logitsSortMasked = probabilities;
  } else {
    logitsSelectIdx = index;
  }
  if (isNeedLogits) logitsTopKPSelect = left;
}

}  // namespace aclnn_host::inference_sampling_rows
