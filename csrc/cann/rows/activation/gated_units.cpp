// Gated linear units: one half of a tensor, activated, times the other.

#include <ATen/OpMathType.h>

#include "cann/rows/activation/gated_rows.h"
#include "cann/rows/activation/gated_units.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::activation_gated_units_rows {

namespace {

// torch's name of the GELU formula that CANN numbers `approximate`.
c10::string_view gelu_formula(int64_t approximate) {
  expect_one_of("approximate", approximate, {0, 1}, " (none or tanh)");
  return approximate == 0 ? "none" : "tanh";
}

void expect_limit(double limit) {
  EXPECT(limit > 0, "limit is ", limit, ", expected more than 0");
}

int64_t dim_of(int64_t dim, const at::Tensor& x) {
  expect_dims("x", x, 1, 8);
  expect_range("dim", dim, -x.dim(), x.dim() - 1);
  return dim < 0 ? dim + x.dim() : dim;
}

// Writes GELU of the gate times the other half, and that GELU.
void geglu(const Halves& x, int64_t approximate, Output& out, Output& out_gelu) {
  const at::Tensor activated = at::gelu(x.gate, gelu_formula(approximate));
  out = at::mul(x.up, activated);
  out_gelu = activated;
}
// `gelu` is the output outGelu of the forward pass.
at::Tensor geglu_gradient(const Halves& x, const at::Tensor& gradient, const at::Tensor& gelu,
                          int64_t dim, int64_t approximate, bool gate_is_left) {
  const at::Tensor of_gate =
      at::gelu_backward(at::mul(gradient, x.up), x.gate, gelu_formula(approximate));
  const at::Tensor of_up = at::mul(gradient, gelu);
  const at::Tensor parts[] = {gate_is_left ? of_gate : of_up, gate_is_left ? of_up : of_gate};
  return at::cat(at::TensorList(parts), dim);
}

// Splits the columns of a matrix into those that go through the activation and the others.
Halves split(const at::Tensor& rows, bool is_interleaved) {
  return is_interleaved ? interleaved_halves(rows) : halves(rows, 1, /*gate_is_left=*/true);
}
at::Tensor joined(const Halves& parts, bool is_interleaved) {
  if (!is_interleaved) return at::cat({parts.gate, parts.up}, 1);
  return at::stack({parts.gate, parts.up}, -1).flatten(1);
}

struct Clipping {
  double alpha, limit, bias;
};

void clipped_swiglu(const at::Tensor& x, const OptionalTensor& groups, int64_t dim,
                    const Clipping& clipping, bool is_interleaved, bool clamps_after, Output& out) {
  const auto [alpha, limit, bias] = clipping;
  const int64_t position = dim_of(dim, x);
  expect_limit(limit);
  expect_shape("out", out, half_shape(x, position));
  const Halves parts = split(as_matrix(wide(x), position), is_interleaved);
  at::Tensor result = clamps_after ? swiglu_clamped_after(parts, limit)
                                   : biased_swiglu(clamped(parts, limit), alpha, bias);
  if (groups) {
    result = at::where(is_in_groups(*groups, rows_before(x, position)), result,
                       as_matrix(wide(out), position));
  }
  out = result.reshape(out->sizes());
}

}  // namespace

ACLNN(Glu, (Floating<In>, self), (int64_t, dim), (Out, out)) {
  out = at::glu(wide(self), dim);
}
ACLNN(GluBackward, (Floating<In>, gradOut), (Floating<In>, self), (int64_t, dim), (Out, out)) {
  out = at::glu_backward(wide(gradOut), wide(self), dim);
}
ACLNN(SwiGlu, (Floating<In>, x), (int64_t, dim), (Out, out)) {
  const at::Tensor whole = x.to(at::toOpMathType(x.scalar_type()));
  out = swiglu(halves(whole, dim, /*gate_is_left=*/true)).to(x.scalar_type());
}
ACLNN(SwiGluGrad, (Floating<In>, yGrad), (Floating<In>, x), (int64_t, dim), (Out, out)) {
  const auto type = at::toOpMathType(x.scalar_type());
  const Halves parts = halves(x.to(type), dim, /*gate_is_left=*/true);
  expect_shape("yGrad", yGrad, parts.gate.sizes());
  const at::Tensor gradient = yGrad.to(type);
  const at::Tensor gradients[] = {at::silu_backward(at::mul(gradient, parts.up), parts.gate),
                                  at::mul(gradient, at::silu(parts.gate))};
  out = at::cat(at::TensorList(gradients), dim).to(x.scalar_type());
}
// The first half of the last dimension is the gate, which is clamped after its activation.
ACLNN(SwigluClamp, (Floating<In>, x), (double, limit), (SameDtype<Out>, y, "x")) {
  expect_limit(limit);
  EXPECT(x.dim() > 0 && x.size(-1) % 2 == 0, "x has shape ", x.sizes(),
         ", expected an even last dimension");
  y = swiglu_clamped_after(halves(wide(x), -1, /*gate_is_left=*/true), limit);
}
// out is the left half times GELU of the right half; outGelu is that GELU.
ACLNN(GeGlu, (Floating<In>, self), (int64_t, dim), (int64_t, approximate),
      (SameDtype<Out>, out, "self"), (SameDtype<Out>, outGelu, "self")) {
  geglu(halves(wide(self), dim, /*gate_is_left=*/false, "self"), approximate, out, outGelu);
}
ACLNN(GeGluBackward, (SameDtype<Floating<In>>, gradOutput, "self"), (Floating<In>, self),
      (Like<Floating<In>>, gelu, "gradOutput"), (int64_t, dim), (int64_t, approximate),
      (Like<Out>, gradInput, "self")) {
  const Halves parts = halves(wide(self), dim, /*gate_is_left=*/false, "self");
  expect_shape("gradOutput", gradOutput, parts.gate.sizes());
  gradInput = geglu_gradient(parts, wide(gradOutput), wide(gelu), dim, approximate,
                             /*gate_is_left=*/false);
}
// out is GELU of one half of x, times the other half; outGelu is that GELU.
ACLNN(GeGluV3, (Floating<In>, x), (int64_t, dim), (int64_t, approximate), (bool, activateLeft),
      (Out, out), (Out, outGelu)) {
  geglu(halves(wide(x), dim, activateLeft), approximate, out, outGelu);
}
ACLNN(GeGluV3Backward, (Floating<In>, dy), (Floating<In>, x), (Floating<In>, gelu), (int64_t, dim),
      (int64_t, approximate), (bool, activateLeft), (Out, dx)) {
  const Halves parts = halves(wide(x), dim, activateLeft);
  expect_shape("dy", dy, parts.gate.sizes());
  expect_shape("gelu", gelu, parts.gate.sizes());
  dx = geglu_gradient(parts, wide(dy), wide(gelu), dim, approximate, activateLeft);
}

// One half of the last dimension, activated, times the other.
ACLNN(FatreluMul, (Floating<In>, input), (SameDtype<Floating<In>>, threshold, "input"),
      (SameDtype<Out>, out, "input")) {
  EXPECT(threshold.numel() == 1, "threshold has shape ", threshold.sizes(),
         ", expected one element");
  const Halves parts = halves(wide(input), -1, /*gate_is_left=*/true, "input");
  const at::Tensor is_low = parts.gate < wide(threshold).reshape({});
  out = at::mul(parts.gate.masked_fill(is_low, 0), parts.up);
}
ACLNN(GeluMul, (Floating<In>, input), (char*, approximateOptional),
      (SameDtype<Out>, out, "input")) {
  const std::string formula = approximateOptional.empty() ? "none" : approximateOptional;
  expect_text("approximateOptional", formula, {"none", "tanh"});
  const Halves parts = halves(wide(input), -1, /*gate_is_left=*/true, "input");
  out = at::mul(at::gelu(parts.gate, formula), parts.up);
}
ACLNN(SiluMul, (Floating<In>, x), (Like<Floating<In>>, y, "x"), (Like<Out>, out, "x")) {
  out = at::silu(wide(x)) * wide(y);
}

// The two factors are the halves, or the alternate elements, of dim and all dimensions after it.
// Along the dimensions before it, only rows in the groups are written.
ACLNN(ClippedSwiglu, (Floating<In>, x), (Optional<In>, groupIndexOptional), (int64_t, dim),
      (double, alpha), (double, limit), (double, bias), (bool, interleaved), (Out, out)) {
  clipped_swiglu(x, groupIndexOptional, dim, {alpha, limit, bias}, interleaved,
                 /*clamps_after=*/false, out);
}
// With clampMode 1 the gate is clamped after its activation, and alpha and bias are not read.
ACLNN(ClippedSwigluV2, (Floating<In>, x), (Optional<In>, groupIndexOptional), (int64_t, dim),
      (double, alpha), (double, limit), (double, bias), (bool, interleaved), (int64_t, clampMode),
      (Out, out)) {
  expect_one_of("clampMode", clampMode, {0, 1});
  expect_dtype(out, x);
  clipped_swiglu(x, groupIndexOptional, dim, {alpha, limit, bias}, interleaved, clampMode == 1,
                 out);
}
// Rows outside the groups have the gradient 0.
ACLNN(ClippedSwigluGrad, (Floating<In>, gradY), (Floating<In>, x),
      (Optional<In>, groupIndexOptional), (int64_t, dim), (double, alpha), (double, limit),
      (double, bias), (bool, interleaved), (Like<Out>, gradXOut, "x")) {
  const int64_t position = dim_of(dim, x);
  expect_limit(limit);
  expect_halved("gradY", gradY, x, position);
  const at::Tensor gradient = as_matrix(wide(gradY), position);
  const Halves parts = split(as_matrix(wide(x), position), interleaved);
  const auto [gate, up] = clamped(parts, limit);
  const at::Tensor s = at::sigmoid(gate * alpha.value());
  const at::Tensor of_gate =
      gradient * (up + bias.value()) * s * (1 + gate * (1 - s) * alpha.value());
  const at::Tensor of_up = gradient * gate * s;
  const at::Tensor has_gate = at::le(parts.gate, limit.value());
  const at::Tensor has_up = at::le(parts.up.abs(), limit.value());
  at::Tensor result = joined(
      {of_gate.masked_fill(has_gate.logical_not(), 0), of_up.masked_fill(has_up.logical_not(), 0)},
      interleaved);
  if (groupIndexOptional) {
    result = at::where(is_in_groups(*groupIndexOptional, rows_before(x, position)), result,
                       at::zeros_like(result));
  }
  gradXOut = result.reshape(x.sizes());
}

ACLNN(SituGlu, (Floating<In>, x), (int64_t, dim), (double, beta), (double, linearBeta),
      (bool, activateLeft), (Out, out)) {
  const int64_t position = dim_of(dim, x);
  expect_halved("out", out, x, position);
  const Halves parts = halves(as_matrix(wide(x), position), 1, activateLeft);
  out = situ(parts, beta, linearBeta).reshape(out->sizes());
}
ACLNN(SituGluGrad, (Floating<In>, gradY), (Floating<In>, x), (int64_t, dim), (double, beta),
      (double, linearBeta), (bool, activateLeft), (Like<Out>, out, "x")) {
  const int64_t position = dim_of(dim, x);
  expect_halved("gradY", gradY, x, position);
  const Halves parts = halves(as_matrix(wide(x), position), 1, activateLeft);
  const at::Tensor gradient = as_matrix(wide(gradY), position);
  const at::Tensor t = at::tanh(parts.gate / beta.value());
  const at::Tensor s = at::sigmoid(parts.gate);
  at::Tensor up = parts.up;
  at::Tensor of_up = gradient * t * s * beta.value();
  if (linearBeta > 0.0) {
    const at::Tensor bounded = at::tanh(parts.up / linearBeta.value());
    up = bounded * linearBeta.value();
    of_up = of_up * (1 - bounded.square());
  }
  const at::Tensor of_gate = gradient * up * s * ((1 - t.square()) + t * (1 - s) * beta.value());
  out = at::cat(activateLeft ? std::vector<at::Tensor>{of_gate, of_up}
                             : std::vector<at::Tensor>{of_up, of_gate},
                1)
            .reshape(x.sizes());
}

}  // namespace aclnn_host::activation_gated_units_rows
