// Shared by the normalisations over rows.
#pragma once

#include <utility>

#include <ATen/TensorOperators.h>

#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"

namespace aclnn_torch {

// The compute dtype, and the dtype of rstd and dgamma.
inline at::ScalarType real_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Checks the sizes that are known; `why` gives the reason for the expected shape.
inline void check_shape(const char* api, Named argument, c10::SymIntArrayRef expected,
                        const char* why, aclnnStatus status) {
  const auto given = argument.tensor.sym_sizes();
  bool fits = given.size() == expected.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    const auto a = given[i].maybe_as_int();
    const auto b = expected[i].maybe_as_int();
    fits = !a || !b || *a == *b;
  }
  if (fits) return;
  refuse(api, argument.tensor.device(),
         c10::str(argument.name, " has shape ", given, ", expected ", expected, ", ", why), status);
}

// The operators' computation in ATen operations, for tangents and higher derivatives. Tensors are
// matrices of R rows and D columns in the compute dtype; rstd is a column, gamma a row.
class Rows {
 public:
  Rows(const Tensor& x, c10::SymInt rows, c10::SymInt columns)
      : real_(real_type(x)), rows_(std::move(rows)), columns_(std::move(columns)) {}

  Tensor matrix(const Tensor& tensor) const { return shaped(tensor, {rows_, columns_}); }
  Tensor column(const Tensor& tensor) const { return shaped(tensor, {rows_, 1}); }
  Tensor row(const Tensor& tensor) const { return shaped(tensor, {1, columns_}); }

  Tensor sum(const Tensor& matrix) const { return matrix.sum(1, /*keepdim=*/true); }
  Tensor mean(const Tensor& matrix) const { return sum(matrix) / at::Scalar(columns_); }

 private:
  Tensor shaped(const Tensor& tensor, c10::SymIntArrayRef sizes) const {
    return tensor.to(real_).reshape_symint(sizes);
  }

  at::ScalarType real_;
  c10::SymInt rows_;
  c10::SymInt columns_;
};

// Reshapes a matrix, row or column to the shape and dtype of `like`.
inline Tensor restored(const Tensor& values, const Tensor& like) {
  return values.reshape_symint(like.sym_sizes()).to(like.scalar_type());
}

}  // namespace aclnn_torch
