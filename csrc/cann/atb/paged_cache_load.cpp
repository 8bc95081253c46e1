// PagedCacheLoad: the keys and values of sequences, one after another, from caches in blocks.
#include "atb/atb_acl.h"
#include "cann/atb/atb_operation.h"
#include "cann/rows/integers.h"

namespace aclnn_host {
namespace {

using atb::infer::PagedCacheLoadParam;

bool is_nz(const PagedCacheLoadParam& param) {
  return param.kvCacheCfg == PagedCacheLoadParam::K_CACHE_V_CACHE_NZ;
}

std::vector<AtbTensor> load_inputs(const PagedCacheLoadParam& param) {
  std::vector<AtbTensor> inputs = {{"keyCache"},    {"valueCache"}, {"blockTables"},
                                   {"contextLens"}, {"key"},        {"value"}};
  if (!is_nz(param)) {
    inputs.push_back(param.hasSeqStarts ? AtbTensor{"seqStarts"} : optional("seqStarts"));
  }
  return inputs;
}

// Cache (blocks, block, heads, size) of tokens (tokens, heads, size); in FRACTAL_NZ cache
// (blocks, pieces of a token, block, size of a piece) of tokens (tokens, elements), where a piece
// has 32 bytes. contextLens has the length of each sequence, or with isSeqLensCumsumMode the token
// of the result at which each begins, and the end of the last. A sequence starts in its table at
// the block that has token seqStarts. What is behind the last sequence stays as it is.
class PagedCacheLoad final : public AtbKernel {
 public:
  explicit PagedCacheLoad(const PagedCacheLoadParam& param)
      : AtbKernel("PagedCacheLoadOperation", load_inputs(param), {"keyOut", "valueOut"}),
        param_(param) {
    EXPECT_OR(ERROR_INVALID_PARAM,
              is_nz(param) || param.kvCacheCfg == PagedCacheLoadParam::K_CACHE_V_CACHE_ND,
              "kvCacheCfg is ", static_cast<int>(param.kvCacheCfg), ", expected 0 or 1");
    EXPECT_OR(ERROR_INVALID_PARAM,
              !is_nz(param) || (!param.hasSeqStarts && !param.isSeqLensCumsumMode),
              "kvCacheCfg is 0, FRACTAL_NZ, expected hasSeqStarts and isSeqLensCumsumMode to be "
              "false");
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "blockTables", {2});
    expect_rank(in, "contextLens", {1});
    check_cache(in, "key", "keyCache");
    check_cache(in, "value", "valueCache");
    const c10::IntArrayRef keys = in.shape("keyCache");
    expect_size(in, "valueCache", 0, keys[0], "as many blocks as keyCache has");
    expect_size(in, "valueCache", block_dim(), keys[block_dim()], "the block of keyCache");
    if (!is_nz(param_)) expect_size(in, "valueCache", 2, keys[2], "as many heads as keyCache has");
    expect_size(in, "value", 0, in.shape("key")[0], "as many tokens as key has");
    const int64_t batch = in.shape("blockTables")[0];
    expect_size(in, "contextLens", 0, param_.isSeqLensCumsumMode ? batch + 1 : batch,
                param_.isSeqLensCumsumMode ? "one more than blockTables has rows"
                                           : "one for each row of blockTables");
    if (param_.hasSeqStarts) {
      expect_rank(in, "seqStarts", {1});
      expect_size(in, "seqStarts", 0, batch, "one for each row of blockTables");
    }
    check_dtypes(in);
    return {in["key"], in["value"]};
  }

  void compute(const AtbTensors& tensors) const override {
    const std::vector<Sequence> sequences = sequences_of(tensors);
    load(tensors, sequences, "key", "keyCache", 0);
    load(tensors, sequences, "value", "valueCache", 1);
  }

 private:
  // Tokens `begin` to `begin + length` of the result, from blocks of the cache.
  struct Sequence {
    int64_t begin, length;
    at::Tensor blocks;
  };

  size_t block_dim() const { return is_nz(param_) ? 2 : 1; }

  void check_cache(const AtbInputs& in, const char* name, const char* cache) const {
    expect_rank(in, cache, {4});
    expect_rank(in, name, {is_nz(param_) ? 2u : 3u});
    const c10::IntArrayRef shape = in.shape(cache);
    const int64_t piece = in[cache].dtype == ACL_INT8 ? 32 : 16;
    if (is_nz(param_)) {
      expect_size(in, cache, 3, piece, "the elements of a piece");
      EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape[2] % 16 == 0, cache, " has blocks of ", shape[2],
                ", expected a multiple of 16");
      expect_size(in, name, 1, shape[1] * piece, "the elements of a token in the cache");
      return;
    }
    expect_size(in, name, 1, shape[2], "the heads of the cache");
    expect_size(in, name, 2, shape[3], "the size of a head in the cache");
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, shape[2] * shape[3] % piece == 0, "a token of ", cache,
              " has ", shape[2] * shape[3], " elements, expected a multiple of ", piece);
  }

  void check_dtypes(const AtbInputs& in) const {
    const auto row = [&](aclDataType key, aclDataType value) {
      AtbDtypes dtypes = {key, value, ACL_INT32, ACL_INT32, key, value};
      if (!is_nz(param_)) dtypes.push_back(ACL_INT32);
      return dtypes;
    };
    const AtbDtypes halves = row(ACL_FLOAT16, ACL_FLOAT16), bfloats = row(ACL_BF16, ACL_BF16),
                    bytes = row(ACL_INT8, ACL_INT8);
    if (is_nz(param_)) {
      expect_dtypes(in,
                    {halves, bytes, bfloats, row(ACL_INT8, ACL_FLOAT16), row(ACL_INT8, ACL_BF16)});
    } else {
      expect_dtypes(in, {halves, bytes, bfloats});
    }
  }

  std::vector<Sequence> sequences_of(const AtbTensors& tensors) const {
    const at::Tensor &tables = tensors["blockTables"], &cache = tensors["keyCache"];
    const int64_t block = cache.size(static_cast<int64_t>(block_dim())),
                  tokens = tensors["key"].size(0);
    const std::vector<int64_t> lengths = integers_in(tensors["contextLens"]);
    std::vector<int64_t> starts(static_cast<size_t>(tables.size(0)), 0);
    if (param_.hasSeqStarts) starts = integers_in(tensors["seqStarts"]);
    std::vector<Sequence> sequences;
    int64_t begin = param_.isSeqLensCumsumMode ? lengths[0] : 0;
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t length = param_.isSeqLensCumsumMode ? lengths[i + 1] - begin : lengths[i];
      EXPECT(begin >= 0 && length >= 0 && starts[i] >= 0, "sequence ", i, " has ", length,
             " tokens after ", starts[i], " and begins at token ", begin, ", expected 0 or more");
      EXPECT(begin + length <= tokens, "contextLens ends at token ", begin + length,
             ", expected at most ", tokens, ", the tokens of key");
      const int64_t first = starts[i] / block, count = (length + block - 1) / block;
      EXPECT(first + count <= tables.size(1), "sequence ", i, " has ", length, " tokens after ",
             starts[i], ", expected at most ", tables.size(1), " blocks of ", block,
             ", a row of blockTables");
      if (count > 0) {
        const at::Tensor blocks =
            tables.select(0, static_cast<int64_t>(i)).narrow(0, first, count).to(at::kLong);
        check_bounds("blockTables", blocks, cache.size(0));
        sequences.push_back({begin, length, blocks});
      }
      begin += length;
    }
    return sequences;
  }

  void load(const AtbTensors& tensors, const std::vector<Sequence>& sequences, const char* name,
            const char* cache, size_t output) const {
    const at::Tensor& tokens = tensors.replacing(name, output);
    for (const Sequence& sequence : sequences) {
      at::Tensor blocks = tensors[cache].index_select(0, sequence.blocks);
      if (is_nz(param_)) blocks = blocks.transpose(1, 2).flatten(2);
      tokens.narrow(0, sequence.begin, sequence.length)
          .copy_(blocks.flatten(0, 1).narrow(0, 0, sequence.length));
    }
  }

  PagedCacheLoadParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::PagedCacheLoadParam, aclnn_host::PagedCacheLoad,
              "PagedCacheLoadOperation")

atb::Status AtbPagedCacheLoadGetWorkspaceSize(
    const aclTensor* keyCache, const aclTensor* valueCache, const aclTensor* blockTables,
    const aclTensor* contextLens, const aclTensor* key, const aclTensor* value,
    const aclTensor* seqStarts, int8_t kvCacheCfg, bool isSeqLensCumsumType, bool hasSeqStarts,
    uint64_t* workspaceSize, atb::Operation** op, atb::Context* context) {
  atb::infer::PagedCacheLoadParam param;
  param.kvCacheCfg = static_cast<atb::infer::PagedCacheLoadParam::KvCacheCfg>(kvCacheCfg);
  param.isSeqLensCumsumMode = isSeqLensCumsumType;
  param.hasSeqStarts = hasSeqStarts;
  using aclnn_host::AtbArgument;
  std::vector<AtbArgument> inputs = {{"keyCache", keyCache},
                                     {"valueCache", valueCache},
                                     {"blockTables", blockTables},
                                     {"contextLens", contextLens},
                                     {"key", key},
                                     {"value", value}};
  if (!aclnn_host::is_nz(param)) {
    inputs.push_back({"seqStarts", hasSeqStarts ? seqStarts : nullptr});
  }
  const AtbArgument outputs[] = {{"key", key}, {"value", value}};
  return aclnn_host::prepare(
      "AtbPagedCacheLoadGetWorkspaceSize",
      [&](atb::Operation** made) { return atb::CreateOperation(param, made); }, inputs, outputs,
      workspaceSize, op, context);
}

atb::Status AtbPagedCacheLoad(void* workspace, uint64_t workspaceSize, atb::Operation* op,
                              atb::Context* context) {
  return aclnn_host::execute("AtbPagedCacheLoad", workspace, workspaceSize, op, context);
}
