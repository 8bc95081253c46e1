// Concatenates tensors and splits them.

#include "cann/rows/row.h"

namespace aclnn_host::shape_join_and_split_rows {

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
    expect_dtype(out[i], out[0]);
    out[i] = parts[i];
  }
}
// Each tensor is padded with zeros to numChunks equal pieces, which become rows; the rows of the
// tensors are concatenated.
ACLNN(ChunkCat, (Ins, tensors), (int64_t, dim), (int64_t, numChunks), (Out, out)) {
  expect_one_of("dim", dim, {0});
  expect_at_least("numChunks", numChunks, 1);
  const int64_t rows = numChunks.value();
  std::vector<at::Tensor> pieces;
  for (const at::Tensor& tensor : tensors) {
    expect_dtype("tensors", tensor, tensors[0]);
    expect_dims("tensors", tensor, 1, 8);
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

}  // namespace aclnn_host::shape_join_and_split_rows
