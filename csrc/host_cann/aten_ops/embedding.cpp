// Embeddings: rows of a table, by index.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/embedding_renorm.h>
#include <ATen/ops/where.h>

#include "host_cann/aten_ops/bounds.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

ACLNN(Embedding, (In, weight), (IndexIn, indices), (Out, out)) {
  out = at::embedding(weight, indices);
}
ACLNN(EmbeddingDenseBackward, (In, grad), (IndexIn, indices), (uint64_t, numWeights),
      (uint64_t, paddingIdx), (bool, scaleGradByFreq), (Out, out)) {
  const auto rows = static_cast<int64_t>(numWeights.value());
  check_bounds("indices", indices, rows);
  out = at::embedding_dense_backward(wide(grad), indices, rows,
                                     static_cast<int64_t>(paddingIdx.value()), scaleGradByFreq);
}
// Rows that are used and longer than maxNorm are scaled to that length.
ACLNN(EmbeddingRenorm, (InOut, selfRef), (IndexIn, indices), (double, maxNorm),
      (double, normType)) {
  check_bounds("indices", indices, selfRef->size(0));
  selfRef = at::embedding_renorm(wide(selfRef), indices, maxNorm, normType);
}
// onValue at the class's place along axis, offValue elsewhere.
ACLNN(OneHot, (In, self), (int, numClasses), (In, onValue), (In, offValue), (int64_t, axis),
      (Out, out)) {
  TORCH_CHECK(axis >= -1 && axis <= self.dim(), "axis is ", axis, ", expected -1 to ", self.dim());
  TORCH_CHECK(numClasses >= 0, "numClasses is ", numClasses, ", expected 0 or more");
  const at::Tensor classes = at::arange(c10::Scalar(numClasses.value()), self.options());
  const int64_t place = axis < 0 ? self.dim() : axis;
  std::vector<int64_t> along(static_cast<size_t>(self.dim()) + 1, 1);
  along[static_cast<size_t>(place)] = numClasses;
  out = at::where(self.unsqueeze(place) == classes.view(along), onValue.reshape({}),
                  offValue.reshape({}));
}
