// What the matrix units of a product compute in: CANN's PromoteType and cubeMathType.
#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/kernels/rounding.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {

// FP32 matrix units exist on Atlas A2 and later.
inline bool has_fp32_units(Product product) {
  return product >= Product::kAscend910B;
}

// The type of a call's products: its tensors' values are rounded to it, and its gradInput or output
// is a number of it. Sums are FLOAT, or DOUBLE for that.
struct ComputeType {
  aclDataType dtype;
  RoundingKernel round_input;   // of values of another dtype; null where every value fits
  RoundingKernel round_result;  // likewise
};

// Of tensors that CANN promotes to `promoted`, on a product.
ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product);

// Rounds floats to a 16-bit dtype; null for the wider ones.
RoundingKernel rounding_to(aclDataType dtype);

}  // namespace aclnn_host
