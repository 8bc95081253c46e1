// Stage 2 of aclnnCrossEntropyLossGrad.
#pragma once

#include <optional>

#include "host_cann/ops/cross_entropy_loss/shared.h"

namespace aclnn_host::cross_entropy {

struct BackwardPlan {
  enum { kGradLoss, kLogProb, kTarget, kWeight, kGradZloss, kLse, kOut, kMaxTensors };

  TensorView tensors[kMaxTensors];
  size_t tensor_count = kMaxTensors;
  Attributes attributes;
  Sizes sizes;
  PackedTargets targets;
  Packed grad_loss;
  Packed log_prob;
  std::optional<Packed> grad_zloss;  // with lse; absent if the z-loss is off
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

 private:
  struct Run;
};

}  // namespace aclnn_host::cross_entropy
