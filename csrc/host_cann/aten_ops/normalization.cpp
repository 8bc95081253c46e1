// Normalisations. 16-bit tensors are widened once, so that statistics are FP32.

#include <ATen/TensorOperators.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>

#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// For functions of ATen that take a tensor to lie row by row without looking.
at::Tensor row_by_row(const at::Tensor& tensor) {
  return wide(tensor).contiguous();
}
std::optional<at::Tensor> row_by_row(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::optional(row_by_row(*tensor)) : std::nullopt;
}

std::array<bool, 3> mask_of(const std::vector<bool>& mask) {
  TORCH_CHECK(mask.size() == 3, "outputMask has ", mask.size(), " values, expected 3");
  return {mask[0], mask[1], mask[2]};
}

// Writes the gradients that were computed.
void write(const std::tuple<at::Tensor, at::Tensor, at::Tensor>& gradients,
           OptionalOutput& grad_input, OptionalOutput& grad_weight, OptionalOutput& grad_bias) {
  if (std::get<0>(gradients).defined()) grad_input = std::get<0>(gradients);
  if (std::get<1>(gradients).defined()) grad_weight = std::get<1>(gradients);
  if (std::get<2>(gradients).defined()) grad_bias = std::get<2>(gradients);
}

}  // namespace

ACLNN(GroupNorm, (In, self), (OptionalIn, gamma), (OptionalIn, beta), (int64_t, N), (int64_t, C),
      (int64_t, HxW), (int64_t, group), (double, eps), (Out, out), (Out, meanOut), (Out, rstdOut)) {
  const auto [result, mean, rstd] = at::native_group_norm(row_by_row(self), row_by_row(gamma),
                                                          row_by_row(beta), N, C, HxW, group, eps);
  out = result;
  meanOut = mean;
  rstdOut = rstd;
}
ACLNN(GroupNormBackward, (In, gradOut), (In, input), (In, mean), (In, rstd), (OptionalIn, gamma),
      (int64_t, N), (int64_t, C), (int64_t, HxW), (int64_t, group), (Bools, outputMask),
      (OptionalOut, gradInput), (OptionalOut, gradGammaOut), (OptionalOut, gradBetaOut)) {
  write(at::native_group_norm_backward(row_by_row(gradOut), row_by_row(input), row_by_row(mean),
                                       row_by_row(rstd), row_by_row(gamma), N, C, HxW, group,
                                       mask_of(outputMask)),
        gradInput, gradGammaOut, gradBetaOut);
}

// Training updates the running statistics and saves those of the batch; otherwise nothing is saved.
ACLNN(BatchNorm, (In, input), (OptionalIn, weight), (OptionalIn, bias),
      (OptionalInOut, runningMean), (OptionalInOut, runningVar), (bool, training),
      (double, momentum), (double, eps), (Out, output), (OptionalOut, saveMean),
      (OptionalOut, saveInvstd)) {
  const auto running = [](const OptionalOutput& statistic) -> std::optional<at::Tensor> {
    if (!statistic) return std::nullopt;
    const at::Tensor& memory = *statistic;
    return wide(memory).clone();
  };
  const std::optional<at::Tensor> mean = running(runningMean);
  const std::optional<at::Tensor> variance = running(runningVar);
  const auto [result, batch_mean, batch_invstd] = at::native_batch_norm(
      wide(input), wide(weight), wide(bias), mean, variance, training, momentum, eps);
  output = result;
  if (!training) return;
  if (mean) runningMean = *mean;
  if (variance) runningVar = *variance;
  saveMean = batch_mean;
  saveInvstd = batch_invstd;
}
ACLNN(BatchNormBackward, (In, gradOut), (In, input), (OptionalIn, weight),
      (OptionalIn, runningMean), (OptionalIn, runningVar), (OptionalIn, saveMean),
      (OptionalIn, saveInvstd), (bool, training), (double, eps), (Bools, outputMask),
      (OptionalOut, gradInput), (OptionalOut, gradWeight), (OptionalOut, gradBias)) {
  write(at::native_batch_norm_backward(wide(gradOut), wide(input), wide(weight), wide(runningMean),
                                       wide(runningVar), wide(saveMean), wide(saveInvstd), training,
                                       eps, mask_of(outputMask)),
        gradInput, gradWeight, gradBias);
}

// The root mean square norm of x1 + x2, and that sum.
ACLNN(AddRmsNorm, (In, x1), (In, x2), (In, gamma), (double, epsilon), (Out, yOut), (Out, rstdOut),
      (Out, xOut)) {
  const at::Tensor sum = x1 + x2;
  const at::Tensor x = wide(sum);
  std::vector<int64_t> dims;
  for (int64_t dim = x.dim() - gamma.dim(); dim < x.dim(); ++dim) dims.push_back(dim);
  const at::Tensor rstd = (x.square().mean(dims, /*keepdim=*/true) + epsilon.value()).rsqrt();
  yOut = x * rstd * wide(gamma);
  rstdOut = rstd;
  xOut = sum;
}
