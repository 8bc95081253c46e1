// Manifold-constrained hyper-connections: n parallel residual streams, mixed by a matrix that
// Sinkhorn's iteration makes doubly stochastic.

#include "cann/rows/hyper_connections/sinkhorn.h"
#include "cann/rows/row.h"

namespace aclnn_host::hyper_connections_outputs_rows {

namespace {

// The shape of the matrices that mix the streams.
std::vector<int64_t> of_mixture(const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = x.size(-2);
  return shape;
}

// The shapes of one call: x is (..., n, D), with one or two leading dimensions.
void check_streams(const at::Tensor& x, const std::optional<at::Tensor>& h_res,
                   const at::Tensor& h_out, const at::Tensor& h_post) {
  expect_dims("x", x, 3, 4);
  expect_dtype("x", x, {at::kHalf, at::kBFloat16});
  std::vector<int64_t> of_streams = x.sizes().vec(), of_layer = of_streams;
  of_streams.pop_back();
  of_layer.erase(of_layer.end() - 2);
  if (h_res) {
    expect_dtype("h_res", *h_res, at::kFloat);
    expect_shape("h_res", *h_res, of_mixture(x));
  }
  expect_shape("h_out", h_out, of_layer);
  expect_dtype("h_post", h_post, at::kFloat);
  expect_shape("h_post", h_post, of_streams);
}

// The number of rows of square matrices in FLOAT.
int64_t rows_of(const char* name, const at::Tensor& matrices) {
  expect_dtype(name, matrices, at::kFloat);
  expect_dims(name, matrices, 3, 4);
  const int64_t n = matrices.size(-1);
  EXPECT((n == 4 || n == 6 || n == 8) && matrices.size(-2) == n, name, " has shape ",
         matrices.sizes(), ", expected square matrices of 4, 6 or 8 rows");
  return n;
}

constexpr int64_t kMostIterations = 100;
constexpr int64_t kPadded = 8;  // tensors saved for the gradient pad n to this size

}  // namespace

// output = h_res^T x + h_post h_out, the latter an outer product. Without h_res the streams are not
// mixed.
ACLNN(MhcPost, (Floating<In>, x), (Optional<In>, h_res), (SameDtype<Floating<In>>, h_out, "x"),
      (In, h_post), (Like<Out>, output, "x")) {
  check_streams(x, h_res, h_out, h_post);
  const at::Tensor mixed = h_res ? at::matmul(h_res->transpose(-1, -2), wide(x)) : wide(x);
  output = mixed + h_post.unsqueeze(-1) * wide(h_out).unsqueeze(-2);
}
ACLNN(MhcPostBackward, (Like<Floating<In>>, gradY, "x"), (Floating<In>, x), (Optional<In>, hRes),
      (SameDtype<Floating<In>>, hOut, "x"), (In, hPost), (Like<Out>, gradX, "x"), (Out, gradHRes),
      (Like<Out>, gradHOut, "hOut"), (Like<Out>, gradHPost, "hPost")) {
  check_streams(x, hRes, hOut, hPost);
  expect_dtype("gradHRes", gradHRes, at::kFloat);
  expect_shape("gradHRes", gradHRes, of_mixture(x));
  const at::Tensor gradient = wide(gradY);
  gradX = hRes ? at::matmul(*hRes, gradient) : gradient;
  gradHRes = at::matmul(wide(x), gradient.transpose(-1, -2));
  gradHOut = at::matmul(hPost.unsqueeze(-2), gradient).squeeze(-2);
  gradHPost = at::matmul(gradient, wide(hOut).unsqueeze(-1)).squeeze(-1);
}

// normOut and sumOut save the normalised matrix and the divisor of each step for the gradient: (2 *
// numIters, T, n, 8) and (2 * numIters, T, 8), padded with zeros after n. Their order is specific
// to the host CANN.
ACLNN(MhcSinkhorn, (In, x), (float, eps), (int64_t, numIters), (Like<Out>, output, "x"),
      (Optional<Out>, normOut), (Optional<Out>, sumOut)) {
  const int64_t n = rows_of("x", x);
  expect_range("numIters", numIters, 1, kMostIterations);
  const bool is_kept = normOut && sumOut;
  const int64_t steps = 2 * numIters.value(), matrices = x.numel() / (n * n);
  if (is_kept) {
    expect_dtype(*normOut, x);
    expect_dtype(*sumOut, x);
    const int64_t sums = steps * matrices * kPadded;
    EXPECT((*normOut)->numel() == sums * n, "normOut has ", (*normOut)->numel(),
           " elements, expected ", sums * n);
    EXPECT((*sumOut)->numel() == sums, "sumOut has ", (*sumOut)->numel(), " elements, expected ",
           sums);
  }

  const SinkhornSteps kept = sinkhorn_of(x, eps.value(), steps, is_kept);
  output = kept.norms.back();
  if (!is_kept) return;
  const auto padded = [&](const std::vector<at::Tensor>& of, const Output& like) {
    return at::constant_pad_nd(at::stack(of), {0, kPadded - n}).reshape(like->sizes());
  };
  normOut = padded(kept.norms, *normOut);
  sumOut = padded(kept.sums, *sumOut);
}
// Behaviour of MhcSinkhornBackward: The first step takes softmax(x) + eps, which was kept, for
// softmax(x), as in CANN's document and kernel.
ACLNN(MhcSinkhornBackward, (In, gradY), (SameDtype<In>, norm, "gradY"),
      (SameDtype<In>, sum, "gradY"), (Like<Out>, out, "gradY")) {
  const int64_t n = rows_of("gradY", gradY);
  const int64_t matrices = gradY.numel() / (n * n), of_step = matrices * kPadded;
  EXPECT(of_step > 0 && sum.numel() % (2 * of_step) == 0 && norm.numel() == sum.numel() * n,
         "norm has ", norm.numel(), " elements and sum ", sum.numel(),
         ", expected those of aclnnMhcSinkhorn");
  const int64_t steps = sum.numel() / of_step;
  EXPECT(steps >= 2 && steps <= 2 * kMostIterations, "sum has ", steps, " steps, expected 2 to ",
         2 * kMostIterations);
  const at::Tensor norms = norm.reshape({steps, matrices, n, kPadded}).narrow(-1, 0, n);
  const at::Tensor sums = sum.reshape({steps, matrices, kPadded}).narrow(-1, 0, n);
  const at::Tensor gradient = gradY.reshape({matrices, n, n});
  out = sinkhorn_gradient(gradient, norms, sums).reshape(gradY.sizes());
}

}  // namespace aclnn_host::hyper_connections_outputs_rows
