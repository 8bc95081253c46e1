// Fourier transforms.

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::linear_algebra_fourier_rows {

// CANN's name of this function lacks the "nn".
ACL_FUNCTION(aclStft, (FloatingOrComplex<In>, self),
             (SameDtype<Optional<In>>, windowOptional, "self"), (Out, out), (int64_t, nFft),
             (int64_t, hopLength), (int64_t, winLength), (bool, normalized), (bool, onesided),
             (bool, returnComplex)) {
  expect_dims("self", self, 1, 2);
  EXPECT(!at::isReducedFloatingType(self.scalar_type()), "self has dtype ",
         dtype_text(self.scalar_type()), ", expected FLOAT, DOUBLE, COMPLEX64 or COMPLEX128");
  EXPECT(!onesided || !self.is_complex(),
         "onesided is true and self complex, expected false for complex signals");
  const int64_t length = self.size(-1);
  EXPECT(nFft > 0 && nFft <= length, "nFft is ", nFft.value(), ", expected 1 to ", length,
         ", the length of self");
  EXPECT(hopLength > 0, "hopLength is ", hopLength.value(), ", expected 1 or more");
  EXPECT(winLength > 0 && winLength <= nFft, "winLength is ", winLength.value(), ", expected 1 to ",
         nFft.value(), ", which is nFft");
  if (windowOptional) {
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

// The transform of a real signal, which n truncates or pads with zeros; -1 keeps its size. The last
// dimension of the result has the real and the imaginary parts.
ACL_FUNCTION(aclRfft1D, (In, self), (int64_t, n), (int64_t, dim), (int64_t, norm), (Out, out)) {
  expect_dtype("self", self, at::kFloat);
  expect_dtype("out", out, at::kFloat);
  expect_dims("self", self, 1, 7);
  constexpr int64_t kMost = 4096, kMostPower = 262144;
  const int64_t size = n;
  const bool is_power = size > 0 && (size & (size - 1)) == 0;
  EXPECT(size == -1 || (size >= 1 && size <= (is_power ? kMostPower : kMost)), "n is ", size,
         ", expected 1 to ", kMost, ", a power of two up to ", kMostPower, ", or -1");
  EXPECT(dim >= -self.dim() && dim < self.dim(), "dim is ", dim.value(), ", expected ", -self.dim(),
         " to ", self.dim() - 1);
  EXPECT(norm >= 1 && norm <= 3, "norm is ", norm.value(), ", expected 1, 2 or 3");
  const char* const mode = norm == 1 ? "backward" : norm == 2 ? "forward" : "ortho";
  const auto length = size == -1 ? std::nullopt : std::optional<int64_t>(size);
  out = at::view_as_real(at::fft_rfft(self, length, dim.value(), mode));
}

}  // namespace aclnn_host::linear_algebra_fourier_rows
