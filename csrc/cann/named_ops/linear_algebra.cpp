// Decompositions, inverses, determinants and distances.

#include "cann/named_ops/operator.h"
#include "cann/rows/linear_algebra/distances.h"

namespace aclnn_host::named_linear_algebra {

namespace {

// -1 stands for the infinity norm.
double norm_of(const std::optional<double>& p) {
  const double norm = p.value_or(2);
  EXPECT(norm >= 0 || norm == -1, "p is ", norm, ", expected 0 or more, or -1");
  return norm == -1 ? std::numeric_limits<double>::infinity() : norm;
}

}  // namespace

NAMED_OPERATOR(MatrixInverse, (FloatingOrComplex<In>, x), (Out, y), (Attribute<bool>, adjoint)) {
  const at::Tensor inverse = at::linalg_inv(wide(x));
  y = adjoint.value_or(false) ? inverse.mH() : inverse;
}
NAMED_OPERATOR(Qr, (FloatingOrComplex<In>, x), (Out, q), (Out, r),
               (Attribute<bool>, full_matrices)) {
  std::tie(q, r) = at::linalg_qr(wide(x), full_matrices.value_or(false) ? "complete" : "reduced");
}
NAMED_OPERATOR(LogMatrixDeterminant, (FloatingOrComplex<In>, x), (Out, sign), (Out, y)) {
  std::tie(sign, y) = at::linalg_slogdet(wide(x));
}
NAMED_OPERATOR(Pdist, (Floating<In>, x), (Out, y), (Attribute<double>, p)) {
  y = at::pdist(wide(x), norm_of(p));
}
// Both inputs have been broadcast to (.., P, R, M); distances are over the last dimension.
NAMED_OPERATOR(Cdist, (Floating<In>, x1), (Floating<In>, x2), (Out, y), (Attribute<double>, p)) {
  expect_shape("x2", x2, x1.sizes());
  const double norm = norm_of(p);
  const at::Tensor rows = wide(x1).reshape({-1, 1, x1.size(-1)});
  const at::Tensor others = wide(x2).reshape({-1, 1, x2.size(-1)});
  y = at::_cdist_forward(rows, others, norm, std::nullopt).reshape(y->sizes());
}
NAMED_OPERATOR(CdistGrad, (Floating<In>, grad), (Floating<In>, x1), (Floating<In>, x2),
               (Floating<In>, cdist), (Out, y), (Attribute<double>, p)) {
  expect_shape("x2", x2, x1.sizes());
  expect_shape("grad", grad, x1.sizes());
  expect_shape("cdist", cdist, x1.sizes());
  // Both inputs have been broadcast over the last dimension, too.
  const auto column = [](const at::Tensor& t) {
    return wide(t).narrow(-1, 0, 1).reshape({-1, 1, 1}).contiguous();
  };
  const at::Tensor rows = wide(x1).reshape({-1, 1, x1.size(-1)});
  const at::Tensor others = wide(x2).reshape({-1, 1, x2.size(-1)});
  const bool is_rounded = std::isinf(norm_of(p)) && at::isReducedFloatingType(grad.scalar_type());
  const at::Tensor gradient =
      (is_rounded ? largest_difference_gradient(column(grad), rows - others, column(cdist))
                  : at::_cdist_backward(column(grad), rows, others, norm_of(p), column(cdist)))
          .view(x1.sizes());
  y = gradient.sizes() == y->sizes() ? gradient : gradient.sum(-2);
}

}  // namespace aclnn_host::named_linear_algebra
