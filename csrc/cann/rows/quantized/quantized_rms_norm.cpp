// RMS norms followed by quantisation.

#include <algorithm>

#include "cann/rows/quantized/quantized_norm.h"

namespace aclnn_host::quantized_quantized_rms_norm_rows {

namespace {

struct Sum {
  at::Tensor x, norm;
};
// The sum of x1 and x2, and its RMS norm times gamma.
Sum add_rms_norm(const at::Tensor& x1, const at::Tensor& x2, const at::Tensor& gamma,
                 double epsilon, const Output& x_out) {
  expect_like("x2", x2, x1);
  expect_dtype("gamma", gamma, x1);
  expect_like("xOut", x_out, x1);
  const std::vector<int64_t> dims = normalized_dims(x1, gamma);
  const at::Tensor x = wide(x1) + wide(x2);
  return {x, x * reciprocal_root(x, epsilon, dims) * wide(gamma)};
}

struct Parameters {
  const at::Tensor& scales1;
  const OptionalTensor& scales2;
  const OptionalTensor& zeros1;
  const OptionalTensor& zeros2;
};
// Without scales2, y2 is not written.
void quantize_both(const at::Tensor& y, const at::Tensor& x, const at::Tensor& gamma,
                   const Parameters& by, bool divides, StoredOutput& y1, StoredOutput& y2) {
  expect_quantized("y1Out", y1.dtype(), /*with_int4=*/false);
  expect_dtype_or_float("scales1", by.scales1, x);
  expect_shape("scales1", by.scales1, gamma.sizes());
  expect_offset("zeroPoints1Optional", by.zeros1, by.scales1, at::kInt);
  expect_offset("zeroPoints2Optional", by.zeros2, by.scales1, at::kInt);
  if (by.zeros1 && by.zeros2) expect_dtype("zeroPoints2Optional", *by.zeros2, *by.zeros1);
  store_quantized(y1, scaled(y, by.scales1, by.zeros1, divides));
  if (!by.scales2) return;
  expect_like("scales2Optional", *by.scales2, by.scales1);
  EXPECT(y2.dtype() == y1.dtype(), "y2Out has dtype ", dtype_name(y2.dtype()), ", expected ",
         dtype_name(y1.dtype()), " as y1Out has");
  store_quantized(y2, scaled(y, *by.scales2, by.zeros2, divides));
}

// One dynamic quantisation of y. All but the last dimension of y may be flattened into one in the
// scales and, if `flattens`, in the quantised result.
void quantize_rows(const at::Tensor& y, const OptionalTensor& smooth, StoredOutput& out,
                   Output& scale_out, bool flattens) {
  const at::IntArrayRef leading = y.sizes().slice(0, static_cast<size_t>(y.dim()) - 1);
  const std::vector<int64_t> flat{c10::multiply_integers(leading)};
  const bool is_flat = scale_out->sizes() == flat;
  if (!is_flat) expect_shape(scale_out.name(), scale_out, leading);
  if (y.numel() == 0) return;
  const RowQuotients rows = scaled_by_rows(y, smooth, largest(out.dtype()));
  const bool is_table = flattens && out->dim() == 2;
  store_quantized(out, is_table ? rows.quotients.flatten(0, -2) : rows.quotients);
  scale_out = rows.scales.reshape(is_flat ? at::IntArrayRef(flat) : leading);
}

void expect_smooth(const char* name, const OptionalTensor& smooth, const at::Tensor& gamma) {
  if (smooth) expect_like(name, *smooth, gamma);
}

void expect_one(const char* name, const at::Tensor& tensor) {
  expect_shape(name, tensor, {1});
}

}  // namespace

// axis has no effect. y2Out is written if scales2Optional is given.
ACLNN(AddRmsNormQuant, (Floating<In>, x1), (Floating<In>, x2), (Floating<In>, gamma),
      (Floating<In>, scales1), (Optional<In>, scales2Optional), (Optional<In>, zeroPoints1Optional),
      (Optional<In>, zeroPoints2Optional), (int64_t, axis), (double, epsilon), (bool, divMode),
      (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Out, xOut)) {
  static_cast<void>(axis);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon, xOut);
  quantize_both(sum.norm, x1, gamma,
                {scales1, scales2Optional, zeroPoints1Optional, zeroPoints2Optional},
                divMode.value(), y1Out, y2Out);
  xOut = sum.x;
}
// rmsNormOut does not include betaOptional.
ACLNN(AddRmsNormQuantV2, (Floating<In>, x1), (Floating<In>, x2), (Floating<In>, gamma),
      (Floating<In>, scales1), (Optional<In>, scales2Optional), (Optional<In>, zeroPoints1Optional),
      (Optional<In>, zeroPoints2Optional), (Optional<In>, betaOptional), (int64_t, axis),
      (double, epsilon), (bool, divMode), (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Out, xOut),
      (Optional<Out>, rmsNormOut)) {
  static_cast<void>(axis);
  if (rmsNormOut) expect_like("rmsNormOut", *rmsNormOut, x1);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon, xOut);
  at::Tensor y = sum.norm;
  if (betaOptional) {
    expect_dtype_or_float("betaOptional", *betaOptional, x1);
    expect_shape("betaOptional", *betaOptional, gamma.sizes());
    y = y + wide(*betaOptional);
  }
  quantize_both(y, x1, gamma, {scales1, scales2Optional, zeroPoints1Optional, zeroPoints2Optional},
                divMode.value(), y1Out, y2Out);
  xOut = sum.x;
  rmsNormOut = sum.norm;
}

// y2Out and scale2Out are written if smoothScale2Optional is given.
ACLNN(AddRmsNormDynamicQuant, (Floating<In>, x1), (Floating<In>, x2), (Floating<In>, gamma),
      (Optional<In>, smoothScale1Optional), (Optional<In>, smoothScale2Optional), (double, epsilon),
      (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Out, xOut), (Out, scale1Out), (Out, scale2Out)) {
  expect_half("x1", x1);
  expect_dims("x1", x1, 2, 8);
  expect_dims("gamma", gamma, 1);
  expect_smooth("smoothScale1Optional", smoothScale1Optional, gamma);
  expect_smooth("smoothScale2Optional", smoothScale2Optional, gamma);
  EXPECT(smoothScale1Optional || !smoothScale2Optional,
         "smoothScale1Optional is null, expected a tensor as smoothScale2Optional is one");
  expect_quantized("y1Out", y1Out.dtype(), /*with_int4=*/false);
  expect_dtype("scale1Out", scale1Out, at::kFloat);
  expect_dtype("scale2Out", scale2Out, at::kFloat);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon, xOut);
  quantize_rows(sum.norm, smoothScale1Optional, y1Out, scale1Out, /*flattens=*/true);
  if (smoothScale2Optional) {
    EXPECT(y2Out.dtype() == y1Out.dtype(), "y2Out has dtype ", dtype_name(y2Out.dtype()),
           ", expected ", dtype_name(y1Out.dtype()), " as y1Out has");
    quantize_rows(sum.norm, smoothScale2Optional, y2Out, scale2Out, /*flattens=*/true);
  }
  xOut = sum.x;
}
// outputMask selects the outputs; without it, the second one is written if both smooth scales are
// given.
ACLNN(AddRmsNormDynamicQuantV2, (Floating<In>, x1), (Floating<In>, x2), (Floating<In>, gamma),
      (Optional<In>, smoothScale1Optional), (Optional<In>, smoothScale2Optional),
      (Optional<In>, betaOptional), (double, epsilon), (Optional<Bools>, outputMask),
      (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Out, xOut), (Out, scale1Out), (Out, scale2Out)) {
  expect_half("x1", x1);
  expect_dims("x1", x1, 2, 8);
  expect_dims("gamma", gamma, 1);
  expect_smooth("smoothScale1Optional", smoothScale1Optional, gamma);
  expect_smooth("smoothScale2Optional", smoothScale2Optional, gamma);
  expect_smooth("betaOptional", betaOptional, gamma);
  std::vector<bool> writes{true, smoothScale1Optional && smoothScale2Optional};
  if (outputMask) {
    writes = *outputMask;
    EXPECT(writes.size() == 2, "outputMask has ", writes.size(), " elements, expected 2");
    EXPECT(writes[0] || writes[1], "outputMask is false, false, expected true for an output");
    EXPECT((writes[0] || !smoothScale1Optional) && (writes[1] || !smoothScale2Optional),
           "outputMask is false where there is a smooth scale, expected true");
  } else {
    EXPECT(smoothScale1Optional || !smoothScale2Optional,
           "smoothScale1Optional is null, expected a tensor as smoothScale2Optional is one");
  }
  if (writes[0]) expect_quantized("y1Out", y1Out.dtype(), /*with_int4=*/true);
  if (writes[1]) expect_quantized("y2Out", y2Out.dtype(), /*with_int4=*/true);
  EXPECT(!writes[0] || !writes[1] || y1Out.dtype() == y2Out.dtype(), "y2Out has dtype ",
         dtype_name(y2Out.dtype()), ", expected ", dtype_name(y1Out.dtype()), " as y1Out has");
  expect_dtype("scale1Out", scale1Out, at::kFloat);
  expect_dtype("scale2Out", scale2Out, at::kFloat);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon, xOut);
  const at::Tensor y = betaOptional ? sum.norm + wide(*betaOptional) : sum.norm;
  if (writes[0]) quantize_rows(y, smoothScale1Optional, y1Out, scale1Out, /*flattens=*/false);
  if (writes[1]) quantize_rows(y, smoothScale2Optional, y2Out, scale2Out, /*flattens=*/false);
  xOut = sum.x;
}

// NaN becomes 0, also in FLOAT8.
ACLNN(RmsNormQuant, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, beta),
      (Floating<In>, scale), (In, offset), (double, epsilon), (Stored<Out>, y)) {
  expect_elements(x);
  expect_dtype("gamma", gamma, x);
  expect_dtype("beta", beta, x);
  expect_one("scale", scale);
  expect_dtype_or_float("scale", scale, x);
  const bool is_int8 = offset.scalar_type() == at::kChar;
  expect_offset("offset", offset, scale, is_int8 ? at::kChar : at::kInt);
  expect_quantized("y", y.dtype(), /*with_int4=*/true);
  const at::Tensor norm =
      wide(x) * reciprocal_root(wide(x), epsilon, {-1}) * wide(of_last("gamma", gamma, x)) +
      wide(of_last("beta", beta, x));
  const at::Tensor result = scaled(norm, scale, offset, /*divides=*/true);
  store_quantized(y, at::where(result.isnan(), at::zeros_like(result), result));
}
ACLNN(RmsNormQuantV3, (Floating<In>, x), (Floating<In>, gamma), (Floating<In>, scale),
      (Optional<In>, offset), (Optional<In>, beta), (double, epsilon), (bool, divMode),
      (bool, outputRstd), (Stored<Out>, y), (Optional<Out>, rstd)) {
  expect_elements(x);
  expect_dtype("gamma", gamma, x);
  if (scale.sizes() != at::IntArrayRef{1}) expect_shape("scale", scale, {x.size(-1)});
  expect_dtype_or_float("scale", scale, x);
  const bool is_int8 = offset && offset->scalar_type() == at::kChar;
  expect_offset("offset", offset, scale, is_int8 ? at::kChar : at::kInt);
  expect_quantized("y", y.dtype(), /*with_int4=*/true);
  require_given(!outputRstd || rstd, "rstd is null, expected a tensor as outputRstd is true");
  const at::Tensor reciprocal = reciprocal_root(wide(x), epsilon, {-1});
  at::Tensor norm = wide(x) * reciprocal * wide(of_last("gamma", gamma, x));
  if (beta) {
    expect_dtype("beta", *beta, x);
    norm = norm + wide(of_last("beta", *beta, x));
  }
  if (outputRstd) {
    expect_dtype("rstd", *rstd, at::kFloat);
    rstd = reciprocal;
  }
  store_quantized(y, scaled(norm, scale, offset, divMode.value()));
}
ACLNN(RmsNormDynamicQuant, (Floating<In>, x), (Floating<In>, gamma),
      (Optional<In>, smoothScalesOptional), (Optional<In>, betaOptional), (double, epsilon),
      (int64_t, dstType), (Out, yOut), (Out, scaleOut)) {
  expect_half("x", x);
  expect_dims("x", x, 2, 8);
  expect_elements(x);
  expect_dtype("gamma", gamma, x);
  expect_shape("gamma", gamma, {x.size(-1)});
  expect_smooth("smoothScalesOptional", smoothScalesOptional, gamma);
  expect_smooth("betaOptional", betaOptional, gamma);
  EXPECT(dstType == 2, "dstType is ", dstType.value(), ", expected 2 (INT8)");
  expect_dtype("yOut", yOut, at::kChar);
  expect_dtype("scaleOut", scaleOut, at::kFloat);
  at::Tensor norm = wide(x) * reciprocal_root(wide(x), epsilon, {-1}) * wide(gamma);
  if (betaOptional) norm = norm + wide(*betaOptional);
  const RowQuotients rows = scaled_by_rows(norm, smoothScalesOptional, 127);
  yOut = quantized(rows.quotients, ACL_INT8);
  scaleOut = rows.scales;
}

// The gradient of RmsNorm with respect to x, quantised, and to gamma. rstd is the reciprocal of the
// root mean square.
ACLNN(RmsNormGradQuant, (Floating<In>, dy), (Floating<In>, x), (In, rstd), (Floating<In>, gamma),
      (Floating<In>, scalesX), (Optional<In>, offsetXOptional), (const char*, quantMode),
      (bool, divMode), (Out, dxOut), (Out, dgammaOut)) {
  expect_dims("dy", dy, 2, 8);
  expect_like("x", x, dy);
  expect_dtype("rstd", rstd, at::kFloat);
  expect_dtype_or_float("gamma", gamma, dy);
  expect_one("scalesX", scalesX);
  expect_dtype_or_float("scalesX", scalesX, dy);
  if (offsetXOptional) {
    expect_dtype("offsetXOptional", *offsetXOptional, at::kInt);
    expect_one("offsetXOptional", *offsetXOptional);
  }
  EXPECT(quantMode == "static", "quantMode is \"", quantMode, "\", expected \"static\"");
  expect_dtype("dxOut", dxOut, at::kChar);
  expect_dtype("dgammaOut", dgammaOut, at::kFloat);
  const std::vector<int64_t> dims = normalized_dims(x, gamma);
  std::vector<int64_t> shape = x.sizes().vec();
  const size_t leading = shape.size() - dims.size();
  EXPECT(leading > 0, "gamma has shape ", gamma.sizes(), ", expected fewer dimensions than x");
  std::fill(shape.begin() + static_cast<int64_t>(leading), shape.end(), 1);
  if (rstd.sizes() != shape) expect_shape("rstd", rstd, x.sizes().slice(0, leading));
  const at::Tensor normalized = wide(x) * rstd.reshape(shape);
  const at::Tensor gradient = wide(dy) * wide(gamma);
  const at::Tensor dx =
      (gradient - normalized * (gradient * normalized).mean(dims, /*keepdim=*/true)) *
      rstd.reshape(shape);
  dgammaOut = (wide(dy) * normalized).sum_to_size(gamma.sizes());
  dxOut = quantized(scaled(dx, scalesX, offsetXOptional, divMode.value()), ACL_INT8);
}

}  // namespace aclnn_host::quantized_quantized_rms_norm_rows
