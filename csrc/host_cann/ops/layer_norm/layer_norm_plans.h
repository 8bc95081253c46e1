// Stage 2 of aclnnLayerNorm and aclnnLayerNormBackward.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "host_cann/arguments/packed_elements.h"
#include "host_cann/arguments/plan.h"
#include "host_cann/ops/row_division.h"

namespace aclnn_host::layer_norm {

// A tensor argument that may be absent, in the kernels' dtype.
class Part {
 public:
  Part() = default;
  Part(const aclTensor* tensor, aclDataType dtype, Workspace& workspace) {
    if (tensor != nullptr) packed_ = Packed(tensor->view, dtype, workspace);
  }
  explicit operator bool() const { return packed_.has_value(); }
  const Packed* operator->() const { return &*packed_; }

 private:
  std::optional<Packed> packed_;
};

// gamma or beta; an absent one is filled with its neutral value.
class Weight {
 public:
  Weight() = default;
  Weight(const aclTensor* tensor, int64_t columns, aclDataType real, Workspace& workspace)
      : part_(tensor, real, workspace), columns_(columns) {
    if (!part_) {
      offset_ = workspace.reserve(static_cast<uint64_t>(columns) * aclDataTypeSize(real));
    }
  }

  template <class Real>
  const Real* read(const TensorView& view, Real absent, void* workspace) const {
    if (part_) return static_cast<const Real*>(part_->read(view, workspace));
    auto* numbers = reinterpret_cast<Real*>(static_cast<char*>(workspace) + offset_);
    std::fill_n(numbers, columns_, absent);
    return numbers;
  }

 private:
  Part part_;
  int64_t columns_ = 0;
  uint64_t offset_ = 0;
};

template <class T>
T* part_of(void* workspace, uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
}

// Runs body(real) with a float or a double.
template <class Body>
aclnnStatus run_in_real(aclDataType dtype, Body body) {
  if (dtype == ACL_DOUBLE) {
    body(double());
  } else {
    body(float());
  }
  return OK;
}

// aclnnLayerNorm
struct LayerNormPlan {
  static constexpr size_t kMaxTensors = 6;
  enum { kInput, kWeight, kBias, kOut, kMean, kRstd };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  double epsilon;
  Packed input, out;
  Weight weight, bias;
  // Memory for a mean and rstd that the caller does not request.
  Part outputs[2];
  uint64_t kept[2] = {0, 0};
  uint64_t sums = 0;

  LayerNormPlan(const std::array<const aclTensor*, kMaxTensors>& arguments, int64_t rows,
                int64_t columns, double epsilon, Workspace& workspace);

  bool is_input(size_t i) const { return i < kOut; }
  bool is_output(size_t i) const { return i >= kOut; }

  aclnnStatus compute(void* workspace);

 private:
  template <class Real>
  void run(void* workspace) const;
  template <class Real>
  void normalize(Real* mean, Real* rstd, void* workspace) const;
};

// aclnnLayerNormBackward
struct LayerNormBackwardPlan {
  static constexpr size_t kMaxTensors = 9;
  enum { kGradOut, kInput, kMean, kRstd, kWeight, kBias, kGradInput, kGradWeight, kGradBias };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Division division;
  Packed inputs[4];  // gradOut, ..., rstd
  Weight weight;
  Part grad_input;
  Part weight_gradients[2];
  uint64_t sums = 0;            // of a, and of a * xhat
  uint64_t partial = 0;         // dgamma and dbeta of up to kRowsPerSum rows, per block
  uint64_t totals[2] = {0, 0};  // dgamma, and dbeta, per block

  // `mask` selects the outputs.
  LayerNormBackwardPlan(const std::array<const aclTensor*, kMaxTensors>& arguments,
                        const bool* mask, int64_t rows, int64_t columns, Workspace& workspace);

  bool is_input(size_t i) const { return i < kGradInput; }
  bool is_output(size_t i) const { return i >= kGradInput; }

  aclnnStatus compute(void* workspace);

 private:
  template <class Real>
  struct Sums;
  template <class Real>
  struct Run;

  template <class Real>
  void run(void* workspace) const;
  // The memory for the sums of a block.
  template <class Real>
  Sums<Real> sums_of(int64_t block, void* workspace) const;

  bool is_empty_ = false;
};

}  // namespace aclnn_host::layer_norm
