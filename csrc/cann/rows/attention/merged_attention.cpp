// Attention with the keys split into parts: merges the results over the parts into one.

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_merged_attention_rows {

namespace {

// The largest score of each query and the sum of its exponentials, eight copies of each.
struct SoftmaxParts {
  at::Tensor largest;
  at::Tensor sum;
};

// The weight of a part in the merged result, for each query and head.
at::Tensor share(const SoftmaxParts& part, const SoftmaxParts& merged) {
  return (at::exp(part.largest - merged.largest) * part.sum / merged.sum).select(-1, 0);
}

}  // namespace

// Results are (S, B, N * D) with softmax parts (B, N, S, 8), or (T, N, D) with (T, N, 8).
ACLNN(RingAttentionUpdateV2, (Floating<In>, prevAttnOut), (In, prevSoftmaxMax),
      (Like<In>, prevSoftmaxSum, "prevSoftmaxMax"), (Like<Floating<In>>, curAttnOut, "prevAttnOut"),
      (Like<In>, curSoftmaxMax, "prevSoftmaxMax"), (Like<In>, curSoftmaxSum, "prevSoftmaxMax"),
      (Optional<In>, actualSeqQlenOptional), (char*, inputLayoutOptional),
      (char*, inputSoftmaxLayoutOptional), (Like<Out>, attnOutOut, "prevAttnOut"),
      (Like<Out>, softmaxMaxOut, "prevSoftmaxMax"), (Like<Out>, softmaxSumOut, "prevSoftmaxMax")) {
  expect_text("inputLayoutOptional", inputLayoutOptional, {"SBH", "TND"});
  const bool is_packed = inputLayoutOptional == "TND";
  if (is_packed) {
    expect_text("inputSoftmaxLayoutOptional", inputSoftmaxLayoutOptional, {"TND"},
                " where inputLayoutOptional is; the host CANN does not emulate the others");
  }
  EXPECT(!is_packed || actualSeqQlenOptional,
         "actualSeqQlenOptional is null, expected the ends of the sequences with \"TND\"");
  expect_dims("prevAttnOut", prevAttnOut, 3);
  expect_dims("prevSoftmaxMax", prevSoftmaxMax, is_packed ? 3 : 4);
  const int64_t heads = prevSoftmaxMax.size(1);
  std::vector<int64_t> parts{prevAttnOut.size(0), prevAttnOut.size(1), kSoftmaxCopies};
  if (!is_packed) parts = {prevAttnOut.size(1), heads, prevAttnOut.size(0), kSoftmaxCopies};
  expect_float("prevSoftmaxMax", prevSoftmaxMax, parts);
  EXPECT(is_packed || (heads > 0 && prevAttnOut.size(2) % heads == 0),
         "prevAttnOut has a last dimension of ", prevAttnOut.size(2), ", expected a multiple of ",
         heads, ", the heads");

  const SoftmaxParts before{prevSoftmaxMax, prevSoftmaxSum}, now{curSoftmaxMax, curSoftmaxSum};
  SoftmaxParts merged{at::maximum(before.largest, now.largest), {}};
  merged.sum = before.sum * at::exp(before.largest - merged.largest) +
               now.sum * at::exp(now.largest - merged.largest);
  const auto weighted = [&](const at::Tensor& result, const SoftmaxParts& part) {
    const at::Tensor of_heads =
        is_packed ? wide(result) : wide(result).unflatten(2, {heads, result.size(2) / heads});
    const at::Tensor factors = share(part, merged);
    return of_heads * (is_packed ? factors : factors.permute({2, 0, 1})).unsqueeze(-1);
  };
  const at::Tensor sum = weighted(prevAttnOut, before) + weighted(curAttnOut, now);
  attnOutOut = sum.reshape(prevAttnOut.sizes());
  softmaxMaxOut = merged.largest;
  softmaxSumOut = merged.sum;
}

// lse has the log-sum-exp of each query and head, localOut the results.
ACLNN(AttentionUpdate, (Ins, lse), (Ins, localOut), (int64_t, updateType),
      (Like<Out>, out, "localOut"), (Optional<Out>, lseOut)) {
  EXPECT(!lse.empty() && lse.size() == localOut.size(), "lse has ", lse.size(),
         " tensors and localOut ", localOut.size(), ", expected as many, 1 or more");
  expect_one_of("updateType", updateType, {0, 1}, "; 1 writes lseOut");
  EXPECT(updateType == 0 || lseOut, "lseOut is null, expected a tensor with updateType 1");
  expect_dims("localOut", localOut[0], 2);
  EXPECT(at::isFloatingType(localOut[0].scalar_type()), "localOut has dtype ",
         dtype_text(localOut[0].scalar_type()), ", expected FLOAT, FLOAT16 or BFLOAT16");
  for (size_t i = 0; i < lse.size(); ++i) {
    expect_float("lse", lse[i], {localOut[0].size(0)});
    expect_like("localOut", localOut[i], localOut[0]);
  }
  if (updateType == 1) expect_like("lseOut", *lseOut, lse[0]);

  const at::Tensor logarithms = at::stack(lse);
  const at::Tensor merged = at::logsumexp(logarithms, 0);
  const at::Tensor shares = at::exp(logarithms - merged).unsqueeze(-1);
  out = (wide(at::stack(localOut)) * shares).sum(0);
  if (updateType == 1) lseOut = merged;
}

}  // namespace aclnn_host::attention_merged_attention_rows
