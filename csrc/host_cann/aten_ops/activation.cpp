// Activation functions and their gradients.

#include <ATen/OpMathType.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_prelu_kernel.h>
#include <ATen/ops/_prelu_kernel_backward.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/glu_backward.h>
#include <ATen/ops/hardshrink.h>
#include <ATen/ops/hardshrink_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardsigmoid_backward.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_sigmoid_backward.h>
#include <ATen/ops/log_sigmoid_forward.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mish_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/softshrink_backward.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/threshold_backward.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// torch's name of GELU's formula by CANN's number.
c10::string_view gelu_formula(int64_t approximate) {
  TORCH_CHECK(approximate == 0 || approximate == 1, "approximate is ", approximate,
              ", expected 0 (none) or 1 (tanh)");
  return approximate == 0 ? "none" : "tanh";
}

// The weight of PReLU along the input's second dimension.
at::Tensor along_channels(const at::Tensor& weight, const at::Tensor& self) {
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) sizes[1] = weight.numel();
  return self.dim() == 0 ? weight.reshape({}) : weight.reshape(sizes);
}

}  // namespace

// A gradient made of the incoming one and what the forward saved.
#define ACLNN_BACKWARD(Name, saved, call)                                                    \
  ACLNN(Name, (FloatOrComplexIn, gradOutput), (FloatOrComplexIn, saved), (Out, gradInput)) { \
    gradInput = call(wide(gradOutput), wide(saved));                                         \
  }

ACLNN_UNARY(Relu, at::relu)
ACLNN_INPLACE_UNARY(Relu, at::relu)
ACLNN(Threshold, (In, self), (Number, threshold), (Number, value), (Out, out)) {
  out = at::threshold(self, threshold, value);
}
ACLNN(InplaceThreshold, (InOut, selfRef), (Number, threshold), (Number, value)) {
  selfRef = at::threshold(selfRef, threshold, value);
}
ACLNN(ThresholdBackward, (In, gradOutput), (In, self), (Number, threshold), (Out, out)) {
  out = at::threshold_backward(gradOutput, self, threshold);
}
ACLNN(LeakyRelu, (FloatIn, self), (Number, negativeSlope), (Out, out)) {
  out = at::leaky_relu(self, negativeSlope);
}
ACLNN(InplaceLeakyRelu, (FloatInOut, selfRef), (Number, negativeSlope)) {
  selfRef = at::leaky_relu(selfRef, negativeSlope);
}
ACLNN(LeakyReluBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, negativeSlope),
      (bool, selfIsResult), (Out, out)) {
  out = at::leaky_relu_backward(gradOutput, self, negativeSlope, selfIsResult);
}
ACLNN(Prelu, (FloatIn, self), (FloatIn, weight), (Out, out)) {
  out = at::_prelu_kernel(self, along_channels(weight, self));
}
ACLNN(PreluBackward, (FloatIn, gradOutput), (FloatIn, self), (FloatIn, weight), (Out, gradInput),
      (Out, gradWeight)) {
  const at::Tensor aligned = along_channels(wide(weight), self);
  const auto [input, slopes] = at::_prelu_kernel_backward(wide(gradOutput), wide(self), aligned);
  gradInput = input;
  gradWeight = slopes.sum_to_size(aligned.sizes()).reshape(weight.sizes());
}

// The quick formula x * sigmoid(1.702 x).
ACLNN(FastGelu, (FloatIn, self), (Out, out)) {
  const at::Tensor x = wide(self);
  out = at::mul(x, at::sigmoid(at::mul(x, 1.702)));
}
ACLNN(FastGeluBackward, (FloatIn, gradOutput), (FloatIn, self), (Out, gradInput)) {
  const at::Tensor scaled = at::mul(wide(self), 1.702);
  gradInput = at::mul(wide(gradOutput), at::silu_backward(at::ones_like(scaled), scaled));
}

ACLNN_BACKWARD(SigmoidBackward, output, at::sigmoid_backward)
ACLNN_BACKWARD(TanhBackward, output, at::tanh_backward)
ACLNN_UNARY_OF(FloatIn, Mish, at::mish)
ACLNN_INPLACE_UNARY_OF(FloatInOut, Mish, at::mish)
ACLNN_BACKWARD(MishBackward, self, at::mish_backward)
ACLNN_UNARY_OF(FloatIn, Hardsigmoid, at::hardsigmoid)
ACLNN_INPLACE_UNARY_OF(FloatInOut, Hardsigmoid, at::hardsigmoid)
ACLNN_BACKWARD(HardsigmoidBackward, self, at::hardsigmoid_backward)

ACLNN(Celu, (FloatIn, self), (Number, alpha), (Out, out)) {
  out = at::celu(self, alpha);
}
ACLNN(InplaceCelu, (FloatInOut, selfRef), (Number, alpha)) {
  selfRef = at::celu(selfRef, alpha);
}
ACLNN(Hardtanh, (In, self), (Number, clipValueMin), (Number, clipValueMax), (Out, out)) {
  out = at::hardtanh(self, clipValueMin, clipValueMax);
}
ACLNN(InplaceHardtanh, (InOut, selfRef), (Number, clipValueMin), (Number, clipValueMax)) {
  selfRef = at::hardtanh(selfRef, clipValueMin, clipValueMax);
}
ACLNN(HardtanhBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, min), (Number, max),
      (Out, out)) {
  out = at::hardtanh_backward(gradOutput, self, min, max);
}
ACLNN(Hardshrink, (FloatIn, self), (Number, lambd), (Out, out)) {
  out = at::hardshrink(self, lambd);
}
ACLNN(HardshrinkBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, lambd),
      (Out, gradInput)) {
  gradInput = at::hardshrink_backward(gradOutput, self, lambd);
}
ACLNN(Softshrink, (FloatIn, self), (Number, lambd), (Out, out)) {
  out = at::softshrink(self, lambd);
}
ACLNN(SoftshrinkBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, lambd),
      (Out, gradInput)) {
  gradInput = at::softshrink_backward(gradOutput, self, lambd);
}
ACLNN_UNARY_OF(FloatIn, LogSigmoid, at::log_sigmoid)
ACLNN(LogSigmoidForward, (FloatIn, self), (Out, out), (Out, buffer)) {
  at::Tensor saved;
  std::tie(out, saved) = at::log_sigmoid_forward(self);
  if (saved.sizes() == buffer->sizes()) buffer = saved;
}
ACLNN(LogSigmoidBackward, (FloatIn, gradOutput), (FloatIn, self), (FloatIn, buffer),
      (Out, gradInput)) {
  gradInput = at::log_sigmoid_backward(wide(gradOutput), wide(self),
                                       std::get<1>(at::log_sigmoid_forward(wide(self))));
}

ACLNN(Glu, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::glu(wide(self), dim);
}
ACLNN(GluBackward, (FloatIn, gradOut), (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::glu_backward(wide(gradOut), wide(self), dim);
}
ACLNN(SwiGlu, (FloatIn, x), (int64_t, dim), (Out, out)) {
  const auto halves = x.to(at::toOpMathType(x.scalar_type())).chunk(2, dim);
  out = at::mul(at::silu(halves[0]), halves[1]).to(x.scalar_type());
}
ACLNN(SwiGluGrad, (FloatIn, yGrad), (FloatIn, x), (int64_t, dim), (Out, out)) {
  const auto type = at::toOpMathType(x.scalar_type());
  const auto halves = x.to(type).chunk(2, dim);
  const at::Tensor gradient = yGrad.to(type);
  const at::Tensor parts[] = {at::silu_backward(at::mul(gradient, halves[1]), halves[0]),
                              at::mul(gradient, at::silu(halves[0]))};
  out = at::cat(at::TensorList(parts), dim).to(x.scalar_type());
}

// GELU of one half of x, times the other; outGelu is the factor that went through GELU.
ACLNN(GeGluV3, (FloatIn, x), (int64_t, dim), (int64_t, approximate), (bool, activateLeft),
      (Out, out), (Out, outGelu)) {
  const auto halves = wide(x).chunk(2, dim);
  const at::Tensor activated = at::gelu(halves[activateLeft ? 0 : 1], gelu_formula(approximate));
  out = at::mul(halves[activateLeft ? 1 : 0], activated);
  outGelu = activated;
}
ACLNN(GeGluV3Backward, (FloatIn, dy), (FloatIn, x), (FloatIn, gelu), (int64_t, dim),
      (int64_t, approximate), (bool, activateLeft), (Out, dx)) {
  const auto halves = wide(x).chunk(2, dim);
  const at::Tensor gradient = wide(dy);
  const at::Tensor factor = at::mul(gradient, wide(gelu));
  const at::Tensor activated =
      at::gelu_backward(at::mul(gradient, halves[activateLeft ? 1 : 0]),
                        halves[activateLeft ? 0 : 1], gelu_formula(approximate));
  const at::Tensor parts[] = {activateLeft ? activated : factor, activateLeft ? factor : activated};
  dx = at::cat(at::TensorList(parts), dim);
}

ACLNN(Softmax, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::_softmax(wide(self), dim, false);
}
ACLNN(SoftmaxBackward, (FloatIn, gradOutput), (FloatIn, output), (int64_t, dim), (Out, gradInput)) {
  gradInput =
      at::_softmax_backward_data(wide(gradOutput), wide(output), dim, wide(output.scalar_type()));
}
ACLNN(LogSoftmax, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::_log_softmax(wide(self), dim, false);
}
ACLNN(LogSoftmaxBackward, (FloatIn, gradOutput), (FloatIn, output), (int64_t, dim), (Out, out)) {
  out = at::_log_softmax_backward_data(wide(gradOutput), wide(output), dim,
                                       wide(output.scalar_type()));
}
