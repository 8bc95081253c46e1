// Dropout and the leaky ReLU with a random slope: what is drawn for each element stays to be used
// by the gradient.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/random/random.h"
#include "cann/rows/random/seed.h"
#include "cann/rows/row.h"

namespace aclnn_host::dropout_rows {

namespace {

void check_probability(const char* name, double probability) {
  EXPECT(probability >= 0 && probability <= 1, name, " is ", probability, ", expected 0 to 1");
}

// The number of elements of a shape.
int64_t elements_of(at::IntArrayRef shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    EXPECT(size >= 0 && !__builtin_mul_overflow(elements, size, &elements), "shape is ", shape,
           ", expected sizes of 0 or more whose product fits INT64");
  }
  constexpr int64_t kMost = int64_t{1} << 62;
  EXPECT(elements <= kMost, "shape is ", shape, ", expected at most ", kMost, " elements");
  return elements;
}

// What a mask keeps of x, scaled, and 0 elsewhere, even where x is inf.
at::Tensor kept(const at::Tensor& x, const at::Tensor& mask, double scale) {
  const at::Tensor is_kept = unpacked_dropout_mask(mask, x).to(at::kBool);
  return at::where(is_kept, at::mul(wide(x), scale), c10::Scalar(0.0));
}

// Draws a mask whose bits are 0 with the probability prob.
void draw_mask(at::IntArrayRef shape, double prob, Source source, Output& out) {
  check_probability("prob", prob);
  EXPECT(!shape.empty() && shape.size() <= 8, "shape has ", shape.size(),
         " sizes, expected 1 to 8");
  expect_dims("out", out, 1);
  check_dropout_mask(out, elements_of(shape));
  out = draw_bits(out, 1 - prob, source);
}

// The slopes of self in training, drawn as aclnnInplaceUniform draws FLOAT: 1 above 0, else
// random. The noise may have more elements; they stay.
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
  expect_dtype(noise, self);
  EXPECT(noise->numel() >= self.numel(), "noise has ", noise->numel(),
         " elements, expected at least ", self.numel(), ", as many as self");
  const double low = lower.toDouble(), high = upper.toDouble();
  if (!training) return at::leaky_relu(wide(self), (low + high) / 2);
  EXPECT(low <= high, "lower is ", low, ", expected at most upper, ", high);
  return at::mul(wide(self), draw_slopes(self, noise, low, high, source));
}

}  // namespace

ACLNN(RReluWithNoise, (FloatIn, self), (FloatInOut, noise), (Number, lower), (Number, upper),
      (bool, training), (int64_t, seed), (int64_t, offset), (Out, out)) {
  expect_like("out", out, self);
  out = rrelu(self, noise, lower, upper, training, source_of(seed, offset));
}
ACLNN(InplaceRReluWithNoise, (FloatInOut, self), (FloatInOut, noise), (Number, lower),
      (Number, upper), (bool, training), (int64_t, seed), (int64_t, offset)) {
  self = rrelu(self, noise, lower, upper, training, source_of(seed, offset));
}

// Where nothing is random, maskOut stays as it is.
ACLNN(Dropout, (FloatIn, input), (double, p), (bool, train), (int64_t, seed), (int64_t, offset),
      (Out, out), (Out, maskOut)) {
  check_probability("p", p.value());
  expect_dims("input", input, 0, 8);
  expect_dims("maskOut", maskOut, 1);
  check_dropout_mask(maskOut, input.numel());
  if (!train || p == 0) {
    out = input;
  } else if (p == 1) {
    out = at::zeros_like(input);
  } else {
    const at::Tensor mask = draw_bits(maskOut, 1 - p.value(), source_of(seed, offset));
    maskOut = mask;
    out = kept(input, mask, 1 / (1 - p.value()));
  }
}
// A scale of 1 stands for a probability of 0, whatever the mask says.
ACLNN(DropoutBackward, (FloatIn, gradOutput), (In, mask), (double, scale), (Out, out)) {
  EXPECT(scale == 0 || scale >= 1, "scale is ", scale.value(), ", expected 0, or 1 or more");
  expect_dims("gradOutput", gradOutput, 0, 8);
  check_dropout_mask(mask, gradOutput.numel());
  if (scale == 0) {
    out = at::zeros_like(gradOutput);
  } else if (scale == 1) {
    out = gradOutput;
  } else {
    out = kept(gradOutput, mask, scale.value());
  }
}
ACLNN(DropoutGenMask, (Ints, shape), (double, prob), (int64_t, seed), (int64_t, offset),
      (Out, out)) {
  draw_mask(shape, prob.value(), source_of(seed, offset), out);
}
// probDataType is the type of what the mask is for; the mask does not depend on it.
ACLNN(DropoutGenMaskV2Tensor, (Ints, shape), (double, prob), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset), (aclDataType, probDataType), (Out, out)) {
  EXPECT(at::isFloatingType(probDataType), "probDataType is ", dtype_text(probDataType),
         ", expected FLOAT, FLOAT16 or BFLOAT16");
  const Seed seed(seedTensor, offsetTensor, offset.value());
  draw_mask(shape, prob.value(), seed.source(), out);
}

}  // namespace aclnn_host::dropout_rows
