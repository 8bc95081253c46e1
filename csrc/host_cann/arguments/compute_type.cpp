#include "host_cann/arguments/compute_type.h"

namespace aclnn_host {

RoundingKernel rounding_to(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return rounding_kernels().half;
    case ACL_BF16: return rounding_kernels().bfloat16;
    default: return nullptr;
  }
}

ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product) {
  constexpr int8_t kHalf = 2;
  // USE_FP32_ADD concerns sums, which are FLOAT here anyway.
  const bool keeps = cube_math_type == 0 || cube_math_type == 4;
  if (promoted == ACL_DOUBLE) return {ACL_DOUBLE, nullptr, nullptr};
  aclDataType dtype = promoted;
  if (cube_math_type == kHalf || (promoted == ACL_FLOAT && !keeps && !has_fp32_units(product))) {
    dtype = ACL_FLOAT16;
  }
  if (dtype != ACL_FLOAT) return {dtype, rounding_to(dtype), rounding_to(dtype)};
  if (keeps) return {ACL_FLOAT, nullptr, nullptr};
  const RoundingKernels& kernels = rounding_kernels();
  return {ACL_FLOAT, product == Product::kAscend950 ? kernels.hf32_10 : kernels.hf32_11, nullptr};
}

}  // namespace aclnn_host
