// Reorders or reshapes elements.

#include <numeric>

#include <ATen/WrapDimUtils.h>

#include "cann/rows/images.h"
#include "cann/rows/row.h"

namespace aclnn_host::shape_permute_rows {

namespace {

// Refuses lists that are no permutation of the dimensions 0 to dims - 1.
void expect_order(at::IntArrayRef perm, size_t dims) {
  std::vector<int64_t> order(dims);
  std::iota(order.begin(), order.end(), 0);
  EXPECT(std::ranges::is_permutation(perm, order), "perm is ", perm, ", expected each of the ",
         dims, " dimensions that are transposed once, counted from 0");
}

// The position of each letter of a layout in another one with the same letters.
std::vector<int64_t> positions_of(const std::string& layout, const std::string& other) {
  std::string letters = layout;
  std::ranges::sort(letters);
  EXPECT(!letters.empty() && letters.size() <= 5 &&
             std::ranges::adjacent_find(letters) == letters.end(),
         "srcFormat is \"", layout, "\", expected one to five different letters");
  EXPECT(std::ranges::is_permutation(layout, other), "dstFormat is \"", other,
         "\", expected the letters of srcFormat, \"", layout, "\"");
  std::vector<int64_t> positions;
  for (const char letter : layout) positions.push_back(static_cast<int64_t>(other.find(letter)));
  return positions;
}

}  // namespace

ACLNN(Permute, (In, self), (Ints, dims), (SameDtype<Out>, out, "self")) {
  out = at::permute(self, dims);
}

// The vendor's operators split and join only dimensions that perm keeps adjacent; here any shape
// with the right number of elements is accepted.
ACLNN(ConfusionTranspose, (In, x), (Ints, perm), (Ints, shape), (bool, transpose_first),
      (SameDtype<Out>, out, "x")) {
  expect_sizes_from_0("shape", shape);
  expect_order(perm, transpose_first ? static_cast<size_t>(x.dim()) : shape.size());
  out = moved(x, [&](const at::Tensor& elements) {
    return (transpose_first ? elements.permute(perm).reshape(shape)
                            : elements.reshape(shape).permute(perm))
        .contiguous();
  });
}
ACLNN(ChannelShuffle, (Image<In>, self), (int64_t, groups), (Image<Out>, out)) {
  out = at::channel_shuffle(self, groups);
}

ACLNN(DataFormatDimMap, (In, x), (const char*, srcFormat), (const char*, dstFormat),
      (Like<Out>, y, "x")) {
  expect_dtype("x", x, {at::kInt, at::kLong});
  const std::vector<int64_t> positions = positions_of(srcFormat, dstFormat);
  const auto count = static_cast<int64_t>(positions.size());
  check_bounds("x", x, count, -count);
  const at::Tensor dims = at::where(x < 0, x + count, x).to(at::kLong);
  const at::Tensor table = at::tensor(positions).to(x.device()).to(x.scalar_type());
  y = table.index_select(0, dims.flatten()).view(x.sizes());
}

ACLNN(Flatten, (In, self), (int64_t, axis), (SameDtype<Out>, out, "self")) {
  const auto dim = static_cast<size_t>(c10::maybe_wrap_dim(axis.value(), self.dim()));
  out = self.reshape({product(self.sizes().slice(0, dim)), product(self.sizes().slice(dim))});
}

ACLNN(Flip, (In, self), (Ints, dims), (Out, out)) {
  out = at::flip(self, dims);
}
ACLNN(Roll, (In, x), (Ints, shifts), (Ints, dims), (Out, out)) {
  out = at::roll(x, shifts, dims);
}

}  // namespace aclnn_host::shape_permute_rows
