// Max unpooling and its gradients.

#include "cann/rows/images.h"
#include "cann/rows/planes.h"
#include "cann/rows/pooling/pooling_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::pooling_max_unpooling_rows {

namespace {

// Flattens the last `dims` dimensions.
at::Tensor flat(const at::Tensor& tensor, int64_t dims) {
  return tensor.flatten(tensor.dim() - dims);
}

// Checks the arguments of unpooling in three dimensions: the sizes of the larger image, and the
// windows.
void check_unpool3d(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef stride,
                    at::IntArrayRef padding, const char* name, const at::Tensor& image) {
  check_image(self, output_size, name, image, 3);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT(stride.size() == 3 && padding.size() == 3, "stride is ", stride, " and padding is ",
         padding, ", expected 3 numbers each");
  check_values("stride", stride, 1, kMost);
  check_values("the sizes of self", self.sizes().slice(1), 1, kMost);
  check_values("outputSize", output_size, 1, kMost);
  EXPECT(self.size(0) == 0 || image.numel() >= self.numel(), "outputSize is ", output_size,
         ", expected as many elements as self has, ", self.sizes().slice(self.dim() - 3));
}

// Scatters self to its indices in an image of zeros.
at::Tensor unpooled(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef sizes,
                    int64_t dims) {
  return moved(self, [&](const at::Tensor& x) {
    const at::Tensor empty = at::zeros(sizes, x.options());
    return at::scatter(flat(empty, dims), -1, flat(indices, dims), flat(x, dims)).view(sizes);
  });
}

at::Tensor picked(const at::Tensor& image, const at::Tensor& indices, int64_t dims) {
  return moved(image, [&](const at::Tensor& x) {
    return at::gather(flat(x, dims), -1, flat(indices, dims)).view(indices.sizes());
  });
}

}  // namespace

// Behaviour of MaxUnpool2d: Of several elements with one index the last is taken. (With
// at::max_unpool2d it would be any one, as threads come.)
ACLNN(MaxUnpool2d, (Image<In>, self), (SameShape<Image<IndexIn>>, indices, "self"),
      (Ints, outputSize), (SameDtype<Image<Out>>, out, "self")) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  check_image(self, outputSize, "out", out, 2);
  check_values("the sizes of self", self.sizes().slice(1), 1, kMost);
  check_values("outputSize", outputSize, 1, kMost);
  EXPECT(outputSize[0] * outputSize[1] >= self.size(-2) * self.size(-1), "outputSize is ",
         outputSize, ", expected as many elements as self has, ",
         self.sizes().slice(self.dim() - 2));
  out = unpooled(self, indices, out->sizes(), 2);
}
ACLNN(MaxUnpool2dBackward, (SameDtype<Image<In>>, gradOutput, "self"), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "self"), (Ints, outputSize), (Image<Out>, out)) {
  check_image(self, outputSize, "gradOutput", gradOutput, 2);
  EXPECT(self.numel() == 0 || gradOutput.numel() > 0, "gradOutput has shape ", gradOutput.sizes(),
         ", expected elements as self has shape ", self.sizes());
  out = picked(gradOutput, indices, 2);
}
ACLNN(MaxUnpool3d, (Image<In>, self), (SameShape<Image<IndexIn>>, indices, "self"),
      (Ints, outputSize), (Ints, stride), (Ints, padding),
      (SameDtype<Image<Out>>, outRef, "self")) {
  check_unpool3d(self, outputSize, stride, padding, "outRef", outRef);
  outRef = unpooled(self, indices, outRef->sizes(), 3);
}
ACLNN(MaxUnpool3dBackward, (SameDtype<Image<In>>, gradOutput, "self"), (Image<In>, self),
      (SameShape<Image<IndexIn>>, indices, "self"), (Ints, outputSize), (Ints, stride),
      (Ints, padding), (SameDtype<Image<Out>>, out, "self")) {
  check_unpool3d(self, outputSize, stride, padding, "gradOutput", gradOutput);
  out = picked(gradOutput, indices, 3);
}

}  // namespace aclnn_host::pooling_max_unpooling_rows
