// The three gradients of a two-dimensional convolution with stride 2 and padding 1, compared with
// the defining sum. The numbers are small integers, so that every order of summation gives the same
// result.
#include "aclnn_raii.h"
#include "aclnnop/aclnn_convolution_backward.h"

// Integers from -3 to 3.
static std::vector<float> integers(const Shape& shape, size_t start) {
  std::vector<float> values;
  for (size_t i = start; i < start + elements(shape); ++i)
    values.push_back(static_cast<float>((i * i + 3 * i) % 7) - 3);
  return values;
}

static bool convolution_backward(Stream& stream) {
  const int64_t channels = 2, filters = 2, size = 3, kernel = 2, step = 2, pad = 1, out = 2;
  const Shape input_shape = {1, channels, size, size},
              weight_shape = {filters, channels, kernel, kernel};
  const Shape grad_shape = {1, filters, out, out};
  const std::vector<float> x = integers(input_shape, 1), w = integers(weight_shape, 2),
                           g = integers(grad_shape, 3);

  // Output (f, r, s) is the sum of w(f, c, i, j) * x(c, r * step - pad + i, s * step - pad + j)
  // over c, i and j.
  std::vector<double> of_input(x.size()), of_weight(w.size()), of_bias(filters);
  for (int64_t o = 0; o < filters * out * out; ++o) {
    const int64_t f = o / (out * out), r = o / out % out, s = o % out;
    of_bias[f] += g[o];
    for (int64_t k = 0; k < channels * kernel * kernel; ++k) {
      const int64_t c = k / (kernel * kernel), row = r * step - pad + k / kernel % kernel;
      const int64_t column = s * step - pad + k % kernel;
      if (row < 0 || row >= size || column < 0 || column >= size) continue;
      const int64_t place = (c * size + row) * size + column,
                    weight = f * channels * kernel * kernel + k;
      of_input[place] += g[o] * w[weight];
      of_weight[weight] += g[o] * x[place];
    }
  }

  const Tensor grad(grad_shape, g), input(input_shape, x), weight(weight_shape, w);
  const Tensor grad_input(input_shape), grad_weight(weight_shape), grad_bias({filters});
  const IntArray bias_sizes = int_array({filters}), stride = int_array({step, step}),
                 padding = int_array({pad, pad});
  const IntArray dilation = int_array({1, 1}), output_padding = int_array({0, 0});
  const BoolArray all = bool_array({true, true, true});
  stream.call(
      ACLNN(aclnnConvolutionBackward), grad, input, weight, bias_sizes, stride, padding, dilation,
      false,  // not transposed
      output_padding,
      1,               // group
      all, int8_t{1},  // cubeMathType: FLOAT may become HF32 or FLOAT16, exact for these integers
      grad_input, grad_weight, grad_bias);
  stream.synchronize();

  bool is_right = agree("grad_input", grad_input.read(), of_input, 0);
  is_right = agree("grad_weight", grad_weight.read(), of_weight, 0) && is_right;
  return agree("grad_bias", grad_bias.read(), of_bias, 0) && is_right;
}

int main() {
  return run(convolution_backward);
}
