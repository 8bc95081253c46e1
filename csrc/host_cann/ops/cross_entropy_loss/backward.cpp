#include "host_cann/ops/cross_entropy_loss/backward.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <ATen/Parallel.h>

#include "host_cann/arguments/cast.h"
#include "host_cann/kernels/streaming.h"

namespace aclnn_host::cross_entropy {

// The memory of one run of the plan.
struct BackwardPlan::Run {
  const CrossEntropyLossKernels& kernels;
  const Attributes& attributes;
  Targets targets;
  Totals totals;
  double all_weights;  // for label smoothing
  Pieces pieces;
  int64_t element_size;
  CastFunction widen;
  CastFunction narrow;
  bool streaming;
  const double* grads;
  const double* zgrads;    // null without z-loss
  const double* log_sums;  // with zgrads
  const char* log_prob;
  char* out;

  // Per-row factors of the formula in aclnnop/aclnn_cross_entropy_loss_grad.h.
  struct Factors {
    double of_label;
    double smoothing;
    double others;
  };

  Factors factors(int64_t row, int64_t label) const {
    const bool mean = attributes.reduction == Reduction::kMean;
    const int64_t index = attributes.reduction == Reduction::kNone ? row : 0;
    const double grad = grads[index] / (mean ? totals.weight : 1);
    const double smoothing = grad * attributes.smoothing / static_cast<double>(pieces.classes);
    double others = 0;
    if (attributes.smoothing != 0) others += smoothing * all_weights;
    if (zgrads != nullptr) {
      const double zgrad = zgrads[index] / (mean ? totals.rows : 1);
      others += zgrad * 2 * attributes.zloss_scale * log_sums[row];
    }
    return {grad * (1 - attributes.smoothing) * targets.weight(label), smoothing, others};
  }

  void compute_piece(int64_t row, int64_t piece) const {
    const int64_t begin = pieces.begin(piece);
    const int64_t offset = (row * pieces.classes + begin) * element_size;
    const int64_t n = pieces.length(piece);
    const int64_t label = targets.label(row);
    if (!targets.counts(label)) {
      std::memset(out + offset, 0, static_cast<size_t>(n * element_size));
      return;
    }
    const auto [of_label, smoothing, others] = factors(row, label);
    const double factor = canonical(of_label + others);

    const int64_t position = label - begin;
    const bool has_label = position >= 0 && position < n;
    double at_label = 0;  // read first: a gradient may overwrite logProb
    if (has_label) widen(log_prob + offset + position * element_size, &at_label, 1);
    const char* weights = static_cast<const char*>(targets.weights);
    if (weights != nullptr) weights += begin * static_cast<int64_t>(targets.wide ? 8 : 4);
    kernels.gradient(log_prob + offset, weights, factor, canonical(smoothing), out + offset, n,
                     streaming);
    if (has_label) {
      // exp(logProb) * factor - of_label, without cancellation near logProb = 0.
      double value = std::expm1(at_label) * factor + others;
      if (attributes.smoothing != 0) value -= smoothing * targets.weight(label);
      value = canonical(value);
      narrow(&value, out + offset + position * element_size, 1);
    }
  }
};

aclnnStatus BackwardPlan::compute(void* workspace) {
  const aclDataType dtype = tensors[kLogProb].dtype;
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype));
  const Pieces pieces{sizes.classes};
  const Targets labels =
      targets.read(tensors[kTarget], tensors[kWeight], sizes, attributes.ignore_index, workspace);
  Totals totals;
  if (const auto status = labels.add_up("aclnnCrossEntropyLossGrad", &totals)) return status;

  const auto read = [&](const Packed& packed, int argument) {
    return static_cast<const double*>(packed.read(tensors[argument], workspace));
  };
  const Run run{cross_entropy_loss_kernels().find(dtype),
                attributes,
                labels,
                totals,
                attributes.smoothing != 0 ? labels.weight_of_all_classes() : 0,
                pieces,
                size,
                find_cast(dtype, ACL_DOUBLE),
                find_cast(ACL_DOUBLE, dtype),
                streams(sizes.rows * sizes.classes * size),
                read(grad_loss, kGradLoss),
                grad_zloss ? read(*grad_zloss, kGradZloss) : nullptr,
                grad_zloss ? read(lse, kLse) : nullptr,
                static_cast<const char*>(log_prob.read(tensors[kLogProb], workspace)),
                static_cast<char*>(out.begin(tensors[kOut], workspace))};
  const int64_t piece_length = std::min(kPiece, sizes.classes);
  at::parallel_for(0, sizes.rows * pieces.count(), std::max<int64_t>(kGrain / piece_length, 1),
                   [&](int64_t begin, int64_t end) {
                     const StreamingScope scope(run.streaming);
                     for (int64_t i = begin; i < end; ++i) {
                       run.compute_piece(i / pieces.count(), i % pieces.count());
                     }
                   });
  out.finish(tensors[kOut], workspace);
  return OK;
}

}  // namespace aclnn_host::cross_entropy
