// Matrix decompositions, and functions that are computed from them: inverses and determinants.

#include <ATen/ExpandUtils.h>

#include "cann/rows/row.h"

namespace aclnn_host::linear_algebra_decompositions_rows {

ACLNN(LinalgCholesky, (Floating<In>, self), (bool, upper), (Out, out)) {
  out = at::linalg_cholesky(wide(self), upper);
}
// mode 0 is the reduced decomposition, 1 the complete one, 2 computes R only.
ACLNN(LinalgQr, (FloatingOrComplex<In>, self), (int64_t, mode), (Out, Q), (Out, R)) {
  expect_range("mode", mode, 0, 2);
  const auto [q, r] = at::linalg_qr(wide(self), mode == 0   ? "reduced"
                                                : mode == 1 ? "complete"
                                                            : "r");
  if (mode != 2) Q = q;
  R = r;
}
ACLNN(Qr, (FloatingOrComplex<In>, self), (bool, some), (Out, Q), (Out, R)) {
  std::tie(Q, R) = at::linalg_qr(wide(self), some ? "reduced" : "complete");
}
// v is not transposed; sigma has the input's type, also a complex one. Outputs that are not
// computed keep their values.
ACLNN(Svd, (FloatingOrComplex<In>, input), (bool, fullMatrices), (bool, computeUV),
      (SameDtype<Out>, sigma, "input"), (SameDtype<Out>, u, "input"),
      (SameDtype<Out>, v, "input")) {
  if (computeUV) {
    const auto [left, values, right] = at::linalg_svd(wide(input), fullMatrices);
    sigma = values;
    u = left;
    v = right.mH();
  } else {
    sigma = at::linalg_svdvals(wide(input));
  }
}
// mOut is a copy of all of A, including the triangle that is not read.
ACLNN(TriangularSolve, (FloatingOrComplex<In>, self), (SameDtype<FloatingOrComplex<In>>, A, "self"),
      (bool, upper), (bool, transpose), (bool, unitriangular), (SameDtype<Out>, xOut, "self"),
      (SameDtype<Out>, mOut, "self")) {
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
ACLNN(Inverse, (FloatingOrComplex<In>, self), (Out, out)) {
  out = at::inverse(wide(self));
}
ACLNN(Slogdet, (FloatingOrComplex<In>, self), (Out, signOut), (Out, logOut)) {
  std::tie(signOut, logOut) = at::slogdet(wide(self));
}
ACLNN(Logdet, (FloatingOrComplex<In>, self), (Out, out)) {
  out = at::logdet(wide(self));
}

ACLNN(LinalgCross, (In, self), (In, other), (int64_t, dim), (Out, out)) {
  expect_dims("self", self, 1, 8);
  // dim indexes the dimensions of self, which may have fewer than the broadcast tensors.
  const int64_t along = at::maybe_wrap_dim(dim, self.dim()) - self.dim();
  const std::vector<int64_t> shape = at::infer_size(self.sizes(), other.sizes());
  out = at::linalg_cross(wide(self).expand(shape), wide(other).expand(shape), along);
}

}  // namespace aclnn_host::linear_algebra_decompositions_rows
