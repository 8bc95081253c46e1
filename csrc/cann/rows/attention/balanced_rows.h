#pragma once

#include "cann/rows/attention/schedules.h"
#include "host_cann/kernels/sizes.h"

// Shared by the functions that give rows of blocks of queries and keys to cores, to each an equal
// share of the estimated time.
namespace aclnn_host {

// The estimated time for a row of blocks, and for its last block.
struct RowCost {
  int64_t total = 0;
  int64_t last = 0;
  int64_t blocks = 0;

  // A row that another one continues.
  RowCost operator+(const RowCost& rest) const {
    return {total + rest.total, rest.blocks > 0 ? rest.last : last, blocks + rest.blocks};
  }
};

// The cost of a row of `height` queries, those of each head counted, and `keys` keys in blocks of
// `width`.
inline RowCost cost_of(int64_t height, int64_t keys, int64_t width) {
  constexpr int64_t kRows = 16, kColumns = 64, kCostOfRows = 6, kCostOfColumns = 10;
  const auto cost = [&](int64_t columns) {
    return kCostOfRows * divide_up(height, kRows) + kCostOfColumns * divide_up(columns, kColumns);
  };
  const int64_t count = keys / width, rest = keys % width;
  RowCost row;
  if (count > 0) row = {cost(width) * count, cost(width), count};
  if (rest > 0) row = row + RowCost{cost(rest), cost(rest), 1};
  return row;
}

// Gives rows of blocks to cores in their order, each an equal share of what is left: whole
// sequences first, then rows of the next sequence. A share may be exceeded by half a block.
//
// Work has a type Sequence, and for a sequence rows_of(), cost_of_row() of one of these,
// is_empty().
template <class Work>
class Schedule {
 public:
  template <class SequenceOf>
  Schedule(const Work& work, int64_t count, int64_t cores, SequenceOf sequence_of)
      : work_(work), count_(count) {
    bool is_empty = true;
    int64_t largest_row = 0, left = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Sequence sequence = sequence_of(i);
      is_empty = is_empty && work.is_empty(sequence);
      const SequenceCost cost = remembered(sequence);
      left += cost.total;
      largest_row = std::max(largest_row, cost.largest_row);
    }
    if (left == 0) {
      ends_.push_back({is_empty ? count : 0, 0});
      return;
    }
    Position at{0, 0};
    RowCost of_sequence = remembered(sequence_of(0));
    while (static_cast<int64_t>(ends_.size()) < cores && left > 0 && at.sequence < count) {
      const int64_t share =
          std::max(largest_row, left / (cores - static_cast<int64_t>(ends_.size())));
      left -= assign(share, at, of_sequence, sequence_of);
      ends_.push_back(at);
    }
  }

  // The most blocks that a core has.
  int64_t most_blocks() const { return most_blocks_; }

  // Writes for each core, `distance` numbers apart: 1, the sequence and the row with which it
  // begins, 0, and those at which it ends. Each share is written for `copies` cores.
  void write(std::vector<int32_t>& numbers, size_t distance, size_t copies = 1) const {
    Position begin{0, 0};
    int32_t* own = numbers.data();
    for (const Position& end : ends_) {
      for (size_t copy = 0; copy < copies; ++copy, own += distance) {
        own[0] = 1;
        own[1] = static_cast<int32_t>(begin.sequence);
        own[2] = static_cast<int32_t>(begin.row);
        own[4] = static_cast<int32_t>(end.sequence);
        own[5] = static_cast<int32_t>(end.row);
      }
      begin = end;
    }
  }

 private:
  using Sequence = typename Work::Sequence;
  struct Position {
    int64_t sequence;
    int64_t row;
  };
  // The time for a sequence, and for the last block of all.
  struct SequenceCost : RowCost {
    int64_t largest_row = 0;
  };

  // Sequences are often alike.
  SequenceCost remembered(const Sequence& sequence) {
    if (last_ && sequence == *last_) return cost_of_last_;
    last_ = sequence;
    SequenceCost sum;
    for (int64_t row = 0; row < work_.rows_of(sequence); ++row) {
      const RowCost cost = work_.cost_of_row(sequence, row);
      static_cast<RowCost&>(sum) = sum + cost;
      sum.largest_row = std::max(sum.largest_row, cost.total);
    }
    return cost_of_last_ = sum;
  }

  // Gives a core its share; returns the time of it. `of_sequence` is the cost of what is left of
  // the sequence.
  template <class SequenceOf>
  int64_t assign(int64_t share, Position& at, RowCost& of_sequence, SequenceOf sequence_of) {
    int64_t sum = 0, blocks = 0;
    const auto take = [&](const RowCost& cost) {
      sum += cost.total;
      blocks += cost.blocks;
      most_blocks_ = std::max(most_blocks_, blocks);
    };
    while (of_sequence.total == 0 || share + of_sequence.last / 2 >= sum + of_sequence.total) {
      take(of_sequence);
      at = {at.sequence + 1, 0};
      if (at.sequence == count_) return sum;
      of_sequence = remembered(sequence_of(at.sequence));
    }
    const Sequence sequence = sequence_of(at.sequence);
    RowCost row = work_.cost_of_row(sequence, at.row);
    while (share + row.last / 2 >= sum + row.total) {
      take(row);
      of_sequence.total -= row.total;
      of_sequence.blocks -= row.blocks;
      do {
        row = work_.cost_of_row(sequence, ++at.row);
      } while (row.total == 0 && at.row < work_.rows_of(sequence));
    }
    return sum;
  }

  Work work_;
  int64_t count_;
  std::optional<Sequence> last_;
  SequenceCost cost_of_last_;
  std::vector<Position> ends_;
  int64_t most_blocks_ = 0;
};

}  // namespace aclnn_host
