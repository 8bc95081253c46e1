// The reference: what the kernels of matrix products must compute, with sums in double.

#include "kernels/matmul.h"

namespace aclnn_host {
namespace {

void multiply(const MatrixProduct& p, void*) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      float& out = p.out[i * p.out_stride + j];
      double sum = p.adds ? out : 0.0;
      for (int64_t k = 0; k < p.depth; ++k) {
        sum += static_cast<double>(*p.left.from(i, k).data) * *p.right.from(k, j).data;
      }
      out = static_cast<float>(sum);
    }
  }
}

}  // namespace

template <>
const MatmulKernels& matmul_kernels<Capability::kReference>() noexcept {
  static constexpr MatmulKernels kKernels = {1, 1, 0, multiply};
  return kKernels;
}

}  // namespace aclnn_host
