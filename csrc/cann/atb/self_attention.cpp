// SelfAttention: attention of sequences that stand one after the other (PA_ENCODER), or whose keys
// and values are in blocks (PREFIX_ENCODER).
#include "cann/atb/sequences.h"

namespace aclnn_host {
namespace {

using atb::infer::SelfAttentionParam;

bool is_prefix(const SelfAttentionParam& param) {
  return param.calcType == SelfAttentionParam::PREFIX_ENCODER;
}
// Alibi masks as slopes: the bias of a head is its slope times a distance.
bool has_slopes(const SelfAttentionParam& param) {
  return param.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS ||
         param.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS_SQRT ||
         param.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS_LEFT_ALIGN;
}

std::vector<AtbTensor> self_inputs(const SelfAttentionParam& param) {
  std::vector<AtbTensor> inputs = {{"query"}, {"key"}};
  if (param.mlaVHeadSize == 0) inputs.push_back({"value"});
  if (is_prefix(param)) inputs.push_back({"blockTables"});
  if (param.maskType != SelfAttentionParam::MASK_TYPE_UNDEFINED &&
      param.maskType != SelfAttentionParam::MASK_TYPE_CAUSAL_MASK) {
    inputs.push_back({"mask"});
  }
  inputs.push_back(on_host("seqLen"));
  if (is_prefix(param)) inputs.push_back(on_host("kvSeqLen"));
  if (has_slopes(param)) inputs.push_back({"slopes"});
  return inputs;
}

// The lengths of the queries and keys of each sequence.
struct SequenceLengths {
  std::vector<int64_t> queries;
  std::vector<int64_t> keys;
};

// Tokens after the last sequence, and those of sequences without keys, are left as they are.
class SelfAttention final : public AtbKernel {
 public:
  explicit SelfAttention(const SelfAttentionParam& param)
      : AtbKernel("SelfAttentionOperation", self_inputs(param), {"attnOut"}), param_(param) {
    key_heads_ = checked_heads(param.headNum, param.kvHeadNum);
    check_parameters();
    refuse_others();
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "query", {2, 3});
    const int64_t size = head_size(in, "query", param_.headNum);
    const char* const last = is_mla() ? "key" : "value";
    if (is_prefix(param_)) {
      check_caches(in);
    } else {
      expect_rank(in, "key", {in["query"].shape.dimNum});
      if (!is_mla()) {
        expect_rank(in, "value", {in["query"].shape.dimNum});
        expect_size(in, "value", 0, in.shape("key")[0], "the tokens of key");
      }
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, head_size(in, "key", key_heads_) == size, "key has shape ",
              in.shape("key"), ", expected heads of ", size, " elements, as query has");
    const int64_t values = is_mla() ? param_.mlaVHeadSize : head_size(in, last, key_heads_);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM,
              values <= (is_mla() ? size : kMostElements) && size <= kMostElements, last,
              " has heads of ", values, " elements, and query of ", size, ", expected at most ",
              is_mla() ? size : kMostElements);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, !has_slopes(param_) || std::max(size, values) <= 128,
              "query has heads of ", size, " elements, expected at most 128 with slopes");
    check_mask(in);
    check_lengths(in);
    check_dtypes(in);
    AtbDesc out = in["query"];
    out.shape.dims[out.shape.dimNum - 1] = out.shape.dimNum == 2 ? param_.headNum * values : values;
    return {out};
  }

  void compute(const AtbTensors& tensors) const override {
    const SequenceLengths lengths = lengths_of(tensors.in);
    const at::Tensor query = by_head(tensors["query"], param_.headNum, 2);
    const int64_t joined = is_prefix(param_) ? 3 : 2;
    const at::Tensor keys = by_head(tensors["key"], key_heads_, joined);
    const at::Tensor values = is_mla() ? keys.narrow(-1, 0, param_.mlaVHeadSize)
                                       : by_head(tensors["value"], key_heads_, joined);
    const at::Tensor out = by_head(tensors.outputs[0], param_.headNum, 2);
    int64_t start = 0, key_start = 0;
    for (size_t i = 0; i < lengths.queries.size(); ++i) {
      const int64_t count = lengths.queries[i], key_count = lengths.keys[i];
      const auto sequence = static_cast<int64_t>(i);
      if (count > 0 && key_count > 0) {
        const auto part = [&](const at::Tensor& all) {
          return is_prefix(param_)
                     ? tokens_of("blockTables", all, tensors["blockTables"].select(0, sequence),
                                 key_count)
                     : all.narrow(0, key_start, key_count);
        };
        AttentionOfOne how{.scale = static_cast<double>(param_.qkScale) * param_.qScale,
                           .bias = bias_of(tensors, sequence, count, key_count)};
        if (param_.clampType == SelfAttentionParam::CLAMP_TYPE_MIN_MAX) {
          how.clamp.emplace(param_.clampMin, param_.clampMax);
        }
        out.narrow(0, start, count)
            .copy_(attend(query.narrow(0, start, count), part(keys), part(values), how));
      }
      start += count;
      key_start += key_count;
    }
  }

 private:
  static constexpr int64_t kMostElements = 576;

  bool is_mla() const { return param_.mlaVHeadSize > 0; }
  bool has_mask() const {
    return param_.maskType != SelfAttentionParam::MASK_TYPE_UNDEFINED &&
           param_.maskType != SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
  }
  bool is_causal() const {
    return param_.maskType == SelfAttentionParam::MASK_TYPE_NORM_COMPRESS ||
           param_.maskType == SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
  }

  // ATB's own checks of the parameters that are served.
  void check_parameters() const {
    const auto& p = param_;
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.calcType >= SelfAttentionParam::UNDEFINED &&
                  p.calcType <= SelfAttentionParam::PREFIX_ENCODER,
              "calcType is ", p.calcType, ", expected 0 to 4");
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.maskType >= SelfAttentionParam::MASK_TYPE_UNDEFINED &&
                  p.maskType <= SelfAttentionParam::MASK_TYPE_CAUSAL_MASK,
              "maskType is ", p.maskType, ", expected 0 to 9");
    EXPECT_OR(ERROR_INVALID_PARAM, p.quantType != SelfAttentionParam::TYPE_DEQUANT_FUSION,
              "quantType is TYPE_DEQUANT_FUSION, expected another one");
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.maskType != SelfAttentionParam::MASK_TYPE_UNDEFINED || p.isTriuMask == 0,
              "isTriuMask is ", p.isTriuMask, ", expected 0 without a mask");
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.calcType != SelfAttentionParam::PA_ENCODER ||
                  p.kvcacheCfg == SelfAttentionParam::K_CACHE_V_CACHE,
              "kvcacheCfg is ", p.kvcacheCfg, ", expected 0 for PA_ENCODER");
    EXPECT_OR(ERROR_INVALID_PARAM, p.kernelType != SelfAttentionParam::KERNELTYPE_EXP_M8V2,
              "kernelType is KERNELTYPE_EXP_M8V2, which only Atlas inference products have");
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.mlaVHeadSize == 0 || (p.calcType == SelfAttentionParam::PA_ENCODER &&
                                      p.maskType <= SelfAttentionParam::MASK_TYPE_NORM &&
                                      p.clampType == SelfAttentionParam::CLAMP_TYPE_UNDEFINED),
              "mlaVHeadSize is ", p.mlaVHeadSize,
              ", expected PA_ENCODER, a maskType of 0 or 1, and no clamp");
    if (!is_prefix(p)) {
      EXPECT_OR(ERROR_INVALID_PARAM, p.maskType != SelfAttentionParam::MASK_TYPE_CAUSAL_MASK,
                "maskType is MASK_TYPE_CAUSAL_MASK, expected it with PREFIX_ENCODER only");
      return;
    }
    EXPECT_OR(ERROR_INVALID_PARAM, p.isTriuMask == 1, "isTriuMask is ", p.isTriuMask,
              ", expected 1 for PREFIX_ENCODER");
    EXPECT_OR(ERROR_INVALID_PARAM, p.kernelType == SelfAttentionParam::KERNELTYPE_HIGH_PRECISION,
              "kernelType is ", p.kernelType, ", expected 1 for PREFIX_ENCODER");
    EXPECT_OR(ERROR_INVALID_PARAM,
              p.clampType == SelfAttentionParam::CLAMP_TYPE_UNDEFINED && p.qScale == 1,
              "clampType is ", p.clampType, " and qScale is ", p.qScale,
              ", expected 0 and 1 for PREFIX_ENCODER");
    EXPECT_OR(ERROR_INVALID_PARAM,
              is_causal() || p.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS ||
                  p.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS_SQRT,
              "maskType is ", p.maskType, ", expected 3, 4, 5 or 9 for PREFIX_ENCODER");
  }

  void refuse_others() const {
    const auto& p = param_;
    if (p.calcType != SelfAttentionParam::PA_ENCODER && !is_prefix(p)) {
      refuse_parameters(name, {"calcType is ", p.calcType});
    }
    if (p.quantType != SelfAttentionParam::TYPE_QUANT_UNQUANT) {
      refuse_parameters(name, {"quantType is ", p.quantType});
    }
    if (p.scaleType != SelfAttentionParam::SCALE_TYPE_TOR) {
      refuse_parameters(name, {"scaleType is ", p.scaleType});
    }
    if (p.inputLayout != atb::infer::TYPE_BSND) {
      refuse_parameters(name, {"inputLayout is ", p.inputLayout});
    }
    if (p.windowSize != 0 || p.maskType == SelfAttentionParam::MASK_TYPE_SLIDING_WINDOW_NORM ||
        p.maskType == SelfAttentionParam::MASK_TYPE_SLIDING_WINDOW_COMPRESS) {
      refuse_parameters(name, {"windowSize is ", p.windowSize, " and maskType is ", p.maskType});
    }
    if (p.batchRunStatusEnable) refuse_parameters(name, {"batchRunStatusEnable is true"});
  }

  // The elements of a head, which the last dimension may join.
  static int64_t head_size(const AtbInputs& in, const char* name, int64_t heads) {
    const c10::IntArrayRef shape = in.shape(name);
    const bool is_joined = shape.size() == 2 || (shape.size() == 3 && is_cache(in, name));
    if (!is_joined) {
      expect_size(in, name, shape.size() - 2, heads, "the heads");
      return shape.back();
    }
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape.back() % heads == 0, name, " has shape ", shape,
              ", expected a multiple of the heads, ", heads, ", in the last dimension");
    return shape.back() / heads;
  }
  static bool is_cache(const AtbInputs& in, const char* name) {
    return in.index("blockTables") < in.tensors.size() && std::string_view(name) != "query";
  }
  // Splits the dimension that joins heads, the second of tokens and the third of caches.
  static at::Tensor by_head(const at::Tensor& x, int64_t heads, int64_t joined) {
    return x.dim() == joined ? x.unflatten(-1, {heads, x.size(-1) / heads}) : x;
  }

  void check_caches(const AtbInputs& in) const {
    expect_rank(in, "key", {3, 4});
    expect_rank(in, "value", {in["key"].shape.dimNum});
    expect_size(in, "value", 0, in.shape("key")[0], "as many blocks as key has");
    expect_size(in, "value", 1, in.shape("key")[1], "the block of key");
    expect_rank(in, "blockTables", {2});
  }

  void check_mask(const AtbInputs& in) const {
    if (!has_mask()) return;
    const c10::IntArrayRef mask = in.shape("mask");
    if (is_causal() || has_slopes(param_)) {
      const int64_t size = is_causal() ? 128 : 256;
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, mask == (c10::IntArrayRef{size, size}), "mask has shape ",
                mask, ", expected [", size, ", ", size, "]");
      if (has_slopes(param_)) {
        expect_rank(in, "slopes", {1});
        expect_size(in, "slopes", 0, param_.headNum, "headNum");
      }
      return;
    }
    expect_rank(in, "mask", {2, 3, 4});
    if (mask.size() == 4 || is_by_head(mask)) {
      expect_size(in, "mask", mask.size() - 3, param_.headNum, "headNum");
    }
  }
  // Of three dimensions, the first is the heads in an alibi mask, and the sequences in another.
  bool is_by_head(c10::IntArrayRef mask) const {
    return mask.size() == 3 && param_.maskType == SelfAttentionParam::MASK_TYPE_ALIBI;
  }

  SequenceLengths lengths_of(const AtbInputs& in) const {
    const std::vector<int64_t>& lengths = *in.list("seqLen");
    if (is_prefix(param_)) return {lengths, *in.list("kvSeqLen")};
    if (in["seqLen"].shape.dimNum == 1) return {lengths, lengths};
    const auto middle = lengths.begin() + static_cast<int64_t>(lengths.size() / 2);
    return {{lengths.begin(), middle}, {middle, lengths.end()}};
  }

  void check_lengths(const AtbInputs& in) const {
    expect_rank(in, "seqLen", {1, 2});
    if (in["seqLen"].shape.dimNum == 2) expect_size(in, "seqLen", 0, 2, "queries and keys");
    const int64_t batch = in.shape("seqLen").back();
    if (is_prefix(param_)) {
      expect_rank(in, "seqLen", {1});
      expect_rank(in, "kvSeqLen", {1});
      expect_size(in, "kvSeqLen", 0, batch, "one for each of seqLen");
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape("blockTables")[0] >= batch,
                "blockTables has shape ", in.shape("blockTables"), ", expected ", batch,
                " rows, one for each of seqLen");
    }
    if (in.list("seqLen") == nullptr) return;
    const SequenceLengths lengths = lengths_of(in);
    const int64_t tokens = in.shape("query")[0],
                  sum = checked_lengths("seqLen", lengths.queries, 0, tokens);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, sum <= tokens, "query has ", tokens, " tokens, expected ",
              sum, ", the sum of seqLen");
    const char* const of_keys = is_prefix(param_) ? "kvSeqLen" : "seqLen";
    const int64_t most =
        is_prefix(param_) ? in.shape("blockTables")[1] * in.shape("key")[1] : in.shape("key")[0];
    const int64_t keys = checked_lengths(of_keys, lengths.keys, 0, most);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, is_prefix(param_) || keys <= most, "key has ", most,
              " tokens, expected ", keys, ", the sum of seqLen");
    if (is_causal() || has_slopes(param_)) {
      for (size_t i = 0; i < lengths.queries.size(); ++i) {
        EXPECT_OR(ERROR_INVALID_PARAM, lengths.queries[i] <= lengths.keys[i], "seqLen has ",
                  lengths.queries[i], ", expected at most the number of keys, ", lengths.keys[i]);
      }
    } else if (has_mask()) {
      check_size_of_mask(in.shape("mask"), lengths);
    }
  }

  void check_size_of_mask(c10::IntArrayRef mask, const SequenceLengths& lengths) const {
    const auto batch = static_cast<int64_t>(lengths.queries.size());
    if (mask.size() == 4 || (mask.size() == 3 && !is_by_head(mask))) {
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, mask[0] == 1 || mask[0] == batch, "mask has shape ", mask,
                ", expected ", batch, " in dimension 0, one for each of seqLen");
    }
    const int64_t rows = *std::ranges::max_element(lengths.queries),
                  columns = *std::ranges::max_element(lengths.keys);
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, mask[mask.size() - 2] >= rows && mask.back() >= columns,
              "mask has shape ", mask, ", expected ", rows, " rows and ", columns,
              " columns, the longest of seqLen");
  }

  void check_dtypes(const AtbInputs& in) const {
    AtbDtypes halves, bfloats;
    for (const AtbTensor& input : inputs) {
      if (input.place == AtbTensor::kHost) continue;
      const std::string_view of = input.name;
      const bool is_table = of == "blockTables", is_float = of == "slopes";
      halves.push_back(is_table ? ACL_INT32 : is_float ? ACL_FLOAT : ACL_FLOAT16);
      bfloats.push_back(is_table ? ACL_INT32 : is_float ? ACL_FLOAT : ACL_BF16);
    }
    expect_dtypes(in, {halves, bfloats});
  }

  // What is added to the scores of a sequence.
  std::optional<at::Tensor> bias_of(const AtbTensors& tensors, int64_t sequence, int64_t queries,
                                    int64_t keys) const {
    if (is_causal()) return causal_bias(queries, keys);
    if (has_slopes(param_)) return slope_bias(tensors["slopes"], queries, keys);
    if (!has_mask()) return std::nullopt;
    at::Tensor mask = tensors["mask"];
    const bool has_heads = mask.dim() == 4 || is_by_head(mask.sizes());
    if (mask.dim() - (has_heads ? 1 : 0) == 3) {
      mask = mask.select(0, mask.size(0) == 1 ? 0 : sequence);
    }
    mask = wide(mask.narrow(-2, 0, queries).narrow(-1, 0, keys));
    // The kernel for BFLOAT16, which is also the one of high precision, takes a mask of ones.
    const bool is_of_ones = tensors["query"].scalar_type() == at::kBFloat16 ||
                            param_.kernelType == SelfAttentionParam::KERNELTYPE_HIGH_PRECISION;
    const bool is_norm = param_.maskType == SelfAttentionParam::MASK_TYPE_NORM && !has_heads;
    constexpr double kOfOne = -3e38;
    return is_of_ones && is_norm ? mask * c10::Scalar(kOfOne) : mask;
  }

  // The bias of alibi: slope * (query - key), slope * sqrt(query - key), or slope * key. Later keys
  // are hidden, as the corner of a mask says that ATB takes beside the slopes.
  at::Tensor slope_bias(const at::Tensor& slopes, int64_t queries, int64_t keys) const {
    const at::Tensor key = at::arange(keys, at::kFloat);
    const at::Tensor query =
        at::arange(queries, at::kFloat).unsqueeze(1) + static_cast<double>(keys - queries);
    at::Tensor distance = (query - key).clamp_min(0);
    if (param_.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS_SQRT) {
      distance = distance.sqrt();
    } else if (param_.maskType == SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS_LEFT_ALIGN) {
      distance = key.expand({queries, keys});
    }
    return slopes.view({-1, 1, 1}) * distance + causal_bias(queries, keys);
  }

  SelfAttentionParam param_;
  int64_t key_heads_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::SelfAttentionParam, aclnn_host::SelfAttention, "SelfAttentionOperation")
