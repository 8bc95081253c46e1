// Depthwise convolutions, and one-dimensional convolutions with the time as first dimension.

#include <cctype>

#include "cann/rows/images.h"
#include "cann/rows/matmul/matrix_units.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::convolution_convolution_rows {

namespace {

// Permutes (T, B, C) to (B, C, T), which ATen's convolution takes.
at::Tensor batch_first(const at::Tensor& tbc) {
  return tbc.permute({1, 2, 0});
}
at::Tensor time_first(const at::Tensor& bct) {
  return bct.permute({2, 0, 1});
}

// Checks (T, B, Cin), (K, Cin, Cout), (Cout) and (T + 2 pad - K + 1, B, Cout).
void check_tbc(const char* input_name, const at::Tensor& input, const at::Tensor& weight,
               const at::Tensor& bias, const char* output_name, const at::Tensor& output,
               int64_t pad, int64_t most_pad) {
  expect_dims(input_name, input, 3);
  expect_dims("weight", weight, 3);
  EXPECT(pad >= 0 && pad <= most_pad, "pad is ", pad, ", expected 0 to ", most_pad);
  EXPECT(weight.size(0) > 0 && weight.size(1) == input.size(2), "weight has shape ", weight.sizes(),
         ", expected (K, ", input.size(2), ", Cout) with K more than 0");
  expect_shape("bias", bias, {weight.size(2)});
  const int64_t length = input.size(0) + 2 * pad - weight.size(0) + 1;
  expect_shape(output_name, output, {length, input.size(1), weight.size(2)});
}

MatrixUnits units_of(CubeMathTypes types, int64_t cube_math_type, const at::Tensor& a,
                     const at::Tensor& b) {
  return {cube_math_type, a, b, last_cube_math_type(types, current_cann_release())};
}

// On Ascend950 a gradient has the dtype of the tensor it belongs to, from CANN 9.1 on.
void check_dtype_of(const char* name, const at::Tensor& gradient, const at::Tensor& tensor) {
  if (current_product() != Product::kAscend950) return;
  if (current_cann_release() <= CannRelease::k9_0) return;
  EXPECT(gradient.scalar_type() == tensor.scalar_type(), name, " has dtype ",
         gradient.scalar_type(), ", expected ", tensor.scalar_type());
}

}  // namespace

// Each channel has its own filters.
ACLNN(ConvDepthwise2d, (Image<In>, self), (SameDtype<In>, weight, "self"), (Ints, kernelSize),
      (SameDtype<Optional<In>>, bias, "self"), (Ints, stride), (Ints, padding), (Ints, dilation),
      (SameDtype<Image<Out>>, out, "self"), (int8_t, cubeMathType)) {
  expect_dims("self", self, 4);
  expect_dims("weight", weight, 4);
  check_pair("stride", stride, 1);
  check_pair("padding", padding, 0);
  check_pair("dilation", dilation, 1);
  EXPECT(kernelSize == weight.sizes().slice(2), "kernelSize is ", kernelSize, ", expected ",
         weight.sizes().slice(2), " as weight has");
  const int64_t channels = self.size(1);
  EXPECT(channels > 0 && weight.size(1) == 1 && weight.size(0) % channels == 0, "weight has shape ",
         weight.sizes(), ", expected filters of one channel, a multiple ", "of self's ", channels,
         " channels of them");
  EXPECT(weight.size(0) > 0 || current_cann_release() > CannRelease::k9_0, "weight has shape ",
         weight.sizes(), ", expected filters; or select CANN 9.1 or later");
  if (bias) expect_shape("bias", *bias, {weight.size(0)});
  const auto [height, width] = windows_in(self, kernelSize, stride, padding, dilation);
  expect_shape("out", out, {self.size(0), weight.size(0), height, width});
  const MatrixUnits units = units_of(CubeMathTypes::kOfForward, cubeMathType, self, weight);
  if (weight.size(0) == 0) return;
  const at::Tensor sums = at::convolution(units.read(self), units.read(weight), std::nullopt,
                                          stride, padding, dilation, false, {0, 0}, channels);
  out = units.result(bias ? sums + units.widen(*bias).view({1, -1, 1, 1}) : sums);
}
// Behaviour of ConvTbc: The layouts are (T, B, Cin) and (K, Cin, Cout), as in the document's
// formulas.
ACLNN(ConvTbc, (In, self), (SameDtype<In>, weight, "self"), (SameDtype<In>, bias, "self"),
      (int64_t, pad), (SameDtype<Out>, output, "self"), (int8_t, cubeMathType)) {
  check_tbc("self", self, weight, bias, "output", output, pad, 255);
  const MatrixUnits units = units_of(CubeMathTypes::kOfForward, cubeMathType, self, weight);
  if (self.numel() == 0 || weight.numel() == 0) {
    output = units.widen(bias).expand(output->sizes());
    return;
  }
  const at::Tensor sums =
      at::convolution(batch_first(units.read(self)), units.read(weight).permute({2, 1, 0}),
                      std::nullopt, {1}, {pad.value()}, {1}, false, {0}, 1);
  output = units.result(time_first(sums) + units.widen(bias));
}
// self is the gradient of the result.
ACLNN(ConvTbcBackward, (SameDtype<In>, self, "input"), (In, input),
      (SameDtype<In>, weight, "input"), (SameDtype<In>, bias, "input"), (int64_t, pad),
      (int8_t, cubeMathType), (Out, gradInput), (Out, gradWeight), (Out, gradBias)) {
  EXPECT(self.numel() != 0, "self has shape ", self.sizes(), ", expected elements");
  check_tbc("input", input, weight, bias, "self", self, pad, std::numeric_limits<int32_t>::max());
  const MatrixUnits units = units_of(CubeMathTypes::kOfBackward, cubeMathType, input, weight);
  check_dtype_of("gradInput", gradInput, input);
  check_dtype_of("gradWeight", gradWeight, weight);
  check_dtype_of("gradBias", gradBias, bias);
  gradBias = units.widen(self).sum(at::IntArrayRef{0, 1});
  if (input.numel() == 0 || weight.numel() == 0) {
    gradInput = at::zeros_like(input);
    gradWeight = at::zeros_like(weight);
    return;
  }
  const int64_t channels[] = {weight.size(2)};
  const auto [by_input, by_weight, unused] =
      at::convolution_backward(batch_first(units.read(self)), batch_first(units.read(input)),
                               units.read(weight).permute({2, 1, 0}), at::IntArrayRef(channels),
                               {1}, {pad.value()}, {1}, false, {0}, 1, {true, true, false});
  gradInput = time_first(units.result(by_input));
  gradWeight = units.result(by_weight).permute({2, 1, 0});
}

}  // namespace aclnn_host::convolution_convolution_rows
