// Convolutions of quantised tensors, with a scale for each channel of the result.

#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::quantized_quantized_convolution_rows {

namespace {

struct QuantConvolution {
  const StoredTensor& input;
  const StoredTensor& weight;
  const std::optional<at::Tensor>& bias;
  const at::Tensor& scale;
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  int64_t groups;
  int64_t padding_value;
};

// Checks the numbers for each spatial dimension. The depth, the first of three, has its own limit.
void check_numbers(const char* name, at::IntArrayRef numbers, size_t count, int64_t least,
                   int64_t most) {
  constexpr int64_t kMostOfDepth = 1'000'000;
  const size_t per_dimension = numbers.size() / std::max<size_t>(count, 1);
  bool fits = numbers.size() == count * std::max<size_t>(per_dimension, 1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_depth = count == 3 && i < per_dimension;
    fits = fits && numbers[i] >= least && numbers[i] <= (is_depth ? kMostOfDepth : most);
  }
  EXPECT(fits, name, " is ", numbers, ", expected ", count, " numbers from ", least, " to ", most,
         count == 3 ? ", up to 1000000 for the depth" : "");
}

void check_convolution_types(const QuantConvolution& call, aclDataType output) {
  const bool is_integer = call.input.dtype == ACL_INT8;
  expect_type("input", call.input, {ACL_INT8, ACL_FLOAT8_E4M3FN});
  expect_type("weight", call.weight, {call.input.dtype}, " as input has");
  if (is_integer) {
    expect_type("output", output, {ACL_FLOAT16, ACL_BF16}, " for input of INT8");
  } else {
    expect_type("output", output, {ACL_FLOAT16, ACL_BF16, ACL_FLOAT, ACL_FLOAT8_E4M3FN});
  }
  expect_dtype("scale", call.scale, {at::kFloat, at::kLong, at::kUInt64});
  if (!call.bias) return;
  const at::ScalarType bias = call.bias->scalar_type();
  const bool fits =
      bias == at::kFloat ||
      (is_integer && (acl_type(bias) == output || (bias == at::kInt && output == ACL_FLOAT16)));
  EXPECT(fits, "bias has dtype ", dtype_text(bias), ", expected FLOAT",
         is_integer ? ", output's or, for output of FLOAT16, INT32" : "");
}

// The exact sums, plus an integer bias, times the scale, plus a bias of another type.
at::Tensor convolved(const QuantConvolution& call, aclDataType output) {
  check_convolution_types(call, output);
  const at::Tensor& input = call.input.elements;
  const at::Tensor& weight = call.weight.elements;
  expect_dims("input", input, 4, 5);
  expect_dims("weight", weight, input.dim());
  expect_elements("input", input);
  expect_elements("weight", weight);
  EXPECT(call.groups >= 1 && input.size(1) % call.groups == 0 &&
             weight.size(1) == input.size(1) / call.groups,
         "weight has shape ", weight.sizes(), " and groups is ", call.groups,
         ", expected groups of 1 or more and the channels of input, ", input.size(1),
         ", divided by it");
  EXPECT(weight.size(0) % call.groups == 0, "weight has shape ", weight.sizes(),
         ", expected a first size that groups, ", call.groups, ", divides");
  const auto spatial = static_cast<size_t>(input.dim()) - 2;
  check_numbers("stride", call.stride, spatial, 1, 63);
  check_numbers("dilation", call.dilation, spatial, 1, 255);
  EXPECT(call.padding.size() == spatial || call.padding.size() == 2 * spatial, "padding is ",
         call.padding, ", expected ", spatial, " or ", 2 * spatial, " numbers");
  check_numbers("padding", call.padding, spatial, 0, 255);
  EXPECT(call.stride.size() == spatial && call.dilation.size() == spatial, "stride is ",
         call.stride, " and dilation is ", call.dilation, ", expected ", spatial, " numbers");
  const int64_t channels = weight.size(0);
  expect_shape("scale", call.scale, {channels});
  if (call.bias) expect_shape("bias", *call.bias, {channels});
  // Before and after each dimension, from the last one.
  std::vector<int64_t> pads;
  const size_t sides = call.padding.size() / spatial;
  for (size_t i = spatial; i-- > 0;) {
    pads.insert(pads.end(), {call.padding[i * sides], call.padding[i * sides + sides - 1]});
  }
  const at::Tensor padded = at::constant_pad_nd(input.to(at::kDouble), pads, call.padding_value);
  for (size_t i = 0; i < spatial; ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    const int64_t kernel = call.dilation[i] * (weight.size(dim) - 1) + 1;
    EXPECT(kernel <= padded.size(dim), "weight has shape ", weight.sizes(), " and spans ", kernel,
           " elements of dimension ", dim, ", expected at most ", padded.size(dim),
           ", the size of input with its padding");
  }
  const std::vector<int64_t> none(spatial, 0);
  const at::Tensor sums = at::convolution(padded, weight.to(at::kDouble), std::nullopt, call.stride,
                                          none, call.dilation, false, none, call.groups);
  std::vector<int64_t> along_channels(spatial + 2, 1);
  along_channels[1] = channels;
  const at::Tensor scale = decoded_scale(call.scale).view(along_channels);
  if (!call.bias) return sums * scale;
  const at::Tensor bias = wide(*call.bias).view(along_channels);
  return call.bias->scalar_type() == at::kInt ? (sums + bias) * scale : sums * scale + bias;
}

// Checks the reserved arguments of `row`, the struct of a function.
template <class Row>
void check_reserved(const Row& row, aclDataType output) {
  expect_absent("offset", row.offset);
  EXPECT(row.transposed == false, "transposed is true, expected false");
  expect_range("offsetx", row.offsetx, -128, 127);
  if (output == ACL_FLOAT8_E4M3FN) {
    expect_text("roundMode", row.roundMode, {"rint"}, " as output is FLOAT8_E4M3FN");
  } else {
    expect_text("roundMode", row.roundMode, {"", "rint", "round"});
  }
  expect_format("input", row.input);
}

}  // namespace

// offsetx is the value of the padding.
ACLNN_STRUCT(QuantConvolution, (Stored<In>, input), (Stored<In>, weight), (Optional<In>, bias),
             (In, scale), (Optional<In>, offset), (Ints, stride), (Ints, padding), (Ints, dilation),
             (bool, transposed),
             (Unused<Optional<Ints>>, outputPadding,
              "counts only with transposed, which is refused"),
             (int64_t, groups), (int32_t, offsetx), (char*, roundMode), (Stored<Out>, output)) {
  check_reserved(*this, output.dtype());
  expect_format("weight", weight);
  const at::Tensor result = convolved(
      {input, weight, bias, scale, stride, padding, dilation, groups, offsetx}, output.dtype());
  const double most = largest_of(ACL_FLOAT8_E4M3FN);
  output =
      output.dtype() == ACL_FLOAT8_E4M3FN ? at::clamp(result, -most, most).to(at::kFloat) : result;
}
ACLNN_STRUCT(QuantConvolutionWeightNz, (Stored<In>, input), (Stored<In>, weight),
             (Optional<In>, bias), (In, scale), (Optional<In>, offset), (Ints, stride),
             (Ints, padding), (Ints, dilation), (bool, transposed),
             (Unused<Optional<Ints>>, outputPadding,
              "counts only with transposed, which is refused"),
             (int64_t, groups), (int32_t, offsetx), (char*, roundMode), (Out, output)) {
  const aclDataType dtype = acl_type(output->scalar_type());
  check_reserved(*this, dtype);
  EXPECT(weight.format == ACL_FRACTAL_Z_3D, "weight has format ", static_cast<int>(weight.format),
         ", expected FRACTAL_Z_3D (", static_cast<int>(ACL_FRACTAL_Z_3D),
         "); convert it with aclnnNpuFormatCast");
  expect_type("input", input, {ACL_INT8});
  expect_dims("input", input.elements, 5);
  expect_dtype("scale", scale, at::kFloat);
  expect_one_of("groups", groups, {1});
  expect_one_of("offsetx", offsetx, {0});
  if (bias) expect_dtype("bias", *bias, {at::kFloat, at::kHalf, at::kBFloat16});
  output = convolved({input, weight, bias, scale, stride, padding, dilation, groups, 0}, dtype);
}

}  // namespace aclnn_host::quantized_quantized_convolution_rows
