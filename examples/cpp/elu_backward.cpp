// The gradient of ELU in both forms of aclnnEluBackward: from ELU's input, or from its output.
#include "aclnn_raii.h"
#include "aclnnop/aclnn_elu_backward.h"

static bool elu_backward(Stream& stream) {
  const std::vector<float> x = {-3, -1, -0.25f, 0, 0.5f, 2}, g = {1, 2, 4, 1, -1, 3};
  const double alpha = 1.5;

  std::vector<float> y;  // ELU of x
  std::vector<double> expected;
  for (size_t i = 0; i < x.size(); ++i) {
    y.push_back(static_cast<float>(x[i] > 0 ? x[i] : alpha * std::expm1(x[i])));
    expected.push_back(g[i] * (x[i] > 0 ? 1 : alpha * std::exp(x[i])));
  }

  const Shape shape = {2, 3};
  const Tensor grad(shape, g), input(shape, x), output(shape, y), from_input(shape),
      from_output(shape);
  const Scalar slope = scalar(1.5f), one = scalar(1);
  stream.call(ACLNN(aclnnEluBackward), grad, slope, one, one, false, input, from_input);
  stream.call(ACLNN(aclnnEluBackward), grad, slope, one, one, true, output, from_output);
  stream.synchronize();

  // From the output, y + alpha loses the digits that y lost when it was rounded.
  const bool is_right = agree("from_input", from_input.read(), expected, 3e-7);
  return agree("from_output", from_output.read(), expected, 2e-6) && is_right;
}

int main() {
  return run(elu_backward);
}
