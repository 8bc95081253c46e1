// Attention between edges of a graph through a third node (Floyd attention), and its gradients: for
// each node k, the query of edge (n, m) attends to the keys of the edges (n, k) and (k, m).

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_floyd_rows {

namespace {

// A pair of tensors of the edges (n, k) and (k, m).
using Edges = std::pair<at::Tensor, at::Tensor>;

// Products of x, (n, m, elements), with both edges through k; the result is (n, m, k).
at::Tensor with_edges(const at::Tensor& x, const Edges& edges) {
  return at::matmul(x, edges.first.transpose(1, 2)) +
         at::matmul(x.transpose(0, 1), edges.second.permute({1, 2, 0})).transpose(0, 1);
}
// Weighted sums of both edges over k, for weights (n, m, k); the result is (n, m, elements).
at::Tensor of_edges(const at::Tensor& weights, const Edges& edges) {
  return at::matmul(weights, edges.first) +
         at::matmul(weights.transpose(0, 1), edges.second.transpose(0, 1)).transpose(0, 1);
}
// The gradients of both edges in with_edges() and of_edges(), from weights and x.
Edges edge_gradients(const at::Tensor& weights, const at::Tensor& x) {
  return {at::matmul(weights.transpose(1, 2), x),
          at::matmul(weights.permute({1, 2, 0}), x.transpose(0, 1)).transpose(0, 1)};
}

struct Floyd {
  at::Tensor query;
  at::Tensor key1, value1;  // of the edges (n, k)
  at::Tensor key2, value2;  // of the edges (k, m)
  std::optional<at::Tensor> mask;
  double scale;

  int64_t batch() const { return query.size(0); }
  int64_t heads() const { return query.size(1); }

  void check() const;

  // One head of one batch, in FLOAT.
  at::Tensor part(const at::Tensor& x, int64_t b, int64_t h) const {
    return x.select(0, b).select(0, h).to(at::kFloat);
  }
  Edges keys(int64_t b, int64_t h) const { return {part(key1, b, h), part(key2, b, h)}; }
  Edges values(int64_t b, int64_t h) const { return {part(value1, b, h), part(value2, b, h)}; }

  struct Softmax {
    at::Tensor largest;
    at::Tensor sum;
    at::Tensor probabilities;
  };
  at::Tensor scores(int64_t b, int64_t h) const {
    const at::Tensor all = with_edges(part(query, b, h), keys(b, h)) * scale;
    if (!mask) return all;
    const at::Tensor hidden = mask->select(0, b).select(0, 0).to(at::kBool);
    return all.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  Softmax softmax(int64_t b, int64_t h) const {
    const at::Tensor scores = this->scores(b, h);
    const at::Tensor largest = scores.amax(2, /*keepdim=*/true);
    // A query with no visible key has probabilities of 0.
    const at::Tensor is_blind = largest == -std::numeric_limits<double>::infinity();
    const at::Tensor powers = (scores - largest.masked_fill(is_blind, 0.0)).exp();
    const at::Tensor sum = powers.sum(2, /*keepdim=*/true);
    return {largest, sum, powers / sum.masked_fill(is_blind, 1.0)};
  }
};

void Floyd::check() const {
  constexpr int64_t kEdgeMultiple = 128, kNodeMultiple = 16;
  constexpr int64_t kMostBatch = 2048, kMostHeads = 256, kMostNodes = 1 << 20;
  expect_dtype("query", query, {at::kHalf, at::kBFloat16});
  expect_dims("query", query, 5);
  expect_dims("key1", key1, 5);
  const int64_t n = query.size(2), m = query.size(3), size = query.size(4), k = key1.size(3);
  const auto is_size = [](int64_t count, int64_t multiple) {
    return count > 0 && count % multiple == 0 && count <= kMostNodes;
  };
  EXPECT(batch() >= 1 && batch() <= kMostBatch && heads() >= 1 && heads() <= kMostHeads &&
             is_size(n, kNodeMultiple) && is_size(m, kEdgeMultiple),
         "query has shape ", query.sizes(), ", expected up to ", kMostBatch, " batches of up ",
         "to ", kMostHeads, " heads, N a multiple of ", kNodeMultiple, " and M one of ",
         kEdgeMultiple);
  EXPECT(is_size(k, kEdgeMultiple), "key1 has shape ", key1.sizes(), ", expected K a multiple of ",
         kEdgeMultiple);
  EXPECT(size == 32 || size == 64 || size == 128, "query has ", size,
         " elements of each edge, expected 32, 64 or 128");
  expect_shape("key1", key1, {batch(), heads(), n, k, size});
  expect_shape("key2", key2, {batch(), heads(), k, m, size});
  if (!mask) return;
  expect_dtype("attenMaskOptional", *mask, {at::kBool, at::kByte});
  expect_shape("attenMaskOptional", *mask, {batch(), 1, n, 1, k});
}

}  // namespace

// Behaviour of FusedFloydAttention*: Everything is computed in FLOAT, and each result is rounded
// once. A query that sees nothing has the result 0.
ACLNN(FusedFloydAttention, (Floating<In>, query), (SameDtype<Floating<In>>, key1, "query"),
      (Like<Floating<In>>, value1, "key1"), (SameDtype<Floating<In>>, key2, "query"),
      (Like<Floating<In>>, value2, "key2"), (Optional<In>, attenMaskOptional),
      (double, scaleValueOptional), (Out, softmaxMaxOut), (Out, softmaxSumOut),
      (Like<Out>, attentionOutOut, "query")) {
  const Floyd floyd{query, key1, value1, key2, value2, attenMaskOptional, scaleValueOptional};
  floyd.check();
  const std::vector<int64_t> of_softmax = with_last(query.sizes(), {kSoftmaxCopies});
  expect_float(softmaxMaxOut, of_softmax);
  expect_float(softmaxSumOut, of_softmax);
  const auto options = query.options().dtype(at::kFloat);
  const at::Tensor results = at::zeros(query.sizes(), options);
  const at::Tensor largest = at::zeros(of_softmax, options), sum = at::zeros(of_softmax, options);
  if (has_values(query)) {
    for (int64_t b = 0; b < floyd.batch(); ++b) {
      for (int64_t h = 0; h < floyd.heads(); ++h) {
        const Floyd::Softmax softmax = floyd.softmax(b, h);
        largest.select(0, b).select(0, h).copy_(softmax.largest.expand({-1, -1, kSoftmaxCopies}));
        sum.select(0, b).select(0, h).copy_(softmax.sum.expand({-1, -1, kSoftmaxCopies}));
        results.select(0, b).select(0, h).copy_(
            of_edges(softmax.probabilities, floyd.values(b, h)));
      }
    }
  }
  softmaxMaxOut = largest;
  softmaxSumOut = sum;
  attentionOutOut = results;
}

ACLNN(FusedFloydAttentionGrad, (Floating<In>, query), (SameDtype<Floating<In>>, key1, "query"),
      (Like<Floating<In>>, value1, "key1"), (SameDtype<Floating<In>>, key2, "query"),
      (Like<Floating<In>>, value2, "key2"), (Like<Floating<In>>, dy, "query"),
      (Optional<In>, attenMaskOptional), (Floating<In>, softmaxMax), (Floating<In>, softmaxSum),
      (Like<Floating<In>>, attentionIn, "query"), (double, scaleValue), (Like<Out>, dqOut, "query"),
      (Like<Out>, dk1Out, "key1"), (Like<Out>, dv1Out, "key1"), (Like<Out>, dk2Out, "key2"),
      (Like<Out>, dv2Out, "key2")) {
  const Floyd floyd{query, key1, value1, key2, value2, attenMaskOptional, scaleValue};
  floyd.check();
  expect_float("softmaxMax", softmaxMax, with_last(query.sizes(), {kSoftmaxCopies}));
  expect_float("softmaxSum", softmaxSum, with_last(query.sizes(), {kSoftmaxCopies}));
  const auto zeros = [](const at::Tensor& x) {
    return at::zeros(x.sizes(), x.options().dtype(at::kFloat));
  };
  const at::Tensor dq = zeros(query), dk1 = zeros(key1), dv1 = zeros(key1);
  const at::Tensor dk2 = zeros(key2), dv2 = zeros(key2);
  if (has_values(query)) {
    for (int64_t b = 0; b < floyd.batch(); ++b) {
      for (int64_t h = 0; h < floyd.heads(); ++h) {
        const at::Tensor of_result = floyd.part(dy, b, h);
        const auto one_of = [&](const at::Tensor& copies) {
          return floyd.part(copies, b, h).narrow(2, 0, 1);
        };
        const at::Tensor p =
            softmax_probabilities(floyd.scores(b, h), one_of(softmaxMax), one_of(softmaxSum));
        const at::Tensor dp = with_edges(of_result, floyd.values(b, h));
        const at::Tensor of_query =
            (of_result * floyd.part(attentionIn, b, h)).sum(2, /*keepdim=*/true);
        const at::Tensor ds = score_gradient(p, dp, of_query) * floyd.scale;
        const auto write = [b, h](const at::Tensor& all, const at::Tensor& gradient) {
          all.select(0, b).select(0, h).copy_(gradient);
        };
        write(dq, of_edges(ds, floyd.keys(b, h)));
        const Edges of_keys = edge_gradients(ds, floyd.part(query, b, h));
        const Edges of_values = edge_gradients(p, of_result);
        write(dk1, of_keys.first);
        write(dk2, of_keys.second);
        write(dv1, of_values.first);
        write(dv2, of_values.second);
      }
    }
  }
  dqOut = dq;
  dk1Out = dk1;
  dv1Out = dv1;
  dk2Out = dk2;
  dv2Out = dv2;
}

}  // namespace aclnn_host::attention_floyd_rows
