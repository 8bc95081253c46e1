// Slices, permutations, diagonals, pieces and circular padding: elements in other places.

#include <algorithm>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/permute.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/split.h>
#include <ATen/ops/zeros.h>
#include <c10/core/WrapDimMinimal.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::slicing_rows {

namespace {

// self[start:end:step] along a dimension. A step beyond the size selects one element like the size
// itself, with which ATen's arithmetic does not overflow.
at::Tensor sliced(const at::Tensor& self, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return at::slice(self, dim, start, end, std::min(step, std::max<int64_t>(self.size(dim), 1)));
}

void check_same_count(const char* name, size_t count, size_t expected) {
  EXPECT(count == expected, name, " has ", count, " values, expected ", expected,
         ", as many as the other lists have");
}

// Slices along some dimensions, of which none may come twice.
at::Tensor sliced_along_axes(at::Tensor self, at::IntArrayRef starts, at::IntArrayRef ends,
                             at::IntArrayRef axes, at::IntArrayRef steps) {
  std::vector<bool> taken(static_cast<size_t>(self.dim()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = c10::maybe_wrap_dim(axes[i], self.dim(), /*wrap_scalar=*/false);
    EXPECT(!taken[static_cast<size_t>(dim)], "dimension ", dim,
           " is sliced twice, expected different axes");
    EXPECT(steps[i] > 0, "the step at ", i, " is ", steps[i], ", expected 1 or more");
    taken[static_cast<size_t>(dim)] = true;
    self = sliced(self, dim, starts[i], ends[i], steps[i]);
  }
  return self;
}

// The bits of aclnnStridedSlice, one for each place in the lists.
bool has_bit(int64_t mask, size_t i) {
  return i < 64 && (static_cast<uint64_t>(mask) >> i & 1) != 0;
}

// self[begin:end:stride] along a dimension, backwards if the stride is negative. A range that is
// open at its begin or end reaches to the first or last element on that side.
struct Range {
  int64_t begin;
  int64_t end;
  int64_t stride;
  bool is_begin_open;
  bool is_end_open;

  at::Tensor of(const at::Tensor& self, int64_t dim) const {
    const int64_t size = self.size(dim);
    const auto place = [size](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    if (stride > 0) {
      return sliced(self, dim, is_begin_open ? 0 : place(begin, 0, size),
                    is_end_open ? size : place(end, 0, size), stride);
    }
    // The same from the other end.
    const int64_t first = is_begin_open ? 0 : size - 1 - place(begin, -1, size - 1);
    const int64_t last = is_end_open ? size : size - 1 - place(end, -1, size - 1);
    return sliced(at::flip(self, dim), dim, first, last,
                  -std::max(stride, -std::numeric_limits<int64_t>::max()));
  }
};

struct StridedSlice {
  at::IntArrayRef begin;
  at::IntArrayRef end;
  at::IntArrayRef strides;
  int64_t begin_mask;
  int64_t end_mask;
  int64_t ellipsis_mask;
  int64_t new_axis_mask;
  int64_t shrink_axis_mask;

  void check() const {
    check_same_count("end", end.size(), begin.size());
    check_same_count("strides", strides.size(), begin.size());
    const auto bits = static_cast<uint64_t>(ellipsis_mask);
    EXPECT((bits & (bits - 1)) == 0, "ellipsisMask is ", ellipsis_mask,
           ", expected one bit at most");
    for (size_t i = 0; i < strides.size(); ++i) {
      EXPECT(strides[i] != 0, "the stride at ", i, " is 0, expected another number");
      EXPECT(strides[i] > 0 || !has_bit(shrink_axis_mask, i), "the stride at ", i, " is ",
             strides[i], ", expected 1 or more because of its bit in shrinkAxisMask");
    }
  }

  // Whether a place stands for a dimension of the input, and not for some or for none.
  bool takes_dimension(size_t i) const {
    return !has_bit(ellipsis_mask, i) && !has_bit(new_axis_mask, i);
  }

  at::Tensor of(at::Tensor self) const {
    check();
    int64_t taken = 0;
    for (size_t i = 0; i < strides.size(); ++i) taken += takes_dimension(i);
    const int64_t others = self.dim() - taken;
    EXPECT(others >= 0, "the lists are for ", taken, " dimensions, expected at most ", self.dim(),
           " as self has");
    int64_t dim = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      if (has_bit(ellipsis_mask, i)) {
        dim += others;
      } else if (has_bit(new_axis_mask, i)) {
        self = self.unsqueeze(dim++);
      } else if (has_bit(shrink_axis_mask, i)) {
        self = self.select(dim, begin[i]);
      } else {
        const Range range{begin[i], end[i], strides[i], has_bit(begin_mask, i),
                          has_bit(end_mask, i)};
        self = range.of(self, dim++);
      }
    }
    return self;
  }
};

int64_t product(at::IntArrayRef sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    EXPECT(!__builtin_mul_overflow(product, size, &product), "self has shape with a product ",
           "of sizes beyond INT64, expected a smaller one");
  }
  return product;
}

// The matrix that has a vector on a diagonal. Its shape is checked before there is memory for it.
at::Tensor matrix_with(const at::Tensor& vector, int64_t diagonal, const Output& out) {
  const int64_t size = out->dim() == 2 && out->size(0) == out->size(1) ? out->size(0) : -1;
  const bool fits = -size <= diagonal && diagonal <= size &&
                    vector.numel() == (diagonal < 0 ? size + diagonal : size - diagonal);
  EXPECT(fits, out.name(), " has shape ", out->sizes(), ", expected a square matrix of size ",
         vector.numel(), " + |diagonal|, where diagonal is ", diagonal);
  return at::diag_embed(vector, diagonal);
}

// Circular padding along the last dimensions: which element of the input stands where in the
// output. `padding` has two numbers per dimension, those of the last dimension first.
class CircularPadding {
 public:
  CircularPadding(const at::Tensor& self, at::IntArrayRef padding, int64_t dims)
      : self_(self), padding_(padding), dims_(dims) {
    EXPECT(self.dim() == dims + 1 || self.dim() == dims + 2, "self has ", self.dim(),
           " dimensions, expected ", dims + 1, " or ", dims + 2);
    EXPECT(static_cast<int64_t>(padding.size()) == 2 * dims, "padding has ", padding.size(),
           " values, expected ", 2 * dims);
    for (int64_t dim = self.dim() - dims - 1; dim < self.dim(); ++dim) {
      EXPECT(self.size(dim) > 0, "self has shape ", self.sizes(),
             ", expected no size 0 but that of the batch");
    }
    for (size_t i = 0; i < padding.size(); ++i) {
      const int64_t size = self.size(self.dim() - 1 - static_cast<int64_t>(i / 2));
      EXPECT(padding[i] >= 0 && padding[i] < size, "padding[", i, "] is ", padding[i],
             ", expected 0 to ", size - 1, ", less than the size of its dimension");
    }
  }

  at::Tensor forward() const {
    at::Tensor result = self_;
    for (int64_t i = 0; i < dims_; ++i) result = at::index_select(result, dim(i), sources(i));
    return result;
  }

  at::Tensor backward(at::Tensor gradient) const {
    check_gradient(gradient);
    for (int64_t i = 0; i < dims_; ++i) {
      std::vector<int64_t> sizes = gradient.sizes().vec();
      sizes[static_cast<size_t>(dim(i))] = self_.size(dim(i));
      gradient = at::index_add(at::zeros(sizes, gradient.options()), dim(i), sources(i), gradient);
    }
    return gradient;
  }

 private:
  int64_t dim(int64_t i) const { return self_.dim() - 1 - i; }
  int64_t before(int64_t i) const { return padding_[static_cast<size_t>(2 * i)]; }
  int64_t padded_size(int64_t i) const {
    return before(i) + self_.size(dim(i)) + padding_[static_cast<size_t>(2 * i + 1)];
  }
  // The places of the input, one for each of the output.
  at::Tensor sources(int64_t i) const {
    const auto options = at::TensorOptions(at::kLong).device(self_.device());
    return at::remainder(at::arange(-before(i), padded_size(i) - before(i), options),
                         self_.size(dim(i)));
  }
  void check_gradient(const at::Tensor& gradient) const {
    std::vector<int64_t> expected = self_.sizes().vec();
    for (int64_t i = 0; i < dims_; ++i) expected[static_cast<size_t>(dim(i))] = padded_size(i);
    EXPECT(gradient.sizes() == at::IntArrayRef(expected), "gradOutput has shape ", gradient.sizes(),
           ", expected ", expected, ", that of the padded self");
  }

  const at::Tensor& self_;
  at::IntArrayRef padding_;
  int64_t dims_;
};

void circular_pad(const at::Tensor& self, at::IntArrayRef padding, int64_t dims, Output& out) {
  expect_dtype(out, self);
  out =
      moved(self, [&](const at::Tensor& x) { return CircularPadding(x, padding, dims).forward(); });
}

void circular_pad_backward(const at::Tensor& gradient, const at::Tensor& self,
                           at::IntArrayRef padding, int64_t dims, Output& out) {
  EXPECT(gradient.scalar_type() == self.scalar_type(), "gradOutput has dtype ",
         dtype_text(gradient.scalar_type()), ", expected ", dtype_text(self.scalar_type()),
         " as self has");
  expect_dtype(out, self);
  out = CircularPadding(self, padding, dims).backward(wide(gradient));
}

}  // namespace

ACLNN(Permute, (In, self), (Ints, dims), (Out, out)) {
  expect_dtype(out, self);
  out = at::permute(self, dims);
}
ACLNN(Expand, (In, self), (Ints, size), (Out, out)) {
  expect_dtype(out, self);
  EXPECT(std::ranges::all_of(size, [](int64_t each) { return each >= 0; }), "size is ",
         at::IntArrayRef(size), ", expected no negative sizes");
  out = self.expand(size);
}
ACLNN(Flatten, (In, self), (int64_t, axis), (Out, out)) {
  expect_dtype(out, self);
  const auto dim = static_cast<size_t>(c10::maybe_wrap_dim(axis.value(), self.dim()));
  out = self.reshape({product(self.sizes().slice(0, dim)), product(self.sizes().slice(dim))});
}

ACLNN(Slice, (In, self), (int64_t, dim), (int64_t, start), (int64_t, end), (int64_t, step),
      (Out, out)) {
  expect_dtype(out, self);
  EXPECT(step > 0, "step is ", step.value(), ", expected 1 or more");
  out = sliced(self, dim, start, end, step);
}
ACLNN(SliceV2, (In, self), (Ints, starts), (Ints, ends), (Ints, axes), (Ints, steps), (Out, out)) {
  expect_dtype(out, self);
  check_same_count("ends", ends.size(), starts.size());
  check_same_count("axes", axes.size(), starts.size());
  check_same_count("steps", steps.size(), starts.size());
  out = sliced_along_axes(self, starts, ends, axes, steps);
}
ACLNN(StridedSlice, (In, self), (Ints, begin), (Ints, end), (Ints, strides), (int64_t, beginMask),
      (int64_t, endMask), (int64_t, ellipsisMask), (int64_t, newAxisMask),
      (int64_t, shrinkAxisMask), (Out, out)) {
  expect_dtype(out, self);
  const StridedSlice slice{begin,
                           end,
                           strides,
                           beginMask.value(),
                           endMask.value(),
                           ellipsisMask.value(),
                           newAxisMask.value(),
                           shrinkAxisMask.value()};
  out = moved(self, [&](const at::Tensor& x) { return slice.of(x); });
}
// Without axes the lists are for all dimensions.
ACLNN(StridedSliceAssignV2, (InOut, varRef), (In, inputValue), (Ints, begin), (Ints, end),
      (Ints, strides), (OptionalInts, axesOptional)) {
  expect_dtype(varRef, inputValue);
  EXPECT(varRef->dim() > 0, "varRef has no dimensions, expected 1 to 8");
  std::vector<int64_t> axes = axesOptional ? axesOptional->vec() : std::vector<int64_t>();
  if (!axesOptional) {
    for (int64_t dim = 0; dim < varRef->dim(); ++dim) axes.push_back(dim);
  }
  check_same_count("begin", begin.size(), axes.size());
  check_same_count("end", end.size(), axes.size());
  check_same_count("strides", strides.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    EXPECT(strides[i] == 1 || (axes[i] != -1 && axes[i] != varRef->dim() - 1),
           "the stride of the last dimension is ", strides[i], ", expected 1");
  }
  const at::Tensor result = varRef->clone();
  const at::Tensor slice = sliced_along_axes(result, begin, end, axes, strides);
  EXPECT(inputValue.sizes() == slice.sizes(), "inputValue has shape ", inputValue.sizes(),
         ", expected ", slice.sizes(), ", the shape of the slice");
  slice.copy_(inputValue);
  varRef = result;
}

ACLNN(Diag, (In, self), (int64_t, diagonal), (Out, out)) {
  expect_dtype(out, self);
  EXPECT(self.dim() == 1 || self.dim() == 2, "self has ", self.dim(),
         " dimensions, expected 1 or 2");
  if (self.dim() == 1) {
    out = matrix_with(self, diagonal, out);
  } else {
    EXPECT(-self.size(0) <= diagonal && diagonal <= self.size(1), "diagonal is ", diagonal.value(),
           ", expected ", -self.size(0), " to ", self.size(1), ", within self's sizes");
    out = self.diagonal(diagonal);
  }
}
ACLNN(DiagFlat, (In, self), (int64_t, diagonal), (Out, out)) {
  expect_dtype(out, self);
  out = matrix_with(self.flatten(), diagonal, out);
}

// splitSections is the size of a piece; the last piece may be smaller.
ACLNN(SplitTensor, (In, self), (uint64_t, splitSections), (int64_t, dim), (Outs, out)) {
  const int64_t size = self.size(dim);
  EXPECT((size == 0) == (splitSections == 0), "splitSections is ", splitSections.value(),
         " for a dimension of size ", size, ", expected 0 if, and only if, the size is 0");
  const uint64_t piece = std::min(splitSections.value(), static_cast<uint64_t>(size));
  const uint64_t count = size == 0 ? 1 : (static_cast<uint64_t>(size) - 1) / piece + 1;
  EXPECT(out.size() == count, "out has ", out.size(), " tensors, expected ", count,
         ", one for each piece");
  const auto parts = at::split(self, static_cast<int64_t>(piece), dim);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT(out[i]->scalar_type() == out[0]->scalar_type(), "a tensor of out has dtype ",
           dtype_text(out[i]->scalar_type()), ", expected ", dtype_text(out[0]->scalar_type()),
           " as the first one has");
    out[i] = parts[i];
  }
}
// Each tensor is padded with zeros to numChunks equal pieces, which become rows; the rows of the
// tensors stand side by side.
ACLNN(ChunkCat, (Ins, tensors), (int64_t, dim), (int64_t, numChunks), (Out, out)) {
  EXPECT(dim == 0, "dim is ", dim.value(), ", expected 0");
  EXPECT(numChunks > 0, "numChunks is ", numChunks.value(), ", expected 1 or more");
  const int64_t rows = numChunks.value();
  std::vector<at::Tensor> pieces;
  for (const at::Tensor& tensor : tensors) {
    EXPECT(tensor.scalar_type() == tensors[0].scalar_type(), "a tensor of the list has dtype ",
           dtype_text(tensor.scalar_type()), ", expected ", dtype_text(tensors[0].scalar_type()),
           " as the first one has");
    EXPECT(tensor.dim() > 0, "a tensor of the list has no dimensions, expected 1 to 8");
    if (tensor.numel() == 0) continue;
    EXPECT(out->dim() == 2 && out->size(0) == rows && out->numel() > 0, "out has shape ",
           out->sizes(), ", expected a matrix of numChunks (", rows, ") rows");
    const int64_t size = tensor.size(0);
    const int64_t padded = (size / rows + (size % rows != 0)) * rows;
    pieces.push_back(at::constant_pad_nd(tensor.reshape({size, -1}), {0, 0, 0, padded - size})
                         .reshape({rows, -1}));
  }
  if (pieces.empty()) return;
  EXPECT(out->element_size() % pieces[0].element_size() == 0, "out has dtype ",
         dtype_text(out->scalar_type()), ", expected one whose size is a multiple of that of ",
         pieces[0].scalar_type());
  out = at::cat(pieces, 1);
}

ACLNN(CircularPad2d, (In, self), (Ints, padding), (Out, out)) {
  circular_pad(self, padding, 2, out);
}
ACLNN(CircularPad3d, (In, self), (Ints, padding), (Out, out)) {
  circular_pad(self, padding, 3, out);
}
ACLNN(CircularPad2dBackward, (FloatIn, gradOutput), (FloatIn, self), (Ints, padding),
      (Out, gradInput)) {
  circular_pad_backward(gradOutput, self, padding, 2, gradInput);
}
ACLNN(CircularPad3dBackward, (FloatIn, gradOutput), (FloatIn, self), (Ints, padding),
      (Out, gradInput)) {
  circular_pad_backward(gradOutput, self, padding, 3, gradInput);
}

ACLNN(DiagPart, (In, x), (Out, y)) {
  EXPECT(x.dim() == 2 && x.size(0) == x.size(1), "x has shape ", x.sizes(),
         ", expected a square matrix");
  expect_dtype(y, x);
  expect_shape("y", y, {x.size(0)});
  y = at::diagonal(x);
}
ACLNN(Expandv, (In, self), (Ints, shape), (Out, out)) {
  expect_dtype(out, self);
  EXPECT(std::ranges::all_of(shape, [](int64_t each) { return each >= 0; }), "shape is ",
         at::IntArrayRef(shape), ", expected no negative sizes");
  out = self.expand(shape);
}

}  // namespace aclnn_host::slicing_rows
