// The gradients of the RMS norm y = x * rstd * gamma, where rstd = 1 / sqrt(mean of x * x +
// epsilon) of each row.
#include "aclnn_raii.h"
#include "aclnnop/aclnn_rms_norm_grad.h"

static bool rms_norm_grad(Stream& stream) {
  const int64_t rows = 2, width = 4;
  const double epsilon = 1e-6;
  const std::vector<float> x = {1, -2, 3, 0.5f, -1, 4, 0.25f, 2},
                           dy = {1, 0.5f, -1, 2, 3, -0.5f, 1, 1};
  const std::vector<float> gamma = {1, 2, 0.5f, -1};

  std::vector<float> rstds;
  std::vector<double> expected, of_gamma(width);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = &x[row * width];
    const float* const g = &dy[row * width];
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += a[i] * a[i];
    const double rstd = 1 / std::sqrt(squares / width + epsilon);
    double mean = 0;  // of the incoming gradient times gamma times the normalised x
    for (int64_t i = 0; i < width; ++i) mean += g[i] * gamma[i] * a[i] * rstd / width;
    for (int64_t i = 0; i < width; ++i) {
      expected.push_back(rstd * (g[i] * gamma[i] - a[i] * rstd * mean));
      of_gamma[i] += g[i] * a[i] * rstd;
    }
    rstds.push_back(static_cast<float>(rstd));
  }

  const Tensor grad({rows, width}, dy), input({rows, width}, x), rstd({rows}, rstds),
      weight({width}, gamma);
  const Tensor dx({rows, width}), dgamma({width});
  stream.call(ACLNN(aclnnRmsNormGrad), grad, input, rstd, weight, dx, dgamma);
  stream.synchronize();
  const bool is_right = agree("dx", dx.read(), expected, 1e-6);
  return agree("dgamma", dgamma.read(), of_gamma, 1e-6) && is_right;
}

int main() {
  return run(rms_norm_grad);
}
