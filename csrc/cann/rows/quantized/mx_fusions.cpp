// Norms and gated activations with results quantised to MX, and the two-level quantisation to
// FLOAT4.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_fusions_rows {

namespace {

void check_algorithm(int64_t algorithm, int64_t dtype) {
  EXPECT(algorithm == 0 || (algorithm == 1 && dtype != ACL_FLOAT4_E2M1), "scaleAlg is ", algorithm,
         ", expected 0, or 1 for FLOAT8");
}

struct NormOptions {
  const at::Tensor& gamma;
  const std::optional<at::Tensor>& beta;
  double epsilon;
  int64_t algorithm;
  const std::string& mode;
  int64_t dtype;
  bool has_rstd;
};

// Rounds the norm of x to the type `narrow` and quantises it along the last dimension.
void quantize_norm(const at::Tensor& x, at::ScalarType narrow, const NormOptions& options,
                   StoredOutput& y, StoredOutput& scale, OptionalOutput& rstd_out) {
  const at::Tensor& gamma = options.gamma;
  expect_shape("gamma", gamma, {x.size(-1)});
  EXPECT(gamma.scalar_type() == narrow || gamma.scalar_type() == at::kFloat, "gamma has dtype ",
         dtype_text(gamma.scalar_type()), ", expected FLOAT or ", dtype_text(narrow));
  check_algorithm(options.algorithm, options.dtype);
  EXPECT(!options.mode.empty(), "roundMode is empty, expected a text");
  const MxRule rule = mx_rule(x, options.mode, options.dtype, options.algorithm, 0, y);
  const at::Tensor rstd =
      at::rsqrt((x * x).mean(at::IntArrayRef{-1}, /*keepdim=*/true) + options.epsilon);
  require_asked("rstdOut", rstd_out, "outputRstd", options.has_rstd);
  if (options.has_rstd) {
    expect_dtype(*rstd_out, rstd);
    expect_shape("rstdOut", *rstd_out, rstd.sizes());
    rstd_out = rstd;
  }
  at::Tensor norm = x * rstd * wide(gamma);
  if (options.beta) norm = norm + wide(*options.beta);
  expect_mx_scale(scale.name(), scale, scale.dtype(), mx_scale_shape(x, x.dim() - 1, kMxBlock));
  quantize_mx(norm.to(narrow), x.dim() - 1, kMxBlock, rule, y, scale);
}

// Checks that an axis is one of the last two dimensions of x.
int64_t late_axis(const char* name, const at::Tensor& x, int64_t axis) {
  const int64_t dims = x.dim();
  EXPECT(axis == -1 || axis == -2 || axis == dims - 1 || axis == dims - 2, name, " is ", axis,
         ", expected -1, -2, ", dims - 2, " or ", dims - 1);
  return axis < 0 ? axis + dims : axis;
}

at::Tensor swiglu(const at::Tensor& x, int64_t axis, bool activates_left) {
  const std::vector<at::Tensor> halves = x.chunk(2, axis);
  return at::silu(halves[activates_left ? 0 : 1]) * halves[activates_left ? 1 : 0];
}

// The variant with the gate in the even positions of the last dimension.
at::Tensor clamped_swiglu(const at::Tensor& x, double limit, double alpha, double bias) {
  const at::Tensor pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  const at::Tensor gate = at::clamp_max(pairs.select(-1, 0), limit);
  const at::Tensor linear = at::clamp(pairs.select(-1, 1), -limit, limit);
  return gate * at::sigmoid(gate * alpha) * (linear + bias);
}

}  // namespace

ACLNN(RmsNormDynamicMxQuant, (In, x), (In, gamma), (Like<Optional<In>>, beta, "gamma"),
      (double, epsilon), (int64_t, scaleAlg), (char*, roundMode), (int64_t, dstType),
      (bool, outputRstd), (Stored<Out>, yOut), (Stored<Out>, mxscaleOut),
      (Optional<Out>, rstdOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 7);
  quantize_norm(wide(x), x.scalar_type(),
                {gamma, beta, epsilon, scaleAlg, roundMode, dstType, outputRstd}, yOut, mxscaleOut,
                rstdOut);
}
ACLNN(AddRmsNormDynamicMxQuant, (In, x1), (Like<In>, x2, "x1"), (In, gamma),
      (Like<Optional<In>>, beta, "gamma"), (double, epsilon), (int64_t, scaleAlg),
      (char*, roundMode), (int64_t, dstType), (bool, outputRstd), (Stored<Out>, yOut),
      (Like<Out>, xOut, "x1"), (Stored<Out>, mxscaleOut), (Optional<Out>, rstdOut)) {
  expect_mx_source("x1", x1, /*may_be_float=*/false, 1, 7);
  const at::Tensor sum = wide(x1) + wide(x2);
  quantize_norm(sum, x1.scalar_type(),
                {gamma, beta, epsilon, scaleAlg, roundMode, dstType, outputRstd}, yOut, mxscaleOut,
                rstdOut);
  xOut = sum;
}

// The document leaves the results of rows after the last group undefined; they are computed like
// the others.
ACLNN(SwigluMxQuant, (In, x), (Optional<In>, groupIndexOptional), (int64_t, activateDim),
      (bool, activateLeft), (int64_t, swigluMode), (double, clampLimit), (double, gluAlpha),
      (double, gluBias), (int64_t, groupMode), (int64_t, axis), (int64_t, dstType),
      (char*, roundModeOptional), (int64_t, scaleAlg), (double, maxDtypeValue), (Stored<Out>, yOut),
      (Stored<Out>, mxscaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 2, 7);
  const int64_t last = x.dim() - 1;
  const int64_t split = late_axis("activateDim", x, activateDim);
  const int64_t blocks = late_axis("axis", x, axis);
  EXPECT(x.size(split) % 2 == 0, "x has ", x.size(split),
         " elements along activateDim, expected an even number");
  EXPECT(swigluMode == 0 || (swigluMode == 1 && split == last), "swigluMode is ", swigluMode,
         ", expected 0, or 1 if activateDim is the last dimension");
  EXPECT(swigluMode == 0 || (clampLimit > 0 && std::isfinite(clampLimit.value())), "clampLimit is ",
         clampLimit, ", expected a positive finite number");
  EXPECT(groupMode == 0 || groupMode == 1, "groupMode is ", groupMode, ", expected 0 or 1");
  EXPECT(maxDtypeValue >= 0, "maxDtypeValue is ", maxDtypeValue, ", expected 0 or more");
  check_algorithm(scaleAlg, dstType);
  if (groupIndexOptional) {
    expect_dtype("groupIndexOptional", *groupIndexOptional, at::kLong);
    expect_dims("groupIndexOptional", *groupIndexOptional, 1);
    const int64_t groups = groupIndexOptional->numel();
    EXPECT(groups >= 1 && groups <= 256, "groupIndexOptional has ", groups,
           " elements, expected 1 to 256");
    EXPECT(split == last && blocks == last,
           "activateDim or axis is not the last dimension, expected it with "
           "groupIndexOptional, the only case of groups that the host CANN emulates");
  }
  const at::Tensor result = swigluMode == 0
                                ? swiglu(wide(x), split, activateLeft)
                                : clamped_swiglu(wide(x), clampLimit, gluAlpha, gluBias);
  const at::Tensor narrow = result.to(x.scalar_type());
  const MxRule rule = mx_rule(narrow, roundModeOptional, dstType, scaleAlg, 0, yOut);
  quantize_mx(narrow, blocks, kMxBlock, rule, yOut, mxscaleOut);
}

// Infinity and NaN do not influence the scales of the first level, as in CANN.
ACLNN(DynamicDualLevelMxQuant, (In, x), (SameDtype<Optional<In>>, smoothScaleOptional, "x"),
      (char*, roundModeOptional), (int64_t, level0BlockSize), (int64_t, level1BlockSize),
      (Stored<Out>, yOut), (Out, level0ScaleOut), (Stored<Out>, level1ScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 7);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(level0BlockSize == 512, "level0BlockSize is ", level0BlockSize, ", expected 512");
  EXPECT(level1BlockSize == kMxBlock, "level1BlockSize is ", level1BlockSize, ", expected 32");
  expect_dtype("level0ScaleOut", level0ScaleOut, at::kFloat);
  const MxRule rule = mx_rule(x, roundModeOptional, ACL_FLOAT4_E2M1, 0, 0, yOut);
  at::Tensor smoothed = x;
  if (smoothScaleOptional) {
    expect_shape("smoothScaleOptional", *smoothScaleOptional, {x.size(-1)});
    smoothed = x * *smoothScaleOptional;
  }
  const int64_t size = x.size(-1);
  const int64_t blocks = (size - 1) / 512 + 1;
  const at::Tensor padded =
      at::constant_pad_nd(wide(smoothed), {0, blocks * 512 - size}).unflatten(-1, {blocks, 512});
  const at::Tensor magnitude = padded.abs();
  const at::Tensor finite = at::where(magnitude.isfinite(), magnitude, 0.0);
  const at::Tensor scale = at::amax(finite, -1) / 6;
  expect_shape("level0ScaleOut", level0ScaleOut, scale.sizes());
  // An element that is 0 stays 0 if the scale is 0, too.
  const at::Tensor divided = at::where(padded.eq(0), padded, padded / scale.unsqueeze(-1));
  const at::Tensor first = divided.flatten(-2).narrow(-1, 0, size).to(x.scalar_type());
  quantize_mx(first, x.dim() - 1, kMxBlock, rule, yOut, level1ScaleOut);
  level0ScaleOut = scale;
}

}  // namespace aclnn_host::quantized_mx_fusions_rows
