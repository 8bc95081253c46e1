// Quantises the latent vectors of attention to 4-bit indices of the nearest centroids.

#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::compression_latent_vectors_rows {

namespace {

// The code of an element is the number of midpoints between neighbouring centroids that it reaches.
at::Tensor codes_of(const at::Tensor& elements, const at::Tensor& centroids) {
  constexpr int64_t kMiddles = 15;
  const at::Tensor middles =
      (centroids.narrow(0, 0, kMiddles) + centroids.narrow(0, 1, kMiddles)) * 0.5;
  at::Tensor codes = at::zeros(elements.sizes(), elements.options().dtype(at::kByte));
  for (int64_t i = 0; i < kMiddles; ++i) codes += elements >= middles.select(0, i);
  return codes;
}

}  // namespace

// A row of the result has the codes, with even positions in the low bits of a byte, then the length
// of the vector in FLOAT16, and zeros up to a multiple of 64 bytes.
ACLNN(TurboQuantCompressLatent, (In, latent), (In, centroids), (Out, out)) {
  constexpr int64_t kElements = 512;
  constexpr int64_t kBytes = 320;
  constexpr double kEpsilon = 1e-16;
  expect_dtype("latent", latent, at::kFloat);
  expect_dtype("centroids", centroids, at::kFloat);
  EXPECT(latent.dim() == 2 && latent.size(1) == kElements, "latent has shape ", latent.sizes(),
         ", expected two dimensions, the last one ", kElements);
  EXPECT(centroids.numel() == 16, "centroids has shape ", centroids.sizes(),
         ", expected 16 elements");
  const int64_t rows = latent.size(0);
  expect_tensor("out", out, at::kByte, {rows, kBytes});
  const at::Tensor norm = at::sqrt(latent.square().sum(1, /*keepdim=*/true) + kEpsilon);
  const at::Tensor codes =
      codes_of(latent * (1 / norm), centroids.flatten()).view({rows, kElements / 2, 2});
  const at::Tensor packed = codes.select(2, 0) + codes.select(2, 1) * 16;
  const at::Tensor length = norm.to(at::kHalf).view(at::kByte);
  const int64_t rest = kBytes - kElements / 2 - 2;
  out = at::cat({packed, length, at::zeros({rows, rest}, packed.options())}, 1);
}

}  // namespace aclnn_host::compression_latent_vectors_rows
