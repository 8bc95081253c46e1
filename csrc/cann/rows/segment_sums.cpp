// The exponentials of the sums of all segments of a sequence, and their gradient.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/tril.h>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"

namespace aclnn_host::segment_sums_rows {

// The element (i, j) is exp(self[j + 1] + ... + self[i]), 1 where i is j, and 0 where i is less.
ACLNN(ExpSegsum, (FloatIn, self), (Out, out)) {
  expect_dims("self", self, 3, 4);
  expect_dtype(out, self);
  const int64_t length = self.size(-1);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(length);
  expect_shape("out", out, sizes);
  const at::Tensor columns = at::tril(wide(self).unsqueeze(-1).expand(sizes), -1);
  out = at::tril(at::exp(at::cumsum(columns, -2)));
}

// gradSelf is what ExpSegsum made.
ACLNN(ExpSegsumBackward, (FloatIn, gradOutput), (FloatIn, gradSelf), (Out, gradInput)) {
  expect_dims("gradOutput", gradOutput, 4, 5);
  EXPECT(gradOutput.size(-1) == gradOutput.size(-2), "gradOutput has shape ", gradOutput.sizes(),
         ", expected two last dimensions of one size");
  expect_like("gradSelf", gradSelf, gradOutput);
  expect_dtype(gradInput, gradOutput);
  expect_shape("gradInput", gradInput,
               gradOutput.sizes().slice(0, static_cast<size_t>(gradOutput.dim() - 1)));
  const at::Tensor product = at::tril(wide(gradOutput) * wide(gradSelf), -1);
  const at::Tensor sums = at::flip(at::cumsum(at::flip(product, {-2}), -2), {-2});
  gradInput = at::tril(sums, -1).sum(-1);
}

}  // namespace aclnn_host::segment_sums_rows
