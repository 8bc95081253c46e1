// Gradient scaling: the check of scaled gradients, and the update of the scale.

#include "cann/rows/optimizers/lists.h"
#include "cann/rows/row.h"

namespace aclnn_host::optimizers_gradient_scaling_rows {

// Divides gradients by the scale and tests for inf and NaN; computes the scale of the next step.
// Behaviour of ForeachNonFiniteCheckAndUnscale, AmpUpdateScale, FusedSgd, FusedAdam*: The results
// are those of torch's gradient scaler and optimisers.
ACLNN(ForeachNonFiniteCheckAndUnscale, (InOuts, scaledGrads), (InOut, foundInf), (In, inScale)) {
  only_element("foundInf", foundInf);
  only_element("inScale", inScale);
  for (Output& gradient : scaledGrads) {
    const at::Tensor is_bad = at::isfinite(gradient).all().logical_not();
    foundInf = at::maximum(foundInf, is_bad.to(foundInf->scalar_type()));
    gradient = at::mul(gradient, inScale);
  }
}
ACLNN(AmpUpdateScale, (In, currentScale), (In, growthTracker), (In, foundInf),
      (double, growthFactor), (double, backoffFactor), (int64_t, growthInterval),
      (Out, updatedScaleOut), (Out, updatedGrowthTrackerOut)) {
  only_element("currentScale", currentScale);
  only_element("growthTracker", growthTracker);
  only_element("foundInf", foundInf);
  const auto [scale, tracker] =
      at::_amp_update_scale(currentScale.to(at::kFloat), growthTracker.to(at::kInt),
                            foundInf.to(at::kFloat), growthFactor, backoffFactor, growthInterval);
  updatedScaleOut = scale;
  updatedGrowthTrackerOut = tracker;
}

}  // namespace aclnn_host::optimizers_gradient_scaling_rows
