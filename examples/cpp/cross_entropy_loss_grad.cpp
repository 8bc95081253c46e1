// The gradient of the cross entropy with class weights and a row whose label is ignored.
#include "aclnn_raii.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"

static bool cross_entropy_loss_grad(Stream& stream) {
  const int64_t rows = 3, classes = 4, ignored = -100;
  const std::vector<float> logits = {2, 0, -1, 1, 0, 0, 0, 0, 1, 3, 0.5f, -2},
                           weights = {1, 0.5f, 2, 1};
  const std::vector<int64_t> labels = {0, ignored, 2};
  const float grad_loss = 0.5f;

  std::vector<float> log_prob;
  std::vector<double> expected;
  const double sum_of_weights = weights[0] + weights[2];  // of the labels' classes
  for (int64_t row = 0; row < rows; ++row) {
    const float* const x = &logits[row * classes];
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c]);
    const int64_t label = labels[row];
    for (int64_t c = 0; c < classes; ++c) {
      const double of_class = x[c] - std::log(sum);
      log_prob.push_back(static_cast<float>(of_class));
      const double factor = label == ignored ? 0 : grad_loss * weights[label] / sum_of_weights;
      expected.push_back(factor * (std::exp(of_class) - (c == label)));
    }
  }

  const Tensor grad({}, std::vector<float>{grad_loss}), inputs({rows, classes}, log_prob),
      targets({rows}, labels);
  const Tensor weight({classes}, weights), out({rows, classes});
  char reduction[] = "mean";
  stream.call(ACLNN(aclnnCrossEntropyLossGrad), grad, inputs, targets, weight, nullptr, nullptr,
              reduction, ignored,
              0.0,  // labelSmoothing
              0.0,  // lseSquareScaleForZloss
              out);
  stream.synchronize();
  return agree("grad_logits", out.read(), expected, 1e-6);
}

int main() {
  return run(cross_entropy_loss_grad);
}
