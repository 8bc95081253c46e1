#pragma once

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// The products that an operator may distinguish, in the order of CANN's SocVersion where it matters
// (kAscend910B and later have BF16), and `host`, a superset of this project.
enum class Product { kAscend310P, kAscend910, kAscend910B, kAscend910_93, kAscend950, kHost };

ACLNN_HOST_INTERNAL Product current_product() noexcept;
ACLNN_HOST_INTERNAL const char* product_name(Product product) noexcept;

// BFLOAT16 exists on Atlas A2 and later.
inline bool has_bfloat16(Product product) {
  return product >= Product::kAscend910B;
}

}  // namespace aclnn_host
