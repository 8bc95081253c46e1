#pragma once

#include "acl/acl_base.h"
#include "kernels/elementwise.h"

namespace aclnn_host {

// One elementwise kernel for each floating type.
struct FloatKernels {
  ElementwiseKernel float32;
  ElementwiseKernel float16;
  ElementwiseKernel bfloat16;
  ElementwiseKernel float64;

  ElementwiseKernel find(aclDataType dtype) const {
    switch (dtype) {
      case ACL_FLOAT: return float32;
      case ACL_FLOAT16: return float16;
      case ACL_BF16: return bfloat16;
      case ACL_DOUBLE: return float64;
      default: return nullptr;
    }
  }
};

}  // namespace aclnn_host
