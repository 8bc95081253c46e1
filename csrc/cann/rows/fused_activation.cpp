// Softmax and SwiGLU with what stands around them, and a step of AdamW whose settings are tensors.

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::fused_activation_rows {

namespace {

// The mask for every score, where true ones are left out.
at::Tensor expanded(const at::Tensor& mask, const char* name, const at::Tensor& scores,
                    bool is_triangle) {
  EXPECT(!is_triangle, "the flag of a generated triangle is true, expected false");
  EXPECT(scores.dim() == 4 && mask.dim() == 4, name, " has ", scores.dim(),
         " dimensions and mask has ", mask.dim(), ", expected 4");
  EXPECT(scores.size(3) >= 1 && scores.size(3) <= 4096, "the last dimension of ", name, " is ",
         scores.size(3), ", expected 1 to 4096");
  EXPECT(mask.scalar_type() == at::kBool, "mask has dtype ", dtype_text(mask.scalar_type()),
         ", expected BOOL");
  return mask.expand_as(scores);
}

}  // namespace

// A score that is left out is -10000, so that a row without others has equal probabilities.
ACLNN(ScaledMaskedSoftmax, (FloatIn, x), (In, mask), (double, scale), (bool, fixedTriuMask),
      (Out, y)) {
  const at::Tensor left_out = expanded(mask, "x", x, fixedTriuMask);
  expect_like("y", y, x);
  y = at::_softmax((wide(x) * scale.value()).masked_fill(left_out, -10000), -1, false);
}
ACLNN(ScaledMaskedSoftmaxBackward, (FloatIn, gradOutput), (FloatIn, y), (In, mask), (double, scale),
      (bool, fixTriuMask), (Out, out)) {
  const at::Tensor left_out = expanded(mask, "y", y, fixTriuMask);
  expect_like("gradOutput", gradOutput, y);
  expect_like("out", out, y);
  const at::Tensor gradient =
      at::_softmax_backward_data(wide(gradOutput), wide(y), -1, wide(y.scalar_type()));
  out = (gradient * scale.value()).masked_fill(left_out, 0);
}

// The two factors come from the halves, or from alternate elements, of dim and all dimensions after
// it. Of the dimensions before it, only the groups' rows are written.
ACLNN(ClippedSwiglu, (FloatIn, x), (OptionalIn, groupIndexOptional), (int64_t, dim),
      (double, alpha), (double, limit), (double, bias), (bool, interleaved), (Out, out)) {
  EXPECT(x.dim() >= 1 && dim >= -x.dim() && dim < x.dim(), "dim is ", dim.value(), ", expected ",
         -x.dim(), " to ", x.dim() - 1);
  const int64_t place = dim < 0 ? dim.value() + x.dim() : dim.value();
  EXPECT(x.size(place) % 2 == 0, "dimension ", place, " of x is ", x.size(place),
         ", expected an even number");
  EXPECT(limit > 0.0, "limit is ", limit.value(), ", expected more than 0");
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(place)] /= 2;
  EXPECT(out->sizes() == shape, "out has shape ", out->sizes(), ", expected ", shape);
  const at::Tensor row = wide(x).flatten(place);
  const int64_t half = row.size(-1) / 2;
  const at::Tensor a = interleaved ? row.slice(-1, 0, std::nullopt, 2) : row.narrow(-1, 0, half);
  const at::Tensor b = interleaved ? row.slice(-1, 1, std::nullopt, 2) : row.narrow(-1, half, half);
  const at::Tensor gate = at::clamp_max(a, limit.value());
  const at::Tensor factor = at::clamp(b, -limit.value(), limit.value()) + bias.value();
  at::Tensor result = (gate * at::sigmoid(gate * alpha.value()) * factor).reshape(shape);
  if (groupIndexOptional) {
    EXPECT(groupIndexOptional->dim() == 1 && groupIndexOptional->scalar_type() == at::kLong,
           "groupIndexOptional has dtype ", dtype_text(groupIndexOptional->scalar_type()),
           " and shape ", groupIndexOptional->sizes(), ", expected INT64 of one dimension");
    if (result.numel() == 0) return;
    const auto rows_shape = x.sizes().slice(0, static_cast<size_t>(place));
    std::vector<int64_t> of_rows(static_cast<size_t>(x.dim()), 1);
    std::copy(rows_shape.begin(), rows_shape.end(), of_rows.begin());
    const int64_t rows = c10::multiply_integers(rows_shape);
    const at::Tensor is_written =
        at::lt(at::arange(rows, groupIndexOptional->options()), groupIndexOptional->sum())
            .reshape(of_rows);
    result = at::where(is_written, result, wide(out));
  }
  out = result;
}

// beta1Power and beta2Power are those of the step before. With amsgrad, vRef becomes the larger one
// of itself and maxGradNormOptional.
ACLNN(ApplyAdamW, (FloatInOut, varRef), (FloatInOut, mRef), (FloatInOut, vRef),
      (FloatIn, beta1Power), (FloatIn, beta2Power), (FloatIn, lr), (FloatIn, weightDecay),
      (FloatIn, beta1), (FloatIn, beta2), (FloatIn, eps), (FloatIn, grad),
      (OptionalIn, maxGradNormOptional), (bool, amsgrad), (bool, maximize)) {
  expect_like("mRef", mRef, varRef);
  expect_like("vRef", vRef, varRef);
  expect_like("grad", grad, varRef);
  require_given(!amsgrad || maxGradNormOptional,
                "amsgrad is true and maxGradNormOptional is null, expected a tensor");
  if (amsgrad) expect_like("maxGradNormOptional", *maxGradNormOptional, varRef);
  const auto number = [&](const char* name, const at::Tensor& tensor) {
    EXPECT(tensor.numel() == 1, name, " has ", tensor.numel(), " elements, expected 1");
    EXPECT(tensor.scalar_type() == varRef->scalar_type(), name, " has dtype ",
           dtype_text(tensor.scalar_type()), ", expected ", dtype_text(varRef->scalar_type()),
           " as varRef has");
    return wide(tensor).reshape({});
  };
  const at::Tensor first = number("beta1", beta1), second = number("beta2", beta2);
  const at::Tensor rate = number("lr", lr), decay = number("weightDecay", weightDecay);
  const at::Tensor power1 = number("beta1Power", beta1Power) * first;
  const at::Tensor power2 = number("beta2Power", beta2Power) * second;
  const at::Tensor gradient = maximize ? -wide(grad) : wide(grad);
  const at::Tensor mean = wide(mRef) * first + gradient * (1 - first);
  at::Tensor square = wide(vRef) * second + gradient.square() * (1 - second);
  if (amsgrad) square = at::maximum(square, wide(*maxGradNormOptional));
  const at::Tensor deviation = (square / (1 - power2)).sqrt() + number("eps", eps);
  const at::Tensor variable = wide(varRef);
  const at::Tensor result =
      variable - rate * (mean / (1 - power1)) / deviation - rate * decay * variable;
  varRef = result;
  mRef = mean;
  vRef = square;
}

}  // namespace aclnn_host::fused_activation_rows
