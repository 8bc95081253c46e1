// What SparseFlashMla, MixedQuantSparseFlashMla and SparseFlashMlaGrad read on a device about the
// distribution of work to cores.

#include "cann/rows/attention/balanced_rows.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::attention_sparse_flash_mla_metadata_rows {

namespace {

constexpr int64_t kNoMask = 0, kCausal = 3, kBand = 4;
constexpr int64_t kNoLimit = -1;  // of a window

// Original or compressed keys.
struct Keys {
  bool are_given;
  SequenceSizes sizes;
  int64_t most_listed;  // for each query; 0 if all are attended to
  bool are_masked;
  const char* listed_name;
  std::optional<at::Tensor> listed;
  std::vector<int64_t> listed_counts = {};

  void read_lists(int64_t queries) {
    if (!are_given || most_listed == 0 || !is_filled(listed)) return;
    EXPECT(listed->numel() >= queries, listed_name, " has shape ", listed->sizes(),
           ", expected a number for each of the ", queries, " queries");
    listed_counts = integers_in(*listed);
  }
  bool are_alike() const { return !are_given || (sizes.are_alike() && listed_counts.empty()); }
  int64_t operator[](int64_t sequence) const { return are_given ? sizes[sequence] : 0; }

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

// The lengths of a call.
struct Call {
  SequenceSizes queries;
  Keys original;
  Keys compressed;
  int64_t count;  // of sequences
  std::vector<int64_t> rests = {};

  int64_t rest(int64_t sequence) const {
    return rests.empty() ? 0 : rests[static_cast<size_t>(sequence)];
  }
};

template <class Row>
void check_numbers(const Row& row, std::initializer_list<std::string_view> key_layouts) {
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
  expect_text("layoutKvOptional", row.layoutKvOptional, key_layouts);
}

// The number of original keys in the windows of consecutive queries.
template <class Row>
int64_t window(const Row& row, int64_t first_query, int64_t last_query, int64_t queries,
               int64_t keys) {
  if (row.oriMaskMode == kNoMask) return keys;
  const bool is_band = row.oriMaskMode == kBand;
  const int64_t ahead = keys - queries;
  int64_t first = 0, last = keys - 1;
  if (is_band && row.oriWinLeft != kNoLimit) {
    first = std::max<int64_t>(first_query + ahead - row.oriWinLeft.value(), 0);
  }
  if (!is_band) last = std::min(last, last_query + ahead);
  if (is_band && row.oriWinRight != kNoLimit) {
    last = std::min(last, last_query + ahead + row.oriWinRight.value());
  }
  return std::max<int64_t>(last - first + 1, 0);
}

// How many of the compressed keys a query sees.
template <class Row>
int64_t compressed_seen(const Row& row, int64_t query, int64_t queries, int64_t keys,
                        int64_t rest) {
  if (row.cmpMaskMode == kNoMask) return keys;
  return std::min(seen_keys(query, queries, keys, row.cmpRatio, rest), keys);
}

// The most keys of both kinds that a query attends to.
struct Sums {
  int64_t original = 0;
  int64_t compressed = 0;
};
template <class Row>
Sums sums_of(const Row& row, const Call& call) {
  const auto& [queries, original, compressed, count, rests] = call;
  Sums sums;
  const bool are_alike =
      queries.are_alike() && original.are_alike() && compressed.are_alike() && rests.empty();
  int64_t first = 0;
  for (int64_t i = 0; i < (are_alike ? std::min<int64_t>(count, 1) : count); ++i) {
    const int64_t own = queries[i];
    if (own == 0) continue;
    const int64_t keys = original[i];
    if (keys > 0) {
      const auto seen = [&](int64_t query) { return window(row, query, query, own, keys); };
      sums.original = std::max(sums.original,
                               original.most_attended(first, own,
                                                      {0, row.oriWinLeft.value() - keys + own,
                                                       own - 1 - row.oriWinRight.value(), own - 1},
                                                      seen));
    }
    const int64_t others = compressed[i];
    if (others > 0) {
      const int64_t rest = call.rest(i);
      const auto seen = [&](int64_t query) {
        return compressed_seen(row, query, own, others, rest);
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
  if (!is_filled(keys.listed)) {
    EXPECT(!keys.are_given || keys.most_listed == 0 || keys.are_masked, keys.listed_name,
           " is null, expected a tensor as there are lists and no mask");
    return;
  }
  const bool is_packed = row.layoutQOptional == "TND";
  expect_dtype(keys.listed_name, *keys.listed, at::kInt);
  expect_dims(keys.listed_name, *keys.listed, is_packed ? 2 : 3);
  const int64_t rows =
      is_of_most && !is_packed ? row.maxSeqlenQ.value() : keys.listed->size(is_packed ? 0 : 1);
  expect_shape(keys.listed_name, *keys.listed,
               is_packed ? std::vector<int64_t>{rows, 1} : std::vector<int64_t>{count, rows, 1});
}

// Checks everything but values.
template <class Row>
Call checked(const Row& row) {
  const bool is_packed = row.layoutKvOptional == "TND";
  Call call{{"cuSeqlensQOptional", row.cuSeqlensQOptional, "sequsedQOptional", row.sequsedQOptional,
             row.layoutQOptional == "TND", row.maxSeqlenQ},
            {row.hasOriKv,
             {"cuSeqlensOriKvOptional", row.cuSeqlensOriKvOptional, "sequsedOriKvOptional",
              row.sequsedOriKvOptional, is_packed, most_keys(row.maxSeqlenOriKv, row.oriTopk)},
             row.oriTopk,
             row.oriMaskMode != kNoMask,
             "oriTopkLengthOptional",
             row.oriTopkLengthOptional},
            {row.hasCmpKv,
             {"cuSeqlensCmpKvOptional", row.cuSeqlensCmpKvOptional, "sequsedCmpKvOptional",
              row.sequsedCmpKvOptional, is_packed, most_keys(row.maxSeqlenCmpKv, row.cmpTopk)},
             row.cmpTopk,
             row.cmpMaskMode != kNoMask,
             "cmpTopkLengthOptional",
             row.cmpTopkLengthOptional},
            0};
  const auto& [queries, original, compressed, count, rests] = call;
  queries.expect_ends(row.layoutQOptional);
  call.count = queries.count().value_or(row.batchSize.value());
  EXPECT(queries.sequences().value_or(count) == count, "cuSeqlensQOptional has the ends of ",
         *queries.sequences(), " sequences, expected ", count, ", the batchSize");
  for (const Keys* keys : {&original, &compressed}) {
    check_counts(row, *keys, !queries.is_given(), count);
    if (!keys->are_given) continue;
    keys->sizes.expect_ends(row.layoutKvOptional);
    keys->sizes.expect_used(row.layoutKvOptional);
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
  return call;
}

// Reads the lengths and returns the number of queries.
template <class Row>
int64_t read(const Row& row, Call& call, bool reads_lists) {
  call.queries.read();
  const int64_t total = call.queries.total(call.count);
  for (Keys* keys : {&call.original, &call.compressed}) {
    if (keys->are_given) keys->sizes.read();
    if (reads_lists) keys->read_lists(total);
  }
  if (row.hasCmpKv && row.cmpMaskMode == kCausal) {
    call.rests = rests_in("cmpResidualKvOptional", row.cmpResidualKvOptional, row.cmpRatio);
  }
  return total;
}

template <class Row>
void summarise(Row& row) {
  check_numbers(row, {"BSND", "TND"});
  expect_tensor("metadata", row.metadata, at::kInt, {kScheduleSize});
  Call call = checked(row);
  if (!has_values(row.metadata)) return;
  const int64_t total = read(row, call, /*reads_lists=*/true);
  std::vector<int64_t> numbers = equal_shares(total);
  const Sums sums = sums_of(row, call);
  numbers.insert(numbers.end(), {sums.original, sums.compressed});
  write_first(row.metadata, numbers);
}

// Blocks of queries and keys. A row of blocks has the original keys of its queries first.
template <class Row>
struct Blocks {
  struct Sequence {
    int64_t queries;
    int64_t original;
    int64_t compressed;
    int64_t rest;

    bool operator==(const Sequence&) const = default;
  };

  const Row& row;
  int64_t queries;  // of a block
  int64_t keys;

  bool is_empty(const Sequence& sequence) const {
    return sequence.queries == 0 || (sequence.original == 0 && sequence.compressed == 0);
  }
  int64_t rows_of(const Sequence& sequence) const { return divide_up(sequence.queries, queries); }
  RowCost cost_of_row(const Sequence& sequence, int64_t i) const {
    const int64_t first = i * queries, end = std::min(first + queries, sequence.queries);
    const int64_t height = (end - first) * row.numHeadsQ.value();
    const auto cost = [&](int64_t seen, int64_t listed) {
      return cost_of(height, listed == 0 ? seen : std::min(seen, listed), keys);
    };
    return cost(window(row, first, end - 1, sequence.queries, sequence.original), row.oriTopk) +
           cost(compressed_seen(row, end - 1, sequence.queries, sequence.compressed, sequence.rest),
                row.cmpTopk);
  }
};

// Writes which core computes which rows of blocks.
template <class Row>
void schedule(Row& row, Output& metadata, int64_t queries, int64_t keys) {
  constexpr size_t kOfCore = 9, kBlocks = 8;
  expect_tensor(metadata.name(), metadata, at::kInt, {kScheduleSize});
  Call call = checked(row);
  expect_most("sequences", call.count);
  if (!call.queries.count()) expect_most("queries", call.queries.total(call.count));
  std::vector<int32_t> numbers(kScheduleSize);
  if (has_values(metadata)) {
    expect_most("queries", read(row, call, /*reads_lists=*/false));
    const auto sequence_of = [&](int64_t i) {
      return typename Blocks<Row>::Sequence{call.queries[i], call.original[i], call.compressed[i],
                                            call.rest(i)};
    };
    // Two cores of Ascend950 share 128 heads.
    const bool is_shared = current_product() == Product::kAscend950 && row.numHeadsQ == 128;
    const int64_t copies = is_shared ? 2 : 1, shares = cores_of_device() / copies;
    const Schedule plan(Blocks<Row>{row, queries, keys}, call.count, shares, sequence_of);
    plan.write(numbers, kOfCore, static_cast<size_t>(copies));
    if (is_shared) {
      for (int64_t core = 0; core < shares * copies; ++core) {
        numbers[static_cast<size_t>(core) * kOfCore + kBlocks] =
            static_cast<int32_t>(plan.most_blocks());
      }
    }
  }
  metadata = at::tensor(numbers, at::kInt);
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

// For each core: 1, the sequence and the row of blocks with which it begins, 0, those at which it
// ends, 0, 0, and on Ascend950 with 128 heads the most blocks that a core has.
// Behaviour of SparseFlashMlaMetadata, MixedQuantSparseFlashMlaMetadata: The numbers are those that
// the published function computes for the cores of the product; the others are 0. Nothing in the
// host CANN reads them. In BSND, the ends of sequences are not used; oriTopkLength, cmpTopkLength
// and quantMode are checked and do not change the numbers. Every product takes the modes, windows
// and ratios of Ascend950.
// Limit of SparseFlashMlaMetadata, MixedQuantSparseFlashMlaMetadata: There are up to 16777216
// sequences and as many queries; more are refused, as each takes time.
ACLNN_STRUCT(SparseFlashMlaMetadata, (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Optional<In>, sequsedQOptional), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Optional<In>, oriTopkLengthOptional), (Optional<In>, cmpTopkLengthOptional),
             (int64_t, numHeadsQ), (int64_t, numHeadsKv), (int64_t, headDim), (int64_t, batchSize),
             (int64_t, maxSeqlenQ), (int64_t, maxSeqlenOriKv), (int64_t, maxSeqlenCmpKv),
             (int64_t, oriTopk), (int64_t, cmpTopk), (int64_t, cmpRatio), (int64_t, oriMaskMode),
             (int64_t, cmpMaskMode), (int64_t, oriWinLeft), (int64_t, oriWinRight),
             (const char*, layoutQOptional), (const char*, layoutKvOptional), (bool, hasOriKv),
             (bool, hasCmpKv), (Out, metaData)) {
  constexpr int64_t kMostRows = 256;  // of queries and heads in a block
  check_numbers(*this, {"BSND", "TND", "PA_BBND"});
  EXPECT(layoutKvOptional == "PA_BBND" || layoutKvOptional == layoutQOptional,
         "layoutKvOptional is \"", layoutKvOptional, "\", expected PA_BBND or the layout of the ",
         "queries, ", layoutQOptional);
  const bool is_950 = current_product() == Product::kAscend950;
  const bool has_lists = hasCmpKv && cmpTopk != 0;
  schedule(*this, metaData, is_950 || has_lists ? 1 : kMostRows / numHeadsQ.value(),
           is_950 ? 128 : 512);
}
ACLNN_STRUCT(MixedQuantSparseFlashMlaMetadata, (Optional<In>, cuSeqlensQOptional),
             (Optional<In>, cuSeqlensOriKvOptional), (Optional<In>, cuSeqlensCmpKvOptional),
             (Optional<In>, sequsedQOptional), (Optional<In>, sequsedOriKvOptional),
             (Optional<In>, sequsedCmpKvOptional), (Optional<In>, cmpResidualKvOptional),
             (Optional<In>, oriTopkLengthOptional), (Optional<In>, cmpTopkLengthOptional),
             (int64_t, numHeadsQ), (int64_t, numHeadsKv), (int64_t, headDim), (int64_t, quantMode),
             (int64_t, batchSize), (int64_t, maxSeqlenQ), (int64_t, maxSeqlenOriKv),
             (int64_t, maxSeqlenCmpKv), (int64_t, oriTopk), (int64_t, cmpTopk),
             (int64_t, ropeHeadDim), (int64_t, cmpRatio), (int64_t, oriMaskMode),
             (int64_t, cmpMaskMode), (int64_t, oriWinLeft), (int64_t, oriWinRight),
             (const char*, layoutQOptional), (const char*, layoutKvOptional), (bool, hasOriKv),
             (bool, hasCmpKv), (Out, metadata)) {
  constexpr int64_t kKeys = 128;  // of a block
  check_numbers(*this, {"BSND", "TND", "PA_BBND"});
  expect_one_of("quantMode", quantMode, {1, 2});
  expect_one_of("ropeHeadDim", ropeHeadDim, {64});
  schedule(*this, metadata, 1, kKeys);
}

}  // namespace aclnn_host::attention_sparse_flash_mla_metadata_rows
