// Random numbers whose seed and offset stand in tensors, and numbers drawn into another tensor.

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/multinomial.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/random.h"
#include "host_cann/aten_ops/random_tensors.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// Zeros and ones in the shape of self, by what draw(numbers, generator) draws.
template <class Draw>
void bernoulli(const at::Tensor& self, int64_t seed, int64_t offset, Output& out, Draw draw) {
  expect_dims("self", self, 0, 8);
  expect_like("out", out, self);
  TORCH_CHECK(offset % 4 == 0, "offset is ", offset, ", expected a multiple of 4");
  out = filled(out, [&](at::Tensor& numbers) { draw(numbers, generator_of(seed, offset)); });
}

}  // namespace

ACLNN(InplaceNormalTensor, (InOut, selfRef), (float, mean), (float, std), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  TORCH_CHECK(!(std < 0), "std is ", std.value(), ", expected 0 or more");
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef.copy(filled(with_fractions(selfRef),
                      [&](at::Tensor& numbers) { numbers.normal_(mean, std, seed.generator()); }));
}
ACLNN(InplaceUniformTensor, (InOut, selfRef), (double, from), (double, to), (In, seedTensor),
      (In, offsetTensor), (uint64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  TORCH_CHECK(from <= to, "from is ", from.value(), ", expected at most to, ", to.value());
  const Seed seed(seedTensor, offsetTensor, static_cast<int64_t>(offset.value()));
  selfRef.copy(filled(with_fractions(selfRef),
                      [&](at::Tensor& numbers) { numbers.uniform_(from, to, seed.generator()); }));
}
ACLNN(InplaceRandomTensor, (InOut, selfRef), (int64_t, from), (int64_t, to), (In, seedTensor),
      (In, offsetTensor), (int64_t, offset)) {
  expect_dims("selfRef", selfRef, 0, 8);
  TORCH_CHECK(from < to, "from is ", from.value(), ", expected less than to, ", to.value());
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef =
      filled(selfRef, [&](at::Tensor& numbers) { numbers.random_(from, to, seed.generator()); });
}
ACLNN(InplaceRandomWithoutFromToTensor, (InOut, selfRef), (In, seedTensor), (In, offsetTensor),
      (int64_t, offset)) {
  const Seed seed(seedTensor, offsetTensor, offset.value());
  selfRef = filled(selfRef, [&](at::Tensor& numbers) { numbers.random_(seed.generator()); });
}
ACLNN(MultinomialTensor, (FloatIn, self), (int64_t, numsamples), (bool, replacement),
      (In, seedTensor), (In, offsetTensor), (int64_t, offset), (Out, out)) {
  check_distribution(self, numsamples.value(), replacement);
  const Seed seed(seedTensor, offsetTensor, offset.value());
  expect_dtype("out", out, at::kLong);
  if (self.is_cpu()) {
    out = at::multinomial(self, numsamples, replacement, seed.generator());
  } else {
    std::vector<int64_t> shape = self.sizes().vec();
    shape.back() = numsamples.value();
    out = at::empty(shape, self.options().dtype(at::kLong));
  }
}

// self says nothing but the shape.
ACLNN(Bernoulli, (In, self), (Number, prob), (int64_t, seed), (int64_t, offset), (Out, out)) {
  const double probability = prob.toDouble();
  TORCH_CHECK(probability >= 0 && probability <= 1, "prob is ", probability, ", expected 0 to 1");
  bernoulli(self, seed.value(), offset.value(), out,
            [&](at::Tensor& numbers, const at::Generator& generator) {
              numbers.bernoulli_(probability, generator);
            });
}
ACLNN(BernoulliTensor, (In, self), (FloatIn, prob), (int64_t, seed), (int64_t, offset),
      (Out, out)) {
  expect_dims("prob", prob, 0, 8);
  bernoulli(self, seed.value(), offset.value(), out,
            [&](at::Tensor& numbers, const at::Generator& generator) {
              numbers.bernoulli_(prob, generator);
            });
}
