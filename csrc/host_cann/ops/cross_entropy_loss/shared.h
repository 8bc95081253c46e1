// Shared by the loss and its gradient: attributes, labels and weights, pieces of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/kernels/cross_entropy_loss.h"
#include "host_cann/kernels/sizes.h"
#include "host_cann/kernels/tuning.h"

namespace aclnn_host::cross_entropy {

// A row is processed in pieces of this many elements: a piece stays in the L1 cache from the search
// for its maximum to the sum of its exponentials, and threads can share a long row. The pieces'
// sums are added in order, whichever thread computed them.
constexpr int64_t kPiece = 4096;
// True if the results of a matrix of this many bytes, with as many bytes read, bypass the caches.
inline bool streams(int64_t bytes) {
  return bytes > kStreamingBytes / 2;
}

enum class Reduction { kNone, kMean, kSum };

// nullopt for an unknown word; null selects CANN's default.
inline std::optional<Reduction> parse_reduction(const char* word) {
  const std::string_view text = word ? word : "mean";
  if (text == "none") return Reduction::kNone;
  if (text == "mean") return Reduction::kMean;
  if (text == "sum") return Reduction::kSum;
  return std::nullopt;
}

// The attributes of both operators, in the form used for computing.
struct Attributes {
  Reduction reduction;
  int64_t ignore_index;
  double smoothing;
  double zloss_scale;

  // CANN narrows its C doubles to float; the host product's DOUBLE tensors keep them.
  Attributes(const char* word, int64_t ignore_index, double smoothing, double zloss_scale,
             aclDataType dtype)
      : reduction(parse_reduction(word).value_or(Reduction::kMean)),
        ignore_index(ignore_index),
        smoothing(dtype == ACL_DOUBLE ? smoothing : static_cast<float>(smoothing)),
        zloss_scale(dtype == ACL_DOUBLE ? zloss_scale : static_cast<float>(zloss_scale)) {}
};

// The shape of logits or logProb, [N, C].
struct Sizes {
  int64_t rows = 0;
  int64_t classes = 0;
};

// Sums over the rows that are not ignored: of their labels' weights, and of 1.
struct Totals {
  double weight = 0;
  double rows = 0;
};

// Labels and class weights, contiguous.
struct Targets {
  const void* labels;
  bool narrow;          // INT32, else INT64
  const void* weights;  // null: all are 1
  bool wide;            // DOUBLE, else FLOAT
  int64_t rows;
  int64_t classes;
  int64_t ignore_index;

  int64_t label(int64_t row) const {
    return narrow ? static_cast<const int32_t*>(labels)[row]
                  : static_cast<const int64_t*>(labels)[row];
  }
  // True if a label is not ignored. Invalid labels have failed in add_up(), but an output may
  // overwrite the labels, so a row reads its label once and checks it again.
  bool counts(int64_t label) const {
    return label != ignore_index && label >= 0 && label < classes;
  }
  double weight(int64_t c) const {
    if (weights == nullptr) return 1;
    return wide ? static_cast<const double*>(weights)[c] : static_cast<const float*>(weights)[c];
  }

  double weight_of_all_classes() const {
    if (weights == nullptr) return static_cast<double>(classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += weight(c);
    return sum;
  }

  // Fails for an invalid label before using it as an index.
  aclnnStatus add_up(const char* api, Totals* totals) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t c = label(row);
      if (c == ignore_index) continue;
      if (!counts(c)) {
        return fail(
            ACL_ERROR_RT_AICORE_EXCEPTION,
            "%s: target[%lld] is %lld, expected a class in [0, %lld) or ignoreIndex (%lld); "
            "correct the label, or pass it as ignoreIndex",
            api, static_cast<long long>(row), static_cast<long long>(c),
            static_cast<long long>(classes), static_cast<long long>(ignore_index));
      }
      totals->weight += weight(c);
      totals->rows += 1;
    }
    return OK;
  }
};

// The target and weight of a plan.
struct PackedTargets {
  Packed labels;
  Packed weights;
  bool has_weights = false;

  PackedTargets(const TensorView& target, const aclTensor* weight, Workspace& workspace)
      : labels(target, target.dtype, workspace), has_weights(weight != nullptr) {
    if (has_weights) weights = Packed(weight->view, weight->view.dtype, workspace);
  }

  Targets read(const TensorView& target, const TensorView& weight, const Sizes& sizes,
               int64_t ignore_index, void* workspace) const {
    return {labels.read(target, workspace),
            target.dtype == ACL_INT32,
            has_weights ? weights.read(weight, workspace) : nullptr,
            weight.dtype == ACL_DOUBLE,
            sizes.rows,
            sizes.classes,
            ignore_index};
  }
};

// The division of a matrix's rows into pieces.
struct Pieces {
  int64_t classes;

  int64_t count() const { return divide_up(classes, kPiece); }
  int64_t begin(int64_t piece) const { return piece * kPiece; }
  int64_t length(int64_t piece) const { return std::min(kPiece, classes - begin(piece)); }
};

// Merges the exponentials of two pieces.
inline ExponentialSum joined(const ExponentialSum& a, const ExponentialSum& b) {
  if (b.max > a.max) return {b.max, a.sum * std::exp(a.max - b.max) + b.sum};
  // A piece of only -inf contributes nothing but a NaN.
  const bool is_none = std::isinf(b.max) && b.max < 0;
  return {a.max, a.sum + (is_none ? b.sum : b.sum * std::exp(b.max - a.max))};
}

// Replaces a NaN by the canonical one, as the kernels require.
inline double canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace aclnn_host::cross_entropy
