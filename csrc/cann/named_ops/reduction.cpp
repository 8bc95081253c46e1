// Sums, extremes and other reductions; softmax.

#include <functional>
#include <numeric>

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_reduction {

namespace {

// An empty list of axes stands for all axes.
Integers all_if_empty(Integers axes, const at::Tensor& x) {
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(x.dim()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

at::Tensor product(const at::Tensor& x, const Integers& axes, bool keep_dims) {
  Integers dims = axes;
  for (int64_t& dim : dims) dim = c10::maybe_wrap_dim(dim, x.dim());
  std::sort(dims.begin(), dims.end(), std::greater());
  EXPECT(std::ranges::adjacent_find(dims) == dims.end(), "axes is ", axes,
         ", expected every axis once");
  at::Tensor result = x;
  for (const int64_t dim : dims) result = result.prod(dim, keep_dims);
  return result;
}

void expect_false(const char* name, const std::optional<bool>& flag) {
  EXPECT(!flag.value_or(false), name,
         " is true, expected false, which alone the host CANN emulates");
}

bool has_root(double power) {
  return power != 0 && std::isfinite(power);
}

at::Tensor mean(const at::Tensor& x, const Integers& axes, bool keep_dims, bool none_if_empty) {
  if (axes.empty() && none_if_empty) return x;
  return at::mean(x, all_if_empty(axes, x), keep_dims);
}

}  // namespace

NAMED_OPERATOR(ReduceSum, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = at::sum(x, all_if_empty(axes, x), keep_dims.value_or(false), x.scalar_type());
}
NAMED_OPERATOR(ReduceMean, (Floating<In>, x), (HostInts, axes), (Out, y),
               (Attribute<bool>, keep_dims), (Attribute<bool>, noop_with_empty_axes)) {
  y = mean(x, axes, keep_dims.value_or(false), noop_with_empty_axes.value_or(true));
}
NAMED_OPERATOR(ReduceMeanD, (Floating<In>, x), (Out, y), (Attribute<Integers>, axes),
               (Attribute<bool>, keep_dims), (Attribute<bool>, noop_with_empty_axes)) {
  y = mean(x, axes.value_or(Integers()), keep_dims.value_or(false),
           noop_with_empty_axes.value_or(false));
}
NAMED_OPERATOR(ReduceProd, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = product(wide(x), all_if_empty(axes, x), keep_dims.value_or(false));
}
NAMED_OPERATOR(ReduceMax, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = at::amax(x, all_if_empty(axes, x), keep_dims.value_or(false));
}
NAMED_OPERATOR(ReduceMin, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = at::amin(x, all_if_empty(axes, x), keep_dims.value_or(false));
}
NAMED_OPERATOR(ReduceAll, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = at::amin(x.to(at::kBool), all_if_empty(axes, x), keep_dims.value_or(false));
}
NAMED_OPERATOR(ReduceAny, (In, x), (HostInts, axes), (Out, y), (Attribute<bool>, keep_dims)) {
  y = at::amax(x.to(at::kBool), all_if_empty(axes, x), keep_dims.value_or(false));
}
NAMED_OPERATOR(ReduceLogSumExp, (Floating<In>, x), (HostInts, axes), (Out, y),
               (Attribute<bool>, keep_dims)) {
  y = at::logsumexp(wide(x), all_if_empty(axes, x), keep_dims.value_or(false));
}
// The mean is an input, in the shape of x. Computes the standard deviation or, with `invert`, its
// reciprocal, for which epsilon is added to the variance.
NAMED_OPERATOR(ReduceStdWithMean, (Floating<In>, x), (Floating<In>, mean), (Out, y),
               (Attribute<Integers>, dim), (Attribute<bool>, unbiased), (Attribute<bool>, keepdim),
               (Attribute<bool>, invert), (Attribute<double>, epsilon),
               (Attribute<int64_t>, correction)) {
  const Integers dims = all_if_empty(dim.value_or(Integers()), x);
  const at::Tensor squares = at::square(wide(x) - wide(mean));
  const at::Tensor sum = at::sum(squares, dims, keepdim.value_or(false));
  const int64_t count = sum.numel() == 0 ? 1 : x.numel() / sum.numel();
  const int64_t less = unbiased.value_or(true) ? correction.value_or(1) : 0;
  const at::Tensor variance = sum / static_cast<double>(count - less);
  y = invert.value_or(false) ? at::rsqrt(variance + epsilon.value_or(0.001)) : at::sqrt(variance);
}
// The p-norm in two steps: the sum of the powers and its root. Infinite p selects the largest or
// the smallest magnitude, 0 counts nonzero elements.
NAMED_OPERATOR(LpNormReduceV2, (Floating<In>, x), (Out, y), (Attribute<double>, p),
               (Attribute<Integers>, axes), (Attribute<bool>, keepdim),
               (Unused<Attribute<double>>, epsilon, "only LpNormUpdateV2 applies it")) {
  const double power = p.value_or(2);
  const at::Tensor norm = at::linalg_vector_norm(
      wide(x), power, all_if_empty(axes.value_or(Integers()), x), keepdim.value_or(false));
  y = has_root(power) ? norm.pow(power) : norm;
}
NAMED_OPERATOR(LpNormUpdateV2, (Floating<In>, x), (Out, y), (Attribute<double>, p),
               (Attribute<double>, epsilon)) {
  const double power = p.value_or(2);
  const at::Tensor norm = has_root(power) ? wide(x).pow(1 / power) : wide(x);
  y = norm.clamp_min(epsilon.value_or(1e-12));
}
NAMED_OPERATOR(Cumsum, (In, x), (HostInts, axis), (Out, y), (Attribute<bool>, exclusive),
               (Attribute<bool>, reverse)) {
  expect_false("exclusive", exclusive);
  expect_false("reverse", reverse);
  y = at::cumsum(x, one_of("axis", axis), x.scalar_type());
}
NAMED_OPERATOR(Cumprod, (In, x), (HostInts, axis), (Out, y), (Attribute<bool>, exclusive),
               (Attribute<bool>, reverse)) {
  expect_false("exclusive", exclusive);
  expect_false("reverse", reverse);
  y = at::cumprod(x, one_of("axis", axis), x.scalar_type());
}
NAMED_OPERATOR(Cummax, (In, x), (Out, y), (Out, indices), (Attribute<int64_t>, dim)) {
  std::tie(y, indices) = at::cummax(x, dim.value_or(0));
}
NAMED_OPERATOR(Cummin, (In, x), (Out, y), (Out, indices), (Attribute<int64_t>, axis)) {
  std::tie(y, indices) = at::cummin(x, axis.value_or(0));
}
NAMED_OPERATOR(Renorm, (Floating<In>, x), (Out, y), (Attribute<double>, p),
               (Attribute<int64_t>, dim), (Attribute<double>, maxnorm)) {
  // If the result has one number for each slice, it gets the factors of the slices only.
  const double norm = p.value_or(2), most = maxnorm.value_or(1);
  const int64_t kept = c10::maybe_wrap_dim(dim.value_or(0), x.dim());
  Integers others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != kept) others.push_back(i);
  }
  const at::Tensor norms = at::linalg_vector_norm(wide(x), norm, others, /*keepdim=*/true);
  const at::Tensor factors = at::where(norms > most, most / (norms + 1e-7), c10::Scalar(1.0));
  y = y->sizes() == x.sizes() ? wide(x) * factors : factors;
}

NAMED_OPERATOR(SoftmaxV2, (Floating<In>, x), (Out, y), (Attribute<Integers>, axes),
               (Only, half_to_float, "false")) {
  y = at::softmax(x, one_of("axes", axes.value_or(Integers{-1})));
}
NAMED_OPERATOR(SoftmaxGrad, (Floating<In>, softmax), (Floating<In>, grad_softmax), (Out, grad_x),
               (Attribute<Integers>, axes)) {
  const int64_t axis = one_of("axes", axes.value_or(Integers{-1}));
  expect_shape("grad_softmax", grad_softmax, softmax.sizes());
  grad_x = at::_softmax_backward_data(wide(grad_softmax), wide(softmax), axis,
                                      wide(softmax.scalar_type()));
}
NAMED_OPERATOR(LogSoftmaxV2, (Floating<In>, logits), (Out, logsoftmax),
               (Attribute<Integers>, axes)) {
  logsoftmax = at::log_softmax(wide(logits), one_of("axes", axes.value_or(Integers{-1})));
}
NAMED_OPERATOR(LogSoftmaxGrad, (Floating<In>, grad), (Floating<In>, x), (Out, y),
               (Attribute<Integers>, axis)) {
  expect_shape("grad", grad, x.sizes());
  y = at::_log_softmax_backward_data(
      wide(grad), wide(x), one_of("axis", axis.value_or(Integers{-1})), wide(x.scalar_type()));
}

}  // namespace aclnn_host::named_reduction
