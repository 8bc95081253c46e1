// The queries, keys and values of a Swin transformer from INT8 products of a layer norm.

#include "cann/rows/quantized/quantized_norm.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::quantized_swin_transformer_rows {

namespace {

// The parts of an image: windows, and in each of them the rows of each head.
struct Windows {
  int64_t heads, head_size;  // their product is the size of a token
  int64_t height, width;     // of the image
  int64_t window_height, window_width;

  int64_t down() const { return height / window_height; }
  int64_t across() const { return width / window_width; }

  void check(const at::Tensor& x) const {
    expect_dims("x", x, 3);
    expect_range("the first dimension of x", x.size(0), 1, 32);
    expect_range("the last dimension of x", x.size(2), 1, 1024);
    expect_range("headNum", heads, 1, 32);
    expect_one_of("seqLength", head_size, {32, 64});
    expect_range("hWinSize", window_height, 7, 32);
    expect_range("wWinSize", window_width, 7, 32);
    expect_multiple("oriHeight", height, window_height, x.size(1));
    expect_multiple("oriWeight", width, window_width, x.size(1));
    expect_shape("x", x, {x.size(0), product({height, width}), heads * head_size});
  }
  std::vector<int64_t> shape(int64_t batch) const {
    return {batch * down() * across(), heads, window_height * window_width, head_size};
  }
  // Permutes the products of all tokens to one tensor for each third of the columns.
  std::vector<at::Tensor> divided(const at::Tensor& products, int64_t batch) const {
    return products
        .reshape({batch, down(), window_height, across(), window_width, 3, heads, head_size})
        .permute({5, 0, 1, 3, 6, 2, 4, 7})
        .reshape(shape(3 * batch))
        .chunk(3, 0);
  }
};

// value * scale + offset in FLOAT16, as INT8.
at::Tensor quantised_in_half(const at::Tensor& values, const at::Tensor& scale,
                             const at::Tensor& offset) {
  return to_int8(wide(values.to(at::kHalf) * scale + offset));
}

}  // namespace

// Behaviour of SwinTransformerLnQkvQuant: The weight is [3 H, H], as in the vendor's sample and in
// the tiling; the document has the shape before its transposition. The layer norm is rounded to
// FLOAT16, in which it is quantised, as in the kernel. The results of the windows follow each other
// from left to right and from the top.
ACLNN(SwinTransformerLnQkvQuant, (In, x), (In, gamma), (Like<In>, beta, "gamma"), (In, weight),
      (In, bias), (In, quantScale), (In, quantOffset), (In, dequantScale), (int64_t, headNum),
      (int64_t, seqLength), (double, epsilon), (int64_t, oriHeight), (int64_t, oriWeight),
      (int64_t, hWinSize), (int64_t, wWinSize), (bool, weightTranspose), (Out, queryOutputOut),
      (Out, keyOutputOut), (Out, valueOutputOut)) {
  const Windows windows{headNum, seqLength, oriHeight, oriWeight, hWinSize, wWinSize};
  windows.check(x);
  EXPECT(weightTranspose, "weightTranspose is false, expected true, the only mode supported");
  const int64_t batch = x.size(0), size = x.size(2);
  expect_dtype("x", x, at::kHalf);
  expect_tensor("gamma", gamma, at::kHalf, {size});
  expect_tensor("weight", weight, at::kChar, {3 * size, size});
  expect_tensor("bias", bias, at::kInt, {3 * size});
  expect_tensor("quantScale", quantScale, at::kHalf, {size});
  expect_tensor("quantOffset", quantOffset, at::kHalf, {size});
  expect_tensor("dequantScale", dequantScale, at::kUInt64, {3 * size});
  for (const Output& out : {queryOutputOut, keyOutputOut, valueOutputOut}) {
    expect_tensor(out.name(), out, at::kHalf, windows.shape(batch));
  }
  const at::Tensor norm = layer_norm(wide(x), epsilon, {-1}) * wide(gamma) + wide(beta);
  const at::Tensor rows = quantised_in_half(norm, quantScale, quantOffset).flatten(0, 1);
  const at::Tensor products = exact_product(rows, weight.t()) + bias;
  const std::vector<at::Tensor> parts =
      windows.divided(products.to(at::kDouble) * decoded_scale(dequantScale), batch);
  queryOutputOut = parts[0].to(at::kFloat);
  keyOutputOut = parts[1].to(at::kFloat);
  valueOutputOut = parts[2].to(at::kFloat);
}

}  // namespace aclnn_host::quantized_swin_transformer_rows
