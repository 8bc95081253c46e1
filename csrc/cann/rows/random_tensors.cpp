// Random numbers whose seed and offset stand in tensors, and numbers drawn into another tensor.

#include "cann/rows/checks.h"
#include "cann/rows/random/random.h"
#include "cann/rows/random/seed.h"
#include "cann/rows/row.h"

namespace aclnn_host::random_tensors_rows {

namespace {

// Writes zeros and ones in the shape of self, with this probability of ones.
template <class Probability>
void bernoulli(const at::Tensor& self, const Probability& probability, int64_t seed, int64_t offset,
               Output& out) {
  expect_dims("self", self, 0, 8);
  expect_like("out", out, self);
  EXPECT(offset % 4 == 0, "offset is ", offset, ", expected a multiple of 4");
  out.copy(draw_bernoulli(out, probability, source_of(seed, offset)));
}

}  // namespace

ACLNN(InplaceNormalTensor, (RealInOut, selfRef), (float, mean), (float, std), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef.copy(draw_normal(selfRef, mean.value(), std.value(), seed.source()));
}
ACLNN(InplaceUniformTensor, (RealInOut, selfRef), (double, from), (double, to), (In, seedTensor),
      (In, offsetTensor), (uint64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  const Seed seed(seedTensor, offsetTensor, static_cast<int64_t>(offset.value()));
  selfRef.copy(draw_uniform(selfRef, from, to, seed.source()));
}
ACLNN(StatelessExponentialTensor, (FloatInOut, self), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset), (double, lambd)) {
  expect_dims("self", self, 0, 8);
  expect_dims("seedTensor", seedTensor, 1);
  expect_dims("offsetTensor", offsetTensor, 1);
  const Seed seed(seedTensor, offsetTensor, offset.value());
  self = draw_exponential(self, lambd, seed.source());
}
ACLNN(InplaceRandomTensor, (RealInOut, selfRef), (int64_t, from), (int64_t, to), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef = draw_integers(selfRef, from, to, seed.source());
}
ACLNN(InplaceRandomWithoutFromToTensor, (RealInOut, selfRef), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset)) {
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef = draw_integers(selfRef, seed.source());
}
ACLNN(MultinomialTensor, (FloatIn, self), (int64_t, numsamples), (bool, replacement),
      (In, seedTensor), (In, offsetTensor), (int64_t, offset), (Out, out)) {
  check_distribution(self, numsamples.value(), replacement);
  const Seed seed(seedTensor, offsetTensor, offset.value());
  expect_dtype("out", out, at::kLong);
  out = draw_categories(self, numsamples, replacement, seed.source());
}

// self says nothing but the shape.
ACLNN(Bernoulli, (In, self), (Number, prob), (int64_t, seed), (int64_t, offset), (RealOut, out)) {
  bernoulli(self, prob.toDouble(), seed.value(), offset.value(), out);
}
ACLNN(BernoulliTensor, (In, self), (FloatIn, prob), (int64_t, seed), (int64_t, offset),
      (RealOut, out)) {
  expect_dims("prob", prob, 0, 8);
  bernoulli(self, prob, seed.value(), offset.value(), out);
}

}  // namespace aclnn_host::random_tensors_rows
