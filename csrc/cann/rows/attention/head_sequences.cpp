// Sequences of heads whose lengths are in an array: see head_sequences.h.

#include "cann/rows/attention/head_sequences.h"

#include "cann/rows/attention/heads.h"

namespace aclnn_host {

HeadSequences::HeadSequences(const HeadSequenceNames& names, const at::Tensor& tensor,
                             const std::string& layout, const at::OptionalIntArrayRef& lengths)
    : layout_(layout) {
  const bool is_packed = layout == "TND";
  EXPECT(tensor.dim() == (is_packed ? 3 : 4), names.tensor, " has ", tensor.dim(),
         " dimensions, expected ", is_packed ? 3 : 4, " as ", names.layout, " is \"", layout, "\"");
  heads_ = tensor.size(layout == "BSND" ? 2 : 1);
  if (is_packed) {
    EXPECT(lengths && !lengths->empty(), names.lengths,
           " is null or empty, expected the lengths of the sequences as ", names.layout,
           " is \"TND\"");
    check_lengths(names, *lengths, tensor.size(0));
    int64_t first = 0;
    for (const int64_t size : sizes_) {
      firsts_.push_back(first);
      first += size;
    }
    EXPECT(first == tensor.size(0), names.lengths, " is ", *lengths, ", expected the sum ",
           tensor.size(0), ", the tokens of ", names.tensor);
    most_ = *std::ranges::max_element(sizes_);
    return;
  }
  most_ = tensor.size(layout == "BNSD" ? 2 : 1);
  const int64_t batches = tensor.size(0);
  if (!lengths) {
    sizes_.assign(static_cast<size_t>(batches), most_);
    return;
  }
  EXPECT(static_cast<int64_t>(lengths->size()) == batches, names.lengths, " has ", lengths->size(),
         " elements, expected ", batches, ", one for each batch");
  check_lengths(names, *lengths, most_);
}

void HeadSequences::check_lengths(const HeadSequenceNames& names, at::IntArrayRef lengths,
                                  int64_t tokens) {
  EXPECT(std::ranges::all_of(lengths, [&](int64_t size) { return size >= 0 && size <= tokens; }),
         names.lengths, " is ", lengths, ", expected lengths from 0 to ", tokens);
  int64_t total = 0;
  for (const int64_t size : lengths) {
    EXPECT(!__builtin_add_overflow(total, size, &total), names.lengths, " is ", lengths,
           ", expected a sum that INT64 holds");
  }
  sizes_ = lengths.vec();
}

at::Tensor HeadSequences::view(const at::Tensor& tensor, int64_t i) const {
  if (layout_ == "TND") {
    return tensor.narrow(0, firsts_[static_cast<size_t>(i)], size(i)).transpose(0, 1);
  }
  const at::Tensor own = tensor.select(0, i);
  return (layout_ == "BSND" ? own.transpose(0, 1) : own).narrow(1, 0, size(i));
}

void check_head_groups(const HeadTensors& tensors, const HeadSequences& queries,
                       const HeadSequences& keys, int64_t key_heads) {
  const auto& [query, key, value] = tensors;
  expect_dtype("key", key, query);
  expect_like("value", value, key);
  EXPECT(queries.count() == keys.count(), "key has ", keys.count(), " sequences, expected ",
         queries.count(), " as query has");
  EXPECT(queries.heads() > 0, "query has shape ", query.sizes(), ", expected one or more heads");
  EXPECT(key_heads > 0 && keys.heads() == key_heads && queries.heads() % key_heads == 0,
         "query and key have ", queries.heads(), " and ", keys.heads(),
         " heads, expected a multiple of numKeyValueHeads and numKeyValueHeads, ", key_heads);
  EXPECT(key.size(-1) == query.size(-1), "key has shape ", key.sizes(), ", expected query's ",
         query.size(-1), " elements in a head");
}

at::Tensor listed_blocks(const char* name, const at::Tensor& lists, const at::Tensor& counts,
                         int64_t blocks) {
  check_bounds(name, lists.masked_select(counts), blocks);
  const at::Tensor listed = at::where(counts, lists, blocks);  // an additional block for the rest
  const at::Tensor flags =
      at::zeros(with_last(lists.sizes(), {blocks + 1}), lists.options().dtype(at::kBool));
  return flags.scatter(-1, listed, true).narrow(-1, 0, blocks);
}

at::Tensor outside_of_blocks(const at::Tensor& selected, at::IntArrayRef block, int64_t queries,
                             int64_t keys) {
  const auto blocks_of = [&](int64_t tokens, int64_t size) {
    return at::arange(tokens, selected.options().dtype(at::kLong)).div(size, "floor");
  };
  return selected.logical_not()
      .index_select(1, blocks_of(queries, block[0]))
      .index_select(2, blocks_of(keys, block[1]));
}

}  // namespace aclnn_host
