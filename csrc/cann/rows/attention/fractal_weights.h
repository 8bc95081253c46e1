#pragma once

#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host {

// A weight as a matrix. A FRACTAL_NZ weight may be described by the sizes of its blocks in memory.
inline at::Tensor weight_matrix(const char* name, const StoredTensor& weight,
                                bool must_be_fractal) {
  const bool is_blocks = is_fractal_nz(weight.format);
  EXPECT(is_blocks || !must_be_fractal, name, " has format ", static_cast<int>(weight.format),
         ", expected FRACTAL_NZ (", static_cast<int>(ACL_FORMAT_FRACTAL_NZ), ")");
  at::Tensor matrix = weight.elements;
  if (is_blocks && matrix.dim() == 4) {
    matrix = matrix.permute({1, 2, 0, 3}).flatten(2, 3).flatten(0, 1);
  }
  expect_dims(name, matrix, 2);
  return matrix;
}

}  // namespace aclnn_host
