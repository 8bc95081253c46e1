// Normalisation of each channel over the batch. 16-bit tensors are converted once, so that
// statistics are FP32.

#include "cann/rows/images.h"
#include "cann/rows/normalization/gradients.h"
#include "cann/rows/row.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host::normalization_batch_norm_rows {

namespace {

// A statistic or a parameter of each channel, which ATen's kernels do not check; nothing if it has
// no elements.
std::optional<at::Tensor> of_channels(const char* name, const std::optional<at::Tensor>& tensor,
                                      int64_t channels) {
  if (!tensor || tensor->numel() == 0) return std::nullopt;
  expect_shape(name, *tensor, {channels});
  return wide(*tensor);
}

using Sizes = std::vector<int64_t>;

// The number of channels, the second dimension.
int64_t channels_of(const char* name, const at::Tensor& x) {
  EXPECT(x.dim() >= 2 && x.size(1) > 0, name, " has shape ", x.sizes(),
         ", expected two dimensions or more, and channels in the second one");
  return x.size(1);
}

// One number for each channel, broadcastable along the second dimension of x.
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

// The running statistic after a batch; no tensor if there is none.
at::Tensor running_after(const at::Tensor& running, const at::Tensor& batch, double momentum) {
  return wide(running) * (1 - momentum) + batch * momentum;
}
at::Tensor running_after(const OptionalOutput& running, const at::Tensor& batch, double momentum) {
  if (!running) return {};
  return running_after(static_cast<const at::Tensor&>(*running), batch, momentum);
}

void expect_real(const char* name, const at::Tensor& numbers) {
  EXPECT(!numbers.is_complex(), name, " has dtype ", dtype_text(numbers.scalar_type()),
         ", expected one that is not complex");
}

// Whether saveInvstd is the variance of the batch rather than 1 / sqrt(variance + eps).
bool saves_variance() {
  const Product product = current_product();
  return product != Product::kAscend950 && product != Product::kHost;
}
// 1 / sqrt(variance + eps) of what training saved.
std::optional<at::Tensor> invstd_of(const std::optional<at::Tensor>& saved, double eps) {
  if (!saved || !saves_variance()) return saved;
  return at::rsqrt(at::add(*saved, c10::Scalar(eps)));
}

// A statistic or weight of FastBatchNormBackward; `value` for each channel if it is absent.
at::Tensor or_filled(const char* name, const std::optional<at::Tensor>& values,
                     const at::Tensor& input, double value) {
  if (!values)
    return at::full({input.size(1)}, value, input.options().dtype(wide(input.scalar_type())));
  expect_shape(name, *values, {input.size(1)});
  return wide(*values).contiguous();
}

}  // namespace

// Deviation of BatchNormBackward, FastBatchNormBackward: saveInvstd is read as aclnnBatchNorm
// writes it: as the variance of the batch but for Ascend950 and `host`. The documents of the
// gradients say 1 / sqrt(variance + eps) of all products; the operator that they start on the
// others, BNTrainingUpdateGrad, has a batch_variance there.

// Training updates the running statistics and saves those of the batch; otherwise nothing is saved.
// An absent running mean is 0, an absent running variance 1. If the input has no elements, the
// saved mean is 0, the other saved statistic is NaN, and nothing is updated. On Ascend950 and
// `host` saveInvstd is 1 / sqrt(variance + eps); on the other products it is the variance.
ACLNN(BatchNorm, (Image<In>, input), (Optional<In>, weight), (Optional<In>, bias),
      (Optional<InOut>, runningMean), (Optional<InOut>, runningVar), (bool, training),
      (double, momentum), (double, eps), (Image<Out>, output), (Optional<Out>, saveMean),
      (Optional<Out>, saveInvstd)) {
  require_asked("saveMean", saveMean, "training", training);
  require_asked("saveInvstd", saveInvstd, "training", training);
  expect_dims("input", input, 2, 8);
  const int64_t channels = input.size(1);
  if (input.numel() == 0) {
    const auto fill = [&](OptionalOutput& statistic, double number) {
      if (statistic) statistic = at::full((*statistic)->sizes(), number, wide(input).options());
    };
    output = wide(input);
    fill(saveMean, 0);
    fill(saveInvstd, std::numeric_limits<double>::quiet_NaN());
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
  saveInvstd = saves_variance()
                   ? at::var(wide(input), dims_but_channels(input), /*correction=*/c10::Scalar(0))
                   : batch_invstd;
}
ACLNN(BatchNormBackward, (SameShape<Image<In>>, gradOut, "input"), (Image<In>, input),
      (Optional<In>, weight), (Optional<In>, runningMean), (Optional<In>, runningVar),
      (Optional<In>, saveMean), (Optional<In>, saveInvstd), (bool, training), (double, eps),
      (Bools, outputMask), (Image<Optional<Out>>, gradInput), (Optional<Out>, gradWeight),
      (Optional<Out>, gradBias)) {
  expect_dims("input", input, 2, 8);
  const std::array mask = checked_mask(
      outputMask,
      {{{"gradInput", &gradInput}, {"gradWeight", &gradWeight}, {"gradBias", &gradBias}}});
  const int64_t channels = input.size(1);
  const auto mean = of_channels("runningMean", runningMean, channels);
  const auto variance = of_channels("runningVar", runningVar, channels);
  const auto batch_mean = of_channels("saveMean", saveMean, channels);
  const auto batch_invstd = invstd_of(of_channels("saveInvstd", saveInvstd, channels), eps);
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
  write_gradients(at::native_batch_norm_backward(
                      wide(gradOut), wide(input), of_channels("weight", weight, channels), mean,
                      variance, batch_mean, batch_invstd, training, eps, mask),
                  gradInput, gradWeight, gradBias);
}

// Null means count as 0; null variances, inverse deviations and weights as 1.
ACLNN(FastBatchNormBackward, (Like<Image<Floating<In>>>, gradOut, "input"),
      (Image<Floating<In>>, input), (SameDtype<Optional<In>>, weight, "input"),
      (SameDtype<Optional<In>>, runningMean, "input"),
      (SameDtype<Optional<In>>, runningVar, "input"), (SameDtype<Optional<In>>, saveMean, "input"),
      (SameDtype<Optional<In>>, saveInvstd, "input"), (bool, training), (double, eps),
      (Bools, outputMask), (int, version), (Image<Optional<Out>>, gradInput),
      (Optional<Out>, gradWeight), (Optional<Out>, gradBias)) {
  expect_dims("input", input, 2, 8);
  expect_one_of("version", version, {0, 1});
  const std::array mask = checked_mask(
      outputMask,
      {{{"gradInput", &gradInput}, {"gradWeight", &gradWeight}, {"gradBias", &gradBias}}});
  if (mask[0]) expect_like("gradInput", *gradInput, input);
  if (mask[1]) expect_dtype(*gradWeight, input);
  if (mask[2]) expect_dtype(*gradBias, input);
  const at::Tensor scale = or_filled("weight", weight, input, 1);
  const at::Tensor mean = or_filled("runningMean", runningMean, input, 0);
  const at::Tensor variance = or_filled("runningVar", runningVar, input, 1);
  const at::Tensor batch_mean = or_filled("saveMean", saveMean, input, 0);
  const at::Tensor batch_invstd = *invstd_of(or_filled("saveInvstd", saveInvstd, input, 1), eps);
  if (input.numel() == 0) {
    if (mask[1]) gradWeight = at::zeros_like(scale);
    if (mask[2]) gradBias = at::zeros_like(scale);
    return;
  }
  write_gradients(at::native_batch_norm_backward(wide(gradOut), wide(input), scale, mean, variance,
                                                 batch_mean, batch_invstd, training, eps, mask),
                  gradInput, gradWeight, gradBias);
}

// Behaviour of BatchNormStats: Of an input without elements, mean is 0 and invstd is NaN.
ACLNN(BatchNormStats, (Image<Floating<In>>, input), (double, eps), (Out, mean), (Out, invstd)) {
  expect_dims("input", input, 2, 8);
  channels_of("input", input);
  const auto [variance, average] =
      at::var_mean(wide(input), dims_but_channels(input), c10::Scalar(0));
  mean = input.numel() == 0 ? at::zeros_like(average) : average;
  invstd = at::rsqrt(at::add(variance, c10::Scalar(eps.value())));
}

// Batch normalisation with given statistics.
ACLNN(BatchNormElemt, (Image<Floating<In>>, input), (SameDtype<Optional<In>>, weight, "input"),
      (SameDtype<Optional<In>>, bias, "input"), (SameDtype<Floating<In>>, mean, "input"),
      (SameDtype<Floating<In>>, invstd, "input"), (Unused<double>, eps, "part of invstd"),
      (SameDtype<Image<Out>>, output, "input")) {
  channels_of("input", input);
  at::Tensor result =
      (wide(input) - along_channels("mean", mean, input)) * along_channels("invstd", invstd, input);
  if (weight) result = result * along_channels("weight", *weight, input);
  if (bias) result = result + along_channels("bias", *bias, input);
  output = result;
}
// The sums are those of all devices; counter has the number of elements on each.
ACLNN(BatchNormElemtBackward, (SameShape<Image<Floating<In>>>, gradOut, "input"),
      (Image<Floating<In>>, input), (Floating<In>, mean), (Floating<In>, invstd),
      (Optional<In>, weight), (Floating<In>, sumDy), (Floating<In>, sumDyXmu), (In, counter),
      (Image<Out>, gradInput)) {
  channels_of("input", input);
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
ACLNN(BatchNormReduce, (Image<Floating<In>>, x), (Out, sum), (Out, squareSum)) {
  expect_dims("x", x, 4);
  const Sizes dims = dims_but_channels(x);
  const at::Tensor square_sums = wide(x).square().sum(dims);
  sum = wide(x).sum(dims);
  squareSum = square_sums;
}
ACLNN(BatchNormReduceBackward, (Like<Image<Floating<In>>>, gradOut, "input"),
      (Image<Floating<In>>, input), (Floating<In>, mean), (Floating<In>, invstd),
      (Optional<In>, weight), (bool, inputG), (bool, weightG), (bool, biasG),
      (Optional<Out>, sumDy), (Optional<Out>, sumDyXmu), (Optional<Out>, gradWeight),
      (Optional<Out>, gradBias)) {
  const int64_t channels = channels_of("input", input);
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

// Combines the statistics of all devices, by the number of elements on each. The running variance
// is the unbiased one.
ACLNN(BatchNormGatherStatsWithCounts, (Image<Floating<In>>, input), (Floating<In>, mean),
      (Floating<In>, invstd), (Optional<InOut>, runningMean), (Optional<InOut>, runningVar),
      (double, momentum), (double, eps), (Floating<In>, counts), (Out, meanAll), (Out, invstdAll)) {
  const int64_t channels = channels_of("input", input);
  expect_dims("counts", counts, 1);
  expect_shape("mean", mean, {counts.size(0), channels});
  expect_shape("invstd", invstd, {counts.size(0), channels});
  const at::Tensor count = wide(counts).unsqueeze(1);
  const at::Tensor total = count.sum();
  const at::Tensor average = (wide(mean) * count).sum(0) / total;
  const at::Tensor variance = wide(invstd).square().reciprocal() - eps.value();
  const at::Tensor squares = ((variance + (wide(mean) - average).square()) * count).sum(0);
  const at::Tensor rstd = (squares / total + eps.value()).rsqrt();
  const at::Tensor new_mean = running_after(runningMean, average, momentum);
  const at::Tensor new_variance = running_after(runningVar, squares / (total - 1), momentum);
  meanAll = average;
  invstdAll = rstd;
  if (runningMean) runningMean = new_mean;
  if (runningVar) runningVar = new_variance;
}
// Combines the sums and the sums of squares of all devices.
ACLNN(SyncBatchNormGatherStats, (Floating<In>, totalSum),
      (Like<Floating<In>>, totalSquareSum, "totalSum"), (In, sampleCount),
      (SameDtype<InOut>, mean, "totalSum"), (SameDtype<InOut>, variance, "totalSum"),
      (float, momentum), (float, eps), (Out, batchMean),
      (SameDtype<Out>, batchInvstd, "batchMean")) {
  EXPECT(totalSum.dim() == 2 && totalSum.size(0) > 0, "totalSum has shape ", totalSum.sizes(),
         ", expected (devices, channels) with at least one device");
  expect_shape("sampleCount", sampleCount, {totalSum.size(0)});
  expect_real("sampleCount", sampleCount);
  const at::Tensor count = sampleCount.to(wide(totalSum.scalar_type())).sum();
  const at::Tensor average = wide(totalSum).sum(0) / count;
  const at::Tensor spread = wide(totalSquareSum).sum(0) / count - average.square();
  const at::Tensor rstd = (spread + eps.value()).rsqrt();
  const at::Tensor new_mean = running_after(mean, average, momentum);
  const at::Tensor new_variance = running_after(variance, spread * (count / (count - 1)), momentum);
  batchMean = average;
  batchInvstd = rstd;
  mean = new_mean;
  variance = new_variance;
}

// The mean and the variance of each sample and channel, as four-dimensional tensors.
ACLNN(InstanceNorm, (Floating<In>, x), (SameDtype<Floating<In>>, gamma, "x"),
      (SameDtype<Floating<In>>, beta, "x"), (const char*, dataFormat), (double, eps),
      (SameDtype<Out>, y, "x"), (SameDtype<Out>, mean, "x"), (Out, variance)) {
  EXPECT(dataFormat == "NCHW" || dataFormat == "NHWC", "dataFormat is \"", dataFormat,
         "\", expected \"NCHW\" or \"NHWC\"");
  expect_dims("x", x, 4);
  const bool channels_last = dataFormat == "NHWC";
  const at::Tensor images = wide(channels_last ? x.permute({0, 3, 1, 2}) : x);
  const at::Tensor average = images.mean({2, 3}, /*keepdim=*/true);
  const at::Tensor centred = images - average;
  const at::Tensor spread = centred.square().mean({2, 3}, /*keepdim=*/true);
  const at::Tensor result =
      centred * (spread + eps.value()).rsqrt() * along_channels("gamma", gamma, images) +
      along_channels("beta", beta, images);
  const auto in_format = [channels_last](const at::Tensor& nchw) {
    return channels_last ? nchw.permute({0, 2, 3, 1}) : nchw;
  };
  y = in_format(result);
  mean = in_format(average);
  variance = in_format(spread);
}

}  // namespace aclnn_host::normalization_batch_norm_rows
