// Selects the blocks of queries and keys with the largest attention of their means: the mask of
// BlockSparseAttention.

#include "cann/rows/attention/head_sequences.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_bsa_select_block_mask_rows {

namespace {

// The numbers of tokens of each block that count, for the blocks of all sequences.
class BlockLengths {
 public:
  BlockLengths(const char* name, const at::OptionalIntArrayRef& given,
               const HeadSequences& sequences, int64_t block) {
    for (int64_t i = 0; i < sequences.count(); ++i) {
      lengths_.emplace_back();
      for (int64_t first = 0; first < sequences.size(i); first += block) {
        lengths_.back().push_back(std::min(block, sequences.size(i) - first));
        ++count_;
      }
    }
    if (given) restrict_to(name, *given, block);
  }

  const std::vector<int64_t>& of(int64_t i) const { return lengths_[static_cast<size_t>(i)]; }

 private:
  void restrict_to(const char* name, at::IntArrayRef given, int64_t block) {
    EXPECT(given.size() == count_ &&
               std::ranges::all_of(given,
                                   [&](int64_t length) { return length >= 0 && length <= block; }),
           name, " is ", given, ", expected ", count_, " lengths from 0 to ", block,
           ", one for each block");
    size_t position = 0;
    for (std::vector<int64_t>& own : lengths_) {
      for (int64_t& length : own) length = std::min(length, given[position++]);
    }
  }

  std::vector<std::vector<int64_t>> lengths_;
  size_t count_ = 0;
};

// The means of the first tokens of each block, (heads, blocks, elements); 0 if no tokens count.
at::Tensor means(const at::Tensor& tokens, const std::vector<int64_t>& lengths, int64_t block) {
  std::vector<at::Tensor> found;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const at::Tensor own = tokens.narrow(1, static_cast<int64_t>(b) * block, lengths[b]);
    found.push_back(own.sum(1) / std::max<int64_t>(lengths[b], 1));
  }
  return at::stack(found, 1);
}

at::Tensor is_empty(const std::vector<int64_t>& lengths) {
  return at::tensor(lengths, at::kLong).eq(0);
}

// The number of selected blocks. Above half of the blocks, CANN counts those that are left out.
int64_t count_of_selected(double sparsity, int64_t blocks) {
  const auto share_of = [&](float share) {
    return std::max<int64_t>(std::llround(share * static_cast<float>(blocks)), 1);
  };
  const auto share = static_cast<float>(sparsity);
  if (blocks == 1) return 1;
  return share > 0.5F ? blocks - share_of(1 - share) : share_of(share);
}

// Flags of the selected blocks, (heads, blocks of queries, blocks of keys).
at::Tensor selected(const at::Tensor& scores, const at::Tensor& are_empty, double sparsity) {
  const at::Tensor ranked = at::softmax(scores, 2).masked_fill(are_empty, -1).flatten(1);
  const int64_t count = count_of_selected(sparsity, ranked.size(1));
  const at::Tensor best =
      std::get<1>(ranked.sort(/*stable=*/true, 1, /*descending=*/true)).narrow(1, 0, count);
  return at::zeros_like(ranked).scatter(1, best, 1).view(scores.sizes()).masked_fill(are_empty, 0);
}

// "BNSD" sequences have all tokens of their batch.
void check_lengths(const HeadSequenceNames& names, const HeadSequences& sequences) {
  for (int64_t i = 0; i < sequences.count(); ++i) {
    EXPECT(sequences.size(i) == sequences.most(), names.lengths, " has ", sequences.size(i),
           ", expected ", sequences.most(),
           ", all tokens of a batch; CANN's kernel ignores others");
  }
}

std::pair<int64_t, int64_t> block_of(const at::OptionalIntArrayRef& shape) {
  if (!shape) return {128, 128};
  EXPECT(shape->size() >= 2 && (*shape)[0] > 0 && (*shape)[1] > 0 && (*shape)[0] % 64 == 0 &&
             (*shape)[1] % 64 == 0,
         "blockShape is ", *shape, ", expected two multiples of 64");
  return {(*shape)[0], (*shape)[1]};
}

}  // namespace

// Behaviour of BSASelectBlockMask: Everything is computed in FLOAT; of equal scores the first ones
// are selected. At least one block is selected. Above a sparsity of 0.5, the blocks that are left
// out are counted, at least one, as CANN's kernel does. A block with an actualBlockLen of 0 is
// never selected. scaleValue 0 stands for 1 / sqrt(128). With "TND", the lengths are those of the
// single sequences, the lists of actualBlockLen have the blocks of one sequence after the other,
// and the blocks of shorter sequences are followed by 0. Limit of BSASelectBlockMask: With "BNSD",
// actualSeqLengths and actualSeqLengthsKV that differ from the tokens of a batch are refused with
// 161002, because CANN's document and kernel disagree on them.
ACLNN(BSASelectBlockMask, (In, query), (SameDtype<In>, key, "query"), (Optional<Ints>, blockShape),
      (Refused<Ints>, postBlockShape, "CANN reserves it"), (Optional<Ints>, actualSeqLengths),
      (Optional<Ints>, actualSeqLengthsKV), (Optional<Ints>, actualBlockLenQuery),
      (Optional<Ints>, actualBlockLenKey), (char*, qInputLayout), (char*, kvInputLayout),
      (int64_t, numKeyValueHeads), (double, scaleValue), (double, sparsity),
      (Out, blockSparseMaskOut)) {
  expect_reduced_float("query", query);
  expect_text("qInputLayout", qInputLayout, {"TND", "BNSD"});
  EXPECT(kvInputLayout == qInputLayout, "kvInputLayout is \"", kvInputLayout, "\", expected \"",
         qInputLayout, "\" as qInputLayout");
  EXPECT(sparsity > 0 && sparsity < 1, "sparsity is ", sparsity, ", expected between 0 and 1");
  constexpr HeadSequenceNames kQueries{"query", "qInputLayout", "actualSeqLengths"};
  constexpr HeadSequenceNames kKeys{"key", "kvInputLayout", "actualSeqLengthsKV"};
  const HeadSequences queries(kQueries, query, qInputLayout, actualSeqLengths);
  const HeadSequences keys(kKeys, key, kvInputLayout, actualSeqLengthsKV);
  if (qInputLayout == "BNSD") {
    check_lengths(kQueries, queries);
    check_lengths(kKeys, keys);
  }
  EXPECT(query.size(-1) == 128 && key.size(-1) == 128, "query and key have shapes ", query.sizes(),
         " and ", key.sizes(), ", expected heads of 128 elements");
  EXPECT(keys.heads() == queries.heads() && numKeyValueHeads == keys.heads(), "query and key have ",
         queries.heads(), " and ", keys.heads(), " heads, expected numKeyValueHeads for both, ",
         numKeyValueHeads);
  EXPECT(keys.count() == queries.count(), "key has ", keys.count(), " sequences, expected ",
         queries.count(), " as query has");
  expect_elements("query", query);
  expect_elements("key", key);
  const auto [x, y] = block_of(blockShape);
  const int64_t rows = queries.blocks(x), columns = keys.blocks(y);
  EXPECT(qInputLayout == "TND" || rows > 1 || columns > 1,
         "query and key have one block each, expected more to select from");
  expect_tensor("blockSparseMaskOut", blockSparseMaskOut, at::kChar,
                {queries.count(), queries.heads(), rows, columns});
  const BlockLengths query_blocks("actualBlockLenQuery", actualBlockLenQuery, queries, x);
  const BlockLengths key_blocks("actualBlockLenKey", actualBlockLenKey, keys, y);

  const at::Tensor mask = at::zeros(blockSparseMaskOut->sizes(), query.options().dtype(at::kChar));
  const double scale = scaleValue == 0 ? 1 / std::sqrt(128.0) : scaleValue.value();
  for (int64_t i = 0; has_values(query) && i < queries.count(); ++i) {
    const std::vector<int64_t>&own = query_blocks.of(i), &others = key_blocks.of(i);
    if (own.empty() || others.empty()) continue;
    const at::Tensor of_queries = means(queries.read(query, i).squeeze(0), own, x);
    const at::Tensor of_keys = means(keys.read(key, i).squeeze(0), others, y);
    const at::Tensor flags = selected(at::matmul(of_queries, of_keys.transpose(1, 2)) * scale,
                                      is_empty(own).unsqueeze(1) | is_empty(others), sparsity);
    mask.select(0, i).narrow(1, 0, flags.size(1)).narrow(2, 0, flags.size(2)).copy_(flags);
  }
  blockSparseMaskOut = mask;
}

}  // namespace aclnn_host::attention_bsa_select_block_mask_rows
