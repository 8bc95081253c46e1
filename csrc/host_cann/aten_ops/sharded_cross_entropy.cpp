// One part of the cross entropy of a vocabulary that is shared out among devices.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// Which targets belong to other parts, and the places of the rest in this one.
struct Targets {
  Targets(const at::Tensor& target, int64_t start, int64_t size)
      : is_other((target < start) | (target >= start + size)),
        places(at::where(is_other, 0, target.to(at::kLong) - start)) {}

  // Of each target the logit less the row's largest; 0 for those of other parts.
  at::Tensor logits(const at::Tensor& shifted) const {
    return shifted.gather(-1, places.unsqueeze(-1)).squeeze(-1).masked_fill(is_other, 0);
  }

  at::Tensor is_other;
  at::Tensor places;
};

// Bits of a mask, eight in a byte from the highest on, and 1 behind its end.
at::Tensor packed_mask(const at::Tensor& mask) {
  const int64_t padding = (8 - mask.numel() % 8) % 8;
  const at::Tensor bits = at::constant_pad_nd(mask.to(at::kByte), {0, padding}, 1).view({-1, 8});
  const at::Tensor places = at::arange(7, -1, -1, bits.options());
  return bits.bitwise_left_shift(places).sum(-1, /*keepdim=*/false, at::kByte);
}

at::Tensor unpacked_mask(const at::Tensor& bytes, int64_t count) {
  const at::Tensor places = at::arange(7, -1, -1, bytes.options());
  return bytes.unsqueeze(-1).bitwise_right_shift(places).bitwise_and(1).flatten().narrow(0, 0,
                                                                                         count);
}

void expect_no_smoothing(double smoothing) {
  TORCH_CHECK(smoothing == 0, "labelSmoothing is ", smoothing, ", expected 0");
}

}  // namespace

// The logits are the products of the rows of input and weight, which has those of one part of the
// vocabulary.
ACLNN(FusedLinearOnlineMaxSum, (FloatIn, input), (FloatIn, weight), (In, target),
      (int64_t, vocabStartIndex), (int64_t, vocabEndIndex), (Out, logitsMaxLocalOut),
      (Out, sumExpLogitsLocalOut), (Out, predictedLogitsLocalOut), (Out, targetMaskOut),
      (Out, maskedTargetOut), (OptionalOut, vocabParallelLogitsOutOptional)) {
  expect_dims("input", input, 2);
  expect_dims("weight", weight, 2);
  TORCH_CHECK(at::isReducedFloatingType(input.scalar_type()), "input has dtype ",
              dtype_text(input.scalar_type()), ", expected FLOAT16 or BFLOAT16");
  expect_dtype("weight", weight, input);
  expect_shape("weight", weight, {weight.size(0), input.size(1)});
  const at::ScalarType type = target.scalar_type();
  TORCH_CHECK(type == at::kInt || type == at::kLong, "target has dtype ", dtype_text(type),
              ", expected INT32 or INT64");
  const int64_t tokens = input.size(0), size = weight.size(0);
  expect_shape("target", target, {tokens});
  TORCH_CHECK(size > 0, "weight has no rows, expected at least one");
  TORCH_CHECK(vocabStartIndex >= 0 && vocabEndIndex >= vocabStartIndex.value() &&
                  vocabEndIndex.value() - vocabStartIndex.value() < size,
              "vocabStartIndex is ", vocabStartIndex.value(), " and vocabEndIndex ",
              vocabEndIndex.value(), ", expected the first of at most ", size,
              " indices and the last");
  for (const Output* out : {&logitsMaxLocalOut, &sumExpLogitsLocalOut, &predictedLogitsLocalOut}) {
    expect_dtype(out->name(), *out, at::kFloat);
  }
  expect_dtype("targetMaskOut", targetMaskOut, at::kByte);
  expect_dtype("maskedTargetOut", maskedTargetOut, type);

  const Targets targets(target, vocabStartIndex.value(),
                        vocabEndIndex.value() - vocabStartIndex.value() + 1);
  const at::Tensor logits = at::matmul(wide(input), wide(weight).t());
  const at::Tensor largest = logits.amax(-1);
  const at::Tensor shifted = logits - largest.unsqueeze(-1);
  logitsMaxLocalOut = largest;
  sumExpLogitsLocalOut = at::exp(shifted).sum(-1);
  predictedLogitsLocalOut = targets.logits(shifted);
  targetMaskOut = packed_mask(targets.is_other);
  maskedTargetOut = targets.places;
  vocabParallelLogitsOutOptional = logits;
}
ACLNN(FusedCrossEntropyLossWithMaxSum, (In, logitsMax), (In, sumExpLogits), (In, predictedLogits),
      (float, labelSmoothing), (OptionalIn, inputOptional), (OptionalIn, weightOptional),
      (OptionalIn, vocabParallelLogitsOptional), (Out, lossOut),
      (OptionalOut, softMaxOutOptional)) {
  expect_no_smoothing(labelSmoothing.value());
  TORCH_CHECK(!inputOptional && !weightOptional,
              "inputOptional or weightOptional is given, expected null");
  expect_dims("logitsMax", logitsMax, 1);
  expect_dtype("logitsMax", logitsMax, at::kFloat);
  expect_like("sumExpLogits", sumExpLogits, logitsMax);
  expect_like("predictedLogits", predictedLogits, logitsMax);
  expect_like("lossOut", lossOut, logitsMax);
  lossOut = at::log(sumExpLogits) - predictedLogits;
  if (!softMaxOutOptional) return;
  TORCH_CHECK(vocabParallelLogitsOptional,
              "vocabParallelLogitsOptional is null, expected the logits of softMaxOutOptional");
  const at::Tensor& logits = *vocabParallelLogitsOptional;
  expect_dims("vocabParallelLogitsOptional", logits, 2);
  TORCH_CHECK(at::isFloatingType(logits.scalar_type()), "vocabParallelLogitsOptional has dtype ",
              dtype_text(logits.scalar_type()), ", expected FLOAT, FLOAT16 or BFLOAT16");
  expect_shape("vocabParallelLogitsOptional", logits, {logitsMax.size(0), logits.size(1)});
  expect_dtype(*softMaxOutOptional, logitsMax);
  softMaxOutOptional = at::exp(wide(logits) - logitsMax.unsqueeze(-1)) / sumExpLogits.unsqueeze(-1);
}
// softmaxOptional, or the logits once more, of which then the largest and the sums are given.
ACLNN(FusedLinearCrossEntropyLossGrad, (In, grad), (FloatIn, input), (FloatIn, weight),
      (In, targetMask), (IndexIn, maskedTarget), (float, labelSmoothing),
      (OptionalIn, logitsMaxOptional), (OptionalIn, sumExpLogitsOptional),
      (OptionalIn, softmaxOptional), (Out, inputGradOut), (Out, weightGradOut)) {
  expect_no_smoothing(labelSmoothing.value());
  expect_dims("input", input, 2);
  expect_dims("weight", weight, 2);
  TORCH_CHECK(at::isReducedFloatingType(input.scalar_type()), "input has dtype ",
              dtype_text(input.scalar_type()), ", expected FLOAT16 or BFLOAT16");
  expect_dtype("weight", weight, input);
  expect_shape("weight", weight, {weight.size(0), input.size(1)});
  const int64_t tokens = input.size(0);
  expect_dtype("grad", grad, at::kFloat);
  expect_shape("grad", grad, {tokens});
  expect_dtype("targetMask", targetMask, at::kByte);
  expect_shape("targetMask", targetMask, {(tokens + 7) / 8});
  expect_shape("maskedTarget", maskedTarget, {tokens});
  TORCH_CHECK(
      softmaxOptional || (logitsMaxOptional && sumExpLogitsOptional),
      "softmaxOptional is null, expected it, or logitsMaxOptional and sumExpLogitsOptional");
  expect_like("inputGradOut", inputGradOut, input);
  expect_like("weightGradOut", weightGradOut, weight);
  check_bounds("maskedTarget", maskedTarget, weight.size(0));

  const at::Tensor rows = wide(input), matrix = wide(weight);
  at::Tensor softmax;
  if (softmaxOptional) {
    expect_dtype("softmaxOptional", *softmaxOptional, at::kFloat);
    expect_shape("softmaxOptional", *softmaxOptional, {tokens, weight.size(0)});
    softmax = *softmaxOptional;
  } else {
    for (const auto& [name, values] : {std::pair{"logitsMaxOptional", *logitsMaxOptional},
                                       std::pair{"sumExpLogitsOptional", *sumExpLogitsOptional}}) {
      expect_like(name, values, grad);
    }
    softmax = at::exp(at::matmul(rows, matrix.t()) - logitsMaxOptional->unsqueeze(-1)) /
              sumExpLogitsOptional->unsqueeze(-1);
  }
  const at::Tensor is_here = 1 - unpacked_mask(targetMask, tokens).to(at::kFloat);
  const at::Tensor of_logits =
      at::scatter_add(softmax, 1, maskedTarget.unsqueeze(-1), is_here.neg().unsqueeze(-1)) *
      grad.unsqueeze(-1);
  inputGradOut = at::matmul(of_logits, matrix);
  weightGradOut = at::matmul(of_logits.t(), rows);
}

// Targets of other parts have the offset 0 and the logit 0.
ACLNN(CrossEntropySumExpAndIndexLogit, (FloatIn, vocabParallelLogits), (In, target),
      (FloatIn, globalLogitsMax), (int64_t, vocabStartIndex), (int64_t, vocabEndIndex),
      (Out, predictedLogitsOut), (Out, sumExpLogitsOut), (Out, expLogitsOut),
      (Out, targetOffsetOut), (Out, targetMaskOut)) {
  const at::Tensor& logits = vocabParallelLogits;
  expect_dims("vocabParallelLogits", logits, 2, 3);
  const at::ScalarType type = logits.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16, "vocabParallelLogits has dtype ",
              dtype_text(type), ", expected FLOAT or BFLOAT16");
  expect_dtype("globalLogitsMax", globalLogitsMax, logits);
  expect_dtype("target", target, at::kInt);
  const at::IntArrayRef tokens = logits.sizes().slice(0, static_cast<size_t>(logits.dim()) - 1);
  expect_shape("target", target, tokens);
  expect_shape("globalLogitsMax", globalLogitsMax, tokens);
  const int64_t size = logits.size(-1);
  constexpr int64_t kLeast = 16, kMost = 200 * 1024, kMostTokens = 32 * 1024;
  const int64_t multiple = type == at::kFloat ? 8 : 16;
  TORCH_CHECK(size >= kLeast && size <= kMost && size % multiple == 0,
              "the last dimension of vocabParallelLogits is ", size, ", expected a multiple of ",
              multiple, " from ", kLeast, " to ", kMost);
  TORCH_CHECK(target.numel() >= 1 && target.numel() <= kMostTokens, "target has ", target.numel(),
              " elements, expected 1 to ", kMostTokens);
  TORCH_CHECK(vocabStartIndex >= 0 && vocabEndIndex > vocabStartIndex &&
                  vocabEndIndex.value() - vocabStartIndex.value() == size,
              "vocabStartIndex is ", vocabStartIndex.value(), " and vocabEndIndex ",
              vocabEndIndex.value(), ", expected 0 or more, and ", size, " more");
  for (const Output* out : {&predictedLogitsOut, &sumExpLogitsOut, &expLogitsOut}) {
    expect_dtype(out->name(), *out, at::kFloat);
  }
  expect_dtype("targetOffsetOut", targetOffsetOut, at::kInt);
  expect_dtype("targetMaskOut", targetMaskOut, at::kInt);

  const Targets targets(target, vocabStartIndex.value(), size);
  const at::Tensor shifted = wide(logits) - wide(globalLogitsMax).unsqueeze(-1);
  const at::Tensor exponentials = at::exp(shifted);
  predictedLogitsOut = targets.logits(shifted);
  sumExpLogitsOut = exponentials.sum(-1);
  expLogitsOut = exponentials;
  targetOffsetOut = targets.places;
  targetMaskOut = targets.is_other.to(at::kInt);
}
