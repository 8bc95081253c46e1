// One step of decoding: the tokens, positions and slots of the next one.

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/remainder.h>

#include "cann/rows/bounds.h"
#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::inference_decoding_steps_rows {

// Each sequence goes on by the accepted tokens and one. Its next tokens are the last one sampled
// before a -1, and those of specToken. A slot is the place of a position in its block.
ACLNN(AdvanceStepV2, (InOut, inputTokens), (In, sampledTokenIds), (InOut, inputPositions),
      (InOut, seqLens), (InOut, slotMapping), (In, blockTables), (In, specToken), (In, acceptedNum),
      (int64_t, numSeqs), (int64_t, numQueries), (int64_t, blockSize)) {
  const int64_t sequences = numSeqs.value();
  EXPECT(sequences > 0 && numQueries > 0 && blockSize > 0, "numSeqs is ", sequences,
         ", numQueries is ", numQueries.value(), " and blockSize is ", blockSize.value(),
         ", expected more than 0");
  expect_dims("specToken", specToken, 2);
  const int64_t tokens = specToken.size(1) + 1;
  expect_shape("specToken", specToken, {sequences, tokens - 1});
  expect_shape("acceptedNum", acceptedNum, {sequences});
  expect_shape("sampledTokenIds", sampledTokenIds, {sequences, tokens});
  expect_dims("blockTables", blockTables, 2);
  EXPECT(blockTables.size(0) == sequences, "blockTables has shape ", blockTables.sizes(),
         ", expected ", sequences, " rows");
  for (const Output* state : {&inputTokens, &inputPositions, &seqLens, &slotMapping}) {
    const at::Tensor& before = *state;
    expect_dtype(state->name(), before, at::kLong);
    EXPECT(before.numel() / tokens == sequences && before.numel() % tokens == 0, state->name(),
           " has shape ", before.sizes(), ", expected ", tokens, " elements for each of ",
           sequences, " sequences");
  }
  for (const auto& [name, tensor] :
       {std::pair("sampledTokenIds", sampledTokenIds), std::pair("blockTables", blockTables),
        std::pair("specToken", specToken), std::pair("acceptedNum", acceptedNum)}) {
    expect_dtype(name, tensor, at::kLong);
  }

  const at::Tensor positions =
      inputPositions->reshape({sequences, tokens}) + acceptedNum.unsqueeze(1) + 1;
  const at::Tensor block = at::div(positions, c10::Scalar(blockSize.value()), "trunc");
  check_bounds("inputPositions / blockSize", block, blockTables.size(1));
  const at::Tensor first = blockTables.gather(1, block) * c10::Scalar(blockSize.value());
  const at::Tensor slots = first + at::remainder(positions, c10::Scalar(blockSize.value()));
  const at::Tensor ends = at::constant_pad_nd(sampledTokenIds, {0, 1}, -1);
  const at::Tensor end = at::argmax(ends.eq(-1).to(at::kInt), 1, /*keepdim=*/true);
  const at::Tensor last = sampledTokenIds.gather(1, at::remainder(end - 1, tokens));
  const at::Tensor next = at::cat({last, specToken}, 1);
  inputTokens = next.reshape(inputTokens->sizes());
  inputPositions = positions.reshape(inputPositions->sizes());
  seqLens = (positions + 1).reshape(seqLens->sizes());
  slotMapping = slots.reshape(slotMapping->sizes());
}

}  // namespace aclnn_host::inference_decoding_steps_rows
