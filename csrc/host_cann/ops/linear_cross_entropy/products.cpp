#include "host_cann/ops/linear_cross_entropy/products.h"

#include <algorithm>
#include <type_traits>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include "host_cann/ops/aten.h"
#include "host_cann/ops/parts.h"

namespace aclnn_host::linear_cross_entropy {
namespace {

// Rows that are multiplied at a time where ATen does: however many parts there are.
constexpr int64_t kRows = 64;

const MatmulKernel<float>& kernel_of(float) {
  return matmul_kernels().float32;
}
const MatmulKernel<BFloat16, float>& kernel_of(BFloat16) {
  return matmul_kernels().bfloat16_sums;
}

// ATen multiplies what no kernel does.
template <class Element>
constexpr bool kIsAtens = std::is_same_v<Element, double>;

template <class Element>
int64_t scratch_size() {
  if constexpr (kIsAtens<Element>) {
    return 0;
  } else {
    return kernel_of(Element()).scratch_size;
  }
}

template <class Element, class Real>
void multiply_here(const MatrixProduct<Element, Real>& product, void* scratch) {
  kernel_of(Element()).multiply(product, scratch);
}

at::Tensor matrix(const MatrixView<double>& view, int64_t rows, int64_t columns) {
  return at::from_blob(const_cast<double*>(view.data), {rows, columns},
                       {view.row_stride, view.column_stride}, at::kDouble);
}

void multiply_here(const MatrixProduct<double>& product, void*) {
  const AtenScope scope;
  const at::Tensor out =
      matrix({product.out, product.out_stride, 1}, product.rows, product.columns);
  if (!product.adds) out.zero_();
  for (int64_t term = 0; term < product.terms; ++term) {
    MatrixView<double> left = product.left;
    MatrixView<double> right = product.right;
    left.data += term * product.left_term;
    right.data += term * product.right_term;
    // Not by addmm_, which adds the products of a single row to it one by one: over all terms their
    // roundings would add up.
    out.add_(at::mm(matrix(left, product.rows, product.depth),
                    matrix(right, product.depth, product.columns)));
  }
  if (product.bias.data != nullptr) out.add_(matrix(product.bias, product.rows, product.columns));
}

// Without a depth there is nothing to multiply.
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
      offset_(workspace.reserve(static_cast<uint64_t>(parts * scratch_size<Element>()))) {}

template <class Real, class Element>
void Products<Real, Element>::multiply(const MatrixProduct<Element, Real>& product,
                                       int64_t part) const {
  if (product.rows == 0 || product.columns == 0) return;
  if (product.depth == 0) return multiply_nothing(product);
  multiply_here(product, scratch_ + part * scratch_size<Element>());
}

template <class Real, class Element>
void Products<Real, Element>::multiply_together(const MatrixProduct<Element, Real>& product) const {
  if (product.rows == 0 || product.columns == 0) return;
  if constexpr (!kIsAtens<Element>) {
    const MatmulKernels& kernels = matmul_kernels();
    const ProductPieces pieces(product.rows, product.columns, parts_, kernels);
    for_each(pieces.count(), [&](int64_t part, int64_t piece) {
      multiply(pieces.of(piece, product, kernels), part);
    });
  } else {
    for_each((product.rows + kRows - 1) / kRows, [&](int64_t part, int64_t piece) {
      const int64_t row = piece * kRows;
      MatrixProduct<Element, Real> some = product;
      some.rows = std::min(kRows, product.rows - row);
      some.left = product.left.from(row, 0);
      some.bias = product.bias.from(row, 0);
      some.out += row * product.out_stride;
      multiply(some, part);
    });
  }
}

template class Products<float>;
template class Products<float, BFloat16>;
template class Products<double>;

}  // namespace aclnn_host::linear_cross_entropy
