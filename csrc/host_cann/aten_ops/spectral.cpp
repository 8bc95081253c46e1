// Fourier transforms.

#include <ATen/ops/stft.h>
#include <ATen/ops/view_as_real.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

// The name of this one is without "nn".
ACL_FUNCTION(aclStft, (FloatOrComplexIn, self), (OptionalIn, windowOptional), (Out, out),
             (int64_t, nFft), (int64_t, hopLength), (int64_t, winLength), (bool, normalized),
             (bool, onesided), (bool, returnComplex)) {
  expect_dims("self", self, 1, 2);
  TORCH_CHECK(!at::isReducedFloatingType(self.scalar_type()), "self has dtype ",
              dtype_text(self.scalar_type()), ", expected FLOAT, DOUBLE, COMPLEX64 or COMPLEX128");
  TORCH_CHECK(!onesided || !self.is_complex(),
              "onesided is true and self complex, expected false for complex signals");
  const int64_t length = self.size(-1);
  TORCH_CHECK(nFft > 0 && nFft <= length, "nFft is ", nFft.value(), ", expected 1 to ", length,
              ", the length of self");
  TORCH_CHECK(hopLength > 0, "hopLength is ", hopLength.value(), ", expected 1 or more");
  TORCH_CHECK(winLength > 0 && winLength <= nFft, "winLength is ", winLength.value(),
              ", expected 1 to ", nFft.value(), ", which is nFft");
  if (windowOptional) {
    expect_dtype("windowOptional", *windowOptional, self);
    expect_shape("windowOptional", *windowOptional, {winLength.value()});
  }
  const at::Tensor result =
      at::stft(self, nFft, hopLength.value(), winLength.value(), windowOptional, /*center=*/false,
               "reflect", normalized, onesided.value(), /*return_complex=*/true);
  if (returnComplex) {
    expect_dtype(out, result);
    out = result;
    return;
  }
  const at::Tensor parts = at::view_as_real(result);
  expect_dtype(out, parts);
  out = parts;
}
