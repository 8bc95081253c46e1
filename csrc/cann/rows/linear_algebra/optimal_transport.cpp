// Sinkhorn's iteration.

#include "cann/rows/row.h"

namespace aclnn_host::linear_algebra_optimal_transport_rows {

// A tolerance of 0 or less may never be met, so the iteration also ends when nothing changes, and
// after kMostSteps.
ACLNN(Sinkhorn, (Floating<In>, cost), (Optional<Number>, tol), (Like<Out>, p, "cost")) {
  constexpr int kMostSteps = 10000;
  constexpr double kTiny = 0.00000001;
  expect_dims("cost", cost, 2);
  if (cost.numel() == 0) return;
  const double tolerance = tol ? tol->toDouble() : 0.0001;
  const at::Tensor weights = at::exp(wide(cost));
  const auto rows = static_cast<double>(cost.size(0));
  const auto columns = static_cast<double>(cost.size(1));
  const bool is_known = has_values(cost);
  at::Tensor of_columns = at::ones({cost.size(1)}, weights.options());
  at::Tensor of_rows;
  for (int step = 0; step < kMostSteps; ++step) {
    of_rows = ((weights * of_columns).sum(1) + kTiny).reciprocal() / rows;
    const at::Tensor next =
        ((weights * of_rows.unsqueeze(1)).sum(0) + kTiny).reciprocal() / columns;
    const at::Tensor error = (of_columns - next).abs().mean();
    of_columns = next;
    if (!is_known) break;
    const double distance = error.item().toDouble();
    if (!(distance > tolerance) || distance == 0) break;
  }
  p = of_columns * weights * of_rows.unsqueeze(1);
}

}  // namespace aclnn_host::linear_algebra_optimal_transport_rows
