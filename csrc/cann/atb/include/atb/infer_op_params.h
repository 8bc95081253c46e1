// The parameters of the operations that the host CANN has. The fields, their order and the reserved
// bytes are ATB's.
#pragma once

#include <cstdint>

#include <acl/acl.h>

#include "atb/svector.h"

#pragma GCC visibility push(default)
namespace atb {
namespace infer {

enum InputLayout : int { TYPE_BSND = 0, TYPE_BNSD };

enum QuantType : int {
  QUANT_UNDEFINED = 0,
  QUANT_UNQUANT = 0,
  QUANT_INT4 = 1,
  QUANT_INT8 = 2,
  QUANT_INT16 = 3,
  QUANT_FLOAT8 = 4,
  QUANT_FLOAT16 = 5
};

enum DynamicQuantType : int {
  DYNAMIC_QUANT_UNDEFINED = 0,
  DYNAMIC_QUANT_SYMMETRIC,
  DYNAMIC_QUANT_ASYMMETRIC
};

// Elementwise functions.
struct ElewiseParam {
  enum ElewiseType : int {
    ELEWISE_UNDEFINED = 0,
    ELEWISE_CAST,
    ELEWISE_MULS,
    ELEWISE_COS,
    ELEWISE_SIN,
    ELEWISE_NEG,
    ELEWISE_QUANT,
    ELEWISE_LOGICAL_NOT,
    ELEWISE_ADD,
    ELEWISE_MUL,
    ELEWISE_REALDIV,
    ELEWISE_LOGICAL_AND,
    ELEWISE_LOGICAL_OR,
    ELEWISE_LESS,
    ELEWISE_GREATER,
    ELEWISE_SUB,
    ELEWISE_EQUAL,
    ELEWISE_QUANT_PER_CHANNEL,
    ELEWISE_DEQUANT_PER_CHANNEL,
    ELEWISE_DYNAMIC_QUANT,
    ELEWISE_TANH,
    ELEWISE_TYPE_MAX
  };
  struct QuantParam {
    float inputScale = 1.0f;
    bool asymmetric = false;
    int inputOffset = 0;
    uint8_t rsv[20] = {0};
  };
  struct MulsParam {
    float varAttr = 0.0f;
    uint8_t rsv[12] = {0};
  };
  ElewiseType elewiseType = ELEWISE_UNDEFINED;
  QuantParam quantParam;
  MulsParam mulsParam;
  aclDataType outTensorType = ACL_DT_UNDEFINED;
  uint8_t rsv[8] = {0};
};

// Writes the keys and values of tokens to caches in blocks.
struct ReshapeAndCacheParam {
  enum CompressType : int {
    COMPRESS_TYPE_UNDEFINED = 0,
    COMPRESS_TYPE_KVHEAD,
    COMPRESS_TYPE_KVHEAD_ROPE
  };
  enum KvCacheCfg : int { K_CACHE_V_CACHE = 0, K_CACHE_V_BYPASS, K_CACHE_V_CACHE_NZ };
  CompressType compressType = COMPRESS_TYPE_UNDEFINED;
  KvCacheCfg kvCacheCfg = K_CACHE_V_CACHE;
  uint8_t rsv[16] = {0};
};

// Collects the keys and values of sequences from caches in blocks.
struct PagedCacheLoadParam {
  enum KvCacheCfg : int8_t { K_CACHE_V_CACHE_NZ = 0, K_CACHE_V_CACHE_ND };
  KvCacheCfg kvCacheCfg = K_CACHE_V_CACHE_NZ;
  bool isSeqLensCumsumMode = false;
  bool hasSeqStarts = false;
  uint8_t rsv[61] = {0};
};

// Normalisation by the root mean square, alone or after a sum with a residual.
struct RmsNormParam {
  enum RmsNormType : int {
    RMS_NORM_UNDEFINED = 0,
    RMS_NORM_NORM,
    RMS_NORM_PRENORM,
    RMS_NORM_POSTNORM
  };
  enum PrecisionMode : int { HIGH_PRECISION_MODE = 0, HIGH_PERFORMANCE_MODE };
  enum ModelType : int { LLAMA_MODEL = 0, GEMMA_MODEL };
  struct NormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    double layerNormEps = 1e-5;
    bool rstd = false;
    PrecisionMode precisionMode = HIGH_PRECISION_MODE;
    ModelType modelType = LLAMA_MODEL;
    DynamicQuantType dynamicQuantType = DYNAMIC_QUANT_UNDEFINED;
    uint8_t rsv[32] = {0};
  };
  struct PreNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    bool hasBias = false;
    uint8_t rsv[23] = {0};
  };
  struct PostNormParam {
    QuantType quantType = QUANT_UNQUANT;
    float epsilon = 1e-5;
    bool hasBias = false;
    uint8_t rsv[23] = {0};
  };
  RmsNormType layerType = RMS_NORM_UNDEFINED;
  NormParam normParam;
  PreNormParam preNormParam;
  PostNormParam postNormParam;
  uint8_t rsv[8] = {0};
};

// A product of matrices.
struct LinearParam {
  enum MatmulType : uint8_t { MATMUL_UNDEFINED = 0, MATMUL_EIN_SUM };
  enum QuantMode : uint8_t { QUANT_UNDEFINED, PER_CHANNEL, PER_TOKEN };
  bool transposeA = false;
  bool transposeB = true;
  bool hasBias = true;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  bool enAccum = false;
  MatmulType matmulType = MATMUL_UNDEFINED;
  QuantMode quantMode = QUANT_UNDEFINED;
  uint8_t rsv[21] = {0};
};

// Rotary position embedding of queries and keys.
struct RopeParam {
  int32_t rotaryCoeff = 4;
  int32_t cosFormat = 0;
  uint8_t rsv[8] = {0};
};

// Attention of sequences that stand one after the other, or with keys in blocks.
struct SelfAttentionParam {
  enum CalcType : int { UNDEFINED = 0, ENCODER, DECODER, PA_ENCODER, PREFIX_ENCODER };
  enum KernelType : int { KERNELTYPE_DEFAULT = 0, KERNELTYPE_HIGH_PRECISION, KERNELTYPE_EXP_M8V2 };
  enum ClampType : int { CLAMP_TYPE_UNDEFINED = 0, CLAMP_TYPE_MIN_MAX };
  enum MaskType : int {
    MASK_TYPE_UNDEFINED = 0,
    MASK_TYPE_NORM,
    MASK_TYPE_ALIBI,
    MASK_TYPE_NORM_COMPRESS,
    MASK_TYPE_ALIBI_COMPRESS,
    MASK_TYPE_ALIBI_COMPRESS_SQRT,
    MASK_TYPE_ALIBI_COMPRESS_LEFT_ALIGN,
    MASK_TYPE_SLIDING_WINDOW_NORM,
    MASK_TYPE_SLIDING_WINDOW_COMPRESS,
    MASK_TYPE_CAUSAL_MASK
  };
  enum KvCacheCfg : int { K_CACHE_V_CACHE = 0, K_BYPASS_V_BYPASS };
  enum ScaleType : int { SCALE_TYPE_TOR = 0, SCALE_TYPE_LOGN, SCALE_TYPE_MAX };
  enum QuantType : int {
    TYPE_QUANT_UNDEFINED = 0,
    TYPE_QUANT_UNQUANT = 0,
    TYPE_DEQUANT_FUSION = 1,
    TYPE_QUANT_QKV_OFFLINE = 2,
    TYPE_QUANT_QKV_ONLINE = 3
  };
  enum CacheType : int8_t { CACHE_TYPE_NORM = 0, CACHE_TYPE_SWA = 1 };
  QuantType quantType = TYPE_QUANT_UNQUANT;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  int32_t headNum = 0;
  int32_t kvHeadNum = 0;
  float qScale = 1;
  float qkScale = 1;
  bool batchRunStatusEnable = false;
  uint32_t isTriuMask = 0;
  CalcType calcType = UNDEFINED;
  KernelType kernelType = KERNELTYPE_DEFAULT;
  ClampType clampType = CLAMP_TYPE_UNDEFINED;
  float clampMin = 0;
  float clampMax = 0;
  MaskType maskType = MASK_TYPE_UNDEFINED;
  KvCacheCfg kvcacheCfg = K_CACHE_V_CACHE;
  ScaleType scaleType = SCALE_TYPE_TOR;
  InputLayout inputLayout = TYPE_BSND;
  uint32_t mlaVHeadSize = 0;
  CacheType cacheType = CACHE_TYPE_NORM;
  uint32_t windowSize = 0;
  uint8_t rsv[64] = {0};
};

// Attention with keys and values in blocks.
struct PagedAttentionParam {
  int32_t headNum = 0;
  float qkScale = 1.0;
  int32_t kvHeadNum = 0;
  enum MaskType : int {
    UNDEFINED = 0,
    MASK_TYPE_NORM,
    MASK_TYPE_ALIBI,
    MASK_TYPE_SPEC,
    MASK_TYPE_MASK_FREE,
    MASK_TYPE_NORM_COMPRESS
  };
  MaskType maskType = UNDEFINED;
  bool batchRunStatusEnable = false;
  enum QuantType : int {
    TYPE_QUANT_UNDEFINED = 0,
    TYPE_QUANT_UNQUANT = 0,
    TYPE_DEQUANT_FUSION = 1,
    TYPE_QUANT_QKV_OFFLINE = 2,
    TYPE_QUANT_QKV_ONLINE = 3
  };
  QuantType quantType = TYPE_QUANT_UNQUANT;
  aclDataType outDataType = ACL_DT_UNDEFINED;
  bool hasQuantOffset = false;
  enum CompressType : int {
    COMPRESS_TYPE_UNDEFINED = 0,
    COMPRESS_TYPE_KVHEAD,
    COMPRESS_TYPE_KVHEAD_ROPE,
    COMPRESS_TYPE_MAX
  };
  CompressType compressType = COMPRESS_TYPE_UNDEFINED;
  enum CalcType : int { CALC_TYPE_UNDEFINED = 0, CALC_TYPE_SPEC };
  CalcType calcType = CALC_TYPE_UNDEFINED;
  enum ScaleType : int { SCALE_TYPE_TOR = 0, SCALE_TYPE_LOGN, SCALE_TYPE_MAX };
  ScaleType scaleType = SCALE_TYPE_TOR;
  InputLayout inputLayout = TYPE_BSND;
  uint32_t mlaVHeadSize = 0;
  float qScale = 0;
  uint8_t rsv[64] = {0};
};

// Converts between a matrix and its blocks of FRACTAL_NZ.
struct TransdataParam {
  enum TransdataType : int { UNDEFINED = 0, FRACTAL_NZ_TO_ND, ND_TO_FRACTAL_NZ };
  TransdataType transdataType = UNDEFINED;
  SVector<int64_t> outCrops = {0, 0};
  uint8_t rsv[8] = {0};
};

// Keeps the values of the best groups of experts, and sets the others to 0.
struct GroupTopkParam {
  int32_t groupNum = 1;
  int32_t k = 0;
  enum GroupMultiFlag : uint16_t { UNDEFINED = 0, SUM_MULTI_MAX };
  GroupMultiFlag groupMultiFlag = UNDEFINED;
  uint16_t n = 1;
  uint8_t rsv[12] = {0};
};

}  // namespace infer
}  // namespace atb
#pragma GCC visibility pop
