// Decompositions and products of small matrices.

#include <ATen/ops/inverse.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/slogdet.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

ACLNN(LinalgCross, (In, self), (In, other), (int64_t, dim), (Out, out)) {
  out = at::linalg_cross(self, other, dim);
}
// mode is 0 for the reduced decomposition, 1 for the complete one, 2 for R alone.
ACLNN(LinalgQr, (FloatOrComplexIn, self), (int64_t, mode), (Out, Q), (Out, R)) {
  TORCH_CHECK(mode >= 0 && mode <= 2, "mode is ", mode, ", expected 0, 1 or 2");
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
