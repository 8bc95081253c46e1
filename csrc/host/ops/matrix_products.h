// Matrix products of FLOAT, divided among threads.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "ops/plan.h"

namespace aclnn_host {

// The same bits for any number of threads.
class MatrixProducts {
 public:
  MatrixProducts() = default;
  // For so many products of numbers.
  MatrixProducts(double count, Workspace& workspace);

  // With its memory, in which `multiply` packs the matrices.
  MatrixProducts in(void* workspace) const;

  // out = left x right, or added to it, for matrices of FLOAT; with a first dimension for each of
  // as many. Where `out` has none, their products are added up. A left matrix may stand for all.
  // `out` has columns side by side, the others columns or rows.
  void multiply(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out,
                bool adds) const;

 private:
  int64_t parts_ = 0;  // that are computed at a time
  int64_t scratch_size_ = 0;
  uint64_t offset_ = 0;
  char* scratch_ = nullptr;
};

}  // namespace aclnn_host
