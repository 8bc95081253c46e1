#pragma once

#include "cann/rows/row.h"

// The product of two quantised matrices in each quantisation mode. CANN's documents of the
// aclnnQuantMatmul functions name the modes after the scales of x1 and x2: per tensor (T), channel
// (C), token (K), group (G) or block (B), and MX.
namespace aclnn_host {

// The names of the arguments that functions name differently; null if a function lacks one.
struct QuantizedMatmulNames {
  const char* x1_scale = "x1Scale";
  const char* x2_scale = "x2Scale";
  const char* x2_offset = "x2Offset";
  const char* bias = "bias";
  const char* group_size = "groupSize";
};

struct QuantizedMatmul {
  StoredTensor x1;  // (..., m, k)
  StoredTensor x2;  // (..., k, n)
  std::optional<StoredTensor> x1_scale{};
  StoredTensor x2_scale;
  OptionalTensor y_scale{};
  OptionalTensor x2_offset{};
  OptionalTensor y_offset{};
  OptionalTensor bias{};
  bool transpose_x1 = false;  // x1 and its scales of groups are (..., k, m)
  bool transpose_x2 = false;
  int64_t group_size = 0;  // of k in the lowest 16 bits, of n in the next 16, of m above
  at::ScalarType out;
  bool is_blocked = false;  // x2 is in FRACTAL_NZ, with that function's combinations of types
  QuantizedMatmulNames names{};
};

// The result before it is rounded to the output's type; INT8 and INT32 results are final.
at::Tensor product_of(const QuantizedMatmul& call);

}  // namespace aclnn_host
