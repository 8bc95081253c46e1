// aclnnCrossEntropyLoss, aclnnCrossEntropyLossGrad; docs/emulation.md says where they deviate from
// CANN.

#include "host_cann/kernels/cross_entropy_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include <ATen/Parallel.h>

#include "acl/acl_base.h"
#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "host_cann/kernels/sizes.h"
#include "host_cann/kernels/streaming.h"
#include "host_cann/kernels/tuning.h"
#include "host_cann/ops/cast.h"
#include "host_cann/ops/checks.h"
#include "host_cann/ops/packed.h"
#include "host_cann/ops/plan.h"

namespace aclnn_host {
namespace {

constexpr Product kA2 = Product::kAscend910B;
constexpr Product k950 = Product::kAscend950;
constexpr Product kHost = Product::kHost;

// input, target, weight, loss, logProb, zloss, lse.
constexpr DtypeRow forward_row(aclDataType real, aclDataType target, Product since) {
  const aclDataType weight = real == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  return {{real, target, weight, real, real, real, real}, since};
}
constexpr DtypeRow kForwardRows[] = {
    forward_row(ACL_BF16, ACL_INT64, kA2),     forward_row(ACL_FLOAT16, ACL_INT64, kA2),
    forward_row(ACL_FLOAT, ACL_INT64, kA2),    forward_row(ACL_BF16, ACL_INT32, k950),
    forward_row(ACL_FLOAT16, ACL_INT32, k950), forward_row(ACL_FLOAT, ACL_INT32, k950),
    forward_row(ACL_DOUBLE, ACL_INT64, kHost), forward_row(ACL_DOUBLE, ACL_INT32, kHost)};

// gradLoss, logProb, target, weight, gradZloss, lse, out.
constexpr DtypeRow backward_row(aclDataType real, aclDataType target, Product since) {
  const aclDataType weight = real == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
  return {{real, real, target, weight, real, real, real}, since};
}
constexpr DtypeRow kBackwardRows[] = {
    backward_row(ACL_BF16, ACL_INT64, kA2),     backward_row(ACL_FLOAT16, ACL_INT64, kA2),
    backward_row(ACL_FLOAT, ACL_INT64, kA2),    backward_row(ACL_BF16, ACL_INT32, k950),
    backward_row(ACL_FLOAT16, ACL_INT32, k950), backward_row(ACL_FLOAT, ACL_INT32, k950),
    backward_row(ACL_DOUBLE, ACL_INT64, kHost), backward_row(ACL_DOUBLE, ACL_INT32, kHost)};

// A row is worked on in pieces of this many elements: one stays in the L1 cache from the search
// for its maximum to the sum of its exponentials, and threads can share a long row. The sums are
// those of the pieces in their order, whoever computed them.
constexpr int64_t kPiece = 4096;
// Whether the results of a matrix of so many bytes, of which as many are read, bypass the caches.
bool streams(int64_t bytes) {
  return bytes > kStreamingBytes / 2;
}

enum class Reduction { kNone, kMean, kSum };

// Nothing for a word that is none; null is CANN's default.
std::optional<Reduction> parse_reduction(const char* word) {
  const std::string_view text = word ? word : "mean";
  if (text == "none") return Reduction::kNone;
  if (text == "mean") return Reduction::kMean;
  if (text == "sum") return Reduction::kSum;
  return std::nullopt;
}

// The attributes that both operators have, as they are computed with.
struct Attributes {
  Reduction reduction;
  int64_t ignore_index;
  double smoothing;
  double zloss_scale;

  // CANN narrows its C doubles to float; the DOUBLE tensors of the host product keep them.
  Attributes(const char* word, int64_t ignore_index, double smoothing, double zloss_scale,
             aclDataType dtype)
      : reduction(parse_reduction(word).value_or(Reduction::kMean)),
        ignore_index(ignore_index),
        smoothing(dtype == ACL_DOUBLE ? smoothing : static_cast<float>(smoothing)),
        zloss_scale(dtype == ACL_DOUBLE ? zloss_scale : static_cast<float>(zloss_scale)) {}
};

// ---- Checks ------------------------------------------------------------------------------------

// The sizes of an operator whose `matrix` argument is [N, C].
struct Sizes {
  int64_t rows = 0;
  int64_t classes = 0;
};

Sizes require_matrix(Checks& checks, Argument matrix) {
  if (!checks.ok()) return {};
  const Dims& shape = matrix.tensor->view.shape;
  if (shape.size() == 2 && shape[1] > 0) return {shape[0], shape[1]};
  checks.require_tiling(false, "%s has shape %s, expected [N, C] with C > 0; reshape it",
                        matrix.name, shape_text(shape).c_str());
  return {};
}

// `meaning` says what stands in the tensor.
void require_shape(Checks& checks, Argument argument, std::initializer_list<int64_t> shape,
                   const char* meaning) {
  if (!checks.ok() || argument.tensor == nullptr) return;
  const Dims expected(shape.begin(), shape.size());
  if (argument.tensor->view.shape == expected) return;
  checks.require_tiling(false, "%s has shape %s, expected %s, %s; reshape it", argument.name,
                        shape_text(argument.tensor->view.shape).c_str(),
                        shape_text(expected).c_str(), meaning);
}

void require_attributes(Checks& checks, const char* reduction, double smoothing) {
  if (!checks.ok()) return;
  checks
      .require_tiling(parse_reduction(reduction).has_value(),
                      "reduction is \"%s\", expected \"none\", \"mean\" or \"sum\"",
                      reduction ? reduction : "")
      .require_tiling(smoothing >= 0 && smoothing <= 1,
                      "labelSmoothing is %g, expected a number from 0 to 1", smoothing);
}

constexpr const char* kLaterProducts =
    "select Ascend950 or host, which have it (ACLNN_TORCH_PRODUCT=Ascend950, or "
    "aclnn_torch.set_product(\"Ascend950\") in Python)";

// Atlas A2 and A3 have neither smoothing nor the z-loss.
void require_plain(Checks& checks, double smoothing, double zloss_scale, bool zloss_wanted,
                   const char* zloss_name) {
  if (!checks.ok() || checks.product() >= k950) return;
  checks
      .require_tiling(smoothing == 0, "labelSmoothing is %g, expected 0; %s, or smooth logProb",
                      smoothing, kLaterProducts)
      .require_tiling(zloss_scale == 0, "lseSquareScaleForZloss is %g, expected 0; %s", zloss_scale,
                      kLaterProducts)
      .require_tiling(!zloss_wanted, "%s is given, but this product has no z-loss; omit it, or %s",
                      zloss_name, kLaterProducts);
}

// ---- What the plans share ----------------------------------------------------------------------

// The sums over the rows that are not ignored: of the weights of their labels, and of 1.
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
  // Whether a label counts. Those that are no class have failed in add_up(); but an output may lie
  // over the labels, so a row reads its own once and makes sure.
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

  // Fails for a label that is none; nothing has been indexed with it then.
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

// Target and weight of a plan.
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

// The pieces of the rows of a matrix.
struct Pieces {
  int64_t classes;

  int64_t count() const { return divide_up(classes, kPiece); }
  int64_t begin(int64_t piece) const { return piece * kPiece; }
  int64_t length(int64_t piece) const { return std::min(kPiece, classes - begin(piece)); }
};

// A nan is made the default one, as the kernels want it.
double canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

// ---- Forward -----------------------------------------------------------------------------------

// An output with a number per row, or what the reduction makes of these.
class RowOutput {
 public:
  RowOutput() = default;
  RowOutput(const TensorView& view, Reduction reduction, int64_t rows, Workspace& workspace)
      : output_(view, ACL_DOUBLE, workspace), reduction_(reduction), rows_(rows) {
    if (reduction != Reduction::kNone) {
      offset_ = workspace.reserve(static_cast<uint64_t>(rows) * sizeof(double));
    }
  }

  // Where the rows' numbers go.
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

  // What is known of a piece of a row.
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

// One run of the plan: where everything lies.
struct ForwardPlan::Run {
  static constexpr int64_t kMostRows = 16;  // whose logarithms are taken at once

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
  double* zloss;  // null: not wanted
  double* lse;    // null: not wanted
  Piece* room;    // for the pieces of every row, if they have several

  Piece* place(int64_t row) const { return room + row * pieces.count(); }

  auto* at(auto* base, int64_t row, int64_t piece) const {
    return base + (row * pieces.classes + pieces.begin(piece)) * static_cast<int64_t>(element_size);
  }

  // First: what results() wants to know of a row.
  void sums(int64_t row, Piece* found, auto for_each_piece) const {
    for_each_piece([&](int64_t i) {
      found[i].exponentials = kernels.exponential_sum(at(x, row, i), pieces.length(i), streaming);
    });
  }

  // A row that sums() has found: what is subtracted from its elements, one after the other.
  struct Row {
    double max;
    double log_sum;
  };

  // Second.
  Row joined_row(const Piece* found) const {
    auto [max, sum] = joined(found);
    kernels.logarithms(&sum, 1);
    return {max, canonical(sum)};
  }

  // Third. With `next`, also the sums of the row below.
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

  // All of rows of one piece, a few at a time: their elements stay in the L1 cache.
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
        Piece found;  // only its weighted sum is still to be found
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

  // The pieces' exponentials as those of one row.
  ExponentialSum joined(const Piece* found) const {
    ExponentialSum all = found[0].exponentials;
    for (int64_t i = 1; i < pieces.count(); ++i) {
      const auto [max, sum] = found[i].exponentials;
      if (max > all.max) {
        all = {max, all.sum * std::exp(all.max - max) + sum};
      } else {
        // A piece of -inf has only a nan to add.
        all.sum += std::isinf(max) && max < 0 ? sum : sum * std::exp(max - all.max);
      }
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

  if (pieces.count() == 1 || rows >= 4 * at::get_num_threads()) {
    at::parallel_for(0, rows, std::max<int64_t>(kGrain / classes, 1),
                     [&](int64_t begin, int64_t end) {
                       const StreamingScope scope(run.streaming);
                       const auto all = [&](auto body) {
                         for (int64_t i = 0; i < pieces.count(); ++i) body(i);
                       };
                       if (pieces.count() == 1 && !run.streaming) {
                         return run.short_rows(begin, end);
                       }
                       Piece singles[2];
                       const auto place = [&](int64_t row) {
                         return pieces.count() == 1 ? singles + row % 2 : run.place(row);
                       };
                       bool has_sums = false;
                       for (int64_t row = begin; row < end; ++row) {
                         if (!has_sums) run.sums(row, place(row), all);
                         has_sums = run.streaming && row + 1 < end;
                         run.results(row, run.joined_row(place(row)), place(row),
                                     has_sums ? place(row + 1) : nullptr, all);
                       }
                     });
  } else {
    const auto all = [&](auto body) {
      at::parallel_for(0, pieces.count(), kGrain / kPiece, [&](int64_t begin, int64_t end) {
        const StreamingScope scope(run.streaming);
        for (int64_t i = begin; i < end; ++i) body(i);
      });
    };
    for (int64_t row = 0; row < rows; ++row) {
      run.sums(row, run.place(row), all);
      run.results(row, run.joined_row(run.place(row)), run.place(row), nullptr, all);
    }
  }

  log_prob.finish(tensors[kLogProb], workspace);
  loss.finish(tensors[kLoss], totals.weight, workspace);
  if (zloss) zloss->finish(tensors[kZloss], totals.rows, workspace);
  if (lse) lse->finish(tensors[kLse], 1, workspace);
  return OK;
}

// ---- Backward ----------------------------------------------------------------------------------

struct BackwardPlan {
  enum { kGradLoss, kLogProb, kTarget, kWeight, kGradZloss, kLse, kOut, kMaxTensors };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Attributes attributes;
  Sizes sizes;
  PackedTargets targets;
  Packed grad_loss;
  Packed log_prob;
  std::optional<Packed> grad_zloss;  // with lse, unless the z-loss does not count
  Packed lse;
  Packed out;

  BackwardPlan(std::initializer_list<const aclTensor*> arguments, const Attributes& attributes,
               const Sizes& sizes, Workspace& workspace)
      : attributes(attributes),
        sizes(sizes),
        targets(arguments.begin()[kTarget]->view, arguments.begin()[kWeight], workspace) {
    size_t i = 0;
    for (const aclTensor* argument : arguments) tensors[i++] = view_of(argument);
    grad_loss = Packed(tensors[kGradLoss], ACL_DOUBLE, workspace);
    log_prob = Packed(tensors[kLogProb], tensors[kLogProb].dtype, workspace);
    if (arguments.begin()[kGradZloss] != nullptr && attributes.zloss_scale != 0) {
      grad_zloss.emplace(tensors[kGradZloss], ACL_DOUBLE, workspace);
      lse = Packed(tensors[kLse], ACL_DOUBLE, workspace);
    }
    out = Packed(tensors[kOut], tensors[kOut].dtype, workspace);
  }

  bool is_input(size_t i) const { return i < kOut; }
  bool is_output(size_t i) const { return i == kOut; }

  aclnnStatus compute(void* workspace);
};

aclnnStatus BackwardPlan::compute(void* workspace) {
  if (sizes.rows == 0) return OK;
  const aclDataType dtype = tensors[kLogProb].dtype;
  const auto size = static_cast<int64_t>(aclDataTypeSize(dtype));
  const int64_t classes = sizes.classes;
  const Pieces pieces{classes};
  const auto& kernels = cross_entropy_loss_kernels().find(dtype);
  const CastFunction widen = find_cast(dtype, ACL_DOUBLE);
  const CastFunction narrow = find_cast(ACL_DOUBLE, dtype);
  const bool streaming = streams(sizes.rows * classes * size);
  const Targets labels =
      targets.read(tensors[kTarget], tensors[kWeight], sizes, attributes.ignore_index, workspace);
  Totals totals;
  if (const auto status = labels.add_up("aclnnCrossEntropyLossGrad", &totals)) return status;

  const auto read = [&](const Packed& packed, int argument) {
    return static_cast<const double*>(packed.read(tensors[argument], workspace));
  };
  const double* grads = read(grad_loss, kGradLoss);
  const double* zgrads = grad_zloss ? read(*grad_zloss, kGradZloss) : nullptr;
  const double* log_sums = grad_zloss ? read(lse, kLse) : nullptr;
  const auto* from = static_cast<const char*>(log_prob.read(tensors[kLogProb], workspace));
  auto* to = static_cast<char*>(out.begin(tensors[kOut], workspace));
  const bool reduced = attributes.reduction != Reduction::kNone;
  const bool mean = attributes.reduction == Reduction::kMean;
  const double all_weights = attributes.smoothing != 0 ? labels.weight_of_all_classes() : 0;

  // Piece i of the row: its place, and the factors of the formula in the header.
  const auto compute_piece = [&](int64_t row, int64_t i) {
    const int64_t offset = (row * classes + pieces.begin(i)) * size;
    const int64_t n = pieces.length(i);
    const int64_t label = labels.label(row);
    if (!labels.counts(label)) {
      std::memset(to + offset, 0, static_cast<size_t>(n * size));
      return;
    }
    const double grad = grads[reduced ? 0 : row] / (mean ? totals.weight : 1);
    const double of_label = grad * (1 - attributes.smoothing) * labels.weight(label);
    const double smoothing = grad * attributes.smoothing / static_cast<double>(classes);
    double others = 0;
    if (attributes.smoothing != 0) others += smoothing * all_weights;
    if (zgrads != nullptr) {
      const double zgrad = zgrads[reduced ? 0 : row] / (mean ? totals.rows : 1);
      others += zgrad * 2 * attributes.zloss_scale * log_sums[row];
    }
    const double factor = canonical(of_label + others);

    const int64_t position = label - pieces.begin(i);
    const bool has_label = position >= 0 && position < n;
    double at_label = 0;
    if (has_label) widen(from + offset + position * size, &at_label, 1);
    const char* weights = static_cast<const char*>(labels.weights);
    if (weights != nullptr) {
      weights += pieces.begin(i) * static_cast<int64_t>(labels.wide ? 8 : 4);
    }
    kernels.gradient(from + offset, weights, factor, canonical(smoothing), to + offset, n,
                     streaming);
    if (has_label) {
      // exp(logProb) * factor - of_label without the cancellation near logProb = 0.
      double value = std::expm1(at_label) * factor + others;
      if (attributes.smoothing != 0) value -= smoothing * labels.weight(label);
      value = canonical(value);
      narrow(&value, to + offset + position * size, 1);
    }
  };
  const int64_t piece_length = std::min(kPiece, classes);
  at::parallel_for(0, sizes.rows * pieces.count(), std::max<int64_t>(kGrain / piece_length, 1),
                   [&](int64_t begin, int64_t end) {
                     const StreamingScope scope(streaming);
                     for (int64_t i = begin; i < end; ++i) {
                       compute_piece(i / pieces.count(), i % pieces.count());
                     }
                   });
  out.finish(tensors[kOut], workspace);
  return OK;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(
    const aclTensor* input, const aclTensor* target, const aclTensor* weightOptional,
    char* reductionOptional, int64_t ignoreIndex, double labelSmoothing,
    double lseSquareScaleForZloss, bool returnZloss, const aclTensor* lossOut,
    const aclTensor* logProbOut, const aclTensor* zlossOut, const aclTensor* lseForZlossOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnCrossEntropyLoss";
  const Argument logits{"input", input}, labels{"target", target};
  const Argument weight{"weight", weightOptional};
  const Argument loss{"lossOut", lossOut}, log_prob{"logProbOut", logProbOut};
  const Argument zloss{"zlossOut", zlossOut}, lse{"lseForZlossOut", lseForZlossOut};
  const auto arguments = {logits, labels, weight, loss, log_prob, zloss, lse};
  const std::tuple given{logits,
                         labels,
                         weight,
                         Named{"reduction", reductionOptional},
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"lseSquareScaleForZloss", lseSquareScaleForZloss},
                         Named{"returnZloss", returnZloss},
                         loss,
                         log_prob,
                         zloss,
                         lse};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : {logits, labels, loss, log_prob, zloss, lse}) {
      checks.not_null(argument);
    }
    checks.results_not_null(workspaceSize, executor)
        .available_since(kA2)
        .dtype_row_in(arguments, kForwardRows);
    for (const Argument& argument : arguments) checks.format_like_nd(argument);

    const Sizes sizes = require_matrix(checks, logits);
    const auto [rows, classes] = sizes;
    const int64_t results = parse_reduction(reductionOptional) == Reduction::kNone ? rows : 1;
    require_shape(checks, labels, {rows}, "a label for every row of input");
    require_shape(checks, weight, {classes}, "a weight for every class");
    require_attributes(checks, reductionOptional, labelSmoothing);
    require_shape(checks, loss, {results}, "as the reduction needs");
    require_shape(checks, log_prob, {rows, classes}, "as input has");
    require_plain(checks, labelSmoothing, lseSquareScaleForZloss, returnZloss, "returnZloss");
    // CANN wants these two in any case; what is not asked for is not written, and may be empty.
    const bool return_lse = lseSquareScaleForZloss != 0;
    const auto left_out = [&](bool wanted, const aclTensor* tensor) {
      return checks.ok() && !wanted && element_count(tensor->view.shape) == 0;
    };
    if (!left_out(returnZloss, zlossOut)) {
      require_shape(checks, zloss, {results}, "as the reduction needs");
    }
    if (!left_out(return_lse, lseForZlossOut)) {
      require_shape(checks, lse, {rows}, "a number for every row");
    }
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      Workspace none;  // without rows a loss for each is nothing to compute
      return ForwardPlan(
          {input, target, weightOptional, lossOut, logProbOut, zlossOut, lseForZlossOut},
          Attributes(reductionOptional, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
                     input->view.dtype),
          returnZloss, return_lse, sizes, results == 0 ? none : workspace);
    });
  });
}

ACLNN_STAGE2(CrossEntropyLoss)

aclnnStatus aclnnCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* gradLoss, const aclTensor* logProb, const aclTensor* target,
    const aclTensor* weightOptional, const aclTensor* gradZlossOptional,
    const aclTensor* lseForZlossOptional, char* reductionOptional, int64_t ignoreIndex,
    double labelSmoothing, double lseSquareScaleForZloss, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnCrossEntropyLossGrad";
  const Argument gradient{"gradLoss", gradLoss}, log_prob{"logProb", logProb};
  const Argument labels{"target", target}, weight{"weight", weightOptional};
  const Argument zloss_gradient{"gradZloss", gradZlossOptional};
  const Argument lse{"lseForZloss", lseForZlossOptional}, result{"out", out};
  const auto arguments = {gradient, log_prob, labels, weight, zloss_gradient, lse, result};
  const std::tuple given{gradient,
                         log_prob,
                         labels,
                         weight,
                         zloss_gradient,
                         lse,
                         Named{"reduction", reductionOptional},
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"lseSquareScaleForZloss", lseSquareScaleForZloss},
                         result};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    for (const Argument& argument : {gradient, log_prob, labels, result}) {
      checks.not_null(argument);
    }
    checks.results_not_null(workspaceSize, executor)
        .available_since(kA2)
        .dtype_row_in(arguments, kBackwardRows);
    for (const Argument& argument : arguments) checks.format_like_nd(argument);

    const Sizes sizes = require_matrix(checks, log_prob);
    const auto [rows, classes] = sizes;
    const bool reduced = parse_reduction(reductionOptional) != Reduction::kNone;
    // The gradient of a loss: one of a reduced loss may have no dimension.
    const auto require_gradient = [&](Argument argument) {
      if (checks.ok() && argument.tensor != nullptr && reduced &&
          argument.tensor->view.shape.size() == 0) {
        return;
      }
      require_shape(checks, argument, {reduced ? 1 : rows},
                    reduced ? "one number, which may also have shape []"
                            : "a number for every row of logProb");
    };
    require_gradient(gradient);
    require_shape(checks, labels, {rows}, "a label for every row of logProb");
    require_shape(checks, weight, {classes}, "a weight for every class");
    require_attributes(checks, reductionOptional, labelSmoothing);
    require_shape(checks, result, {rows, classes}, "as logProb has");
    require_plain(checks, labelSmoothing, lseSquareScaleForZloss, gradZlossOptional != nullptr,
                  "gradZloss");
    // torch_npu passes on what the forward returned, which is {0} without a scale.
    const bool lse_left_out =
        lseForZlossOptional == nullptr ||
        (lseSquareScaleForZloss == 0 && element_count(lseForZlossOptional->view.shape) == 0);
    require_plain(checks, 0, 0, !lse_left_out, "lseForZloss");
    require_gradient(zloss_gradient);
    if (!lse_left_out) {
      require_shape(checks, lse, {rows}, "a number for every row of logProb");
    }
    checks.require_tiling(
        gradZlossOptional == nullptr || !lse_left_out || lseSquareScaleForZloss == 0,
        "gradZloss is given without lseForZloss; pass what the forward returned");
    for (const Argument& argument : arguments) checks.addressable(argument);
    if (!checks.ok()) return checks.status();

    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      Workspace none;  // without rows there is nothing to compute
      return BackwardPlan(
          {gradLoss, logProb, target, weightOptional, gradZlossOptional, lseForZlossOptional, out},
          Attributes(reductionOptional, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
                     logProb->view.dtype),
          sizes, rows == 0 ? none : workspace);
    });
  });
}

ACLNN_STAGE2(CrossEntropyLossGrad)
