// Reads and assigns slices.

#include <numeric>

#include <c10/core/WrapDimMinimal.h>

#include "cann/rows/row.h"

namespace aclnn_host::shape_slicing_rows {

namespace {

// self[start:end:step] along a dimension. A step larger than the size is replaced by the size,
// which selects the same element without overflow in ATen.
at::Tensor sliced(const at::Tensor& self, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return at::slice(self, dim, start, end, std::min(step, std::max<int64_t>(self.size(dim), 1)));
}

void check_same_count(const char* name, size_t count, size_t expected) {
  EXPECT(count == expected, name, " has ", count, " values, expected ", expected,
         ", as many as the other lists have");
}

// Slices along some dimensions, each at most once.
at::Tensor sliced_along_axes(at::Tensor self, at::IntArrayRef starts, at::IntArrayRef ends,
                             at::IntArrayRef axes, at::IntArrayRef steps) {
  std::vector<bool> taken(static_cast<size_t>(self.dim()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = c10::maybe_wrap_dim(axes[i], self.dim(), /*wrap_scalar=*/false);
    EXPECT(!taken[static_cast<size_t>(dim)], "dimension ", dim,
           " is sliced twice, expected different axes");
    EXPECT(steps[i] > 0, "steps[", i, "] is ", steps[i], ", expected 1 or more");
    taken[static_cast<size_t>(dim)] = true;
    self = sliced(self, dim, starts[i], ends[i], steps[i]);
  }
  return self;
}

// The masks of aclnnStridedSlice have one bit for each position in the lists.
bool has_bit(int64_t mask, size_t i) {
  return i < 64 && (static_cast<uint64_t>(mask) >> i & 1) != 0;
}

// self[begin:end:stride] along a dimension, backwards if the stride is negative. An open begin or
// end extends to the first or last element on its side.
struct Range {
  int64_t begin;
  int64_t end;
  int64_t stride;
  bool is_begin_open;
  bool is_end_open;

  at::Tensor apply(const at::Tensor& self, int64_t dim) const {
    const int64_t size = self.size(dim);
    const auto clamped = [size](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    if (stride > 0) {
      return sliced(self, dim, is_begin_open ? 0 : clamped(begin, 0, size),
                    is_end_open ? size : clamped(end, 0, size), stride);
    }
    // For a negative stride, positions are counted from the other end.
    const int64_t first = is_begin_open ? 0 : size - 1 - clamped(begin, -1, size - 1);
    const int64_t last = is_end_open ? size : size - 1 - clamped(end, -1, size - 1);
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
      EXPECT(strides[i] != 0, "strides[", i, "] is 0, expected another number");
      EXPECT(strides[i] > 0 || !has_bit(shrink_axis_mask, i), "strides[", i, "] is ", strides[i],
             ", expected 1 or more because of its bit in shrinkAxisMask");
    }
  }

  // True if a position of the lists selects one dimension of the input, not several (ellipsis) or
  // none (new axis).
  bool takes_dimension(size_t i) const {
    return !has_bit(ellipsis_mask, i) && !has_bit(new_axis_mask, i);
  }

  at::Tensor apply(at::Tensor self) const {
    check();
    int64_t taken = 0;
    for (size_t i = 0; i < strides.size(); ++i) taken += takes_dimension(i);
    const int64_t others = self.dim() - taken;
    EXPECT(others >= 0, "begin selects ", taken, " dimensions, expected at most ", self.dim(),
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
        self = range.apply(self, dim++);
      }
    }
    return self;
  }
};

}  // namespace

ACLNN(Slice, (In, self), (int64_t, dim), (int64_t, start), (int64_t, end), (int64_t, step),
      (SameDtype<Out>, out, "self")) {
  expect_at_least("step", step, 1);
  out = sliced(self, dim, start, end, step);
}
ACLNN(SliceV2, (In, self), (Ints, starts), (Ints, ends), (Ints, axes), (Ints, steps),
      (SameDtype<Out>, out, "self")) {
  check_same_count("ends", ends.size(), starts.size());
  check_same_count("axes", axes.size(), starts.size());
  check_same_count("steps", steps.size(), starts.size());
  out = sliced_along_axes(self, starts, ends, axes, steps);
}
// Behaviour of StridedSlice: The masks are TensorFlow's: an ellipsis wins over a new axis, a new
// axis over shrinking, and shrinking ignores the masks of begin and end.
ACLNN(StridedSlice, (In, self), (Ints, begin), (Ints, end), (Ints, strides), (int64_t, beginMask),
      (int64_t, endMask), (int64_t, ellipsisMask), (int64_t, newAxisMask),
      (int64_t, shrinkAxisMask), (SameDtype<Out>, out, "self")) {
  const StridedSlice slice{begin,   end,          strides,     beginMask,
                           endMask, ellipsisMask, newAxisMask, shrinkAxisMask};
  out = moved(self, [&](const at::Tensor& x) { return slice.apply(x); });
}
// Without axes the lists apply to all dimensions.
ACLNN(StridedSliceAssignV2, (SameDtype<InOut>, varRef, "inputValue"), (In, inputValue),
      (Ints, begin), (Ints, end), (Ints, strides), (Optional<Ints>, axesOptional)) {
  expect_dims("varRef", varRef, 1, 8);
  std::vector<int64_t> axes(static_cast<size_t>(varRef->dim()));
  std::iota(axes.begin(), axes.end(), 0);
  if (axesOptional) axes = axesOptional->vec();
  check_same_count("begin", begin.size(), axes.size());
  check_same_count("end", end.size(), axes.size());
  check_same_count("strides", strides.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    EXPECT(strides[i] == 1 || (axes[i] != -1 && axes[i] != varRef->dim() - 1), "strides[", i,
           "] is ", strides[i], ", expected 1 in the last dimension");
  }
  const at::Tensor result = varRef.editable();
  const at::Tensor slice = sliced_along_axes(result, begin, end, axes, strides);
  expect_shape("inputValue", inputValue, slice.sizes());
  slice.copy_(inputValue);
  varRef = result;
}

}  // namespace aclnn_host::shape_slicing_rows
