// Normalisations. 16-bit tensors are widened once, so that statistics are FP32.

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>

#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::normalization_rows {

namespace {

// A statistic or a parameter of each channel, which ATen's kernels do not check; without elements
// it is none.
std::optional<at::Tensor> of_channels(const char* name, const std::optional<at::Tensor>& tensor,
                                      int64_t channels) {
  if (!tensor || tensor->numel() == 0) return std::nullopt;
  expect_shape(name, *tensor, {channels});
  return wide(*tensor);
}

// For functions of ATen that take a tensor to lie row by row without looking.
at::Tensor row_by_row(const at::Tensor& tensor) {
  return wide(tensor).contiguous();
}
std::optional<at::Tensor> row_by_row(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(row_by_row(*tensor)) : std::nullopt;
}

std::array<bool, 3> mask_of(const std::vector<bool>& mask) {
  EXPECT(mask.size() == 3, "outputMask has ", mask.size(), " values, expected 3");
  return {mask[0], mask[1], mask[2]};
}

// Writes the gradients that were computed.
void write(const std::tuple<at::Tensor, at::Tensor, at::Tensor>& gradients,
           OptionalOutput& grad_input, OptionalOutput& grad_weight, OptionalOutput& grad_bias) {
  if (std::get<0>(gradients).defined()) grad_input = std::get<0>(gradients);
  if (std::get<1>(gradients).defined()) grad_weight = std::get<1>(gradients);
  if (std::get<2>(gradients).defined()) grad_bias = std::get<2>(gradients);
}

using Sizes = std::vector<int64_t>;

// The number of channels, which are the second dimension.
int64_t channels_of(const char* name, const at::Tensor& x) {
  EXPECT(x.dim() >= 2 && x.size(1) > 0, name, " has shape ", x.sizes(),
         ", expected two dimensions or more, and channels in the second one");
  return x.size(1);
}

// A number per channel, along the second dimension of x.
at::Tensor along_channels(const char* name, const at::Tensor& values, const at::Tensor& x) {
  expect_shape(name, values, {x.size(1)});
  Sizes sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = x.size(1);
  return wide(values).reshape(sizes);
}

Sizes dims_but_channels(const at::Tensor& x) {
  Sizes dims;
  for (int64_t dim = 0; dim < x.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

// A running statistic after a batch, and no tensor where there is none.
at::Tensor moved_on(const at::Tensor& running, const at::Tensor& batch, double share) {
  return wide(running) * (1 - share) + batch * share;
}
at::Tensor moved_on(const OptionalOutput& running, const at::Tensor& batch, double share) {
  return running ? moved_on(static_cast<const at::Tensor&>(*running), batch, share) : at::Tensor();
}

void expect_real(const char* name, const at::Tensor& numbers) {
  EXPECT(!numbers.is_complex(), name, " has dtype ", dtype_text(numbers.scalar_type()),
         ", expected one that is not complex");
}

using Normed = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// A group normalisation of (N, C, ...), with the means and the inverse deviations.
Normed group_normed(const at::Tensor& x, const std::optional<at::Tensor>& gamma,
                    const std::optional<at::Tensor>& beta, int64_t groups, double eps,
                    bool may_lack_channels = false) {
  EXPECT(x.dim() >= 2 && (may_lack_channels || (x.size(0) > 0 && x.size(1) > 0)),
         "the input has shape ", x.sizes(),
         ", expected two dimensions or more, of which the first two are not 0");
  EXPECT(groups > 0 && x.size(1) % groups == 0, "the number of groups is ", groups,
         ", expected a divisor of ", x.size(1), ", the number of channels");
  EXPECT(eps > 0, "eps is ", eps, ", expected more than 0");
  for (const auto& [name, weights] : {std::pair("gamma", gamma), std::pair("beta", beta)}) {
    if (!weights) continue;
    EXPECT(weights->numel() == x.size(1), name, " has shape ", weights->sizes(), ", expected ",
           x.size(1), " elements, one per channel");
    const at::ScalarType dtype = weights->scalar_type();
    EXPECT(dtype == x.scalar_type() || dtype == at::kFloat, name, " has dtype ", dtype_text(dtype),
           ", expected ", dtype_text(x.scalar_type()), " as the input has, or FLOAT; cast it");
  }
  const int64_t places = c10::multiply_integers(x.sizes().slice(2));
  const auto flat = [](const std::optional<at::Tensor>& weights) {
    return weights ? std::optional(row_by_row(*weights).reshape({-1})) : std::nullopt;
  };
  return at::native_group_norm(row_by_row(x), flat(gamma), flat(beta), x.size(0), x.size(1), places,
                               groups, eps);
}

// Without elements there is nothing to be normalised. On Ascend950 N and C may be 0, and the means
// are nan, as the inverse deviations are on every product.
Normed group_normed_before_silu(const at::Tensor& x, const std::optional<at::Tensor>& gamma,
                                const std::optional<at::Tensor>& beta, int64_t groups, double eps) {
  const Product product = current_product();
  const bool may_lack_channels = product == Product::kAscend950 || product == Product::kHost;
  for (const auto& [name, weights] : {std::pair("gamma", gamma), std::pair("beta", beta)}) {
    if (weights) expect_dims(name, *weights, 1);
  }
  if (gamma && beta) expect_dtype("beta", *beta, *gamma);
  Normed normed = group_normed(x, gamma, beta, groups, eps, may_lack_channels);
  if (x.numel() > 0) return normed;
  auto& [result, mean, rstd] = normed;
  rstd = at::full_like(rstd, std::numeric_limits<double>::quiet_NaN());
  mean = product == Product::kAscend950 ? rstd : at::zeros_like(rstd);
  return normed;
}

}  // namespace

ACLNN(GroupNorm, (Image<In>, self), (OptionalIn, gamma), (OptionalIn, beta), (int64_t, N),
      (int64_t, C), (int64_t, HxW), (int64_t, group), (double, eps), (Image<Out>, out),
      (Out, meanOut), (Out, rstdOut)) {
  EXPECT(group > 0 && C >= 0 && C.value() % group.value() == 0, "group is ", group.value(),
         ", expected a divisor of C, which is ", C.value());
  EXPECT(N >= 0 && HxW >= 0, "N is ", N.value(), " and HxW ", HxW.value(),
         ", expected sizes of 0 or more");
  const auto [result, mean, rstd] = at::native_group_norm(row_by_row(self), row_by_row(gamma),
                                                          row_by_row(beta), N, C, HxW, group, eps);
  out = result;
  meanOut = mean;
  rstdOut = rstd;
}
ACLNN(GroupNormBackward, (Image<In>, gradOut), (Image<In>, input), (In, mean), (In, rstd),
      (OptionalIn, gamma), (int64_t, N), (int64_t, C), (int64_t, HxW), (int64_t, group),
      (Bools, outputMask), (Image<OptionalOut>, gradInput), (OptionalOut, gradGammaOut),
      (OptionalOut, gradBetaOut)) {
  const std::array mask = mask_of(outputMask);
  require_asked("gradInput", gradInput, "outputMask[0]", mask[0]);
  require_asked("gradGammaOut", gradGammaOut, "outputMask[1]", mask[1]);
  require_asked("gradBetaOut", gradBetaOut, "outputMask[2]", mask[2]);
  write(at::native_group_norm_backward(row_by_row(gradOut), row_by_row(input), row_by_row(mean),
                                       row_by_row(rstd), row_by_row(gamma), N, C, HxW, group, mask),
        gradInput, gradGammaOut, gradBetaOut);
}

// Training updates the running statistics and saves those of the batch; otherwise nothing is saved.
// A running mean that is absent is 0, and a variance 1. Without elements the mean that is saved is
// 0, what is saved beside it is nan, and nothing is updated.
ACLNN(BatchNorm, (Image<In>, input), (OptionalIn, weight), (OptionalIn, bias),
      (OptionalInOut, runningMean), (OptionalInOut, runningVar), (bool, training),
      (double, momentum), (double, eps), (Image<Out>, output), (OptionalOut, saveMean),
      (OptionalOut, saveInvstd)) {
  require_asked("saveMean", saveMean, "training", training);
  require_asked("saveInvstd", saveInvstd, "training", training);
  expect_dims("input", input, 2, 8);
  const int64_t channels = input.size(1);
  if (input.numel() == 0) {
    const auto filled = [&](OptionalOutput& statistic, double number) {
      if (!statistic) return;
      statistic = at::full((*statistic)->sizes(), number, wide(input).options());
    };
    output = wide(input);
    filled(saveMean, 0);
    filled(saveInvstd, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  // A copy, because ATen writes to it.
  const auto running = [&](const char* name, const OptionalOutput& statistic, double absent) {
    const auto given = statistic ? std::optional<at::Tensor>(*statistic) : std::nullopt;
    const auto numbers = of_channels(name, given, channels);
    return numbers ? numbers->clone() : at::full({channels}, absent, wide(input).options());
  };
  const at::Tensor mean = running("runningMean", runningMean, 0);
  const at::Tensor variance = running("runningVar", runningVar, 1);
  const auto [result, batch_mean, batch_invstd] = at::native_batch_norm(
      wide(input), of_channels("weight", weight, channels), of_channels("bias", bias, channels),
      mean, variance, training, momentum, eps);
  output = result;
  if (!training) return;
  if (runningMean && (*runningMean)->numel() > 0) runningMean = mean;
  if (runningVar && (*runningVar)->numel() > 0) runningVar = variance;
  saveMean = batch_mean;
  saveInvstd = batch_invstd;
}
ACLNN(BatchNormBackward, (Image<In>, gradOut), (Image<In>, input), (OptionalIn, weight),
      (OptionalIn, runningMean), (OptionalIn, runningVar), (OptionalIn, saveMean),
      (OptionalIn, saveInvstd), (bool, training), (double, eps), (Bools, outputMask),
      (Image<OptionalOut>, gradInput), (OptionalOut, gradWeight), (OptionalOut, gradBias)) {
  expect_dims("input", input, 2, 8);
  expect_shape("gradOut", gradOut, input.sizes());
  const std::array mask = mask_of(outputMask);
  require_asked("gradInput", gradInput, "outputMask[0]", mask[0]);
  require_asked("gradWeight", gradWeight, "outputMask[1]", mask[1]);
  require_asked("gradBias", gradBias, "outputMask[2]", mask[2]);
  const int64_t channels = input.size(1);
  const auto mean = of_channels("runningMean", runningMean, channels);
  const auto variance = of_channels("runningVar", runningVar, channels);
  const auto batch_mean = of_channels("saveMean", saveMean, channels);
  const auto batch_invstd = of_channels("saveInvstd", saveInvstd, channels);
  EXPECT(!training || channels == 0 || (batch_mean && batch_invstd),
         "training is true and saveMean or saveInvstd is null, expected both tensors");
  EXPECT(training || channels == 0 || (mean && variance),
         "training is false and runningMean or runningVar is null, expected both tensors");
  if (input.numel() == 0) {
    const at::Tensor sums = at::zeros({channels}, wide(input).options());
    gradInput = at::zeros_like(wide(input));
    gradWeight = sums;
    gradBias = sums;
    return;
  }
  write(at::native_batch_norm_backward(wide(gradOut), wide(input),
                                       of_channels("weight", weight, channels), mean, variance,
                                       batch_mean, batch_invstd, training, eps, mask),
        gradInput, gradWeight, gradBias);
}

// The root mean square norm of x1 + x2, and that sum. Without rstdOut 16-bit tensors are normalised
// over their last dimension, whose gamma has a dimension of 1 before, and xOut may be absent, too.
ACLNN(AddRmsNorm, (In, x1), (In, x2), (In, gamma), (double, epsilon), (Out, yOut),
      (OptionalOut, rstdOut), (OptionalOut, xOut)) {
  require_given(xOut || !rstdOut, "xOut is null, expected a tensor as rstdOut is one");
  expect_dims("x1", x1, 1, 8);
  expect_like("x2", x2, x1);
  expect_dtype("gamma", gamma, x1);
  expect_dtype(yOut, x1);
  if (xOut) expect_dtype(*xOut, x1);
  int64_t normed = 1;  // dimensions, the last ones
  if (rstdOut) {
    normed = gamma.dim();
    EXPECT(normed >= 1 && normed <= x1.dim() &&
               gamma.sizes() == x1.sizes().slice(static_cast<size_t>(x1.dim() - normed)),
           "gamma has shape ", gamma.sizes(), ", expected the last dimensions of x1, which is ",
           x1.sizes());
  } else {
    EXPECT(at::isReducedFloatingType(x1.scalar_type()), "x1 has dtype ",
           dtype_text(x1.scalar_type()), ", expected FLOAT16 or BFLOAT16 as rstdOut is null");
    EXPECT(gamma.sizes() == (at::IntArrayRef{1, x1.size(-1)}), "gamma has shape ", gamma.sizes(),
           ", expected [1, ", x1.size(-1), "] as rstdOut is null");
  }
  const at::Tensor x = wide(x1) + wide(x2);
  std::vector<int64_t> dims;
  for (int64_t dim = x.dim() - normed; dim < x.dim(); ++dim) dims.push_back(dim);
  const at::Tensor rstd = (x.square().mean(dims, /*keepdim=*/true) + epsilon.value()).rsqrt();
  yOut = x * rstd * wide(rstdOut ? gamma : gamma.select(0, 0));
  rstdOut = rstd;
  xOut = x;
}

// A mean and a variance per sample and channel, as tensors of four dimensions.
ACLNN(InstanceNorm, (FloatIn, x), (FloatIn, gamma), (FloatIn, beta), (const char*, dataFormat),
      (double, eps), (Out, y), (Out, mean), (Out, variance)) {
  EXPECT(dataFormat == "NCHW" || dataFormat == "NHWC", "dataFormat is \"", dataFormat,
         "\", expected \"NCHW\" or \"NHWC\"");
  EXPECT(x.dim() == 4, "x has shape ", x.sizes(), ", expected four dimensions");
  expect_dtype("gamma", gamma, x);
  expect_dtype("beta", beta, x);
  expect_dtype(y, x);
  expect_dtype(mean, x);
  const bool channels_last = dataFormat == "NHWC";
  const at::Tensor images = wide(channels_last ? x.permute({0, 3, 1, 2}) : x);
  const at::Tensor average = images.mean({2, 3}, /*keepdim=*/true);
  const at::Tensor centred = images - average;
  const at::Tensor spread = centred.square().mean({2, 3}, /*keepdim=*/true);
  const at::Tensor result =
      centred * (spread + eps.value()).rsqrt() * along_channels("gamma", gamma, images) +
      along_channels("beta", beta, images);
  const auto placed = [channels_last](const at::Tensor& nchw) {
    return channels_last ? nchw.permute({0, 2, 3, 1}) : nchw;
  };
  y = placed(result);
  mean = placed(average);
  variance = placed(spread);
}

ACLNN(GroupNormSilu, (Image<FloatIn>, self), (OptionalIn, gamma), (OptionalIn, beta),
      (int64_t, group), (double, eps), (Image<Out>, out), (Out, meanOut), (Out, rstdOut)) {
  expect_dtype("out", out, self);
  const auto [result, mean, rstd] = group_normed_before_silu(self, gamma, beta, group, eps);
  out = at::silu(result);
  meanOut = mean;
  rstdOut = rstd;
}
ACLNN(GroupNormSiluV2, (Image<FloatIn>, self), (OptionalIn, gamma), (OptionalIn, beta),
      (int64_t, group), (double, eps), (bool, activateSilu), (Image<Out>, out), (Out, meanOut),
      (Out, rstdOut)) {
  expect_dtype("out", out, self);
  const auto [result, mean, rstd] = group_normed_before_silu(self, gamma, beta, group, eps);
  out = activateSilu ? at::silu(result) : result;
  meanOut = mean;
  rstdOut = rstd;
}
// The channels are the second dimension whatever dataFormatOptional says.
ACLNN(GroupNormSwish, (Image<FloatIn>, x), (FloatIn, gamma), (FloatIn, beta), (int64_t, numGroups),
      (char*, dataFormatOptional), (double, eps), (bool, activateSwish), (double, swishScale),
      (Image<Out>, yOut), (Out, meanOut), (Out, rstdOut)) {
  expect_dtype("yOut", yOut, x);
  expect_dtype("beta", beta, gamma);
  expect_dtype("meanOut", meanOut, gamma);
  expect_dtype("rstdOut", rstdOut, gamma);
  const auto [result, mean, rstd] = group_normed(x, gamma, beta, numGroups, eps);
  yOut = activateSwish ? result * at::sigmoid(result * swishScale.value()) : result;
  meanOut = mean;
  rstdOut = rstd;
}

// A batch normalisation with given statistics. invstd has eps in it already.
ACLNN(BatchNormElemt, (Image<FloatIn>, input), (OptionalIn, weight), (OptionalIn, bias),
      (FloatIn, mean), (FloatIn, invstd), (double, eps), (Image<Out>, output)) {
  static_cast<void>(eps);
  channels_of("input", input);
  expect_dtype("mean", mean, input);
  expect_dtype("invstd", invstd, input);
  expect_dtype(output, input);
  at::Tensor result =
      (wide(input) - along_channels("mean", mean, input)) * along_channels("invstd", invstd, input);
  if (weight) {
    expect_dtype("weight", *weight, input);
    result = result * along_channels("weight", *weight, input);
  }
  if (bias) {
    expect_dtype("bias", *bias, input);
    result = result + along_channels("bias", *bias, input);
  }
  output = result;
}
// The sums are over all devices, and counter has the number of elements on each.
ACLNN(BatchNormElemtBackward, (Image<FloatIn>, gradOut), (Image<FloatIn>, input), (FloatIn, mean),
      (FloatIn, invstd), (OptionalIn, weight), (FloatIn, sumDy), (FloatIn, sumDyXmu), (In, counter),
      (Image<Out>, gradInput)) {
  channels_of("input", input);
  expect_shape("gradOut", gradOut, input.sizes());
  expect_real("counter", counter);
  const at::Tensor count = counter.to(wide(input.scalar_type())).sum();
  const at::Tensor scale = along_channels("invstd", invstd, input);
  const at::Tensor mean_dy = along_channels("sumDy", sumDy, input) / count;
  const at::Tensor mean_dy_xmu = along_channels("sumDyXmu", sumDyXmu, input) / count;
  const at::Tensor centred = wide(input) - along_channels("mean", mean, input);
  const at::Tensor result =
      (wide(gradOut) - mean_dy - centred * (scale.square() * mean_dy_xmu)) * scale;
  gradInput = weight ? result * along_channels("weight", *weight, input) : result;
}
ACLNN(BatchNormReduce, (Image<FloatIn>, x), (Out, sum), (Out, squareSum)) {
  EXPECT(x.dim() == 4, "x has shape ", x.sizes(), ", expected four dimensions");
  const Sizes dims = dims_but_channels(x);
  const at::Tensor sums = wide(x).sum(dims);
  const at::Tensor square_sums = wide(x).square().sum(dims);
  sum = sums;
  squareSum = square_sums;
}
ACLNN(BatchNormReduceBackward, (Image<FloatIn>, gradOut), (Image<FloatIn>, input), (FloatIn, mean),
      (FloatIn, invstd), (OptionalIn, weight), (bool, inputG), (bool, weightG), (bool, biasG),
      (OptionalOut, sumDy), (OptionalOut, sumDyXmu), (OptionalOut, gradWeight),
      (OptionalOut, gradBias)) {
  const int64_t channels = channels_of("input", input);
  expect_dtype("gradOut", gradOut, input);
  expect_shape("gradOut", gradOut, input.sizes());
  if (weight) expect_shape("weight", *weight, {channels});
  require_asked("sumDy", sumDy, "inputG", inputG);
  require_asked("sumDyXmu", sumDyXmu, "inputG", inputG);
  require_asked("gradWeight", gradWeight, "weightG", weightG);
  require_asked("gradBias", gradBias, "biasG", biasG);
  const Sizes dims = dims_but_channels(input);
  const at::Tensor sum = wide(gradOut).sum(dims);
  const at::Tensor centred = wide(input) - along_channels("mean", mean, input);
  const at::Tensor product = (wide(gradOut) * centred).sum(dims);
  expect_shape("invstd", invstd, {channels});
  const at::Tensor scaled = product * wide(invstd);
  if (inputG) sumDy = sum;
  if (inputG) sumDyXmu = product;
  if (weightG) gradWeight = scaled;
  if (biasG) gradBias = sum;
}

// Of the statistics of each device and its number of elements, those of all. The running variance
// is the unbiased one.
ACLNN(BatchNormGatherStatsWithCounts, (Image<FloatIn>, input), (FloatIn, mean), (FloatIn, invstd),
      (OptionalInOut, runningMean), (OptionalInOut, runningVar), (double, momentum), (double, eps),
      (FloatIn, counts), (Out, meanAll), (Out, invstdAll)) {
  const int64_t channels = channels_of("input", input);
  EXPECT(counts.dim() == 1, "counts has shape ", counts.sizes(), ", expected one dimension");
  expect_shape("mean", mean, {counts.size(0), channels});
  expect_shape("invstd", invstd, {counts.size(0), channels});
  const at::Tensor count = wide(counts).unsqueeze(1);
  const at::Tensor total = count.sum();
  const at::Tensor average = (wide(mean) * count).sum(0) / total;
  const at::Tensor variance = wide(invstd).square().reciprocal() - eps.value();
  const at::Tensor squares = ((variance + (wide(mean) - average).square()) * count).sum(0);
  const at::Tensor rstd = (squares / total + eps.value()).rsqrt();
  const at::Tensor new_mean = moved_on(runningMean, average, momentum);
  const at::Tensor new_variance = moved_on(runningVar, squares / (total - 1), momentum);
  meanAll = average;
  invstdAll = rstd;
  if (runningMean) runningMean = new_mean;
  if (runningVar) runningVar = new_variance;
}
// The same of the sums and the sums of squares of each device.
ACLNN(SyncBatchNormGatherStats, (FloatIn, totalSum), (FloatIn, totalSquareSum), (In, sampleCount),
      (InOut, mean), (InOut, variance), (float, momentum), (float, eps), (Out, batchMean),
      (Out, batchInvstd)) {
  EXPECT(totalSum.dim() == 2 && totalSum.size(0) > 0, "totalSum has shape ", totalSum.sizes(),
         ", expected (devices, channels) with at least one device");
  expect_shape("totalSquareSum", totalSquareSum, totalSum.sizes());
  expect_shape("sampleCount", sampleCount, {totalSum.size(0)});
  expect_dtype("totalSquareSum", totalSquareSum, totalSum);
  expect_dtype(mean, totalSum);
  expect_dtype(variance, totalSum);
  expect_real("sampleCount", sampleCount);
  expect_dtype("batchInvstd", batchInvstd, batchMean);
  const at::Tensor count = sampleCount.to(wide(totalSum.scalar_type())).sum();
  const at::Tensor average = wide(totalSum).sum(0) / count;
  const at::Tensor spread = wide(totalSquareSum).sum(0) / count - average.square();
  const double share = momentum;
  const at::Tensor rstd = (spread + eps.value()).rsqrt();
  const at::Tensor new_mean = moved_on(mean, average, share);
  const at::Tensor new_variance = moved_on(variance, spread * (count / (count - 1)), share);
  batchMean = average;
  batchInvstd = rstd;
  mean = new_mean;
  variance = new_variance;
}

// gamma has the last dimensions of x1, which are normalised together.
ACLNN(FusedAddRmsNorm, (FloatIn, x1), (FloatIn, x2), (FloatIn, gamma), (double, epsilon),
      (double, scale), (Out, yOut), (Out, rstdOut), (Out, xOut)) {
  expect_like("x2", x2, x1);
  expect_dtype("gamma", gamma, x1);
  expect_like("yOut", yOut, x1);
  expect_like("xOut", xOut, x1);
  EXPECT(x1.numel() > 0, "x1 has shape ", x1.sizes(), ", expected at least one element");
  EXPECT(gamma.dim() >= 1 && gamma.dim() <= x1.dim() &&
             gamma.sizes() == x1.sizes().slice(static_cast<size_t>(x1.dim() - gamma.dim())),
         "gamma has shape ", gamma.sizes(), ", expected the last dimensions of x1, ", x1.sizes());
  std::vector<int64_t> dims;
  for (int64_t dim = x1.dim() - gamma.dim(); dim < x1.dim(); ++dim) dims.push_back(dim);
  const at::Tensor x = wide(x1) * scale.value() + wide(x2);
  const at::Tensor rstd = at::rsqrt(x.square().mean(dims, /*keepdim=*/true) + epsilon.value());
  yOut = x * rstd * wide(gamma);
  rstdOut = rstd;
  xOut = x;
}

// x, dy and gamma have one shape: samples, groups and the elements of a group. The formula is the
// document's, which has gamma as a factor of the sums, too.
ACLNN(GroupNormalizationGrad, (Image<FloatIn>, x), (Image<FloatIn>, dy), (FloatIn, gamma),
      (FloatIn, mean), (FloatIn, rstd), (Image<Out>, dx)) {
  EXPECT(x.dim() >= 3, "x has shape ", x.sizes(), ", expected at least three dimensions");
  expect_like("dy", dy, x);
  expect_like("gamma", gamma, x);
  expect_like("dx", dx, x);
  expect_dtype("mean", mean, x);
  expect_dtype("rstd", rstd, x);
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

}  // namespace aclnn_host::normalization_rows
