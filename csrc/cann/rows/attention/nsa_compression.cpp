// The compression of native sparse attention: sums each window of keys or values along a sequence,
// with a weight for each position and head.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/packed.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_nsa_compression_rows {

namespace {

struct Windows {
  int64_t size;
  int64_t stride;

  int64_t count(int64_t elements) const {
    return elements < size ? 0 : (elements - size) / stride + 1;
  }
  // The elements at one position of all windows.
  at::Tensor at_position(const at::Tensor& elements, int64_t position) const {
    const int64_t last = position + (count(elements.size(0)) - 1) * stride;
    return elements.slice(0, position, last + 1, stride);
  }
};

Windows windows_of(const at::Tensor& weight, int64_t size, int64_t stride, int64_t most) {
  expect_multiple("compressBlockSize", size, 16, most);
  expect_multiple("compressStride", stride, 16, size, ", compressBlockSize");
  expect_dims("weight", weight, 2);
  EXPECT(weight.size(0) == size, "weight has shape ", weight.sizes(),
         ", expected compressBlockSize, ", size, ", as first dimension");
  return {size, stride};
}

void check_heads(const at::Tensor& input, const at::Tensor& weight) {
  const int64_t heads = input.size(-2), elements = input.size(-1);
  expect_dtype("input", input, {at::kHalf, at::kBFloat16, at::kFloat});
  EXPECT(weight.size(1) == heads && heads > 0, "weight has shape ", weight.sizes(),
         ", expected the ", heads, " heads of input, one or more, as last dimension");
  EXPECT(elements > 0 && elements % 16 == 0, "input has shape ", input.sizes(),
         ", expected a multiple of 16 as last dimension");
}

std::vector<SequencePart> sequences_of(const at::Tensor& input, const char* name,
                                       const at::OptionalIntArrayRef& lengths, int64_t type) {
  expect_one_of("actSeqLenType", type, {0}, ", sums of the lengths up to each sequence");
  expect_dims("input", input, 3);
  const std::vector<SequencePart> sequences = parts_of(name, lengths, input.size(0));
  EXPECT(lengths->back() == input.size(0), name, " ends with ", lengths->back(), ", expected ",
         input.size(0), ", the tokens of input");
  return sequences;
}

int64_t total(const std::vector<SequencePart>& sequences, const Windows& windows) {
  int64_t count = 0;
  for (const SequencePart& sequence : sequences) count += windows.count(sequence.size);
  return count;
}

at::Tensor compressed(const at::Tensor& elements, const at::Tensor& weight,
                      const Windows& windows) {
  const at::Tensor values = elements.to(at::kFloat);
  const at::Tensor weights = weight.to(at::kFloat).unsqueeze(-1);
  at::Tensor sum =
      at::zeros({windows.count(values.size(0)), values.size(1), values.size(2)}, values.options());
  for (int64_t i = 0; i < windows.size; ++i) {
    sum += windows.at_position(values, i) * weights.select(0, i);
  }
  return sum;
}

}  // namespace

ACLNN(NsaCompress, (Floating<In>, input), (SameDtype<Floating<In>>, weight, "input"),
      (Optional<Ints>, actSeqLenOptional), (char*, layoutOptional), (int64_t, compressBlockSize),
      (int64_t, compressStride), (int64_t, actSeqLenType), (SameDtype<Out>, output, "input")) {
  const Windows windows = windows_of(weight, compressBlockSize, compressStride, 128);
  expect_text("layoutOptional", layoutOptional, {"TND"});
  const std::vector<SequencePart> sequences =
      sequences_of(input, "actSeqLenOptional", actSeqLenOptional, actSeqLenType);
  check_heads(input, weight);
  const at::Tensor results = at::zeros({total(sequences, windows), input.size(1), input.size(2)},
                                       input.options().dtype(at::kFloat));
  expect_shape("output", output, results.sizes());
  if (has_values(input)) {
    int64_t first = 0;
    for (const SequencePart& sequence : sequences) {
      const int64_t count = windows.count(sequence.size);
      if (count == 0) continue;
      results.narrow(0, first, count)
          .copy_(compressed(input.narrow(0, sequence.first, sequence.size), weight, windows));
      first += count;
    }
  }
  output = results;
}

ACLNN(NsaCompressGrad, (SameDtype<Floating<In>>, outputGrad, "input"), (Floating<In>, input),
      (SameDtype<Floating<In>>, weight, "input"), (Optional<Ints>, actSeqLenOptionalOptional),
      (int64_t, compressBlockSize), (int64_t, compressStride), (int64_t, actSeqLenType),
      (char*, layoutOptionalOptional), (SameDtype<Out>, inputGradOut, "input"),
      (SameDtype<Out>, weightGradOut, "weight")) {
  const Windows windows = windows_of(weight, compressBlockSize, compressStride, 128);
  expect_text("layoutOptionalOptional", layoutOptionalOptional, {"TND"});
  const std::vector<SequencePart> sequences =
      sequences_of(input, "actSeqLenOptionalOptional", actSeqLenOptionalOptional, actSeqLenType);
  check_heads(input, weight);
  expect_shape("outputGrad", outputGrad, {total(sequences, windows), input.size(1), input.size(2)});
  const at::Tensor of_input = at::zeros_like(input, at::kFloat);
  const at::Tensor of_weight = at::zeros_like(weight, at::kFloat);
  if (has_values(input)) {
    const at::Tensor values = input.to(at::kFloat);
    const at::Tensor weights = weight.to(at::kFloat).unsqueeze(-1);
    const at::Tensor gradients = outputGrad.to(at::kFloat);
    int64_t first = 0;
    for (const SequencePart& sequence : sequences) {
      const int64_t count = windows.count(sequence.size);
      if (count == 0) continue;
      const at::Tensor own = gradients.narrow(0, first, count);
      const at::Tensor elements = values.narrow(0, sequence.first, sequence.size);
      const at::Tensor to = of_input.narrow(0, sequence.first, sequence.size);
      for (int64_t i = 0; i < windows.size; ++i) {
        windows.at_position(to, i).add_(own * weights.select(0, i));
        of_weight.select(0, i).add_(
            (own * windows.at_position(elements, i)).sum(at::IntArrayRef{0, 2}));
      }
      first += count;
    }
  }
  inputGradOut = of_input;
  weightGradOut = of_weight;
}

// Each sequence has one new token. If it completes a window, the window's sum is written to a slot
// of the cache. A table gives the pages of the input.
ACLNN(NsaCompressWithCache, (Floating<In>, input), (SameDtype<Floating<In>>, weight, "input"),
      (IndexIn, slotMapping), (Optional<Ints>, actSeqLenOptional),
      (Optional<In>, blockTableOptional), (char*, layoutOptional), (int64_t, compressBlockSize),
      (int64_t, compressStride), (int64_t, actSeqLenType), (int64_t, pageBlockSize),
      (SameDtype<InOut>, outputCache, "input")) {
  const Windows windows = windows_of(weight, compressBlockSize, compressStride, 64);
  const int64_t page = pageBlockSize;
  expect_one_of("pageBlockSize", page, {64, 128});
  expect_one_of("actSeqLenType", actSeqLenType, {1}, ", the length of each sequence");
  EXPECT(actSeqLenOptional, "actSeqLenOptional is null, expected the lengths of sequences");
  const at::IntArrayRef lengths = *actSeqLenOptional;
  const auto batches = static_cast<int64_t>(lengths.size());
  expect_dims("input", input, blockTableOptional ? 4 : 3);
  check_heads(input, weight);
  expect_shape("slotMapping", slotMapping, {batches});
  expect_dims("outputCache", outputCache, 3);
  expect_shape("outputCache", outputCache, {outputCache->size(0), input.size(-2), input.size(-1)});
  int64_t capacity = input.size(0);
  if (blockTableOptional) {
    expect_dims("blockTableOptional", *blockTableOptional, 2);
    EXPECT(input.size(1) == page, "input has shape ", input.sizes(), ", expected pages of ", page,
           " tokens");
    expect_dtype("blockTableOptional", *blockTableOptional, {at::kInt, at::kLong});
    EXPECT(blockTableOptional->size(0) == batches, "blockTableOptional has shape ",
           blockTableOptional->sizes(), ", expected ", batches, " rows");
    capacity = blockTableOptional->size(1) * page;
  } else {
    expect_text("layoutOptional", layoutOptional, {"TND"});
  }
  int64_t tokens = 0;
  for (const int64_t length : lengths) {
    EXPECT(length >= 0 && length <= capacity - tokens, "actSeqLenOptional is ", lengths,
           ", expected lengths of up to ", capacity, " tokens");
    if (!blockTableOptional) tokens += length;
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> results;  // slots and what they get
  if (has_values(input)) {
    const at::Tensor pages = blockTableOptional ? input.flatten(0, 1) : input;
    int64_t first = 0;
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      const int64_t start = length - windows.size;
      if (start >= 0 && start % windows.stride == 0) {  // the window is full
        const at::Tensor slot = slotMapping.narrow(0, b, 1);
        check_bounds("slotMapping", slot, outputCache->size(0));
        at::Tensor rows = at::arange(start, length, slotMapping.options());
        if (blockTableOptional) {
          const at::Tensor table = blockTableOptional->select(0, b).to(at::kLong);
          const at::Tensor blocks = table.index_select(0, rows.floor_divide(page));
          check_bounds("blockTableOptional", blocks, input.size(0));
          rows = blocks * page + rows.remainder(page);
        } else {
          rows = rows + first;
        }
        results.emplace_back(slot, compressed(pages.index_select(0, rows), weight, windows));
      }
      if (!blockTableOptional) first += length;
    }
  }
  const at::Tensor cache = outputCache.editable();
  for (const auto& [slot, result] : results) {
    cache.index_copy_(0, slot, result.to(cache.scalar_type()));
  }
  outputCache = cache;
}

}  // namespace aclnn_host::attention_nsa_compression_rows
