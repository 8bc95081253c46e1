// Steps of attention that CANN has as separate operators.

#include "cann/rows/row.h"

namespace aclnn_host::attention_window_rows {

namespace {

// Expands a mask or a bias, in any of its documented shapes, to five dimensions of (B, W, N, S1,
// S2); only the given ones are larger than 1.
at::Tensor as_windows(const char* name, const at::Tensor& part, const std::vector<int64_t>& sizes) {
  expect_dims(name, part, 3, 5);
  std::vector<int64_t> expected(sizes.begin() + (part.dim() == 5 ? 0 : 1), sizes.end());
  if (part.dim() == 3) expected = {std::max(sizes[1], sizes[2]), sizes[3], sizes[4]};
  expect_shape(name, part, expected);
  return wide(part).reshape(sizes);
}

}  // namespace

ACLNN(MaskedSoftmaxWithRelPosBias, (Floating<In>, x),
      (SameDtype<Optional<In>>, attenMaskOptional, "x"),
      (SameDtype<Floating<In>>, relativePosBias, "x"), (double, scaleValue),
      (Unused<int64_t>, innerPrecisionMode, "everything is computed in FLOAT with every value"),
      (Like<Out>, out, "x")) {
  expect_dims("x", x, 4, 5);
  expect_elements("x", x);
  const int64_t heads = x.size(-3), rows = x.size(-2), columns = x.size(-1);
  int64_t windows = x.dim() == 5 ? x.size(1) : 1;
  if (x.dim() == 4 && attenMaskOptional) {
    expect_dims("attenMaskOptional", *attenMaskOptional, 3, 5);
    windows = attenMaskOptional->size(attenMaskOptional->dim() == 5 ? 1 : 0);
    EXPECT(windows > 0 && x.size(0) % windows == 0, "x has shape ", x.sizes(),
           ", expected a first dimension that ", windows,
           ", the number of windows of attenMaskOptional, divides");
  }
  at::Tensor scores = wide(x).reshape({-1, windows, heads, rows, columns}) * scaleValue.value();
  if (attenMaskOptional) {
    scores = scores +
             as_windows("attenMaskOptional", *attenMaskOptional, {1, windows, 1, rows, columns});
  }
  scores = scores + as_windows("relativePosBias", relativePosBias, {1, 1, heads, rows, columns});
  out = at::softmax(scores, -1).reshape(x.sizes());
}

ACLNN(TransformBiasRescaleQkv, (Floating<In>, qkv), (SameDtype<Floating<In>>, qkvBias, "qkv"),
      (int64_t, numHeads), (SameDtype<Out>, qOut, "qkv"), (SameDtype<Out>, kOut, "qkv"),
      (SameDtype<Out>, vOut, "qkv")) {
  expect_dims("qkv", qkv, 3);
  const int64_t width = qkv.size(2), heads = numHeads.value();
  expect_at_least("numHeads", heads, 1);
  EXPECT(width > 0 && width % 3 == 0 && width / 3 % heads == 0, "qkv has shape ", qkv.sizes(),
         ", expected a last dimension of 3 * numHeads * the size of a head; numHeads is ", heads);
  expect_shape("qkvBias", qkvBias, {width});
  const int64_t size = width / 3 / heads;
  const std::vector<int64_t> expected{qkv.size(0), heads, qkv.size(1), size};
  for (const Output* out : {&qOut, &kOut, &vOut}) expect_shape(out->name(), *out, expected);
  const at::Tensor parts = (wide(qkv) + wide(qkvBias))
                               .reshape({qkv.size(0), qkv.size(1), 3, heads, size})
                               .permute({2, 0, 3, 1, 4});
  qOut = parts.select(0, 0) / std::sqrt(static_cast<double>(size));
  kOut = parts.select(0, 1);
  vOut = parts.select(0, 2);
}

}  // namespace aclnn_host::attention_window_rows
