// The schedules that the second version of the lightning indexer reads on a device: which core
// computes which queries.

#include "cann/rows/attention/balanced_rows.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::attention_lightning_indexer_metadata_rows {

namespace {

// Blocks of queries and keys, and the keys that a block of queries sees.
struct Blocks {
  struct Sequence {
    int64_t queries;
    int64_t keys;
    int64_t rest;  // tokens after the last key

    bool operator==(const Sequence&) const = default;
  };

  int64_t heads;
  int64_t queries;  // of a block
  int64_t keys;
  int64_t ratio;
  bool is_causal;

  bool is_empty(const Sequence& sequence) const {
    return sequence.queries == 0 || sequence.keys == 0;
  }
  int64_t rows_of(const Sequence& sequence) const { return divide_up(sequence.queries, queries); }
  RowCost cost_of_row(const Sequence& sequence, int64_t row) const {
    if (is_empty(sequence)) return {};
    const int64_t end = std::min((row + 1) * queries, sequence.queries);
    const int64_t tokens = sequence.keys * ratio + sequence.rest;
    int64_t last = tokens - 1;
    if (is_causal) last = std::clamp<int64_t>(end - 1 + tokens - sequence.queries, 0, last);
    return cost_of((end - row * queries) * heads, (last + 1) / ratio, keys);
  }
};

template <class Row>
void check_numbers(const Row& row) {
  constexpr int64_t kMostHeads = 64, kHeadSize = 128, kMostKeys = 2048, kMostRatio = 128;
  // The document lists 32 and 64; the published check and the document's sample take others, too.
  expect_range("numHeadsQ", row.numHeadsQ, 1, kMostHeads);
  expect_one_of("numHeadsK", row.numHeadsK, {1});
  expect_one_of("headDim", row.headDim, {kHeadSize});
  expect_range("topk", row.topk, 1, kMostKeys);
  expect_range("batchSize", row.batchSize, 0, INT32_MAX);
  expect_range("maxSeqlenQ", row.maxSeqlenQ, -1, INT32_MAX);
  expect_range("maxSeqlenK", row.maxSeqlenK, -1, INT32_MAX);
  expect_text("layoutQOptional", row.layoutQOptional, {"BSND", "TND"});
  expect_text("layoutKOptional", row.layoutKOptional, {"BSND", "TND", "PA_BBND"});
  EXPECT(row.layoutKOptional == "PA_BBND" || row.layoutKOptional == row.layoutQOptional,
         "layoutKOptional is \"", row.layoutKOptional, "\", expected PA_BBND or the layout of the ",
         "queries, ", row.layoutQOptional);
  expect_one_of("maskMode", row.maskMode, {0, 3});
  expect_range("cmpRatio", row.cmpRatio, 1, kMostRatio);
  expect_tensor("metadata", row.metadata, at::kInt, {kScheduleSize});
}

template <class Row>
void schedule(Row& row, bool has_small_blocks) {
  check_numbers(row);
  const bool is_packed_k = row.layoutKOptional == "TND";
  SequenceSizes queries("cuSeqlensQOptional", row.cuSeqlensQOptional, "sequsedQOptional",
                        row.sequsedQOptional, row.layoutQOptional == "TND", row.maxSeqlenQ);
  SequenceSizes keys("cuSeqlensKOptional", row.cuSeqlensKOptional, "sequsedKOptional",
                     row.sequsedKOptional, is_packed_k, row.maxSeqlenK);
  check_lengths(queries, row.layoutQOptional, "sequsedQOptional", "maxSeqlenQ", row.maxSeqlenQ);
  check_lengths(keys, row.layoutKOptional, "sequsedKOptional", "maxSeqlenK", row.maxSeqlenK);
  const int64_t count = queries.sequences().value_or(row.batchSize.value());
  const int64_t of_keys = keys.sequences().value_or(row.batchSize.value());
  EXPECT(count == of_keys, "there are ", of_keys, " sequences of keys, expected ", count,
         " as there are of queries");
  expect_most("sequences", count);
  if (!queries.count()) expect_most("queries", queries.total(count));
  const bool has_rest = is_filled(row.cmpResidualKOptional);
  EXPECT(has_rest || row.maskMode == 0 || row.cmpRatio == 1,
         "cmpResidualKOptional is null, expected a tensor as maskMode is 3 and cmpRatio is ",
         row.cmpRatio.value());
  if (has_rest) {
    expect_tensor("cmpResidualKOptional", *row.cmpResidualKOptional, at::kInt, {count});
  }

  const bool is_950 = current_product() == Product::kAscend950;
  const int64_t heads = row.numHeadsQ;
  const Blocks blocks{heads, is_950 && has_small_blocks && heads == 64 ? 2 : 4, is_950 ? 128 : 2048,
                      row.cmpRatio, row.maskMode == 3};
  std::vector<int32_t> numbers(kScheduleSize);
  if (has_values(row.metadata)) {
    queries.read();
    keys.read();
    expect_most("queries", queries.total(count));
    const std::vector<int64_t> rests =
        rests_in("cmpResidualKOptional", row.cmpResidualKOptional, row.cmpRatio);
    constexpr size_t kOfCore = 8;
    const auto sequence_of = [&](int64_t i) {
      return Blocks::Sequence{queries[i], keys[i], has_rest ? rests[static_cast<size_t>(i)] : 0};
    };
    Schedule(blocks, count, cores_of_device(), sequence_of).write(numbers, kOfCore);
  }
  row.metadata = at::tensor(numbers, at::kInt);
}

}  // namespace

// For each core: 1, the sequence and the row of blocks with which it begins, 0, those at which it
// ends, 0 and 0. A row has two or four queries of one sequence.
// Behaviour of LightningIndexerV2Metadata, QuantLightningIndexerV2Metadata: The numbers are those
// that the published function computes for the cores of the product. Nothing in the host CANN reads
// them. topk, headDim and quantMode are checked and do not change them. In BSND, cuSeqlensQ and
// cuSeqlensK say how many sequences there are, and their values are ignored.
// Limit of LightningIndexerV2Metadata, QuantLightningIndexerV2Metadata: There are up to 16777216
// sequences and as many queries; more are refused, as each takes time.
ACLNN_STRUCT(LightningIndexerV2Metadata, (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensKOptional), (Optional<In>, sequsedQOptional),
             (Optional<In>, sequsedKOptional), (Optional<In>, cmpResidualKOptional),
             (int64_t, numHeadsQ), (int64_t, numHeadsK), (int64_t, headDim), (int64_t, topk),
             (int64_t, batchSize), (int64_t, maxSeqlenQ), (int64_t, maxSeqlenK),
             (char*, layoutQOptional), (char*, layoutKOptional), (int64_t, maskMode),
             (int64_t, cmpRatio), (Out, metadata)) {
  schedule(*this, /*has_small_blocks=*/true);
}
ACLNN_STRUCT(QuantLightningIndexerV2Metadata, (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensKOptional), (Optional<In>, sequsedQOptional),
             (Optional<In>, sequsedKOptional), (Optional<In>, cmpResidualKOptional),
             (int64_t, numHeadsQ), (int64_t, numHeadsK), (int64_t, headDim), (int64_t, topk),
             (int64_t, quantMode), (int64_t, batchSize), (int64_t, maxSeqlenQ),
             (int64_t, maxSeqlenK), (char*, layoutQOptional), (char*, layoutKOptional),
             (int64_t, maskMode), (int64_t, cmpRatio), (Out, metadata)) {
  expect_one_of("quantMode", quantMode, {1, 2, 4});
  schedule(*this, /*has_small_blocks=*/false);
}

}  // namespace aclnn_host::attention_lightning_indexer_metadata_rows
