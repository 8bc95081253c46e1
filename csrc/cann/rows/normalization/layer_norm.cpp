// Layer normalisation, fused with a sum before it or a modulation after it. Sums and statistics are
// FP32 and not rounded in between.

#include "cann/rows/normalization/dimensions.h"
#include "cann/rows/row.h"

namespace aclnn_host::normalization_layer_norm_rows {

namespace {

// The sum over the dimensions that gamma lacks, in new memory.
at::Tensor sum_to(const at::Tensor& x, const at::Tensor& gamma) {
  return x.dim() == gamma.dim() ? x.clone() : x.sum_to_size(gamma.sizes());
}

struct LayerNorm {
  at::Tensor mean, rstd, normalized;
};
LayerNorm layer_norm(const at::Tensor& x, double epsilon, const Dimensions& dims) {
  const at::Tensor mean = dims.mean(x);
  const at::Tensor centred = x - mean;
  const at::Tensor rstd = (dims.mean(centred.square()) + epsilon).rsqrt();
  return {mean, rstd, centred * rstd};
}

// The gradient of the tensor that was normalised, without the factors after rstd.
at::Tensor layer_norm_gradient(const at::Tensor& gradient, const at::Tensor& normalized,
                               const at::Tensor& rstd, const Dimensions& dims) {
  return rstd * (gradient - dims.mean(gradient) - normalized * dims.mean(gradient * normalized));
}

// The type of x1 + x2 in the document's table, which does not mix FLOAT16 and BFLOAT16.
at::ScalarType sum_dtype(const at::Tensor& x1, const at::Tensor& x2) {
  const at::ScalarType a = x1.scalar_type(), b = x2.scalar_type();
  EXPECT(a == b || a == at::kFloat || b == at::kFloat, "x2 has dtype ", b, " and x1 has ", a,
         ", expected the same or one of them FLOAT");
  return c10::promoteTypes(a, b);
}

// Checks a weight of the last dimension, whose dtype is the input's or FLOAT.
void expect_weight(const char* name, const at::Tensor& weight, const at::Tensor& input) {
  if (weight.scalar_type() != at::kFloat) expect_dtype(name, weight, input);
  expect_shape(name, weight, {input.size(-1)});
}

// The scale and shift of AdaLayerNorm and Modulate, one for each sequence, broadcastable to x:
// [B..., S, H].
at::Tensor per_sequence(const char* name, const at::Tensor& factor, const at::Tensor& x) {
  const at::Tensor aligned = factor.dim() == x.dim() - 1 ? factor.unsqueeze(-2) : factor;
  std::vector<int64_t> expected = x.sizes().vec();
  expected[expected.size() - 2] = 1;
  EXPECT(aligned.sizes() == expected, name, " has shape ", factor.sizes(), ", expected ", expected,
         " with or without the dimension of size 1");
  return wide(aligned);
}

// LayerNorm over the last dimension of x, times 1 + scale, plus shift.
LayerNorm adaptive(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                   const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                   double epsilon, Output& out) {
  expect_dims("x", x, 2, 8);
  if (weight) expect_weight("weightOptional", *weight, x);
  if (bias) expect_weight("biasOptional", *bias, x);
  const Dimensions dims("x", x, {x.size(-1)});
  LayerNorm norm = layer_norm(wide(x), epsilon, dims);
  at::Tensor result = norm.normalized;
  if (weight) result = result * wide(*weight);
  if (bias) result = result + wide(*bias);
  out = result * (per_sequence("scale", scale, x) + 1) + per_sequence("shift", shift, x);
  return norm;
}

// The three results of a layer norm of one tensor.
void normalize(const at::Tensor& input, at::IntArrayRef shape,
               const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
               double eps, Output& out, OptionalOutput& mean_out, OptionalOutput& rstd_out) {
  const auto read = [&](const char* name, const std::optional<at::Tensor>& tensor) {
    if (!tensor) return tensor;
    if (tensor->scalar_type() != at::kFloat) expect_dtype(name, *tensor, input);
    return std::optional(wide(*tensor).contiguous());
  };
  const auto factors = read("weightOptional", weight), addends = read("biasOptional", bias);
  const auto [result, mean, rstd] =
      at::native_layer_norm(wide(input).contiguous(), shape, factors, addends, eps);
  out = result;
  mean_out = mean;
  rstd_out = rstd;
}

}  // namespace

ACLNN(FastLayerNorm, (Floating<In>, input), (Ints, normalizedShape), (Optional<In>, weightOptional),
      (SameDtype<Optional<In>>, biasOptional, "weightOptional"), (double, eps),
      (Like<Out>, out, "input"), (Optional<Out>, meanOutOptional),
      (Optional<Out>, rstdOutOptional)) {
  normalize(input, normalizedShape, weightOptional, biasOptional, eps, out, meanOutOptional,
            rstdOutOptional);
}
// Deviation of LayerNormWithImplMode: Every implMode is computed in FLOAT; CANN's modes trade
// precision for speed. implMode is 0 or 1, or 2 for FLOAT16 tensors; others are 161002.
ACLNN(LayerNormWithImplMode, (Floating<In>, input), (Ints, normalizedShape),
      (Optional<In>, weightOptional), (SameDtype<Optional<In>>, biasOptional, "weightOptional"),
      (double, eps), (Like<Out>, out, "input"), (Optional<Out>, meanOutOptional),
      (Optional<Out>, rstdOutOptional), (int32_t, implMode)) {
  expect_one_of("implMode", implMode, {0, 1, 2}, " (precise, fast or FLOAT16)");
  const bool is_half = input.scalar_type() == at::kHalf &&
                       (!weightOptional || weightOptional->scalar_type() == at::kHalf) &&
                       (!biasOptional || biasOptional->scalar_type() == at::kHalf);
  EXPECT(implMode != 2 || is_half, "implMode is 2, expected all inputs to be FLOAT16");
  normalize(input, normalizedShape, weightOptional, biasOptional, eps, out, meanOutOptional,
            rstdOutOptional);
}

// biasOptional has the shape of gamma or of x1. xOut is written if additionalOutput is true.
// Behaviour of AddLayerNorm*, AdaLayerNorm*, DeepNorm*, *AddRmsNorm*: Everything is computed in
// FLOAT, and each result is rounded once. The sum before the norm is not rounded in between.
ACLNN(AddLayerNorm, (Floating<In>, x1), (SameShape<Floating<In>>, x2, "x1"), (Floating<In>, gamma),
      (Like<Floating<In>>, beta, "gamma"), (Optional<In>, biasOptional), (double, epsilon),
      (bool, additionalOutput), (SameShape<Out>, yOut, "x1"), (Out, meanOut), (Out, rstdOut),
      (SameShape<Out>, xOut, "x1")) {
  const at::ScalarType dtype = sum_dtype(x1, x2);
  const Dimensions dims("x1", x1, gamma.sizes());
  if (gamma.scalar_type() != at::kFloat) expect_dtype("gamma", gamma, dtype);
  expect_dtype("meanOut", meanOut, at::kFloat);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  expect_dtype("yOut", yOut, dtype);
  expect_dtype("xOut", xOut, dtype);
  at::Tensor sum = wide(x1) + wide(x2);
  if (biasOptional) {
    expect_dtype("biasOptional", *biasOptional, dtype);
    const bool is_whole = biasOptional->dim() == x1.dim();
    expect_shape("biasOptional", *biasOptional, is_whole ? x1.sizes() : gamma.sizes());
    sum = sum + wide(*biasOptional);
  }
  const LayerNorm norm = layer_norm(sum, epsilon, dims);
  yOut = norm.normalized * wide(gamma) + wide(beta);
  meanOut = norm.mean;
  rstdOut = norm.rstd;
  if (additionalOutput) xOut = sum;
}
ACLNN(AddLayerNormGrad, (Floating<In>, dy), (Like<Floating<In>>, x1, "dy"),
      (Like<Floating<In>>, x2, "dy"), (In, rstd), (In, mean),
      (SameDtype<Floating<In>>, gamma, "dy"), (Like<Optional<In>>, dsumOptional, "dy"),
      (Like<Out>, dxOut, "dy"), (Out, dgammaOut), (Out, dbetaOut)) {
  const Dimensions dims("dy", dy, gamma.sizes());
  const at::Tensor scale = dims.statistic("rstd", rstd);
  const at::Tensor normalized = (wide(x1) + wide(x2) - dims.statistic("mean", mean)) * scale;
  at::Tensor gradient = layer_norm_gradient(wide(dy) * wide(gamma), normalized, scale, dims);
  if (dsumOptional) gradient = gradient + wide(*dsumOptional);
  const at::Tensor dgamma = sum_to(wide(dy) * normalized, gamma);
  const at::Tensor dbeta = sum_to(wide(dy), gamma);
  dxOut = gradient;
  dgammaOut = dgamma;
  dbetaOut = dbeta;
}

// The layer norm of alpha * x + gx.
ACLNN(DeepNorm, (Floating<In>, x), (Like<Floating<In>>, gx, "x"),
      (Like<Floating<In>>, beta, "gamma"), (SameDtype<Floating<In>>, gamma, "x"), (double, alpha),
      (double, epsilon), (Out, meanOut), (Out, rstdOut), (Like<Out>, yOut, "x")) {
  const Dimensions dims("x", x, gamma.sizes());
  EXPECT(gamma.dim() < x.dim(), "gamma has ", gamma.dim(), " dimensions, expected fewer than ",
         x.dim(), " as x has");
  expect_dtype("meanOut", meanOut, at::kFloat);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const LayerNorm norm = layer_norm(wide(x) * alpha.value() + wide(gx), epsilon, dims);
  yOut = norm.normalized * wide(gamma) + wide(beta);
  meanOut = norm.mean;
  rstdOut = norm.rstd;
}
ACLNN(DeepNormGrad, (Like<Floating<In>>, dy, "x"), (Floating<In>, x), (Like<Floating<In>>, gx, "x"),
      (SameDtype<Floating<In>>, gamma, "x"), (In, mean), (In, rstd), (double, alpha),
      (Like<Out>, dxOut, "x"), (Like<Out>, dgxOut, "x"), (Out, dbetaOut), (Out, dgammaOut)) {
  const Dimensions dims("x", x, gamma.sizes());
  const at::Tensor scale = dims.statistic("rstd", rstd);
  const at::Tensor sum = wide(x) * alpha.value() + wide(gx);
  const at::Tensor normalized = (sum - dims.statistic("mean", mean)) * scale;
  const at::Tensor gradient = layer_norm_gradient(wide(dy) * wide(gamma), normalized, scale, dims);
  const at::Tensor dgamma = sum_to(wide(dy) * normalized, gamma);
  const at::Tensor dbeta = sum_to(wide(dy), gamma);
  dxOut = gradient * alpha.value();
  dgxOut = gradient;
  dbetaOut = dbeta;
  dgammaOut = dgamma;
}

ACLNN(AdaLayerNorm, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (SameDtype<Floating<In>>, shift, "x"), (SameDtype<Optional<In>>, weightOptional, "x"),
      (SameDtype<Optional<In>>, biasOptional, "x"), (double, epsilon), (Like<Out>, out, "x")) {
  adaptive(x, scale, shift, weightOptional, biasOptional, epsilon, out);
}
ACLNN(AdaLayerNormV2, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (SameDtype<Floating<In>>, shift, "x"), (Optional<In>, weightOptional),
      (SameDtype<Optional<In>>, biasOptional, "weightOptional"), (double, epsilon),
      (Like<Out>, out, "x"), (SameDtype<Optional<Out>>, meanOutOptional, "x"),
      (SameDtype<Optional<Out>>, rstdOutOptional, "x")) {
  const LayerNorm norm = adaptive(x, scale, shift, weightOptional, biasOptional, epsilon, out);
  meanOutOptional = norm.mean;
  rstdOutOptional = norm.rstd;
}
ACLNN(AdaLayerNormBackward, (Like<Floating<In>>, gradOut, "input"), (Floating<In>, input),
      (Ints, normalizedShape), (SameDtype<Floating<In>>, rstd, "input"),
      (SameDtype<Floating<In>>, mean, "input"), (SameDtype<Floating<In>>, scale, "input"),
      (SameDtype<Floating<In>>, shift, "input"), (Optional<In>, weightOptional),
      (SameDtype<Optional<In>>, biasOptional, "weightOptional"),
      (SameDtype<Optional<Out>>, gradInputOut, "input"),
      (Like<Optional<Out>>, gradScaleOut, "scale"), (Like<Optional<Out>>, gradShiftOut, "shift"),
      (SameDtype<Optional<Out>>, gradWeightOut, "weightOptional"),
      (SameDtype<Optional<Out>>, gradBiasOut, "weightOptional")) {
  expect_dims("input", input, 2, 8);
  expect_elements("input", input);
  EXPECT(normalizedShape.size() == 1 && normalizedShape[0] == input.size(-1), "normalizedShape is ",
         normalizedShape, ", expected [", input.size(-1), "], the last dimension of input");
  std::vector<int64_t> rows = input.sizes().vec();
  rows.back() = 1;
  expect_shape("rstd", rstd, rows);
  expect_shape("mean", mean, rows);
  per_sequence("shift", shift, input);
  if (weightOptional) expect_weight("weightOptional", *weightOptional, input);
  if (biasOptional) expect_weight("biasOptional", *biasOptional, input);
  if (gradWeightOut) expect_weight("gradWeightOut", *gradWeightOut, input);
  if (gradBiasOut) expect_weight("gradBiasOut", *gradBiasOut, input);

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
  gradWeightOut = (scaled * normal).sum_to_size({input.size(-1)});
  gradBiasOut = scaled.sum_to_size({input.size(-1)});
}

ACLNN(Modulate, (Floating<In>, self), (SameDtype<Optional<In>>, scaleOptional, "self"),
      (SameDtype<Optional<In>>, shiftOptional, "self"), (Like<Out>, out, "self")) {
  expect_dims("self", self, 3);
  EXPECT(scaleOptional || shiftOptional,
         "scaleOptional and shiftOptional are null, expected at least one of them");
  for (const auto& factor : {scaleOptional, shiftOptional}) {
    EXPECT(self.numel() > 0 || !factor || factor->numel() == 0,
           "self is empty and scaleOptional or shiftOptional is not, expected empty ones");
  }
  at::Tensor result = wide(self);
  if (scaleOptional) result = result * (per_sequence("scaleOptional", *scaleOptional, self) + 1);
  if (shiftOptional) result = result + per_sequence("shiftOptional", *shiftOptional, self);
  out = result;
}
// The factor of grad_input is scale, as documented, not 1 + scale as in the forward pass.
ACLNN(ModulateBackward, (Floating<In>, grad_output), (Like<Floating<In>>, input, "grad_output"),
      (SameDtype<Optional<In>>, scale, "input"), (SameDtype<Optional<In>>, shift, "input"),
      (Like<Out>, grad_input, "input"), (Optional<Out>, grad_scale), (Optional<Out>, grad_shift)) {
  expect_dims("grad_output", grad_output, 3);
  const at::Tensor gradient = wide(grad_output);
  const std::vector<int64_t> factor{input.size(0), input.size(2)};
  if (scale) expect_shape("scale", *scale, factor);
  if (shift) expect_shape("shift", *shift, factor);
  const at::Tensor products = (gradient * wide(input)).sum(1), sums = gradient.sum(1);
  grad_input = scale ? gradient * per_sequence("scale", *scale, input) : gradient;
  if (scale) grad_scale = products;
  if (shift) grad_shift = sums;
}

}  // namespace aclnn_host::normalization_layer_norm_rows
