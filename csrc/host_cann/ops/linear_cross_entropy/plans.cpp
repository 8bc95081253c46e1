#include "host_cann/ops/linear_cross_entropy/plans.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <ATen/Parallel.h>

#include "host_cann/kernels/tuning.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host::linear_cross_entropy {
namespace {

template <class T>
T* at(void* workspace, uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
}

// An integer tensor of either dtype.
struct Integers {
  const void* elements;
  bool narrow;  // INT32, else INT64

  int64_t operator[](int64_t i) const {
    return narrow ? static_cast<const int32_t*>(elements)[i]
                  : static_cast<const int64_t*>(elements)[i];
  }
  static void store(void* elements, bool narrow, int64_t i, int64_t value) {
    if (narrow) {
      static_cast<int32_t*>(elements)[i] = static_cast<int32_t>(value);
    } else {
      static_cast<int64_t*>(elements)[i] = value;
    }
  }
};

// Zeroes the gradients if there are no rows or no classes.
void clear(const TensorView& view, void* elements, aclDataType dtype) {
  if (elements == nullptr) return;
  const int64_t count = element_count(view.shape).value_or(0);
  std::memset(elements, 0, static_cast<size_t>(count) * aclDataTypeSize(dtype));
}

}  // namespace

// ---- aclnnFusedLinearOnlineMaxSum --------------------------------------------------------------

template <class Real, class Element>
OnlineMaxSumPlan<Real, Element>::OnlineMaxSumPlan(std::initializer_list<const aclTensor*> arguments,
                                                  const Sizes& sizes, const Shard& shard,
                                                  bool rounds, Workspace& workspace)
    : PlanTensors(arguments),
      sizes_(sizes),
      shard_(shard),
      tiles_(sizes, tensors[kWeight].dtype, Use::kSums, rounds, workspace),
      rows_(reserve_array<Row>(workspace, sizes.rows)) {
  pack(kInput, kTypeOf<Element>, workspace);
  for (const size_t i : {kMax, kSum, kPredicted}) pack(i, kTypeOf<Real>, workspace);
  for (const size_t i : {kWeight, kTarget, kMask, kMaskedTarget, kLogits}) pack(i, workspace);
}

template <class Real, class Element>
aclnnStatus OnlineMaxSumPlan<Real, Element>::compute(void* workspace) {
  if (writes_nothing()) return OK;
  const bool narrow = tensors[kTarget].dtype == ACL_INT32;
  const Integers targets{read<void>(kTarget, workspace), narrow};
  Row* const rows = at<Row>(workspace, rows_);
  auto* const mask = begin<uint8_t>(kMask, workspace);
  auto* const masked_targets = begin<void>(kMaskedTarget, workspace);
  // The mask's bits after the last row have the value for target 0.
  std::fill_n(mask, divide_up(sizes_.rows, 8), shard_.has(0) ? 0 : 0xff);
  for (int64_t i = 0; i < sizes_.rows; ++i) {
    const int64_t target = targets[i];
    const bool is_here = shard_.has(target);
    const int64_t place = is_here ? target - shard_.begin : 0;
    rows[i] = {.label = is_here && place < sizes_.classes ? place : kElsewhere};
    Integers::store(masked_targets, narrow, i, place);
    const auto bit = static_cast<uint8_t>(1 << i % 8);
    mask[i / 8] = static_cast<uint8_t>(is_here ? mask[i / 8] & ~bit : mask[i / 8] | bit);
  }
  Tiles<Real, Element> tiles = tiles_;
  tiles.place({read<Element>(kInput, workspace), read<void>(kWeight, workspace), nullptr},
              workspace);
  tiles.find_sums(rows, {begin<void>(kLogits, workspace), tensors[kLogits].dtype});
  auto* const max = begin<Real>(kMax, workspace);
  auto* const sum = begin<Real>(kSum, workspace);
  auto* const predicted = begin<Real>(kPredicted, workspace);
  for (int64_t i = 0; i < sizes_.rows; ++i) {
    max[i] = static_cast<Real>(rows[i].max);
    sum[i] = static_cast<Real>(rows[i].sum);
    const bool is_masked = (mask[i / 8] >> i % 8 & 1) != 0;
    predicted[i] = is_masked ? Real(0) : static_cast<Real>(rows[i].label_logit - rows[i].max);
  }
  finish(workspace);
  return OK;
}

// ---- aclnnFusedCrossEntropyLossWithMaxSum ------------------------------------------------------

template <class Real>
LossPlan<Real>::LossPlan(std::initializer_list<const aclTensor*> arguments, Workspace& workspace)
    : PlanTensors(arguments) {
  for (const size_t i : {kMax, kSum, kPredicted, kLoss}) pack(i, kTypeOf<Real>, workspace);
  if (!given[kLogits]) given[kSoftmax] = false;  // no logits to compute it from
  for (const size_t i : {kLogits, kSoftmax}) pack(i, workspace);
}

template <class Real>
aclnnStatus LossPlan<Real>::compute(void* workspace) {
  const Real* const max = read<Real>(kMax, workspace);
  const Real* const sum = read<Real>(kSum, workspace);
  const Real* const predicted = read<Real>(kPredicted, workspace);
  Real* const loss = begin<Real>(kLoss, workspace);
  const int64_t rows = tensors[kLoss].shape[0];
  if (given[kSoftmax]) {
    const aclDataType dtype = tensors[kLogits].dtype;
    const auto size = static_cast<int64_t>(aclDataTypeSize(dtype));
    const int64_t classes = tensors[kLogits].shape[1];
    const char* const logits = read<char>(kLogits, workspace);
    Real* const softmax = begin<Real>(kSoftmax, workspace);
    const CrossEntropyLossKernels& kernels = cross_entropy_loss_kernels().find(dtype);
    at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(classes, 1)),
                     [&](int64_t first, int64_t end) {
                       for (int64_t i = first; i < end; ++i) {
                         const double factor = 1 / static_cast<double>(sum[i]);
                         kernels.probability(logits + i * classes * size, max[i],
                                             cross_entropy::canonical(factor),
                                             softmax + i * classes, classes);
                       }
                     });
  }
  // Last, because it may overlap the sums.
  for (int64_t i = 0; i < rows; ++i) {
    loss[i] = static_cast<Real>(std::log(static_cast<double>(sum[i])) -
                                static_cast<double>(predicted[i]));
  }
  finish(workspace);
  return OK;
}

// ---- aclnnFusedLinearCrossEntropyLossGrad ------------------------------------------------------

template <class Real, class Element>
GradientPlan<Real, Element>::GradientPlan(std::initializer_list<const aclTensor*> arguments,
                                          const Sizes& sizes, bool rounds, Workspace& workspace)
    : PlanTensors(arguments),
      sizes_(sizes),
      tiles_(sizes, tensors[kWeight].dtype, Use::kGradients, rounds, workspace),
      rows_(reserve_array<Row>(workspace, sizes.rows)),
      factors_(reserve_array<double>(workspace, sizes.rows)) {
  if (given[kSoftmax]) given[kMax] = given[kSum] = false;
  pack(kInput, kTypeOf<Element>, workspace);
  for (const size_t i : {kMax, kSum, kSoftmax, kInputGrad}) {
    pack(i, kTypeOf<Real>, workspace);
  }
  for (const size_t i : {kGrad, kWeight, kMask, kMaskedTarget, kWeightGrad}) pack(i, workspace);
}

template <class Real, class Element>
aclnnStatus GradientPlan<Real, Element>::compute(void* workspace) {
  if (writes_nothing()) return OK;
  auto* const input_grad = begin<Real>(kInputGrad, workspace);
  auto* const weight_grad = begin<void>(kWeightGrad, workspace);
  if (sizes_.rows == 0 || sizes_.classes == 0) {
    clear(tensors[kInputGrad], input_grad, kTypeOf<Real>);
    clear(tensors[kWeightGrad], weight_grad, tensors[kWeightGrad].dtype);
    finish(workspace);
    return OK;
  }
  const Integers targets{read<void>(kMaskedTarget, workspace),
                         tensors[kMaskedTarget].dtype == ACL_INT32};
  const auto* const mask = read<uint8_t>(kMask, workspace);
  const bool has_bits = tensors[kMask].dtype == ACL_UINT8;
  const Real* const grad = read<Real>(kGrad, workspace);
  const Real* const max = read<Real>(kMax, workspace);
  const Real* const sum = read<Real>(kSum, workspace);
  Row* const rows = at<Row>(workspace, rows_);
  auto* const factors = at<double>(workspace, factors_);
  for (int64_t i = 0; i < sizes_.rows; ++i) {
    const bool is_masked = has_bits ? (mask[i / 8] >> i % 8 & 1) != 0 : mask[i] != 0;
    const int64_t target = targets[i];
    const bool has_label = !is_masked && target >= 0 && target < sizes_.classes;
    rows[i] = {.label = has_label ? target : kElsewhere,
               .max = max != nullptr ? static_cast<double>(max[i]) : 0,
               .sum = sum != nullptr ? static_cast<double>(sum[i]) : 1};
    factors[i] = grad[i];
  }
  Tiles<Real, Element> tiles = tiles_;
  tiles.place({read<Element>(kInput, workspace), read<void>(kWeight, workspace), nullptr},
              workspace);
  tiles.find_gradients(rows, factors,
                       {const_cast<Real*>(read<Real>(kSoftmax, workspace)), kTypeOf<Real>},
                       {.rows = input_grad, .weight = weight_grad, .bias = nullptr});
  finish(workspace);
  return OK;
}

// ---- aclnnHostLinearCrossEntropy ---------------------------------------------------------------

template <class Real, class Element>
HostPlan<Real, Element>::HostPlan(std::initializer_list<const aclTensor*> arguments,
                                  const Sizes& sizes, const HostOptions& options,
                                  Workspace& workspace)
    : PlanTensors(arguments),
      sizes_(sizes),
      options_(options),
      use_(find_use()),
      tiles_(sizes, tensors[kWeight].dtype, use_, false, workspace),
      rows_(reserve_array<Row>(workspace, sizes.rows)),
      factors_(reserve_array<double>(workspace, sizes.rows)) {
  pack(kInput, kTypeOf<Element>, workspace);
  for (const size_t i :
       {kBias, kClassWeights, kFactors, kLseIn, kLoss, kLse, kInputGrad, kBiasGrad}) {
    pack(i, kTypeOf<Real>, workspace);
  }
  for (const size_t i : {kWeight, kTarget, kWeightGrad}) pack(i, workspace);
}

template <class Real, class Element>
Use HostPlan<Real, Element>::find_use() const {
  if (!given[kInputGrad] && !given[kWeightGrad] && !given[kBiasGrad]) return Use::kSums;
  if (given[kLseIn]) return Use::kGradients;
  // FLOAT sums for all classes would take twice the memory of a 16-bit gradient.
  return tensors[kWeight].dtype == kTypeOf<Real> ? Use::kAtOnce : Use::kOneByOne;
}

// Fails for an invalid label.
template <class Real, class Element>
aclnnStatus HostPlan<Real, Element>::find_labels(const Real* class_weights, Row* rows,
                                                 void* workspace) const {
  const Integers targets{read<void>(kTarget, workspace), tensors[kTarget].dtype == ACL_INT32};
  const auto [ignored, smoothing, first, vocabulary] = options_;
  for (int64_t i = 0; i < sizes_.rows; ++i) {
    const int64_t target = targets[i];
    if (target == ignored) {
      rows[i] = {.label = kIgnored};
      continue;
    }
    if (target < 0 || target >= vocabulary) {
      return fail(
          ACL_ERROR_RT_AICORE_EXCEPTION,
          "aclnnHostLinearCrossEntropy: target[%lld] is %lld, expected a class in [0, %lld) or "
          "ignoreIndex (%lld); correct the label, or pass it as ignoreIndex",
          static_cast<long long>(i), static_cast<long long>(target),
          static_cast<long long>(vocabulary), static_cast<long long>(ignored));
    }
    const bool is_here = target >= first && target - first < sizes_.classes;
    rows[i] = {.label = is_here ? target - first : kElsewhere};
    const bool has_weight = class_weights != nullptr && is_here;
    rows[i].weight =
        (1 - smoothing) * (has_weight ? static_cast<double>(class_weights[target - first]) : 1);
  }
  return OK;
}

template <class Real, class Element>
aclnnStatus HostPlan<Real, Element>::compute(void* workspace) {
  if (writes_nothing()) return OK;
  Row* const rows = at<Row>(workspace, rows_);
  const Real* const class_weights = read<Real>(kClassWeights, workspace);
  if (const auto status = find_labels(class_weights, rows, workspace)) return status;
  auto* const factors = at<double>(workspace, factors_);
  const Real* const given_factors = read<Real>(kFactors, workspace);
  for (int64_t i = 0; i < sizes_.rows; ++i) {
    factors[i] = given_factors != nullptr ? static_cast<double>(given_factors[i]) : 1;
  }
  const GradientsOut<Real> out{begin<Real>(kInputGrad, workspace),
                               begin<void>(kWeightGrad, workspace),
                               begin<Real>(kBiasGrad, workspace)};
  if (sizes_.rows == 0) {
    clear(tensors[kWeightGrad], out.weight, tensors[kWeightGrad].dtype);
    clear(tensors[kBiasGrad], out.bias, kTypeOf<Real>);
    finish(workspace);
    return OK;
  }
  const auto classes = static_cast<double>(sizes_.classes);
  Smoothing<Real> smoothing{options_.smoothing / classes, class_weights, classes};
  if (class_weights != nullptr) {
    smoothing.all_weights = std::accumulate(class_weights, class_weights + sizes_.classes, 0.0);
  }
  Tiles<Real, Element> tiles = tiles_;
  tiles.place({read<Element>(kInput, workspace), read<void>(kWeight, workspace),
               read<Real>(kBias, workspace), smoothing},
              workspace);
  if (given[kLseIn]) {
    const Real* const lse = read<Real>(kLseIn, workspace);
    for (int64_t i = 0; i < sizes_.rows; ++i) rows[i].max = lse[i];
  } else if (use_ != Use::kAtOnce) {
    tiles.find_sums(rows, {});
  } else if constexpr (std::is_same_v<Element, Real>) {
    tiles.find_sums_and_gradients(rows, factors, out);
  }
  if (use_ == Use::kGradients || use_ == Use::kOneByOne) {
    tiles.find_gradients(rows, factors, {}, out);
  }
  Real* const loss = begin<Real>(kLoss, workspace);
  Real* const lse = begin<Real>(kLse, workspace);
  for (int64_t i = 0; i < sizes_.rows && !given[kLseIn]; ++i) {
    const Row& row = rows[i];
    const double log_sum = std::log(row.sum), log_sum_exp = row.max + log_sum;
    const double label_logit = row.label == kElsewhere ? 0 : row.label_logit;
    double value = row.weight * (log_sum - (label_logit - row.max));
    if (options_.smoothing != 0) {
      value += smoothing.of_class * (smoothing.all_weights * log_sum_exp - row.weighted_logits);
    }
    loss[i] = row.label == kIgnored ? Real(0) : static_cast<Real>(value);
    lse[i] = static_cast<Real>(log_sum_exp);
  }
  finish(workspace);
  return OK;
}

template struct OnlineMaxSumPlan<float>;
template struct OnlineMaxSumPlan<float, BFloat16>;
template struct OnlineMaxSumPlan<double>;
template struct LossPlan<float>;
template struct LossPlan<double>;
template struct GradientPlan<float>;
template struct GradientPlan<float, BFloat16>;
template struct GradientPlan<double>;
template struct HostPlan<float>;
template struct HostPlan<float, BFloat16>;
template struct HostPlan<double>;

}  // namespace aclnn_host::linear_cross_entropy
