// Steps of Adam and its variants. A tensor that a step overwrites is both an input and an output.

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_optimizers {

namespace {

at::Tensor scalar(const char* name, const at::Tensor& x) {
  expect_one(name, x);
  return wide(x).reshape({});
}

}  // namespace

NAMED_OPERATOR(ApplyAdamD, (Floating<In>, var), (Floating<In>, m), (Floating<In>, v),
               (In, beta1_power), (In, beta2_power), (In, lr), (In, beta1), (In, beta2),
               (In, epsilon), (Floating<In>, grad), (Out, var_out), (Out, m_out), (Out, v_out),
               (Unused<Attribute<bool>>, use_locking, "changes no number"),
               (Attribute<bool>, use_nesterov)) {
  const at::Tensor b1 = scalar("beta1", beta1), b2 = scalar("beta2", beta2), g = wide(grad);
  const at::Tensor rate = scalar("lr", lr) * at::sqrt(1 - scalar("beta2_power", beta2_power)) /
                          (1 - scalar("beta1_power", beta1_power));
  const at::Tensor next_m = wide(m) + (g - wide(m)) * (1 - b1);
  const at::Tensor next_v = wide(v) + (g * g - wide(v)) * (1 - b2);
  const at::Tensor ahead = use_nesterov.value_or(false) ? next_m * b1 + g * (1 - b1) : next_m;
  const at::Tensor next =
      wide(var) - rate * ahead / (at::sqrt(next_v) + scalar("epsilon", epsilon));
  var_out = next, m_out = next_m, v_out = next_v;
}
// With amsgrad, max_grad_norm is the maximum of v so far.
NAMED_OPERATOR(ApplyAdamW, (Floating<In>, var), (Floating<In>, m), (Floating<In>, v),
               (In, beta1_power), (In, beta2_power), (In, lr), (In, weight_decay), (In, beta1),
               (In, beta2), (In, epsilon), (Floating<In>, grad), (Optional<In>, max_grad_norm),
               (Out, var_out), (Out, m_out), (Out, v_out), (Attribute<bool>, amsgrad),
               (Attribute<bool>, maximize)) {
  const bool is_amsgrad = amsgrad.value_or(false);
  EXPECT(!is_amsgrad || max_grad_norm,
         "max_grad_norm is absent, expected the largest v so far, as amsgrad is true");
  const at::Tensor b1 = scalar("beta1", beta1), b2 = scalar("beta2", beta2);
  const at::Tensor g = maximize.value_or(false) ? -wide(grad) : wide(grad);
  const at::Tensor rate = scalar("lr", lr);
  const at::Tensor next_m = wide(m) * b1 + g * (1 - b1);
  const at::Tensor next_v = wide(v) * b2 + g * g * (1 - b2);
  const at::Tensor largest = is_amsgrad ? at::maximum(wide(*max_grad_norm), next_v) : next_v;
  const at::Tensor of_m = 1 - scalar("beta1_power", beta1_power) * b1;
  const at::Tensor of_v = 1 - scalar("beta2_power", beta2_power) * b2;
  const at::Tensor decayed = wide(var) * (1 - rate * scalar("weight_decay", weight_decay));
  const at::Tensor next =
      decayed - rate * next_m / of_m / (at::sqrt(largest / of_v) + scalar("epsilon", epsilon));
  var_out = next, m_out = next_m, v_out = next_v;
}
// BERT's Adam: step_size includes the correction of the moments, and the update includes weight
// decay.
NAMED_OPERATOR(ApplyAdamV2, (Floating<In>, var), (Floating<In>, m), (Floating<In>, v), (In, lr),
               (In, beta1), (In, beta2), (In, epsilon), (Floating<In>, grad), (In, max_grad_norm),
               (Unused<In>, global_grad_norm,
                "counts only with max_grad_norm above 0, which is refused"),
               (In, weight_decay), (Optional<In>, step_size), (Out, var_out), (Out, m_out),
               (Out, v_out), (Attribute<std::string>, adam_mode)) {
  const std::string mode = adam_mode.value_or("adam");
  expect_text("adam_mode", mode, {"adam", "mbart_adam"});
  EXPECT(!max_grad_norm.is_cpu() || scalar("max_grad_norm", max_grad_norm).item<float>() <= 0,
         "max_grad_norm is ", max_grad_norm.is_cpu() ? max_grad_norm.reshape({}).item<double>() : 0,
         ", expected 0 or less, which alone the host CANN emulates; clip the gradient");
  const at::Tensor b1 = scalar("beta1", beta1), b2 = scalar("beta2", beta2), g = wide(grad);
  const at::Tensor next_m = wide(m) * b1 + g * (1 - b1);
  const at::Tensor next_v = wide(v) * b2 + g * g * (1 - b2);
  const at::Tensor moments = at::sqrt(next_v) + scalar("epsilon", epsilon);
  const at::Tensor decay = scalar("weight_decay", weight_decay) * wide(var);
  const at::Tensor rate = scalar("lr", lr);
  const at::Tensor step = step_size ? scalar("step_size", *step_size) : rate;
  const at::Tensor next = mode == "adam" ? wide(var) - rate * (next_m / moments + decay)
                                         : wide(var) - step * next_m / moments - rate * decay;
  var_out = next, m_out = next_m, v_out = next_v;
}

}  // namespace aclnn_host::named_optimizers
