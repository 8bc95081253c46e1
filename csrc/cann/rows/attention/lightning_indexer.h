#pragma once

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/token_sequences.h"
#include "cann/rows/row.h"

// Shared by the gradients of the lightning indexer and those of its loss.
namespace aclnn_host {

inline constexpr int64_t kIndexerSize = 128;

inline void expect_last(const char* name, const at::Tensor& tensor, int64_t size) {
  EXPECT(tensor.size(-1) == size, name, " has shape ", tensor.sizes(), ", expected ", size,
         " elements of each head");
}

// The scores of one query for some keys: the sum over heads of weight * relu(query * key). The
// tensors are FLOAT: query is (heads, elements), keys are (keys, elements), weights are (heads).
class QueryScores {
 public:
  QueryScores(at::Tensor query, at::Tensor keys, at::Tensor weights)
      : query_(std::move(query)),
        keys_(std::move(keys)),
        weights_(std::move(weights)),
        products_(at::matmul(query_, keys_.t())) {}

  at::Tensor values() const { return at::matmul(weights_, at::relu(products_)); }

  struct Gradients {
    at::Tensor query;
    at::Tensor keys;
    at::Tensor weights;
  };
  Gradients gradients(const at::Tensor& of_scores) const {
    const at::Tensor of_products = at::outer(weights_, of_scores) * (products_ > 0);
    return {at::matmul(of_products, keys_), at::matmul(of_products.t(), query_),
            at::matmul(at::relu(products_), of_scores)};
  }

 private:
  at::Tensor query_;
  at::Tensor keys_;
  at::Tensor weights_;
  at::Tensor products_;
};

struct IndexerNames {
  const char* query;
  const char* key;
  const char* layout;
  const char* query_lengths;
  const char* key_lengths;
};

// The queries, keys and weights of a call.
class Indexer {
 public:
  Indexer(const IndexerNames& names, const at::Tensor& query, const at::Tensor& key,
          const at::Tensor& weights, const std::string& layout,
          const std::optional<at::Tensor>& query_lengths,
          const std::optional<at::Tensor>& key_lengths)
      : query_(query),
        key_(key),
        weights_(weights),
        queries_({names.query, names.layout, names.query_lengths}, query,
                 checked_layout(names.layout, layout), query_lengths),
        keys_({names.key, names.layout, names.key_lengths}, key, layout, key_lengths) {
    constexpr int64_t kMostHeads = 64;
    expect_dtype(names.query, query, {at::kHalf, at::kBFloat16});
    expect_dtype(names.key, key, query);
    expect_last(names.query, query, kIndexerSize);
    expect_last(names.key, key, kIndexerSize);
    EXPECT(queries_.heads() <= kMostHeads, names.query, " has ", queries_.heads(),
           " heads, expected at most ", kMostHeads);
    expect_heads(names.key, key, {1});
    EXPECT(queries_.count() == keys_.count(), names.key, " has ", keys_.count(),
           " sequences, expected ", queries_.count(), " as ", names.query, " has");
    expect_shape("weights", weights, with_last(query.sizes(), {}));
  }

  const TokenSequences& queries() const { return queries_; }
  const TokenSequences& keys() const { return keys_; }
  int64_t tokens() const { return query_.numel() / (queries_.heads() * kIndexerSize); }

  void measure() {
    queries_.measure();
    keys_.measure();
  }
  // Refuses a sequence with fewer keys than queries, whose first queries would see no key.
  void expect_enough_keys(const char* name) const {
    for (int64_t i = 0; i < queries_.count(); ++i) {
      EXPECT(queries_.length(i) <= keys_.length(i), name, " gives sequence ", i, " ",
             keys_.length(i), " keys, expected at least its ", queries_.length(i), " queries");
    }
  }

  // Calls `compute` for each query of each sequence, with its position in the sequence and the
  // number of keys that it sees. Queries and keys end together, and a query sees no later key.
  template <class Begin, class Compute>
  void each_query(Begin begin, Compute compute) const {
    for (int64_t i = 0; i < queries_.count(); ++i) {
      const int64_t rows = queries_.length(i);
      if (rows == 0) continue;
      const auto of_sequence = begin(i);
      for (int64_t row = 0; row < rows; ++row) {
        compute(of_sequence, queries_.first(i) + row, row,
                std::max<int64_t>(keys_.length(i) - rows + row + 1, 0));
      }
    }
  }

  // The parts of a sequence.
  struct Parts {
    at::Tensor query;
    at::Tensor keys;
    at::Tensor weights;

    // The scores of one query for these keys.
    QueryScores scores(int64_t row, const at::Tensor& of_keys) const {
      return {query.select(0, row), of_keys, weights.select(0, row)};
    }
  };
  Parts parts(int64_t sequence) const {
    return {queries_.read(query_, sequence), keys_.read(key_, sequence).squeeze(1),
            queries_.read(weights_, sequence)};
  }

 private:
  static const std::string& checked_layout(const char* name, const std::string& layout) {
    expect_text(name, layout, {"BSND", "TND"});
    return layout;
  }

  const at::Tensor& query_;
  const at::Tensor& key_;
  const at::Tensor& weights_;
  TokenSequences queries_;
  TokenSequences keys_;
};

// The keys in a query's list, which are at most `most` and end at the first negative number.
inline at::Tensor listed(const at::Tensor& list, int64_t most, int64_t keys) {
  const at::Tensor first = list.narrow(0, 0, std::min(most, list.size(0))).to(at::kLong);
  const at::Tensor indices = first.masked_select((first < 0).cumsum(0) == 0);
  check_bounds("sparseIndices", indices, keys);
  return indices;
}

// The Kullback-Leibler divergence of a query's probabilities from the target. Probabilities below
// 1e-8 count as 1e-8.
inline double divergence(const at::Tensor& target, const at::Tensor& learnt) {
  constexpr double kLeast = 1e-8;
  const at::Tensor ratio = target.clamp_min(kLeast).log() - learnt.clamp_min(kLeast).log();
  return (target * ratio).sum(at::kDouble).item().toDouble();
}

// The gradients of a call, in FLOAT, with all tokens in one dimension, and its loss.
class IndexerGradients {
 public:
  IndexerGradients(const at::Tensor& query, const at::Tensor& key)
      : query_(at::zeros(
            {query.numel() / (query.size(-2) * kIndexerSize), query.size(-2), kIndexerSize},
            query.options().dtype(at::kFloat))),
        key_(at::zeros({key.numel() / kIndexerSize, kIndexerSize}, query_.options())),
        weights_(at::zeros({query_.size(0), query_.size(1)}, query_.options())) {}

  void add(const QueryScores::Gradients& gradients, int64_t token, const at::Tensor& keys) {
    query_.select(0, token).copy_(gradients.query);
    weights_.select(0, token).copy_(gradients.weights);
    key_.index_add_(0, keys, gradients.keys);
  }
  void add(const QueryScores::Gradients& gradients, int64_t token, int64_t first_key) {
    query_.select(0, token).copy_(gradients.query);
    weights_.select(0, token).copy_(gradients.weights);
    key_.narrow(0, first_key, gradients.keys.size(0)).add_(gradients.keys);
  }
  // Adds the divergence of a query's learnt probabilities, and its gradients.
  template <class Keys>
  void learn(const QueryScores& scores, const at::Tensor& target, const at::Tensor& learnt,
             int64_t token, const Keys& keys) {
    loss_ += divergence(target, learnt);
    add(scores.gradients(learnt - target), token, keys);
  }
  void write(Output& query, Output& key, Output& weights) const {
    query = query_.view(query->sizes());
    key = key_.view(key->sizes());
    weights = weights_.view(weights->sizes());
  }
  at::Tensor loss() const { return at::full({1}, loss_, query_.options()); }

 private:
  at::Tensor query_;
  at::Tensor key_;
  at::Tensor weights_;
  double loss_ = 0;
};

inline void expect_results(const Output& query, const at::Tensor& of_query, const Output& key,
                           const at::Tensor& of_key, const Output& weights,
                           const at::Tensor& of_weights) {
  expect_like(query.name(), query, of_query);
  expect_like(key.name(), key, of_key);
  expect_like(weights.name(), weights, of_weights);
}

}  // namespace aclnn_host
