// Gated activations of the halves of a tensor, and their gradients, for groups of rows too. All is
// computed in FP32 and rounded once.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/activation/gated_units.h"
#include "cann/rows/checks.h"
#include "cann/rows/quantized/row_groups.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_gated_activation_rows {

namespace {

using Optional = std::optional<at::Tensor>;

int64_t place_of(int64_t dim, const at::Tensor& x) {
  expect_dims("x", x, 1, 8);
  EXPECT(dim >= -x.dim() && dim < x.dim(), "dim is ", dim, ", expected ", -x.dim(), " to ",
         x.dim() - 1);
  return dim < 0 ? dim + x.dim() : dim;
}

// The shape of x with half the elements in a dimension.
std::vector<int64_t> half_shape(const at::Tensor& x, int64_t dim) {
  std::vector<int64_t> shape = x.sizes().vec();
  int64_t& size = shape[static_cast<size_t>(dim)];
  EXPECT(size % 2 == 0, "x has ", size, " elements in dimension ", dim,
         ", expected an even number");
  size /= 2;
  return shape;
}
void expect_half(const char* name, const at::Tensor& half, const at::Tensor& x, int64_t dim) {
  expect_dtype(name, half, x);
  expect_shape(name, half, half_shape(x, dim));
}

// Which of so many rows come before the sum of the groups' counts, as a column.
at::Tensor is_in_groups(const at::Tensor& groups, int64_t rows) {
  expect_dtype("groupIndexOptional", groups, at::kLong);
  expect_group_list("groupIndexOptional", groups);
  return at::lt(at::arange(rows, groups.options()), groups.sum()).unsqueeze(1);
}

// A matrix whose columns are dim and all dimensions after it.
at::Tensor as_rows(const at::Tensor& x, int64_t dim) {
  return x.reshape({rows_before(x, dim), c10::multiply_integers(x.sizes().slice(dim))});
}

// The columns of a matrix that go through the activation, and the others.
Halves split(const at::Tensor& rows, bool is_interleaved) {
  if (!is_interleaved) return halves(rows, 1, /*gate_is_left=*/true);
  return {rows.slice(1, 0, std::nullopt, 2), rows.slice(1, 1, std::nullopt, 2)};
}
at::Tensor joined(const Halves& parts, bool is_interleaved) {
  if (!is_interleaved) return at::cat({parts.gate, parts.up}, 1);
  return at::stack({parts.gate, parts.up}, -1).flatten(1);
}

// The gradient of silu(gate) * up for the clamped halves of x, where a limit of 0 is none. The
// limits themselves have no gradient.
at::Tensor swiglu_gradient(const at::Tensor& gradient, const at::Tensor& x, double limit) {
  const Halves parts = halves(x, x.dim() - 1, /*gate_is_left=*/true);
  const bool is_clamped = limit > 0;
  const at::Tensor gate = is_clamped ? at::clamp_max(parts.gate, limit) : parts.gate;
  const at::Tensor up = is_clamped ? at::clamp(parts.up, -limit, limit) : parts.up;
  const at::Tensor sigmoid = at::sigmoid(gate);
  at::Tensor of_gate = gradient * up * sigmoid * (1 + gate * (1 - sigmoid));
  at::Tensor of_up = gradient * gate * sigmoid;
  if (is_clamped) {
    of_gate = of_gate.masked_fill(at::lt(parts.gate, limit).logical_not(), 0);
    of_up = of_up.masked_fill(at::lt(parts.up.abs(), limit).logical_not(), 0);
  }
  return at::cat({of_gate, of_up}, -1);
}

struct GroupGradient {
  const at::Tensor &gradient, &x;
  const Optional &weight, &y, &groups;
  double limit;
  bool masks_weight;  // whether the weights' gradient is 0 after the groups, too
};
void swiglu_group_gradient(const GroupGradient& in, Output& gradient_out,
                           OptionalOutput& weight_out) {
  const int64_t last = in.x.dim() - 1;
  expect_half("gradY", in.gradient, in.x, last);
  expect_like("gradXOut", gradient_out, in.x);
  const int64_t rows = rows_before(in.x, last);
  at::Tensor gradient = wide(in.gradient).reshape({rows, in.gradient.size(-1)});
  const at::Tensor unweighted = gradient;
  if (in.weight) {
    expect_dtype("weightOptional", *in.weight, at::kFloat);
    EXPECT(in.weight->numel() == rows, "weightOptional has ", in.weight->numel(),
           " elements, expected ", rows, ", one for each row of x");
    expect_like("yOriginOptional", *in.y, in.gradient);
    gradient = gradient * in.weight->reshape({rows, 1});
  }
  at::Tensor result = swiglu_gradient(gradient, as_rows(wide(in.x), last), in.limit);
  at::Tensor of_weight;
  if (in.weight) of_weight = (unweighted * wide(*in.y).reshape_as(unweighted)).sum(1);
  if (in.groups) {
    const at::Tensor counts = is_in_groups(*in.groups, rows);
    result = at::where(counts, result, at::zeros_like(result));
    if (in.weight && in.masks_weight) {
      of_weight = at::where(counts.squeeze(1), of_weight, at::zeros_like(of_weight));
    }
  }
  gradient_out = result.reshape(in.x.sizes());
  if (!in.weight) return;
  EXPECT(weight_out, "gradWeightOutOptional is null, expected a tensor as weightOptional is");
  expect_like("gradWeightOutOptional", *weight_out, *in.weight);
  weight_out = of_weight.reshape(in.weight->sizes());
}

}  // namespace

ACLNN(SituGlu, (FloatIn, x), (int64_t, dim), (double, beta), (double, linearBeta),
      (bool, activateLeft), (Out, out)) {
  const int64_t place = place_of(dim, x);
  expect_half("out", out, x, place);
  const Halves parts = halves(as_rows(wide(x), place), 1, activateLeft);
  out = situ(parts, beta, linearBeta).reshape(out->sizes());
}
ACLNN(SituGluGrad, (FloatIn, gradY), (FloatIn, x), (int64_t, dim), (double, beta),
      (double, linearBeta), (bool, activateLeft), (Out, out)) {
  const int64_t place = place_of(dim, x);
  expect_half("gradY", gradY, x, place);
  expect_like("out", out, x);
  const Halves parts = halves(as_rows(wide(x), place), 1, activateLeft);
  const at::Tensor gradient = as_rows(wide(gradY), place);
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

// The two factors come from the halves, or from alternate elements, of dim and all dimensions after
// it. Of the dimensions before it, only the groups' rows are written.
ACLNN(ClippedSwigluV2, (FloatIn, x), (OptionalIn, groupIndexOptional), (int64_t, dim),
      (double, alpha), (double, limit), (double, bias), (bool, interleaved), (int64_t, clampMode),
      (Out, out)) {
  const int64_t place = place_of(dim, x);
  EXPECT(clampMode == 0 || clampMode == 1, "clampMode is ", clampMode.value(), ", expected 0 or 1");
  EXPECT(limit > 0.0, "limit is ", limit.value(), ", expected more than 0");
  expect_half("out", out, x, place);
  const Halves parts = split(as_rows(wide(x), place), interleaved);
  const at::Tensor up = at::clamp(parts.up, -limit.value(), limit.value());
  at::Tensor result;
  if (clampMode == 1) {
    result = at::clamp_max(at::silu(parts.gate), limit.value()) * up;
  } else {
    const at::Tensor gate = at::clamp_max(parts.gate, limit.value());
    result = gate * at::sigmoid(gate * alpha.value()) * (up + bias.value());
  }
  if (groupIndexOptional) {
    result = at::where(is_in_groups(*groupIndexOptional, rows_before(x, place)), result,
                       as_rows(wide(out), place));
  }
  out = result.reshape(out->sizes());
}
// Rows that are in no group have the gradient 0.
ACLNN(ClippedSwigluGrad, (FloatIn, gradY), (FloatIn, x), (OptionalIn, groupIndexOptional),
      (int64_t, dim), (double, alpha), (double, limit), (double, bias), (bool, interleaved),
      (Out, gradXOut)) {
  const int64_t place = place_of(dim, x);
  EXPECT(limit > 0.0, "limit is ", limit.value(), ", expected more than 0");
  expect_half("gradY", gradY, x, place);
  expect_like("gradXOut", gradXOut, x);
  const at::Tensor gradient = as_rows(wide(gradY), place);
  const Halves parts = split(as_rows(wide(x), place), interleaved);
  const at::Tensor gate = at::clamp_max(parts.gate, limit.value());
  const at::Tensor up = at::clamp(parts.up, -limit.value(), limit.value());
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
    result = at::where(is_in_groups(*groupIndexOptional, rows_before(x, place)), result,
                       at::zeros_like(result));
  }
  gradXOut = result.reshape(x.sizes());
}

// Only the groups' rows are written.
ACLNN(SwigluGroup, (FloatIn, x), (OptionalIn, weightOptional), (OptionalIn, groupIndexOptional),
      (double, clampLimit), (Out, out)) {
  expect_dims("x", x, 1, 8);
  EXPECT(x.numel() > 0, "x has shape ", x.sizes(), ", expected elements");
  EXPECT(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
         ", expected -1 or more than 0");
  const int64_t last = x.dim() - 1;
  expect_half("out", out, x, last);
  Halves parts = halves(as_rows(wide(x), last), 1, /*gate_is_left=*/true);
  if (clampLimit > 0.0) {
    parts.gate = at::clamp_max(parts.gate, clampLimit.value());
    parts.up = at::clamp(parts.up, -clampLimit.value(), clampLimit.value());
  }
  at::Tensor result = swiglu(parts);
  const int64_t rows = rows_before(x, last);
  if (weightOptional) {
    expect_dtype("weightOptional", *weightOptional, at::kFloat);
    EXPECT(weightOptional->numel() == rows, "weightOptional has ", weightOptional->numel(),
           " elements, expected ", rows, ", one for each row of x");
    result = result * weightOptional->reshape({rows, 1});
  }
  if (groupIndexOptional) {
    result = at::where(is_in_groups(*groupIndexOptional, rows), result, as_rows(wide(out), last));
  }
  out = result.reshape(out->sizes());
}
ACLNN(SwigluGroupGrad, (FloatIn, gradY), (FloatIn, x), (OptionalIn, weightOptional),
      (OptionalIn, yOriginOptional), (OptionalIn, groupIndexOptional), (float, clampLimit),
      (Out, gradXOut), (OptionalOut, gradWeightOutOptional)) {
  expect_dims("x", x, 2, 3);
  EXPECT(x.size(-1) > 0, "x has no elements in its last dimension, expected some");
  EXPECT(clampLimit >= 0.0, "clampLimit is ", clampLimit.value(), ", expected 0 or more");
  EXPECT(weightOptional.has_value() == yOriginOptional.has_value(),
         "only one of weightOptional and yOriginOptional is null, expected both or none");
  if (weightOptional) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = 1;
    expect_shape("weightOptional", *weightOptional, shape);
  }
  swiglu_group_gradient({gradY, x, weightOptional, yOriginOptional, groupIndexOptional, clampLimit,
                         /*masks_weight=*/false},
                        gradXOut, gradWeightOutOptional);
}
ACLNN(SwigluGroupQuantGrad, (FloatIn, gradY), (FloatIn, x), (OptionalIn, weightOptional),
      (OptionalIn, yOriginOptional), (OptionalIn, groupIndexOptional), (double, clampLimit),
      (Out, gradXOut), (OptionalOut, gradWeightOutOptional)) {
  expect_dims("x", x, 2, 8);
  EXPECT(clampLimit == -1.0 || clampLimit > 0.0, "clampLimit is ", clampLimit.value(),
         ", expected -1 or more than 0");
  EXPECT(yOriginOptional || !weightOptional,
         "yOriginOptional is null, expected a tensor as weightOptional is");
  swiglu_group_gradient({gradY, x, weightOptional, yOriginOptional, groupIndexOptional, clampLimit,
                         /*masks_weight=*/true},
                        gradXOut, gradWeightOutOptional);
}

}  // namespace aclnn_host::quantized_gated_activation_rows
