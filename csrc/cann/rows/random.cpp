// Random numbers. A seed and an offset always give the same ones; they are not those of a device.

#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>

#include "cann/rows/random/random.h"
#include "cann/rows/random/seed.h"
#include "cann/rows/row.h"

namespace aclnn_host::random_rows {

namespace {

// What dropout keeps of self, scaled so that its mean stays.
at::Tensor dropped(const at::Tensor& self, const at::Tensor& mask, double probability) {
  EXPECT(probability >= 0 && probability <= 1, "the probability is ", probability,
         ", expected 0 to 1");
  const double scale = probability == 1 ? 0 : 1 / (1 - probability);
  return self.mul(unpacked_dropout_mask(mask, self)).mul(scale);
}

// Draws a mask, and writes it and what it keeps.
void drop(const at::Tensor& input, double probability, Source source, Output& out,
          Output& maskOut) {
  check_dropout_mask(maskOut, input.numel());
  const at::Tensor mask = draw_bits(maskOut, 1 - probability, source);
  maskOut = mask;
  out = dropped(input, mask, probability);
}

}  // namespace

ACLNN(InplaceUniform, (RealInOut, selfRef), (double, from), (double, to), (uint64_t, seed),
      (uint64_t, offset)) {
  selfRef.copy(draw_uniform(selfRef, from, to, source_of(seed, offset)));
}
ACLNN(InplaceNormal, (RealInOut, selfRef), (float, mean), (float, std), (int64_t, seed),
      (int64_t, offset)) {
  selfRef.copy(draw_normal(selfRef, mean.value(), std.value(), source_of(seed, offset)));
}
ACLNN(NormalFloatFloat, (float, mean), (float, std), (int64_t, seed), (int64_t, offset),
      (RealOut, out)) {
  out.copy(draw_normal(out, mean.value(), std.value(), source_of(seed, offset)));
}
ACLNN(NormalFloatTensor, (float, mean), (In, std), (int64_t, seed), (int64_t, offset),
      (RealOut, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(std).add(c10::Scalar(mean.value()));
}
ACLNN(NormalTensorFloat, (In, mean), (float, std), (int64_t, seed), (int64_t, offset),
      (RealOut, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(c10::Scalar(std.value())).add(mean);
}
ACLNN(NormalTensorTensor, (In, mean), (In, std), (int64_t, seed), (int64_t, offset),
      (RealOut, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(std).add(mean);
}
ACLNN(InplaceRandom, (RealInOut, selfRef), (int64_t, from), (int64_t, to), (int64_t, seed),
      (int64_t, offset)) {
  selfRef = draw_integers(selfRef, from, to, source_of(seed, offset));
}
ACLNN(InplaceRandomWithoutFromTo, (RealInOut, selfRef), (int64_t, seed), (int64_t, offset)) {
  selfRef = draw_integers(selfRef, source_of(seed, offset));
}
ACLNN(InplaceBernoulli, (RealInOut, selfRef), (Number, prob), (int64_t, seed), (int64_t, offset)) {
  selfRef.copy(draw_bernoulli(selfRef, prob.toDouble(), source_of(seed, offset)));
}
ACLNN(InplaceBernoulliTensor, (RealInOut, selfRef), (FloatIn, prob), (int64_t, seed),
      (int64_t, offset)) {
  selfRef.copy(draw_bernoulli(selfRef, prob, source_of(seed, offset)));
}
ACLNN(SimThreadExponential, (FloatInOut, selfRef), (int64_t, count), (double, lambda),
      (int64_t, seed), (int64_t, offset)) {
  EXPECT(count == selfRef->numel(), "count is ", count, ", expected ", selfRef->numel(),
         ", the number of elements");
  selfRef = draw_exponential(selfRef, lambda, source_of(seed, offset));
}
ACLNN(Randperm, (int64_t, n), (int64_t, seed), (int64_t, offset), (Out, out)) {
  EXPECT(out->dim() == 1 && out->size(0) == n, "out has shape ", out->sizes(), ", expected [", n,
         "]");
  EXPECT(at::isIntegralType(out->scalar_type(), false) || at::isFloatingType(out->scalar_type()),
         "out has dtype ", dtype_text(out->scalar_type()),
         ", expected an integer or floating-point type");
  at::native::check_supported_max_int_with_precision(
      n, at::empty({0}, out->options().device(at::kCPU)));
  if (out->is_cpu()) out.copy(draw_permutation(n, source_of(seed, offset)));
}
ACLNN(Multinomial, (FloatIn, self), (int64_t, numsamples), (bool, replacement), (int64_t, seed),
      (int64_t, offset), (Out, out)) {
  check_distribution(self, numsamples, replacement);
  out = draw_categories(self, numsamples, replacement, source_of(seed, offset));
}

ACLNN(DropoutGenMaskV2, (Ints, shape), (double, prob), (int64_t, seed), (int64_t, offset),
      (aclDataType, probDataType), (Out, out)) {
  EXPECT(prob >= 0 && prob <= 1, "prob is ", prob, ", expected 0 to 1");
  check_dropout_mask(out, c10::multiply_integers(shape));
  out = draw_bits(out, 1 - prob.value(), source_of(seed, offset));
}
ACLNN(DropoutDoMask, (In, self), (In, mask), (double, prob), (Out, out)) {
  out = dropped(self, mask, prob);
}
ACLNN(DropoutV3, (In, input), (OptionalIn, optionalNoiseShape), (double, p), (int64_t, seed),
      (int64_t, offset), (Out, out), (Out, maskOut)) {
  drop(input, p.value(), source_of(seed, offset), out, maskOut);
}
ACLNN(DropoutV3Tensor, (In, input), (OptionalIn, optionalNoiseShape), (double, p), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset), (Out, out), (Out, maskOut)) {
  const Seed seed(seedTensor, offsetTensor, offset.value());
  drop(input, p.value(), seed.source(), out, maskOut);
}
ACLNN(DropoutV3Grad, (In, gradOutput), (In, mask), (double, scale), (Out, gradInput)) {
  gradInput =
      gradOutput.mul(unpacked_dropout_mask(mask, gradOutput)).mul(c10::Scalar(scale.value()));
}

}  // namespace aclnn_host::random_rows
