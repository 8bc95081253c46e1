// Distances between the rows of matrices.

#include "cann/rows/linear_algebra/distances.h"

#include "cann/rows/row.h"

namespace aclnn_host::linear_algebra_distances_rows {

namespace {

// ---- aclnnCdistBackward

void check_cdist(const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2, double p) {
  EXPECT(p >= 0, "p is ", p, ", expected 0 or more");
  expect_dims("grad", grad, 2, 7);
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
  const int64_t rows = self.size(0);
  EXPECT(rows <= kMostRows, "self has ", rows, " rows, expected at most ", kMostRows);
  expect_shape("out", out, {rows * (rows - 1) / 2});
  return at::pdist(wide(self), p);
}

}  // namespace

ACLNN(Cdist, (In, x1), (In, x2), (float, p), (int64_t, computeMode), (Out, out)) {
  out = at::cdist(wide(x1), wide(x2), p, computeMode);
}
ACLNN(CdistBackward, (Floating<In>, grad), (SameDtype<Floating<In>>, x1, "grad"),
      (SameDtype<Floating<In>>, x2, "grad"), (Like<Floating<In>>, cdist, "grad"), (float, p),
      (SameDtype<Out>, out, "grad")) {
  check_cdist(grad, x1, x2, p.value());
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

// Behaviour of Pdist: The input has at most 2^31 rows.
ACLNN(Pdist, (Floating<In>, self), (float, p), (SameDtype<Out>, out, "self")) {
  out = distances(self, p.value(), out);
}
ACLNN(PdistForward, (Floating<In>, self), (Number, pScalar), (SameDtype<Out>, out, "self")) {
  out = distances(self, pScalar.toDouble(), out);
}

}  // namespace aclnn_host::linear_algebra_distances_rows
