// The dtype in which matrix products are computed: CANN's PromoteType and cubeMathType.
#pragma once

#include <cstdint>

#include "acl/acl_base.h"
#include "host_cann/kernels/rounding.h"
#include "host_cann/runtime/cann_release.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {

// FP32 matrix units exist on Atlas A2 and later.
inline bool has_fp32_units(Product product) {
  return product >= Product::kAscend910B;
}

// The dtype of a call's products: the tensors' values are rounded to it, and so is its output or
// gradInput. Sums are FLOAT, or DOUBLE for DOUBLE.
struct ComputeType {
  aclDataType dtype;
  RoundingKernel round_input;   // for values of another dtype; null if every value fits
  RoundingKernel round_result;  // likewise
};

// The convolutions whose checkers of cubeMathType differ.
enum class CubeMathTypes { kOfForward, kOfBackward };

// The largest cubeMathType that a convolution accepts; the smallest is 0 (KEEP_DTYPE).
int8_t last_cube_math_type(CubeMathTypes types, CannRelease release);
// The values up to there, for error texts.
const char* cube_math_types_text(int64_t last);
// True if a product computes FLOAT with this cubeMathType.
bool computes_float(int64_t cube_math_type, Product product);

// For tensors that CANN promotes to `promoted`, on a product.
ComputeType compute_type(aclDataType promoted, int8_t cube_math_type, Product product);

// The kernel that rounds floats to a 16-bit dtype; null for wider dtypes.
RoundingKernel rounding_to(aclDataType dtype);

}  // namespace aclnn_host
