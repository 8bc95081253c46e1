// Gathers elements and slices by index.

#include <ATen/WrapDimUtils.h>

#include "cann/rows/indexing/slices.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_gather_rows {

namespace {

// Gathers along one dimension, with an index of any shape. The first `batch` dimensions are common
// to both.
at::Tensor gathered(const at::Tensor& self, int64_t dim, const at::Tensor& index, int64_t batch) {
  const auto position = static_cast<size_t>(dim);
  const auto lead = static_cast<size_t>(batch);
  EXPECT(self.sizes().slice(0, lead) == index.sizes().slice(0, lead), "index has shape ",
         index.sizes(), ", expected the first ", batch, " sizes of self, ", self.sizes());
  const Sizes result = joined(self.sizes().slice(0, position), index.sizes().slice(lead),
                              self.sizes().slice(position + 1));
  const int64_t batches = product(self.sizes().slice(0, lead));
  const int64_t outer = product(self.sizes().slice(lead, position - lead));
  const int64_t inner = product(self.sizes().slice(position + 1));
  const int64_t count = product(index.sizes().slice(lead));
  const int64_t size = self.size(dim);
  check_bounds("index", index, size, -size);  // a negative index counts from the end
  const at::Tensor positions = at::where(index < 0, index + size, index).reshape({batches, count});
  return moved(self, [&](const at::Tensor& x) {
    if (batch == 0) {
      const at::Tensor slices = x.reshape({outer, self.size(dim), inner});
      return at::index_select(slices, 1, positions.view({count})).view(result);
    }
    const at::Tensor slices = x.reshape({batches, outer, self.size(dim), inner});
    const at::Tensor expanded =
        positions.view({batches, 1, count, 1}).expand({batches, outer, count, inner});
    return at::gather(slices, 2, expanded).reshape(result);
  });
}

}  // namespace

ACLNN(Gather, (In, self), (int64_t, dim), (IndexIn, index), (Out, out)) {
  out = moved(self, [&](const at::Tensor& x) { return at::gather(x, dim, index); });
}
// An index without dimensions is treated as one of one element.
ACLNN(GatherV2, (In, self), (int64_t, dim), (IndexIn, index), (SameDtype<Out>, out, "self")) {
  const at::Tensor x = at_least_1d(self);
  out = gathered(x, at::maybe_wrap_dim(dim, x.dim()), at_least_1d(index), 0);
}
// The modes affect the speed only.
ACLNN(GatherV3, (In, self), (int64_t, dim), (IndexIn, index), (int64_t, batchDims), (int64_t, mode),
      (SameDtype<Out>, out, "self")) {
  expect_range("mode", mode, 0, 2);
  const at::Tensor x = at_least_1d(self);
  const int64_t position = at::maybe_wrap_dim(dim, x.dim());
  expect_range("batchDims", batchDims, 0, std::min(position, index.dim()));
  // The document adds a dimension for an index without dimensions; a call without it is accepted,
  // too.
  const bool adds = index.dim() == 0 && out->dim() == x.dim();
  out = gathered(x, position, adds ? at_least_1d(index) : index, batchDims);
}
ACLNN(GatherNd, (In, self), (IndexIn, indices), (bool, negativeIndexSupport),
      (SameDtype<Out>, out, "self")) {
  const int64_t depth = depth_of(indices, "self", self, 1);
  const at::Tensor rows = row_numbers(indices, self, negativeIndexSupport);
  out = moved(self, [&](const at::Tensor& x) {
    return at::index_select(as_rows(x, depth), 0, rows).view(slices_shape(indices, x, depth));
  });
}

}  // namespace aclnn_host::indexing_gather_rows
