// Matrix products of FLOAT and BFLOAT16, divided among threads.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "host_cann/arguments/plan.h"

namespace aclnn_host {

// The same bits for any number of threads.
class MatrixProducts {
 public:
  MatrixProducts() = default;
  // For so many products of numbers.
  MatrixProducts(double count, aclDataType dtype, Workspace& workspace);

  // Whether they multiply the type, and faster than ATen does.
  static bool supports(aclDataType dtype);

  // Whether there are any: ATen multiplies otherwise.
  explicit operator bool() const { return parts_ > 0; }

  // With its memory, in which `multiply` packs the matrices.
  MatrixProducts in(void* workspace) const;

  // out = left x right + bias, for matrices of the type; with a first dimension for each of as
  // many. Where `out` has none, their products are added up. A left matrix may stand for all.
  // `out` has columns side by side, the others columns or rows. The bias, unless it is undefined,
  // is [columns] or [rows, 1], without gaps.
  void multiply(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
                const at::Tensor& out) const;

 private:
  template <class T>
  void multiply_elements(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
                         const at::Tensor& out) const;

  int64_t parts_ = 0;  // that are computed at a time
  int64_t scratch_size_ = 0;
  uint64_t offset_ = 0;
  char* scratch_ = nullptr;
};

}  // namespace aclnn_host
