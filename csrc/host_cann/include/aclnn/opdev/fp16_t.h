/* FLOAT16 as a C++ number, for programs that fill host memory with it. */
#ifndef ACLNN_TORCH_OPDEV_FP16_T_H_
#define ACLNN_TORCH_OPDEV_FP16_T_H_

#include <cstdint>

#include "acl/acl_base.h"

namespace op {

/* Rounds to nearest even; computes as float. */
struct fp16_t {
  uint16_t val = 0;

  fp16_t() = default;
  fp16_t(float value) : val(aclFloatToFloat16(value)) {}
  operator float() const { return aclFloat16ToFloat(val); }
};

}  // namespace op

#endif
