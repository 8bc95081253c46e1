#include "ops/matrix_products.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kernels/matmul.h"

namespace aclnn_host {
namespace {

// Products for which another thread is worth waking.
constexpr double kGrain = 1 << 17;

const MatmulKernels& kernels() {
  return select_kernels([]<Capability kVersion>() -> auto& { return matmul_kernels<kVersion>(); });
}

// The strides of a dimension of one element mean nothing.
MatrixView view(const at::Tensor& tensor) {
  const int64_t row = tensor.dim() - 2;
  const int64_t column = tensor.dim() - 1;
  return {tensor.const_data_ptr<float>(), tensor.size(column) == 1 ? 1 : tensor.stride(row),
          tensor.size(row) == 1 ? 1 : tensor.stride(column)};
}

int64_t stride_of_first(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.stride(0) : 0;
}

// Where one of so many parts of `size` begins, or the one before ends: at a multiple of `step`.
int64_t begin_of(int64_t part, int64_t parts, int64_t size, int64_t step) {
  return std::min(size, (size + step - 1) / step * part / parts * step);
}

}  // namespace

MatrixProducts::MatrixProducts(double count, Workspace& workspace)
    : parts_(std::clamp<int64_t>(static_cast<int64_t>(count / kGrain), 1, at::get_num_threads())),
      scratch_size_(kernels().scratch_size),
      offset_(workspace.reserve(static_cast<uint64_t>(parts_ * scratch_size_))) {}

MatrixProducts MatrixProducts::in(void* workspace) const {
  MatrixProducts placed = *this;
  placed.scratch_ = static_cast<char*>(workspace) + offset_;
  return placed;
}

void MatrixProducts::multiply(const at::Tensor& left, const at::Tensor& right,
                              const at::Tensor& out, bool adds) const {
  const MatmulKernels& kernels = aclnn_host::kernels();
  const int64_t images = right.dim() == 3 ? right.size(0) : 1;
  const bool sums = out.dim() == 2 && images > 1;
  const MatrixProduct whole{left.size(-2),  right.size(-1),
                            left.size(-1),  view(left),
                            view(right),    out.mutable_data_ptr<float>(),
                            out.stride(-2), adds};
  const int64_t row_tiles = (whole.rows + kernels.row_step - 1) / kernels.row_step;
  const int64_t column_tiles = (whole.columns + kernels.column_step - 1) / kernels.column_step;
  // Images are divided among the threads where that is even; else parts of the matrices are, of
  // the longer side first.
  const bool by_images = !sums && (images % parts_ == 0 || images >= 4 * parts_);
  const int64_t matrices = by_images ? images : 1;
  int64_t row_parts = 1;
  int64_t column_parts = 1;
  if (!by_images) {
    const bool wide = whole.columns >= whole.rows;
    int64_t& first = wide ? column_parts : row_parts;
    int64_t& second = wide ? row_parts : column_parts;
    first = std::min(parts_, wide ? column_tiles : row_tiles);
    second = std::min(parts_ / first, wide ? row_tiles : column_tiles);
  }
  const int64_t pieces = matrices * row_parts * column_parts;
  at::parallel_for(0, parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t piece = pieces * part / parts_; piece < pieces * (part + 1) / parts_; ++piece) {
        const int64_t i = piece / column_parts % row_parts;
        const int64_t j = piece % column_parts;
        const int64_t row = begin_of(i, row_parts, whole.rows, kernels.row_step);
        const int64_t column = begin_of(j, column_parts, whole.columns, kernels.column_step);
        MatrixProduct product = whole;
        product.rows = begin_of(i + 1, row_parts, whole.rows, kernels.row_step) - row;
        product.columns =
            begin_of(j + 1, column_parts, whole.columns, kernels.column_step) - column;
        product.left = whole.left.from(row, 0);
        product.right = whole.right.from(0, column);
        product.out += row * whole.out_stride + column;
        const int64_t first = by_images ? piece : 0;
        for (int64_t image = first; image < (by_images ? first + 1 : images); ++image) {
          MatrixProduct one = product;
          one.left.data += image * stride_of_first(left);
          one.right.data += image * stride_of_first(right);
          one.out += image * stride_of_first(out);
          one.adds = adds || (sums && image > 0);
          kernels.multiply(one, scratch_ + part * scratch_size_);
        }
      }
    }
  });
}

}  // namespace aclnn_host
