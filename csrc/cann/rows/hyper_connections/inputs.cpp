// The input of a layer with hyper-connections: the n residual streams of a token, mixed with
// weights that are computed from a product with all streams.

#include "cann/rows/hyper_connections/sinkhorn.h"
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

// The input of the layer, and what its gradient needs, for each token.
struct Mixed {
  at::Tensor in, post, residual, inverse_rms, mix, pre;
};
Mixed mixed_of(const Streams& streams, const at::Tensor& x, const at::Tensor& phi,
               const at::Tensor& alpha, const at::Tensor& bias, const OptionalTensor& gamma,
               double norm_epsilon, double epsilon) {
  const int64_t n = streams.count;
  const at::Tensor flat = wide(x).reshape({streams.tokens, n * streams.size});
  Mixed result;
  result.inverse_rms = at::rsqrt((flat * flat).mean(-1) + norm_epsilon);
  const at::Tensor scaled = gamma ? flat * gamma->flatten() : flat;
  result.mix = at::matmul(scaled, phi.t());
  const auto weights = parts_of(result.mix * result.inverse_rms.unsqueeze(-1), n);
  const auto biases = parts_of(bias, n);
  const auto linear = [&](size_t i) {
    return weights[i] * alpha.select(0, static_cast<int64_t>(i)) + biases[i];
  };
  result.pre = at::sigmoid(linear(0)) + epsilon;
  result.in = (result.pre.unsqueeze(-1) * flat.view({streams.tokens, n, streams.size})).sum(1);
  result.post = 2 * at::sigmoid(linear(1));
  if (weights.size() > 2) result.residual = linear(2);
  return result;
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
  const bool has_rms{row.invRmsOptional}, has_mix{row.hMixOptional}, has_pre{row.hPreOptional};
  expect_both_or_none("invRmsOptional", has_rms, "hMixOptional", has_mix);
  expect_both_or_none("hMixOptional", has_mix, "hPreOptional", has_pre);

  const Mixed mixed = mixed_of(streams, row.x, row.phi, row.alpha, row.bias, row.gammaOptional,
                               row.normEps.value(), row.hcEps.value());
  row.hIn = mixed.in.view(streams.with({streams.size}));
  row.hPost = mixed.post.view(streams.with({n}));
  if (has_residual) {
    row.hRes = mixed.residual.view(streams.with({n, n}));
  } else if (row.hRes) {
    row.hRes = at::zeros((*row.hRes)->sizes(), mixed.mix.options());
  }
  row.invRmsOptional = mixed.inverse_rms.view(streams.leading);
  row.hMixOptional = mixed.mix.view(streams.with({products}));
  row.hPreOptional = mixed.pre.view(streams.with({n}));
}

// ---- gradients

// What a gradient reads, with one row for each token; gamma is undefined if there is none.
struct Saved {
  at::Tensor x, phi, alpha, gamma, inverse_rms, mix, pre, post;
  double epsilon;
};
// The gradients for hIn, hPost and the residual's products.
struct OfOutputs {
  at::Tensor in, post, residual;
};
// The gradients; x_scaled is the one for x times gamma.
struct Gradients {
  at::Tensor x, x_scaled, phi, alpha, bias;
};
Gradients gradients_of(const Streams& streams, const Saved& saved, const OfOutputs& of) {
  const int64_t n = streams.count, tokens = streams.tokens, elements = n * streams.size;
  const at::Tensor flat = saved.x.view({tokens, n, streams.size});
  const at::Tensor of_in = of.in.reshape({tokens, 1, streams.size});
  const at::Tensor sigmoid = saved.pre.sub(c10::Scalar(saved.epsilon));
  // The gradients of the sums before the sigmoids, for hPre, hPost and hRes.
  const at::Tensor of_sums[] = {(of_in * flat).sum(-1) * sigmoid * (1 - sigmoid),
                                of.post * saved.post * (1 - saved.post / 2), of.residual};
  const at::Tensor& rms = saved.inverse_rms;
  const auto weights = parts_of(saved.mix * rms, n);
  std::vector<at::Tensor> of_alpha, of_weights;
  for (size_t i = 0; i < 3; ++i) {
    of_alpha.push_back((of_sums[i] * weights[i]).sum());
    of_weights.push_back(of_sums[i] * saved.alpha.select(0, static_cast<int64_t>(i)));
  }
  const at::Tensor of_all = at::cat(of_weights, -1);
  const at::Tensor of_mix = of_all * rms;
  const bool is_scaled = saved.gamma.defined();
  Gradients result;
  result.x_scaled = at::matmul(of_mix, saved.phi);
  const at::Tensor of_rms = (of_all * saved.mix).sum(-1, /*keepdim=*/true);
  result.x = (is_scaled ? result.x_scaled * saved.gamma : result.x_scaled) -
             of_rms * rms.pow(3) / static_cast<double>(elements) * saved.x;
  result.x = result.x + (of_in * saved.pre.unsqueeze(-1)).view({tokens, elements});
  result.phi = at::matmul(of_mix.t(), is_scaled ? saved.x * saved.gamma : saved.x);
  result.alpha = at::stack(of_alpha);
  result.bias = at::cat(at::TensorList(of_sums), -1).sum(0);
  return result;
}

// ---- with Sinkhorn's iteration

constexpr int64_t kIterations = 20;  // the only number that CANN documents

// x is (batch, sequence, 4, size).
Streams sinkhorn_streams_of(const at::Tensor& x) {
  expect_dims("x", x, 4);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  constexpr int64_t kStreams = 4;
  EXPECT(x.size(2) == kStreams, "x has shape ", x.sizes(), ", expected ", kStreams, " streams");
  return {{x.size(0), x.size(1)}, x.size(0) * x.size(1), kStreams, x.size(3)};
}
void check_size(const Streams& streams) {
  constexpr int64_t kMultiple = 128, kMost = 100000;
  expect_multiple("the last dimension of x", streams.size, kMultiple, kMost);
}
void check_parameters(const Streams& streams, const at::Tensor& phi, const at::Tensor& alpha,
                      const at::Tensor& bias) {
  const int64_t products = streams.products(/*has_residual=*/true);
  expect_float("phi", phi, {products, streams.count * streams.size});
  expect_float("alpha", alpha, {3});
  expect_float("bias", bias, {products});
}
// The shape of one matrix, or vector, for each step and token.
std::vector<int64_t> of_steps(const Streams& streams, std::vector<int64_t> last) {
  std::vector<int64_t> shape = streams.with(std::move(last));
  shape.insert(shape.begin(), 2 * kIterations);
  return shape;
}
void check_saved(const char* name, const OptionalOutput& out, at::IntArrayRef shape,
                 bool is_asked) {
  require_asked(name, out, "needBackward", is_asked);
  if (is_asked) expect_float(*out, shape);
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

  const at::Tensor x_flat = wide(x).reshape({tokens, elements});
  const Saved saved{x_flat,
                    phi,
                    alpha,
                    gamma ? gamma->reshape({1, elements}) : at::Tensor(),
                    invRms.reshape({tokens, 1}),
                    hMix.reshape({tokens, products}),
                    hPre.reshape({tokens, n}),
                    hPost.reshape({tokens, n}),
                    hcEps.value()};
  const Gradients result = gradients_of(
      streams, saved,
      {wide(gradHIn), gradHPost.reshape({tokens, n}), gradHRes.reshape({tokens, n * n})});
  const at::Tensor of_x = gradXPostOptional
                              ? result.x + wide(*gradXPostOptional).reshape({tokens, elements})
                              : result.x;
  gradX = of_x.view(x.sizes());
  gradPhi = result.phi;
  gradAlpha = result.alpha;
  gradBias = result.bias;
  if (gamma) gradGamma = (x_flat * result.x_scaled).sum(0).view({n, streams.size});
}

// hRes is MhcPre's, made doubly stochastic by Sinkhorn's iteration. Without needBackward the last
// five outputs are not written.
// Behaviour of MhcPreSinkhorn*: Everything is computed in FLOAT. The iteration adds hcEps to the
// softmax and to all sums but the first, the sums of exp(x - max).
ACLNN_STRUCT(MhcPreSinkhorn, (Floating<In>, x), (In, phi), (In, alpha), (In, bias),
             (int64_t, hcMult), (int64_t, numIters), (double, hcEps), (double, normEps),
             (bool, needBackward), (SameDtype<Out>, hin, "x"), (Out, hPost), (Out, hRes),
             (Optional<Out>, hPre), (Optional<Out>, hcBeforeNorm), (Optional<Out>, invRms),
             (Optional<Out>, sumOut), (Optional<Out>, normOut)) {
  expect_one_of("hcMult", hcMult, {4});
  expect_one_of("numIters", numIters, {kIterations});
  const Streams streams = sinkhorn_streams_of(x);
  const int64_t n = streams.count, products = streams.products(/*has_residual=*/true);
  check_parameters(streams, phi, alpha, bias);
  expect_float(hPost, streams.with({n}));
  expect_float(hRes, streams.with({n * n}));
  check_saved("hPre", hPre, streams.with({n}), needBackward);
  check_saved("hcBeforeNorm", hcBeforeNorm, streams.with({products}), needBackward);
  check_saved("invRms", invRms, streams.with({1}), needBackward);
  check_saved("sumOut", sumOut, of_steps(streams, {n}), needBackward);
  check_saved("normOut", normOut, of_steps(streams, {n, n}), needBackward);
  expect_shape("hin", hin, streams.with({streams.size}));
  if (x.numel() == 0) return;
  check_size(streams);

  const Mixed mixed =
      mixed_of(streams, x, phi, alpha, bias, std::nullopt, normEps.value(), hcEps.value());
  const at::Tensor residual = mixed.residual.view({streams.tokens, n, n});
  SinkhornSteps kept = sinkhorn_of(residual, hcEps.value(), 2 * kIterations, needBackward);
  hin = mixed.in.view(hin->sizes());
  hPost = mixed.post.view(hPost->sizes());
  hRes = kept.norms.back().view(hRes->sizes());
  if (!needBackward) return;
  kept.sums.front() = (residual - residual.amax(-1, /*keepdim=*/true)).exp().sum(-1);
  hPre = mixed.pre.view(streams.with({n}));
  hcBeforeNorm = mixed.mix.view(streams.with({products}));
  invRms = mixed.inverse_rms.view(streams.with({1}));
  sumOut = at::stack(kept.sums).view(of_steps(streams, {n}));
  normOut = at::stack(kept.norms).view(of_steps(streams, {n, n}));
}
ACLNN(MhcPreSinkhornBackward, (SameDtype<Floating<In>>, gradHin, "x"), (In, gradHPost),
      (In, gradHRes), (Floating<In>, x), (In, phi), (In, alpha), (In, bias), (In, hPre),
      (In, hcBeforeNorm), (In, invRms), (In, sumOut), (In, normOut), (double, hcEps),
      (SameDtype<Out>, gradX, "x"), (Out, gradPhi), (Out, gradAlpha), (Out, gradBias)) {
  const Streams streams = sinkhorn_streams_of(x);
  check_size(streams);
  const int64_t n = streams.count, tokens = streams.tokens;
  const int64_t products = streams.products(/*has_residual=*/true);
  check_parameters(streams, phi, alpha, bias);
  expect_shape("gradHin", gradHin, streams.with({streams.size}));
  expect_float("gradHPost", gradHPost, streams.with({n}));
  expect_float("gradHRes", gradHRes,
               gradHRes.dim() == 4 ? streams.with({n, n}) : streams.with({n * n}));
  expect_float("hPre", hPre, streams.with({n}));
  expect_float("hcBeforeNorm", hcBeforeNorm, streams.with({products}));
  expect_float("invRms", invRms, streams.with({1}));
  expect_float("sumOut", sumOut, of_steps(streams, {n}));
  expect_float("normOut", normOut, of_steps(streams, {n, n}));
  expect_float(gradPhi, phi.sizes());
  expect_float(gradAlpha, alpha.sizes());
  expect_float(gradBias, bias.sizes());

  const at::Tensor of_residual = sinkhorn_gradient(gradHRes.reshape({tokens, n, n}),
                                                   normOut.reshape({2 * kIterations, tokens, n, n}),
                                                   sumOut.reshape({2 * kIterations, tokens, n}));
  const at::Tensor mix = hcBeforeNorm.reshape({tokens, products});
  const at::Tensor inverse_rms = invRms.reshape({tokens, 1});
  const at::Tensor post = 2 * at::sigmoid(parts_of(mix * inverse_rms, n)[1] * alpha.select(0, 1) +
                                          parts_of(bias, n)[1]);
  const Saved saved{wide(x).reshape({tokens, n * streams.size}),
                    phi,
                    alpha,
                    at::Tensor(),
                    inverse_rms,
                    mix,
                    hPre.reshape({tokens, n}),
                    post,
                    hcEps.value()};
  const Gradients result = gradients_of(
      streams, saved,
      {wide(gradHin), gradHPost.reshape({tokens, n}), of_residual.reshape({tokens, n * n})});
  gradX = result.x.view(x.sizes());
  gradPhi = result.phi;
  gradAlpha = result.alpha;
  gradBias = result.bias;
}

}  // namespace aclnn_host::hyper_connections_inputs_rows
