// Padding with a constant or with elements of the tensor, and gradients.

#include "cann/rows/planes.h"
#include "cann/rows/row.h"

namespace aclnn_host::shape_padding_rows {

namespace {

// Circular padding along the last dimensions. `padding` has two numbers for each dimension, those
// of the last dimension first.
class CircularPadding {
 public:
  CircularPadding(const at::Tensor& self, at::IntArrayRef padding, int64_t dims)
      : self_(self), padding_(padding), dims_(dims) {
    expect_dims("self", self, dims + 1, dims + 2);
    EXPECT(static_cast<int64_t>(padding.size()) == 2 * dims, "padding has ", padding.size(),
           " values, expected ", 2 * dims);
    for (int64_t dim = self.dim() - dims - 1; dim < self.dim(); ++dim) {
      EXPECT(self.size(dim) > 0, "self has shape ", self.sizes(),
             ", expected no size 0 but that of the batch");
    }
    for (size_t i = 0; i < padding.size(); ++i) {
      const int64_t size = self.size(self.dim() - 1 - static_cast<int64_t>(i / 2));
      EXPECT(padding[i] >= 0 && padding[i] <= size, "padding[", i, "] is ", padding[i],
             ", expected 0 to ", size, ", the size of its dimension");
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
  // The input index of each output index along a dimension.
  at::Tensor sources(int64_t i) const {
    const auto options = at::TensorOptions(at::kLong).device(self_.device());
    return at::remainder(at::arange(-before(i), padded_size(i) - before(i), options),
                         self_.size(dim(i)));
  }
  void check_gradient(const at::Tensor& gradient) const {
    std::vector<int64_t> expected = self_.sizes().vec();
    for (int64_t i = 0; i < dims_; ++i) expected[static_cast<size_t>(dim(i))] = padded_size(i);
    expect_shape("gradOutput", gradient, expected);
  }

  const at::Tensor& self_;
  at::IntArrayRef padding_;
  int64_t dims_;
};

void circular_pad(const at::Tensor& self, at::IntArrayRef padding, int64_t dims, Output& out) {
  out =
      moved(self, [&](const at::Tensor& x) { return CircularPadding(x, padding, dims).forward(); });
}

void circular_pad_backward(const at::Tensor& gradient, const at::Tensor& self,
                           at::IntArrayRef padding, int64_t dims, Output& out) {
  out = CircularPadding(self, padding, dims).backward(wide(gradient));
}

// Refuses numbers whose sums with sizes overflow, which ATen does not check.
void expect_addable(const char* name, at::IntArrayRef padding) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  check_values(name, padding, -kMost, kMost);
}

// Requires a padding before and after each dimension in the function's name, such as
// ReflectionPad2d.
void expect_pairs(at::IntArrayRef padding, std::string_view function) {
  const auto count = static_cast<size_t>(function[function.size() - 2] - '0') * 2;
  EXPECT(padding.size() == count, "padding has ", padding.size(), " numbers, expected ", count);
}

// Requires a reflection to stay within the tensor, which ATen's gradients do not check.
void expect_reflection(at::IntArrayRef padding, const at::Tensor& self) {
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = self.size(self.dim() - 1 - static_cast<int64_t>(i / 2));
    EXPECT(padding[i] < size, "padding[", i, "] is ", padding[i], ", expected less than ", size,
           ", the size of its dimension");
  }
}

}  // namespace

ACLNN(ConstantPadNd, (In, self), (Ints, pad), (Number, value), (Out, out)) {
  expect_addable("pad", pad);
  out = at::constant_pad_nd(self, pad, value);
}

// Behaviour of CircularPad*: A padding may be as large as its dimension, as in CANN's public check
// and in PyTorch; the documents say less.
ACLNN(CircularPad2d, (In, self), (Ints, padding), (SameDtype<Out>, out, "self")) {
  circular_pad(self, padding, 2, out);
}
ACLNN(CircularPad2dBackward, (SameDtype<Floating<In>>, gradOutput, "self"), (Floating<In>, self),
      (Ints, padding), (SameDtype<Out>, gradInput, "self")) {
  circular_pad_backward(gradOutput, self, padding, 2, gradInput);
}
ACLNN(CircularPad3d, (In, self), (Ints, padding), (SameDtype<Out>, out, "self")) {
  circular_pad(self, padding, 3, out);
}
ACLNN(CircularPad3dBackward, (SameDtype<Floating<In>>, gradOutput, "self"), (Floating<In>, self),
      (Ints, padding), (SameDtype<Out>, gradInput, "self")) {
  circular_pad_backward(gradOutput, self, padding, 3, gradInput);
}

// aclnn<Name>(self, padding, out) and aclnn<Name>Backward(gradOutput, self, padding, gradInput)
#define PADDING(Name, function)                                                              \
  ACLNN(Name, (In, self), (Ints, padding), (Out, out)) {                                     \
    expect_pairs(padding, #Name);                                                            \
    expect_addable("padding", padding);                                                      \
    out = moved(self, [&](const at::Tensor& x) { return at::function(x, padding); });        \
  }                                                                                          \
  ACLNN(Name##Backward, (In, gradOutput), (In, self), (Ints, padding), (Out, gradInput)) {   \
    expect_pairs(padding, #Name);                                                            \
    expect_addable("padding", padding);                                                      \
    expect_planes("gradOutput", gradOutput, self.sizes(),                                    \
                  static_cast<int64_t>(padding.size() / 2));                                 \
    if (std::string_view(#Name).starts_with("Reflection")) expect_reflection(padding, self); \
    gradInput = at::function##_backward(wide(gradOutput), wide(self), padding);              \
  }
PADDING(ReflectionPad1d, reflection_pad1d)
PADDING(ReflectionPad2d, reflection_pad2d)
PADDING(ReflectionPad3d, reflection_pad3d)
PADDING(ReplicationPad1d, replication_pad1d)
PADDING(ReplicationPad2d, replication_pad2d)
PADDING(ReplicationPad3d, replication_pad3d)
#undef PADDING

}  // namespace aclnn_host::shape_padding_rows
