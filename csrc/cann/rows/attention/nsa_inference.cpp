// Native sparse attention (Nsa) of inference: one to four new queries for each sequence, with keys
// and values in the pages of a cache.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/nsa_scores.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_nsa_inference_rows {

namespace {

// Pages of keys or values (page, token, heads, elements), addressed by a table.
class Pages {
 public:
  Pages(const char* name, const at::Tensor& pages, const at::Tensor& table, int64_t heads,
        int64_t page_size)
      : table_(table), page_size_(page_size) {
    expect_at_least("numKeyValueHeads", heads, 1);
    expect_dims(name, pages, 3, 4);
    const bool has_heads = pages.dim() == 4;
    EXPECT(pages.size(1) == page_size && page_size > 0, name, " has shape ", pages.sizes(),
           ", expected pages of pageBlockSize, ", page_size, ", tokens");
    EXPECT(has_heads ? pages.size(2) == heads : pages.size(2) % heads == 0, name, " has shape ",
           pages.sizes(), ", expected ", heads, " heads");
    pages_ = has_heads ? pages : pages.unflatten(2, {heads, pages.size(2) / heads});
  }

  int64_t count() const { return pages_.size(0); }
  int64_t head_size() const { return pages_.size(3); }
  int64_t capacity() const { return table_.size(1) * page_size_; }

  // Reads some tokens of a sequence, of one head or of all: N, S, D.
  at::Tensor read(int64_t sequence, const at::Tensor& tokens) const {
    const at::Tensor blocks =
        table_.select(0, sequence).index_select(0, tokens.floor_divide(page_size_));
    check_bounds("blockTableOptional", blocks, pages_.size(0));
    const at::Tensor rows = blocks * page_size_ + tokens.remainder(page_size_);
    return pages_.flatten(0, 1).index_select(0, rows).to(at::kFloat).transpose(0, 1);
  }

 private:
  at::Tensor pages_;
  at::Tensor table_;
  int64_t page_size_;
};

// The queries of all sequences as (tokens, heads, elements), and the range of each sequence.
class Queries {
 public:
  Queries(const at::Tensor& query, const std::string& layout, int64_t heads, int64_t sequences,
          const std::vector<int64_t>& lengths)
      : lengths_(lengths) {
    is_packed_ = layout == "TND";
    const bool has_heads = layout != "BSH";
    expect_dims("query", query, layout == "BSND" ? 4 : 3);
    EXPECT(heads > 0 && (has_heads ? query.size(-2) == heads : query.size(2) % heads == 0),
           "query has shape ", query.sizes(), ", expected numHeads, ", heads, ", heads");
    tokens_ = has_heads ? query : query.unflatten(2, {heads, query.size(2) / heads});
    if (!is_packed_) {
      row_ = query.size(1);
      EXPECT(query.size(0) == sequences, "query has shape ", query.sizes(), ", expected ",
             sequences, " sequences, the rows of blockTableOptional");
      tokens_ = tokens_.flatten(0, 1);
    }
    int64_t first = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      firsts_.push_back(is_packed_ ? first : static_cast<int64_t>(i) * row_);
      EXPECT(is_packed_ || lengths[i] <= row_, "actualQSeqLenOptional has ", lengths[i],
             ", expected at most the ", row_, " queries of a sequence of query");
      first += lengths[i];
    }
    EXPECT(!is_packed_ || first == query.size(0), "query has shape ", query.sizes(), ", expected ",
           first, " tokens, the sum of the queries of all sequences");
  }

  const at::Tensor& tokens() const { return tokens_; }
  int64_t head_size() const { return tokens_.size(2); }
  int64_t most() const {
    return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
  }
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  int64_t first(int64_t sequence) const { return firsts_[static_cast<size_t>(sequence)]; }
  // Reads one query, with its heads grouped by heads of keys: N, group, D.
  at::Tensor read(int64_t token, int64_t key_heads) const {
    return tokens_.select(0, token)
        .to(at::kFloat)
        .unflatten(0, {key_heads, tokens_.size(1) / key_heads});
  }

 private:
  bool is_packed_;
  int64_t row_ = 0;
  at::Tensor tokens_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> firsts_;
};

at::Tensor checked_table(const std::optional<at::Tensor>& table) {
  EXPECT(table, "blockTableOptional is null, expected a table of pages");
  expect_dims("blockTableOptional", *table, 2);
  expect_dtype("blockTableOptional", *table, {at::kInt, at::kLong});
  return table->to(at::kLong);
}

void check_head_sizes(const Queries& queries, const Pages& key, const Pages& value, int64_t heads,
                      int64_t key_heads) {
  EXPECT(heads % key_heads == 0, "numHeads is ", heads,
         ", expected a multiple of numKeyValueHeads, ", key_heads);
  EXPECT(key.head_size() == queries.head_size(), "key has ", key.head_size(),
         " elements in a head, expected ", queries.head_size(), " as query");
  EXPECT(value.count() == key.count(), "value has ", value.count(), " pages, expected ",
         key.count(), " as key");
  EXPECT(value.head_size() <= key.head_size(), "value has ", value.head_size(),
         " elements in a head, expected at most ", key.head_size(), " as key");
}

// The number of keys of each sequence.
std::vector<int64_t> key_lengths(const char* name, const at::OptionalIntArrayRef& lengths,
                                 int64_t sequences, int64_t capacity) {
  const int64_t size = lengths ? static_cast<int64_t>(lengths->size()) : 0;
  EXPECT(size == sequences, name, " has ", size, " elements, expected ", sequences,
         ", the rows of blockTableOptional");
  for (const int64_t length : *lengths) {
    EXPECT(length >= 0 && length <= capacity, name, " is ", *lengths, ", expected lengths up to ",
           capacity, ", the tokens of a row of pages");
  }
  return lengths->vec();
}

// Attention of the heads of one query, (N, group, elements), to keys and values, (N, keys,
// elements).
SoftmaxAttention attention_of(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, double scale,
                              const std::optional<at::Tensor>& hidden = {}) {
  AttentionInputs inputs{query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1), scale};
  inputs.hidden = hidden;
  inputs.hidden_score = kHiddenScore;
  return SoftmaxAttention(std::move(inputs));
}

// True if a sequence may have several queries, which requires their numbers and the lengths of the
// keys before compression.
bool has_several(const at::OptionalIntArrayRef& queries, const at::OptionalIntArrayRef& windows,
                 const at::OptionalIntArrayRef& keys, int64_t sequences,
                 const SparseBlocks& blocks) {
  const auto count = static_cast<size_t>(sequences);
  if (!queries || queries->size() != count || !windows || windows->size() != count) return false;
  const auto is_few = [](int64_t length) { return length >= 1 && length <= 4; };
  if (!std::all_of(queries->begin(), queries->end(), is_few)) return false;
  if (!keys) return true;
  if (keys->size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const int64_t length = (*keys)[i];
    if (length < blocks.window || length < (*queries)[i]) return false;
    if ((*windows)[i] != (length - blocks.window) / blocks.stride + 1) return false;
  }
  return true;
}

// The most important blocks of each head of keys. The first and the last two are always selected.
at::Tensor selected_blocks(const at::Tensor& probabilities, const SparseBlocks& blocks,
                           int64_t count) {
  constexpr double kAlways = std::numeric_limits<double>::infinity();
  const at::Tensor scores = block_scores(probabilities, blocks, count).sum(at::IntArrayRef({1, 2}));
  scores.narrow(1, 0, 1).fill_(kAlways);
  scores.narrow(1, std::max<int64_t>(0, count - 2), std::min<int64_t>(2, count)).fill_(kAlways);
  return most_important(scores, blocks.count);
}

// The numbers of queries of the sequences: 1 to 4, at most the keys.
std::vector<int64_t> query_lengths(const at::OptionalIntArrayRef& given, int64_t otherwise,
                                   const std::vector<int64_t>& key_lengths) {
  std::vector<int64_t> lengths(key_lengths.size(), otherwise);
  if (given) {
    EXPECT(given->size() == lengths.size(), "actualQSeqLenOptional has ", given->size(),
           " elements, expected ", lengths.size(), ", the rows of blockTableOptional");
    lengths = given->vec();
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    EXPECT(lengths[i] >= 1 && lengths[i] <= 4 && lengths[i] <= key_lengths[i], "sequence ", i,
           " has ", lengths[i], " tokens of query, expected 1 to 4, at most its ", key_lengths[i],
           " keys");
  }
  return lengths;
}

// The positions in the listed blocks of those keys that a query sees.
at::Tensor positions_in(const at::Tensor& indices, int64_t block, int64_t seen) {
  const at::Tensor all =
      (indices.unsqueeze(1) * block + at::arange(block, indices.options())).flatten();
  return all.masked_select((all >= 0) & (all < seen));
}

}  // namespace

ACLNN(NsaCompressAttentionInfer, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (Optional<In>, attentionMaskOptional), (Optional<In>, blockTableOptional),
      (Optional<Ints>, actualQSeqLenOptional), (Optional<Ints>, actualCmpKvSeqLenOptional),
      (Optional<Ints>, actualSelKvSeqLenOptional),
      (Unused<Optional<In>>, topKMaskOptional, "reserved"), (int64_t, numHeads),
      (int64_t, numKeyValueHeads), (int64_t, selectBlockSize), (int64_t, selectBlockCount),
      (int64_t, compressBlockSize), (int64_t, compressBlockStride), (double, scaleValue),
      (char*, layoutOptional), (int64_t, pageBlockSize),
      (Unused<int64_t>, sparseMode, "CANN does not read it"), (SameDtype<Out>, output, "query"),
      (Out, topKOutput)) {
  check_attention(query, key, value, {.heads = 1});
  expect_text("layoutOptional", layoutOptional, {"TND", "BSND"});
  const SparseBlocks blocks{compressBlockSize, compressBlockStride, selectBlockSize,
                            selectBlockCount};
  check_blocks(blocks, "compressBlockStride");
  expect_multiple("pageBlockSize", pageBlockSize, 16, 128);
  const int64_t heads = numHeads, key_heads = numKeyValueHeads;
  const at::Tensor table = checked_table(blockTableOptional);
  const int64_t sequences = table.size(0);
  const Pages keys("key", key, table, key_heads, pageBlockSize);
  const Pages values("value", value, table, key_heads, pageBlockSize);
  const std::vector<int64_t> lengths = key_lengths(
      "actualCmpKvSeqLenOptional", actualCmpKvSeqLenOptional, sequences, keys.capacity());
  const bool several = has_several(actualQSeqLenOptional, actualCmpKvSeqLenOptional,
                                   actualSelKvSeqLenOptional, sequences, blocks);
  const Queries queries(query, layoutOptional, heads, sequences,
                        several ? actualQSeqLenOptional->vec()
                                : std::vector<int64_t>(static_cast<size_t>(sequences), 1));
  check_head_sizes(queries, keys, values, heads, key_heads);
  EXPECT(layoutOptional == "TND" || query.size(1) == queries.most(), "query has shape ",
         query.sizes(), ", expected ", queries.most(), " queries for each sequence");
  const auto blocks_of = [&](int64_t windows) {
    const int64_t tokens = (windows - 1) * blocks.stride + blocks.window;
    return tokens / blocks.block + (tokens % blocks.block != 0 ? 1 : 0);
  };
  for (const int64_t length : lengths) {
    EXPECT(length > 0 && blocks.count <= blocks_of(length), "selectBlockCount is ", blocks.count,
           ", expected at most the ", length > 0 ? blocks_of(length) : 0,
           " blocks of a sequence of ", length, " compressed keys");
  }
  const auto options = query.options().dtype(at::kFloat);
  const int64_t tokens = queries.tokens().size(0);
  const at::Tensor results = at::zeros({tokens, heads, values.head_size()}, options);
  const at::Tensor indices = at::zeros({tokens, key_heads, blocks.count}, options.dtype(at::kLong));
  for (int64_t b = 0; has_values(query) && b < sequences; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    const at::Tensor positions = at::arange(length, table.options());
    const at::Tensor own_keys = keys.read(b, positions);
    const at::Tensor own_values = values.read(b, positions);
    const int64_t count = blocks_of(length);
    for (int64_t s = 0; s < queries.length(b); ++s) {
      // The last window is hidden from queries before its end.
      std::optional<at::Tensor> hidden;
      if (several && attentionMaskOptional && actualSelKvSeqLenOptional) {
        const int64_t rest = (*actualSelKvSeqLenOptional)[static_cast<size_t>(b)] -
                             ((length - 1) * blocks.stride + blocks.window);
        if (queries.length(b) - 1 - s > rest) hidden = positions == length - 1;
      }
      const int64_t token = queries.first(b) + s;
      const SoftmaxAttention attention =
          attention_of(queries.read(token, key_heads), own_keys, own_values, scaleValue, hidden);
      results.select(0, token).copy_(attention.result().flatten(0, 2));
      indices.select(0, token).copy_(selected_blocks(attention.probabilities(), blocks, count));
    }
  }
  output = results.view(with_last(query.sizes(), {values.head_size()}));
  std::vector<int64_t> shape = with_last(query.sizes(), {blocks.count});
  shape[shape.size() - 2] = key_heads;
  topKOutput = indices.view(shape);
}

// An index of -1 selects nothing. A query does not see the keys of later queries.
ACLNN(NsaSelectedAttentionInfer, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (IndexIn, topkIndices), (Unused<Optional<In>>, attenMaskOptional, "reserved"),
      (Optional<In>, blockTableOptional), (Optional<Ints>, actualQSeqLenOptional),
      (Optional<Ints>, actualKvSeqLenOptional), (char*, layoutOptional), (int64_t, numHeads),
      (int64_t, numKeyValueHeads), (int64_t, selectBlockSize), (int64_t, selectBlockCount),
      (int64_t, pageBlockSize), (double, scaleValue), (Unused<int64_t>, sparseMode, "reserved"),
      (SameDtype<Out>, output, "query")) {
  check_attention(query, key, value, {.heads = 1});
  const std::string layout = layoutOptional.empty() ? "BSND" : layoutOptional;
  expect_text("layoutOptional", layout, {"BSH", "BSND", "TND"});
  const int64_t block = selectBlockSize, count = selectBlockCount;
  expect_multiple("selectBlockSize", block, 16, 128);
  expect_one_of("pageBlockSize", pageBlockSize, {64, 128});
  expect_at_least("selectBlockCount", count, 1);
  const int64_t heads = numHeads, key_heads = numKeyValueHeads;
  const at::Tensor table = checked_table(blockTableOptional);
  const int64_t sequences = table.size(0);
  const Pages keys("key", key, table, key_heads, pageBlockSize);
  const Pages values("value", value, table, key_heads, pageBlockSize);
  const std::vector<int64_t> lengths =
      key_lengths("actualKvSeqLenOptional", actualKvSeqLenOptional, sequences, keys.capacity());
  const int64_t length_of_all = layout == "TND" || query.dim() < 2 ? 1 : query.size(1);
  const Queries queries(query, layout, heads, sequences,
                        query_lengths(actualQSeqLenOptional, length_of_all, lengths));
  check_head_sizes(queries, keys, values, heads, key_heads);
  const int64_t tokens = queries.tokens().size(0);
  EXPECT(topkIndices.dim() >= 3 && topkIndices.size(-1) == count &&
             topkIndices.size(-2) == key_heads && topkIndices.numel() == tokens * key_heads * count,
         "topkIndices has shape ", topkIndices.sizes(), ", expected the ", tokens, " queries, ",
         key_heads, " heads of keys and ", count, " blocks");
  const at::Tensor results =
      at::zeros({tokens, heads, values.head_size()}, query.options().dtype(at::kFloat));
  const at::Tensor selected = topkIndices.reshape({tokens, key_heads, count});
  for (int64_t b = 0; has_values(query) && b < sequences; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    for (int64_t s = 0; s < queries.length(b); ++s) {
      const int64_t token = queries.first(b) + s;
      const int64_t seen = length - (queries.length(b) - 1 - s);
      const at::Tensor own = queries.read(token, key_heads);
      for (int64_t head = 0; head < key_heads; ++head) {
        const at::Tensor indices = selected.select(0, token).select(0, head);
        check_bounds("topkIndices", indices, (keys.capacity() + block - 1) / block, -1);
        const at::Tensor positions = positions_in(indices, block, seen);
        if (positions.numel() == 0) continue;
        const SoftmaxAttention attention =
            attention_of(own.narrow(0, head, 1), keys.read(b, positions).narrow(0, head, 1),
                         values.read(b, positions).narrow(0, head, 1), scaleValue);
        results.select(0, token)
            .unflatten(0, {key_heads, heads / key_heads})
            .select(0, head)
            .copy_(attention.result().flatten(0, 2));
      }
    }
  }
  const int64_t size = (layout == "BSH" ? heads : 1) * values.head_size();
  output = results.view(with_last(query.sizes(), {size}));
}

}  // namespace aclnn_host::attention_nsa_inference_rows
