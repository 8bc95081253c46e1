// Norms and gated activations with results quantised to MX, and the two-level quantisation to
// FLOAT4.

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/mx_blocks.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_mx_fusions_rows {

namespace {

// Rounds the norm of x to the type of `input` and quantises it along the last dimension. `row` is
// the struct of a row.
template <class Row>
void quantize_norm(Row& row, const at::Tensor& x, const at::Tensor& input) {
  const at::ScalarType dtype = input.scalar_type();
  expect_shape("gamma", row.gamma, {x.size(-1)});
  expect_dtype("gamma", row.gamma, {at::kFloat, dtype});
  expect_mx_algorithm(row.scaleAlg, row.dstType, /*has_second=*/false);
  EXPECT(!row.roundMode.empty(), "roundMode is empty, expected a text");
  const MxRule rule =
      mx_rule(x, "roundMode", row.roundMode, row.dstType, row.scaleAlg, 0, row.yOut);
  const at::Tensor rstd =
      at::rsqrt((x * x).mean(at::IntArrayRef{-1}, /*keepdim=*/true) + row.epsilon.value());
  require_asked("rstdOut", row.rstdOut, "outputRstd", row.outputRstd);
  if (row.outputRstd) {
    expect_like("rstdOut", *row.rstdOut, rstd);
    row.rstdOut = rstd;
  }
  at::Tensor norm = x * rstd * wide(row.gamma);
  if (row.beta) norm = norm + wide(*row.beta);
  quantize_mx(norm.to(dtype), x.dim() - 1, kMxBlock, rule, row.yOut, row.mxscaleOut);
}

// Checks that an axis is one of the last two dimensions of x.
int64_t late_axis(const char* name, const at::Tensor& x, int64_t axis) {
  const int64_t dims = x.dim();
  expect_one_of(name, axis, {-1, -2, dims - 2, dims - 1});
  return axis < 0 ? axis + dims : axis;
}

}  // namespace

ACLNN_STRUCT(RmsNormDynamicMxQuant, (In, x), (In, gamma), (Like<Optional<In>>, beta, "gamma"),
             (double, epsilon), (int64_t, scaleAlg), (char*, roundMode), (int64_t, dstType),
             (bool, outputRstd), (Stored<Out>, yOut), (Stored<Out>, mxscaleOut),
             (Optional<Out>, rstdOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 7);
  quantize_norm(*this, wide(x), x);
}
ACLNN_STRUCT(AddRmsNormDynamicMxQuant, (In, x1), (Like<In>, x2, "x1"), (In, gamma),
             (Like<Optional<In>>, beta, "gamma"), (double, epsilon), (int64_t, scaleAlg),
             (char*, roundMode), (int64_t, dstType), (bool, outputRstd), (Stored<Out>, yOut),
             (Like<Out>, xOut, "x1"), (Stored<Out>, mxscaleOut), (Optional<Out>, rstdOut)) {
  expect_mx_source("x1", x1, /*may_be_float=*/false, 1, 7);
  const at::Tensor sum = wide(x1) + wide(x2);
  quantize_norm(*this, sum, x1);
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
  expect_one_of("groupMode", groupMode, {0, 1});
  EXPECT(maxDtypeValue >= 0, "maxDtypeValue is ", maxDtypeValue, ", expected 0 or more");
  expect_mx_algorithm(scaleAlg, dstType, /*has_second=*/false);
  if (groupIndexOptional) {
    expect_dtype("groupIndexOptional", *groupIndexOptional, at::kLong);
    expect_dims("groupIndexOptional", *groupIndexOptional, 1);
    expect_range("the number of elements of groupIndexOptional", groupIndexOptional->numel(), 1,
                 256);
    EXPECT(split == last && blocks == last,
           "activateDim or axis is not the last dimension, expected it with "
           "groupIndexOptional, the only case of groups that the host CANN emulates");
  }
  const at::Tensor result =
      swigluMode == 0
          ? swiglu(halves(wide(x), split, activateLeft))
          : biased_swiglu(clamped(interleaved_halves(wide(x)), clampLimit), gluAlpha, gluBias);
  const at::Tensor narrow = result.to(x.scalar_type());
  const MxRule rule =
      mx_rule(narrow, "roundModeOptional", roundModeOptional, dstType, scaleAlg, 0, yOut);
  quantize_mx(narrow, blocks, kMxBlock, rule, yOut, mxscaleOut);
}

// Infinity and NaN do not influence the scales of the first level, as in CANN.
ACLNN(DynamicDualLevelMxQuant, (In, x), (SameDtype<Optional<In>>, smoothScaleOptional, "x"),
      (char*, roundModeOptional), (int64_t, level0BlockSize), (int64_t, level1BlockSize),
      (Stored<Out>, yOut), (Out, level0ScaleOut), (Stored<Out>, level1ScaleOut)) {
  expect_mx_source("x", x, /*may_be_float=*/false, 1, 7);
  expect_elements("x", x);
  expect_one_of("level0BlockSize", level0BlockSize, {512});
  expect_one_of("level1BlockSize", level1BlockSize, {kMxBlock});
  expect_dtype("level0ScaleOut", level0ScaleOut, at::kFloat);
  expect_type(yOut, {ACL_FLOAT4_E2M1});
  const MxRule rule =
      mx_rule(x, "roundModeOptional", roundModeOptional, ACL_FLOAT4_E2M1, 0, 0, yOut);
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
