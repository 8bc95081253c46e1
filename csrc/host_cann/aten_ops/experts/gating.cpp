// Gating of a mixture of experts: the experts of the highest scores are chosen for each token.

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>

#include "host_cann/aten_ops/checks.h"
#include "host_cann/aten_ops/experts/experts.h"
#include "host_cann/aten_ops/row.h"

using namespace aclnn_host;

namespace {

// Which groups of experts may be chosen from: true for all experts of the best ones.
at::Tensor best_groups(const at::Tensor& grouped, int64_t count, bool by_two) {
  const at::Tensor scores =
      by_two ? std::get<0>(at::topk(grouped, 2, -1)).sum(-1) : grouped.amax(-1);
  const at::Tensor ranks =
      at::argsort(at::argsort(scores, /*stable=*/true, -1, /*descending=*/true),
                  /*stable=*/true, -1, false);
  return (ranks < count).unsqueeze(-1).expand_as(grouped);
}

// Where the k largest of each row stand; the first of equals comes first.
at::Tensor best(const at::Tensor& scores, int64_t k) {
  return at::argsort(scores, /*stable=*/true, -1, /*descending=*/true).narrow(-1, 0, k);
}

}  // namespace

// biasOptional decides which experts are chosen, but is no part of their scores. Scores of sigmoids
// are divided by their sum; those of a softmax are not.
ACLNN(MoeGatingTopK, (FloatIn, x), (OptionalIn, biasOptional), (int64_t, k), (int64_t, kGroup),
      (int64_t, groupCount), (int64_t, groupSelectMode), (int64_t, renorm), (int64_t, normType),
      (bool, outFlag), (double, routedScalingFactor), (double, eps), (Out, yOut),
      (Out, expertIdxOut), (OptionalOut, outOut)) {
  TORCH_CHECK(x.dim() > 0, "x has no dimensions, expected 1 or more");
  const int64_t experts = x.size(-1);
  expect_range("the last dimension of x", experts, 1, 2048);
  expect_range("groupCount", groupCount, 1, experts);
  const int64_t members = experts / groupCount.value();
  TORCH_CHECK(experts % groupCount.value() == 0 && members > 2, "groupCount is ",
              groupCount.value(), ", expected groups of the ", experts,
              " experts that have one size, 3 or more");
  constexpr int64_t kMostMembers = 2048;
  TORCH_CHECK((members + 31) / 32 * 32 * groupCount.value() <= kMostMembers, "groupCount is ",
              groupCount.value(), ", expected groups of the ", experts,
              " experts that have at most ", kMostMembers,
              " members together where each is rounded up to 32");
  expect_range("kGroup", kGroup, 1, groupCount);
  expect_range("k", k, 1, kGroup.value() * members);
  expect_range("groupSelectMode", groupSelectMode, 0, 1);
  expect_range("renorm", renorm, 0, 0);
  expect_range("normType", normType, 0, 1);
  expect_dtype("yOut", yOut, x.scalar_type());
  const at::Tensor scores = normType == 1 ? at::sigmoid(wide(x)) : at::softmax(wide(x), -1);
  at::Tensor ranked = scores;
  if (biasOptional) {
    expect_shape("biasOptional", *biasOptional, {experts});
    expect_dtype("biasOptional", *biasOptional, x.scalar_type());
    ranked = ranked + wide(*biasOptional);
  }
  const at::Tensor grouped = ranked.unflatten(-1, {groupCount.value(), members});
  const at::Tensor chosen = grouped
                                .masked_fill(~best_groups(grouped, kGroup, groupSelectMode == 1),
                                             -std::numeric_limits<double>::infinity())
                                .flatten(-2);
  const at::Tensor indices = best(chosen, k);
  at::Tensor result = scores.gather(-1, indices);
  if (normType == 1) result = result / (result.sum(-1, /*keepdim=*/true) + eps.value());
  yOut = result * routedScalingFactor.value();
  expertIdxOut = indices;
  TORCH_CHECK(!outFlag || outOut, "outFlag is true and outOut is null, expected a tensor");
  if (outFlag) outOut = scores;
}

namespace {

// Refuses arguments that no gating by softmax takes.
void expect_gating(const at::Tensor& x, const std::optional<at::Tensor>& finished, int64_t k,
                   const Output& y, const Output& experts) {
  expect_dims("x", x, 2, 3);
  expect_range("k", k, 0, std::min<int64_t>(x.size(-1), 1024));
  std::vector<int64_t> shape = x.sizes().vec();
  if (finished) {
    expect_dtype("finishedOptional", *finished, at::kBool);
    expect_shape("finishedOptional", *finished, at::IntArrayRef(shape).slice(0, shape.size() - 1));
  }
  shape.back() = k;
  expect_dtype(y, x);
  expect_shape("yOut", y, shape);
  expect_dtype("expertIdxOut", experts, at::kInt);
}

// Rows that are finished have no experts: the number after the last one.
at::Tensor unless_finished(const at::Tensor& chosen, const std::optional<at::Tensor>& finished,
                           int64_t experts) {
  return finished ? chosen.masked_fill(finished->unsqueeze(-1), experts) : chosen;
}

}  // namespace

// rowIdxOut counts all first places, then all second ones.
ACLNN(MoeGatingTopKSoftmax, (FloatIn, x), (OptionalIn, finishedOptional), (int64_t, k), (Out, yOut),
      (Out, expertIdxOut), (Out, rowIdxOut)) {
  expect_gating(x, finishedOptional, k, yOut, expertIdxOut);
  expect_dtype("rowIdxOut", rowIdxOut, at::kInt);
  const at::Tensor scores = at::softmax(wide(x), -1);
  const at::Tensor chosen = best(scores, k);
  yOut = scores.gather(-1, chosen);
  expertIdxOut = unless_finished(chosen, finishedOptional, x.size(-1));
  const int64_t rows = c10::multiply_integers(chosen.sizes().slice(0, chosen.dim() - 1));
  rowIdxOut =
      at::arange(chosen.numel(), chosen.options()).view({k, rows}).t().reshape(chosen.sizes());
}

ACLNN(MoeGatingTopKSoftmaxV2, (FloatIn, x), (OptionalIn, finishedOptional), (int64_t, k),
      (int64_t, renorm), (bool, outputSoftmaxResultFlag), (Out, yOut), (Out, expertIdxOut),
      (OptionalOut, softmaxResultOutOptional)) {
  expect_range("renorm", renorm, 0, 1);
  expect_gating(x, finishedOptional, k, yOut, expertIdxOut);
  const at::Tensor scores = renorm == 1 ? wide(x) : at::softmax(wide(x), -1);
  const at::Tensor chosen = best(scores, k);
  const at::Tensor kept = scores.gather(-1, chosen);
  yOut = renorm == 1 ? at::softmax(kept, -1) : kept;
  expertIdxOut = unless_finished(chosen, finishedOptional, x.size(-1));
  if (renorm == 1 || !outputSoftmaxResultFlag) return;
  TORCH_CHECK(softmaxResultOutOptional,
              "softmaxResultOutOptional is null, expected a tensor as outputSoftmaxResultFlag is "
              "true");
  expect_dtype("softmaxResultOutOptional", *softmaxResultOutOptional, at::kFloat);
  softmaxResultOutOptional = scores;
}
