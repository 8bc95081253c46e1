#include "host_cann/ops/convolution/matrix_products.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "host_cann/kernels/matmul.h"
#include "host_cann/ops/convolution/convolution_parts.h"

namespace aclnn_host {
namespace {

template <class T>
const MatmulKernel<T>& kernel_of(const MatmulKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else {
    return kernels.bfloat16;
  }
}

// A dimension of one element may have any stride.
template <class T>
MatrixView<T> view(const at::Tensor& tensor) {
  const int64_t row = tensor.dim() - 2;
  const int64_t column = tensor.dim() - 1;
  return {static_cast<const T*>(tensor.const_data_ptr()),
          tensor.size(column) == 1 ? 1 : tensor.stride(row),
          tensor.size(row) == 1 ? 1 : tensor.stride(column)};
}

template <class T>
MatrixView<T> bias_view(const at::Tensor& bias) {
  if (!bias.defined()) return {};
  const auto* const data = static_cast<const T*>(bias.const_data_ptr());
  return bias.dim() == 1 ? MatrixView<T>{data, 0, 1} : MatrixView<T>{data, 1, 0};
}

int64_t stride_of_first(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.stride(0) : 0;
}

// The division of products among threads: by images if that is balanced, otherwise by parts of the
// matrices.
struct Division {
  int64_t matrices;  // number of result matrices
  bool by_images;
  ProductPieces parts;
  int64_t pieces;

  Division(int64_t rows, int64_t columns, int64_t matrices, int64_t parts, bool by_images,
           const MatmulKernels& kernels)
      : matrices(matrices), by_images(by_images), pieces(matrices) {
    if (by_images) return;
    this->parts = ProductPieces(rows, columns, parts, kernels);
    pieces = this->parts.count();
  }

  // The rows and columns of a piece of the first image.
  template <class T>
  MatrixProduct<T> of(int64_t piece, const MatrixProduct<T>& whole,
                      const MatmulKernels& kernels) const {
    return parts.of(by_images ? 0 : piece, whole, kernels);
  }
};

}  // namespace

MatrixProducts::MatrixProducts(double count, aclDataType dtype, Workspace& workspace)
    : parts_(part_count(count)),
      scratch_size_(dtype == ACL_BF16 ? matmul_kernels().bfloat16.scratch_size
                                      : matmul_kernels().float32.scratch_size),
      offset_(workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_))) {}

// ATen's code for AMX is faster; without AMX or a BF16 unit, FLOAT is faster.
bool MatrixProducts::supports(aclDataType dtype) {
  return dtype == ACL_FLOAT || (dtype == ACL_BF16 && has_bfloat16_products() && !has_amx_bf16());
}

MatrixProducts MatrixProducts::in(void* workspace) const {
  MatrixProducts placed = *this;
  placed.scratch_ = static_cast<char*>(workspace) + offset_;
  return placed;
}

void MatrixProducts::multiply(const at::Tensor& left, const at::Tensor& right,
                              const at::Tensor& bias, const at::Tensor& out) const {
  if (out.scalar_type() == at::kFloat) return multiply_elements<float>(left, right, bias, out);
  multiply_elements<BFloat16>(left, right, bias, out);
}

template <class T>
void MatrixProducts::multiply_elements(const at::Tensor& left, const at::Tensor& right,
                                       const at::Tensor& bias, const at::Tensor& out) const {
  const MatmulKernels& kernels = aclnn_host::matmul_kernels();
  const int64_t images = right.dim() == 3 ? right.size(0) : 1;
  const bool sums = out.dim() == 2 && images > 1;
  MatrixProduct<T> whole{left.size(-2),  right.size(-1),    left.size(-1),
                         view<T>(left),  view<T>(right),    static_cast<T*>(out.mutable_data_ptr()),
                         out.stride(-2), bias_view<T>(bias)};
  if (sums) {
    whole.terms = images;
    whole.left_term = stride_of_first(left);
    whole.right_term = stride_of_first(right);
  }
  const Division division(whole.rows, whole.columns, sums ? 1 : images, parts_,
                          !sums && (images % parts_ == 0 || images >= 4 * parts_), kernels);
  at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t piece = division.pieces * part / parts_;
           piece < division.pieces * (part + 1) / parts_; ++piece) {
        const MatrixProduct<T> product = division.of(piece, whole, kernels);
        const int64_t end_image = division.by_images ? piece + 1 : division.matrices;
        for (int64_t image = division.by_images ? piece : 0; image < end_image; ++image) {
          MatrixProduct<T> one = product;
          one.left.data += image * stride_of_first(left);
          one.right.data += image * stride_of_first(right);
          one.out += image * stride_of_first(out);
          kernel_of<T>(kernels).multiply(one, scratch_ + part * scratch_size_);
        }
      }
    }
  });
}

}  // namespace aclnn_host
