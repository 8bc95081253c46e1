// Layer norms and group norms followed by quantisation.

#include <limits>
#include <utility>

#include "cann/rows/images.h"
#include "cann/rows/quantized/quantized_norm.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_layer_norm_rows {

namespace {

struct AddLayerNorm {
  at::Tensor x, y;
};
// The layer norm of x1 + x2 + bias over the dimensions of `normalized`.
AddLayerNorm add_layer_norm(const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& gamma,
                            const at::Tensor& beta, const OptionalTensor& bias,
                            at::IntArrayRef normalized, double epsilon) {
  const at::Tensor factor = wide(gamma).reshape(normalized);
  const std::vector<int64_t> dims = normalized_dims(x1, factor);
  at::Tensor x = wide(x1) + wide(x2);
  if (bias) {
    const bool is_whole = bias->sizes() == x1.sizes();
    if (!is_whole) expect_shape("biasOptional", *bias, gamma.sizes());
    x = x + wide(is_whole ? *bias : bias->reshape(normalized));
  }
  return {x, layer_norm(x, epsilon, dims) * factor + wide(beta).reshape(normalized)};
}

struct Parameters {
  const OptionalTensor& scales1;
  const OptionalTensor& scales2;
  const OptionalTensor& zeros1;
  const OptionalTensor& zeros2;
};
struct Results {
  Output& y1;
  Output& y2;
  Output& scales1;
  Output& scales2;
};

// Checks which parameters are present and their shapes: that of gamma or, with `one`, also one
// element.
void check(const Parameters& by, at::IntArrayRef gamma, bool one, at::ScalarType x,
           bool is_dynamic) {
  if (is_dynamic) {
    EXPECT(!by.zeros1 && !by.zeros2,
           "zeroPoints1Optional or zeroPoints2Optional is a tensor, expected null as "
           "quantMode is \"dynamic\"");
    EXPECT(by.scales1 || !by.scales2,
           "scales1Optional is null, expected a tensor as scales2Optional is one");
  } else {
    EXPECT(by.scales1, "scales1Optional is null, expected a tensor as quantMode is \"static\"");
    EXPECT(by.scales2 ? by.zeros1.has_value() == by.zeros2.has_value() : !by.zeros2,
           "zeroPoints2Optional is ", by.zeros2 ? "a tensor" : "null",
           ", expected a tensor if scales2Optional and zeroPoints1Optional are, else null");
  }
  if (!by.scales1) return;
  const at::Tensor& scales = *by.scales1;
  if (is_dynamic || scales.scalar_type() != at::kFloat) expect_dtype("scales1Optional", scales, x);
  if (!one || scales.sizes() != at::IntArrayRef{1}) {
    expect_shape("scales1Optional", scales, gamma);
  }
}

// Parameters as the last dimensions of y; [1, size] would be two dimensions.
OptionalTensor aligned(const OptionalTensor& parameters) {
  const bool is_row = parameters && parameters->dim() == 2 && parameters->size(0) == 1;
  return is_row ? parameters->squeeze(0) : parameters;
}

// Without scales2, y2 is not written. Only dynamic quantisation writes scales.
void quantize(const at::Tensor& y, at::IntArrayRef gamma, bool one, at::ScalarType x,
              const Parameters& by, const std::string& mode, bool divides, Results results) {
  EXPECT(mode == "static" || mode == "dynamic", "quantMode is \"", mode,
         "\", expected \"static\" or \"dynamic\"");
  const bool is_dynamic = mode == "dynamic";
  check(by, gamma, one, x, is_dynamic);
  expect_dtype(results.y1.name(), results.y1, at::kChar);
  for (const Output* scales : {&results.scales1, &results.scales2}) {
    expect_dtype(scales->name(), *scales, at::kFloat);
  }
  if (by.scales2) expect_dtype(results.y2.name(), results.y2, at::kChar);
  if (!is_dynamic) {
    const auto write = [&](Output& out, const at::Tensor& scales, const OptionalTensor& zeros) {
      out = quantized(scaled(y, *aligned(scales), aligned(zeros), divides), ACL_INT8);
    };
    write(results.y1, *by.scales1, by.zeros1);
    if (by.scales2) write(results.y2, *by.scales2, by.zeros2);
    return;
  }
  EXPECT(at::isReducedFloatingType(x), "x1 has dtype ", dtype_text(x),
         ", expected FLOAT16 or BFLOAT16 as quantMode is \"dynamic\"");
  expect_dims("x1", y, 2, 8);
  EXPECT(gamma.size() == 1 || (one && gamma.size() == 2 && gamma[0] == 1), "gamma has shape ",
         gamma, ", expected one dimension as quantMode is \"dynamic\"");
  const auto write = [&](Output& out, Output& scale_out, const OptionalTensor& scales) {
    expect_shape(out.name(), out, y.sizes());
    expect_shape(scale_out.name(), scale_out, y.sizes().slice(0, static_cast<size_t>(y.dim()) - 1));
    if (y.numel() == 0) return;
    const RowQuotients rows = scaled_by_rows(y, aligned(scales), largest(ACL_INT8));
    out = quantized(rows.quotients, ACL_INT8);
    scale_out = rows.scales;
  };
  write(results.y1, results.scales1, by.scales1);
  if (by.scales2) write(results.y2, results.scales2, by.scales2);
}

// Factors and addends of AdaLayerNorm, one for each sequence, broadcastable to x: [B..., S, H].
at::Tensor per_sequence(const char* name, const at::Tensor& factor, const at::Tensor& x) {
  std::vector<int64_t> expected = x.sizes().vec();
  expected[expected.size() - 2] = 1;
  const at::Tensor whole = factor.dim() == x.dim() - 1 ? factor.unsqueeze(-2) : factor;
  EXPECT(whole.sizes() == expected, name, " has shape ", factor.sizes(), ", expected ", expected,
         " with or without the dimension of size 1");
  return wide(whole);
}

}  // namespace

ACLNN(LayerNormQuant, (Floating<In>, x), (SameDtype<Floating<In>>, gammma, "x"),
      (Like<Floating<In>>, beta, "gammma"), (SameDtype<Floating<In>>, scale, "x"),
      (Optional<In>, zeroPointsOptional), (int, quantMode), (double, epsilon), (Out, res),
      (Optional<Out>, scaleOut)) {
  if (scaleOut) expect_dtype("scaleOut", *scaleOut, at::kFloat);
  expect_dims("x", x, 1, 8);
  EXPECT(quantMode == 0, "quantMode is ", quantMode.value(), ", expected 0 (static)");
  expect_shape("scale", scale, {1});
  if (zeroPointsOptional) {
    expect_dtype("zeroPointsOptional", *zeroPointsOptional, at::kChar);
    expect_shape("zeroPointsOptional", *zeroPointsOptional, {1});
  }
  expect_dtype("res", res, at::kChar);
  const at::Tensor norm = layer_norm(wide(x), epsilon, {-1}) * wide(of_last("gammma", gammma, x)) +
                          wide(of_last("beta", beta, x));
  res = quantized(scaled(norm, scale, zeroPointsOptional, /*divides=*/true), ACL_INT8);
}

ACLNN(AddLayerNormQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (Like<Floating<In>>, beta, "gamma"),
      (SameDtype<Optional<In>>, biasOptional, "x1"), (Optional<In>, scales1Optional),
      (Like<Optional<In>>, scales2Optional, "scales1Optional"),
      (Like<Optional<In>>, zeroPoints1Optional, "scales1Optional"),
      (Like<Optional<In>>, zeroPoints2Optional, "scales1Optional"), (const char*, quantMode),
      (double, epsilon), (bool, additionalOutput), (bool, divMode), (Out, y1Out), (Out, y2Out),
      (Like<Out>, xOut, "x1"), (Out, outScales1Out), (Out, outScales2Out)) {
  expect_dims("gamma", gamma, 1, 8);
  const AddLayerNorm norm =
      add_layer_norm(x1, x2, gamma, beta, biasOptional, gamma.sizes(), epsilon);
  quantize(norm.y, gamma.sizes(), /*one=*/false, x1.scalar_type(),
           {scales1Optional, scales2Optional, zeroPoints1Optional, zeroPoints2Optional}, quantMode,
           divMode.value(), {y1Out, y2Out, outScales1Out, outScales2Out});
  if (additionalOutput) xOut = norm.x;
}
// gamma may also be [1, size], and scales and zero points may have one element.
ACLNN(AddLayerNormQuantV2, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (Like<Floating<In>>, beta, "gamma"),
      (SameDtype<Optional<In>>, biasOptional, "x1"), (Optional<In>, scales1Optional),
      (Like<Optional<In>>, scales2Optional, "scales1Optional"),
      (Like<Optional<In>>, zeroPoints1Optional, "scales1Optional"),
      (Like<Optional<In>>, zeroPoints2Optional, "scales1Optional"), (const char*, quantMode),
      (double, epsilon), (bool, additionalOutput), (bool, divMode), (Out, y1Out), (Out, y2Out),
      (Like<Out>, xOut, "x1"), (Like<Out>, layernormRes, "x1"), (Out, outScales1Out),
      (Out, outScales2Out)) {
  expect_dims("gamma", gamma, 1, 8);
  const bool is_row = gamma.dim() == 2 && gamma.size(0) == 1;
  const at::IntArrayRef normalized = gamma.sizes().slice(is_row ? 1 : 0);
  const AddLayerNorm norm = add_layer_norm(x1, x2, gamma, beta, biasOptional, normalized, epsilon);
  quantize(norm.y, gamma.sizes(), /*one=*/true, x1.scalar_type(),
           {scales1Optional, scales2Optional, zeroPoints1Optional, zeroPoints2Optional}, quantMode,
           divMode.value(), {y1Out, y2Out, outScales1Out, outScales2Out});
  if (additionalOutput) xOut = norm.x;
  layernormRes = norm.y;
}

ACLNN(AdaLayerNormQuant, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (SameDtype<Floating<In>>, shift, "x"), (SameDtype<Optional<In>>, weightOptional, "x"),
      (SameDtype<Optional<In>>, biasOptional, "x"),
      (SameDtype<Optional<In>>, smoothScalesOptional, "x"), (double, epsilon),
      (const char*, quantMode), (Stored<Out>, out), (Out, quantScale),
      (Optional<Out>, quantOffsetOptional)) {
  expect_half("x", x);
  expect_dims("x", x, 2, 8);
  expect_elements(x);
  EXPECT(quantMode == "dynamic", "quantMode is \"", quantMode, "\", expected \"dynamic\"");
  EXPECT(!quantOffsetOptional, "quantOffsetOptional is a tensor, expected null");
  expect_quantized("out", out.dtype(), /*with_int4=*/false);
  expect_dtype("quantScale", quantScale, at::kFloat);
  const auto last = [&](const char* name, const at::Tensor& tensor) {
    expect_shape(name, tensor, {x.size(-1)});
    return wide(tensor);
  };
  at::Tensor y = layer_norm(wide(x), epsilon, {-1});
  if (weightOptional) y = y * last("weightOptional", *weightOptional);
  if (biasOptional) y = y + last("biasOptional", *biasOptional);
  y = y * (per_sequence("scale", scale, x) + 1) + per_sequence("shift", shift, x);
  if (smoothScalesOptional) y = y * last("smoothScalesOptional", *smoothScalesOptional);
  const RowQuotients rows = scaled_by_rows(y, std::nullopt, largest(out.dtype()));
  store_quantized(out, rows.quotients);
  quantScale = rows.scales;
}

// Without beta nothing is added. If self is empty, the mean is 0 and rstd is NaN.
ACLNN(GroupNormSiluQuant, (Image<Floating<In>>, self), (SameDtype<Optional<In>>, gamma, "self"),
      (SameDtype<Optional<In>>, beta, "self"), (In, quantScale), (int64_t, group), (double, eps),
      (bool, activateSilu), (Image<Out>, out), (SameDtype<Out>, meanOut, "self"),
      (SameDtype<Out>, rstdOut, "self")) {
  expect_half("self", self);
  expect_dims("self", self, 2, 8);
  const int64_t samples = self.size(0);
  const int64_t channels = self.size(1);
  EXPECT(group > 0 && channels % group.value() == 0, "group is ", group.value(),
         ", expected a divisor of the ", channels, " channels of self");
  EXPECT(eps > 0, "eps is ", eps.value(), ", expected more than 0");
  EXPECT(activateSilu.value(), "activateSilu is false, expected true");
  expect_dtype("quantScale", quantScale, at::kFloat);
  if (quantScale.sizes() != at::IntArrayRef{1}) expect_shape("quantScale", quantScale, {channels});
  expect_dtype("out", out, at::kChar);
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
  const auto by_channel = [&](const at::Tensor& tensor) {
    shape[1] = tensor.numel();
    return wide(tensor).reshape(shape);
  };
  for (const auto& [name, tensor] : {std::pair("gamma", gamma), std::pair("beta", beta)}) {
    if (tensor) expect_shape(name, *tensor, {channels});
  }
  if (self.numel() == 0) {
    const at::Tensor statistics = at::zeros({samples, group.value()}, meanOut->options());
    out = at::zeros(self.sizes(), out->options());
    meanOut = statistics;
    rstdOut = at::full_like(statistics, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const at::Tensor groups = wide(self).reshape({samples, group.value(), -1});
  const at::Tensor mean = groups.mean(-1, /*keepdim=*/true);
  const at::Tensor rstd = reciprocal_root(groups - mean, eps, {-1});
  at::Tensor y = ((groups - mean) * rstd).reshape(self.sizes());
  if (gamma) y = y * by_channel(*gamma);
  if (beta) y = y + by_channel(*beta);
  out = quantized(at::silu(y) / by_channel(quantScale), ACL_INT8);
  meanOut = mean.squeeze(-1);
  rstdOut = rstd.squeeze(-1);
}

}  // namespace aclnn_host::quantized_quantized_layer_norm_rows
