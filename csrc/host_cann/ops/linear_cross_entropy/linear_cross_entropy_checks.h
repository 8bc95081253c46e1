// The checks of the linear cross entropy functions.
#pragma once

#include "host_cann/arguments/argument_checks.h"
#include "host_cann/ops/linear_cross_entropy/plans.h"

namespace aclnn_host::linear_cross_entropy {

// The tensor arguments of each function, in the order of its prototype; optional ones may be
// absent.
struct OnlineMaxSumTensors {
  Argument input;
  Argument weight;
  Argument target;
  Argument max;
  Argument sum;
  Argument predicted;
  Argument mask;
  Argument masked;
  Argument logits;
};
struct LossTensors {
  Argument max;
  Argument sum;
  Argument predicted;
  Argument input;
  Argument weight;
  Argument logits;
  Argument loss;
  Argument softmax;
};
struct GradientTensors {
  Argument grad;
  Argument input;
  Argument weight;
  Argument mask;
  Argument masked;
  Argument max;  // absent beside softmax, as is sum: the function ignores them then
  Argument sum;
  Argument softmax;
  Argument input_grad;
  Argument weight_grad;
};
struct HostTensors {
  Argument input;
  Argument weight;
  Argument bias;
  Argument target;
  Argument class_weights;
  Argument factors;
  Argument given_lse;
  Argument loss;
  Argument lse;
  Argument input_grad;
  Argument weight_grad;
  Argument bias_grad;
};

// The checks after those of workspaceSize and executor, in CANN's order. Without a failure, they
// return the sizes of the problem.
Sizes check_online_max_sum(Checks& checks, const OnlineMaxSumTensors& tensors, const Shard& shard);
void check_loss(Checks& checks, const LossTensors& tensors, float smoothing);
Sizes check_gradient(Checks& checks, const GradientTensors& tensors, float smoothing);
// A vocabulary of 0 classes in `options` means that of weight.
Sizes check_host(Checks& checks, const HostTensors& tensors, const HostOptions& options);

// The number of classes of the vocabulary.
inline int64_t vocabulary_of(const HostOptions& options, const Sizes& sizes) {
  return options.vocabulary == 0 ? sizes.classes : options.vocabulary;
}

}  // namespace aclnn_host::linear_cross_entropy
