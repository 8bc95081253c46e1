// PagedAttention: attention to keys and values in blocks, of one query for each sequence or of
// several.
#include "cann/atb/sequences.h"

namespace aclnn_host {
namespace {

using atb::infer::PagedAttentionParam;

std::vector<AtbTensor> paged_inputs(const PagedAttentionParam& param) {
  std::vector<AtbTensor> inputs = {{"query"}, {"keyCache"}};
  if (param.mlaVHeadSize == 0) inputs.push_back({"valueCache"});
  inputs.push_back({"blockTables"});
  inputs.push_back(on_host("contextLens"));
  if (param.maskType != PagedAttentionParam::UNDEFINED) inputs.push_back({"mask"});
  if (param.calcType == PagedAttentionParam::CALC_TYPE_SPEC) {
    inputs.push_back(on_host("qSeqLen"));
  }
  return inputs;
}

// A sequence of no keys leaves its outputs as they are.
class PagedAttention final : public AtbKernel {
 public:
  explicit PagedAttention(const PagedAttentionParam& param)
      : AtbKernel("PagedAttentionOperation", paged_inputs(param), {"attnOut"}), param_(param) {
    key_heads_ = checked_heads(param.headNum, param.kvHeadNum);
    const auto type = param.maskType;
    EXPECT_OR(ERROR_INVALID_PARAM,
              type >= PagedAttentionParam::UNDEFINED &&
                  type <= PagedAttentionParam::MASK_TYPE_NORM_COMPRESS,
              "maskType is ", type, ", expected 0 to 5");
    EXPECT_OR(ERROR_INVALID_PARAM,
              !has_queries() || is_mla() || type == PagedAttentionParam::MASK_TYPE_NORM ||
                  type == PagedAttentionParam::MASK_TYPE_SPEC,
              "maskType is ", type, " and calcType is 1, expected a maskType of 1 or 3");
    EXPECT_OR(ERROR_INVALID_PARAM,
              type != PagedAttentionParam::MASK_TYPE_NORM_COMPRESS &&
                  type != PagedAttentionParam::MASK_TYPE_MASK_FREE,
              "maskType is ", type, ", which only Atlas inference products have");
    EXPECT_OR(ERROR_INVALID_PARAM, !is_bnsd() || (!has_queries() && !is_mla()),
              "inputLayout is TYPE_BNSD, expected a calcType and an mlaVHeadSize of 0");
    EXPECT_OR(ERROR_INVALID_PARAM, !is_mla() || key_heads_ == 1, "mlaVHeadSize is ",
              param.mlaVHeadSize, " and kvHeadNum is ", key_heads_, ", expected a kvHeadNum of 1");
    EXPECT_OR(ERROR_INVALID_PARAM, !is_mla() || type != PagedAttentionParam::MASK_TYPE_ALIBI,
              "mlaVHeadSize is ", param.mlaVHeadSize, " and maskType is 2, expected another one");
    EXPECT_OR(ERROR_INVALID_PARAM, param.mlaVHeadSize <= 576, "mlaVHeadSize is ",
              param.mlaVHeadSize, ", expected at most 576");
    if (param.quantType != PagedAttentionParam::TYPE_QUANT_UNQUANT) {
      refuse_parameters(name, {"quantType is ", param.quantType});
    }
    if (param.compressType != PagedAttentionParam::COMPRESS_TYPE_UNDEFINED) {
      refuse_parameters(name, {"compressType is ", param.compressType});
    }
    if (param.scaleType != PagedAttentionParam::SCALE_TYPE_TOR) {
      refuse_parameters(name, {"scaleType is ", param.scaleType});
    }
    if (param.batchRunStatusEnable) refuse_parameters(name, {"batchRunStatusEnable is true"});
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "query", {3});
    expect_rank(in, "keyCache", {4});
    expect_rank(in, "blockTables", {2});
    expect_rank(in, "contextLens", {1});
    const c10::IntArrayRef query = in.shape("query"), keys = in.shape("keyCache");
    const size_t block = is_bnsd() ? 2 : 1, heads = is_bnsd() ? 1 : 2;
    expect_size(in, "query", 1, param_.headNum, "headNum");
    expect_size(in, "query", 2, keys[3], "the size of a head in keyCache");
    expect_size(in, "keyCache", heads, key_heads_, "kvHeadNum");
    int64_t size = param_.mlaVHeadSize;
    if (is_mla()) {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, size <= keys[3], "mlaVHeadSize is ", size,
                ", expected at most the size of a head in keyCache, ", keys[3]);
    } else {
      expect_rank(in, "valueCache", {4});
      expect_size(in, "valueCache", 0, keys[0], "as many blocks as keyCache has");
      expect_size(in, "valueCache", block, keys[block], "the block of keyCache");
      expect_size(in, "valueCache", heads, key_heads_, "kvHeadNum");
      size = in.shape("valueCache")[3];
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, std::max(size, keys[3]) <= 576, "keyCache has shape ", keys,
              ", expected heads of at most 576 elements");
    const int64_t batch = in.shape("contextLens")[0];
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape("blockTables")[0] >= batch,
              "blockTables has shape ", in.shape("blockTables"), ", expected ", batch,
              " rows, one for each of contextLens");
    if (has_queries()) {
      expect_rank(in, "qSeqLen", {1});
      expect_size(in, "qSeqLen", 0, batch, "one for each of contextLens");
    } else {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, query[0] >= batch, "query has shape ", query,
                ", expected ", batch, " tokens, one for each of contextLens");
    }
    check_lengths(in, in.shape("blockTables")[1] * keys[block]);
    if (has_mask()) check_mask(in);
    check_dtypes(in);
    AtbDesc out = in["query"];
    out.shape.dims[2] = size;
    return {out};
  }

  void compute(const AtbTensors& tensors) const override {
    const auto by_block = [&](const at::Tensor& cache) {
      return is_bnsd() ? cache.transpose(1, 2) : cache;
    };
    const at::Tensor keys = by_block(tensors["keyCache"]);
    const at::Tensor values =
        is_mla() ? keys.narrow(-1, 0, param_.mlaVHeadSize) : by_block(tensors["valueCache"]);
    const at::Tensor &query = tensors["query"], &tables = tensors["blockTables"];
    const std::vector<int64_t>& lengths = tensors.list("contextLens");
    int64_t start = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int64_t count = has_queries() ? tensors.list("qSeqLen")[i] : 1;
      if (lengths[i] > 0 && count > 0) {
        const auto sequence = static_cast<int64_t>(i);
        const at::Tensor table = tables.select(0, sequence);
        AttentionOfOne how{.scale = param_.qkScale};
        if (has_mask()) how.bias = bias_of(tensors["mask"], sequence, start, count, lengths[i]);
        tensors.outputs[0]
            .narrow(0, start, count)
            .copy_(attend(query.narrow(0, start, count),
                          tokens_of("blockTables", keys, table, lengths[i]),
                          tokens_of("blockTables", values, table, lengths[i]), how));
      }
      start += count;
    }
  }

 private:
  bool is_mla() const { return param_.mlaVHeadSize > 0; }
  bool is_bnsd() const { return param_.inputLayout == atb::infer::TYPE_BNSD; }
  bool has_mask() const { return param_.maskType != PagedAttentionParam::UNDEFINED; }
  bool has_queries() const { return param_.calcType == PagedAttentionParam::CALC_TYPE_SPEC; }

  void check_dtypes(const AtbInputs& in) const {
    const auto count = static_cast<size_t>(std::ranges::count_if(
        inputs, [](const AtbTensor& each) { return each.place != AtbTensor::kHost; }));
    const size_t table = is_mla() ? 2 : 3;
    AtbDtypes halves(count, ACL_FLOAT16), bfloats(count, ACL_BF16);
    halves[table] = bfloats[table] = ACL_INT32;
    expect_dtypes(in, {halves, bfloats});
  }

  void check_lengths(const AtbInputs& in, int64_t most) const {
    const std::vector<int64_t>* const lengths = in.list("contextLens");
    if (lengths == nullptr) return;
    checked_lengths("contextLens", *lengths, 0, most);
    if (!has_queries()) return;
    const std::vector<int64_t>& queries = *in.list("qSeqLen");
    const int64_t tokens = in.shape("query")[0],
                  sum = checked_lengths("qSeqLen", queries, 0, tokens);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, sum <= tokens, "query has ", tokens, " tokens, expected ",
              sum, ", the sum of qSeqLen");
    for (size_t i = 0; i < queries.size(); ++i) {
      EXPECT_OR(ERROR_INVALID_PARAM, queries[i] <= (*lengths)[i], "qSeqLen has ", queries[i],
                ", expected at most the length of the sequence in contextLens, ", (*lengths)[i]);
    }
  }

  // Of one query: (batch, 1, keys), or with heads (batch, heads, 1, keys). Of several: (tokens,
  // keys), or for MASK_TYPE_NORM (positions, keys), both perhaps after dimensions of 1.
  void check_mask(const AtbInputs& in) const {
    const c10::IntArrayRef mask = in.shape("mask");
    int64_t longest = 0;
    if (const auto* const lengths = in.list("contextLens")) {
      longest = *std::ranges::max_element(*lengths);
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, mask.back() >= longest, "mask has shape ", mask,
              ", expected ", longest, " columns, the longest of contextLens");
    const int64_t batch = in.shape("contextLens")[0];
    if (!has_queries()) {
      expect_rank(in, "mask", {3, 4});
      expect_size(in, "mask", 0, batch, "one for each of contextLens");
      if (mask.size() == 4) expect_size(in, "mask", 1, param_.headNum, "headNum");
      expect_size(in, "mask", mask.size() - 2, 1, "one query of each sequence");
      return;
    }
    expect_rank(in, "mask", {2, 3, 4});
    for (size_t i = 0; i + 2 < mask.size(); ++i) expect_size(in, "mask", i, 1, "for all heads");
    const bool is_by_token = param_.maskType == PagedAttentionParam::MASK_TYPE_SPEC;
    const int64_t rows = is_by_token ? in.shape("query")[0] : longest;
    EXPECT_OR(
        ERROR_INVALID_TENSOR_DIM, mask[mask.size() - 2] >= rows, "mask has shape ", mask,
        ", expected ", rows,
        is_by_token ? " rows, one for each token of query" : " rows, the longest of contextLens");
  }

  at::Tensor bias_of(const at::Tensor& mask, int64_t sequence, int64_t start, int64_t queries,
                     int64_t keys) const {
    if (!has_queries()) return wide(mask.select(0, sequence).narrow(-1, 0, keys));
    const at::Tensor rows = mask.view({mask.size(-2), mask.size(-1)});
    const bool is_by_token = param_.maskType == PagedAttentionParam::MASK_TYPE_SPEC;
    return wide(rows.narrow(0, is_by_token ? start : keys - queries, queries).narrow(1, 0, keys));
  }

  PagedAttentionParam param_;
  int64_t key_heads_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::PagedAttentionParam, aclnn_host::PagedAttention,
              "PagedAttentionOperation")
