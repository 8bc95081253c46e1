// Layer norms and group norms followed by quantisation.

#include "cann/rows/images.h"
#include "cann/rows/quantized/quantized_norm.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_layer_norm_rows {

namespace {

struct AddLayerNorm {
  at::Tensor x, y;
};
// The layer norm of x1 + x2 + biasOptional over the dimensions of `normalized`.
template <class Version>
AddLayerNorm add_layer_norm(const Version& row, at::IntArrayRef normalized) {
  const at::Tensor& x1 = row.x1;
  const OptionalTensor& bias = row.biasOptional;
  expect_dims("gamma", row.gamma, 1, 8);
  const at::Tensor gamma = wide(row.gamma).reshape(normalized);
  const std::vector<int64_t> dims = normalized_dims(x1, gamma);
  at::Tensor x = wide(x1) + wide(row.x2);
  if (bias) {
    const bool is_whole = bias->sizes() == x1.sizes();
    if (!is_whole) expect_shape("biasOptional", *bias, row.gamma.sizes());
    x = x + wide(is_whole ? *bias : bias->reshape(normalized));
  }
  return {x, layer_norm(x, row.epsilon, dims) * gamma + wide(row.beta).reshape(normalized)};
}

// Checks which parameters are present and their shapes: that of gamma or, with `may_be_one`, also
// one element. `row` is the struct of a version.
template <class Version>
void check_parameters(const Version& row, bool may_be_one, bool is_dynamic) {
  const OptionalTensor& scales = row.scales1Optional;
  if (is_dynamic) {
    EXPECT(!row.zeroPoints1Optional && !row.zeroPoints2Optional,
           "zeroPoints1Optional or zeroPoints2Optional is a tensor, expected null as "
           "quantMode is \"dynamic\"");
    EXPECT(scales || !row.scales2Optional,
           "scales1Optional is null, expected a tensor as scales2Optional is one");
  } else {
    EXPECT(scales, "scales1Optional is null, expected a tensor as quantMode is \"static\"");
    EXPECT(row.scales2Optional
               ? row.zeroPoints1Optional.has_value() == row.zeroPoints2Optional.has_value()
               : !row.zeroPoints2Optional,
           "zeroPoints2Optional is ", row.zeroPoints2Optional ? "a tensor" : "null",
           ", expected a tensor if scales2Optional and zeroPoints1Optional are, else null");
  }
  if (!scales) return;
  if (is_dynamic || scales->scalar_type() != at::kFloat) {
    expect_dtype("scales1Optional", *scales, row.x1);
  }
  if (!may_be_one || scales->sizes() != at::IntArrayRef{1}) {
    expect_shape("scales1Optional", *scales, row.gamma.sizes());
  }
}

// Parameters as the last dimensions of y; [1, size] would be two dimensions.
OptionalTensor aligned(const OptionalTensor& parameters) {
  const bool is_row = parameters && parameters->dim() == 2 && parameters->size(0) == 1;
  return is_row ? parameters->squeeze(0) : parameters;
}

// Without scales2Optional, y2Out is not written. Only dynamic quantisation writes scales.
template <class Version>
void quantize(Version& row, const at::Tensor& y, bool may_be_one) {
  const bool dynamic = is_dynamic("quantMode", row.quantMode);
  check_parameters(row, may_be_one, dynamic);
  expect_dtype("y1Out", row.y1Out, at::kChar);
  expect_dtype("outScales1Out", row.outScales1Out, at::kFloat);
  expect_dtype("outScales2Out", row.outScales2Out, at::kFloat);
  if (row.scales2Optional) expect_dtype("y2Out", row.y2Out, at::kChar);
  if (!dynamic) {
    const auto result = [&](const at::Tensor& scales, const OptionalTensor& zeros) {
      return to_int8(scaled(y, *aligned(scales), aligned(zeros), row.divMode));
    };
    row.y1Out = result(*row.scales1Optional, row.zeroPoints1Optional);
    if (row.scales2Optional) {
      row.y2Out = result(*row.scales2Optional, row.zeroPoints2Optional);
    }
    return;
  }
  expect_reduced_float("x1", row.x1, " as quantMode is \"dynamic\"");
  expect_dims("x1", y, 2, 8);
  const at::IntArrayRef gamma = row.gamma.sizes();
  EXPECT(gamma.size() == 1 || (may_be_one && gamma.size() == 2 && gamma[0] == 1),
         "gamma has shape ", gamma, ", expected one dimension as quantMode is \"dynamic\"");
  const auto write = [&](Output& out, Output& scale_out, const OptionalTensor& scales) {
    expect_shape(out.name(), out, y.sizes());
    expect_shape(scale_out.name(), scale_out, leading(y));
    if (y.numel() == 0) return;
    const RowQuotients rows = scaled_by_rows(y, aligned(scales), largest_of(ACL_INT8));
    out = to_int8(rows.quotients);
    scale_out = rows.scales;
  };
  write(row.y1Out, row.outScales1Out, row.scales1Optional);
  if (row.scales2Optional) write(row.y2Out, row.outScales2Out, row.scales2Optional);
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
  expect_one_of("quantMode", quantMode, {0}, " (static)");
  expect_shape("scale", scale, {1});
  if (zeroPointsOptional) {
    expect_tensor("zeroPointsOptional", *zeroPointsOptional, at::kChar, {1});
  }
  expect_dtype("res", res, at::kChar);
  const at::Tensor norm =
      layer_norm(wide(x), epsilon, {-1}) * last_parameters("gammma", gammma, x) +
      last_parameters("beta", beta, x);
  res = to_int8(scaled(norm, scale, zeroPointsOptional, /*divides=*/true));
}

ACLNN_STRUCT(AddLayerNormQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
             (SameDtype<Floating<In>>, gamma, "x1"), (Like<Floating<In>>, beta, "gamma"),
             (SameDtype<Optional<In>>, biasOptional, "x1"), (Optional<In>, scales1Optional),
             (Like<Optional<In>>, scales2Optional, "scales1Optional"),
             (Like<Optional<In>>, zeroPoints1Optional, "scales1Optional"),
             (Like<Optional<In>>, zeroPoints2Optional, "scales1Optional"), (const char*, quantMode),
             (double, epsilon), (bool, additionalOutput), (bool, divMode), (Out, y1Out),
             (Out, y2Out), (Like<Out>, xOut, "x1"), (Out, outScales1Out), (Out, outScales2Out)) {
  const AddLayerNorm norm = add_layer_norm(*this, gamma.sizes());
  quantize(*this, norm.y, /*may_be_one=*/false);
  if (additionalOutput) xOut = norm.x;
}
// gamma may also be [1, size], and scales and zero points may have one element.
ACLNN_STRUCT(AddLayerNormQuantV2, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
             (SameDtype<Floating<In>>, gamma, "x1"), (Like<Floating<In>>, beta, "gamma"),
             (SameDtype<Optional<In>>, biasOptional, "x1"), (Optional<In>, scales1Optional),
             (Like<Optional<In>>, scales2Optional, "scales1Optional"),
             (Like<Optional<In>>, zeroPoints1Optional, "scales1Optional"),
             (Like<Optional<In>>, zeroPoints2Optional, "scales1Optional"), (const char*, quantMode),
             (double, epsilon), (bool, additionalOutput), (bool, divMode), (Out, y1Out),
             (Out, y2Out), (Like<Out>, xOut, "x1"), (Like<Out>, layernormRes, "x1"),
             (Out, outScales1Out), (Out, outScales2Out)) {
  const bool is_row = gamma.dim() == 2 && gamma.size(0) == 1;
  const AddLayerNorm norm = add_layer_norm(*this, gamma.sizes().slice(is_row ? 1 : 0));
  quantize(*this, norm.y, /*may_be_one=*/true);
  if (additionalOutput) xOut = norm.x;
  layernormRes = norm.y;
}

ACLNN(AdaLayerNormQuant, (Floating<In>, x), (SameDtype<Floating<In>>, scale, "x"),
      (SameDtype<Floating<In>>, shift, "x"), (SameDtype<Optional<In>>, weightOptional, "x"),
      (SameDtype<Optional<In>>, biasOptional, "x"),
      (SameDtype<Optional<In>>, smoothScalesOptional, "x"), (double, epsilon),
      (const char*, quantMode), (Stored<Out>, out), (Out, quantScale),
      (Refused<Out>, quantOffsetOptional, "dynamic quantisation has no offset")) {
  expect_reduced_float("x", x);
  expect_dims("x", x, 2, 8);
  expect_elements("x", x);
  expect_text("quantMode", quantMode, {"dynamic"});
  expect_type(out, {ACL_INT8, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
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
  const RowQuotients rows = scaled_by_rows(y, std::nullopt, largest_of(out.dtype()));
  store_quantized(out, rows.quotients);
  quantScale = rows.scales;
}

// Without beta nothing is added. If self is empty, the mean is 0 and rstd is NaN.
ACLNN(GroupNormSiluQuant, (Image<Floating<In>>, self), (SameDtype<Optional<In>>, gamma, "self"),
      (SameDtype<Optional<In>>, beta, "self"), (In, quantScale), (int64_t, group), (double, eps),
      (bool, activateSilu), (Image<Out>, out), (SameDtype<Out>, meanOut, "self"),
      (SameDtype<Out>, rstdOut, "self")) {
  expect_reduced_float("self", self);
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
  if (gamma) expect_shape("gamma", *gamma, {channels});
  if (beta) expect_shape("beta", *beta, {channels});
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
  out = to_int8(at::silu(y) / by_channel(quantScale));
  meanOut = mean.squeeze(-1);
  rstdOut = rstd.squeeze(-1);
}

}  // namespace aclnn_host::quantized_quantized_layer_norm_rows
