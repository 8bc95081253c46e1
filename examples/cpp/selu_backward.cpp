// The gradient of SELU from its output, at the boundary values: SELU is never below -scale * alpha,
// where the gradient is 0, and an output of 0 belongs to the negative branch.
#include "aclnn_raii.h"
#include "aclnnop/aclnn_selu_backward.h"

static bool selu_backward(Stream& stream) {
  const double scale = 1.0507009873554805, alpha = 1.6732632423543772;
  const std::vector<float> y = {static_cast<float>(-scale * alpha), -1, 0, 1e-30f, 3},
                           g = {1, 1, 1, 1, 2};
  std::vector<double> expected = {0};
  for (size_t i = 1; i < y.size(); ++i)
    expected.push_back(g[i] * (y[i] > 0 ? scale : y[i] + scale * alpha));

  const Tensor grad({5}, g), output({5}, y), grad_input({5});
  stream.call(ACLNN(aclnnSeluBackward), grad, output, grad_input);
  stream.synchronize();
  return agree("grad_input", grad_input.read(), expected, 3e-7);
}

int main() {
  return run(selu_backward);
}
