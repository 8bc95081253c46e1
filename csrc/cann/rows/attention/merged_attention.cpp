// Attention with the keys split into parts: merges the results over the parts into one.

#include <limits>

#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/training.h"
#include "cann/rows/integers.h"
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

// Factors of each token and head, from those that are contiguous for each head within a sequence.
at::Tensor by_token(const at::Tensor& factors, const at::Tensor& starts) {
  if (!has_values(starts)) return factors;
  const std::vector<int64_t> given = integers_in(starts);
  const int64_t tokens = factors.size(0), heads = factors.size(1);
  EXPECT(given.front() == 0 && given.back() == tokens && std::ranges::is_sorted(given),
         "actualSeqQlenOptional is ", given, ", expected the starts of the sequences from 0 to ",
         tokens);
  const at::Tensor result = at::empty_like(factors);
  for (size_t i = 1; i < given.size(); ++i) {
    const int64_t size = given[i] - given[i - 1];
    const at::Tensor own = factors.narrow(0, given[i - 1], size);
    result.narrow(0, given[i - 1], size).copy_(own.reshape({heads, size}).t());
  }
  return result;
}

// The starts of the sequences, if they decide the order of the maxima and sums.
template <class Version>
std::optional<at::Tensor> starts_of(const Version& row) {
  expect_text("inputLayoutOptional", row.inputLayoutOptional, {"SBH", "TND"});
  if (row.inputLayoutOptional != "TND") return std::nullopt;
  EXPECT(row.actualSeqQlenOptional,
         "actualSeqQlenOptional is null, expected the starts of the sequences with \"TND\"");
  if constexpr (requires { row.inputSoftmaxLayoutOptional; }) {
    expect_text("inputSoftmaxLayoutOptional", row.inputSoftmaxLayoutOptional, {"", "SBH", "TND"},
                " where inputLayoutOptional is \"TND\"");
    if (row.inputSoftmaxLayoutOptional == "TND") return std::nullopt;
  }
  const at::Tensor& starts = *row.actualSeqQlenOptional;
  expect_dtype("actualSeqQlenOptional", starts, at::kLong);
  expect_dims("actualSeqQlenOptional", starts, 1);
  expect_elements("actualSeqQlenOptional", starts);
  return starts;
}

// Results are (S, B, N * D) with softmax parts (B, N, S, 8), or (T, N, D) with (T, N, 8).
template <class Version>
void merge(Version& row) {
  const std::optional<at::Tensor> starts = starts_of(row);
  const at::Tensor& previous = row.prevAttnOut;
  const bool is_packed = row.inputLayoutOptional == "TND";
  expect_dtype("prevAttnOut", previous, {at::kFloat, at::kHalf, at::kBFloat16});
  expect_dims("prevAttnOut", previous, 3);
  expect_dims("prevSoftmaxMax", row.prevSoftmaxMax, is_packed ? 3 : 4);
  const int64_t heads = row.prevSoftmaxMax.size(1);
  std::vector<int64_t> parts{previous.size(0), previous.size(1), kSoftmaxCopies};
  if (!is_packed) parts = {previous.size(1), heads, previous.size(0), kSoftmaxCopies};
  expect_float("prevSoftmaxMax", row.prevSoftmaxMax, parts);
  EXPECT(is_packed || (heads > 0 && previous.size(2) % heads == 0),
         "prevAttnOut has a last dimension of ", previous.size(2), ", expected a multiple of ",
         heads, ", the heads");

  const SoftmaxParts before{row.prevSoftmaxMax, row.prevSoftmaxSum};
  const SoftmaxParts now{row.curSoftmaxMax, row.curSoftmaxSum};
  SoftmaxParts merged{at::maximum(before.largest, now.largest), {}};
  merged.sum = before.sum * at::exp(before.largest - merged.largest) +
               now.sum * at::exp(now.largest - merged.largest);
  const auto weighted = [&](const at::Tensor& result, const SoftmaxParts& part) {
    const at::Tensor of_heads =
        is_packed ? wide(result) : wide(result).unflatten(2, {heads, result.size(2) / heads});
    at::Tensor factors = share(part, merged);
    if (!is_packed) factors = factors.permute({2, 0, 1});
    if (starts) factors = by_token(factors, *starts);
    return of_heads * factors.unsqueeze(-1);
  };
  const at::Tensor sum = weighted(previous, before) + weighted(row.curAttnOut, now);
  row.attnOutOut = sum.reshape(previous.sizes());
  row.softmaxMaxOut = merged.largest;
  row.softmaxSumOut = merged.sum;
}

}  // namespace

// Behaviour of RingAttentionUpdate, RingAttentionUpdateV2: With "TND", the maxima and sums of a
// head are contiguous within each sequence, unless inputSoftmaxLayoutOptional is "TND".
// actualSeqQlenOptional has 0 and then the end of each sequence. The host CANN checks it where it
// matters, on the stream.
ACLNN_STRUCT(RingAttentionUpdate, (Floating<In>, prevAttnOut), (In, prevSoftmaxMax),
             (Like<In>, prevSoftmaxSum, "prevSoftmaxMax"),
             (Like<Floating<In>>, curAttnOut, "prevAttnOut"),
             (Like<In>, curSoftmaxMax, "prevSoftmaxMax"),
             (Like<In>, curSoftmaxSum, "prevSoftmaxMax"), (Optional<In>, actualSeqQlenOptional),
             (char*, inputLayoutOptional), (Like<Out>, attnOutOut, "prevAttnOut"),
             (Like<Out>, softmaxMaxOut, "prevSoftmaxMax"),
             (Like<Out>, softmaxSumOut, "prevSoftmaxMax")) {
  merge(*this);
}
ACLNN_STRUCT(RingAttentionUpdateV2, (Floating<In>, prevAttnOut), (In, prevSoftmaxMax),
             (Like<In>, prevSoftmaxSum, "prevSoftmaxMax"),
             (Like<Floating<In>>, curAttnOut, "prevAttnOut"),
             (Like<In>, curSoftmaxMax, "prevSoftmaxMax"),
             (Like<In>, curSoftmaxSum, "prevSoftmaxMax"), (Optional<In>, actualSeqQlenOptional),
             (char*, inputLayoutOptional), (char*, inputSoftmaxLayoutOptional),
             (Like<Out>, attnOutOut, "prevAttnOut"), (Like<Out>, softmaxMaxOut, "prevSoftmaxMax"),
             (Like<Out>, softmaxSumOut, "prevSoftmaxMax")) {
  merge(*this);
}

// lse has the log-sum-exp of each query and head, localOut the results. Behaviour of
// AttentionUpdate: A log-sum-exp of +inf, which attention to no keys has, counts as -inf, as in
// CANN's kernel.
ACLNN(AttentionUpdate, (Ins, lse), (Ins, localOut), (int64_t, updateType),
      (Like<Out>, out, "localOut"), (Optional<Out>, lseOut)) {
  EXPECT(!lse.empty() && lse.size() == localOut.size(), "lse has ", lse.size(),
         " tensors and localOut ", localOut.size(), ", expected as many, 1 or more");
  expect_one_of("updateType", updateType, {0, 1}, "; 1 writes lseOut");
  EXPECT(updateType == 0 || lseOut, "lseOut is null, expected a tensor with updateType 1");
  expect_dims("localOut", localOut[0], 2);
  expect_dtype("localOut", localOut[0], {at::kFloat, at::kHalf, at::kBFloat16});
  for (size_t i = 0; i < lse.size(); ++i) {
    expect_float("lse", lse[i], {localOut[0].size(0)});
    expect_like("localOut", localOut[i], localOut[0]);
  }
  if (updateType == 1) expect_like("lseOut", *lseOut, lse[0]);

  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor given = at::stack(lse);
  const at::Tensor logarithms = given.masked_fill(given == kInfinity, -kInfinity);
  const at::Tensor merged = at::logsumexp(logarithms, 0);
  const at::Tensor shares = at::exp(logarithms - merged).unsqueeze(-1);
  out = (wide(at::stack(localOut)) * shares).sum(0);
  if (updateType == 1) lseOut = merged;
}

}  // namespace aclnn_host::attention_merged_attention_rows
