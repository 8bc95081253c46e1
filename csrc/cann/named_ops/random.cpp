// Dropout and random choices. The random numbers depend on the seeds of a call, and differ from
// those of a device.

#include "cann/rows/random/random.h"
#include "cann/named_ops/operator.h"

namespace aclnn_host::named_random {

namespace {

double probability(const char* name, const Numerals& numbers) {
  const double p = one_of(name, numbers);
  EXPECT(p >= 0 && p <= 1, name, " is ", p, ", expected 0 to 1");
  return p;
}

// A probability of 0 keeps nothing.
double scale_of(double keep_probability) {
  return keep_probability > 0 ? 1 / keep_probability : 0;
}

// Unpacks a mask of a bit or a byte for each element.
at::Tensor is_kept(const at::Tensor& mask, const at::Tensor& x) {
  expect_dtype("mask", mask, {at::kByte, at::kBool});
  if (mask.numel() == x.numel() && x.numel() != dropout_mask_bytes(x.numel())) {
    return mask.reshape(x.sizes()).to(at::kBool);
  }
  return unpacked_dropout_mask(mask.reshape({-1}), x).to(at::kBool);
}

int64_t elements_of(const Integers& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    EXPECT(size >= 0 && !__builtin_mul_overflow(elements, size, &elements) &&
               elements <= int64_t{1} << 40,
           "shape is ", shape, ", expected sizes of 0 or more, of at most 2^40 elements");
  }
  return elements;
}

int64_t axis_of(const char* name, const std::optional<Integers>& axes) {
  return one_of(name, axes.value_or(Integers{-1}));
}

}  // namespace

// A mask of one byte for each element.
NAMED_OPERATOR(DropOutGenMaskV3, (HostInts, shape), (HostFloats, prob), (Out, y),
               (Attribute<int64_t>, seed), (Attribute<int64_t>, seed2)) {
  EXPECT(y->numel() == elements_of(shape), "y has ", y->numel(), " bytes, expected ",
         elements_of(shape), ", one for each element");
  expect_dtype("y", y, at::kByte);
  y = draw_bernoulli(y, probability("prob", prob), source_of(seed.value_or(0), seed2.value_or(0)));
}
// A mask of one bit for each element, up to the size of the mask.
NAMED_OPERATOR(StatelessDropOutGenMask, (HostInts, shape), (HostFloats, prob), (HostInts, seed),
               (HostInts, seed1), (HostInts, offset), (Out, y)) {
  EXPECT(std::ranges::all_of(seed1, [](int64_t word) { return word == 0; }), "seed1 is ", seed1,
         ", expected 0: the host CANN draws from seed and offset");
  expect_dims("y", y, 1);
  check_dropout_mask(y, elements_of(shape), "y");
  const int64_t low = seed.empty() ? 0 : seed[0], high = offset.empty() ? 0 : offset.back();
  y = draw_bits(y, probability("prob", prob), source_of(low, high));
}
NAMED_OPERATOR(DropOutDoMask, (Floating<In>, x), (In, mask), (HostFloats, keep_prob), (Out, y)) {
  y = kept(x, unpacked_dropout_mask(mask.reshape({-1}), x).to(at::kBool),
           scale_of(probability("keep_prob", keep_prob)));
}
NAMED_OPERATOR(DropOutDoMaskV3, (Floating<In>, x), (In, mask), (HostFloats, keep_prob), (Out, y)) {
  expect_dtype("mask", mask, {at::kByte, at::kBool});
  EXPECT(mask.numel() == x.numel(), "mask has ", mask.numel(), " bytes, expected ", x.numel(),
         ", one for each element");
  y = kept(x, mask.reshape(x.sizes()).to(at::kBool), scale_of(probability("keep_prob", keep_prob)));
}
// softmax(x1 + alpha x2), and its dropout by the mask.
NAMED_OPERATOR(AxpyWithSoftmaxAndDropOutDoMask, (Floating<In>, x1), (Floating<In>, x2), (In, mask),
               (Out, y1), (Out, y2), (Attribute<double>, alpha),
               (Attribute<double>, input_keep_prob), (Attribute<Integers>, axis)) {
  const at::Tensor sum = wide(x1) + wide(x2) * alpha.value_or(1);
  const at::Tensor softmax = at::softmax(sum, axis_of("axis", axis));
  y1 = softmax;
  y2 = kept(softmax, is_kept(mask, softmax), scale_of(input_keep_prob.value_or(1)));
}
NAMED_OPERATOR(DropoutWithMulsAndSoftmaxGrad, (Floating<In>, y_grad), (In, mask),
               (Floating<In>, softmax_output), (Out, x_grad), (Attribute<double>, input_keep_prob),
               (Attribute<double>, alpha), (Attribute<Integers>, axes)) {
  const at::Tensor softmax = wide(softmax_output);
  expect_shape("y_grad", y_grad, softmax.sizes());
  const at::Tensor grads =
      kept(y_grad, is_kept(mask, softmax), scale_of(input_keep_prob.value_or(1)));
  x_grad =
      at::_softmax_backward_data(grads, softmax, axis_of("axes", axes), softmax.scalar_type()) *
      alpha.value_or(1);
}
// The coordinates of at most `count` true elements, in order; the rest of y and mask is 0 and
// false.
NAMED_OPERATOR(RandomChoiceWithMask, (In, x), (Out, y), (Out, mask), (Attribute<int64_t>, count),
               (Attribute<int64_t>, seed), (Attribute<int64_t>, seed2)) {
  const int64_t most = count.value_or(0);
  expect_dtype("x", x, at::kBool);
  expect_at_least("count", most, 0);
  expect_shape("y", y, {most, x.dim()});
  expect_shape("mask", mask, {most});
  const at::Tensor coordinates = at::zeros({most, x.dim()}, x.options().dtype(at::kInt));
  const at::Tensor is_found = at::zeros({most}, x.options());
  if (x.is_cpu()) {
    const at::Tensor all = at::nonzero(x);
    const int64_t number = std::min(most, all.size(0));
    const at::Tensor order =
        draw_permutation(all.size(0), source_of(seed.value_or(0), seed2.value_or(0)))
            .narrow(0, 0, number);
    coordinates.narrow(0, 0, number).copy_(all.index_select(0, std::get<0>(order.sort())));
    is_found.narrow(0, 0, number).fill_(true);
  }
  y = coordinates;
  mask = is_found;
}

}  // namespace aclnn_host::named_random
