// ReshapeAndCache: the keys and values of tokens go to slots of caches in blocks.
#include "cann/atb/atb_operation.h"
#include "cann/rows/attention/updated_cache.h"

namespace aclnn_host {
namespace {

using atb::infer::ReshapeAndCacheParam;

// Cache (blocks, block, heads, size) of tokens (tokens, heads, size); in FRACTAL_NZ cache
// (blocks, pieces of a token, block, size of a piece), where a piece has 32 bytes.
class ReshapeAndCache final : public AtbKernel {
 public:
  explicit ReshapeAndCache(const ReshapeAndCacheParam& param)
      : AtbKernel("ReshapeAndCacheOperation",
                  has_values(param)
                      ? std::vector<AtbTensor>{{"key"},
                                               {"value"},
                                               {"keyCache"},
                                               {"valueCache"},
                                               {"slotMapping"}}
                      : std::vector<AtbTensor>{{"key"}, {"keyCache"}, {"slotMapping"}},
                  has_values(param) ? std::vector{"keyCacheOut", "valueCacheOut"}
                                    : std::vector{"keyCacheOut"}),
        param_(param) {
    EXPECT_OR(ERROR_INVALID_PARAM,
              param.kvCacheCfg >= ReshapeAndCacheParam::K_CACHE_V_CACHE &&
                  param.kvCacheCfg <= ReshapeAndCacheParam::K_CACHE_V_CACHE_NZ,
              "kvCacheCfg is ", param.kvCacheCfg, ", expected 0 to 2");
    const auto type = param.compressType;
    EXPECT_OR(ERROR_INVALID_PARAM,
              type >= ReshapeAndCacheParam::COMPRESS_TYPE_UNDEFINED &&
                  type <= ReshapeAndCacheParam::COMPRESS_TYPE_KVHEAD_ROPE,
              "compressType is ", type, ", expected 0 to 2");
    if (type != ReshapeAndCacheParam::COMPRESS_TYPE_UNDEFINED) {
      EXPECT_OR(ERROR_INVALID_PARAM, param.kvCacheCfg == ReshapeAndCacheParam::K_CACHE_V_CACHE,
                "compressType is ", type, " and kvCacheCfg is ", param.kvCacheCfg,
                ", expected a compressType of 0");
      refuse_parameters(name, {"compressType is ", type});
    }
  }

  std::vector<AtbDesc> infer(const AtbInputs& in) const override {
    expect_rank(in, "slotMapping", {1});
    check_cache(in, "key", "keyCache");
    const int64_t tokens = in.shape("key")[0];
    if (!in_pieces()) {
      expect_size(in, "slotMapping", 0, tokens, "one for each token of key");
    }
    if (!has_values(param_)) {
      expect_dtypes(in, {{ACL_FLOAT16, ACL_FLOAT16, ACL_INT32},
                         {ACL_INT8, ACL_INT8, ACL_INT32},
                         {ACL_BF16, ACL_BF16, ACL_INT32}});
      return {in["keyCache"]};
    }
    check_cache(in, "value", "valueCache");
    expect_size(in, "value", 0, tokens, "as many tokens as key has");
    expect_size(in, "value", 1, in.shape("key")[1], "as many heads as key has");
    expect_size(in, "slotMapping", 0, tokens, "one for each token of key");
    const size_t block = in_pieces() ? 2 : 1;
    expect_size(in, "valueCache", 0, in.shape("keyCache")[0], "as many blocks as keyCache has");
    expect_size(in, "valueCache", block, in.shape("keyCache")[block], "the block of keyCache");
    if (in_pieces()) {
      expect_dtypes(
          in, {row(ACL_INT8, ACL_FLOAT16), row(ACL_INT8, ACL_BF16), row(ACL_FLOAT16, ACL_FLOAT16),
               row(ACL_BF16, ACL_BF16), row(ACL_FLOAT16, ACL_BF16), row(ACL_BF16, ACL_FLOAT16)});
    } else {
      expect_dtypes(
          in, {row(ACL_FLOAT16, ACL_FLOAT16), row(ACL_INT8, ACL_INT8), row(ACL_BF16, ACL_BF16)});
    }
    return {in["keyCache"], in["valueCache"]};
  }

  void compute(const AtbTensors& tensors) const override {
    const at::Tensor slots = tensors["slotMapping"].to(at::kLong);
    write(tensors, slots, "key", "keyCache", 0);
    if (has_values(param_)) write(tensors, slots, "value", "valueCache", 1);
  }

 private:
  static bool has_values(const ReshapeAndCacheParam& param) {
    return param.kvCacheCfg != ReshapeAndCacheParam::K_CACHE_V_BYPASS;
  }
  static AtbDtypes row(aclDataType key, aclDataType value) {
    return {key, value, key, value, ACL_INT32};
  }
  bool in_pieces() const { return param_.kvCacheCfg == ReshapeAndCacheParam::K_CACHE_V_CACHE_NZ; }

  void check_cache(const AtbInputs& in, const char* name, const char* cache) const {
    expect_rank(in, name, {3});
    expect_rank(in, cache, {4});
    const c10::IntArrayRef token = in.shape(name);
    if (!in_pieces()) {
      expect_size(in, cache, 2, token[1], "the heads of a token");
      expect_size(in, cache, 3, token[2], "the size of a head");
      return;
    }
    const int64_t piece = in[name].dtype == ACL_INT8 ? 32 : 16;
    const int64_t size = token[1] * token[2];
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, size % piece == 0, "a token of ", name, " has ", size,
              " elements, expected a multiple of ", piece);
    expect_size(in, cache, 1, size / piece, "the pieces of a token");
    expect_size(in, cache, 3, piece, "the elements of a piece");
    EXPECT_OR(ERROR_INVALID_TENSOR_DIM, in.shape(cache)[2] % 16 == 0, cache, " has blocks of ",
              in.shape(cache)[2], ", expected a multiple of 16");
  }

  // A token with a negative slot is padding and is not written.
  void write(const AtbTensors& tensors, const at::Tensor& slots, const char* name,
             const char* cache_name, size_t output) const {
    const at::Tensor& cache = tensors.replacing(cache_name, output);
    const at::Tensor blocks = in_pieces() ? cache.transpose(1, 2) : cache;
    const int64_t last = at::amax(slots).item().toLong(), all = blocks.size(0) * blocks.size(1);
    EXPECT(last < all, "slotMapping has ", last, ", expected less than ", all,
           ", or a negative number for a token that is not written");
    const at::Tensor& tokens = tensors[name];
    write_tokens(blocks, slots, tokens.reshape({tokens.size(0), blocks.size(2), blocks.size(3)}));
  }

  ReshapeAndCacheParam param_;
};

}  // namespace
}  // namespace aclnn_host

ATB_OPERATION(atb::infer::ReshapeAndCacheParam, aclnn_host::ReshapeAndCache,
              "ReshapeAndCacheOperation")
