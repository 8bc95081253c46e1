// One shard of a cross entropy whose vocabulary is distributed among devices.

#include "cann/rows/row.h"

namespace aclnn_host::loss_sharded_cross_entropy_rows {

namespace {

// The targets that belong to other shards, and the positions of the others in this shard.
struct Targets {
  Targets(const at::Tensor& target, int64_t start, int64_t size)
      : is_other((target < start) | (target >= start + size)),
        positions(at::where(is_other, 0, target.to(at::kLong) - start)) {}

  // The logit of each target minus the row's largest logit; 0 for targets of other shards.
  at::Tensor logits(const at::Tensor& shifted) const {
    return shifted.gather(-1, positions.unsqueeze(-1)).squeeze(-1).masked_fill(is_other, 0);
  }

  at::Tensor is_other;
  at::Tensor positions;
};

}  // namespace

// Targets of other shards have the offset 0 and the logit 0.
ACLNN(CrossEntropySumExpAndIndexLogit, (Floating<In>, vocabParallelLogits), (In, target),
      (SameDtype<Floating<In>>, globalLogitsMax, "vocabParallelLogits"), (int64_t, vocabStartIndex),
      (int64_t, vocabEndIndex), (Out, predictedLogitsOut), (Out, sumExpLogitsOut),
      (Out, expLogitsOut), (Out, targetOffsetOut), (Out, targetMaskOut)) {
  const at::Tensor& logits = vocabParallelLogits;
  expect_dims("vocabParallelLogits", logits, 2, 3);
  const at::ScalarType type = logits.scalar_type();
  expect_dtype("vocabParallelLogits", logits, {at::kFloat, at::kBFloat16});
  expect_dtype("target", target, at::kInt);
  const at::IntArrayRef tokens = logits.sizes().slice(0, static_cast<size_t>(logits.dim()) - 1);
  expect_shape("target", target, tokens);
  expect_shape("globalLogitsMax", globalLogitsMax, tokens);
  const int64_t size = logits.size(-1);
  constexpr int64_t kLeast = 16, kMost = 200 * 1024, kMostTokens = 32 * 1024;
  const int64_t multiple = type == at::kFloat ? 8 : 16;
  EXPECT(size >= kLeast && size <= kMost && size % multiple == 0,
         "the last dimension of vocabParallelLogits is ", size, ", expected a multiple of ",
         multiple, " from ", kLeast, " to ", kMost);
  EXPECT(target.numel() >= 1 && target.numel() <= kMostTokens, "target has ", target.numel(),
         " elements, expected 1 to ", kMostTokens);
  EXPECT(vocabStartIndex >= 0 && vocabEndIndex > vocabStartIndex &&
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
  targetOffsetOut = targets.positions;
  targetMaskOut = targets.is_other.to(at::kInt);
}

}  // namespace aclnn_host::loss_sharded_cross_entropy_rows
