// Attention within the windows of a Swin transformer, with quantised inputs.

#include "cann/rows/attention/inference.h"
#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_swin_rows {

// Behaviour of SwinAttentionScoreQuant: The products are exact, the biases in between are INT32,
// and scaleDequant1 and scaleDequant2 have the bits that aclnnTransQuantParam makes. The rest is
// computed in FLOAT. The probabilities, times scaleQuant plus biasQuant, are rounded to INT8. CANN
// documents the three biases as optional and its public checker needs them; a null one is refused
// with 161002.
ACLNN(SwinAttentionScoreQuant, (In, query), (Like<In>, key, "query"), (Like<In>, value, "query"),
      (In, scaleQuant), (In, scaleDequant1), (In, scaleDequant2), (Optional<In>, biasQuantOptional),
      (Optional<In>, biasDequant1Optional), (Optional<In>, biasDequant2Optional),
      (Optional<In>, paddingMask1Optional), (Refused<In>, paddingMask2Optional, "CANN reserves it"),
      (bool, queryTranspose), (bool, keyTranspose), (bool, valueTranspose), (int64_t, softmaxAxes),
      (SameShape<Out>, out, "query")) {
  expect_dtype("query", query, at::kChar);
  expect_dtype("out", out, at::kHalf);
  expect_dims("query", query, 4);
  const int64_t tokens = query.size(2), elements = query.size(3);
  EXPECT(tokens >= 1 && tokens <= 1024 && (elements == 32 || elements == 64), "query has shape ",
         query.sizes(), ", expected 1 to 1024 tokens of 32 or 64 elements in the last dimensions");
  expect_tensor("scaleQuant", scaleQuant, at::kHalf, {1, tokens});
  expect_tensor("scaleDequant1", scaleDequant1, at::kUInt64, {1, tokens});
  expect_tensor("scaleDequant2", scaleDequant2, at::kUInt64, {1, elements});
  EXPECT(biasQuantOptional && biasDequant1Optional && biasDequant2Optional,
         "biasQuantOptional, biasDequant1Optional or biasDequant2Optional is null, expected ",
         "tensors; CANN quantises asymmetrically only");
  expect_tensor("biasQuantOptional", *biasQuantOptional, at::kHalf, {1, tokens});
  expect_tensor("biasDequant1Optional", *biasDequant1Optional, at::kInt, {1, tokens});
  expect_tensor("biasDequant2Optional", *biasDequant2Optional, at::kInt, {1, elements});
  if (paddingMask1Optional) {
    expect_tensor("paddingMask1Optional", *paddingMask1Optional, at::kHalf,
                  {1, query.size(1), tokens, tokens});
  }
  EXPECT(!queryTranspose && !keyTranspose && !valueTranspose,
         "queryTranspose, keyTranspose or valueTranspose is true, expected false");
  expect_one_of("softmaxAxes", softmaxAxes, {-1});

  at::Tensor scores = exact_product(query, key.transpose(2, 3)) + *biasDequant1Optional;
  scores = scores.to(at::kFloat) * decoded_scale(scaleDequant1);
  if (paddingMask1Optional) scores = scores + wide(*paddingMask1Optional);
  const at::Tensor probabilities =
      rounded_to_int8(at::softmax(scores, 3) * wide(scaleQuant) + wide(*biasQuantOptional));
  const at::Tensor sums = exact_product(probabilities, value) + *biasDequant2Optional;
  out = sums.to(at::kFloat) * decoded_scale(scaleDequant2);
}

}  // namespace aclnn_host::attention_swin_rows
