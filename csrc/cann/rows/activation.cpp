// Activation functions and their gradients.

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_prelu_kernel.h>
#include <ATen/ops/_prelu_kernel_backward.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/glu_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardsigmoid_backward.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/heaviside.h>
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
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "cann/rows/activation/shrinking.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::activation_rows {

namespace {

// torch's name of GELU's formula by CANN's number.
c10::string_view gelu_formula(int64_t approximate) {
  EXPECT(approximate == 0 || approximate == 1, "approximate is ", approximate,
         ", expected 0 (none) or 1 (tanh)");
  return approximate == 0 ? "none" : "tanh";
}

// The weight of PReLU along the input's second dimension.
at::Tensor along_channels(const at::Tensor& weight, const at::Tensor& self) {
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) sizes[1] = weight.numel();
  return self.dim() == 0 ? weight.reshape({}) : weight.reshape(sizes);
}

// The two halves of a tensor along a dimension.
struct Halves {
  Halves(const at::Tensor& x, int64_t dim) {
    const int64_t place = at::maybe_wrap_dim(dim, x.dim());
    const int64_t size = x.dim() == 0 ? 1 : x.size(place);
    EXPECT(size % 2 == 0, "the input has shape ", x.sizes(), ", expected an even dimension ", dim,
           ", which is split in halves");
    left = x.narrow(place, 0, size / 2);
    right = x.narrow(place, size / 2, size / 2);
  }
  at::Tensor left;
  at::Tensor right;
};

double beta_of(const std::optional<c10::Scalar>& beta) {
  EXPECT(!beta || !beta->isComplex(), "betaOptional is complex, expected a real number");
  return beta ? beta->toDouble() : 1;
}

// Integers are divided without a fraction: clamp(x + 3, 0, 6) / 6 is 1 from 3 on.
at::Tensor hard_sigmoid(const at::Tensor& x) {
  if (x.scalar_type() == at::kInt) return (x >= 3).to(at::kInt);
  EXPECT(at::isFloatingType(x.scalar_type()), "self has dtype ", dtype_text(x.scalar_type()),
         ", expected FLOAT, FLOAT16, BFLOAT16 or INT32");
  return at::hardsigmoid(wide(x));
}

// What Softshrink and its gradient take. (To Hardshrink a negative number is 0.)
void expect_threshold(const c10::Scalar& lambd) {
  EXPECT(!(lambd.toDouble() < 0), "lambd is ", lambd, ", expected 0 or more");
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
  expect_like("gradOutput", gradOutput, self);
  out = hardtanh_gradient(gradOutput, self, min, max);
}
ACLNN(Hardshrink, (FloatIn, self), (Number, lambd), (Out, out)) {
  out = hard_shrink(self, self, lambd);
}
ACLNN(HardshrinkBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, lambd),
      (Out, gradInput)) {
  gradInput = hard_shrink(gradOutput, self, lambd);
}
ACLNN(Softshrink, (FloatIn, self), (Number, lambd), (Out, out)) {
  expect_threshold(lambd);
  out = soft_shrink(self, lambd);
}
ACLNN(SoftshrinkBackward, (FloatIn, gradOutput), (FloatIn, self), (Number, lambd),
      (Out, gradInput)) {
  expect_threshold(lambd);
  gradInput = hard_shrink(gradOutput, self, lambd);
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
  const Halves halves(x.to(at::toOpMathType(x.scalar_type())), dim);
  out = at::mul(at::silu(halves.left), halves.right).to(x.scalar_type());
}
ACLNN(SwiGluGrad, (FloatIn, yGrad), (FloatIn, x), (int64_t, dim), (Out, out)) {
  const auto type = at::toOpMathType(x.scalar_type());
  const Halves halves(x.to(type), dim);
  expect_shape("yGrad", yGrad, halves.left.sizes());
  const at::Tensor gradient = yGrad.to(type);
  const at::Tensor parts[] = {at::silu_backward(at::mul(gradient, halves.right), halves.left),
                              at::mul(gradient, at::silu(halves.left))};
  out = at::cat(at::TensorList(parts), dim).to(x.scalar_type());
}

// GELU of one half of x, times the other; outGelu is the factor that went through GELU.
ACLNN(GeGluV3, (FloatIn, x), (int64_t, dim), (int64_t, approximate), (bool, activateLeft),
      (Out, out), (Out, outGelu)) {
  const Halves halves(wide(x), dim);
  const at::Tensor activated =
      at::gelu(activateLeft ? halves.left : halves.right, gelu_formula(approximate));
  out = at::mul(activateLeft ? halves.right : halves.left, activated);
  outGelu = activated;
}
ACLNN(GeGluV3Backward, (FloatIn, dy), (FloatIn, x), (FloatIn, gelu), (int64_t, dim),
      (int64_t, approximate), (bool, activateLeft), (Out, dx)) {
  const Halves halves(wide(x), dim);
  expect_shape("dy", dy, halves.left.sizes());
  expect_shape("gelu", gelu, halves.left.sizes());
  const at::Tensor gradient = wide(dy);
  const at::Tensor factor = at::mul(gradient, wide(gelu));
  const at::Tensor activated =
      at::gelu_backward(at::mul(gradient, activateLeft ? halves.right : halves.left),
                        activateLeft ? halves.left : halves.right, gelu_formula(approximate));
  const at::Tensor parts[] = {activateLeft ? activated : factor, activateLeft ? factor : activated};
  dx = at::cat(at::TensorList(parts), dim);
}

ACLNN(Softmax, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::_softmax(wide(self), dim, false);
}
ACLNN(SoftmaxBackward, (FloatIn, gradOutput), (FloatIn, output), (int64_t, dim), (Out, gradInput)) {
  expect_shape("output", output, gradOutput.sizes());
  gradInput =
      at::_softmax_backward_data(wide(gradOutput), wide(output), dim, wide(output.scalar_type()));
}
ACLNN(LogSoftmax, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::_log_softmax(wide(self), dim, false);
}
ACLNN(LogSoftmaxBackward, (FloatIn, gradOutput), (FloatIn, output), (int64_t, dim), (Out, out)) {
  expect_shape("output", output, gradOutput.sizes());
  out = at::_log_softmax_backward_data(wide(gradOutput), wide(output), dim,
                                       wide(output.scalar_type()));
}

ACLNN(Heaviside, (FloatIn, input), (FloatIn, values), (Out, out)) {
  expect_dtype("values", values, input);
  expect_dtype("out", out, input);
  out = at::heaviside(input, values);
}
// x - bias above lambd, x + bias below -lambd, and 0 between.
ACLNN(Shrink, (FloatIn, self), (Number, lambd), (Number, bias), (Out, out)) {
  const double limit = lambd.toDouble();
  EXPECT(!(limit < 0), "lambd is ", limit, ", expected 0 or more");
  const at::Tensor x = wide(self);
  out = at::where(x > limit, x - bias, at::where(x < -limit, x + bias, c10::Scalar(0.0)));
}
ACLNN(SquaredRelu, (FloatIn, input), (Out, out)) {
  expect_like("out", out, input);
  EXPECT(input.dim() > 0, "input has no dimensions, expected at least one");
  out = at::relu(wide(input)).square();
}
// x sigmoid(beta x), with beta 1 if it is null. Its derivative by x is that of SiLU by beta x.
ACLNN(Swish, (FloatIn, self), (OptionalNumber, betaOptional), (Out, out)) {
  expect_like("out", out, self);
  const double beta = beta_of(betaOptional);
  const at::Tensor x = wide(self);
  out = beta == 1 ? at::silu(x) : at::mul(x, at::sigmoid(x * beta));
}
ACLNN(SwishBackward, (FloatIn, gradOutput), (FloatIn, self), (OptionalNumber, betaOptional),
      (Out, gradInput)) {
  expect_like("gradOutput", gradOutput, self);
  expect_like("gradInput", gradInput, self);
  gradInput = at::silu_backward(wide(gradOutput), wide(self) * beta_of(betaOptional));
}

// One half of the last dimension, activated, times the other.
ACLNN(FatreluMul, (FloatIn, input), (FloatIn, threshold), (Out, out)) {
  expect_dtype("threshold", threshold, input);
  expect_dtype("out", out, input);
  EXPECT(threshold.numel() == 1, "threshold has shape ", threshold.sizes(),
         ", expected one element");
  const Halves x(wide(input), -1);
  const at::Tensor is_low = x.left < wide(threshold).reshape({});
  out = at::mul(x.left.masked_fill(is_low, 0), x.right);
}
ACLNN(GeluMul, (FloatIn, input), (char*, approximateOptional), (Out, out)) {
  expect_dtype("out", out, input);
  EXPECT(
      approximateOptional.empty() || approximateOptional == "none" || approximateOptional == "tanh",
      "approximateOptional is \"", approximateOptional, "\", expected \"none\", \"tanh\" or null");
  const Halves x(wide(input), -1);
  out = at::mul(at::gelu(x.left, gelu_formula(approximateOptional == "tanh" ? 1 : 0)), x.right);
}
// The left half times GELU of the right one, which outGelu gets, too.
ACLNN(GeGlu, (FloatIn, self), (int64_t, dim), (int64_t, approximate), (Out, out), (Out, outGelu)) {
  expect_dtype("out", out, self);
  expect_dtype("outGelu", outGelu, self);
  const Halves x(wide(self), dim);
  const at::Tensor activated = at::gelu(x.right, gelu_formula(approximate));
  out = at::mul(x.left, activated);
  outGelu = activated;
}
ACLNN(GeGluBackward, (FloatIn, gradOutput), (FloatIn, self), (FloatIn, gelu), (int64_t, dim),
      (int64_t, approximate), (Out, gradInput)) {
  const Halves x(wide(self), dim);
  expect_like("gelu", gelu, gradOutput);
  expect_like("gradInput", gradInput, self);
  expect_dtype("gradOutput", gradOutput, self);
  EXPECT(gradOutput.sizes() == x.left.sizes(), "gradOutput has shape ", gradOutput.sizes(),
         ", expected ", x.left.sizes(), ", half of self");
  const at::Tensor gradient = wide(gradOutput);
  const at::Tensor parts[] = {
      at::mul(gradient, wide(gelu)),
      at::gelu_backward(at::mul(gradient, x.left), x.right, gelu_formula(approximate))};
  gradInput = at::cat(at::TensorList(parts), dim);
}

ACLNN(EluV2, (FloatIn, self), (Number, alpha), (Number, scale), (Number, inputScale), (Out, out)) {
  expect_like("out", out, self);
  out = at::elu(wide(self), alpha, scale, inputScale);
}
// The sign of 0 is 1.
ACLNN(FastGeluV2, (FloatIn, x), (Out, out)) {
  expect_like("out", out, x);
  const at::Tensor value = wide(x);
  const at::Tensor distance = at::abs(0.7071 * value).clamp_max(1.769) - 1.769;
  const at::Tensor half = -0.1444 * distance.square() + 0.5;
  out = value * (at::where(value + 1e-12 < 0, -half, half) + 0.5);
}
// NaN becomes 0, where ATen's hardshrink keeps it.
ACLNN(HardShrink, (FloatIn, self), (Number, lambd), (Out, out)) {
  expect_like("out", out, self);
  const at::Tensor x = wide(self);
  out = x.masked_fill((x > lambd).logical_or(x < -lambd).logical_not(), 0);
}
ACLNN(HardsigmoidV2, (In, self), (Out, out)) {
  expect_like("out", out, self);
  out = hard_sigmoid(self);
}
ACLNN(InplaceHardsigmoidV2, (InOut, self)) {
  self = hard_sigmoid(self);
}
// x is the input of the function and y the gradient of its result; they are broadcast.
ACLNN(ReluGradV3, (In, x), (In, y), (Out, z)) {
  expect_dtype("y", y, x);
  expect_dtype(z, x);
  z = at::where(x > 0, y, at::zeros({}, y.options()));
}
// self says which elements were more than 0.
ACLNN(ReluGradV4, (In, gradOutput), (In, self), (Number, threshold), (Out, out)) {
  expect_dtype("self", self, at::kByte);
  expect_shape("self", self, gradOutput.sizes());
  expect_like("out", out, gradOutput);
  EXPECT(threshold.toDouble() == 0, "threshold is ", threshold.toDouble(), ", expected 0");
  out = gradOutput.masked_fill(self == 0, 0);
}
ACLNN(SiluMul, (FloatIn, x), (FloatIn, y), (Out, out)) {
  expect_like("y", y, x);
  expect_like("out", out, x);
  out = at::silu(wide(x)) * wide(y);
}
ACLNN(Softsign, (FloatIn, self), (Out, out)) {
  expect_like("out", out, self);
  out = wide(self) / (1 + at::abs(wide(self)));
}
ACLNN(SoftsignBackward, (FloatIn, gradients), (FloatIn, features), (Out, out)) {
  expect_like("features", features, gradients);
  expect_like("out", out, gradients);
  out = wide(gradients) / (1 + at::abs(wide(features))).square();
}
// The first half of the last dimension is the gate, which is bounded after its activation.
ACLNN(SwigluClamp, (FloatIn, x), (double, limit), (Out, y)) {
  EXPECT(limit > 0, "limit is ", limit, ", expected more than 0");
  EXPECT(x.dim() > 0 && x.size(-1) % 2 == 0, "x has shape ", x.sizes(),
         ", expected an even last dimension");
  expect_dtype(y, x);
  const auto halves = wide(x).chunk(2, -1);
  const c10::Scalar most(limit.value());
  y = at::silu(halves[0]).clamp_max(most) * halves[1].clamp(-limit.value(), most);
}
// y is the result of tanh.
ACLNN(TanhGrad, (FloatIn, y), (FloatIn, dy), (Out, dx)) {
  expect_like("dy", dy, y);
  expect_like("dx", dx, y);
  dx = wide(dy) * (1 - wide(y) * wide(y));
}
ACLNN(ThresholdV2, (FloatIn, self), (Number, threshold), (Number, value), (Out, out)) {
  expect_like("out", out, self);
  out = at::threshold(wide(self), threshold, value);
}
ACLNN(FusedBiasLeakyRelu, (FloatIn, x), (FloatIn, bias), (double, negativeSlope), (double, scale),
      (Out, out)) {
  expect_like("bias", bias, x);
  expect_like("out", out, x);
  out = at::leaky_relu(wide(x) + wide(bias), negativeSlope.value()) * scale.value();
}
ACLNN(LogSoftmaxV2, (FloatIn, self), (int64_t, dim), (Out, out)) {
  out = at::_log_softmax(wide(self), dim, false);
}
// y is the result of the softmax over the last dimension.
ACLNN(SoftmaxGrad, (FloatIn, y), (FloatIn, dy), (Out, dx)) {
  EXPECT(y.dim() > 0, "y has no dimensions, expected at least one");
  expect_like("dy", dy, y);
  expect_like("dx", dx, y);
  const at::Tensor share = (wide(dy) * wide(y)).sum(-1, /*keepdim=*/true);
  dx = wide(y) * (wide(dy) - share);
}

}  // namespace aclnn_host::activation_rows
