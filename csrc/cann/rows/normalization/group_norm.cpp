// Normalisation of groups of channels, and fused functions. 16-bit tensors are converted once, so
// that statistics are FP32.

#include "cann/rows/images.h"
#include "cann/rows/normalization/gradients.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::normalization_group_norm_rows {

namespace {

// For functions of ATen that assume a contiguous tensor without a check.
at::Tensor row_by_row(const at::Tensor& tensor) {
  return wide(tensor).contiguous();
}
std::optional<at::Tensor> row_by_row(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(row_by_row(*tensor)) : std::nullopt;
}

using Normed = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

struct Names {
  const char* input;
  const char* groups;
};

// The group normalisation of (N, C, ...), with the means and the inverse deviations.
Normed group_normed(const Names& names, const at::Tensor& x, const std::optional<at::Tensor>& gamma,
                    const std::optional<at::Tensor>& beta, int64_t groups, double eps,
                    bool may_lack_channels = false) {
  EXPECT(x.dim() >= 2 && (may_lack_channels || (x.size(0) > 0 && x.size(1) > 0)), names.input,
         " has shape ", x.sizes(),
         ", expected two dimensions or more, of which the first two are not 0");
  EXPECT(groups > 0 && x.size(1) % groups == 0, names.groups, " is ", groups,
         ", expected a divisor of ", x.size(1), ", the number of channels");
  EXPECT(eps > 0, "eps is ", eps, ", expected more than 0");
  for (const auto& [name, weights] : {std::pair("gamma", gamma), std::pair("beta", beta)}) {
    if (!weights) continue;
    EXPECT(weights->numel() == x.size(1), name, " has shape ", weights->sizes(), ", expected ",
           x.size(1), " elements, one per channel");
    const at::ScalarType dtype = weights->scalar_type();
    EXPECT(dtype == x.scalar_type() || dtype == at::kFloat, name, " has dtype ", dtype_text(dtype),
           ", expected ", dtype_text(x.scalar_type()), " as ", names.input,
           " has, or FLOAT; cast it");
  }
  const auto flat = [](const std::optional<at::Tensor>& weights) {
    return weights ? std::optional(row_by_row(*weights).flatten()) : std::nullopt;
  };
  return at::native_group_norm(row_by_row(x), flat(gamma), flat(beta), x.size(0), x.size(1),
                               c10::multiply_integers(x.sizes().slice(2)), groups, eps);
}

void expect_divisor(int64_t group, int64_t channels) {
  EXPECT(group > 0 && channels >= 0 && channels % group == 0, "group is ", group,
         ", expected a divisor of C, which is ", channels);
}

// Also of tensors without elements. On Ascend950 N and C may be 0, and the means are NaN; the
// inverse deviations are NaN on every product.
template <class Version>
void normalize_before_silu(Version& row) {
  const Product product = current_product();
  const bool may_lack_channels = product == Product::kAscend950 || product == Product::kHost;
  if (row.gamma) expect_dims("gamma", *row.gamma, 1);
  if (row.beta) expect_dims("beta", *row.beta, 1);
  auto [result, mean, rstd] = group_normed({"self", "group"}, row.self, row.gamma, row.beta,
                                           row.group, row.eps, may_lack_channels);
  if (row.self.numel() == 0) {
    rstd = at::full_like(rstd, std::numeric_limits<double>::quiet_NaN());
    mean = product == Product::kAscend950 ? rstd : at::zeros_like(rstd);
  }
  bool has_silu = true;
  if constexpr (requires { row.activateSilu; }) has_silu = row.activateSilu;
  row.out = has_silu ? at::silu(result) : result;
  row.meanOut = mean;
  row.rstdOut = rstd;
}

}  // namespace

ACLNN(GroupNorm, (Image<In>, self), (Optional<In>, gamma), (Optional<In>, beta), (int64_t, N),
      (int64_t, C), (int64_t, HxW), (int64_t, group), (double, eps), (Image<Out>, out),
      (Out, meanOut), (Out, rstdOut)) {
  expect_divisor(group, C);
  EXPECT(N >= 0 && HxW >= 0, "N is ", N.value(), " and HxW ", HxW.value(),
         ", expected sizes of 0 or more");
  const auto [result, mean, rstd] = at::native_group_norm(row_by_row(self), row_by_row(gamma),
                                                          row_by_row(beta), N, C, HxW, group, eps);
  out = result;
  meanOut = mean;
  rstdOut = rstd;
}
ACLNN(GroupNormBackward, (Image<In>, gradOut), (Image<In>, input), (In, mean), (In, rstd),
      (Optional<In>, gamma), (int64_t, N), (int64_t, C), (int64_t, HxW), (int64_t, group),
      (Bools, outputMask), (Image<Optional<Out>>, gradInput), (Optional<Out>, gradGammaOut),
      (Optional<Out>, gradBetaOut)) {
  expect_divisor(group, C);
  const std::array mask = checked_mask(outputMask, {{{"gradInput", &gradInput},
                                                     {"gradGammaOut", &gradGammaOut},
                                                     {"gradBetaOut", &gradBetaOut}}});
  write_gradients(
      at::native_group_norm_backward(row_by_row(gradOut), row_by_row(input), row_by_row(mean),
                                     row_by_row(rstd), row_by_row(gamma), N, C, HxW, group, mask),
      gradInput, gradGammaOut, gradBetaOut);
}

// x, dy and gamma have one shape: (samples, groups, elements of a group). The formula is that of
// the document, where gamma is a factor of the sums, too.
ACLNN(GroupNormalizationGrad, (Image<Floating<In>>, x), (Like<Image<Floating<In>>>, dy, "x"),
      (Like<Floating<In>>, gamma, "x"), (SameDtype<Floating<In>>, mean, "x"),
      (SameDtype<Floating<In>>, rstd, "x"), (Like<Image<Out>>, dx, "x")) {
  expect_dims("x", x, 3, 8);
  expect_shape("mean", mean, {x.size(0), x.size(1)});
  expect_shape("rstd", rstd, {x.size(0), x.size(1)});
  if (x.numel() == 0) return;
  const at::Tensor deviation = wide(rstd).unsqueeze(-1);
  const at::Tensor normal = (wide(x).flatten(2) - wide(mean).unsqueeze(-1)) * deviation;
  const at::Tensor gradient = wide(dy).flatten(2);
  const at::Tensor scale = wide(gamma).flatten(2);
  const at::Tensor sum = (gradient * scale).sum(-1, /*keepdim=*/true);
  const at::Tensor weighted = (gradient * scale * normal).sum(-1, /*keepdim=*/true);
  const auto count = static_cast<double>(normal.size(-1));
  dx = (deviation / count * scale * (count * gradient - sum - normal * weighted)).view(x.sizes());
}

ACLNN_STRUCT(GroupNormSilu, (Image<Floating<In>>, self), (Optional<In>, gamma),
             (SameDtype<Optional<In>>, beta, "gamma"), (int64_t, group), (double, eps),
             (SameDtype<Image<Out>>, out, "self"), (Out, meanOut), (Out, rstdOut)) {
  normalize_before_silu(*this);
}
ACLNN_STRUCT(GroupNormSiluV2, (Image<Floating<In>>, self), (Optional<In>, gamma),
             (SameDtype<Optional<In>>, beta, "gamma"), (int64_t, group), (double, eps),
             (bool, activateSilu), (SameDtype<Image<Out>>, out, "self"), (Out, meanOut),
             (Out, rstdOut)) {
  normalize_before_silu(*this);
}
// The channels are the second dimension for every dataFormatOptional.
ACLNN(GroupNormSwish, (Image<Floating<In>>, x), (Floating<In>, gamma),
      (SameDtype<Floating<In>>, beta, "gamma"), (int64_t, numGroups),
      (Unused<char*>, dataFormatOptional, "CANN does not read it: the channels are dimension 1"),
      (double, eps), (bool, activateSwish), (double, swishScale),
      (SameDtype<Image<Out>>, yOut, "x"), (SameDtype<Out>, meanOut, "gamma"),
      (SameDtype<Out>, rstdOut, "gamma")) {
  const auto [result, mean, rstd] =
      group_normed({"x", "numGroups"}, x, gamma, beta, numGroups, eps);
  yOut = activateSwish ? result * at::sigmoid(result * swishScale.value()) : result;
  meanOut = mean;
  rstdOut = rstd;
}
// The sums over a group are divided by its number of elements. The document's formula omits the
// division, without which the result is not a gradient.
ACLNN(GroupNormSwishGrad, (Image<Floating<In>>, dy), (SameDtype<Floating<In>>, mean, "dy"),
      (SameDtype<Floating<In>>, rstd, "dy"), (Like<Image<Floating<In>>>, x, "dy"),
      (SameDtype<Floating<In>>, gamma, "dy"), (SameDtype<Floating<In>>, beta, "dy"),
      (int64_t, numGroups),
      (Unused<char*>, dataFormatOptional, "CANN does not read it: the channels are dimension 1"),
      (double, swishScale), (bool, dgammaIsRequire), (bool, dbetaIsRequire),
      (Like<Image<Out>>, dxOut, "dy"), (Out, dgammaOut), (Out, dbetaOut)) {
  expect_dims("dy", dy, 2, 8);
  expect_elements("dy", dy);
  const int64_t samples = dy.size(0), channels = dy.size(1), groups = numGroups;
  EXPECT(groups > 0 && channels % groups == 0 && channels / groups <= 4000, "numGroups is ", groups,
         ", expected a divisor of ", channels,
         ", the number of channels, with at most 4000 of them in a group");
  const auto expect_count = [&](const char* name, const at::Tensor& tensor, int64_t count) {
    EXPECT(tensor.numel() == count, name, " has shape ", tensor.sizes(), ", expected ", count,
           " elements");
  };
  const std::vector<int64_t> by_group{samples, groups, channels / groups, -1};
  const auto statistic = [&](const char* name, const at::Tensor& tensor) {
    expect_count(name, tensor, samples * groups);
    return wide(tensor).reshape({samples, groups, 1, 1});
  };
  const auto channel = [&](const char* name, const at::Tensor& tensor) {
    expect_count(name, tensor, channels);
    return wide(tensor).reshape({1, groups, channels / groups, 1});
  };
  const at::Tensor deviation = statistic("rstd", rstd);
  const at::Tensor scale = channel("gamma", gamma);
  const at::Tensor normal = (wide(x).reshape(by_group) - statistic("mean", mean)) * deviation;
  const at::Tensor scaled = (normal * scale + channel("beta", beta)) * swishScale.value();
  const at::Tensor gate = at::sigmoid(scaled);
  const at::Tensor gradient = wide(dy).reshape(by_group) * (gate * (scaled * (1 - gate) + 1));
  const at::Tensor weighted = gradient * scale;
  const at::Tensor average = weighted.mean({2, 3}, /*keepdim=*/true);
  const at::Tensor average_of_normal = (weighted * normal).mean({2, 3}, /*keepdim=*/true);
  const at::Tensor result = deviation * (weighted - normal * average_of_normal - average);
  const auto write = [&](Output& out, const at::Tensor& each) {
    expect_dtype(out, dy);
    expect_count(out.name(), out, channels);
    out = each.sum(at::IntArrayRef{0, 3}).reshape(out->sizes());
  };
  dxOut = result.reshape(dy.sizes());
  if (dgammaIsRequire) write(dgammaOut, gradient * normal);
  if (dbetaIsRequire) write(dbetaOut, gradient);
}

}  // namespace aclnn_host::normalization_group_norm_rows
