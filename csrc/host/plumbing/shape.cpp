// Joining, splitting, repeating and moving elements.

#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle.h>
#include <ATen/ops/col2im.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/unfold_backward.h>

#include "plumbing/plumbing.h"

using namespace aclnn_host;

ACLNN(Cat, (Ins, tensors), (int64_t, dim), (Out, out)) {
  out = at::cat(tensors, dim);
}
ACLNN(Stack, (Ins, tensors), (int64_t, dim), (Out, out)) {
  out = at::stack(tensors, dim);
}
ACLNN(SplitWithSize, (In, self), (Ints, splitSize), (int64_t, dim), (Outs, out)) {
  const auto parts = at::split_with_sizes(self, splitSize, dim);
  TORCH_CHECK(out.size() == parts.size(), "out has ", out.size(), " tensors, expected ",
              parts.size(), ", as splitSize has sizes");
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
  out = at::triu(self, diagonal);
}
ACLNN(Tril, (In, self), (int64_t, diagonal), (Out, out)) {
  out = at::tril(self, diagonal);
}
ACLNN(InplaceTriu, (InOut, selfRef), (int64_t, diagonal)) {
  selfRef = at::triu(selfRef, diagonal);
}
ACLNN(InplaceTril, (InOut, selfRef), (int64_t, diagonal)) {
  selfRef = at::tril(selfRef, diagonal);
}
ACLNN(ConstantPadNd, (In, self), (Ints, pad), (Number, value), (Out, out)) {
  out = at::constant_pad_nd(self, pad, value);
}
ACLNN(ChannelShuffle, (In, self), (int64_t, groups), (Out, out)) {
  out = at::channel_shuffle(self, groups);
}
ACLNN(Im2col, (In, self), (Ints, kernelSize), (Ints, dilation), (Ints, padding), (Ints, stride),
      (Out, out)) {
  out = at::im2col(self, kernelSize, dilation, padding, stride);
}
ACLNN(Im2colBackward, (In, gradOutput), (Ints, inputSize), (Ints, kernelSize), (Ints, dilation),
      (Ints, padding), (Ints, stride), (Out, out)) {
  out = at::col2im(gradOutput, inputSize, kernelSize, dilation, padding, stride);
}
ACLNN(UnfoldGrad, (In, gradOut), (Ints, inputSizes), (int64_t, dim), (int64_t, size),
      (int64_t, step), (Out, gradIn)) {
  gradIn = at::unfold_backward(gradOut, inputSizes, dim, size, step);
}

// outputSize is the size of the result along the dimension.
ACLNN(RepeatInterleave, (In, self), (In, repeats), (int64_t, outputSize), (Out, out)) {
  out = at::repeat_interleave(self, repeats, std::nullopt, outputSize);
}
ACLNN(RepeatInterleaveWithDim, (In, self), (In, repeats), (int64_t, dim), (int64_t, outputSize),
      (Out, out)) {
  out = at::repeat_interleave(self, repeats, dim, outputSize);
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
  out = at::repeat_interleave(repeats, std::optional(outputSize));
}
