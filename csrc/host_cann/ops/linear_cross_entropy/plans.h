// Stage 2 of the linear cross entropy functions, in FLOAT or, for DOUBLE inputs, in DOUBLE. The
// factors of products have type Element.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/ops/linear_cross_entropy/tiles.h"

namespace aclnn_host::linear_cross_entropy {

// The tensors of a plan; the last kOutputs are outputs. Some may be absent.
template <size_t kCount, size_t kOutputs>
struct PlanTensors {
  static constexpr size_t kMaxTensors = kCount;

  TensorView tensors[kCount];
  bool given[kCount];
  size_t tensor_count = kCount;

  explicit PlanTensors(std::initializer_list<const aclTensor*> arguments) {
    size_t i = 0;
    for (const aclTensor* argument : arguments) {
      given[i] = argument != nullptr;
      tensors[i++] = view_of(argument);
    }
  }

  bool is_input(size_t i) const { return i < kCount - kOutputs; }
  bool is_output(size_t i) const { return i >= kCount - kOutputs; }
  // True if every output is empty: then there is nothing to compute, and no memory is available.
  bool writes_nothing() const {
    for (size_t i = kCount - kOutputs; i < kCount; ++i) {
      if (given[i] && element_count(tensors[i].shape) != 0) return false;
    }
    return true;
  }

 protected:
  // The packed tensors; empty for an absent one.
  Packed packed_[kCount];

  void pack(size_t i, aclDataType dtype, Workspace& workspace) {
    if (given[i]) packed_[i] = Packed(tensors[i], dtype, workspace);
  }
  void pack(size_t i, Workspace& workspace) { pack(i, tensors[i].dtype, workspace); }

  template <class T>
  const T* read(size_t i, void* workspace) const {
    return given[i] ? static_cast<const T*>(packed_[i].read(tensors[i], workspace)) : nullptr;
  }
  template <class T>
  T* begin(size_t i, void* workspace) const {
    return given[i] ? static_cast<T*>(packed_[i].begin(tensors[i], workspace)) : nullptr;
  }
  void finish(void* workspace) const {
    for (size_t i = kCount - kOutputs; i < kCount; ++i) {
      if (given[i]) packed_[i].finish(tensors[i], workspace);
    }
  }
};

// The classes of a vocabulary that a device holds: [begin, end).
struct Shard {
  int64_t begin;
  int64_t end;

  bool has(int64_t target) const { return target >= begin && target < end; }
};

// aclnnFusedLinearOnlineMaxSum
template <class Real, class Element = Real>
struct OnlineMaxSumPlan : PlanTensors<9, 6> {
  enum { kInput, kWeight, kTarget, kMax, kSum, kPredicted, kMask, kMaskedTarget, kLogits };

  OnlineMaxSumPlan(std::initializer_list<const aclTensor*> arguments, const Sizes& sizes,
                   const Shard& shard, bool rounds, Workspace& workspace);
  aclnnStatus compute(void* workspace);

 private:
  Sizes sizes_;
  Shard shard_;
  Tiles<Real, Element> tiles_;
  uint64_t rows_;
};

// aclnnFusedCrossEntropyLossWithMaxSum
template <class Real>
struct LossPlan : PlanTensors<8, 2> {
  enum { kMax, kSum, kPredicted, kInput, kWeight, kLogits, kLoss, kSoftmax };

  LossPlan(std::initializer_list<const aclTensor*> arguments, Workspace& workspace);
  aclnnStatus compute(void* workspace);
};

// aclnnFusedLinearCrossEntropyLossGrad
template <class Real, class Element = Real>
struct GradientPlan : PlanTensors<10, 2> {
  enum {
    kGrad,
    kInput,
    kWeight,
    kMask,
    kMaskedTarget,
    kMax,
    kSum,
    kSoftmax,
    kInputGrad,
    kWeightGrad
  };

  GradientPlan(std::initializer_list<const aclTensor*> arguments, const Sizes& sizes, bool rounds,
               Workspace& workspace);
  aclnnStatus compute(void* workspace);

 private:
  Sizes sizes_;
  Tiles<Real, Element> tiles_;
  uint64_t rows_;
  uint64_t factors_;
};

// The non-tensor arguments of aclnnHostLinearCrossEntropy.
struct HostOptions {
  int64_t ignore_index;
  double smoothing;
  int64_t first_class;  // in the vocabulary
  int64_t vocabulary;   // its number of classes
};

// aclnnHostLinearCrossEntropy
template <class Real, class Element = Real>
struct HostPlan : PlanTensors<12, 5> {
  enum {
    kInput,
    kWeight,
    kBias,
    kTarget,
    kClassWeights,
    kFactors,
    kLseIn,
    kLoss,
    kLse,
    kInputGrad,
    kWeightGrad,
    kBiasGrad
  };

  HostPlan(std::initializer_list<const aclTensor*> arguments, const Sizes& sizes,
           const HostOptions& options, Workspace& workspace);
  aclnnStatus compute(void* workspace);

 private:
  Use find_use() const;
  aclnnStatus find_labels(const Real* class_weights, Row* rows, void* workspace) const;

  Sizes sizes_;
  HostOptions options_;
  Use use_;
  Tiles<Real, Element> tiles_;
  uint64_t rows_;
  uint64_t factors_;
};

}  // namespace aclnn_host::linear_cross_entropy
