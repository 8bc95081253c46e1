// The rectified linear unit and its variants: thresholds, leaky units, and units with a learned or
// random slope.

#include "cann/rows/bits.h"
#include "cann/rows/random/random.h"
#include "cann/rows/row.h"

namespace aclnn_host::activation_relu_rows {

namespace {

// The weight of PReLU along the input's second dimension.
at::Tensor along_channels(const at::Tensor& weight, const at::Tensor& self) {
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) sizes[1] = weight.numel();
  return self.dim() == 0 ? weight.reshape({}) : weight.reshape(sizes);
}

void expect_format(const char* name, aclFormat format) {
  EXPECT(format == ACL_FORMAT_ND || format == ACL_FORMAT_NC1HWC0, name, " has format ",
         static_cast<int>(format), ", expected NC1HWC0 (3) or ND (2)");
}

// Draws the slopes of self in training, as aclnnInplaceUniform draws FLOAT: 1 above 0, else random.
// The noise may have more elements than self; these keep their values.
at::Tensor draw_slopes(const at::Tensor& self, Output& noise, double lower, double upper,
                       Source source) {
  const at::Tensor like = at::empty(self.sizes(), self.options().dtype(wide(self.scalar_type())));
  const at::Tensor drawn = draw_uniform(like, lower, upper, source);
  const at::Tensor slopes = at::where(wide(self) > 0, c10::Scalar(1.0), drawn);
  const at::Tensor all = wide(noise).reshape({-1}).clone();
  all.narrow(0, 0, self.numel()).copy_(slopes.reshape({-1}));
  noise = all.view(noise->sizes());
  return slopes;
}

at::Tensor rrelu(const at::Tensor& self, Output& noise, const c10::Scalar& lower,
                 const c10::Scalar& upper, bool training, Source source) {
  EXPECT(noise->numel() >= self.numel(), "noise has ", noise->numel(),
         " elements, expected at least ", self.numel(), ", as many as self");
  const double low = lower.toDouble(), high = upper.toDouble();
  if (!training) return at::leaky_relu(wide(self), (low + high) / 2);
  EXPECT(low <= high, "lower is ", low, ", expected at most upper, ", high);
  return at::mul(wide(self), draw_slopes(self, noise, low, high, source));
}

}  // namespace

ACLNN_UNARY(Relu, at::relu)
ACLNN_INPLACE_UNARY(Relu, at::relu)
// x has the shape of the blocks of NC1HWC0. The document has one flag in each element of maskOut,
// the vendor's sample has eight; both shapes are accepted.
ACLNN(ReluV3, (Stored<In>, x), (SameDtype<Stored<Out>>, yOut, "x"), (Out, maskOut)) {
  const at::Tensor& values = x.elements;
  expect_dims("x", values, 5);
  expect_format("x", x.format);
  expect_format("yOut", yOut.format());
  EXPECT(x.dtype == ACL_FLOAT || x.dtype == ACL_FLOAT16 || x.dtype == ACL_BF16 ||
             x.dtype == ACL_INT32 || x.dtype == ACL_INT8 || x.dtype == ACL_UINT8,
         "x has dtype ", dtype_name(x.dtype),
         ", expected FLOAT16, FLOAT, INT32, INT8, UINT8 or BFLOAT16");
  expect_dtype("maskOut", maskOut, at::kByte);
  const at::Tensor marks = values > 0;
  yOut = at::relu(values);
  if (maskOut->sizes() == values.sizes()) {
    maskOut = marks.to(at::kByte);
    return;
  }
  std::vector<int64_t> shape = values.sizes().vec();
  shape.back() = (shape.back() + 7) / 8;
  expect_shape("maskOut", maskOut, shape);
  maskOut = packed_bits(marks);
}
// x is the input of ReLU and y the gradient of its result; they are broadcast.
ACLNN(ReluGradV3, (In, x), (SameDtype<In>, y, "x"), (SameDtype<Out>, z, "x")) {
  z = at::where(x > 0, y, at::zeros({}, y.options()));
}
// self has the flags of the elements that were above 0.
ACLNN(ReluGradV4, (In, gradOutput), (SameShape<In>, self, "gradOutput"), (Number, threshold),
      (Like<Out>, out, "gradOutput")) {
  expect_dtype("self", self, at::kByte);
  EXPECT(threshold.toDouble() == 0, "threshold is ", threshold.toDouble(), ", expected 0");
  out = gradOutput.masked_fill(self == 0, 0);
}
ACLNN(SquaredRelu, (Floating<In>, input), (Like<Out>, out, "input")) {
  expect_dims("input", input, 1, 8);
  out = at::relu(wide(input)).square();
}
ACLNN(Threshold, (In, self), (Number, threshold), (Number, value), (Out, out)) {
  out = at::threshold(self, threshold, value);
}
ACLNN(InplaceThreshold, (InOut, selfRef), (Number, threshold), (Number, value)) {
  selfRef = at::threshold(selfRef, threshold, value);
}
ACLNN(ThresholdV2, (Floating<In>, self), (Number, threshold), (Number, value),
      (Like<Out>, out, "self")) {
  out = at::threshold(wide(self), threshold, value);
}
ACLNN(ThresholdBackward, (In, gradOutput), (In, self), (Number, threshold), (Out, out)) {
  out = at::threshold_backward(gradOutput, self, threshold);
}
ACLNN(LeakyRelu, (Floating<In>, self), (Number, negativeSlope), (Out, out)) {
  out = at::leaky_relu(self, negativeSlope);
}
ACLNN(InplaceLeakyRelu, (Floating<InOut>, selfRef), (Number, negativeSlope)) {
  selfRef = at::leaky_relu(selfRef, negativeSlope);
}
ACLNN(LeakyReluBackward, (Floating<In>, gradOutput), (Floating<In>, self), (Number, negativeSlope),
      (bool, selfIsResult), (Out, out)) {
  out = at::leaky_relu_backward(gradOutput, self, negativeSlope, selfIsResult);
}
ACLNN(FusedBiasLeakyRelu, (Floating<In>, x), (Like<Floating<In>>, bias, "x"),
      (double, negativeSlope), (double, scale), (Like<Out>, out, "x")) {
  out = at::leaky_relu(wide(x) + wide(bias), negativeSlope.value()) * scale.value();
}
ACLNN(Prelu, (Floating<In>, self), (Floating<In>, weight), (Out, out)) {
  out = at::_prelu_kernel(self, along_channels(weight, self));
}
ACLNN(PreluBackward, (Floating<In>, gradOutput), (Floating<In>, self), (Floating<In>, weight),
      (Out, gradInput), (Out, gradWeight)) {
  const at::Tensor aligned = along_channels(wide(weight), self);
  const auto [input, slopes] = at::_prelu_kernel_backward(wide(gradOutput), wide(self), aligned);
  gradInput = input;
  gradWeight = slopes.sum_to_size(aligned.sizes()).reshape(weight.sizes());
}

ACLNN(RReluWithNoise, (Floating<In>, self), (SameDtype<Floating<InOut>>, noise, "self"),
      (Number, lower), (Number, upper), (bool, training), (int64_t, seed), (int64_t, offset),
      (Like<Out>, out, "self")) {
  out = rrelu(self, noise, lower, upper, training, source_of(seed, offset));
}
ACLNN(InplaceRReluWithNoise, (Floating<InOut>, self), (SameDtype<Floating<InOut>>, noise, "self"),
      (Number, lower), (Number, upper), (bool, training), (int64_t, seed), (int64_t, offset)) {
  self = rrelu(self, noise, lower, upper, training, source_of(seed, offset));
}

}  // namespace aclnn_host::activation_relu_rows
