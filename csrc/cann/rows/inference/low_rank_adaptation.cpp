// Low-rank adaptation (LoRA): products with pairs of low-rank matrices, one pair for each row.

#include "cann/rows/row.h"

namespace aclnn_host::inference_low_rank_adaptation_rows {

namespace {

// The product of all rows of x with one pair of matrices.
at::Tensor adapted(const at::Tensor& x, const std::optional<at::Tensor>& first,
                   const at::Tensor& second, int64_t pair, int64_t layer) {
  const auto product = [&](const at::Tensor& rows, const at::Tensor& weights) {
    return at::mm(rows, wide(weights.select(0, pair).select(0, layer)).t());
  };
  return product(first ? product(x, *first) : x, second);
}

// True if the values show that no row uses this pair.
bool is_unused(const at::Tensor& wanted) {
  return has_values(wanted) && !wanted.any().item().toBool();
}

}  // namespace

// Rows whose index is -1 or the number of pairs have no matrices and keep their values. Without
// weightAOptional, x is multiplied by weightB only. An ySliceSize of -1 selects all rows of
// weightB.
ACLNN(AddLora, (Floating<In>, y), (SameDtype<Floating<In>>, x, "y"),
      (SameDtype<Blocked<In>>, weightB, "y"), (IndexIn, indices),
      (SameDtype<Optional<Blocked<In>>>, weightAOptional, "y"), (int64_t, layerIdx),
      (double, scale), (int64_t, yOffset), (int64_t, ySliceSize), (Like<Out>, out, "y")) {
  expect_dims("y", y, 2);
  expect_dims("x", x, 2);
  expect_dims("weightB", weightB, 4);
  const int64_t batch = y.size(0), count = weightB.size(0);
  const int64_t width = weightB.size(2), rank = weightB.size(3);
  EXPECT(x.size(0) == batch, "x has shape ", x.sizes(), ", expected ", batch,
         " rows, as many as y");
  expect_shape("indices", indices, {batch});
  expect_range("layerIdx", layerIdx, 0, weightB.size(1) - 1);
  const int64_t size = ySliceSize == -1 ? width : ySliceSize.value();
  expect_range("ySliceSize", size, 0, width, ", the third dimension of weightB");
  expect_range("yOffset", yOffset, 0, y.size(1) - width, ", so that weightB's rows fit in y");
  check_bounds("indices", indices, count + 1, -1);
  if (weightAOptional) {
    expect_shape("weightAOptional", *weightAOptional, {count, weightB.size(1), rank, x.size(1)});
  }
  EXPECT(weightAOptional || x.size(1) == rank, "x has shape ", x.sizes(),
         ", expected a last dimension of ", rank, " because weightAOptional is null");
  const at::Tensor result = wide(y).clone();
  at::Tensor slice = result.narrow(1, yOffset.value(), size);
  for (int64_t pair = 0; pair < count; ++pair) {
    const at::Tensor wanted = indices.eq(c10::Scalar(pair)).unsqueeze(1);
    if (is_unused(wanted)) continue;
    const at::Tensor product =
        adapted(wide(x), weightAOptional, weightB, pair, layerIdx.value()).narrow(1, 0, size);
    slice.copy_(at::where(wanted, slice + product * scale.value(), slice));
  }
  out = result;
}

}  // namespace aclnn_host::inference_low_rank_adaptation_rows
