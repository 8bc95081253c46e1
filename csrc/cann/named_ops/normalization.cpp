// Normalisations and their gradients.

#include <ATen/ExpandUtils.h>

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_normalization {

namespace {

constexpr double kEpsilonOfGradient = 1e-5;

Integers dims_from(const at::Tensor& x, int64_t first) {
  Integers dims;
  for (int64_t i = first; i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

// The mean and the variance over the last dimensions, which are kept with size 1.
std::pair<at::Tensor, at::Tensor> moments_of(const at::Tensor& x, int64_t first) {
  const Integers dims = dims_from(x, first);
  const at::Tensor mean = x.mean(dims, /*keepdim=*/true);
  return {mean, at::square(x - mean).mean(dims, /*keepdim=*/true)};
}

int64_t axis_of(const std::optional<int64_t>& axis, const at::Tensor& x) {
  return c10::maybe_wrap_dim(axis.value_or(0), x.dim());
}

// Requires the last dimensions of x.
void expect_last_dims(const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  EXPECT(tensor.dim() <= x.dim() && x.sizes().slice(x.dim() - tensor.dim()) == tensor.sizes(), name,
         " has shape ", tensor.sizes(), ", expected the last dimensions of x, which is ",
         x.sizes());
}

// The last dimensions of x, which gamma has.
Integers normalized_dims(const at::Tensor& x, const at::Tensor& gamma) {
  expect_last_dims("gamma", gamma, x);
  return dims_from(x, x.dim() - gamma.dim());
}

// Requires the shape of x with size 1 in the normalised dimensions.
void expect_statistic(const char* name, const at::Tensor& statistic, const at::Tensor& x,
                      const Integers& dims) {
  Integers shape = x.sizes().vec();
  for (const int64_t dim : dims) shape[static_cast<size_t>(dim)] = 1;
  expect_shape(name, statistic, shape);
}

// Reshapes x to one row for each group of channels (dimension 1).
at::Tensor in_groups(const at::Tensor& x, int64_t groups) {
  EXPECT(x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0, "x has shape ", x.sizes(),
         ", expected channels in dimension 1, a multiple of num_groups, ", groups);
  return x.reshape({x.size(0), groups, x.size(0) == 0 ? 0 : x.numel() / (x.size(0) * groups)});
}

// Reshapes one number for each channel (dimension 1) to broadcast to x.
at::Tensor per_channel(const char* name, const at::Tensor& numbers, const at::Tensor& x,
                       const char* x_name = "x") {
  EXPECT(x.dim() >= 2, x_name, " has shape ", x.sizes(), ", expected channels in dimension 1");
  expect_shape(name, numbers, {x.size(1)});
  Integers shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  return wide(numbers).view(shape);
}

struct GroupNormalization {
  at::Tensor mean, variance, rstd, result;

  GroupNormalization(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                     const std::optional<int64_t>& groups, double epsilon) {
    const at::Tensor grouped = in_groups(wide(x), groups.value_or(1));
    std::tie(mean, variance) = moments_of(grouped, 2);
    rstd = at::rsqrt(variance + epsilon);
    const at::Tensor normal = ((grouped - mean) * rstd).view(x.sizes());
    result = normal * per_channel("gamma", gamma, x) + per_channel("beta", beta, x);
  }
};

}  // namespace

NAMED_OPERATOR(LayerNorm, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, beta), (Out, y),
               (Out, mean), (Out, variance), (Attribute<int64_t>, begin_norm_axis),
               (Unused<Attribute<int64_t>>, begin_params_axis,
                "the shapes of gamma and beta say it"),
               (Attribute<double>, epsilon)) {
  expect_last_dims("gamma", gamma, x);
  expect_like("beta", beta, gamma);
  const auto moments = moments_of(wide(x), axis_of(begin_norm_axis, x));
  const at::Tensor scale = at::rsqrt(moments.second + epsilon.value_or(1e-7));
  y = (wide(x) - moments.first) * scale * wide(gamma) + wide(beta);
  std::tie(mean, variance) = moments;
}
NAMED_OPERATOR(LayerNormV3, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, beta),
               (Out, y), (Out, mean), (Out, rstd), (Attribute<int64_t>, begin_norm_axis),
               (Unused<Attribute<int64_t>>, begin_params_axis,
                "the shapes of gamma and beta say it"),
               (Attribute<double>, epsilon)) {
  expect_last_dims("gamma", gamma, x);
  expect_like("beta", beta, gamma);
  const auto [average, spread] = moments_of(wide(x), axis_of(begin_norm_axis, x));
  const at::Tensor scale = at::rsqrt(spread + epsilon.value_or(1e-5));
  y = (wide(x) - average) * scale * wide(gamma) + wide(beta);
  mean = average;
  rstd = scale;
}
NAMED_OPERATOR(LayerNormGrad, (Floating<In>, dy), (Floating<In>, x), (Floating<In>, variance),
               (Floating<In>, mean), (Floating<In>, gamma), (Out, pd_x), (Out, pd_gamma),
               (Out, pd_beta)) {
  const Integers dims = normalized_dims(x, gamma);
  expect_shape("dy", dy, x.sizes());
  expect_statistic("variance", variance, x, dims);
  expect_statistic("mean", mean, x, dims);
  const at::Tensor scale = at::rsqrt(wide(variance) + kEpsilonOfGradient);
  const at::Tensor normal = (wide(x) - wide(mean)) * scale;
  const at::Tensor inner = wide(dy) * wide(gamma);
  const at::Tensor centred =
      inner - inner.mean(dims, true) - normal * (inner * normal).mean(dims, true);
  pd_x = centred * scale;
  pd_gamma = at::sum_to(wide(dy) * normal, gamma.sizes());
  pd_beta = at::sum_to(wide(dy), gamma.sizes());
}
NAMED_OPERATOR(RmsNorm, (Floating<In>, x), (Floating<In>, gamma), (Out, y), (Out, rstd),
               (Attribute<double>, epsilon)) {
  const Integers dims = normalized_dims(x, gamma);
  const at::Tensor scale =
      at::rsqrt(at::square(wide(x)).mean(dims, /*keepdim=*/true) + epsilon.value_or(1e-6));
  y = wide(x) * scale * wide(gamma);
  rstd = scale;
}
NAMED_OPERATOR(RmsNormGrad, (Floating<In>, dy), (Floating<In>, x), (Floating<In>, rstd),
               (Floating<In>, gamma), (Out, dx), (Out, dgamma)) {
  const Integers dims = normalized_dims(x, gamma);
  expect_shape("dy", dy, x.sizes());
  expect_statistic("rstd", rstd, x, dims);
  const at::Tensor normal = wide(x) * wide(rstd);
  const at::Tensor inner = wide(dy) * wide(gamma);
  dx = (inner - normal * (inner * normal).mean(dims, true)) * wide(rstd);
  dgamma = at::sum_to(wide(dy) * normal, gamma.sizes());
}
// Without data_format it is NCHW, for the calls of torch_npu, instead of CANN's NHWC.
NAMED_OPERATOR(GroupNorm, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, beta), (Out, y),
               (Out, mean), (Out, variance), (Attribute<int64_t>, num_groups),
               (Only, data_format, "NCHW"), (Attribute<double>, eps),
               (Unused<Attribute<bool>>, is_training, "reserved")) {
  const GroupNormalization normalized(x, gamma, beta, num_groups, eps.value_or(1e-4));
  y = normalized.result;
  mean = normalized.mean.reshape(mean->sizes());
  variance = normalized.variance.reshape(variance->sizes());
}
NAMED_OPERATOR(GroupNormSwish, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, beta),
               (Out, y), (Out, mean), (Out, rstd), (Attribute<int64_t>, num_groups),
               (Only, data_format, "NCHW"), (Attribute<double>, eps),
               (Attribute<bool>, activate_swish), (Attribute<double>, swish_scale)) {
  const GroupNormalization normalized(x, gamma, beta, num_groups, eps.value_or(1e-5));
  const bool is_swish = activate_swish.value_or(true);
  y = is_swish ? normalized.result * at::sigmoid(normalized.result * swish_scale.value_or(1))
               : normalized.result;
  mean = normalized.mean.reshape(mean->sizes());
  rstd = normalized.rstd.reshape(rstd->sizes());
}
NAMED_OPERATOR(BNInfer, (Floating<In>, x), (Floating<In>, scale), (Floating<In>, offset),
               (Floating<In>, mean), (Floating<In>, variance), (Out, y),
               (Attribute<double>, epsilon)) {
  const at::Tensor of_channels =
      at::rsqrt(per_channel("variance", variance, x) + epsilon.value_or(1e-4));
  y = (wide(x) - per_channel("mean", mean, x)) * of_channels * per_channel("scale", scale, x) +
      per_channel("offset", offset, x);
}
NAMED_OPERATOR(BNInferGrad, (Floating<In>, grads), (Floating<In>, scale),
               (Floating<In>, batch_variance), (Out, x_backprop), (Attribute<double>, epsilon)) {
  x_backprop = wide(grads) * per_channel("scale", scale, grads, "grads") *
               at::rsqrt(per_channel("batch_variance", batch_variance, grads, "grads") +
                         epsilon.value_or(1e-4));
}
NAMED_OPERATOR(BNTrainingReduce, (Floating<In>, x), (Out, sum), (Out, square_sum)) {
  EXPECT(x.dim() >= 2, "x has shape ", x.sizes(), ", expected channels in dimension 1");
  Integers dims{0};
  for (int64_t i = 2; i < x.dim(); ++i) dims.push_back(i);
  sum = wide(x).sum(dims).view(sum->sizes());
  square_sum = at::square(wide(x)).sum(dims).view(square_sum->sizes());
}
// Normalises each sequence of (B, C, T) over its steps: subtracts the mean and divides by the
// standard deviation.
NAMED_OPERATOR(NormalizeBatch, (Floating<In>, input_x), (IndexIn, seq_len), (Out, output_y),
               (Attribute<std::string>, normalize_type), (Attribute<double>, epsilon)) {
  expect_dims("input_x", input_x, 3);
  expect_shape("seq_len", seq_len, {input_x.size(0)});
  const std::string type = normalize_type.value_or("per_feature");
  expect_text("normalize_type", type, {"per_feature", "all_features"});
  const at::Tensor x = wide(input_x);
  const at::Tensor steps = at::arange(x.size(2), seq_len.options());
  const at::Tensor is_step = (steps < seq_len.unsqueeze(1)).unsqueeze(1);
  const Integers dims = type == "per_feature" ? Integers{2} : Integers{1, 2};
  const at::Tensor count = seq_len.view({-1, 1, 1}) * (type == "per_feature" ? 1 : input_x.size(1));
  const auto sum = [&](const at::Tensor& numbers) {
    return at::where(is_step, numbers, c10::Scalar(0.0)).sum(dims, /*keepdim=*/true);
  };
  const at::Tensor centred = x - sum(x) / count;
  const at::Tensor deviation = (sum(centred * centred) / (count - 1)).sqrt();
  output_y = centred / (deviation + epsilon.value_or(1e-5));
}

}  // namespace aclnn_host::named_normalization
