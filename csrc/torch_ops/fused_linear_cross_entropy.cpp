// torch.ops.aclnn.fused_linear_online_max_sum, fused_cross_entropy_loss_with_max_sum,
// fused_linear_cross_entropy_loss_grad: CANN's three functions under their names, for a vocabulary
// that may be distributed over devices. Their headers give the formulas.

#include <optional>
#include <tuple>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/linear_cross_entropy_shared.h"

namespace aclnn_torch::fused_linear_cross_entropy_ops {
namespace {

using namespace linear_cross_entropy;

ACLNN_DECLARE(FusedLinearOnlineMaxSum);
ACLNN_DECLARE(FusedCrossEntropyLossWithMaxSum);
ACLNN_DECLARE(FusedLinearCrossEntropyLossGrad);

using LossSignature = Two(const Tensor&, const Tensor&, const Tensor&, double,
                          const OptionalTensor&);

const auto& loss_op() {
  static const auto op =
      find_operator<LossSignature>("aclnn::fused_cross_entropy_loss_with_max_sum");
  return op;
}

Sums sums_outputs(const Tensor& input, const Tensor& weight, const Tensor& target,
                  bool return_logits) {
  check_tensors(FusedLinearOnlineMaxSum::kStage1,
                {{"input", input}, {"weight", weight}, {"target", target}});
  const SymInt rows = size_of(input, 0);
  const auto bytes = new_tensor(input, {(rows + 7) / 8}, at::kByte);
  const Tensor logits =
      return_logits ? like(input, {rows, size_of(weight, 0)}) : like(input, {SymInt(0)});
  return {sum_like(input, {rows}), sum_like(input, {rows}),
          sum_like(input, {rows}), bytes,
          like(target, {rows}),    logits};
}

Sums sums_device(const Tensor& input, const Tensor& weight, const Tensor& target, int64_t start,
                 int64_t end, bool return_logits) {
  Sums results = sums_outputs(input, weight, target, return_logits);
  const auto& [max, sum, predicted, mask, masked, logits] = results;
  const Tensor none;
  call_device<FusedLinearOnlineMaxSum>(input, weight, target, start, end, Written{max},
                                       Written{sum}, Written{predicted}, Written{mask},
                                       Written{masked}, Written{return_logits ? logits : none});
  return results;
}

Sums sums_meta(const Tensor& input, const Tensor& weight, const Tensor& target, int64_t, int64_t,
               bool return_logits) {
  check_matrices(FusedLinearOnlineMaxSum::kStage1, input, weight, target);
  return sums_outputs(input, weight, target, return_logits);
}

Two loss_outputs(const Tensor& max, const Tensor& sum, const Tensor& predicted,
                 const Tensor& logits) {
  check_tensors(FusedCrossEntropyLossWithMaxSum::kStage1,
                {{"logitsMax", max},
                 {"sumExpLogits", sum},
                 {"predictedLogits", predicted},
                 {"vocabParallelLogitsOptional", logits, /*optional=*/true}});
  return {like(max, max.sym_sizes()),
          logits.defined() ? sum_like(logits, logits.sym_sizes()) : like(max, {SymInt(0)})};
}

Two loss_device(const Tensor& max, const Tensor& sum, const Tensor& predicted,
                double label_smoothing, const OptionalTensor& vocab_parallel_logits) {
  const Tensor logits = tensor_of(vocab_parallel_logits), none;
  Two results = loss_outputs(max, sum, predicted, logits);
  const auto& [loss, softmax] = results;
  call_device<FusedCrossEntropyLossWithMaxSum>(
      max, sum, predicted, static_cast<float>(label_smoothing), none, none, logits, Written{loss},
      Written{logits.defined() ? softmax : none});
  return results;
}

Two loss_meta(const Tensor& max, const Tensor& sum, const Tensor& predicted, double,
              const OptionalTensor& vocab_parallel_logits) {
  return loss_outputs(max, sum, predicted, tensor_of(vocab_parallel_logits));
}

Two grad_outputs(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mask,
                 const Tensor& masked, const Tensor& max, const Tensor& sum,
                 const Tensor& softmax) {
  check_tensors(FusedLinearCrossEntropyLossGrad::kStage1,
                {{"grad", grad},
                 {"input", input},
                 {"weight", weight},
                 {"targetMask", mask},
                 {"maskedTarget", masked},
                 {"logitsMaxOptional", max, /*optional=*/true},
                 {"sumExpLogitsOptional", sum, /*optional=*/true},
                 {"softmaxOptional", softmax, /*optional=*/true}});
  return {like(input, input.sym_sizes()), like(input, weight.sym_sizes())};
}

Two grad_device(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mask,
                const Tensor& masked, double label_smoothing, const OptionalTensor& logits_max,
                const OptionalTensor& sum_exp_logits, const OptionalTensor& softmax) {
  const Tensor max = tensor_of(logits_max), sum = tensor_of(sum_exp_logits);
  const Tensor probabilities = tensor_of(softmax);
  Two results = grad_outputs(grad, input, weight, mask, masked, max, sum, probabilities);
  const auto& [input_grad, weight_grad] = results;
  // CANN writes no output then.
  if (input.numel() == 0 || weight.numel() == 0) {
    input_grad.zero_();
    weight_grad.zero_();
  }
  call_device<FusedLinearCrossEntropyLossGrad>(
      grad, input, weight, mask, masked, static_cast<float>(label_smoothing), max, sum,
      probabilities, Written{input_grad}, Written{weight_grad});
  return results;
}

Two grad_meta(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mask,
              const Tensor& masked, double, const OptionalTensor& logits_max,
              const OptionalTensor& sum_exp_logits, const OptionalTensor& softmax) {
  check_matrices(FusedLinearCrossEntropyLossGrad::kStage1, input, weight, masked);
  return grad_outputs(grad, input, weight, mask, masked, tensor_of(logits_max),
                      tensor_of(sum_exp_logits), tensor_of(softmax));
}

Sums sums_autograd(const Tensor& input, const Tensor& weight, const Tensor& target, int64_t start,
                   int64_t end, bool return_logits) {
  refuse_derivatives("aclnn::fused_linear_online_max_sum", input, weight);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return sums_op().call(input, weight, target, start, end, return_logits);
}

Two loss_autograd(const Tensor& max, const Tensor& sum, const Tensor& predicted,
                  double label_smoothing, const OptionalTensor& vocab_parallel_logits) {
  refuse_derivatives("aclnn::fused_cross_entropy_loss_with_max_sum", max, sum, predicted,
                     tensor_of(vocab_parallel_logits));
  const at::AutoDispatchBelowADInplaceOrView guard;
  return loss_op().call(max, sum, predicted, label_smoothing, vocab_parallel_logits);
}

Two grad_autograd(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mask,
                  const Tensor& masked, double label_smoothing, const OptionalTensor& logits_max,
                  const OptionalTensor& sum_exp_logits, const OptionalTensor& softmax) {
  refuse_derivatives("aclnn::fused_linear_cross_entropy_loss_grad", grad, input, weight,
                     tensor_of(logits_max), tensor_of(sum_exp_logits), tensor_of(softmax));
  const at::AutoDispatchBelowADInplaceOrView guard;
  return grad_op().call(grad, input, weight, mask, masked, label_smoothing, logits_max,
                        sum_exp_logits, softmax);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def(
      "fused_linear_online_max_sum(Tensor input, Tensor weight, Tensor target, int "
      "vocab_start_index, int vocab_end_index, bool return_logits=False) -> (Tensor logits_max, "
      "Tensor sum_exp_logits, Tensor predicted_logits, Tensor target_mask, Tensor masked_target, "
      "Tensor logits)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "fused_cross_entropy_loss_with_max_sum(Tensor logits_max, Tensor sum_exp_logits, Tensor "
      "predicted_logits, float label_smoothing=0.0, Tensor? vocab_parallel_logits=None) -> (Tensor "
      "loss, Tensor softmax)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "fused_linear_cross_entropy_loss_grad(Tensor grad, Tensor input, Tensor weight, Tensor "
      "target_mask, Tensor masked_target, float label_smoothing=0.0, Tensor? logits_max=None, "
      "Tensor? sum_exp_logits=None, Tensor? softmax=None) -> (Tensor input_grad, Tensor "
      "weight_grad)",
      {at::Tag::pt2_compliant_tag});
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("fused_linear_online_max_sum", &sums_device);
  m.impl("fused_cross_entropy_loss_with_max_sum", &loss_device);
  m.impl("fused_linear_cross_entropy_loss_grad", &grad_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("fused_linear_online_max_sum", &sums_meta);
  m.impl("fused_cross_entropy_loss_with_max_sum", &loss_meta);
  m.impl("fused_linear_cross_entropy_loss_grad", &grad_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("fused_linear_online_max_sum", &sums_autograd);
  m.impl("fused_cross_entropy_loss_with_max_sum", &loss_autograd);
  m.impl("fused_linear_cross_entropy_loss_grad", &grad_autograd);
}

}  // namespace aclnn_torch::fused_linear_cross_entropy_ops
