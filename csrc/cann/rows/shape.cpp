// Joining, splitting, repeating and moving elements.

#include <algorithm>
#include <cstring>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle.h>
#include <ATen/ops/col2im.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/unfold_backward.h>
#include <ATen/ops/zeros.h>
#include <c10/util/safe_numerics.h>

#include "cann/rows/checks.h"
#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::shape_rows {

namespace {

// Before ATen makes a tensor of that size.
void expect_count(const at::Tensor& out, int64_t size) {
  EXPECT(out.numel() == size, "out has ", out.numel(), " elements, expected ", size,
         ", which is outputSize");
}

// How often each of `size` elements is repeated; in a rehearsal numbers that add up to the size of
// the result, as those of the call must.
at::Tensor counts(const at::Tensor& repeats, int64_t size, int64_t output_size) {
  if (!is_rehearsed() || repeats.numel() == 0) return repeats;
  const bool is_one = repeats.numel() == 1;
  at::Tensor made = at::zeros(repeats.sizes(), repeats.options());
  made.flatten().narrow(0, 0, 1).fill_(is_one && size > 0 ? output_size / size : output_size);
  return made;
}

// Refuses what is no order of the dimensions 0 to dims - 1.
void expect_order(at::IntArrayRef perm, size_t dims) {
  std::vector<bool> seen(dims, false);
  bool is_order = perm.size() == dims;
  for (const int64_t dim : perm) {
    const bool is_new =
        is_order && dim >= 0 && dim < static_cast<int64_t>(dims) && !seen[static_cast<size_t>(dim)];
    if (is_new) seen[static_cast<size_t>(dim)] = true;
    is_order = is_new;
  }
  EXPECT(is_order, "perm is ", perm, ", expected each of the ", dims,
         " dimensions that are transposed once, counted from 0");
}

// What matrices have on one side of a diagonal, and zeros on the other. The rows are copied as
// memory is, whatever the type; ATen's functions look at every element, and have not all types.
void write_triangle(const at::Tensor& self, int64_t diagonal, bool upper, Output& out) {
  EXPECT(self.dim() >= 2, "self has ", self.dim(), " dimensions, expected 2 or more");
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
  const int64_t rows_of_a_thread = std::max<int64_t>(at::internal::GRAIN_SIZE / columns, 1);
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

// Of sizes; the largest number where no tensor has as many elements.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return c10::mul_overflows(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

}  // namespace

ACLNN(Cat, (Ins, tensors), (int64_t, dim), (Out, out)) {
  out = at::cat(tensors, dim);
}
ACLNN(Stack, (Ins, tensors), (int64_t, dim), (Out, out)) {
  out = at::stack(tensors, dim);
}
ACLNN(SplitWithSize, (In, self), (Ints, splitSize), (int64_t, dim), (Outs, out)) {
  const auto parts = at::split_with_sizes(self, splitSize, dim);
  EXPECT(out.size() == parts.size(), "out has ", out.size(), " tensors, expected ", parts.size(),
         ", one for each size in splitSize");
  for (size_t i = 0; i < parts.size(); ++i) out[i] = parts[i];
}
ACLNN(Repeat, (In, self), (Ints, repeats), (Out, out)) {
  out = self.repeat(repeats);
}
ACLNN(Flip, (In, self), (Ints, dims), (Out, out)) {
  out = at::flip(self, dims);
}
ACLNN(Roll, (In, x), (Ints, shifts), (Ints, dims), (Out, out)) {
  out = at::roll(x, shifts, dims);
}
ACLNN(Triu, (In, self), (int64_t, diagonal), (Out, out)) {
  write_triangle(self, diagonal, /*upper=*/true, out);
}
ACLNN(Tril, (In, self), (int64_t, diagonal), (Out, out)) {
  write_triangle(self, diagonal, /*upper=*/false, out);
}
ACLNN(InplaceTriu, (InOut, selfRef), (int64_t, diagonal)) {
  write_triangle(selfRef, diagonal, /*upper=*/true, selfRef);
}
ACLNN(InplaceTril, (InOut, selfRef), (int64_t, diagonal)) {
  write_triangle(selfRef, diagonal, /*upper=*/false, selfRef);
}
ACLNN(ConstantPadNd, (In, self), (Ints, pad), (Number, value), (Out, out)) {
  out = at::constant_pad_nd(self, pad, value);
}
ACLNN(ChannelShuffle, (Image<In>, self), (int64_t, groups), (Image<Out>, out)) {
  out = at::channel_shuffle(self, groups);
}
ACLNN(Im2col, (Image<In>, self), (Ints, kernelSize), (Ints, dilation), (Ints, padding),
      (Ints, stride), (Out, out)) {
  expect_dims("self", self, 3, 4);
  check_pair("kernelSize", kernelSize, 1);
  check_pair("dilation", dilation, 1);
  check_pair("padding", padding, 0);
  check_pair("stride", stride, 1);
  const auto [height, width] = windows_in(self, kernelSize, stride, padding, dilation);
  const int64_t rows = product(self.size(-3), product(kernelSize[0], kernelSize[1]));
  expect_shape("out", out, with_places(self, 3, {rows, product(height, width)}));
  const auto columns = [&](const at::Tensor& x) {
    return at::im2col(x, kernelSize, dilation, padding, stride);
  };
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/false) &&
      self.scalar_type() != at::kComplexHalf) {
    out = columns(self);
    return;
  }
  // Nothing is computed, so these elements may pass for floating-point numbers of their size.
  const at::Tensor bits = self.element_size() == 1 ? self.to(at::kShort) : self;
  const at::ScalarType like = bits.element_size() == 2   ? at::kHalf
                              : bits.element_size() == 4 ? at::kFloat
                                                         : at::kDouble;
  out = columns(bits.view(like)).view(bits.scalar_type()).to(self.scalar_type());
}
ACLNN(Im2colBackward, (In, gradOutput), (Ints, inputSize), (Ints, kernelSize), (Ints, dilation),
      (Ints, padding), (Ints, stride), (Image<Out>, out)) {
  for (const at::IntArrayRef sizes : {kernelSize, dilation, padding, stride}) {
    for (const int64_t size : sizes) {
      EXPECT(size >= 0 && size <= std::numeric_limits<int32_t>::max() / 4,
             "a number of kernelSize, dilation, padding or stride is ", size,
             ", expected 0 to 2^29 - 1");
    }
  }
  out = at::col2im(wide(gradOutput), inputSize, kernelSize, dilation, padding, stride);
}
ACLNN(UnfoldGrad, (In, gradOut), (Ints, inputSizes), (int64_t, dim), (int64_t, size),
      (int64_t, step), (Out, gradIn)) {
  const int64_t taken = size.value(), apart = step.value();
  const bool is_scalar = inputSizes.empty();
  const auto axis =
      static_cast<size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(inputSizes.size())));
  const int64_t length = is_scalar ? 1 : inputSizes[axis];
  EXPECT(apart > 0 && taken >= 0 && taken <= length, "size is ", taken, " and step ", apart,
         ", expected 0 to ", length, " and 1 or more");
  std::vector<int64_t> unfolded = inputSizes.vec();
  if (!is_scalar) unfolded[axis] = (length - taken) / apart + 1;
  unfolded.push_back(taken);
  expect_shape("gradOut", gradOut, unfolded);
  gradIn = at::unfold_backward(wide(gradOut), inputSizes, dim, size, step);
}

// outputSize is the size of the result along the dimension.
ACLNN(RepeatInterleave, (In, self), (In, repeats), (int64_t, outputSize), (Out, out)) {
  expect_count(out, outputSize);
  out = at::repeat_interleave(self, counts(repeats, self.numel(), outputSize), std::nullopt,
                              outputSize);
}
ACLNN(RepeatInterleaveWithDim, (In, self), (In, repeats), (int64_t, dim), (int64_t, outputSize),
      (Out, out)) {
  const int64_t place = dim < 0 ? dim.value() + self.dim() : dim.value();
  EXPECT(place >= 0 && place < self.dim() && out->dim() == self.dim(), "dim is ", dim.value(),
         " and out has ", out->dim(), " dimensions, expected a dimension of self and ", self.dim());
  EXPECT(out->size(place) == outputSize, "out has ", out->size(place), " in dimension ", place,
         ", expected ", outputSize.value(), ", which is outputSize");
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
// The indices alone.
ACLNN(RepeatInterleaveTensor, (In, repeats), (int64_t, outputSize), (Out, out)) {
  expect_count(out, outputSize);
  out = at::repeat_interleave(counts(repeats, repeats.numel(), outputSize),
                              std::optional(outputSize.value()));
}

// The vendor's operators split and join only dimensions that perm leaves side by side; here any
// shape of so many elements will do.
ACLNN(ConfusionTranspose, (In, x), (Ints, perm), (Ints, shape), (bool, transpose_first),
      (Out, out)) {
  expect_dtype(out, x);
  for (const int64_t size : shape) {
    EXPECT(size >= 0, "shape is ", shape, ", expected no sizes less than 0");
  }
  expect_order(perm, transpose_first ? static_cast<size_t>(x.dim()) : shape.size());
  out = moved(x, [&](const at::Tensor& elements) {
    return (transpose_first ? elements.permute(perm).reshape(shape)
                            : elements.reshape(shape).permute(perm))
        .contiguous();
  });
}

}  // namespace aclnn_host::shape_rows
