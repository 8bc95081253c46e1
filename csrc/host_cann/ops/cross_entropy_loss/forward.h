// Stage 2 of aclnnCrossEntropyLoss.
#pragma once

#include <optional>

#include "host_cann/ops/cross_entropy_loss/shared.h"

namespace aclnn_host::cross_entropy {

// An output with one value per row, or their reduction.
class RowOutput {
 public:
  RowOutput() = default;
  RowOutput(const TensorView& view, Reduction reduction, int64_t rows, Workspace& workspace)
      : output_(view, ACL_DOUBLE, workspace), reduction_(reduction), rows_(rows) {
    if (reduction != Reduction::kNone) {
      offset_ = workspace.reserve(static_cast<uint64_t>(rows) * sizeof(double));
    }
  }

  // Where to write the rows' values.
  double* begin(const TensorView& view, void* workspace) const {
    if (reduction_ == Reduction::kNone) {
      return static_cast<double*>(output_.begin(view, workspace));
    }
    return reinterpret_cast<double*>(static_cast<char*>(workspace) + offset_);
  }

  // `divisor` is that of the mean.
  void finish(const TensorView& view, double divisor, void* workspace) const {
    if (reduction_ != Reduction::kNone) {
      const double* values = begin(view, workspace);
      double sum = 0;
      for (int64_t row = 0; row < rows_; ++row) sum += values[row];
      auto* out = static_cast<double*>(output_.begin(view, workspace));
      *out = canonical(reduction_ == Reduction::kMean ? sum / divisor : sum);
    }
    output_.finish(view, workspace);
  }

 private:
  Packed output_;
  Reduction reduction_ = Reduction::kNone;
  int64_t rows_ = 0;
  uint64_t offset_ = 0;
};

struct ForwardPlan {
  enum { kInput, kTarget, kWeight, kLoss, kLogProb, kZloss, kLse, kMaxTensors };

  // Partial results of a piece of a row.
  struct Piece {
    ExponentialSum exponentials{};
    double weighted_sum = 0;
  };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Attributes attributes;
  Sizes sizes;
  PackedTargets targets;
  Packed input;
  Packed log_prob;
  RowOutput loss;
  std::optional<RowOutput> zloss;
  std::optional<RowOutput> lse;
  uint64_t pieces_offset = 0;

  ForwardPlan(std::initializer_list<const aclTensor*> arguments, const Attributes& attributes,
              bool return_zloss, bool return_lse, const Sizes& sizes, Workspace& workspace)
      : attributes(attributes),
        sizes(sizes),
        targets(arguments.begin()[kTarget]->view, arguments.begin()[kWeight], workspace) {
    size_t i = 0;
    for (const aclTensor* argument : arguments) tensors[i++] = view_of(argument);
    const Reduction reduction = attributes.reduction;
    input = Packed(tensors[kInput], tensors[kInput].dtype, workspace);
    log_prob = Packed(tensors[kLogProb], tensors[kLogProb].dtype, workspace);
    loss = RowOutput(tensors[kLoss], reduction, sizes.rows, workspace);
    if (return_zloss) zloss.emplace(tensors[kZloss], reduction, sizes.rows, workspace);
    if (return_lse) lse.emplace(tensors[kLse], Reduction::kNone, sizes.rows, workspace);
    const int64_t pieces = Pieces{sizes.classes}.count();
    if (pieces > 1) {
      pieces_offset = workspace.reserve(static_cast<uint64_t>(sizes.rows * pieces) * sizeof(Piece));
    }
  }

  bool is_input(size_t i) const { return i < kLoss; }
  bool is_output(size_t i) const { return i >= kLoss; }

  aclnnStatus compute(void* workspace);

 private:
  struct Run;
};

}  // namespace aclnn_host::cross_entropy
