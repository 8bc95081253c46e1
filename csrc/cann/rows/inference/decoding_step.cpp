// One decoding step with a paged cache: the next tokens, positions, lengths and slots.

#include "cann/rows/row.h"

namespace aclnn_host::inference_decoding_step_rows {

namespace {

// Checks an INT64 tensor of one or two dimensions with `rows` rows and `count` elements.
void expect_state(const char* name, const at::Tensor& state, int64_t rows, int64_t count) {
  expect_dtype(name, state, at::kLong);
  expect_dims(name, state, 1, 2);
  EXPECT(state.numel() == count && (state.size(0) == rows || state.dim() == 1), name, " has shape ",
         state.sizes(), ", expected ", count, " elements, ", count / rows, " for each of ", rows,
         " sequences");
}

}  // namespace

// The block of a position is looked up in the whole table, and the slots of a sequence are offset
// by the blocks in the table's preceding rows. The first sequence without a query gets the token 0,
// the position 0 and the slot -1; the sequences after it keep their values.
ACLNN(AdvanceStep, (InOut, inputTokens), (In, sampledTokenIds), (InOut, inputPositions),
      (InOut, seqLens), (InOut, slotMapping), (In, blockTables), (int64_t, numSeqs),
      (int64_t, numQueries), (int64_t, blockSize)) {
  constexpr int64_t kMostSequences = 200000000;
  expect_at_least("blockSize", blockSize, 1);
  EXPECT(numQueries > 0 && numSeqs > numQueries && numSeqs < kMostSequences, "numSeqs is ",
         numSeqs.value(), " and numQueries is ", numQueries.value(),
         ", expected numQueries of 1 or more and numSeqs of more, but less than ", kMostSequences);
  const int64_t queries = numQueries;
  for (const Output* state : {&inputTokens, &inputPositions, &seqLens, &slotMapping}) {
    expect_state(state->name(), *state, numSeqs, numSeqs);
  }
  expect_dtype("sampledTokenIds", sampledTokenIds, at::kLong);
  expect_shape("sampledTokenIds", sampledTokenIds, {queries, 1});
  expect_dtype("blockTables", blockTables, at::kLong);
  EXPECT(blockTables.dim() == 2 && blockTables.size(0) == numSeqs, "blockTables has shape ",
         blockTables.sizes(), ", expected two dimensions, the first ", numSeqs.value());
  const at::Tensor lengths = seqLens->reshape(-1);
  const at::Tensor positions = lengths.slice(0, 0, queries);
  at::Tensor blocks = positions.div(c10::Scalar(blockSize.value()), "floor");
  const at::Tensor offsets = positions - blocks * c10::Scalar(blockSize.value());
  if (is_rehearsed()) {
    blocks = blocks * 0;
  } else {
    check_bounds("seqLens / blockSize", blocks, blockTables.numel());
  }
  const at::Tensor stride = at::arange(queries, positions.options()) * blockTables.size(1);
  const at::Tensor slots =
      (blockTables.reshape(-1).index_select(0, blocks) + stride) * blockSize.value() + offsets;
  const auto stepped = [&](const Output& state, const at::Tensor& values, int64_t pad) {
    const at::Tensor padded = at::full({1}, pad, values.options());
    const at::Tensor rest = state->reshape(-1).slice(0, queries + 1);
    return at::cat({values, padded, rest}).reshape(state->sizes());
  };
  const at::Tensor tokens = stepped(inputTokens, sampledTokenIds.reshape(-1), 0);
  const at::Tensor new_positions = stepped(inputPositions, positions, 0);
  const at::Tensor new_slots = stepped(slotMapping, slots, -1);
  const at::Tensor new_lengths =
      at::cat({positions + 1, lengths.slice(0, queries)}).reshape(seqLens->sizes());
  inputTokens = tokens;
  inputPositions = new_positions;
  slotMapping = new_slots;
  seqLens = new_lengths;
}
// Each sequence advances by the accepted tokens and one. Its next tokens are the last one sampled
// before a -1, and those of specToken. A slot is the offset of a position in its block.
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
  expect_dtype("sampledTokenIds", sampledTokenIds, at::kLong);
  expect_dtype("blockTables", blockTables, at::kLong);
  expect_dtype("specToken", specToken, at::kLong);
  expect_dtype("acceptedNum", acceptedNum, at::kLong);

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

}  // namespace aclnn_host::inference_decoding_step_rows
