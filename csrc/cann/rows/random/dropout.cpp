// Dropout: the gradient uses the mask that the forward pass draws.

#include <ATen/native/TensorFactories.h>

#include "cann/rows/random/random.h"
#include "cann/rows/random/seed.h"
#include "cann/rows/row.h"

namespace aclnn_host::random_dropout_rows {

namespace {

// The number of elements of a shape.
int64_t elements_of(at::IntArrayRef shape) {
  expect_sizes_from_0("shape", shape);
  const int64_t elements = product(shape);
  constexpr int64_t kMost = int64_t{1} << 62;
  EXPECT(elements <= kMost, "shape is ", shape, ", expected at most ", kMost, " elements");
  return elements;
}

// Draws a mask whose bits are 0 with the probability prob.
void draw_mask(at::IntArrayRef shape, double prob, Source source, Output& out) {
  check_probability("prob", prob);
  EXPECT(!shape.empty() && shape.size() <= 8, "shape has ", shape.size(),
         " sizes, expected 1 to 8");
  expect_dims("out", out, 1);
  check_dropout_mask(out, elements_of(shape), "out");
  out = draw_bits(out, 1 - prob, source);
}

// self scaled where the mask keeps it, so that the mean is preserved.
at::Tensor dropped(const at::Tensor& self, const at::Tensor& mask, const char* name,
                   double probability) {
  check_probability(name, probability);
  const double scale = probability == 1 ? 0 : 1 / (1 - probability);
  return self.mul(unpacked_dropout_mask(mask, self)).mul(scale);
}

// Draws a mask, and writes it and the dropout of the input.
void drop(const at::Tensor& input, double probability, Source source, Output& out,
          Output& maskOut) {
  check_dropout_mask(maskOut, input.numel(), "maskOut");
  check_probability("p", probability);
  const at::Tensor mask = draw_bits(maskOut, 1 - probability, source);
  maskOut = mask;
  out = dropped(input, mask, "p", probability);
}

// Checks the type of the data to mask; the mask does not depend on it.
void check_prob_type(at::ScalarType type) {
  EXPECT(at::isFloatingType(type), "probDataType is ", dtype_text(type),
         ", expected FLOAT, FLOAT16 or BFLOAT16");
}

}  // namespace

// If nothing is dropped at random, maskOut is not written.
ACLNN(Dropout, (Floating<In>, input), (double, p), (bool, train), (int64_t, seed),
      (int64_t, offset), (Out, out), (Out, maskOut)) {
  check_probability("p", p.value());
  expect_dims("input", input, 0, 8);
  expect_dims("maskOut", maskOut, 1);
  check_dropout_mask(maskOut, input.numel(), "maskOut");
  if (!train || p == 0) {
    out = input;
  } else if (p == 1) {
    out = at::zeros_like(input);
  } else {
    const at::Tensor mask = draw_bits(maskOut, 1 - p.value(), source_of(seed, offset));
    maskOut = mask;
    out = kept(input, unpacked_dropout_mask(mask, input).to(at::kBool), 1 / (1 - p.value()));
  }
}
// A scale of 1 means a probability of 0, whatever the mask.
ACLNN(DropoutBackward, (Floating<In>, gradOutput), (In, mask), (double, scale), (Out, out)) {
  EXPECT(scale == 0 || scale >= 1, "scale is ", scale.value(), ", expected 0, or 1 or more");
  expect_dims("gradOutput", gradOutput, 0, 8);
  check_dropout_mask(mask, gradOutput.numel());
  if (scale == 0) {
    out = at::zeros_like(gradOutput);
  } else if (scale == 1) {
    out = gradOutput;
  } else {
    out = kept(gradOutput, unpacked_dropout_mask(mask, gradOutput).to(at::kBool), scale.value());
  }
}
ACLNN(DropoutV3, (In, input),
      (Refused<In>, optionalNoiseShape, "CANN has no masks of another shape than the tensor's"),
      (double, p), (int64_t, seed), (int64_t, offset), (Out, out), (Out, maskOut)) {
  drop(input, p.value(), source_of(seed, offset), out, maskOut);
}
ACLNN(DropoutV3Tensor, (In, input),
      (Refused<In>, optionalNoiseShape, "CANN has no masks of another shape than the tensor's"),
      (double, p), (In, seedTensor), (In, offsetTensor), (int64_t, offset), (Out, out),
      (Out, maskOut)) {
  drop(input, p.value(), source_of(seedTensor, offsetTensor, offset), out, maskOut);
}
ACLNN(DropoutV3Grad, (In, gradOutput), (In, mask), (double, scale), (Out, gradInput)) {
  gradInput =
      gradOutput.mul(unpacked_dropout_mask(mask, gradOutput)).mul(c10::Scalar(scale.value()));
}
ACLNN(DropoutDoMask, (In, self), (In, mask), (double, prob), (Out, out)) {
  out = dropped(self, mask, "prob", prob);
}

ACLNN(DropoutGenMask, (Ints, shape), (double, prob), (int64_t, seed), (int64_t, offset),
      (Out, out)) {
  draw_mask(shape, prob.value(), source_of(seed, offset), out);
}
ACLNN(DropoutGenMaskV2, (Ints, shape), (double, prob), (int64_t, seed), (int64_t, offset),
      (aclDataType, probDataType), (Out, out)) {
  check_probability("prob", prob);
  check_prob_type(probDataType);
  check_dropout_mask(out, c10::multiply_integers(shape), "out");
  out = draw_bits(out, 1 - prob.value(), source_of(seed, offset));
}

ACLNN(DropoutGenMaskV2Tensor, (Ints, shape), (double, prob), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset), (aclDataType, probDataType), (Out, out)) {
  check_prob_type(probDataType);
  draw_mask(shape, prob.value(), source_of(seedTensor, offsetTensor, offset), out);
}

}  // namespace aclnn_host::random_dropout_rows
