// Activation functions and their gradients.

#include "cann/named_ops/operator.h"
#include "cann/rows/activation/shrinking.h"

namespace aclnn_host::named_activation {

#define NAMED_ACTIVATION(Name, call)                  \
  NAMED_OPERATOR(Name, (Floating<In>, x), (Out, y)) { \
    y = call(wide(x));                                \
  }
#define NAMED_GRADIENT(Name, call)                                                   \
  NAMED_OPERATOR(Name, (Floating<In>, grads), (Floating<In>, x), (Out, backprops)) { \
    backprops = call;                                                                \
  }

namespace {

// The constants of SELU.
constexpr double kAlpha = 1.6732632423543772848170429916717;
constexpr double kScale = 1.0507009873554804934193349852946;

at::Tensor fast_gelu(const at::Tensor& x) {
  return x * at::sigmoid(1.702 * x);
}
at::Tensor fast_gelu_gradient(const at::Tensor& grads, const at::Tensor& x) {
  const at::Tensor sigmoid = at::sigmoid(1.702 * x);
  return grads * (sigmoid + 1.702 * x * sigmoid * (1 - sigmoid));
}

}  // namespace

NAMED_OPERATOR(Relu, (In, x), (Out, y)) {
  y = at::relu(x);
}
NAMED_OPERATOR(ReluGrad, (In, gradients), (In, features), (Out, backprops)) {
  backprops = at::threshold_backward(gradients, features, 0);
}
NAMED_ACTIVATION(Sigmoid, at::sigmoid)
NAMED_ACTIVATION(Tanh, at::tanh)
NAMED_ACTIVATION(Selu, at::selu)
NAMED_ACTIVATION(Mish, at::mish)
NAMED_ACTIVATION(HardSwish, at::hardswish)
NAMED_ACTIVATION(LogSigmoid, at::log_sigmoid)
NAMED_ACTIVATION(FastGelu, fast_gelu)
NAMED_GRADIENT(LogSigmoidGrad, wide(grads) * at::sigmoid(-wide(x)))
NAMED_GRADIENT(HardSwishGrad, at::hardswish_backward(grads, x))
NAMED_GRADIENT(SiluGrad, at::silu_backward(grads, x))
// The second tensor is the result of the forward pass.
NAMED_GRADIENT(SeluGrad, at::elu_backward(grads, kAlpha, kScale, 1, /*is_result=*/true, x))
NAMED_OPERATOR(FastGeluGrad, (Floating<In>, dy), (Floating<In>, x), (Out, z)) {
  z = fast_gelu_gradient(wide(dy), wide(x));
}
NAMED_OPERATOR(MishGrad, (Floating<In>, grad), (Floating<In>, x),
               (Unused<Optional<In>>, tanhx, "is computed again from x"), (Out, x_grad)) {
  x_grad = at::mish_backward(grad, x);
}
NAMED_OPERATOR(SigmoidGrad, (Floating<In>, y), (Floating<In>, dy), (Out, z),
               (Only, complex_conj, "false")) {
  z = at::sigmoid_backward(wide(dy), wide(y));
}
NAMED_OPERATOR(TanhGrad, (Floating<In>, y), (Floating<In>, dy), (Out, z),
               (Only, complex_conj, "false")) {
  z = at::tanh_backward(wide(dy), wide(y));
}
NAMED_OPERATOR(HardSigmoidGrad, (Floating<In>, grads), (Floating<In>, x), (Out, backprops),
               (Attribute<double>, alpha), (Attribute<double>, beta)) {
  const double slope = alpha.value_or(1.0 / 6);
  const at::Tensor line = wide(x) * slope + beta.value_or(0.5);
  backprops = wide(grads) * slope * at::logical_and(line > 0, line < 1);
}
NAMED_OPERATOR(HardSigmoid, (Floating<In>, x), (Out, y), (Attribute<double>, alpha),
               (Attribute<double>, beta)) {
  const double slope = alpha.value_or(1.0 / 6);
  y = (wide(x) * slope + beta.value_or(0.5)).clamp(0, 1);
}
NAMED_OPERATOR(HardShrink, (Floating<In>, x), (Out, y), (Attribute<double>, lambd)) {
  y = hard_shrink(x, x, lambd.value_or(0.5));
}
NAMED_OPERATOR(HardShrinkGrad, (Floating<In>, gradients), (Floating<In>, features),
               (Out, backprops), (Attribute<double>, lambd)) {
  backprops = hard_shrink(gradients, features, lambd.value_or(0.5));
}
NAMED_OPERATOR(SoftShrink, (Floating<In>, x), (Out, y), (Attribute<double>, lambd)) {
  y = soft_shrink(x, lambd.value_or(0.5));
}
NAMED_OPERATOR(SoftShrinkGrad, (Floating<In>, input_grad), (Floating<In>, input_x), (Out, output_y),
               (Attribute<double>, lambd)) {
  output_y = hard_shrink(input_grad, input_x, lambd.value_or(0.5));
}
NAMED_OPERATOR(HardtanhGrad, (Floating<In>, result), (Floating<In>, grad), (Out, y),
               (Attribute<double>, min_val), (Attribute<double>, max_val)) {
  y = hardtanh_gradient(grad, result, min_val.value_or(-1), max_val.value_or(1));
}
NAMED_OPERATOR(LeakyRelu, (In, x), (Out, y), (Attribute<double>, negative_slope)) {
  y = at::leaky_relu(x, negative_slope.value_or(0));
}
NAMED_OPERATOR(LeakyReluGrad, (Floating<In>, gradients), (Floating<In>, features), (Out, backprops),
               (Attribute<double>, negative_slope)) {
  backprops = at::leaky_relu_backward(gradients, features, negative_slope.value_or(0), false);
}
NAMED_OPERATOR(Elu, (Floating<In>, x), (Out, y), (Attribute<double>, alpha),
               (Attribute<double>, scale), (Attribute<double>, input_scale)) {
  y = at::elu(x, alpha.value_or(1), scale.value_or(1), input_scale.value_or(1));
}
NAMED_OPERATOR(EluGradV2, (Floating<In>, grads), (Floating<In>, activations), (Out, y),
               (Attribute<double>, alpha), (Attribute<double>, scale),
               (Attribute<double>, input_scale), (Attribute<bool>, is_result)) {
  y = at::elu_backward(grads, alpha.value_or(1), scale.value_or(1), input_scale.value_or(1),
                       is_result.value_or(false), activations);
}
NAMED_OPERATOR(CeluV2, (Floating<In>, x), (Out, y), (Attribute<double>, alpha)) {
  y = at::celu(x, alpha.value_or(1));
}
NAMED_OPERATOR(SoftplusV2, (Floating<In>, x), (Out, y), (Attribute<double>, beta),
               (Attribute<double>, threshold)) {
  y = at::softplus(x, beta.value_or(1), threshold.value_or(20));
}
NAMED_OPERATOR(Swish, (Floating<In>, x), (Out, y), (Attribute<double>, scale)) {
  y = wide(x) * at::sigmoid(wide(x) * scale.value_or(1));
}
// The result of the forward pass is not read.
NAMED_OPERATOR(SwishGrad, (Floating<In>, grad), (Floating<In>, x),
               (Unused<Floating<In>>, y, "is computed again from x"), (Out, grad_x),
               (Attribute<double>, scale)) {
  const double factor = scale.value_or(1);
  grad_x = at::silu_backward(wide(grad), wide(x) * factor);
}
NAMED_OPERATOR(ThresholdV2D, (In, x), (Out, y), (Attribute<double>, threshold),
               (Attribute<double>, value)) {
  y = at::threshold(x, threshold.value_or(0), value.value_or(0));
}
NAMED_OPERATOR(ThresholdGradV2D, (In, gradients), (In, features), (Out, backprops),
               (Attribute<double>, threshold)) {
  backprops = at::threshold_backward(gradients, features, threshold.value_or(0));
}
NAMED_OPERATOR(GLU, (Floating<In>, x), (Out, y), (Attribute<int64_t>, dim)) {
  y = at::glu(wide(x), dim.value_or(-1));
}
NAMED_OPERATOR(GLUGrad, (Floating<In>, y_grad), (Floating<In>, x), (Out, x_grad),
               (Attribute<int64_t>, dim)) {
  x_grad = at::glu_backward(wide(y_grad), wide(x), dim.value_or(-1));
}

}  // namespace aclnn_host::named_activation
