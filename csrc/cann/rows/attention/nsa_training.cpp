// Native sparse attention (Nsa) of training over packed sequences: attention to compressed keys,
// which selects blocks of keys, and attention to the selected blocks, with its gradients.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/nsa_scores.h"
#include "cann/rows/attention/packed.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_nsa_training_rows {

namespace {

void check_inputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::string& layout, int64_t heads, int64_t most_in_group) {
  check_attention(query, key, value, {.heads = heads});
  check_packed(query, key, value, layout, heads);
  EXPECT(heads / key.size(1) <= most_in_group, "query has ", heads, " heads, expected up to ",
         most_in_group, " times the ", key.size(1), " heads of key");
  check_value_size(key, value);
}

void check_mask(const char* name, const std::optional<at::Tensor>& mask, int64_t rows,
                int64_t columns) {
  if (!mask) return;
  expect_dtype(name, *mask, {at::kBool, at::kByte});
  expect_shape(name, *mask, {rows, columns});
}

// The part of a mask for the longest sequences that a shorter one uses.
at::Tensor mask_for(const at::Tensor& mask, int64_t rows, int64_t columns) {
  return mask.narrow(0, 0, rows).narrow(1, 0, columns).to(at::kBool);
}

// Attention of each query to its selected blocks of keys. The batches are pairs of a query and a
// head of keys; all heads of a group are computed at once.
class SelectedAttention {
 public:
  SelectedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& indices, const std::optional<at::Tensor>& mask,
                    const at::OptionalIntArrayRef& query_sums,
                    const at::OptionalIntArrayRef& key_sums, double scale, int64_t heads,
                    const std::string& layout, bool is_causal, int64_t block, int64_t count)
      : query_(query),
        key_(key),
        value_(value),
        indices_(indices),
        mask_(mask),
        scale_(scale),
        is_causal_(is_causal),
        block_(block) {
    check_inputs(query, key, value, layout, heads, 32);
    group_ = heads / key.size(1);
    expect_multiple("selectedBlockSize", block, 16, 128);
    expect_range("selectedBlockCount", count, 1, 32);
    expect_shape("topkIndices", indices, {query.size(0), key.size(1), count});
    sequences_ = sequences_of(query, query_sums, key, key_sums);
    for (const SequencePart& part : sequences_.keys) {
      EXPECT(part.size % block == 0 && part.size / block >= count, "key has a sequence of ",
             part.size, " tokens, expected a multiple of selectedBlockSize, ", block,
             ", at least selectedBlockCount, ", count, ", times as many");
    }
    if (!is_causal) {
      check_mask("attenMaskOptional", mask, longest(sequences_.queries), longest(sequences_.keys));
    }
  }

  struct Chunk {
    SequencePart queries;
    SequencePart keys;
    int64_t first;         // query of the sequence
    at::Tensor positions;  // (query, head of keys, selected key)
  };

  // Calls `visit` with parts of the sequences whose selected keys fit into memory.
  template <class Visit>
  void visit(Visit visit) const {
    constexpr int64_t kMost = int64_t{1} << 24;
    const int64_t each = indices_.size(1) * indices_.size(2) * block_ * key_.size(2);
    const int64_t step = std::max<int64_t>(1, kMost / std::max<int64_t>(1, each));
    for (size_t i = 0; i < sequences_.queries.size(); ++i) {
      const SequencePart &queries = sequences_.queries[i], &keys = sequences_.keys[i];
      for (int64_t first = 0; first < queries.size; first += step) {
        const SequencePart part{queries.first + first, std::min(step, queries.size - first)};
        const at::Tensor blocks = indices_.narrow(0, part.first, part.size);
        check_bounds("topkIndices", blocks, keys.size / block_);
        const at::Tensor offsets = at::arange(block_, blocks.options());
        visit(Chunk{part, keys, first, (blocks.unsqueeze(-1) * block_ + offsets).flatten(2)});
      }
    }
  }

  SoftmaxAttention attention(const Chunk& chunk, ForwardPass forward = {}) const {
    AttentionInputs inputs{grouped(query_, chunk), selected(key_, chunk), selected(value_, chunk),
                           scale_};
    const int64_t queries = chunk.queries.size;
    if (is_causal_) {
      const at::Tensor query =
          at::arange(chunk.first, chunk.first + queries, chunk.positions.options());
      inputs.hidden = as_batch(chunk.positions > query.view({-1, 1, 1}));
    } else if (mask_) {
      const at::Tensor rows = mask_->narrow(0, chunk.first, queries).to(at::kBool);
      const at::Tensor hidden = rows.gather(1, chunk.positions.flatten(1));
      inputs.hidden = as_batch(hidden.view(chunk.positions.sizes()));
    }
    inputs.hidden_score = kHiddenScore;
    inputs.forward = std::move(forward);
    return SoftmaxAttention(std::move(inputs));
  }

  // Reads queries, results, their gradients and the softmax's maxima and sums as (query and head of
  // keys, 1, group, elements or copies).
  at::Tensor grouped(const at::Tensor& packed, const Chunk& chunk) const {
    return packed.narrow(0, chunk.queries.first, chunk.queries.size)
        .to(at::kFloat)
        .unflatten(1, {key_.size(1), group_})
        .flatten(0, 1)
        .unsqueeze(1);
  }
  // The inverse of grouped().
  static void write(const at::Tensor& packed, const Chunk& chunk, const at::Tensor& grouped) {
    const at::Tensor part = packed.narrow(0, chunk.queries.first, chunk.queries.size);
    part.copy_(grouped.reshape(part.sizes()));
  }
  // The rows of the selected keys among the heads and tokens of a sequence.
  at::Tensor rows(const Chunk& chunk) const {
    const at::Tensor heads = at::arange(key_.size(1), chunk.positions.options());
    return (chunk.positions * key_.size(1) + heads.view({1, -1, 1})).flatten();
  }

 private:
  static at::Tensor as_batch(const at::Tensor& by_query) {
    return by_query.flatten(0, 1).unsqueeze(1).unsqueeze(1);
  }
  at::Tensor selected(const at::Tensor& packed, const Chunk& chunk) const {
    return packed.narrow(0, chunk.keys.first, chunk.keys.size)
        .flatten(0, 1)
        .index_select(0, rows(chunk))
        .to(at::kFloat)
        .view({-1, 1, chunk.positions.size(2), packed.size(2)});
  }

  at::Tensor query_;
  at::Tensor key_;
  at::Tensor value_;
  at::Tensor indices_;
  std::optional<at::Tensor> mask_;
  double scale_;
  bool is_causal_;
  int64_t block_;
  int64_t group_ = 1;
  PackedSequences sequences_;
};

bool is_causal(int64_t sparse_mode) {
  expect_one_of("sparseMode", sparse_mode, {kDefaultMask, kLeftUpCausal});
  return sparse_mode == kLeftUpCausal;
}

}  // namespace

ACLNN(NsaCompressAttention, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (Optional<In>, attenMaskOptional), (Optional<In>, topkMaskOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualCmpSeqKvLenOptional),
      (Optional<Ints>, actualSelSeqKvLenOptional), (double, scaleValue), (int64_t, headNum),
      (char*, inputLayout), (int64_t, sparseMode), (int64_t, compressBlockSize),
      (int64_t, compressStride), (int64_t, selectBlockSize), (int64_t, selectBlockCount),
      (Out, softmaxMaxOut), (Out, softmaxSumOut), (Out, attentionOutOut), (Out, topkIndicesOut)) {
  check_inputs(query, key, value, inputLayout, headNum, 127);
  const int64_t heads = headNum;
  const int64_t key_heads = key.size(1);
  EXPECT(128 % (heads / key_heads) == 0, "query has ", heads / key_heads,
         " times the heads of key, expected a divisor of 128");
  expect_one_of("sparseMode", sparseMode, {0, 1});
  const SparseBlocks blocks{compressBlockSize, compressStride, selectBlockSize, selectBlockCount};
  check_blocks(blocks, "compressStride");
  expect_range("selectBlockCount", blocks.count, 1, 32);
  const auto queries = parts_of("actualSeqQLenOptional", actualSeqQLenOptional, query.size(0));
  const auto keys = parts_of("actualCmpSeqKvLenOptional", actualCmpSeqKvLenOptional, key.size(0));
  const auto selected = parts_of("actualSelSeqKvLenOptional", actualSelSeqKvLenOptional,
                                 std::numeric_limits<int64_t>::max());
  EXPECT(queries.size() == keys.size() && queries.size() == selected.size(),
         "actualSeqQLenOptional, actualCmpSeqKvLenOptional and actualSelSeqKvLenOptional have ",
         queries.size(), ", ", keys.size(), " and ", selected.size(),
         " elements, expected as many");
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT(selected[i].size == blocks.blocks_of(keys[i].size), "actualSelSeqKvLenOptional has ",
           selected[i].size, " blocks in a sequence, expected ", blocks.blocks_of(keys[i].size),
           " for ", keys[i].size, " compressed keys");
    EXPECT(blocks.count <= selected[i].size, "selectBlockCount is ", blocks.count,
           ", expected at most the ", selected[i].size, " blocks of a sequence");
  }
  check_mask("attenMaskOptional", attenMaskOptional, longest(queries), longest(keys));
  check_mask("topkMaskOptional", topkMaskOptional, longest(queries), longest(selected));
  const PackedResults packed(query, value);
  const at::Tensor indices =
      at::zeros({query.size(0), key_heads, blocks.count}, query.options().dtype(at::kLong));
  for (size_t i = 0; has_values(query) && i < queries.size(); ++i) {
    const int64_t rows = queries[i].size;
    if (rows == 0) continue;
    AttentionInputs inputs{PackedAttention::read(query, queries[i]),
                           PackedAttention::read(key, keys[i]),
                           PackedAttention::read(value, keys[i]), scaleValue};
    if (attenMaskOptional) inputs.hidden = mask_for(*attenMaskOptional, rows, keys[i].size);
    inputs.hidden_score = kHiddenScore;
    const SoftmaxAttention attention(std::move(inputs));
    packed.write(queries[i], attention);
    at::Tensor scores = block_scores(attention.probabilities().squeeze(0), blocks, selected[i].size)
                            .unflatten(0, {key_heads, heads / key_heads})
                            .sum(1);
    // Blocks in the mask are always selected.
    if (topkMaskOptional) {
      scores = scores.masked_fill(mask_for(*topkMaskOptional, rows, selected[i].size),
                                  std::numeric_limits<float>::max());
    }
    indices.narrow(0, queries[i].first, rows)
        .copy_(most_important(scores, blocks.count).transpose(0, 1));
  }
  softmaxMaxOut = packed.largest;
  softmaxSumOut = packed.sum;
  attentionOutOut = packed.results;
  topkIndicesOut = indices;
}

// Without a mask the mode is ignored, and mode 2 ignores the mask's values.
ACLNN(NsaSelectedAttention, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (IndexIn, topkIndices), (Optional<In>, attenMaskOptional),
      (Optional<Ints>, actualSeqQLenOptional), (Optional<Ints>, actualSeqKvLenOptional),
      (double, scaleValue), (int64_t, headNum), (char*, inputLayout), (int64_t, sparseMode),
      (int64_t, selectedBlockSize), (int64_t, selectedBlockCount), (Out, softmaxMaxOut),
      (Out, softmaxSumOut), (Out, attentionOut)) {
  const SelectedAttention selected(query, key, value, topkIndices, attenMaskOptional,
                                   actualSeqQLenOptional, actualSeqKvLenOptional, scaleValue,
                                   headNum, inputLayout, is_causal(sparseMode) && attenMaskOptional,
                                   selectedBlockSize, selectedBlockCount);
  const PackedResults packed(query, value);
  if (has_values(query)) {
    selected.visit([&](const SelectedAttention::Chunk& chunk) {
      const SoftmaxAttention attention = selected.attention(chunk);
      SelectedAttention::write(packed.largest, chunk,
                               attention.largest().expand({-1, -1, -1, kSoftmaxCopies}));
      SelectedAttention::write(packed.sum, chunk,
                               attention.sum().expand({-1, -1, -1, kSoftmaxCopies}));
      SelectedAttention::write(packed.results, chunk, attention.result());
    });
  }
  softmaxMaxOut = packed.largest;
  softmaxSumOut = packed.sum;
  attentionOut = packed.results;
}

ACLNN(NsaSelectedAttentionGrad, (Floating<In>, query), (Floating<In>, key), (Floating<In>, value),
      (SameDtype<Floating<In>>, attentionOut, "query"),
      (SameDtype<Floating<In>>, attentionOutGrad, "query"), (In, softmaxMax), (In, softmaxSum),
      (IndexIn, topkIndices), (Optional<Ints>, actualSeqQLenOptional),
      (Optional<Ints>, actualSeqKvLenOptional), (Optional<In>, attenMaskOptional),
      (double, scaleValue), (int64_t, selectedBlockSize), (int64_t, selectedBlockCount),
      (int64_t, headNum), (char*, inputLayout), (int64_t, sparseMode), (Out, dqOut), (Out, dkOut),
      (Out, dvOut)) {
  const SelectedAttention selected(query, key, value, topkIndices, attenMaskOptional,
                                   actualSeqQLenOptional, actualSeqKvLenOptional, scaleValue,
                                   headNum, inputLayout, is_causal(sparseMode), selectedBlockSize,
                                   selectedBlockCount);
  const std::vector<int64_t> shape = {query.size(0), query.size(1), value.size(2)};
  expect_shape("attentionOut", attentionOut, shape);
  expect_shape("attentionOutGrad", attentionOutGrad, shape);
  expect_float("softmaxMax", softmaxMax, {query.size(0), query.size(1), kSoftmaxCopies});
  expect_float("softmaxSum", softmaxSum, {query.size(0), query.size(1), kSoftmaxCopies});
  const at::Tensor of_query = at::zeros_like(query, at::kFloat);
  const at::Tensor of_key = at::zeros(key.sizes(), query.options().dtype(at::kFloat));
  const at::Tensor of_value = at::zeros(value.sizes(), query.options().dtype(at::kFloat));
  if (has_values(query)) {
    selected.visit([&](const SelectedAttention::Chunk& chunk) {
      const SoftmaxAttention::Gradients gradients =
          selected
              .attention(chunk, {selected.grouped(softmaxMax, chunk).narrow(3, 0, 1),
                                 selected.grouped(softmaxSum, chunk).narrow(3, 0, 1),
                                 selected.grouped(attentionOut, chunk)})
              .gradients(selected.grouped(attentionOutGrad, chunk));
      SelectedAttention::write(of_query, chunk, gradients.query);
      const at::Tensor rows = selected.rows(chunk);
      const auto add = [&](const at::Tensor& packed, const at::Tensor& gradient) {
        packed.narrow(0, chunk.keys.first, chunk.keys.size)
            .flatten(0, 1)
            .index_add_(0, rows, gradient.reshape({-1, packed.size(2)}));
      };
      add(of_key, gradients.key);
      add(of_value, gradients.value);
    });
  }
  dqOut = of_query;
  dkOut = of_key;
  dvOut = of_value;
}

}  // namespace aclnn_host::attention_nsa_training_rows
