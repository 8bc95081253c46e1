#include "host_cann/arguments/compute_type.h"

namespace aclnn_host {

RoundingKernel rounding_to(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return rounding_kernels().half;
    case ACL_BF16: return rounding_kernels().bfloat16;
    default: return nullptr;
  }
}

namespace {

enum : int8_t {
  kKeepDtype,
  kAllowFp32DownPrecision,
  kUseFp16,
  kUseHf32,
  kUseFp32Add,
  kUseHighPrecMode,
};

}  // namespace

int8_t last_cube_math_type(CubeMathTypes types, CannRelease release) {
  if (release <= CannRelease::k9_0) return kUseHighPrecMode;
  const bool takes_sums = types == CubeMathTypes::kOfForward || release <= CannRelease::k9_1;
  return takes_sums ? kUseFp32Add : kUseHf32;
}

const char* cube_math_types_text(int64_t last) {
  switch (last) {
    case kUseHf32:
      return "0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16) or 3 (USE_HF32)";
    case kUseFp32Add:
      return "0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16), 3 (USE_HF32) or 4 "
             "(USE_FP32_ADD)";
    default:
      return "0 (KEEP_DTYPE), 1 (ALLOW_FP32_DOWN_PRECISION), 2 (USE_FP16), 3 (USE_HF32), 4 "
             "(USE_FP32_ADD) or 5 (USE_HIGH_PREC_MODE)";
  }
}

bool computes_float(int64_t cube_math_type, Product product) {
  return has_fp32_units(product) || cube_math_type == kAllowFp32DownPrecision ||
         cube_math_type == kUseFp16 || cube_math_type == kUseHighPrecMode;
}

ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product) {
  // USE_FP32_ADD and USE_HIGH_PREC_MODE concern sums, which are FLOAT here anyway.
  const bool keeps = cube_math_type == kKeepDtype || cube_math_type == kUseFp32Add ||
                     cube_math_type == kUseHighPrecMode;
  if (promoted == ACL_DOUBLE) return {ACL_DOUBLE, nullptr, nullptr};
  aclDataType dtype = promoted;
  if (cube_math_type == kUseFp16 || (promoted == ACL_FLOAT && !has_fp32_units(product))) {
    dtype = ACL_FLOAT16;
  }
  if (dtype != ACL_FLOAT) return {dtype, rounding_to(dtype), rounding_to(dtype)};
  if (keeps) return {ACL_FLOAT, nullptr, nullptr};
  const RoundingKernels& kernels = rounding_kernels();
  return {ACL_FLOAT, product == Product::kAscend950 ? kernels.hf32_10 : kernels.hf32_11, nullptr};
}

}  // namespace aclnn_host
