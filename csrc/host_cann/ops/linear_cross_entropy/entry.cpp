// Stage 1 of CANN's three functions for the cross entropy of a linear layer, whose vocabulary may
// be distributed over devices, and of the host's own function for a single device.
#include "acl/acl_base.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "host_cann/arguments/argument_checks.h"
#include "host_cann/kernels/capability.h"
#include "host_cann/ops/linear_cross_entropy/linear_cross_entropy_checks.h"
#include "host_cann/ops/linear_cross_entropy/plans.h"

namespace aclnn_host {
namespace {

// True if BFLOAT16 is multiplied without widening: with a BF16 unit of the CPU, or in plain code.
bool multiplies_bfloat16() {
  return has_bfloat16_products() || current_capability() == Capability::kReference;
}

// The end of stage 1: `plan` makes a plan for DOUBLE or FLOAT.
template <class Plan>
aclnnStatus make_executor_of(const char* api, aclDataType dtype, uint64_t* workspace_size,
                             aclOpExecutor** executor, Plan plan) {
  const auto make = [&]<class Real, class Element>() {
    return make_executor(api, workspace_size, executor, [&](Workspace& workspace) {
      auto made = plan.template operator()<Real, Element>(workspace);
      if (made.writes_nothing()) workspace = Workspace();
      return made;
    });
  };
  if (dtype == ACL_DOUBLE) return make.template operator()<double, double>();
  if (dtype == ACL_BF16 && multiplies_bfloat16())
    return make.template operator()<float, BFloat16>();
  return make.template operator()<float, float>();
}

// On CANN's products, logits and their gradients are 16-bit matrices.
bool rounds(const Checks& checks) {
  return checks.product() != Product::kHost;
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;
using namespace aclnn_host::linear_cross_entropy;

aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* target,
    int64_t vocabStartIndex, int64_t vocabEndIndex, aclTensor* logitsMaxLocalOut,
    aclTensor* sumExpLogitsLocalOut, aclTensor* predictedLogitsLocalOut, aclTensor* targetMaskOut,
    aclTensor* maskedTargetOut, aclTensor* vocabParallelLogitsOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedLinearOnlineMaxSum";
  const OnlineMaxSumTensors tensors{{"input", input},
                                    {"weight", weight},
                                    {"target", target},
                                    {"logitsMaxLocalOut", logitsMaxLocalOut},
                                    {"sumExpLogitsLocalOut", sumExpLogitsLocalOut},
                                    {"predictedLogitsLocalOut", predictedLogitsLocalOut},
                                    {"targetMaskOut", targetMaskOut},
                                    {"maskedTargetOut", maskedTargetOut},
                                    {"vocabParallelLogitsOut", vocabParallelLogitsOutOptional}};
  const Given given[] = {tensors.input,
                         tensors.weight,
                         tensors.target,
                         Named{"vocabStartIndex", vocabStartIndex},
                         Named{"vocabEndIndex", vocabEndIndex},
                         tensors.max,
                         tensors.sum,
                         tensors.predicted,
                         tensors.mask,
                         tensors.masked,
                         tensors.logits};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const Shard shard{vocabStartIndex, vocabEndIndex};
    const Sizes sizes = check_online_max_sum(checks, tensors, shard);
    if (!checks.ok()) return checks.status();

    return make_executor_of(kApi, input->view.dtype, workspaceSize, executor,
                            [&]<class Real, class Element>(Workspace& workspace) {
                              return OnlineMaxSumPlan<Real, Element>(
                                  {input, weight, target, logitsMaxLocalOut, sumExpLogitsLocalOut,
                                   predictedLogitsLocalOut, targetMaskOut, maskedTargetOut,
                                   vocabParallelLogitsOutOptional},
                                  sizes, shard, rounds(checks), workspace);
                            });
  });
}

ACLNN_STAGE2(FusedLinearOnlineMaxSum)

aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor* logitsMax, const aclTensor* sumExpLogits, const aclTensor* predictedLogits,
    float labelSmoothing, const aclTensor* inputOptional, const aclTensor* weightOptional,
    const aclTensor* vocabParallelLogitsOptional, aclTensor* lossOut, aclTensor* softMaxOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedCrossEntropyLossWithMaxSum";
  const LossTensors tensors{{"logitsMax", logitsMax},
                            {"sumExpLogits", sumExpLogits},
                            {"predictedLogits", predictedLogits},
                            {"input", inputOptional},
                            {"weight", weightOptional},
                            {"vocabParallelLogits", vocabParallelLogitsOptional},
                            {"lossOut", lossOut},
                            {"softMaxOut", softMaxOutOptional}};
  const Given given[] = {
      tensors.max,    tensors.sum,    tensors.predicted, Named{"labelSmoothing", labelSmoothing},
      tensors.input,  tensors.weight, tensors.logits,    tensors.loss,
      tensors.softmax};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    check_loss(checks, tensors, labelSmoothing);
    if (!checks.ok()) return checks.status();

    const bool has_logits = vocabParallelLogitsOptional != nullptr;
    return make_executor_of(
        kApi, logitsMax->view.dtype, workspaceSize, executor,
        [&]<class Real, class>(Workspace& workspace) {
          return LossPlan<Real>(
              {logitsMax, sumExpLogits, predictedLogits, nullptr, nullptr,
               vocabParallelLogitsOptional, lossOut, has_logits ? softMaxOutOptional : nullptr},
              workspace);
        });
  });
}

ACLNN_STAGE2(FusedCrossEntropyLossWithMaxSum)

aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* input, const aclTensor* weight,
    const aclTensor* targetMask, const aclTensor* maskedTarget, float labelSmoothing,
    const aclTensor* logitsMaxOptional, const aclTensor* sumExpLogitsOptional,
    const aclTensor* softmaxOptional, aclTensor* inputGradOut, aclTensor* weightGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnFusedLinearCrossEntropyLossGrad";
  const bool has_softmax = softmaxOptional != nullptr;
  const aclTensor* const max = has_softmax ? nullptr : logitsMaxOptional;
  const aclTensor* const sum = has_softmax ? nullptr : sumExpLogitsOptional;
  const GradientTensors tensors{{"grad", grad},
                                {"input", input},
                                {"weight", weight},
                                {"targetMask", targetMask},
                                {"maskedTarget", maskedTarget},
                                {"logitsMax", max},
                                {"sumExpLogits", sum},
                                {"softmax", softmaxOptional},
                                {"inputGradOut", inputGradOut},
                                {"weightGradOut", weightGradOut}};
  const Given given[] = {tensors.grad,
                         tensors.input,
                         tensors.weight,
                         tensors.mask,
                         tensors.masked,
                         Named{"labelSmoothing", labelSmoothing},
                         Named{tensors.max.name, logitsMaxOptional},
                         Named{tensors.sum.name, sumExpLogitsOptional},
                         tensors.softmax,
                         tensors.input_grad,
                         tensors.weight_grad};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const Sizes sizes = check_gradient(checks, tensors, labelSmoothing);
    if (!checks.ok()) return checks.status();

    return make_executor_of(kApi, input->view.dtype, workspaceSize, executor,
                            [&]<class Real, class Element>(Workspace& workspace) {
                              return GradientPlan<Real, Element>(
                                  {grad, input, weight, targetMask, maskedTarget, max, sum,
                                   softmaxOptional, inputGradOut, weightGradOut},
                                  sizes, rounds(checks), workspace);
                            });
  });
}

ACLNN_STAGE2(FusedLinearCrossEntropyLossGrad)

aclnnStatus aclnnHostLinearCrossEntropyGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* biasOptional,
    const aclTensor* target, const aclTensor* classWeightsOptional,
    const aclTensor* factorsOptional, const aclTensor* lseOptional, int64_t ignoreIndex,
    double labelSmoothing, int64_t firstClass, int64_t vocabularySize, aclTensor* lossOut,
    aclTensor* lseOut, aclTensor* inputGradOutOptional, aclTensor* weightGradOutOptional,
    aclTensor* biasGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnHostLinearCrossEntropy";
  const HostTensors tensors{{"input", input},
                            {"weight", weight},
                            {"bias", biasOptional},
                            {"target", target},
                            {"classWeights", classWeightsOptional},
                            {"factors", factorsOptional},
                            {"lse", lseOptional},
                            {"lossOut", lossOut},
                            {"lseOut", lseOut},
                            {"inputGradOut", inputGradOutOptional},
                            {"weightGradOut", weightGradOutOptional},
                            {"biasGradOut", biasGradOutOptional}};
  const Given given[] = {tensors.input,
                         tensors.weight,
                         tensors.bias,
                         tensors.target,
                         tensors.class_weights,
                         tensors.factors,
                         tensors.given_lse,
                         Named{"ignoreIndex", ignoreIndex},
                         Named{"labelSmoothing", labelSmoothing},
                         Named{"firstClass", firstClass},
                         Named{"vocabularySize", vocabularySize},
                         tensors.loss,
                         tensors.lse,
                         tensors.input_grad,
                         tensors.weight_grad,
                         tensors.bias_grad};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    HostOptions options{ignoreIndex, labelSmoothing, firstClass, vocabularySize};
    const Sizes sizes = check_host(checks, tensors, options);
    if (!checks.ok()) return checks.status();

    options.vocabulary = vocabulary_of(options, sizes);
    const bool has_lse = lseOptional != nullptr;
    return make_executor_of(
        kApi, input->view.dtype, workspaceSize, executor,
        [&]<class Real, class Element>(Workspace& workspace) {
          return HostPlan<Real, Element>(
              {input, weight, biasOptional, target, classWeightsOptional, factorsOptional,
               lseOptional, has_lse ? nullptr : lossOut, has_lse ? nullptr : lseOut,
               inputGradOutOptional, weightGradOutOptional, biasGradOutOptional},
              sizes, options, workspace);
        });
  });
}

ACLNN_STAGE2(HostLinearCrossEntropy)
