// Stage 1 of aclnnLayerNorm and aclnnLayerNormBackward; docs/emulation/operators.md lists the
// deviations from CANN.
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_layer_norm_backward.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/ops/layer_norm/layer_norm_checks.h"
#include "host_cann/ops/layer_norm/layer_norm_plans.h"

using namespace aclnn_host;
using namespace aclnn_host::layer_norm;

aclnnStatus aclnnLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape, const aclTensor* weightOptional,
    const aclTensor* biasOptional, double eps, aclTensor* out, aclTensor* meanOutOptional,
    aclTensor* rstdOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnLayerNorm";
  const ForwardTensors tensors{
      {"input", input}, {"weight", weightOptional},   {"bias", biasOptional},
      {"out", out},     {"meanOut", meanOutOptional}, {"rstdOut", rstdOutOptional}};
  const Given given[] = {tensors.input,     Named{"normalizedShape", normalizedShape},
                         tensors.weight,    tensors.bias,
                         Named{"eps", eps}, tensors.out,
                         tensors.mean,      tensors.rstd};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const Counts counts = check_layer_norm(checks, tensors, normalizedShape);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return LayerNormPlan(
          {input, weightOptional, biasOptional, out, meanOutOptional, rstdOutOptional}, counts.rows,
          counts.columns, eps, workspace);
    });
  });
}

ACLNN_STAGE2(LayerNorm)

aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(
    const aclTensor* gradOut, const aclTensor* input, const aclIntArray* normalizedShape,
    const aclTensor* mean, const aclTensor* rstd, const aclTensor* weightOptional,
    const aclTensor* biasOptional, const aclBoolArray* outputMask, aclTensor* gradInputOut,
    aclTensor* gradWeightOut, aclTensor* gradBiasOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  constexpr const char* kApi = "aclnnLayerNormBackward";
  const BackwardTensors tensors{{"gradOut", gradOut},
                                {"input", input},
                                {"mean", mean},
                                {"rstd", rstd},
                                {"weight", weightOptional},
                                {"bias", biasOptional},
                                {{"gradInputOut", gradInputOut},
                                 {"gradWeightOut", gradWeightOut},
                                 {"gradBiasOut", gradBiasOut}}};
  const Given given[] = {tensors.grad_out,
                         tensors.input,
                         Named{"normalizedShape", normalizedShape},
                         tensors.mean,
                         tensors.rstd,
                         tensors.weight,
                         tensors.bias,
                         Named{"outputMask", outputMask},
                         tensors.gradients[0],
                         tensors.gradients[1],
                         tensors.gradients[2]};
  return stage1(kApi, given, [&]() -> aclnnStatus {
    Checks checks(kApi);
    checks.results_not_null(workspaceSize, executor);
    const Counts counts = check_layer_norm_backward(checks, tensors, normalizedShape, outputMask);
    if (!checks.ok()) return checks.status();
    return make_executor(kApi, workspaceSize, executor, [&](Workspace& workspace) {
      return LayerNormBackwardPlan({gradOut, input, mean, rstd, weightOptional, biasOptional,
                                    gradInputOut, gradWeightOut, gradBiasOut},
                                   outputMask->values.get(), counts.rows, counts.columns,
                                   workspace);
    });
  });
}

ACLNN_STAGE2(LayerNormBackward)
