// The schedules that the second version of the lightning indexer reads on a device: which core
// computes which queries.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/schedules.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::attention_lightning_indexer_metadata_rows {

namespace {

// Blocks of queries and keys, and the keys that a block of queries sees.
struct Blocks {
  int64_t heads;
  int64_t queries;  // of a block
  int64_t keys;
  int64_t ratio;
  bool is_causal;

  // The estimated time for a block.
  static int64_t cost(int64_t rows, int64_t columns) {
    constexpr int64_t kRows = 16, kColumns = 64, kCostOfRows = 6, kCostOfColumns = 10;
    return kCostOfRows * ((rows + kRows - 1) / kRows) +
           kCostOfColumns * ((columns + kColumns - 1) / kColumns);
  }
};

struct Sequence {
  int64_t queries;
  int64_t keys;
  int64_t rest;  // tokens after the last key

  bool operator==(const Sequence&) const = default;
};

// The estimated time for a row of blocks, and for its last block.
struct Cost {
  int64_t total = 0;
  int64_t last = 0;
};

int64_t rows_of(const Blocks& blocks, const Sequence& sequence) {
  return (sequence.queries + blocks.queries - 1) / blocks.queries;
}

Cost cost_of_row(const Blocks& blocks, const Sequence& sequence, int64_t row) {
  if (sequence.queries == 0 || sequence.keys == 0) return {};
  const int64_t tokens = sequence.keys * blocks.ratio + sequence.rest;
  const int64_t end = std::min((row + 1) * blocks.queries, sequence.queries);
  int64_t last = tokens - 1;
  if (blocks.is_causal) last = std::clamp<int64_t>(end - 1 + tokens - sequence.queries, 0, last);
  const int64_t keys = (last + 1) / blocks.ratio;
  if (keys == 0) return {};
  const int64_t height = (end - row * blocks.queries) * blocks.heads;
  const int64_t whole = Blocks::cost(height, blocks.keys), rest = keys % blocks.keys;
  const int64_t part = rest == 0 ? 0 : Blocks::cost(height, rest);
  return {whole * (keys / blocks.keys) + part, rest == 0 ? whole : part};
}

// The estimated time for a sequence, and for the last block of all.
struct SequenceCost : Cost {
  int64_t largest_row = 0;
};
SequenceCost cost_of(const Blocks& blocks, const Sequence& sequence) {
  SequenceCost sum;
  for (int64_t row = 0; row < rows_of(blocks, sequence); ++row) {
    const Cost cost = cost_of_row(blocks, sequence, row);
    sum.total += cost.total;
    sum.largest_row = std::max(sum.largest_row, cost.total);
    if (cost.total > 0) sum.last = cost.last;
  }
  return sum;
}

// Gives rows of blocks to cores in their order, each an equal share of what is left: whole
// sequences first, then rows of the next sequence. A share may be exceeded by half a block.
class Schedule {
 public:
  template <class SequenceOf>
  Schedule(const Blocks& blocks, int64_t count, int64_t cores, SequenceOf sequence_of)
      : blocks_(blocks), count_(count) {
    bool is_empty = true;
    int64_t largest_row = 0, left = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Sequence sequence = sequence_of(i);
      is_empty = is_empty && (sequence.queries == 0 || sequence.keys == 0);
      const SequenceCost cost = remembered(sequence);
      left += cost.total;
      largest_row = std::max(largest_row, cost.largest_row);
    }
    if (left == 0) {
      ends_.push_back({is_empty ? count : 0, 0});
      return;
    }
    Position at{0, 0};
    int64_t of_sequence = remembered(sequence_of(0)).total;
    while (static_cast<int64_t>(ends_.size()) < cores && left > 0 && at.sequence < count) {
      const int64_t share =
          std::max(largest_row, left / (cores - static_cast<int64_t>(ends_.size())));
      left -= assign(share, at, of_sequence, sequence_of);
      ends_.push_back(at);
    }
  }

  // Eight numbers for each core: that it is used, where it begins, and where it ends.
  at::Tensor table() const {
    constexpr size_t kOfCore = 8;
    std::vector<int32_t> numbers(kScheduleSize);
    Position begin{0, 0};
    for (size_t core = 0; core < ends_.size(); ++core) {
      const Position end = ends_[core];
      int32_t* const own = numbers.data() + core * kOfCore;
      own[0] = 1;
      own[1] = static_cast<int32_t>(begin.sequence);
      own[2] = static_cast<int32_t>(begin.row);
      own[4] = static_cast<int32_t>(end.sequence);
      own[5] = static_cast<int32_t>(end.row);
      begin = end;
    }
    return at::tensor(numbers, at::kInt);
  }

 private:
  struct Position {
    int64_t sequence;
    int64_t row;
  };

  // Sequences are often alike.
  SequenceCost remembered(const Sequence& sequence) {
    if (!(sequence == last_)) {
      last_ = sequence;
      cost_of_last_ = cost_of(blocks_, sequence);
    }
    return cost_of_last_;
  }

  // Gives a core its share; returns the time of it. `of_sequence` is the time for what is left of
  // the sequence.
  template <class SequenceOf>
  int64_t assign(int64_t share, Position& at, int64_t& of_sequence, SequenceOf sequence_of) {
    int64_t sum = 0;
    SequenceCost cost = remembered(sequence_of(at.sequence));
    while (of_sequence == 0 || share + cost.last / 2 >= sum + of_sequence) {
      sum += of_sequence;
      at = {at.sequence + 1, 0};
      if (at.sequence == count_) return sum;
      cost = remembered(sequence_of(at.sequence));
      of_sequence = cost.total;
    }
    const Sequence sequence = sequence_of(at.sequence);
    Cost row = cost_of_row(blocks_, sequence, at.row);
    while (share + row.last / 2 >= sum + row.total) {
      sum += row.total;
      of_sequence -= row.total;
      do {
        row = cost_of_row(blocks_, sequence, ++at.row);
      } while (row.total == 0 && at.row < rows_of(blocks_, sequence));
    }
    return sum;
  }

  Blocks blocks_;
  int64_t count_;
  Sequence last_{0, 0, 0};
  SequenceCost cost_of_last_;
  std::vector<Position> ends_;
};

template <class Row>
void check_numbers(const Row& row) {
  constexpr int64_t kHeadSize = 128, kMostKeys = 2048, kMostRatio = 128;
  expect_one_of("numHeadsQ", row.numHeadsQ, {32, 64});
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

void expect_most(const char* what, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 24;
  EXPECT(count <= kMost, "there are ", count, " ", what, ", expected up to ", kMost);
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
  at::Tensor table = at::zeros({kScheduleSize}, row.metadata->options());
  if (has_values(row.metadata)) {
    queries.read();
    keys.read();
    expect_most("queries", queries.total(count));
    const std::vector<int64_t> rests =
        has_rest ? integers_in(*row.cmpResidualKOptional) : std::vector<int64_t>();
    for (const int64_t rest : rests) {
      expect_rest("cmpResidualKOptional", rest, row.cmpRatio);
    }
    const auto sequence_of = [&](int64_t i) {
      return Sequence{queries[i], keys[i], has_rest ? rests[static_cast<size_t>(i)] : 0};
    };
    table = Schedule(blocks, count, cores_of_device(), sequence_of).table();
  }
  row.metadata = table;
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
