// Matrix products of FLOAT and BFLOAT16, divided among threads.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "host_cann/arguments/plan.h"

namespace aclnn_host {

// Results do not depend on the number of threads.
class MatrixProducts {
 public:
  MatrixProducts() = default;
  // For this many multiplications.
  MatrixProducts(double count, aclDataType dtype, Workspace& workspace);

  // True if the kernels support the dtype and are faster than ATen.
  static bool supports(aclDataType dtype);

  // False if ATen is to multiply instead.
  explicit operator bool() const { return parts_ > 0; }

  // Returns a copy bound to its memory, in which `multiply` packs the matrices.
  MatrixProducts in(void* workspace) const;

  // out = left x right + bias, for matrices of the dtype, with an optional batch dimension. If
  // `out` has no batch dimension, the products are summed; a left matrix without one is used for
  // the whole batch. `out` has contiguous columns, the others contiguous columns or rows. The bias,
  // unless undefined, is [columns] or [rows, 1], contiguous.
  void multiply(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
                const at::Tensor& out) const;

 private:
  template <class T>
  void multiply_elements(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
                         const at::Tensor& out) const;

  int64_t parts_ = 0;  // computed concurrently
  int64_t scratch_size_ = 0;
  uint64_t offset_ = 0;
  char* scratch_ = nullptr;
};

}  // namespace aclnn_host
