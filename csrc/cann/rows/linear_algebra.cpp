// Decompositions and products of small matrices, and distances.

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_cdist_backward.h>
#include <ATen/ops/inverse.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/logdet.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pdist.h>
#include <ATen/ops/slogdet.h>

#include "cann/rows/checks.h"
#include "cann/rows/linear_algebra/distances.h"
#include "cann/rows/row.h"

namespace aclnn_host::linear_algebra_rows {

namespace {

// ---- aclnnCdistBackward

void check_cdist(const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2,
                 const at::Tensor& cdist, double p) {
  EXPECT(p >= 0, "p is ", p, ", expected 0 or more");
  expect_dims("grad", grad, 2, 7);
  expect_dtype("x1", x1, grad);
  expect_dtype("x2", x2, grad);
  expect_dtype("cdist", cdist, grad);
  expect_shape("cdist", cdist, grad.sizes());
  EXPECT(x1.dim() == grad.dim() &&
             x1.sizes().slice(0, x1.dim() - 1) == grad.sizes().slice(0, grad.dim() - 1),
         "x1 has shape ", x1.sizes(), ", expected grad's ", grad.sizes(),
         " but for the last dimension");
  EXPECT(x2.dim() == grad.dim() && x2.size(-2) == grad.size(-1) && x2.size(-1) == x1.size(-1),
         "x2 has shape ", x2.sizes(), ", expected [..., ", grad.size(-1), ", ", x1.size(-1),
         "] with as many dimensions as grad");
  for (int64_t dim = 0; dim < grad.dim() - 2; ++dim) {
    EXPECT(x2.size(dim) == grad.size(dim) || x2.size(dim) == 1, "x2 has shape ", x2.sizes(),
           ", expected one that can be broadcast to grad's ", grad.sizes());
  }
}

// ---- aclnnPdist

at::Tensor distances(const at::Tensor& self, double p, const Output& out) {
  expect_dims("self", self, 2, 2);
  constexpr int64_t kMostRows = int64_t{1} << 31;
  EXPECT(self.size(0) <= kMostRows, "self has ", self.size(0), " rows, expected at most ",
         kMostRows);
  const int64_t rows = self.size(0);
  expect_shape("out", out, {rows * (rows - 1) / 2});
  return at::pdist(wide(self), p);
}

}  // namespace

ACLNN(LinalgCross, (In, self), (In, other), (int64_t, dim), (Out, out)) {
  expect_dims("self", self, 1, 8);
  // dim counts the dimensions of self, which may have fewer than the tensors that are broadcast.
  const int64_t along = at::maybe_wrap_dim(dim, self.dim()) - self.dim();
  const std::vector<int64_t> shape = at::infer_size(self.sizes(), other.sizes());
  out = at::linalg_cross(wide(self).expand(shape), wide(other).expand(shape), along);
}
// mode is 0 for the reduced decomposition, 1 for the complete one, 2 for R alone.
ACLNN(LinalgQr, (FloatOrComplexIn, self), (int64_t, mode), (Out, Q), (Out, R)) {
  EXPECT(mode >= 0 && mode <= 2, "mode is ", mode, ", expected 0, 1 or 2");
  const auto [q, r] = at::linalg_qr(wide(self), mode == 0   ? "reduced"
                                                : mode == 1 ? "complete"
                                                            : "r");
  if (mode != 2) Q = q;
  R = r;
}
ACLNN(LinalgCholesky, (FloatIn, self), (bool, upper), (Out, out)) {
  out = at::linalg_cholesky(wide(self), upper);
}
ACLNN(Inverse, (FloatOrComplexIn, self), (Out, out)) {
  out = at::inverse(wide(self));
}
ACLNN(Slogdet, (FloatOrComplexIn, self), (Out, signOut), (Out, logOut)) {
  std::tie(signOut, logOut) = at::slogdet(wide(self));
}

// ---- distances

ACLNN(Pdist, (FloatIn, self), (float, p), (Out, out)) {
  expect_dtype(out, self);
  out = distances(self, p.value(), out);
}
ACLNN(PdistForward, (FloatIn, self), (Number, pScalar), (Out, out)) {
  expect_dtype(out, self);
  out = distances(self, pScalar.toDouble(), out);
}
ACLNN(CdistBackward, (FloatIn, grad), (FloatIn, x1), (FloatIn, x2), (FloatIn, cdist), (float, p),
      (Out, out)) {
  check_cdist(grad, x1, x2, cdist, p.value());
  expect_dtype(out, grad);
  if (std::isinf(p.value()) && at::isReducedFloatingType(grad.scalar_type())) {
    out = largest_difference_gradient(wide(grad).unsqueeze(-1),
                                      wide(x1).unsqueeze(-2) - wide(x2).unsqueeze(-3),
                                      wide(cdist).unsqueeze(-1))
              .sum(-2);
    return;
  }
  out = at::_cdist_backward(wide(grad).contiguous(), wide(x1).contiguous(), wide(x2).contiguous(),
                            p, wide(cdist).contiguous());
}

// ---- products and decompositions of matrices

ACLNN(Ger, (In, self), (In, vec2), (Out, out)) {
  out = at::outer(self, vec2);
}
ACLNN(Logdet, (FloatOrComplexIn, self), (Out, out)) {
  out = at::logdet(wide(self));
}
ACLNN(Qr, (FloatOrComplexIn, self), (bool, some), (Out, Q), (Out, R)) {
  const auto [q, r] = at::linalg_qr(wide(self), some ? "reduced" : "complete");
  Q = q;
  R = r;
}
// v is not transposed; sigma has the input's type, complex if that is. Outputs that are not
// computed are left alone.
ACLNN(Svd, (FloatOrComplexIn, input), (bool, fullMatrices), (bool, computeUV), (Out, sigma),
      (Out, u), (Out, v)) {
  expect_dtype(sigma, input);
  expect_dtype(u, input);
  expect_dtype(v, input);
  if (computeUV) {
    const auto [left, values, right] = at::linalg_svd(wide(input), fullMatrices);
    sigma = values;
    u = left;
    v = right.mH();
  } else {
    sigma = at::linalg_svdvals(wide(input));
  }
}
// mOut is all of A, also what the computation does not read.
ACLNN(TriangularSolve, (FloatOrComplexIn, self), (FloatOrComplexIn, A), (bool, upper),
      (bool, transpose), (bool, unitriangular), (Out, xOut), (Out, mOut)) {
  expect_dtype("A", A, self);
  expect_dtype(xOut, self);
  expect_dtype(mOut, self);
  EXPECT(!unitriangular || self.scalar_type() == at::kFloat, "self has dtype ",
         dtype_text(self.scalar_type()), ", expected FLOAT because unitriangular is true");
  expect_dims("self", self, 2, 8);
  expect_dims("A", A, 2, 8);
  const at::Tensor matrix = wide(A);
  const at::Tensor x =
      at::linalg_solve_triangular(transpose ? matrix.mT() : matrix, wide(self), upper != transpose,
                                  /*left=*/true, unitriangular);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = A.size(-1);
  xOut = x;
  mOut = A.expand(shape);
}

}  // namespace aclnn_host::linear_algebra_rows
