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
                 double epsilon) {
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
void quantize_both(const at::Tensor& y, const at::Tensor& x, const Parameters& by, bool divides,
                   StoredOutput& y1, StoredOutput& y2) {
  expect_quantized("y1Out", y1.dtype(), /*with_int4=*/false);
  expect_dtype_or_float("scales1", by.scales1, x);
  expect_offset("zeroPoints1Optional", by.zeros1, by.scales1, at::kInt);
  expect_offset("zeroPoints2Optional", by.zeros2, by.scales1, at::kInt);
  store_quantized(y1, scaled(y, by.scales1, by.zeros1, divides));
  if (!by.scales2) return;
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

void expect_one(const char* name, const at::Tensor& tensor) {
  expect_shape(name, tensor, {1});
}

}  // namespace

// axis has no effect. y2Out is written if scales2Optional is given.
ACLNN(AddRmsNormQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (SameShape<Floating<In>>, scales1, "gamma"),
      (Like<Optional<In>>, scales2Optional, "scales1"), (Optional<In>, zeroPoints1Optional),
      (SameDtype<Optional<In>>, zeroPoints2Optional, "zeroPoints1Optional"), (int64_t, axis),
      (double, epsilon), (bool, divMode), (Stored<Out>, y1Out), (Stored<Out>, y2Out),
      (Like<Out>, xOut, "x1")) {
  static_cast<void>(axis);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  quantize_both(sum.norm, x1, {scales1, scales2Optional, zeroPoints1Optional, zeroPoints2Optional},
                divMode.value(), y1Out, y2Out);
  xOut = sum.x;
}
// rmsNormOut does not include betaOptional.
ACLNN(AddRmsNormQuantV2, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (SameShape<Floating<In>>, scales1, "gamma"),
      (Like<Optional<In>>, scales2Optional, "scales1"), (Optional<In>, zeroPoints1Optional),
      (SameDtype<Optional<In>>, zeroPoints2Optional, "zeroPoints1Optional"),
      (SameShape<Optional<In>>, betaOptional, "gamma"), (int64_t, axis), (double, epsilon),
      (bool, divMode), (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Like<Out>, xOut, "x1"),
      (Like<Optional<Out>>, rmsNormOut, "x1")) {
  static_cast<void>(axis);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  at::Tensor y = sum.norm;
  if (betaOptional) {
    expect_dtype_or_float("betaOptional", *betaOptional, x1);
    y = y + wide(*betaOptional);
  }
  quantize_both(y, x1, {scales1, scales2Optional, zeroPoints1Optional, zeroPoints2Optional},
                divMode.value(), y1Out, y2Out);
  xOut = sum.x;
  rmsNormOut = sum.norm;
}

// y2Out and scale2Out are written if smoothScale2Optional is given.
ACLNN(AddRmsNormDynamicQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (Like<Optional<In>>, smoothScale1Optional, "gamma"),
      (Like<Optional<In>>, smoothScale2Optional, "gamma"), (double, epsilon), (Stored<Out>, y1Out),
      (Stored<Out>, y2Out), (Like<Out>, xOut, "x1"), (Out, scale1Out), (Out, scale2Out)) {
  expect_half("x1", x1);
  expect_dims("x1", x1, 2, 8);
  expect_dims("gamma", gamma, 1);
  EXPECT(smoothScale1Optional || !smoothScale2Optional,
         "smoothScale1Optional is null, expected a tensor as smoothScale2Optional is one");
  expect_quantized("y1Out", y1Out.dtype(), /*with_int4=*/false);
  expect_dtype("scale1Out", scale1Out, at::kFloat);
  expect_dtype("scale2Out", scale2Out, at::kFloat);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
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
ACLNN(AddRmsNormDynamicQuantV2, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (Like<Optional<In>>, smoothScale1Optional, "gamma"),
      (Like<Optional<In>>, smoothScale2Optional, "gamma"),
      (Like<Optional<In>>, betaOptional, "gamma"), (double, epsilon), (Optional<Bools>, outputMask),
      (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Like<Out>, xOut, "x1"), (Out, scale1Out),
      (Out, scale2Out)) {
  expect_half("x1", x1);
  expect_dims("x1", x1, 2, 8);
  expect_dims("gamma", gamma, 1);
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
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  const at::Tensor y = betaOptional ? sum.norm + wide(*betaOptional) : sum.norm;
  if (writes[0]) quantize_rows(y, smoothScale1Optional, y1Out, scale1Out, /*flattens=*/false);
  if (writes[1]) quantize_rows(y, smoothScale2Optional, y2Out, scale2Out, /*flattens=*/false);
  xOut = sum.x;
}

// NaN becomes 0, also in FLOAT8.
ACLNN(RmsNormQuant, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"),
      (SameDtype<Floating<In>>, beta, "x"), (Floating<In>, scale), (In, offset), (double, epsilon),
      (Stored<Out>, y)) {
  expect_elements(x);
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
ACLNN(RmsNormQuantV3, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"),
      (Floating<In>, scale), (Optional<In>, offset), (SameDtype<Optional<In>>, beta, "x"),
      (double, epsilon), (bool, divMode), (bool, outputRstd), (Stored<Out>, y),
      (Optional<Out>, rstd)) {
  expect_elements(x);
  if (scale.sizes() != at::IntArrayRef{1}) expect_shape("scale", scale, {x.size(-1)});
  expect_dtype_or_float("scale", scale, x);
  const bool is_int8 = offset && offset->scalar_type() == at::kChar;
  expect_offset("offset", offset, scale, is_int8 ? at::kChar : at::kInt);
  expect_quantized("y", y.dtype(), /*with_int4=*/true);
  require_given(!outputRstd || rstd, "rstd is null, expected a tensor as outputRstd is true");
  const at::Tensor reciprocal = reciprocal_root(wide(x), epsilon, {-1});
  at::Tensor norm = wide(x) * reciprocal * wide(of_last("gamma", gamma, x));
  if (beta) norm = norm + wide(of_last("beta", *beta, x));
  if (outputRstd) {
    expect_dtype("rstd", *rstd, at::kFloat);
    rstd = reciprocal;
  }
  store_quantized(y, scaled(norm, scale, offset, divMode.value()));
}
ACLNN(RmsNormDynamicQuant, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"),
      (Like<Optional<In>>, smoothScalesOptional, "gamma"),
      (Like<Optional<In>>, betaOptional, "gamma"), (double, epsilon), (int64_t, dstType),
      (Out, yOut), (Out, scaleOut)) {
  expect_half("x", x);
  expect_dims("x", x, 2, 8);
  expect_elements(x);
  expect_shape("gamma", gamma, {x.size(-1)});
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
ACLNN(RmsNormGradQuant, (Floating<In>, dy), (Like<Floating<In>>, x, "dy"), (In, rstd),
      (Floating<In>, gamma), (Floating<In>, scalesX), (Optional<In>, offsetXOptional),
      (const char*, quantMode), (bool, divMode), (Out, dxOut), (Out, dgammaOut)) {
  expect_dims("dy", dy, 2, 8);
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
