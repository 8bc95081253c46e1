// Batch normalisation of quantised images.

#include "cann/rows/images.h"
#include "cann/rows/quantized/quantized_values.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_quantized_batch_norm_rows {

namespace {

// Checks a zero point, which must be in the range of the quantised type.
double zero_point(const char* name, const c10::Scalar& value, const Limits& limits) {
  EXPECT(value.isIntegral(/*includeBool=*/false), name, " is ", value.toDouble(),
         ", expected an INT32");
  const double point = value.toDouble();
  EXPECT(point >= limits.low && point <= limits.high, name, " is ", point, ", expected ",
         limits.low, " to ", limits.high, ", what the dtype of input holds");
  return point;
}

// Rounds to the nearest integer, ties away from zero.
at::Tensor rounded_away(const at::Tensor& x) {
  return at::copysign(at::floor(x.abs() + 0.5), x);
}

// Checks a FLOAT tensor with one element for each channel of images (N, C, H, W), and converts it
// to DOUBLE.
at::Tensor per_channel(const char* name, const at::Tensor& values, const at::Tensor& images) {
  expect_tensor(name, values, at::kFloat, {images.size(1)});
  return values.to(at::kDouble).reshape({-1, 1, 1});
}

}  // namespace

// Ties are rounded away from zero, and numbers beyond the range saturate.
ACLNN(QuantizedBatchNorm, (Image<In>, input), (In, mean), (In, var), (Number, inputScale),
      (Number, inputZeroPoint), (Number, outputScale), (Number, outputZeroPoint),
      (Optional<In>, weight), (Optional<In>, bias), (float, epsilon),
      (Like<Image<Out>>, output, "input")) {
  expect_dims("input", input, 4);
  expect_elements("input", input);
  expect_dtype("input", input, {at::kChar, at::kByte, at::kInt});
  const Limits limits = limits_of(input.scalar_type());
  const double input_zero = zero_point("inputZeroPoint", inputZeroPoint, limits);
  const double output_zero = zero_point("outputZeroPoint", outputZeroPoint, limits);
  const at::Tensor x = (input.to(at::kDouble) - input_zero) * inputScale.toDouble();
  const at::Tensor variance = per_channel("var", var, input);
  at::Tensor y = (x - per_channel("mean", mean, input)) / at::sqrt(variance + epsilon.value());
  if (weight) y = y * per_channel("weight", *weight, input);
  if (bias) y = y + per_channel("bias", *bias, input);
  const at::Tensor result = rounded_away(y / outputScale.toDouble() + output_zero);
  output = saturated(result, limits.low, limits.high).to(input.scalar_type());
}

}  // namespace aclnn_host::quantized_quantized_batch_norm_rows
