// What SparseLightningIndexerKLLossGrad reads on a device about the distribution of queries to
// cores.

#include "cann/rows/attention/schedules.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::attention_lightning_indexer_loss_metadata_rows {

namespace {

constexpr int64_t kCausal = 3;
constexpr int64_t kNumbers = 64;

// The first of [low, high] for which a condition holds that holds for all after it, too.
template <class Condition>
int64_t first_that(int64_t low, int64_t high, Condition holds) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Queries in their order, each with the time that it takes.
class Queries {
 public:
  void add(int64_t time) {
    ends_.push_back(ends_.back() + time);
    longest_ = std::max(longest_, time);
  }
  int64_t count() const { return static_cast<int64_t>(ends_.size()) - 1; }
  // The first query that takes any time, or count().
  int64_t first_busy() const { return end_within(0, 0); }

  // Divides the queries from `begin` on into parts and returns where these begin. The longest part
  // is as short as can be; within that, each part has the share of the time left that is closest to
  // an equal one.
  std::vector<int64_t> parts(int64_t begin, int64_t count_of_parts) const {
    const int64_t most = shortest(begin, count_of_parts);
    std::vector<int64_t> begins{begin};
    for (int64_t left = count_of_parts - 1; left > 0; --left) {
      const int64_t before = begins.back();
      const int64_t last = std::min(count() - left, end_within(before, most));
      const int64_t first =
          first_that(before + 1, last, [&](int64_t query) { return fits(query, left, most); });
      const int64_t share = time_before(before) + divide_up(time_from(before), left + 1);
      int64_t next =
          first_that(first, last, [&](int64_t query) { return time_before(query) >= share; });
      if (next > first && share - time_before(next - 1) <= std::abs(time_before(next) - share)) {
        --next;
      }
      begins.push_back(next);
    }
    return begins;
  }

 private:
  int64_t time_before(int64_t query) const { return ends_[static_cast<size_t>(query)]; }
  int64_t time_from(int64_t query) const { return ends_.back() - time_before(query); }
  // The end of the most queries from `begin` on that together take no longer than `most`.
  int64_t end_within(int64_t begin, int64_t most) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), time_before(begin) + most);
    return end - ends_.begin() - 1;
  }
  // Whether the queries from `begin` on fit into parts that each take no longer than `most`.
  bool fits(int64_t begin, int64_t parts, int64_t most) const {
    for (int64_t part = 0; part < parts; ++part) begin = end_within(begin, most);
    return begin == count();
  }
  // The shortest time within which the longest part is done.
  int64_t shortest(int64_t begin, int64_t parts) const {
    const int64_t total = time_from(begin);
    return first_that(std::max(longest_, divide_up(total, parts)), total,
                      [&](int64_t most) { return fits(begin, parts, most); });
  }

  std::vector<int64_t> ends_{0};
  int64_t longest_ = 0;
};

// The numbers for products before Ascend950: how many cores compute any queries, how many queries
// there are, an equal share of them, five zeros, and the first query of each core.
std::vector<int64_t> begins_of_cores(const Queries& queries) {
  constexpr int64_t kCores = 25, kHeader = 8;
  const int64_t total = queries.count();
  const int64_t cores = std::min({total, cores_of_device(), kCores});
  std::vector<int64_t> numbers{cores, total, divide_up(total, cores)};
  numbers.resize(kHeader);
  const int64_t first = queries.first_busy();
  if (first < total) {
    const std::vector<int64_t> begins = queries.parts(first, std::min(cores, total - first));
    numbers.insert(numbers.end(), begins.begin(), begins.end());
  }
  numbers.resize(kHeader + kCores, total);
  numbers.resize(kNumbers);
  return numbers;
}

template <class Row>
void check_numbers(const Row& row, bool is_950) {
  constexpr int64_t kMostHeads = 128, kHeadSize = 128, kMostKeys = 2048, kMostRatio = 128;
  const int64_t topk = row.topk;
  expect_range("batchSize", row.batchSize, 0, INT32_MAX);
  expect_range("maxSeqLenQ", row.maxSeqLenQ, 0, INT32_MAX);
  expect_range("maxSeqLenK", row.maxSeqLenK, 0, INT32_MAX);
  expect_range("numHeadsQ", row.numHeadsQ, 1, kMostHeads);
  expect_one_of("numHeadsK", row.numHeadsK, {1});
  expect_one_of("headDim", row.headDim, {kHeadSize});
  if (is_950 || (topk != 2 * kMostKeys && topk != 4 * kMostKeys)) {
    expect_range("topk", topk, 1, kMostKeys, is_950 ? "" : ", 4096 or 8192");
  }
  expect_text("layoutQOptional", row.layoutQOptional, {"BSND", "TND"});
  expect_text("layoutKOptional", row.layoutKOptional, {"BSND", "TND"});
  expect_one_of("maskMode", row.maskMode, {0, kCausal});
  expect_range("cmpRatio", row.cmpRatio, 1, kMostRatio);
  expect_tensor("metadata", row.metadata, at::kInt, {kNumbers});
}

// The sequences of a call.
struct Sequences {
  SequenceSizes queries;
  SequenceSizes keys;
  int64_t count;
};

// Checks everything but values.
template <class Row>
Sequences checked(const Row& row, bool is_950) {
  check_numbers(row, is_950);
  const std::string& layout = row.layoutQOptional;
  const std::string& key_layout = is_950 ? row.layoutKOptional : layout;
  const int64_t batch = row.batchSize;
  Sequences sequences{{"cuSeqLensQOptional", row.cuSeqLensQOptional, "seqUsedQOptional",
                       row.seqUsedQOptional, layout == "TND", row.maxSeqLenQ},
                      {"cuSeqLensKOptional", row.cuSeqLensKOptional, "seqUsedKOptional",
                       row.seqUsedKOptional, key_layout == "TND", row.maxSeqLenK},
                      batch};
  const auto& [queries, keys, count] = sequences;
  queries.expect_ends(layout);
  keys.expect_ends(key_layout);
  const int64_t of_queries = queries.count().value_or(batch);
  const int64_t of_keys = keys.count().value_or(batch);
  if (is_950 || batch == 0) sequences.count = of_queries;
  EXPECT(of_queries >= count, "there are ", of_queries, " sequences of queries, expected ", count,
         ", the batchSize");
  EXPECT(is_950 ? of_keys == count : of_keys >= count, "there are ", of_keys,
         " sequences of keys, expected ", count, " as there are of queries");
  const bool has_rest = is_filled(row.cmpResidualKOptional);
  EXPECT(has_rest || !is_950 || row.maskMode != kCausal || row.cmpRatio == 1,
         "cmpResidualKOptional is null, expected a tensor as maskMode is 3 and cmpRatio is ",
         row.cmpRatio.value());
  if (has_rest) {
    expect_tensor("cmpResidualKOptional", *row.cmpResidualKOptional, at::kInt, {count});
  }
  if (is_950) return sequences;
  const char* const unsupported = " is given, which this product does not support";
  EXPECT(!queries.is_given(), "seqUsedQOptional", unsupported);
  EXPECT(!keys.is_given(), "seqUsedKOptional", unsupported);
  if (layout == "TND") return sequences;
  const char* const reason = " as layoutQOptional is BSND";
  expect_at_least("batchSize", batch, 1, reason);
  expect_at_least("maxSeqLenQ", row.maxSeqLenQ, 1, reason);
  expect_at_least("maxSeqLenK", row.maxSeqLenK, 1, reason);
  expect_most("queries", queries.total(count));
  return sequences;
}

// The times of the queries of products before Ascend950: a time of its own, and one for each key in
// its list. A query without keys takes none.
template <class Row>
Queries times_of(const Row& row, const Sequences& sequences) {
  constexpr int64_t kLeast = 64, kMost = 256;
  const auto& [queries, keys, count] = sequences;
  const std::vector<int64_t> rests =
      rests_in("cmpResidualKOptional", row.cmpResidualKOptional, row.cmpRatio);
  const int64_t topk = row.topk;
  const int64_t own = std::min(std::clamp(topk / 4, kLeast, kMost), topk);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += queries[i];
  EXPECT(total > 0, "there are no queries, expected some");
  expect_most("queries", total);
  Queries times;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rest = rests.empty() ? 0 : rests[static_cast<size_t>(i)];
    for (int64_t query = 0; query < queries[i]; ++query) {
      const int64_t seen = row.maskMode == kCausal
                               ? seen_keys(query, queries[i], keys[i], row.cmpRatio, rest)
                               : keys[i];
      const int64_t listed = std::min(seen, topk);
      times.add(listed == 0 ? 0 : listed + own);
    }
  }
  return times;
}

template <class Row>
void distribute(Row& row) {
  const bool is_950 = current_product() == Product::kAscend950;
  Sequences sequences = checked(row, is_950);
  if (!has_values(row.metadata)) return;
  sequences.queries.read();
  sequences.keys.read();
  write_first(row.metadata, is_950 ? equal_shares(sequences.queries.total(sequences.count))
                                   : begins_of_cores(times_of(row, sequences)));
}

}  // namespace

// Behaviour of SparseLightningIndexerKLLossGradMetadata: The numbers are those that the published
// function computes for the cores of the product. On Ascend950: the number of queries; how many of
// them the first cores compute, how many the others, and how many others there are; how many cores
// compute any; as there, the other elements are not written. On the other products: how many cores
// compute any, the number of queries, an equal share of them, five zeros, the first query of each
// of 25 cores, and zeros; there layoutK is that of the queries, and a batchSize other than 0 says
// how many of the sequences count. Nothing in the host CANN reads the numbers.
// Limit of SparseLightningIndexerKLLossGradMetadata: On products before Ascend950 there are up to
// 16777216 queries; more are refused, as each takes time.
ACLNN_STRUCT(SparseLightningIndexerKLLossGradMetadata, (Optional<In>, cuSeqLensQOptional),
             (Optional<In>, cuSeqLensKOptional), (Optional<In>, seqUsedQOptional),
             (Optional<In>, seqUsedKOptional), (Optional<In>, cmpResidualKOptional),
             (int64_t, batchSize), (int64_t, maxSeqLenQ), (int64_t, maxSeqLenK),
             (int64_t, numHeadsQ), (int64_t, numHeadsK), (int64_t, headDim), (int64_t, topk),
             (char*, layoutQOptional), (char*, layoutKOptional), (int64_t, maskMode),
             (int64_t, cmpRatio), (InOut, metadata)) {
  distribute(*this);
}

}  // namespace aclnn_host::attention_lightning_indexer_loss_metadata_rows
