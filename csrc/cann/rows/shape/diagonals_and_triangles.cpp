// Diagonals and triangles of matrices.

#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

#include "cann/rows/row.h"

namespace aclnn_host::shape_diagonals_and_triangles_rows {

namespace {

// A matrix with a vector on a diagonal. Its shape is checked before memory is allocated.
at::Tensor matrix_with(const at::Tensor& vector, int64_t diagonal, const Output& out) {
  const int64_t size = out->dim() == 2 && out->size(0) == out->size(1) ? out->size(0) : -1;
  const bool fits = -size <= diagonal && diagonal <= size &&
                    vector.numel() == (diagonal < 0 ? size + diagonal : size - diagonal);
  EXPECT(fits, out.name(), " has shape ", out->sizes(), ", expected a square matrix of size ",
         vector.numel(), " + |diagonal|, where diagonal is ", diagonal);
  return at::diag_embed(vector, diagonal);
}

// Copies the part of matrices on one side of a diagonal, and writes zeros to the other. Rows are
// copied bytewise, for any type; ATen's functions test every element and do not support all types.
void write_triangle(const at::Tensor& self, int64_t diagonal, bool upper, Output& out) {
  expect_dims("self", self, 2, 8);
  const at::Tensor* const room =
      out.room(self.scalar_type(), self.sizes(), Output::Reads::kSameElement);
  const bool is_in_room = room != nullptr && room->is_contiguous();
  const at::Tensor result = is_in_room ? *room : at::empty(self.sizes(), self.options());
  if (!self.is_cpu() || self.numel() == 0) {
    out = result;
    return;
  }
  const at::Tensor matrices = self.contiguous();
  const int64_t rows = self.size(-2), columns = self.size(-1);
  const int64_t shift = std::clamp(diagonal, -rows - 1, columns) + (upper ? 0 : 1);
  const auto size = static_cast<int64_t>(self.element_size());
  const auto* const from = static_cast<const char*>(matrices.const_data_ptr());
  auto* const to = static_cast<char*>(result.mutable_data_ptr());
  constexpr int64_t kBytesOfTask = int64_t{1} << 23;  // as for fills, less takes one thread
  const int64_t rows_of_a_thread = std::max<int64_t>(kBytesOfTask / (columns * size), 1);
  at::parallel_for(0, self.numel() / columns, rows_of_a_thread, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * columns * size;
      const int64_t middle = first + std::clamp<int64_t>(row % rows + shift, 0, columns) * size;
      const int64_t last = first + columns * size;
      const auto copy = [&](int64_t a, int64_t b) {
        if (to != from) std::memcpy(to + a, from + a, static_cast<size_t>(b - a));
      };
      const auto clear = [&](int64_t a, int64_t b) {
        std::memset(to + a, 0, static_cast<size_t>(b - a));
      };
      upper ? clear(first, middle) : copy(first, middle);
      upper ? copy(middle, last) : clear(middle, last);
    }
  });
  out = result;
}

}  // namespace

ACLNN(Diag, (In, self), (int64_t, diagonal), (SameDtype<Out>, out, "self")) {
  expect_dims("self", self, 1, 2);
  if (self.dim() == 1) {
    out = matrix_with(self, diagonal, out);
  } else {
    expect_range("diagonal", diagonal, -self.size(0), self.size(1), ", within self's sizes");
    out = self.diagonal(diagonal);
  }
}
ACLNN(DiagFlat, (In, self), (int64_t, diagonal), (SameDtype<Out>, out, "self")) {
  out = matrix_with(self.flatten(), diagonal, out);
}

ACLNN(DiagPart, (In, x), (SameDtype<Out>, y, "x")) {
  EXPECT(x.dim() == 2 && x.size(0) == x.size(1), "x has shape ", x.sizes(),
         ", expected a square matrix");
  expect_shape("y", y, {x.size(0)});
  y = at::diagonal(x);
}

ACLNN(InplaceFillDiagonal, (InOut, selfRef), (Number, fillValue), (bool, wrap)) {
  const at::Tensor result = selfRef.editable();
  selfRef = result.fill_diagonal_(fillValue, wrap);
}
ACLNN(Eye, (int64_t, n), (int64_t, m), (Out, out)) {
  out = at::eye(n, m, out->options());
}

ACLNN(Triu, (In, self), (int64_t, diagonal), (Out, out)) {
  write_triangle(self, diagonal, /*upper=*/true, out);
}
ACLNN(InplaceTriu, (InOut, selfRef), (int64_t, diagonal)) {
  write_triangle(selfRef, diagonal, /*upper=*/true, selfRef);
}
ACLNN(Tril, (In, self), (int64_t, diagonal), (Out, out)) {
  write_triangle(self, diagonal, /*upper=*/false, out);
}
ACLNN(InplaceTril, (InOut, selfRef), (int64_t, diagonal)) {
  write_triangle(selfRef, diagonal, /*upper=*/false, selfRef);
}

}  // namespace aclnn_host::shape_diagonals_and_triangles_rows
