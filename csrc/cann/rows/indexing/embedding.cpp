// Embeddings: rows of a table, by index.

#include "cann/rows/indexing/changes.h"
#include "cann/rows/row.h"

namespace aclnn_host::indexing_embedding_rows {

namespace {

enum class Bag { kSum = 0, kMean = 1, kMax = 2 };

bool is_index_type(const at::Tensor& numbers) {
  return numbers.scalar_type() == at::kInt || numbers.scalar_type() == at::kLong;
}
// Indices or offsets as INT64.
at::Tensor places_of(const char* name, const at::Tensor& numbers) {
  expect_dtype(name, numbers, {at::kLong, at::kInt, at::kShort, at::kChar, at::kByte});
  return numbers.to(at::kLong);
}

// The starts of bags; refuses offsets that are no starts. ATen does not check them, so a rehearsal
// needs valid ones.
at::Tensor starts_of(const at::Tensor& offsets, int64_t count, bool has_last) {
  EXPECT(offsets.numel() > (has_last ? 1 : 0) || count == 0, "offsets has shape ", offsets.sizes(),
         ", expected at least one bag because there are ", count, " indices");
  if (!offsets.is_cpu() || offsets.numel() == 0) return offsets.contiguous();
  if (is_rehearsed()) {
    at::Tensor starts = at::zeros(offsets.sizes(), offsets.options());
    if (has_last) starts.select(0, -1).fill_(count);
    return starts;
  }
  check_bounds("offsets", offsets, count + 1);
  EXPECT(offsets.select(0, 0).item().toLong() == 0 && offsets.diff().ge(0).all().item().toBool(),
         "offsets do not grow from 0, expected the starts of the bags, in order");
  const int64_t last = offsets.select(0, -1).item().toLong();
  EXPECT(!has_last || last == count, "offsets ends with ", last, ", expected ", count,
         ", the number of indices");
  return offsets.contiguous();
}

}  // namespace

ACLNN(Embedding, (In, weight), (IndexIn, indices), (Out, out)) {
  out = at::embedding(weight, indices);
}
ACLNN(EmbeddingDenseBackward, (In, grad), (IndexIn, indices), (uint64_t, numWeights),
      (uint64_t, paddingIdx), (bool, scaleGradByFreq), (Out, out)) {
  const auto rows = static_cast<int64_t>(numWeights.value());
  expect_dims("grad", grad, 1, 8);
  expect_shape("out", out, {rows, grad.size(-1)});
  check_bounds("indices", indices, rows);
  out = at::embedding_dense_backward(wide(grad), indices, rows,
                                     static_cast<int64_t>(paddingIdx.value()), scaleGradByFreq);
}
ACLNN(EmbeddingDenseGrad, (Floating<In>, grad), (IndexIn, indices), (int64_t, numWeights),
      (int64_t, paddingIdx), (bool, scaleGradByFreq), (SameDtype<Out>, y, "grad")) {
  expect_dims("indices", indices, 1);
  expect_at_least("numWeights", numWeights, 1);
  expect_range("paddingIdx", paddingIdx, -1, numWeights.value() - 1);
  expect_dims("grad", grad, 2);
  expect_shape("grad", grad, {indices.size(0), grad.size(1)});
  expect_shape("y", y, {numWeights.value(), grad.size(1)});
  check_bounds("indices", indices, numWeights);
  y = at::embedding_dense_backward(wide(grad), indices, numWeights.value(), paddingIdx.value(),
                                   scaleGradByFreq);
}
// Rows that are used and longer than maxNorm are scaled to that length.
ACLNN(EmbeddingRenorm, (InOut, selfRef), (IndexIn, indices), (double, maxNorm),
      (double, normType)) {
  check_bounds("indices", indices, selfRef->size(0));
  // The order in which a norm is summed depends on the layout of the rows, which a part does not
  // keep.
  const bool is_wide = wide(selfRef->scalar_type()) == selfRef->scalar_type();
  if (is_wide && selfRef->is_non_overlapping_and_dense()) {
    at::Tensor result = selfRef.editable();
    selfRef = at::embedding_renorm_(result, indices, maxNorm, normType);
    return;
  }
  change_slices(selfRef, selfRef, 0, indices, [&](at::Tensor x, const at::Tensor& rows) {
    at::embedding_renorm_(x, rows, maxNorm, normType);
  });
}

// bagSize may have one more element than there are bags, as offsets may, and maxIndices none if the
// mode is not a maximum. Both depend on the product.
// Behaviour of EmbeddingBag: indices has one dimension. With includeLastOffset the last offset is
// the number of indices. As in CANN's public check, every mode but 0 and 1 is the maximum, and one
// of indices and offsets may be of INT8, INT16 or UINT8.
ACLNN(EmbeddingBag, (Floating<In>, weight), (In, indices), (In, offsets),
      (Unused<bool>, scaleGradByFreq, "only the gradient depends on it"), (int64_t, mode),
      (Unused<bool>, sparse, "only the gradient depends on it"), (Optional<In>, perSampleWeights),
      (bool, includeLastOffset), (int64_t, paddingIdx), (SameDtype<Out>, output, "weight"),
      (Out, offset2bag), (Out, bagSize), (Out, maxIndices)) {
  expect_dims("weight", weight, 2);
  expect_dims("indices", indices, 1);
  expect_dims("offsets", offsets, 1);
  const at::Tensor places = places_of("indices", indices), first = places_of("offsets", offsets);
  EXPECT(is_index_type(indices) || is_index_type(offsets), "indices has dtype ",
         indices.scalar_type(), " and offsets ", offsets.scalar_type(),
         ", expected INT32 or INT64 for one of them");
  const Bag bag = mode == 0 ? Bag::kSum : mode == 1 ? Bag::kMean : Bag::kMax;
  if (perSampleWeights) {
    expect_one_of("mode", mode, {0}, " (sum) with perSampleWeights");
    expect_dtype("perSampleWeights", *perSampleWeights, weight);
    expect_shape("perSampleWeights", *perSampleWeights, indices.sizes());
  }
  const int64_t count = offsets.numel() - (includeLastOffset ? 1 : 0);
  EXPECT(count >= 0, "offsets has no elements, expected the last offset");
  const at::Tensor bounds = starts_of(first, places.numel(), includeLastOffset);
  check_bounds("indices", places, weight.size(0));

  const auto weights =
      perSampleWeights ? std::optional(wide(*perSampleWeights).contiguous()) : std::nullopt;
  const auto [sums, unused_bags, unused_sizes, maxima] =
      at::_embedding_bag(wide(weight).contiguous(), places.contiguous(), bounds, false,
                         static_cast<int64_t>(bag), false, weights, includeLastOffset, paddingIdx);
  const at::Tensor positions = at::arange(c10::Scalar(indices.numel()), places.options());
  const at::Tensor starts = bounds.narrow(0, 0, count).contiguous();
  const at::Tensor bags =
      at::searchsorted(starts, positions, /*out_int32=*/false, /*right=*/true) - 1;
  const at::Tensor counts = places.ne(paddingIdx.value()).to(at::kLong);
  const bool has_last = bagSize->numel() == offsets.numel();
  const at::Tensor sizes = at::index_add(
      at::zeros({has_last ? offsets.numel() : count}, places.options()), 0, bags, counts);
  // Assigned last, because an output may overlap an input.
  output = sums;
  // torch_npu passes an empty tensor if no gradient needs it.
  const bool is_left_out = offset2bag->numel() == 0 && bag == Bag::kSum && paddingIdx < 0;
  if (!is_left_out) offset2bag = bags;
  bagSize = sizes;
  if (bag == Bag::kMax) {
    maxIndices = maxima.narrow(0, 0, count);
  } else {
    maxIndices = at::zeros({maxIndices->numel() == 0 ? 0 : count}, places.options());
  }
}
// onValue at the index of the class along axis, offValue elsewhere. Of both only the first element
// counts.
ACLNN(OneHot, (In, self), (int, numClasses), (In, onValue), (In, offValue), (int64_t, axis),
      (Out, out)) {
  expect_range("axis", axis, -1, self.dim());
  expect_at_least("numClasses", numClasses, 0);
  expect_elements("onValue", onValue);
  expect_elements("offValue", offValue);
  const int64_t dim = axis < 0 ? self.dim() : axis;
  std::vector<int64_t> shape = self.sizes().vec();
  shape.insert(shape.begin() + dim, numClasses);
  expect_shape("out", out, shape);
  const at::Tensor classes = at::arange(c10::Scalar(numClasses.value()), self.options());
  std::vector<int64_t> along(static_cast<size_t>(self.dim()) + 1, 1);
  along[static_cast<size_t>(dim)] = numClasses;
  out = at::where(self.unsqueeze(dim) == classes.view(along), onValue.flatten()[0],
                  offValue.flatten()[0]);
}

}  // namespace aclnn_host::indexing_embedding_rows
