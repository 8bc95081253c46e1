#include "host_cann/ops/cross_entropy_loss/forward.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>

#include "host_cann/arguments/cast.h"
#include "host_cann/kernels/streaming.h"

namespace aclnn_host::cross_entropy {

// The memory of one run of the plan.
struct ForwardPlan::Run {
  static constexpr int64_t kMostRows = 16;  // rows per logarithm call

  const CrossEntropyLossKernels& kernels;
  const Attributes& attributes;
  Targets targets;
  Pieces pieces;
  size_t element_size;
  CastFunction widen;
  bool streaming;
  const char* x;
  char* log_prob;
  double* loss;
  double* zloss;  // null: not requested
  double* lse;    // null: not requested
  Piece* room;    // for the pieces of every row, if it has several

  Piece* place(int64_t row) const { return room + row * pieces.count(); }

  auto* at(auto* base, int64_t row, int64_t piece) const {
    return base + (row * pieces.classes + pieces.begin(piece)) * static_cast<int64_t>(element_size);
  }

  // Step 1: the sums that results() needs of a row.
  void sums(int64_t row, Piece* found, auto for_each_piece) const {
    for_each_piece([&](int64_t i) {
      found[i].exponentials = kernels.exponential_sum(at(x, row, i), pieces.length(i), streaming);
    });
  }

  // A row after sums(): the values to subtract from its elements, in this order.
  struct Row {
    double max;
    double log_sum;
  };

  // Step 2.
  Row joined_row(const Piece* found) const {
    auto [max, sum] = joined(found);
    kernels.logarithms(&sum, 1);
    return {max, canonical(sum)};
  }

  // Step 3. With `next`, also computes the sums of the row below.
  void results(int64_t row, const Row& all, Piece* found, Piece* next, auto for_each_piece) const {
    const double log_sum = all.log_sum;
    const int64_t label = targets.label(row);
    const bool counts = targets.counts(label);
    double label_log_prob = 0;
    if (counts) {
      widen(at(x, row, 0) + label * static_cast<int64_t>(element_size), &label_log_prob, 1);
      label_log_prob = (label_log_prob - all.max) - log_sum;
    }
    const bool smooths = counts && attributes.smoothing != 0;
    for_each_piece([&](int64_t i) {
      const char* from = at(x, row, i);
      char* to = at(log_prob, row, i);
      const int64_t n = pieces.length(i);
      if (smooths) found[i].weighted_sum = weighted_sum(from, i, all.max, log_sum);
      if (next != nullptr) {
        next[i].exponentials =
            kernels.log_prob_and_next_sum(from, all.max, log_sum, to, at(x, row + 1, i), n);
      } else {
        kernels.log_prob(from, all.max, log_sum, to, n, streaming);
      }
    });

    loss[row] = counts ? -(1 - attributes.smoothing) * targets.weight(label) * label_log_prob : 0;
    if (smooths) {
      double sum = 0;
      for (int64_t i = 0; i < pieces.count(); ++i) sum += found[i].weighted_sum;
      loss[row] -= attributes.smoothing / static_cast<double>(pieces.classes) * sum;
    }
    const double log_sum_exp = all.max + log_sum;
    if (zloss != nullptr) {
      zloss[row] = counts ? attributes.zloss_scale * log_sum_exp * log_sum_exp : 0;
    }
    if (lse != nullptr) lse[row] = log_sum_exp;
  }

  // Processes a matrix: each thread takes some of many rows, or pieces of a few long rows.
  void all_rows(int64_t rows) const {
    if (pieces.count() == 1 || rows >= 4 * at::get_num_threads()) {
      at::parallel_for(0, rows, std::max<int64_t>(kGrain / pieces.classes, 1),
                       [&](int64_t begin, int64_t end) {
                         const StreamingScope scope(streaming);
                         if (pieces.count() == 1 && !streaming) return short_rows(begin, end);
                         some_rows(begin, end);
                       });
      return;
    }
    const auto all = [&](auto body) {
      at::parallel_for(0, pieces.count(), kGrain / kPiece, [&](int64_t begin, int64_t end) {
        const StreamingScope scope(streaming);
        for (int64_t i = begin; i < end; ++i) body(i);
      });
    };
    for (int64_t row = 0; row < rows; ++row) {
      sums(row, place(row), all);
      results(row, joined_row(place(row)), place(row), nullptr, all);
    }
  }

  // Processes rows in order; if results bypass the caches, also computes the sums of the next row.
  void some_rows(int64_t begin, int64_t end) const {
    const auto all = [&](auto body) {
      for (int64_t i = 0; i < pieces.count(); ++i) body(i);
    };
    Piece singles[2];
    const auto place_of = [&](int64_t row) {
      return pieces.count() == 1 ? singles + row % 2 : place(row);
    };
    bool has_sums = false;
    for (int64_t row = begin; row < end; ++row) {
      if (!has_sums) sums(row, place_of(row), all);
      has_sums = streaming && row + 1 < end;
      results(row, joined_row(place_of(row)), place_of(row), has_sums ? place_of(row + 1) : nullptr,
              all);
    }
  }

  // Processes rows of one piece, a few at a time, so that their elements stay in the L1 cache.
  void short_rows(int64_t begin, int64_t end) const {
    const auto once = [](auto body) { body(int64_t{0}); };
    const int64_t most = std::clamp<int64_t>(kPiece / pieces.classes, 1, kMostRows);
    ExponentialSum exponentials[kMostRows];
    double log_sums[kMostRows];
    for (int64_t row = begin; row < end; row += most) {
      const int64_t count = std::min(most, end - row);
      kernels.exponential_sums(at(x, row, 0), count, pieces.classes, exponentials);
      for (int64_t i = 0; i < count; ++i) log_sums[i] = exponentials[i].sum;
      kernels.logarithms(log_sums, count);
      for (int64_t i = 0; i < count; ++i) {
        Piece found;  // only its weighted sum is missing
        results(row + i, {exponentials[i].max, canonical(log_sums[i])}, &found, nullptr, once);
      }
    }
  }

 private:
  double weighted_sum(const char* from, int64_t piece, double max, double log_sum) const {
    const char* weights = static_cast<const char*>(targets.weights);
    const size_t size = targets.wide ? sizeof(double) : sizeof(float);
    return kernels.weighted_sum(
        from, weights ? weights + pieces.begin(piece) * static_cast<int64_t>(size) : nullptr, max,
        log_sum, pieces.length(piece));
  }

  // Merges the exponentials of the pieces of one row.
  ExponentialSum joined(const Piece* found) const {
    ExponentialSum all = found[0].exponentials;
    for (int64_t i = 1; i < pieces.count(); ++i) {
      all = cross_entropy::joined(all, found[i].exponentials);
    }
    return all;
  }
};

aclnnStatus ForwardPlan::compute(void* workspace) {
  if (sizes.rows == 0 && attributes.reduction == Reduction::kNone) return OK;
  const aclDataType dtype = tensors[kInput].dtype;
  const size_t element_size = aclDataTypeSize(dtype);
  const auto [rows, classes] = sizes;
  const Pieces pieces{classes};
  const Run run{
      cross_entropy_loss_kernels().find(dtype),
      attributes,
      targets.read(tensors[kTarget], tensors[kWeight], sizes, attributes.ignore_index, workspace),
      pieces,
      element_size,
      find_cast(dtype, ACL_DOUBLE),
      streams(rows * classes * static_cast<int64_t>(element_size)),
      static_cast<const char*>(input.read(tensors[kInput], workspace)),
      static_cast<char*>(log_prob.begin(tensors[kLogProb], workspace)),
      loss.begin(tensors[kLoss], workspace),
      zloss ? zloss->begin(tensors[kZloss], workspace) : nullptr,
      lse ? lse->begin(tensors[kLse], workspace) : nullptr,
      reinterpret_cast<Piece*>(static_cast<char*>(workspace) + pieces_offset)};
  Totals totals;
  if (const auto status = run.targets.add_up("aclnnCrossEntropyLoss", &totals)) return status;

  run.all_rows(rows);

  log_prob.finish(tensors[kLogProb], workspace);
  loss.finish(tensors[kLoss], totals.weight, workspace);
  if (zloss) zloss->finish(tensors[kZloss], totals.rows, workspace);
  if (lse) lse->finish(tensors[kLse], 1, workspace);
  return OK;
}

}  // namespace aclnn_host::cross_entropy
