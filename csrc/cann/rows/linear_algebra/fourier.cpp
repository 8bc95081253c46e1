// Fourier transforms.

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
  expect_range("nFft", nFft, 1, length, ", the length of self");
  expect_at_least("hopLength", hopLength, 1);
  expect_range("winLength", winLength, 1, nFft, ", which is nFft");
  if (windowOptional) expect_shape("windowOptional", *windowOptional, {winLength});
  const at::Tensor result =
      at::stft(self, nFft, hopLength.value(), winLength.value(), windowOptional, /*center=*/false,
               "reflect", normalized, onesided.value(), /*return_complex=*/true);
  const at::Tensor returned = returnComplex ? result : at::view_as_real(result);
  expect_dtype(out, returned);
  out = returned;
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
  expect_range("dim", dim, -self.dim(), self.dim() - 1);
  expect_range("norm", norm, 1, 3);
  const char* const mode = norm == 1 ? "backward" : norm == 2 ? "forward" : "ortho";
  const auto length = size == -1 ? std::nullopt : std::optional<int64_t>(size);
  out = at::view_as_real(at::fft_rfft(self, length, dim.value(), mode));
}

}  // namespace aclnn_host::linear_algebra_fourier_rows
