// What SparseFlashMlaGrad reads on a device about the distribution of work to cores.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/schedules.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_sparse_flash_mla_metadata_rows {

namespace {

constexpr int64_t kNoMask = 0, kCausal = 3, kBand = 4;
constexpr int64_t kNoLimit = -1;  // of a window

// Original or compressed keys.
struct Keys {
  bool are_given;
  SequenceSizes sizes;
  int64_t most_listed;  // for each query; 0 if all are attended to
  const char* listed_name;
  std::optional<at::Tensor> listed;
  std::vector<int64_t> listed_counts = {};

  void read(int64_t queries) {
    if (!are_given) return;
    sizes.read();
    if (most_listed == 0 || !is_filled(listed)) return;
    EXPECT(listed->numel() >= queries, listed_name, " has shape ", listed->sizes(),
           ", expected a number for each of the ", queries, " queries");
    listed_counts = integers_in(*listed);
  }
  bool are_alike() const { return !are_given || (sizes.are_alike() && listed_counts.empty()); }

  // How many of `seen` keys a query attends to.
  int64_t attended(int64_t seen, int64_t query) const {
    if (most_listed == 0) return seen;
    if (listed_counts.empty()) return std::min(seen, most_listed);
    return std::clamp<int64_t>(listed_counts[static_cast<size_t>(query)], 0, seen);
  }

  // The most keys that one of some queries attends to, where `seen` says how many a query sees.
  // `turns` are the queries at which this number may cease to grow, and the ends.
  template <class Seen>
  int64_t most_attended(int64_t first, int64_t queries, std::initializer_list<int64_t> turns,
                        Seen seen) const {
    int64_t most = 0;
    if (listed_counts.empty()) {
      for (const int64_t turn : turns) {
        const int64_t query = std::clamp<int64_t>(turn, 0, queries - 1);
        most = std::max(most, attended(seen(query), first + query));
      }
      return most;
    }
    for (int64_t query = 0; query < queries; ++query) {
      most = std::max(most, attended(seen(query), first + query));
    }
    return most;
  }
};

template <class Row>
void check_numbers(const Row& row) {
  constexpr int64_t kMostHeads = 128, kHeadSize = 512, kMostRatio = 128;
  expect_range("numHeadsQ", row.numHeadsQ, 1, kMostHeads);
  expect_one_of("numHeadsKv", row.numHeadsKv, {1});
  expect_one_of("headDim", row.headDim, {kHeadSize});
  expect_range("batchSize", row.batchSize, 0, INT32_MAX);
  expect_range("maxSeqlenQ", row.maxSeqlenQ, 0, INT32_MAX);
  expect_range("maxSeqlenOriKv", row.maxSeqlenOriKv, 0, INT32_MAX);
  expect_range("maxSeqlenCmpKv", row.maxSeqlenCmpKv, 0, INT32_MAX);
  expect_range("oriTopk", row.oriTopk, 0, INT32_MAX);
  expect_range("cmpTopk", row.cmpTopk, 0, INT32_MAX);
  expect_range("cmpRatio", row.cmpRatio, 1, kMostRatio);
  expect_one_of("oriMaskMode", row.oriMaskMode, {kNoMask, kCausal, kBand});
  expect_one_of("cmpMaskMode", row.cmpMaskMode, {kNoMask, kCausal});
  expect_range("oriWinLeft", row.oriWinLeft, kNoLimit, INT32_MAX);
  expect_range("oriWinRight", row.oriWinRight, kNoLimit, INT32_MAX);
  expect_text("layoutQOptional", row.layoutQOptional, {"BSND", "TND"});
  expect_text("layoutKvOptional", row.layoutKvOptional, {"BSND", "TND"});
  expect_tensor("metadata", row.metadata, at::kInt, {kScheduleSize});
}

// The number of original keys in the window of a query.
template <class Row>
int64_t window(const Row& row, int64_t query, int64_t queries, int64_t keys) {
  if (row.oriMaskMode == kNoMask) return keys;
  const bool is_band = row.oriMaskMode == kBand;
  const int64_t own = query + keys - queries;
  const int64_t first = is_band && row.oriWinLeft != kNoLimit
                            ? std::max<int64_t>(own - row.oriWinLeft.value(), 0)
                            : 0;
  int64_t last = keys - 1;
  if (!is_band) last = std::min(last, own);
  if (is_band && row.oriWinRight != kNoLimit) last = std::min(last, own + row.oriWinRight.value());
  return std::max<int64_t>(last - first + 1, 0);
}

// The most keys of both kinds that a query attends to.
struct Sums {
  int64_t original = 0;
  int64_t compressed = 0;
};
template <class Row>
Sums sums_of(const Row& row, const SequenceSizes& queries, const Keys& original,
             const Keys& compressed, const std::vector<int64_t>& rests, int64_t count) {
  Sums sums;
  const bool are_alike =
      queries.are_alike() && original.are_alike() && compressed.are_alike() && rests.empty();
  int64_t first = 0;
  for (int64_t i = 0; i < (are_alike ? std::min<int64_t>(count, 1) : count); ++i) {
    const int64_t own = queries[i];
    if (own == 0) continue;
    const int64_t keys = original.are_given ? original.sizes[i] : 0;
    if (keys > 0) {
      const auto seen = [&](int64_t query) { return window(row, query, own, keys); };
      sums.original = std::max(sums.original,
                               original.most_attended(first, own,
                                                      {0, row.oriWinLeft.value() - keys + own,
                                                       own - 1 - row.oriWinRight.value(), own - 1},
                                                      seen));
    }
    const int64_t others = compressed.are_given ? compressed.sizes[i] : 0;
    if (others > 0) {
      const int64_t rest = rests.empty() ? 0 : rests[static_cast<size_t>(i)];
      const auto seen = [&](int64_t query) {
        return row.cmpMaskMode == kNoMask
                   ? others
                   : std::min(seen_keys(query, own, others, row.cmpRatio, rest), others);
      };
      sums.compressed =
          std::max(sums.compressed, compressed.most_attended(first, own, {own - 1}, seen));
    }
    first += own;
  }
  return sums;
}

// The largest length of keys. With lists, 0 stands for any length.
int64_t most_keys(int64_t length, int64_t listed) {
  return length == 0 && listed != 0 ? static_cast<int64_t>(UINT32_MAX) : length;
}

// Checks the numbers of keys in lists.
template <class Row>
void check_counts(const Row& row, const Keys& keys, bool is_of_most, int64_t count) {
  if (!is_filled(keys.listed)) return;
  const bool is_packed = row.layoutQOptional == "TND";
  expect_dtype(keys.listed_name, *keys.listed, at::kInt);
  expect_dims(keys.listed_name, *keys.listed, is_packed ? 2 : 3);
  const int64_t rows =
      is_of_most && !is_packed ? row.maxSeqlenQ.value() : keys.listed->size(is_packed ? 0 : 1);
  expect_shape(keys.listed_name, *keys.listed,
               is_packed ? std::vector<int64_t>{rows, 1} : std::vector<int64_t>{count, rows, 1});
}

template <class Row>
void summarise(Row& row) {
  check_numbers(row);
  const bool is_packed = row.layoutKvOptional == "TND";
  SequenceSizes queries("cuSeqlensQOptional", row.cuSeqlensQOptional, "sequsedQOptional",
                        row.sequsedQOptional, row.layoutQOptional == "TND", row.maxSeqlenQ);
  Keys original{row.hasOriKv,
                {"cuSeqlensOriKvOptional", row.cuSeqlensOriKvOptional, "sequsedOriKvOptional",
                 row.sequsedOriKvOptional, is_packed, most_keys(row.maxSeqlenOriKv, row.oriTopk)},
                row.oriTopk,
                "oriTopkLengthOptional",
                row.oriTopkLengthOptional};
  Keys compressed{row.hasCmpKv,
                  {"cuSeqlensCmpKvOptional", row.cuSeqlensCmpKvOptional, "sequsedCmpKvOptional",
                   row.sequsedCmpKvOptional, is_packed, most_keys(row.maxSeqlenCmpKv, row.cmpTopk)},
                  row.cmpTopk,
                  "cmpTopkLengthOptional",
                  row.cmpTopkLengthOptional};
  queries.expect_ends(row.layoutQOptional);
  const int64_t count = queries.count().value_or(row.batchSize.value());
  EXPECT(queries.sequences().value_or(count) == count, "cuSeqlensQOptional has the ends of ",
         *queries.sequences(), " sequences, expected ", count, ", the batchSize");
  for (const Keys* keys : {&original, &compressed}) {
    check_counts(row, *keys, !queries.is_given(), count);
    if (!keys->are_given) continue;
    keys->sizes.expect_ends(row.layoutKvOptional);
    EXPECT(keys->sizes.sequences().value_or(count) == count, "there are ", *keys->sizes.sequences(),
           " sequences of keys, expected ", count, " as there are of queries");
  }
  const bool has_rest = is_filled(row.cmpResidualKvOptional);
  EXPECT(has_rest || !row.hasCmpKv || row.cmpMaskMode == kNoMask || row.cmpRatio == 1,
         "cmpResidualKvOptional is null, expected a tensor as cmpMaskMode is 3 and cmpRatio is ",
         row.cmpRatio.value());
  if (has_rest) {
    expect_tensor("cmpResidualKvOptional", *row.cmpResidualKvOptional, at::kInt, {count});
  }
  if (!has_values(row.metadata)) return;
  queries.read();
  const int64_t total = queries.total(count);
  EXPECT(total <= INT32_MAX, "there are ", total, " queries, expected up to ", INT32_MAX);
  original.read(total);
  compressed.read(total);
  const std::vector<int64_t> rests =
      has_rest ? integers_in(*row.cmpResidualKvOptional) : std::vector<int64_t>();
  for (const int64_t rest : rests) {
    if (row.hasCmpKv && row.cmpMaskMode == kCausal) {
      expect_rest("cmpResidualKvOptional", rest, row.cmpRatio);
    }
  }
  const Sums sums = sums_of(row, queries, original, compressed, rests, count);
  const int64_t cores = cores_of_device(), each = (total + cores - 1) / cores;
  const at::Tensor numbers = at::tensor({total, each, each - 1, each * cores - total,
                                         std::min(total, cores), sums.original, sums.compressed},
                                        at::kLong);
  const at::Tensor before = row.metadata;
  row.metadata = at::cat({numbers.to(at::kInt), before.slice(0, numbers.size(0))});
}

}  // namespace

// The number of queries; how many of them the first cores compute, how many the others, and how
// many others there are; how many cores compute any; and the most original and compressed keys that
// a query attends to.
// Behaviour of SparseFlashMlaGradMetadata: The numbers are those that the published function
// computes for the cores of the product; as there, the other elements of metadata are not written.
// Nothing in the host CANN reads them. In BSND, the ends of sequences are not used.
ACLNN_STRUCT(SparseFlashMlaGradMetadata, (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Optional<In>, sequsedQOptional), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Optional<In>, oriTopkLengthOptional), (Optional<In>, cmpTopkLengthOptional),
             (int64_t, numHeadsQ), (int64_t, numHeadsKv), (int64_t, headDim), (int64_t, batchSize),
             (int64_t, maxSeqlenQ), (int64_t, maxSeqlenOriKv), (int64_t, maxSeqlenCmpKv),
             (int64_t, oriTopk), (int64_t, cmpTopk), (int64_t, cmpRatio), (int64_t, oriMaskMode),
             (int64_t, cmpMaskMode), (int64_t, oriWinLeft), (int64_t, oriWinRight),
             (const char*, layoutQOptional), (const char*, layoutKvOptional), (bool, hasOriKv),
             (bool, hasCmpKv), (InOut, metadata)) {
  summarise(*this);
}

}  // namespace aclnn_host::attention_sparse_flash_mla_metadata_rows
