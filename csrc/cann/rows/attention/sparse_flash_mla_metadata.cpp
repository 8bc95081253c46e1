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
  std::optional<at::Tensor> listed;

  // How many of `seen` keys a query attends to.
  int64_t attended(int64_t seen, int64_t query) const {
    if (most_listed == 0) return seen;
    if (!is_filled(listed)) return std::min(seen, most_listed);
    EXPECT(query < listed->numel(), "the lengths of lists are ", listed->numel(),
           ", expected one for each query");
    const int64_t length = listed->flatten().select(0, query).item().toLong();
    return std::clamp<int64_t>(length, 0, seen);
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

// The numbers of queries, and the most keys of both kinds that a query attends to.
struct Sums {
  int64_t queries = 0;
  int64_t original = 0;
  int64_t compressed = 0;
};
template <class Row>
Sums sums_of(const Row& row, const SequenceSizes& queries, const Keys& original,
             const Keys& compressed, const std::vector<int64_t>& rests, int64_t count) {
  Sums sums;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = queries[i], keys = original.sizes[i], others = compressed.sizes[i];
    const int64_t rest = rests.empty() ? 0 : rests[static_cast<size_t>(i)];
    for (int64_t query = 0; query < own; ++query) {
      const int64_t number = sums.queries + query;
      if (original.are_given && keys > 0) {
        sums.original =
            std::max(sums.original, original.attended(window(row, query, own, keys), number));
      }
      if (compressed.are_given && others > 0) {
        const int64_t seen =
            row.cmpMaskMode == kNoMask ? others : seen_keys(query, own, others, row.cmpRatio, rest);
        sums.compressed =
            std::max(sums.compressed, compressed.attended(std::min(seen, others), number));
      }
    }
    sums.queries += own;
  }
  EXPECT(sums.queries <= INT32_MAX, "there are ", sums.queries, " queries, expected up to ",
         INT32_MAX);
  return sums;
}

// The largest length of keys. With lists, 0 stands for any length.
int64_t most_keys(int64_t length, int64_t listed) {
  return length == 0 && listed != 0 ? static_cast<int64_t>(UINT32_MAX) : length;
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
                row.oriTopkLengthOptional};
  Keys compressed{row.hasCmpKv,
                  {"cuSeqlensCmpKvOptional", row.cuSeqlensCmpKvOptional, "sequsedCmpKvOptional",
                   row.sequsedCmpKvOptional, is_packed, most_keys(row.maxSeqlenCmpKv, row.cmpTopk)},
                  row.cmpTopk,
                  row.cmpTopkLengthOptional};
  check_lengths(queries, row.layoutQOptional, "cuSeqlensQOptional", "sequsedQOptional",
                "maxSeqlenQ", row.maxSeqlenQ);
  const int64_t count = queries.count().value_or(row.batchSize.value());
  for (const Keys* keys : {&original, &compressed}) {
    if (!keys->are_given) continue;
    check_lengths(keys->sizes, row.layoutKvOptional,
                  keys == &original ? "cuSeqlensOriKvOptional" : "cuSeqlensCmpKvOptional", "", "",
                  0);
    EXPECT(keys->sizes.count().value_or(count) == count, "there are ", *keys->sizes.count(),
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
  original.sizes.read();
  compressed.sizes.read();
  const Sums sums =
      sums_of(row, queries, original, compressed,
              has_rest ? integers_in(*row.cmpResidualKvOptional) : std::vector<int64_t>(), count);
  const int64_t cores = cores_of_device(), each = (sums.queries + cores - 1) / cores;
  const at::Tensor numbers =
      at::tensor({sums.queries, each, each - 1, each * cores - sums.queries,
                  std::min(sums.queries, cores), sums.original, sums.compressed},
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
// Nothing in the host CANN reads them.
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
