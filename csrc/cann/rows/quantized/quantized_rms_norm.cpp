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

// Quantises y by the parameters of a row. Without scales2Optional, y2Out is not written.
template <class Version>
void quantize_both(Version& row, const at::Tensor& y) {
  expect_type(row.y1Out, {ACL_INT8, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_dtype_or_float("scales1", row.scales1, row.x1);
  expect_offset("zeroPoints1Optional", row.zeroPoints1Optional, row.scales1, at::kInt);
  expect_offset("zeroPoints2Optional", row.zeroPoints2Optional, row.scales1, at::kInt);
  store_quantized(row.y1Out, scaled(y, row.scales1, row.zeroPoints1Optional, row.divMode));
  if (!row.scales2Optional) return;
  expect_type(row.y2Out, {row.y1Out.dtype()}, " as y1Out has");
  store_quantized(row.y2Out, scaled(y, *row.scales2Optional, row.zeroPoints2Optional, row.divMode));
}

// One dynamic quantisation of y. All but the last dimension of y may be flattened into one in the
// scales and, if `flattens`, in the quantised result.
void quantize_rows(const at::Tensor& y, const OptionalTensor& smooth, StoredOutput& out,
                   Output& scale_out, bool flattens) {
  const at::IntArrayRef shape = leading(y);
  const std::vector<int64_t> flat{c10::multiply_integers(shape)};
  const bool is_flat = scale_out->sizes() == flat;
  if (!is_flat) expect_shape(scale_out.name(), scale_out, shape);
  if (y.numel() == 0) return;
  const RowQuotients rows = scaled_by_rows(y, smooth, largest_of(out.dtype()));
  const bool is_table = flattens && out->dim() == 2;
  store_quantized(out, is_table ? rows.quotients.flatten(0, -2) : rows.quotients);
  scale_out = rows.scales.reshape(is_flat ? at::IntArrayRef(flat) : shape);
}

void expect_quantized(const StoredOutput& y) {
  expect_type(y, {ACL_INT4, ACL_INT32, ACL_INT8, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
}
void expect_one(const char* name, const at::Tensor& tensor) {
  expect_shape(name, tensor, {1});
}

}  // namespace

// y2Out is written if scales2Optional is given.
ACLNN_STRUCT(AddRmsNormQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
             (SameDtype<Floating<In>>, gamma, "x1"), (SameShape<Floating<In>>, scales1, "gamma"),
             (Like<Optional<In>>, scales2Optional, "scales1"), (Optional<In>, zeroPoints1Optional),
             (SameDtype<Optional<In>>, zeroPoints2Optional, "zeroPoints1Optional"),
             (Unused<int64_t>, axis, "has no effect"), (double, epsilon), (bool, divMode),
             (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Like<Out>, xOut, "x1")) {
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  quantize_both(*this, sum.norm);
  xOut = sum.x;
}
// rmsNormOut does not include betaOptional.
ACLNN_STRUCT(AddRmsNormQuantV2, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
             (SameDtype<Floating<In>>, gamma, "x1"), (SameShape<Floating<In>>, scales1, "gamma"),
             (Like<Optional<In>>, scales2Optional, "scales1"), (Optional<In>, zeroPoints1Optional),
             (SameDtype<Optional<In>>, zeroPoints2Optional, "zeroPoints1Optional"),
             (SameShape<Optional<In>>, betaOptional, "gamma"),
             (Unused<int64_t>, axis, "has no effect"), (double, epsilon), (bool, divMode),
             (Stored<Out>, y1Out), (Stored<Out>, y2Out), (Like<Out>, xOut, "x1"),
             (Like<Optional<Out>>, rmsNormOut, "x1")) {
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  at::Tensor y = sum.norm;
  if (betaOptional) {
    expect_dtype_or_float("betaOptional", *betaOptional, x1);
    y = y + wide(*betaOptional);
  }
  quantize_both(*this, y);
  xOut = sum.x;
  rmsNormOut = sum.norm;
}

// y2Out and scale2Out are written if smoothScale2Optional is given.
ACLNN(AddRmsNormDynamicQuant, (Floating<In>, x1), (Like<Floating<In>>, x2, "x1"),
      (SameDtype<Floating<In>>, gamma, "x1"), (Like<Optional<In>>, smoothScale1Optional, "gamma"),
      (Like<Optional<In>>, smoothScale2Optional, "gamma"), (double, epsilon), (Stored<Out>, y1Out),
      (Stored<Out>, y2Out), (Like<Out>, xOut, "x1"), (Out, scale1Out), (Out, scale2Out)) {
  expect_reduced_float("x1", x1);
  expect_dims("x1", x1, 2, 8);
  expect_dims("gamma", gamma, 1);
  EXPECT(smoothScale1Optional || !smoothScale2Optional,
         "smoothScale1Optional is null, expected a tensor as smoothScale2Optional is one");
  expect_type(y1Out, {ACL_INT8, ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2});
  expect_dtype("scale1Out", scale1Out, at::kFloat);
  expect_dtype("scale2Out", scale2Out, at::kFloat);
  const Sum sum = add_rms_norm(x1, x2, gamma, epsilon);
  quantize_rows(sum.norm, smoothScale1Optional, y1Out, scale1Out, /*flattens=*/true);
  if (smoothScale2Optional) {
    expect_type(y2Out, {y1Out.dtype()}, " as y1Out has");
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
  expect_reduced_float("x1", x1);
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
  if (writes[0]) expect_quantized(y1Out);
  if (writes[1]) expect_quantized(y2Out);
  if (writes[0] && writes[1]) expect_type(y2Out, {y1Out.dtype()}, " as y1Out has");
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
  expect_elements("x", x);
  expect_one("scale", scale);
  expect_dtype_or_float("scale", scale, x);
  const bool is_int8 = offset.scalar_type() == at::kChar;
  expect_offset("offset", offset, scale, is_int8 ? at::kChar : at::kInt);
  expect_quantized(y);
  const at::Tensor norm =
      wide(x) * reciprocal_root(wide(x), epsilon, {-1}) * last_parameters("gamma", gamma, x) +
      last_parameters("beta", beta, x);
  const at::Tensor result = scaled(norm, scale, offset, /*divides=*/true);
  store_quantized(y, at::where(result.isnan(), at::zeros_like(result), result));
}
ACLNN(RmsNormQuantV3, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"),
      (Floating<In>, scale), (Optional<In>, offset), (SameDtype<Optional<In>>, beta, "x"),
      (double, epsilon), (bool, divMode), (bool, outputRstd), (Stored<Out>, y),
      (Optional<Out>, rstd)) {
  expect_elements("x", x);
  if (scale.sizes() != at::IntArrayRef{1}) expect_shape("scale", scale, {x.size(-1)});
  expect_dtype_or_float("scale", scale, x);
  const bool is_int8 = offset && offset->scalar_type() == at::kChar;
  expect_offset("offset", offset, scale, is_int8 ? at::kChar : at::kInt);
  expect_quantized(y);
  require_given(!outputRstd || rstd, "rstd is null, expected a tensor as outputRstd is true");
  const at::Tensor reciprocal = reciprocal_root(wide(x), epsilon, {-1});
  at::Tensor norm = wide(x) * reciprocal * last_parameters("gamma", gamma, x);
  if (beta) norm = norm + last_parameters("beta", *beta, x);
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
  expect_reduced_float("x", x);
  expect_dims("x", x, 2, 8);
  expect_elements("x", x);
  expect_shape("gamma", gamma, {x.size(-1)});
  expect_one_of("dstType", dstType, {2}, " (INT8)");
  expect_dtype("yOut", yOut, at::kChar);
  expect_dtype("scaleOut", scaleOut, at::kFloat);
  at::Tensor norm = wide(x) * reciprocal_root(wide(x), epsilon, {-1}) * wide(gamma);
  if (betaOptional) norm = norm + wide(*betaOptional);
  const RowQuotients rows = scaled_by_rows(norm, smoothScalesOptional, 127);
  yOut = to_int8(rows.quotients);
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
  expect_text("quantMode", quantMode, {"static"});
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
  dxOut = to_int8(scaled(dx, scalesX, offsetXOptional, divMode));
}

}  // namespace aclnn_host::quantized_quantized_rms_norm_rows
