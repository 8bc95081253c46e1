// Gradients of normalisations that do more than one of ATen's. 16-bit tensors are widened once.

#include <ATen/TensorOperators.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/row.h"

namespace aclnn_host::normalization_gradients_rows {

namespace {

using Sizes = std::vector<int64_t>;

// A statistic or weight of FastBatchNormBackward, or `value` for each channel where there is none.
at::Tensor or_filled(const char* name, const std::optional<at::Tensor>& values,
                     const at::Tensor& input, double value) {
  if (!values) {
    return at::ones({input.size(1)}, input.options().dtype(wide(input.scalar_type()))) * value;
  }
  expect_dtype(name, *values, input);
  expect_shape(name, *values, {input.size(1)});
  return wide(*values).contiguous();
}

// scale and shift of AdaLayerNorm, one row for each sequence, as [B..., 1, H] beside [B..., S, H].
at::Tensor per_sequence(const char* name, const at::Tensor& factor, const at::Tensor& input) {
  expect_dtype(name, factor, input);
  const at::Tensor aligned = factor.dim() == input.dim() - 1 ? factor.unsqueeze(-2) : factor;
  Sizes expected = input.sizes().vec();
  expected[expected.size() - 2] = 1;
  EXPECT(aligned.sizes() == expected, name, " has shape ", factor.sizes(), ", expected ", expected,
         " with or without the dimension of size 1");
  return wide(aligned);
}

// The sum over all rows of the last dimension.
at::Tensor sum_of_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).sum(0);
}

// A weight of AdaLayerNormBackward: that of a dtype which goes with input's.
void expect_weight(const char* name, const at::Tensor& weight, const at::Tensor& input) {
  if (weight.scalar_type() != at::kFloat) expect_dtype(name, weight, input);
  expect_shape(name, weight, {input.size(-1)});
}

}  // namespace

// What is null counts as 0 (means) or 1 (variances, inverse deviations and weight).
ACLNN(FastBatchNormBackward, (Image<FloatIn>, gradOut), (Image<FloatIn>, input),
      (OptionalIn, weight), (OptionalIn, runningMean), (OptionalIn, runningVar),
      (OptionalIn, saveMean), (OptionalIn, saveInvstd), (bool, training), (double, eps),
      (Bools, outputMask), (int, version), (Image<OptionalOut>, gradInput),
      (OptionalOut, gradWeight), (OptionalOut, gradBias)) {
  expect_dims("input", input, 2, 8);
  expect_like("gradOut", gradOut, input);
  EXPECT(outputMask.size() == 3, "outputMask has ", outputMask.size(), " values, expected 3");
  EXPECT(version == 0 || version == 1, "version is ", version.value(), ", expected 0 or 1");
  require_asked("gradInput", gradInput, "outputMask[0]", outputMask[0]);
  require_asked("gradWeight", gradWeight, "outputMask[1]", outputMask[1]);
  require_asked("gradBias", gradBias, "outputMask[2]", outputMask[2]);
  if (gradInput && outputMask[0]) expect_like("gradInput", *gradInput, input);
  if (gradWeight && outputMask[1]) expect_dtype(*gradWeight, input);
  if (gradBias && outputMask[2]) expect_dtype(*gradBias, input);
  const at::Tensor scale = or_filled("weight", weight, input, 1);
  const at::Tensor mean = or_filled("runningMean", runningMean, input, 0);
  const at::Tensor variance = or_filled("runningVar", runningVar, input, 1);
  const at::Tensor batch_mean = or_filled("saveMean", saveMean, input, 0);
  const at::Tensor batch_invstd = or_filled("saveInvstd", saveInvstd, input, 1);
  if (input.numel() == 0) {
    const at::Tensor nothing = at::zeros_like(scale);
    if (outputMask[1]) gradWeight = nothing;
    if (outputMask[2]) gradBias = nothing;
    return;
  }
  const auto [to_input, to_weight, to_bias] = at::native_batch_norm_backward(
      wide(gradOut), wide(input), scale, mean, variance, batch_mean, batch_invstd, training, eps,
      {outputMask[0], outputMask[1], outputMask[2]});
  if (outputMask[0]) gradInput = to_input;
  if (outputMask[1]) gradWeight = to_weight;
  if (outputMask[2]) gradBias = to_bias;
}

// The sums over a group are divided by the number of its elements, which the document's formula
// leaves out: without that it is no gradient.
ACLNN(GroupNormSwishGrad, (Image<FloatIn>, dy), (FloatIn, mean), (FloatIn, rstd),
      (Image<FloatIn>, x), (FloatIn, gamma), (FloatIn, beta), (int64_t, numGroups),
      (char*, dataFormatOptional), (double, swishScale), (bool, dgammaIsRequire),
      (bool, dbetaIsRequire), (Image<Out>, dxOut), (Out, dgammaOut), (Out, dbetaOut)) {
  expect_dims("dy", dy, 2, 8);
  expect_like("x", x, dy);
  expect_like("dxOut", dxOut, dy);
  EXPECT(dy.numel() > 0, "dy has shape ", dy.sizes(), ", expected at least one element");
  const int64_t samples = dy.size(0);
  const int64_t channels = dy.size(1);
  const int64_t groups = numGroups.value();
  EXPECT(groups > 0 && channels % groups == 0 && channels / groups <= 4000, "numGroups is ", groups,
         ", expected a divisor of ", channels,
         ", the number of channels, with at most 4000 of them in a group");
  const auto beside = [&](const char* name, const at::Tensor& tensor, int64_t count) {
    expect_dtype(name, tensor, dy);
    EXPECT(tensor.numel() == count, name, " has shape ", tensor.sizes(), ", expected ", count,
           " elements");
    return wide(tensor);
  };
  const Sizes by_group{samples, groups, channels / groups, -1};
  const auto statistic = [&](const char* name, const at::Tensor& tensor) {
    return beside(name, tensor, samples * groups).reshape({samples, groups, 1, 1});
  };
  const auto channel = [&](const char* name, const at::Tensor& tensor) {
    return beside(name, tensor, channels).reshape({1, groups, channels / groups, 1});
  };
  const at::Tensor deviation = statistic("rstd", rstd);
  const at::Tensor scale = channel("gamma", gamma);
  const at::Tensor normal = (wide(x).reshape(by_group) - statistic("mean", mean)) * deviation;
  const at::Tensor place = (normal * scale + channel("beta", beta)) * swishScale.value();
  const at::Tensor gate = at::sigmoid(place);
  const at::Tensor gradient = wide(dy).reshape(by_group) * (gate * (place * (1 - gate) + 1));
  const at::Tensor weighted = gradient * scale;
  const at::Tensor average = weighted.mean({2, 3}, /*keepdim=*/true);
  const at::Tensor average_of_normal = (weighted * normal).mean({2, 3}, /*keepdim=*/true);
  const at::Tensor result = deviation * (weighted - normal * average_of_normal - average);
  const auto per_weight = [&](const char* name, Output& out, const at::Tensor& each) {
    beside(name, out, channels);
    out = each.sum({0, 3}).reshape(out->sizes());
  };
  dxOut = result.reshape(dy.sizes());
  if (dgammaIsRequire) per_weight("dgammaOut", dgammaOut, gradient * normal);
  if (dbetaIsRequire) per_weight("dbetaOut", dbetaOut, gradient);
}

ACLNN(AdaLayerNormBackward, (FloatIn, gradOut), (FloatIn, input), (Ints, normalizedShape),
      (FloatIn, rstd), (FloatIn, mean), (FloatIn, scale), (FloatIn, shift),
      (OptionalIn, weightOptional), (OptionalIn, biasOptional), (OptionalOut, gradInputOut),
      (OptionalOut, gradScaleOut), (OptionalOut, gradShiftOut), (OptionalOut, gradWeightOut),
      (OptionalOut, gradBiasOut)) {
  expect_dims("input", input, 2, 8);
  expect_like("gradOut", gradOut, input);
  EXPECT(input.numel() > 0, "input has shape ", input.sizes(), ", expected at least one element");
  EXPECT(normalizedShape.size() == 1 && normalizedShape[0] == input.size(-1), "normalizedShape is ",
         normalizedShape, ", expected [", input.size(-1), "], the last dimension of input");
  Sizes rows = input.sizes().vec();
  rows.back() = 1;
  for (const auto& [name, statistic] : {std::pair("rstd", rstd), std::pair("mean", mean)}) {
    expect_dtype(name, statistic, input);
    expect_shape(name, statistic, rows);
  }
  per_sequence("shift", shift, input);
  if (weightOptional) expect_weight("weightOptional", *weightOptional, input);
  if (biasOptional) expect_weight("biasOptional", *biasOptional, input);
  if (weightOptional && biasOptional) {
    expect_dtype("biasOptional", *biasOptional, *weightOptional);
  }
  if (gradInputOut) expect_dtype(*gradInputOut, input);
  if (gradScaleOut) expect_like("gradScaleOut", *gradScaleOut, scale);
  if (gradShiftOut) expect_like("gradShiftOut", *gradShiftOut, shift);
  for (const OptionalOutput& gradient : {gradWeightOut, gradBiasOut}) {
    if (!gradient) continue;
    expect_weight((*gradient).name(), *gradient, input);
    if (weightOptional) expect_dtype(*gradient, *weightOptional);
  }

  const at::Tensor gradient = wide(gradOut);
  const at::Tensor normal = (wide(input) - wide(mean)) * wide(rstd);
  const at::Tensor scaled = gradient * (per_sequence("scale", scale, input) + 1);
  const at::Tensor weighted = weightOptional ? scaled * wide(*weightOptional) : scaled;
  const at::Tensor average = weighted.mean(-1, /*keepdim=*/true);
  const at::Tensor average_of_normal = (weighted * normal).mean(-1, /*keepdim=*/true);
  at::Tensor affine = weightOptional ? normal * wide(*weightOptional) : normal;
  if (biasOptional) affine = affine + wide(*biasOptional);
  gradInputOut = (weighted - average - normal * average_of_normal) * wide(rstd);
  gradScaleOut = (gradient * affine).sum(-2).reshape(scale.sizes());
  gradShiftOut = gradient.sum(-2).reshape(shift.sizes());
  gradWeightOut = sum_of_rows(scaled * normal);
  gradBiasOut = sum_of_rows(scaled);
}

}  // namespace aclnn_host::normalization_gradients_rows
