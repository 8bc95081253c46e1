#include "host_cann/ops/linear_cross_entropy/products.h"

#include "host_cann/ops/thread_parts.h"

namespace aclnn_host::linear_cross_entropy {
namespace {

const MatmulKernel<float>& kernel_of(float) {
  return matmul_kernels().float32;
}
const MatmulKernel<double>& kernel_of(double) {
  return matmul_kernels().float64;
}
const MatmulKernel<BFloat16, float>& kernel_of(BFloat16) {
  return matmul_kernels().bfloat16_sums;
}

// With depth 0 there is nothing to multiply.
template <class Element, class Real>
void multiply_nothing(const MatrixProduct<Element, Real>& product) {
  for (int64_t i = 0; i < product.rows; ++i) {
    for (int64_t j = 0; j < product.columns; ++j) {
      Real& out = product.out[i * product.out_stride + j];
      if (!product.adds) out = 0;
      if (product.bias.data != nullptr) out += *product.bias.from(i, j).data;
    }
  }
}

}  // namespace

template <class Real, class Element>
Products<Real, Element>::Products(int64_t parts, Workspace& workspace)
    : parts_(parts),
      offset_(workspace.reserve(static_cast<uint64_t>(parts * kernel_of(Element()).scratch_size))) {
}

template <class Real, class Element>
void Products<Real, Element>::multiply(const MatrixProduct<Element, Real>& product,
                                       int64_t part) const {
  if (product.rows == 0 || product.columns == 0) return;
  if (product.depth == 0) return multiply_nothing(product);
  const auto& kernel = kernel_of(Element());
  kernel.multiply(product, scratch_ + part * kernel.scratch_size);
}

template <class Real, class Element>
void Products<Real, Element>::multiply_together(const MatrixProduct<Element, Real>& product) const {
  if (product.rows == 0 || product.columns == 0) return;
  const MatmulKernels& kernels = matmul_kernels();
  const ProductPieces pieces(product.rows, product.columns, parts_, kernels);
  for_each(pieces.count(), [&](int64_t part, int64_t piece) {
    multiply(pieces.of(piece, product, kernels), part);
  });
}

template class Products<float>;
template class Products<float, BFloat16>;
template class Products<double>;

}  // namespace aclnn_host::linear_cross_entropy
