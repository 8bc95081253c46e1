// Random numbers. A seed and an offset, as numbers or tensors, determine them; they differ from
// those of a device.

#include <ATen/native/TensorFactories.h>

#include "cann/rows/random/random.h"
#include "cann/rows/random/seed.h"
#include "cann/rows/row.h"

namespace aclnn_host::random_distributions_rows {

namespace {

// Writes random zeros and ones in the shape of self, with this probability of ones.
template <class Probability>
void bernoulli(const at::Tensor& self, const Probability& probability, int64_t seed, int64_t offset,
               Output& out) {
  expect_dims("self", self, 0, 8);
  EXPECT(offset % 4 == 0, "offset is ", offset, ", expected a multiple of 4");
  out.copy(draw_bernoulli(out, probability, source_of(seed, offset)));
}

}  // namespace

// Behaviour of InplaceUniform*, InplaceNormal*: Integers are drawn in FLOAT and truncated.
ACLNN(InplaceUniform, (Real<InOut>, selfRef), (double, from), (double, to), (uint64_t, seed),
      (uint64_t, offset)) {
  selfRef.copy(draw_uniform(selfRef, from, to, source_of(seed, offset)));
}

ACLNN(InplaceUniformTensor, (Real<InOut>, selfRef), (double, from), (double, to), (In, seedTensor),
      (In, offsetTensor), (uint64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  const auto added = static_cast<int64_t>(offset.value());
  selfRef.copy(draw_uniform(selfRef, from, to, source_of(seedTensor, offsetTensor, added)));
}

ACLNN(InplaceNormal, (Real<InOut>, selfRef), (float, mean), (float, std), (int64_t, seed),
      (int64_t, offset)) {
  selfRef.copy(draw_normal(selfRef, mean.value(), std.value(), source_of(seed, offset)));
}

ACLNN(InplaceNormalTensor, (Real<InOut>, selfRef), (float, mean), (float, std), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  selfRef.copy(
      draw_normal(selfRef, mean.value(), std.value(), source_of(seedTensor, offsetTensor, offset)));
}

ACLNN(NormalFloatFloat, (float, mean), (float, std), (int64_t, seed), (int64_t, offset),
      (Real<Out>, out)) {
  out.copy(draw_normal(out, mean.value(), std.value(), source_of(seed, offset)));
}
ACLNN(NormalFloatTensor, (float, mean), (In, std), (int64_t, seed), (int64_t, offset),
      (Real<Out>, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(std).add(c10::Scalar(mean.value()));
}
ACLNN(NormalTensorFloat, (In, mean), (float, std), (int64_t, seed), (int64_t, offset),
      (Real<Out>, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(c10::Scalar(std.value())).add(mean);
}
ACLNN(NormalTensorTensor, (In, mean), (In, std), (int64_t, seed), (int64_t, offset),
      (Real<Out>, out)) {
  out = draw_normal(out, 0, 1, source_of(seed, offset)).mul(std).add(mean);
}
// Complex numbers get the integers as real parts, and imaginary parts of 0.
ACLNN(InplaceRandom, (InOut, selfRef), (int64_t, from), (int64_t, to), (int64_t, seed),
      (int64_t, offset)) {
  selfRef = draw_integers(selfRef, from, to, source_of(seed, offset));
}

ACLNN(InplaceRandomTensor, (InOut, selfRef), (int64_t, from), (int64_t, to), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  selfRef = draw_integers(selfRef, from, to, source_of(seedTensor, offsetTensor, offset));
}

ACLNN(InplaceRandomWithoutFromTo, (Real<InOut>, selfRef), (int64_t, seed), (int64_t, offset)) {
  selfRef = draw_integers(selfRef, source_of(seed, offset));
}

ACLNN(InplaceRandomWithoutFromToTensor, (Real<InOut>, selfRef), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  selfRef = draw_integers(selfRef, source_of(seedTensor, offsetTensor, offset));
}

// Only the shape of self is read.
ACLNN(Bernoulli, (In, self), (Number, prob), (int64_t, seed), (int64_t, offset),
      (Like<Real<Out>>, out, "self")) {
  bernoulli(self, prob.toDouble(), seed.value(), offset.value(), out);
}
ACLNN(InplaceBernoulli, (Real<InOut>, selfRef), (Number, prob), (int64_t, seed),
      (int64_t, offset)) {
  selfRef.copy(draw_bernoulli(selfRef, prob.toDouble(), source_of(seed, offset)));
}

ACLNN(BernoulliTensor, (In, self), (Floating<In>, prob), (int64_t, seed), (int64_t, offset),
      (Like<Real<Out>>, out, "self")) {
  expect_dims("prob", prob, 0, 8);
  bernoulli(self, prob, seed.value(), offset.value(), out);
}
ACLNN(InplaceBernoulliTensor, (Real<InOut>, selfRef), (Floating<In>, prob), (int64_t, seed),
      (int64_t, offset)) {
  selfRef.copy(draw_bernoulli(selfRef, prob, source_of(seed, offset)));
}
ACLNN(SimThreadExponential, (Floating<InOut>, selfRef), (int64_t, count), (double, lambda),
      (int64_t, seed), (int64_t, offset)) {
  EXPECT(count == selfRef->numel(), "count is ", count, ", expected ", selfRef->numel(),
         ", the number of elements");
  selfRef = draw_exponential(selfRef, lambda, source_of(seed, offset));
}

ACLNN(StatelessExponentialTensor, (Floating<InOut>, self), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset), (double, lambd)) {
  expect_dims("self", self, 0, 8);
  expect_dims("seedTensor", seedTensor, 1);
  expect_dims("offsetTensor", offsetTensor, 1);
  self = draw_exponential(self, lambd, source_of(seedTensor, offsetTensor, offset));
}

ACLNN(Multinomial, (Floating<In>, self), (int64_t, numsamples), (bool, replacement),
      (int64_t, seed), (int64_t, offset), (Out, out)) {
  check_distribution(self, numsamples, replacement);
  out = draw_categories(self, numsamples, replacement, source_of(seed, offset));
}

ACLNN(MultinomialTensor, (Floating<In>, self), (int64_t, numsamples), (bool, replacement),
      (In, seedTensor), (In, offsetTensor), (int64_t, offset), (Out, out)) {
  check_distribution(self, numsamples.value(), replacement);
  expect_dtype("out", out, at::kLong);
  out = draw_categories(self, numsamples, replacement, source_of(seedTensor, offsetTensor, offset));
}

ACLNN(Randperm, (int64_t, n), (int64_t, seed), (int64_t, offset), (Out, out)) {
  expect_at_least("n", n, 0);
  expect_shape("out", out, {n});
  EXPECT(at::isIntegralType(out->scalar_type(), false) || at::isFloatingType(out->scalar_type()),
         "out has dtype ", dtype_text(out->scalar_type()),
         ", expected an integer or floating-point type");
  at::native::check_supported_max_int_with_precision(
      n, at::empty({0}, out->options().device(at::kCPU)));
  if (out->is_cpu()) out.copy(draw_permutation(n, source_of(seed, offset)));
}

}  // namespace aclnn_host::random_distributions_rows
