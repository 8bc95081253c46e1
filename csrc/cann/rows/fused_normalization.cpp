// Normalisations fused with a sum before them or a modulation after them. Sums and statistics are
// FP32 and not rounded in between.

#include <ATen/TensorOperators.h>
#include <ATen/ops/native_layer_norm.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::fused_normalization_rows {

namespace {

// The last dimensions of a tensor, which gamma has, and the others.
class Dimensions {
 public:
  Dimensions(const at::Tensor& x, at::IntArrayRef gamma)
      : count_(static_cast<int64_t>(gamma.size())) {
    EXPECT(count_ >= 1 && count_ <= x.dim() &&
               gamma == x.sizes().slice(static_cast<size_t>(x.dim() - count_)),
           "gamma has shape ", gamma, ", expected the last dimensions of ", x.sizes());
    statistics_ = x.sizes().vec();
    for (int64_t dim = x.dim() - count_; dim < x.dim(); ++dim) {
      statistics_[static_cast<size_t>(dim)] = 1;
    }
    for (int64_t dim = -count_; dim < 0; ++dim) dims_.push_back(dim);
  }

  at::Tensor mean(const at::Tensor& x) const { return x.mean(dims_, /*keepdim=*/true); }
  // A saved statistic, which may lack the dimensions of size 1 at its end.
  at::Tensor statistic(const char* name, const at::Tensor& saved) const {
    const at::IntArrayRef leading =
        at::IntArrayRef(statistics_).slice(0, statistics_.size() - static_cast<size_t>(count_));
    if (saved.sizes() != leading) expect_shape(name, saved, statistics_);
    return saved.reshape(statistics_);
  }

 private:
  int64_t count_;
  std::vector<int64_t> statistics_;  // the shape
  std::vector<int64_t> dims_;
};

// The sum over the dimensions that gamma lacks, in memory of its own.
at::Tensor sum_to(const at::Tensor& x, const at::Tensor& gamma) {
  return x.dim() == gamma.dim() ? x.clone() : x.sum_to_size(gamma.sizes());
}

// The reciprocal of the root of the mean square.
at::Tensor root_mean_square(const at::Tensor& x, double epsilon, const Dimensions& dims) {
  return (dims.mean(x.square()) + epsilon).rsqrt();
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

// The gradient of what was normalised, without factors after rstd.
at::Tensor layer_norm_gradient(const at::Tensor& gradient, const at::Tensor& normalized,
                               const at::Tensor& rstd, const Dimensions& dims) {
  return rstd * (gradient - dims.mean(gradient) - normalized * dims.mean(gradient * normalized));
}

// The type of x1 + x2 in the document's table: FLOAT16 and BFLOAT16 do not go together.
at::ScalarType sum_dtype(const at::Tensor& x1, const at::Tensor& x2) {
  const at::ScalarType a = x1.scalar_type();
  const at::ScalarType b = x2.scalar_type();
  EXPECT(a == b || a == at::kFloat || b == at::kFloat, "x2 has dtype ", b, " and x1 has ", a,
         ", expected the same or one of them FLOAT");
  return c10::promoteTypes(a, b);
}

// scale and shift of AdaLayerNorm and Modulate, one for each sequence, beside x: [B..., S, H].
at::Tensor per_sequence(const char* name, const at::Tensor& factor, const at::Tensor& x) {
  expect_dtype(name, factor, x.scalar_type());
  const at::Tensor aligned = factor.dim() == x.dim() - 1 ? factor.unsqueeze(-2) : factor;
  std::vector<int64_t> expected = x.sizes().vec();
  expected[expected.size() - 2] = 1;
  EXPECT(aligned.sizes() == expected, name, " has shape ", factor.sizes(), ", expected ", expected,
         " with or without the dimension of size 1");
  return wide(aligned);
}

// LayerNorm over the last dimension of x, times 1 + scale, plus shift. Without `mixes`, weight and
// bias have x's dtype, with it that or FLOAT.
LayerNorm adaptive(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                   const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                   double epsilon, bool mixes, Output& out) {
  EXPECT(x.dim() >= 2, "x has ", x.dim(), " dimensions, expected 2 to 8");
  expect_like("out", out, x);
  const auto check = [&](const char* name, const at::Tensor& tensor) {
    if (!mixes || tensor.scalar_type() != at::kFloat) expect_dtype(name, tensor, x.scalar_type());
    expect_shape(name, tensor, {x.size(-1)});
  };
  if (weight) check("weightOptional", *weight);
  if (bias) check("biasOptional", *bias);
  if (weight && bias) expect_dtype("biasOptional", *bias, weight->scalar_type());
  const Dimensions dims(x, {x.size(-1)});
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
  expect_like("out", out, input);
  const auto check = [&](const char* name, const std::optional<at::Tensor>& tensor) {
    if (!tensor) return;
    if (tensor->scalar_type() != at::kFloat) expect_dtype(name, *tensor, input.scalar_type());
  };
  check("weightOptional", weight);
  check("biasOptional", bias);
  if (weight && bias) expect_dtype("biasOptional", *bias, weight->scalar_type());
  const auto contiguous = [](const std::optional<at::Tensor>& tensor) {
    return tensor ? std::optional(wide(*tensor).contiguous()) : std::nullopt;
  };
  const auto [result, mean, rstd] = at::native_layer_norm(
      wide(input).contiguous(), shape, contiguous(weight), contiguous(bias), eps);
  out = result;
  mean_out = mean;
  rstd_out = rstd;
}

}  // namespace

// x2Ref becomes the sum, x1Ref its norm.
ACLNN(InplaceAddRmsNorm, (FloatInOut, x1Ref), (FloatInOut, x2Ref), (FloatIn, gamma),
      (double, epsilon), (Out, rstdOut)) {
  expect_like("x2Ref", x2Ref, x1Ref);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const Dimensions dims(x1Ref, gamma.sizes());
  const at::Tensor sum = wide(x1Ref) + wide(x2Ref);
  const at::Tensor rstd = root_mean_square(sum, epsilon, dims);
  x1Ref = sum * rstd * wide(gamma);
  x2Ref = sum;
  rstdOut = rstd;
}
ACLNN(GemmaRmsNorm, (FloatIn, x), (FloatIn, gamma), (double, epsilon), (Out, yOut),
      (Out, rstdOut)) {
  expect_dtype("gamma", gamma, x.scalar_type());
  expect_like("yOut", yOut, x);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  const at::Tensor rstd = root_mean_square(wide(x), epsilon, Dimensions(x, gamma.sizes()));
  yOut = wide(x) * rstd * (wide(gamma) + 1);
  rstdOut = rstd;
}
// y1Out is the norm in FLOAT, y2Out in the type of x1.
ACLNN(AddRmsNormCast, (FloatIn, x1), (FloatIn, x2), (FloatIn, gamma), (double, epsilon),
      (Out, y1Out), (Out, y2Out), (Out, rstdOut), (Out, xOut)) {
  EXPECT(at::isReducedFloatingType(x1.scalar_type()), "x1 has dtype ", dtype_text(x1.scalar_type()),
         ", expected FLOAT16 or BFLOAT16");
  expect_like("x2", x2, x1);
  expect_dtype("gamma", gamma, x1.scalar_type());
  expect_dtype("y1Out", y1Out, at::kFloat);
  expect_like("y2Out", y2Out, x1);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  expect_like("xOut", xOut, x1);
  const at::Tensor sum = wide(x1) + wide(x2);
  const at::Tensor rstd = root_mean_square(sum, epsilon, Dimensions(x1, gamma.sizes()));
  const at::Tensor result = sum * rstd * wide(gamma);
  y1Out = result;
  y2Out = result;
  rstdOut = rstd;
  xOut = sum;
}

// biasOptional has the shape of gamma or of x1. xOut is written if additionalOutput says so.
ACLNN(AddLayerNorm, (FloatIn, x1), (FloatIn, x2), (FloatIn, gamma), (FloatIn, beta),
      (OptionalIn, biasOptional), (double, epsilon), (bool, additionalOutput), (Out, yOut),
      (Out, meanOut), (Out, rstdOut), (Out, xOut)) {
  const at::ScalarType dtype = sum_dtype(x1, x2);
  const Dimensions dims(x1, gamma.sizes());
  expect_shape("x2", x2, x1.sizes());
  if (gamma.scalar_type() != at::kFloat) expect_dtype("gamma", gamma, dtype);
  expect_like("beta", beta, gamma);
  for (const Output* output : {&meanOut, &rstdOut}) {
    expect_dtype(output->name(), *output, at::kFloat);
  }
  for (const Output* output : {&yOut, &xOut}) {
    expect_dtype(output->name(), *output, dtype);
    expect_shape(output->name(), *output, x1.sizes());
  }
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
ACLNN(AddLayerNormGrad, (FloatIn, dy), (FloatIn, x1), (FloatIn, x2), (In, rstd), (In, mean),
      (FloatIn, gamma), (OptionalIn, dsumOptional), (Out, dxOut), (Out, dgammaOut),
      (Out, dbetaOut)) {
  const Dimensions dims(dy, gamma.sizes());
  expect_like("x1", x1, dy);
  expect_like("x2", x2, dy);
  expect_dtype("gamma", gamma, dy.scalar_type());
  expect_like("dxOut", dxOut, dy);
  const at::Tensor scale = dims.statistic("rstd", rstd);
  const at::Tensor normalized = (wide(x1) + wide(x2) - dims.statistic("mean", mean)) * scale;
  at::Tensor gradient = layer_norm_gradient(wide(dy) * wide(gamma), normalized, scale, dims);
  if (dsumOptional) {
    expect_like("dsumOptional", *dsumOptional, dy);
    gradient = gradient + wide(*dsumOptional);
  }
  const at::Tensor dgamma = sum_to(wide(dy) * normalized, gamma);
  const at::Tensor dbeta = sum_to(wide(dy), gamma);
  dxOut = gradient;
  dgammaOut = dgamma;
  dbetaOut = dbeta;
}

// The layer norm of alpha * x + gx.
ACLNN(DeepNorm, (FloatIn, x), (FloatIn, gx), (FloatIn, beta), (FloatIn, gamma), (double, alpha),
      (double, epsilon), (Out, meanOut), (Out, rstdOut), (Out, yOut)) {
  const Dimensions dims(x, gamma.sizes());
  EXPECT(gamma.dim() < x.dim(), "gamma has ", gamma.dim(), " dimensions, expected fewer than ",
         x.dim(), " as x has");
  expect_like("gx", gx, x);
  expect_dtype("gamma", gamma, x.scalar_type());
  expect_like("beta", beta, gamma);
  expect_dtype("meanOut", meanOut, at::kFloat);
  expect_dtype("rstdOut", rstdOut, at::kFloat);
  expect_like("yOut", yOut, x);
  const LayerNorm norm = layer_norm(wide(x) * alpha.value() + wide(gx), epsilon, dims);
  yOut = norm.normalized * wide(gamma) + wide(beta);
  meanOut = norm.mean;
  rstdOut = norm.rstd;
}
ACLNN(DeepNormGrad, (FloatIn, dy), (FloatIn, x), (FloatIn, gx), (FloatIn, gamma), (In, mean),
      (In, rstd), (double, alpha), (Out, dxOut), (Out, dgxOut), (Out, dbetaOut), (Out, dgammaOut)) {
  const Dimensions dims(x, gamma.sizes());
  expect_like("dy", dy, x);
  expect_like("gx", gx, x);
  expect_dtype("gamma", gamma, x.scalar_type());
  expect_like("dxOut", dxOut, x);
  expect_like("dgxOut", dgxOut, x);
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

ACLNN(FastLayerNorm, (FloatIn, input), (Ints, normalizedShape), (OptionalIn, weightOptional),
      (OptionalIn, biasOptional), (double, eps), (Out, out), (OptionalOut, meanOutOptional),
      (OptionalOut, rstdOutOptional)) {
  normalize(input, normalizedShape, weightOptional, biasOptional, eps, out, meanOutOptional,
            rstdOutOptional);
}
// All modes are computed in FP32.
ACLNN(LayerNormWithImplMode, (FloatIn, input), (Ints, normalizedShape),
      (OptionalIn, weightOptional), (OptionalIn, biasOptional), (double, eps), (Out, out),
      (OptionalOut, meanOutOptional), (OptionalOut, rstdOutOptional), (int32_t, implMode)) {
  EXPECT(implMode >= 0 && implMode <= 2, "implMode is ", implMode.value(),
         ", expected 0 (precise), 1 (fast) or 2 (FLOAT16)");
  const bool is_half = input.scalar_type() == at::kHalf &&
                       (!weightOptional || weightOptional->scalar_type() == at::kHalf) &&
                       (!biasOptional || biasOptional->scalar_type() == at::kHalf);
  EXPECT(implMode != 2 || is_half, "implMode is 2, expected all inputs to be FLOAT16");
  normalize(input, normalizedShape, weightOptional, biasOptional, eps, out, meanOutOptional,
            rstdOutOptional);
}

ACLNN(AdaLayerNorm, (FloatIn, x), (FloatIn, scale), (FloatIn, shift), (OptionalIn, weightOptional),
      (OptionalIn, biasOptional), (double, epsilon), (Out, out)) {
  adaptive(x, scale, shift, weightOptional, biasOptional, epsilon, /*mixes=*/false, out);
}
ACLNN(AdaLayerNormV2, (FloatIn, x), (FloatIn, scale), (FloatIn, shift),
      (OptionalIn, weightOptional), (OptionalIn, biasOptional), (double, epsilon), (Out, out),
      (OptionalOut, meanOutOptional), (OptionalOut, rstdOutOptional)) {
  if (meanOutOptional) expect_dtype("meanOutOptional", *meanOutOptional, x.scalar_type());
  if (rstdOutOptional) expect_dtype("rstdOutOptional", *rstdOutOptional, x.scalar_type());
  const LayerNorm norm =
      adaptive(x, scale, shift, weightOptional, biasOptional, epsilon, /*mixes=*/true, out);
  meanOutOptional = norm.mean;
  rstdOutOptional = norm.rstd;
}

ACLNN(Modulate, (FloatIn, self), (OptionalIn, scaleOptional), (OptionalIn, shiftOptional),
      (Out, out)) {
  EXPECT(self.dim() == 3, "self has ", self.dim(), " dimensions, expected 3");
  EXPECT(scaleOptional || shiftOptional,
         "scaleOptional and shiftOptional are null, expected at least one of them");
  expect_like("out", out, self);
  for (const auto& factor : {scaleOptional, shiftOptional}) {
    EXPECT(self.numel() > 0 || !factor || factor->numel() == 0,
           "self is empty and scaleOptional or shiftOptional is not, expected empty ones");
  }
  at::Tensor result = wide(self);
  if (scaleOptional) result = result * (per_sequence("scaleOptional", *scaleOptional, self) + 1);
  if (shiftOptional) result = result + per_sequence("shiftOptional", *shiftOptional, self);
  out = result;
}
// The factor of grad_input is scale, as documented, and not 1 + scale as in the forward.
ACLNN(ModulateBackward, (FloatIn, grad_output), (FloatIn, input), (OptionalIn, scale),
      (OptionalIn, shift), (Out, grad_input), (OptionalOut, grad_scale),
      (OptionalOut, grad_shift)) {
  EXPECT(grad_output.dim() == 3, "grad_output has ", grad_output.dim(), " dimensions, expected 3");
  expect_like("input", input, grad_output);
  expect_like("grad_input", grad_input, input);
  const at::Tensor gradient = wide(grad_output);
  const std::vector<int64_t> factor{input.size(0), input.size(2)};
  if (scale) expect_shape("scale", *scale, factor);
  if (shift) expect_shape("shift", *shift, factor);
  if (shift) expect_dtype("shift", *shift, input.scalar_type());
  const at::Tensor products = (gradient * wide(input)).sum(1);
  const at::Tensor sums = gradient.sum(1);
  grad_input = scale ? gradient * per_sequence("scale", *scale, input) : gradient;
  if (scale) grad_scale = products;
  if (shift) grad_shift = sums;
}

}  // namespace aclnn_host::fused_normalization_rows
