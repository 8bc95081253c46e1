// Copies from and to views given by sizes, strides and an offset.

#include <c10/util/safe_numerics.h>

#include "cann/rows/integers.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/private_format.h"

namespace aclnn_host::shape_strided_views_rows {

namespace {

constexpr int64_t kMostDims = 8;

// A view of contiguous elements.
struct View {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset;

  bool is_empty() const { return std::ranges::find(sizes, 0) != sizes.end(); }

  // Refuses a view that exceeds `count` elements. `name` is the tensor's.
  void check(const char* name, int64_t count) const {
    const auto is_negative = [](int64_t value) { return value < 0; };
    EXPECT(std::ranges::none_of(sizes, is_negative) && std::ranges::none_of(strides, is_negative) &&
               offset >= 0,
           "the view of ", name, " has sizes ", sizes, ", strides ", strides, " and offset ",
           offset, ", expected no negative numbers");
    if (is_empty()) return;
    uint64_t last = static_cast<uint64_t>(offset);
    bool overflows = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      uint64_t distance = 0;
      overflows |= c10::mul_overflows(static_cast<uint64_t>(sizes[i] - 1),
                                      static_cast<uint64_t>(strides[i]), &distance);
      overflows |= c10::add_overflows(last, distance, &last);
    }
    EXPECT(!overflows && last < static_cast<uint64_t>(count), "the view of ", name, " has sizes ",
           sizes, ", strides ", strides, " and offset ", offset, ", expected positions among the ",
           count, " elements of ", name);
  }

  // Refuses a view to write to, if a stride of 0 makes elements share memory.
  void check_distinct(const char* name) const {
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT(strides[i] > 0 || sizes[i] <= 1, "the view of ", name, " has sizes ", sizes,
             " and strides ", strides, ", expected a different position for each element");
    }
  }

  at::Tensor apply(const at::Tensor& elements) const {
    return elements.as_strided(sizes, strides, offset);
  }
};

View view_of(const at::Tensor& sizes, const at::Tensor& strides, const at::Tensor& offset) {
  return {integers_in(sizes), integers_in(strides), integers_in(offset)[0]};
}

void expect_count(const char* name, const at::Tensor& tensor, int64_t count) {
  EXPECT(tensor.numel() == count, name, " has shape ", tensor.sizes(), ", expected ", count,
         " elements");
}

}  // namespace

ACLNN(AsStrided, (Stored<In>, x), (Ints, size), (Ints, stride), (Ints, storageOffset),
      (Stored<Out>, out)) {
  EXPECT(out.dtype() == x.dtype, "out has dtype ", dtype_name(out.dtype()), ", expected ",
         dtype_name(x.dtype));
  EXPECT(!is_private(x.format) && !is_private(out.format()), "x has format ", x.format,
         " and out has format ", out.format(), ", expected ND");
  EXPECT(size.size() == stride.size() && !size.empty() && size.size() <= size_t{kMostDims},
         "size is ", size, " and stride is ", stride,
         ", expected 1 to 8 numbers each, as many in one as in the other");
  EXPECT(storageOffset.size() == 1, "storageOffset is ", storageOffset, ", expected one number");
  const View view{size.vec(), stride.vec(), storageOffset[0]};
  view.check("x", x.elements.numel());
  expect_shape("out", out, size);
  out = view.is_empty() ? x.elements.new_empty(size) : view.apply(x.elements.contiguous());
}

// The views are given in tensors, so only stage 2 can check their range.
ACLNN(ViewCopy, (In, dst), (IndexIn, dst_size), (IndexIn, dst_stride),
      (IndexIn, dst_storage_offset), (SameDtype<In>, src, "dst"), (IndexIn, src_size),
      (IndexIn, src_stride), (IndexIn, src_storage_offset), (Like<Out>, dst_out, "dst")) {
  const int64_t rank = dst_size.numel();
  EXPECT(rank >= 1 && rank <= kMostDims, "dst_size has shape ", dst_size.sizes(),
         ", expected 1 to 8 elements");
  expect_count("dst_stride", dst_stride, rank);
  expect_count("src_size", src_size, rank);
  expect_count("src_stride", src_stride, rank);
  expect_count("dst_storage_offset", dst_storage_offset, 1);
  expect_count("src_storage_offset", src_storage_offset, 1);
  const at::Tensor result = dst.clone(at::MemoryFormat::Contiguous);
  if (has_values(dst_size) && dst.numel() > 0 && src.numel() > 0) {
    const View to = view_of(dst_size, dst_stride, dst_storage_offset);
    const View from = view_of(src_size, src_stride, src_storage_offset);
    to.check("dst", dst.numel());
    from.check("src", src.numel());
    EXPECT(to.sizes == from.sizes, "src_size is ", from.sizes, ", expected ", to.sizes,
           ", as dst_size is");
    to.check_distinct("dst");
    if (!to.is_empty()) to.apply(result).copy_(from.apply(src.contiguous()));
  }
  dst_out = result;
}

}  // namespace aclnn_host::shape_strided_views_rows
