// Repeated tensors and elements.

#include <ATen/WrapDimUtils.h>
#include <c10/core/WrapDimMinimal.h>

#include "cann/rows/indexing/slices.h"
#include "cann/rows/row.h"

namespace aclnn_host::shape_repeat_rows {

namespace {

// Checked before ATen allocates a tensor of this size.
void expect_count(const at::Tensor& out, int64_t size) {
  EXPECT(out.numel() == size, "out has ", out.numel(), " elements, expected ", size,
         ", which is outputSize");
}

// The number of repeats of each of `size` elements. In a rehearsal, numbers whose sum is the size
// of the result, as it is in a valid call.
at::Tensor counts(const at::Tensor& repeats, int64_t size, int64_t output_size) {
  const bool is_one = repeats.numel() == 1;
  EXPECT(!is_one || (size == 0 ? output_size == 0 : output_size % size == 0), "outputSize is ",
         output_size, ", expected a multiple of ", size, " as repeats has one element");
  if (has_values(repeats) && size > 0) {
    check_bounds("repeats", repeats, output_size + 1);
    // As a double, which no sum overflows.
    const double sum = repeats.sum(at::kDouble).item().toDouble() * (is_one ? size : 1);
    EXPECT(sum == output_size, "repeats make ", sum, " elements, expected ", output_size,
           ", which is outputSize");
  }
  if (!is_rehearsed() || repeats.numel() == 0) return repeats;
  at::Tensor made = at::zeros(repeats.sizes(), repeats.options());
  made.flatten().narrow(0, 0, 1).fill_(is_one && size > 0 ? output_size / size : output_size);
  return made;
}

}  // namespace

ACLNN(Repeat, (In, self), (Ints, repeats), (Out, out)) {
  out = self.repeat(repeats);
}

// outputSize is the size of the result along the dimension.
ACLNN(RepeatInterleave, (In, self), (In, repeats), (int64_t, outputSize), (Out, out)) {
  expect_count(out, outputSize);
  out = at::repeat_interleave(self, counts(repeats, self.numel(), outputSize), std::nullopt,
                              outputSize);
}
ACLNN(RepeatInterleaveWithDim, (In, self), (In, repeats), (int64_t, dim), (int64_t, outputSize),
      (Out, out)) {
  expect_range("dim", dim, -self.dim(), self.dim() - 1, ", a dimension of self");
  expect_dims("out", out, self.dim());
  EXPECT(out->size(dim) == outputSize, "out has ", out->size(dim), " in dimension ", dim,
         ", expected ", outputSize, ", which is outputSize");
  const int64_t size = self.size(dim);
  out = at::repeat_interleave(self, counts(repeats, size, outputSize), dim, outputSize);
}
ACLNN(RepeatInterleaveInt, (In, self), (int64_t, repeats), (int64_t, outputSize), (Out, out)) {
  out = at::repeat_interleave(self, repeats, std::nullopt, outputSize);
}
ACLNN(RepeatInterleaveIntWithDim, (In, self), (int64_t, repeats), (int64_t, dim),
      (int64_t, outputSize), (Out, out)) {
  out = at::repeat_interleave(self, repeats, dim, outputSize);
}
// Returns only the indices.
ACLNN(RepeatInterleaveTensor, (In, repeats), (int64_t, outputSize), (Out, out)) {
  expect_count(out, outputSize);
  out = at::repeat_interleave(counts(repeats, repeats.numel(), outputSize),
                              std::optional(outputSize.value()));
}

// Sums the copies of each element. A single number of repeats applies to all elements, whose
// number follows from the output's size. The output may have any shape with the right number of
// elements.
ACLNN(RepeatInterleaveGrad, (Floating<In>, yGrad), (IndexIn, repeats), (int64_t, axis),
      (SameDtype<Out>, out, "yGrad")) {
  EXPECT(repeats.dim() <= 1 && repeats.numel() > 0, "repeats has shape ", repeats.sizes(),
         ", expected at most one dimension and at least one element");
  const at::Tensor y = at_least_1d(wide(yGrad));
  const auto dim = static_cast<size_t>(at::maybe_wrap_dim(axis, y.dim()));
  const int64_t length = y.sizes()[dim];
  const int64_t before = product(y.sizes().slice(0, dim));
  const int64_t after = product(y.sizes().slice(dim + 1));
  const int64_t rest = product({before, after});
  const bool is_one = repeats.numel() == 1;
  const int64_t groups = !is_one ? repeats.numel() : rest == 0 ? 0 : out->numel() / rest;
  const bool is_known = has_values(repeats);
  const bool is_split = groups == 0 ? y.numel() == 0 : length % groups == 0;
  EXPECT(product({groups, rest}) == out->numel() && (!is_one || is_split), "out has shape ",
         out->sizes(), ", expected the sums of yGrad, which has shape ", y.sizes(),
         ", over equal parts of dimension ", axis, " or one per number of repeats");
  if (out->numel() == 0) return;
  at::Tensor sums;
  if (is_one) {
    if (is_known) {
      expect_one_of("repeats", repeats.reshape({}).item().toLong(), {length / groups},
                    ", by the shapes of yGrad and out");
    }
    sums = y.reshape({before, groups, length / groups, after}).sum(2);
  } else {
    at::Tensor group = at::zeros({length}, repeats.options());
    if (is_known) {
      check_bounds("repeats", repeats, length + 1);
      const int64_t sum = repeats.sum().item().toLong();
      EXPECT(sum == length, "repeats adds up to ", sum, ", expected ", length,
             ", the size of yGrad's dimension ", axis);
      group = at::repeat_interleave(repeats.contiguous(), std::optional(length));
    }
    sums = at::index_add(at::zeros({before, groups, after}, y.options()), 1, group,
                         y.reshape({before, length, after}));
  }
  out = sums.reshape(out->sizes());
}

ACLNN(Expand, (In, self), (Ints, size), (SameDtype<Out>, out, "self")) {
  expect_sizes_from_0("size", size);
  out = self.expand(size);
}
ACLNN(Expandv, (In, self), (Ints, shape), (SameDtype<Out>, out, "self")) {
  expect_sizes_from_0("shape", shape);
  out = self.expand(shape);
}

}  // namespace aclnn_host::shape_repeat_rows
