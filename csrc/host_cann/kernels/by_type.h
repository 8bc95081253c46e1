#pragma once

#include "acl/acl_base.h"

namespace aclnn_host {

// The kernels for each compute type.
template <class Kernels>
struct KernelsByType {
  Kernels float32;
  Kernels float16;
  Kernels bfloat16;
  Kernels float64;

  const Kernels& find(aclDataType dtype) const {
    switch (dtype) {
      case ACL_FLOAT16: return float16;
      case ACL_BF16: return bfloat16;
      case ACL_DOUBLE: return float64;
      default: return float32;
    }
  }
};

}  // namespace aclnn_host
