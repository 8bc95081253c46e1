// Attention to the blocks of keys that a mask selects for each block of queries, and its gradients.

#include "cann/rows/attention/head_sequences.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_block_sparse_rows {

namespace {

constexpr const char* kReserved = "CANN does not support it yet";
constexpr int64_t kAllTokens = 2147483647;

// The elements of a tensor, whose type ATen may lack.
const at::Tensor& elements(const at::Tensor& tensor) {
  return tensor;
}
const at::Tensor& elements(const StoredTensor& tensor) {
  return tensor.elements;
}

// The mask, which the gradient's row requires itself.
const at::Tensor& given(const at::Tensor& mask) {
  return mask;
}
const at::Tensor& given(const std::optional<at::Tensor>& mask) {
  EXPECT(mask, "blockSparseMaskOptional is null, expected a mask of blocks; CANN needs it so far");
  return *mask;
}

// The sequences and blocks of a call.
class Blocks {
 public:
  template <class Version>
  explicit Blocks(const Version& row)
      : queries_({"query", "qInputLayout", "actualSeqLengthsOptional"}, elements(row.query),
                 checked_layout(row), row.actualSeqLengthsOptional),
        keys_({"key", "kvInputLayout", "actualSeqLengthsKvOptional"}, elements(row.key),
              row.kvInputLayout, row.actualSeqLengthsKvOptional),
        mask_(given(row.blockSparseMaskOptional)),
        scale_(row.scaleValue) {
    check_head_groups({elements(row.query), elements(row.key), elements(row.value)}, queries_,
                      keys_, row.numKeyValueHeads);
    expect_one_of("maskType", row.maskType, {0});
    EXPECT(row.preTokens == kAllTokens && row.nextTokens == kAllTokens, "preTokens and nextTokens ",
           "are ", row.preTokens, " and ", row.nextTokens, ", expected ", kAllTokens, " for both");
    check_blocks(row.blockShapeOptional);
  }

  int64_t count() const { return queries_.count(); }
  int64_t block(int64_t i) const { return block_[static_cast<size_t>(i)]; }
  const HeadSequences& queries() const { return queries_; }
  const HeadSequences& keys() const { return keys_; }

  // The attention of a sequence; its inputs are (1, heads, tokens, elements).
  SoftmaxAttention attention(int64_t i, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, ForwardPass forward = {}) const {
    AttentionInputs inputs{query, key, value, scale_};
    inputs.hidden =
        outside_of_blocks(mask_.select(0, i).ne(0), block_, queries_.size(i), keys_.size(i));
    inputs.forward = std::move(forward);
    return SoftmaxAttention(std::move(inputs));
  }

 private:
  template <class Version>
  static std::string checked_layout(const Version& row) {
    expect_text("qInputLayout", row.qInputLayout, {"TND", "BNSD", "BSND"});
    EXPECT(row.kvInputLayout == row.qInputLayout, "kvInputLayout is \"", row.kvInputLayout,
           "\", expected \"", row.qInputLayout, "\" as qInputLayout");
    return row.qInputLayout;
  }

  void check_blocks(const at::OptionalIntArrayRef& shape) {
    if (shape) {
      EXPECT(shape->size() >= 2 && (*shape)[0] > 0 && (*shape)[1] > 0, "blockShapeOptional is ",
             *shape, ", expected two positive sizes");
      block_ = shape->slice(0, 2).vec();
    }
    expect_shape(
        "blockSparseMaskOptional", mask_,
        {queries_.count(), queries_.heads(), queries_.blocks(block_[0]), keys_.blocks(block_[1])});
  }

  HeadSequences queries_;
  HeadSequences keys_;
  at::Tensor mask_;
  double scale_;
  std::vector<int64_t> block_{128, 128};
};

// The factors of the tokens of a sequence, of which the tensor has one for each block.
at::Tensor factors(const at::Tensor& scales, int64_t i, int64_t tokens, int64_t block) {
  const at::Tensor blocks =
      at::arange(tokens, scales.options().dtype(at::kLong)).div(block, "floor");
  return scales.narrow(0, i, 1).index_select(2, blocks);
}

// The scales of FLOAT8; the other types have none.
struct Dequantisation {
  std::optional<at::Tensor> query;
  std::optional<at::Tensor> key;
  std::optional<at::Tensor> value;
};

void check_scales(const Dequantisation& scales, const Blocks& blocks, bool is_quantised) {
  const auto check = [&](const char* name, const std::optional<at::Tensor>& scale,
                         const HeadSequences& sequences, int64_t block) {
    EXPECT(scale.has_value() == is_quantised, name, scale ? " is given" : " is null",
           ", expected a tensor with a query of FLOAT8_E4M3FN and null with others");
    if (!scale) return;
    expect_float(name, *scale, {sequences.count(), sequences.heads(), sequences.blocks(block), 1});
  };
  check("qDequantScale", scales.query, blocks.queries(), blocks.block(0));
  check("kDequantScale", scales.key, blocks.keys(), blocks.block(1));
  check("vDequantScale", scales.value, blocks.keys(), blocks.block(1));
  if (!is_quantised) return;
  expect_one_of("blockShapeOptional[0]", blocks.block(0), {128}, " with FLOAT8_E4M3FN");
  expect_one_of("blockShapeOptional[1]", blocks.block(1), {256, 512}, " with FLOAT8_E4M3FN");
}

template <class Version>
void check_modes(const Version& row, const Blocks& blocks) {
  const at::Tensor& query = elements(row.query);
  const int64_t size = query.size(-1);
  EXPECT(size == 64 || size == 128, "query has heads of ", size, " elements, expected 64 or 128");
  expect_both_or_none("actualSeqLengthsOptional", row.actualSeqLengthsOptional.has_value(),
                      "actualSeqLengthsKvOptional", row.actualSeqLengthsKvOptional.has_value());
  expect_dtype("blockSparseMaskOptional", *row.blockSparseMaskOptional, at::kChar);
  EXPECT(blocks.block(1) % 128 == 0, "blockShapeOptional[1] is ", blocks.block(1),
         ", expected a multiple of 128");
  expect_one_of("innerPrecise", row.innerPrecise, {0, 1, 4});
  EXPECT(row.innerPrecise != 1 || query.scalar_type() == at::kHalf,
         "innerPrecise is 1, expected 0 or 4 as query is not FLOAT16");
  expect_one_of("blockSize", row.blockSize, {0});
  expect_one_of("softmaxLseFlag", row.softmaxLseFlag, {0, 1});
  require_given(row.softmaxLseOptional || row.softmaxLseFlag == 0,
                "softmaxLseOptional is null, expected a tensor as softmaxLseFlag is 1");
}

// The elements of a sequence, multiplied by the scales, if there are any.
at::Tensor dequantised(const HeadSequences& sequences, const at::Tensor& tensor, int64_t i,
                       const std::optional<at::Tensor>& scales, int64_t block) {
  const at::Tensor own = sequences.read(tensor, i);
  return scales ? own * factors(*scales, i, own.size(2), block) : own;
}

template <class Version>
void attend(Version& row, const Dequantisation& scales, bool is_quantised) {
  const Blocks blocks(row);
  check_modes(row, blocks);
  check_scales(scales, blocks, is_quantised);
  const at::Tensor &query = elements(row.query), &key = elements(row.key),
                   &value = elements(row.value);
  expect_shape("attentionOut", row.attentionOut, query.sizes());
  const at::Tensor result = at::zeros(query.sizes(), query.options().dtype(at::kFloat));
  const at::Tensor lse = at::zeros(with_last(query.sizes(), {1}), result.options());
  for (int64_t i = 0; has_values(query) && i < blocks.count(); ++i) {
    const SoftmaxAttention attention =
        blocks.attention(i, dequantised(blocks.queries(), query, i, scales.query, blocks.block(0)),
                         dequantised(blocks.keys(), key, i, scales.key, blocks.block(1)),
                         dequantised(blocks.keys(), value, i, scales.value, blocks.block(1)));
    blocks.queries().view(result, i).copy_(attention.result().squeeze(0));
    const at::Tensor own =
        (attention.largest() + attention.sum().log()).masked_fill_(attention.sum() == 0, 0);
    blocks.queries().view(lse, i).copy_(own.squeeze(0));
  }
  row.attentionOut = result;
  if (row.softmaxLseFlag == 1) {
    expect_float("softmaxLseOptional", *row.softmaxLseOptional, lse.sizes());
    row.softmaxLseOptional = lse;
  }
}

// The log-sum-exp of all queries as (batch, heads, tokens, 1), or as the queries with "TND".
at::Tensor log_sums(const at::Tensor& given, const at::Tensor& query, const std::string& layout) {
  std::vector<int64_t> shape{query.size(0), query.size(1)};
  if (layout == "BNSD") shape.push_back(query.size(2));
  if (layout == "BSND") shape = {query.size(0), query.size(2), query.size(1)};
  expect_dtype("softmaxLse", given, at::kFloat);
  // An example of CANN leaves out the last dimension.
  if (given.sizes() == at::IntArrayRef(shape)) return given.unsqueeze(-1);
  shape.push_back(1);
  expect_shape("softmaxLse", given, shape);
  return given;
}

}  // namespace

// Behaviour of BlockSparseAttention, BlockSparseAttentionV2, BlockSparseAttentionGrad: Everything
// is computed in FLOAT with every innerPrecise, and each result is rounded once. The lengths are
// those of the single sequences, with "TND", too. A query without a selected block has the result,
// the log-sum-exp and the gradient 0, as have tokens outside the sequences; CANN does not write
// them.
ACLNN_STRUCT(BlockSparseAttention, (In, query), (In, key), (In, value),
             (Optional<In>, blockSparseMaskOptional), (Refused<In>, attenMaskOptional, kReserved),
             (Optional<Ints>, blockShapeOptional), (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional),
             (Refused<In>, blockTableOptional, kReserved), (char*, qInputLayout),
             (char*, kvInputLayout), (int64_t, numKeyValueHeads), (int64_t, maskType),
             (double, scaleValue), (int64_t, innerPrecise), (int64_t, blockSize),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, softmaxLseFlag),
             (Out, attentionOut), (Optional<Out>, softmaxLseOptional)) {
  expect_reduced_float("query", query);
  expect_dtype(attentionOut, query);
  attend(*this, {}, false);
}
// Deviation of BlockSparseAttentionV2: With FLOAT8_E4M3FN, CANN rounds the probabilities to
// FLOAT8_E4M3FN before it multiplies them by value. The host CANN does not round them.
ACLNN_STRUCT(BlockSparseAttentionV2, (Stored<In>, query), (SameDtype<Stored<In>>, key, "query"),
             (SameDtype<Stored<In>>, value, "query"), (Optional<In>, blockSparseMaskOptional),
             (Refused<In>, attenMaskOptional, kReserved), (Optional<Ints>, blockShapeOptional),
             (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional),
             (Refused<In>, blockTableOptional, kReserved), (Optional<In>, qDequantScale),
             (Optional<In>, kDequantScale), (Optional<In>, vDequantScale), (char*, qInputLayout),
             (char*, kvInputLayout), (int64_t, numKeyValueHeads), (int64_t, maskType),
             (double, scaleValue), (int64_t, innerPrecise), (int64_t, blockSize),
             (int64_t, preTokens), (int64_t, nextTokens), (int64_t, softmaxLseFlag),
             (Out, attentionOut), (Optional<Out>, softmaxLseOptional)) {
  const bool is_quantised = query.dtype == ACL_FLOAT8_E4M3FN;
  EXPECT(is_quantised || query.dtype == ACL_FLOAT16 || query.dtype == ACL_BF16, "query has dtype ",
         dtype_name(query.dtype), ", expected FLOAT16, BFLOAT16 or FLOAT8_E4M3FN");
  if (is_quantised) {
    expect_reduced_float("attentionOut", attentionOut);
  } else {
    expect_dtype(attentionOut, query.elements);
  }
  attend(*this, {qDequantScale, kDequantScale, vDequantScale}, is_quantised);
}

ACLNN_STRUCT(BlockSparseAttentionGrad, (Like<In>, dout, "query"), (In, query), (In, key),
             (In, value), (Like<In>, attentionOut, "query"), (In, softmaxLse),
             (In, blockSparseMaskOptional), (Refused<In>, attenMaskOptional, kReserved),
             (Optional<Ints>, blockShapeOptional), (Optional<Ints>, actualSeqLengthsOptional),
             (Optional<Ints>, actualSeqLengthsKvOptional), (char*, qInputLayout),
             (char*, kvInputLayout), (int64_t, numKeyValueHeads), (int64_t, maskType),
             (double, scaleValue), (int64_t, preTokens), (int64_t, nextTokens),
             (Like<Out>, dq, "query"), (Like<Out>, dk, "key"), (Like<Out>, dv, "value")) {
  expect_reduced_float("query", query);
  require_given(qInputLayout != "TND" || (actualSeqLengthsOptional && actualSeqLengthsKvOptional),
                "actualSeqLengthsOptional or actualSeqLengthsKvOptional is null, expected lengths ",
                "as qInputLayout is \"TND\"");
  const Blocks blocks(*this);
  EXPECT(query.size(-1) == 128, "query has heads of ", query.size(-1), " elements, expected 128");
  expect_dtype("blockSparseMaskOptional", blockSparseMaskOptional, {at::kBool, at::kByte});
  const at::Tensor lse = log_sums(softmaxLse, query, qInputLayout);
  const auto zeros = [](const at::Tensor& like) { return at::zeros_like(like, at::kFloat); };
  const at::Tensor of_query = zeros(query), of_key = zeros(key), of_value = zeros(value);
  for (int64_t i = 0; has_values(query) && i < blocks.count(); ++i) {
    const HeadSequences &queries = blocks.queries(), &keys = blocks.keys();
    const at::Tensor own_lse = qInputLayout == "TND"
                                   ? queries.read(lse, i)
                                   : lse.narrow(0, i, 1).narrow(2, 0, queries.size(i));
    const SoftmaxAttention attention =
        blocks.attention(i, queries.read(query, i), keys.read(key, i), keys.read(value, i),
                         {own_lse, at::ones_like(own_lse), queries.read(attentionOut, i)});
    const SoftmaxAttention::Gradients gradients = attention.gradients(queries.read(dout, i));
    queries.view(of_query, i).copy_(gradients.query.squeeze(0));
    keys.view(of_key, i).copy_(gradients.key.squeeze(0));
    keys.view(of_value, i).copy_(gradients.value.squeeze(0));
  }
  dq = of_query;
  dk = of_key;
  dv = of_value;
}

}  // namespace aclnn_host::attention_block_sparse_rows
