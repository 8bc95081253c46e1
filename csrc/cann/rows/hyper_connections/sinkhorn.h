#pragma once

#include "cann/rows/row.h"

// Sinkhorn's iteration, which makes matrices doubly stochastic. Step 0 is a softmax of the rows;
// odd steps divide columns by their sums, even steps rows.
namespace aclnn_host {

// The dimension that a step normalises.
inline int64_t sinkhorn_dim(int64_t step) {
  return step % 2 == 1 ? -2 : -1;
}

// The matrices after each step, and the sums that it divided by. If nothing is kept, only the first
// step and the last one are there, and no sums but the first.
struct SinkhornSteps {
  std::vector<at::Tensor> norms, sums;
};
inline SinkhornSteps sinkhorn_of(const at::Tensor& x, double eps, int64_t steps, bool is_kept) {
  const c10::Scalar epsilon(eps);
  at::Tensor matrix = at::softmax(x, -1).add(epsilon);
  SinkhornSteps kept{{matrix}, {matrix.sum(-1)}};
  for (int64_t step = 1; step < steps; ++step) {
    const int64_t dim = sinkhorn_dim(step);
    const at::Tensor sum = matrix.sum(dim, /*keepdim=*/true).add(epsilon);
    matrix = matrix / sum;
    if (is_kept || step + 1 == steps) kept.norms.push_back(matrix);
    if (is_kept) kept.sums.push_back(sum.squeeze(dim));
  }
  return kept;
}

// The gradient for x from the one for the last matrices, (matrices, n, n). norms are (steps,
// matrices, n, n) and sums (steps, matrices, n). The first step takes softmax(x) + eps, which was
// kept, for softmax(x).
inline at::Tensor sinkhorn_gradient(at::Tensor gradient, const at::Tensor& norms,
                                    const at::Tensor& sums) {
  for (int64_t step = norms.size(0) - 1; step >= 1; --step) {
    const int64_t dim = sinkhorn_dim(step);
    const at::Tensor along = (gradient * norms.select(0, step)).sum(dim, /*keepdim=*/true);
    gradient = (gradient - along) / sums.select(0, step).unsqueeze(dim);
  }
  const at::Tensor first = norms.select(0, 0);
  const at::Tensor along = (gradient * first).sum(-1, /*keepdim=*/true);
  return first * (gradient - along);
}

}  // namespace aclnn_host
