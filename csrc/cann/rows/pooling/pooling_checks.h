#pragma once

#include "cann/rows/planes.h"
#include "cann/rows/row.h"

// Checks of pooling and its inverse.
namespace aclnn_host {

// Indices into the last `dims` dimensions of self. ATen does not check that they are in range, and
// some of its functions assume that they are contiguous.
inline at::Tensor checked_indices(const at::Tensor& indices, const at::Tensor& self, int64_t dims) {
  int64_t size = 1;
  for (int64_t dim = self.dim() - dims; dim < self.dim(); ++dim) size *= self.size(dim);
  check_bounds("indices", indices, size);
  return indices.contiguous();
}

// Refuses an image other than of self's sizes with outputSize in the last `dims` dimensions, before
// memory for it is allocated.
inline void check_image(const at::Tensor& self, at::IntArrayRef output_size, const char* name,
                        const at::Tensor& image, int64_t dims) {
  expect_dims("self", self, dims + 1, dims + 2);
  EXPECT(output_size.size() == static_cast<size_t>(dims), "outputSize is ", output_size,
         ", expected ", dims, " numbers");
  expect_shape(name, image, with_last_sizes(self, dims, output_size));
}

}  // namespace aclnn_host
