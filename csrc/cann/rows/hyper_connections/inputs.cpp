// The input of a layer with hyper-connections: the n residual streams of a token, mixed with
// weights that are computed from a product with all streams.

#include "cann/rows/row.h"

namespace aclnn_host::hyper_connections_inputs_rows {

namespace {

// x is (..., n, D), with one or two leading dimensions. The products are those of hPre, hPost and,
// if present, the matrix hRes: 2 n + n^2 or 2 n of them.
struct Streams {
  std::vector<int64_t> leading;
  int64_t tokens, count, size;

  int64_t products(bool has_residual) const {
    return (has_residual ? count * count : 0) + 2 * count;
  }
  std::vector<int64_t> with(std::vector<int64_t> last) const {
    std::vector<int64_t> shape = leading;
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  }
};
Streams streams_of(const at::Tensor& x) {
  expect_dims("x", x, 3, 4);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  expect_elements("x", x);
  const int64_t count = x.size(-2), size = x.size(-1);
  constexpr int64_t kMultiple = 16, kMost = 16384;
  EXPECT(count == 4 || count == 6 || count == 8, "x has shape ", x.sizes(),
         ", expected 4, 6 or 8 streams");
  EXPECT(size <= kMost && size % kMultiple == 0, "the last dimension of x is ", size,
         ", expected a multiple of ", kMultiple, " up to ", kMost);
  return {x.sizes().slice(0, static_cast<size_t>(x.dim() - 2)).vec(), x.numel() / (count * size),
          count, size};
}

// Splits the last dimension of a tensor into the products of hPre, hPost and hRes.
std::vector<at::Tensor> parts_of(const at::Tensor& products, int64_t count) {
  std::vector<int64_t> sizes{count, count};
  if (products.size(-1) > 2 * count) sizes.push_back(count * count);
  return products.split_with_sizes(sizes, -1);
}

template <class Version>
void compute(Version& row) {
  const Streams streams = streams_of(row.x);
  const int64_t n = streams.count;
  expect_dims("alpha", row.alpha, 1);
  const bool has_residual = row.alpha.size(0) == 3;
  expect_float("alpha", row.alpha, {has_residual ? 3 : 2});
  const int64_t products = streams.products(has_residual);
  expect_float("phi", row.phi, {products, n * streams.size});
  expect_float("bias", row.bias, {products});
  if (row.gammaOptional) expect_float("gammaOptional", *row.gammaOptional, {n, streams.size});
  expect_dtype("hPost", row.hPost, at::kFloat);
  EXPECT(row.hRes || !has_residual, "hRes is null, expected a tensor as alpha has three elements");
  EXPECT(static_cast<bool>(row.invRmsOptional) == static_cast<bool>(row.hMixOptional) &&
             static_cast<bool>(row.hMixOptional) == static_cast<bool>(row.hPreOptional),
         "one of invRmsOptional, hMixOptional and hPreOptional is given and another is null");

  const at::Tensor flat = wide(row.x).reshape({streams.tokens, n * streams.size});
  const at::Tensor inverse_rms = at::rsqrt((flat * flat).mean(-1) + row.normEps.value());
  const at::Tensor scaled = row.gammaOptional ? flat * row.gammaOptional->flatten() : flat;
  const at::Tensor mix = at::matmul(scaled, row.phi.t());
  const auto weights = parts_of(mix * inverse_rms.unsqueeze(-1), n);
  const auto biases = parts_of(row.bias, n);
  const auto linear = [&](size_t i) {
    return weights[i] * row.alpha.select(0, static_cast<int64_t>(i)) + biases[i];
  };
  const at::Tensor pre = at::sigmoid(linear(0)) + row.hcEps.value();
  const at::Tensor mixed =
      (pre.unsqueeze(-1) * flat.view({streams.tokens, n, streams.size})).sum(1);
  row.hIn = mixed.view(streams.with({streams.size}));
  row.hPost = (2 * at::sigmoid(linear(1))).view(streams.with({n}));
  if (has_residual) {
    row.hRes = linear(2).view(streams.with({n, n}));
  } else if (row.hRes) {
    row.hRes = at::zeros((*row.hRes)->sizes(), mix.options());
  }
  row.invRmsOptional = inverse_rms.view(streams.leading);
  row.hMixOptional = mix.view(streams.with({products}));
  row.hPreOptional = pre.view(streams.with({n}));
}

}  // namespace

// With xFlat, the elements of all streams, hMix = (xFlat gamma) phi^T and w = hMix / rms(xFlat).
// Each part of w is scaled by its alpha and shifted by its bias; hPre is the sigmoid of its part,
// hPost twice the sigmoid.
// Behaviour of MhcPre, MhcPreBackward: Everything is computed in FLOAT, and innerPrecise has no
// effect. The gradient is the true one; the document scales x by gamma once more.
ACLNN_STRUCT(MhcPre, (Floating<In>, x), (In, phi), (In, alpha), (In, bias),
             (Optional<In>, gammaOptional), (double, normEps), (double, hcEps),
             (SameDtype<Out>, hIn, "x"), (Out, hPost), (Optional<Out>, hRes),
             (Optional<Out>, invRmsOptional), (Optional<Out>, hMixOptional),
             (Optional<Out>, hPreOptional)) {
  compute(*this);
}
// innerPrecise allows a device to multiply in HF32, which rounds to fewer bits; the host CANN does
// not.
ACLNN_STRUCT(MhcPreV2, (Floating<In>, x), (In, phi), (In, alpha), (In, bias),
             (Optional<In>, gammaOptional), (double, normEps), (double, hcEps),
             (int64_t, innerPrecise), (SameDtype<Out>, hIn, "x"), (Out, hPost),
             (Optional<Out>, hRes), (Optional<Out>, invRmsOptional), (Optional<Out>, hMixOptional),
             (Optional<Out>, hPreOptional)) {
  expect_one_of("innerPrecise", innerPrecise, {0, 1});
  compute(*this);
}

// gradXPostOptional is added to the gradient of x. Without gamma its gradient is not computed.
ACLNN(MhcPreBackward, (Floating<In>, x), (In, phi), (In, alpha),
      (SameDtype<Floating<In>>, gradHIn, "x"), (In, gradHPost), (In, gradHRes), (In, invRms),
      (In, hMix), (In, hPre), (In, hPost), (Optional<In>, gamma),
      (Like<Optional<In>>, gradXPostOptional, "x"), (float, hcEps), (SameDtype<Out>, gradX, "x"),
      (Out, gradPhi), (Out, gradAlpha), (Out, gradBias), (Optional<Out>, gradGamma)) {
  const Streams streams = streams_of(x);
  const int64_t n = streams.count, tokens = streams.tokens, elements = n * streams.size;
  const int64_t products = streams.products(/*has_residual=*/true);
  expect_float("phi", phi, {products, elements});
  expect_float("alpha", alpha, {3});
  expect_shape("gradHIn", gradHIn, streams.with({streams.size}));
  expect_float("gradHPost", gradHPost, streams.with({n}));
  expect_float("gradHRes", gradHRes, streams.with({n, n}));
  expect_float("invRms", invRms, streams.leading);
  expect_float("hMix", hMix, streams.with({products}));
  expect_float("hPre", hPre, streams.with({n}));
  expect_float("hPost", hPost, streams.with({n}));
  if (gamma) expect_float("gamma", *gamma, {n, streams.size});
  expect_dtype("gradPhi", gradPhi, at::kFloat);
  expect_dtype("gradAlpha", gradAlpha, at::kFloat);
  expect_dtype("gradBias", gradBias, at::kFloat);

  const at::Tensor flat = wide(x).reshape({tokens, n, streams.size});
  const at::Tensor of_in = wide(gradHIn).reshape({tokens, 1, streams.size});
  const at::Tensor pre = hPre.reshape({tokens, n}), post = hPost.reshape({tokens, n});
  const at::Tensor sigmoid = pre.sub(c10::Scalar(hcEps.value()));
  // The gradients of the sums before the sigmoids, for hPre, hPost and hRes.
  const at::Tensor of_sums[] = {(of_in * flat).sum(-1) * sigmoid * (1 - sigmoid),
                                gradHPost.reshape({tokens, n}) * post * (1 - post / 2),
                                gradHRes.reshape({tokens, n * n})};
  const at::Tensor rms = invRms.reshape({tokens, 1}), mix = hMix.reshape({tokens, products});
  const auto weights = parts_of(mix * rms, n);
  std::vector<at::Tensor> of_alpha, of_weights;
  for (size_t i = 0; i < 3; ++i) {
    of_alpha.push_back((of_sums[i] * weights[i]).sum());
    of_weights.push_back(of_sums[i] * alpha.select(0, static_cast<int64_t>(i)));
  }
  const at::Tensor of_all = at::cat(of_weights, -1);
  const at::Tensor of_mix = of_all * rms;
  const at::Tensor of_scaled = at::matmul(of_mix, phi);
  const at::Tensor x_flat = flat.view({tokens, elements});
  const at::Tensor factor = gamma ? gamma->reshape({1, elements}) : at::Tensor();
  const at::Tensor of_rms = (of_all * mix).sum(-1, /*keepdim=*/true);
  at::Tensor of_x = (gamma ? of_scaled * factor : of_scaled) -
                    of_rms * rms.pow(3) / static_cast<double>(elements) * x_flat;
  of_x = of_x + (of_in * pre.unsqueeze(-1)).view({tokens, elements});
  if (gradXPostOptional) of_x = of_x + wide(*gradXPostOptional).reshape({tokens, elements});
  gradX = of_x.view(x.sizes());
  gradPhi = at::matmul(of_mix.t(), gamma ? x_flat * factor : x_flat);
  gradAlpha = at::stack(of_alpha);
  gradBias = at::cat(at::TensorList(of_sums), -1).sum(0);
  if (gamma) gradGamma = (x_flat * of_scaled).sum(0).view({n, streams.size});
}

}  // namespace aclnn_host::hyper_connections_inputs_rows
