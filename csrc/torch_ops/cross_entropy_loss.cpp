// torch.ops.aclnn.cross_entropy_loss, cross_entropy_loss_grad: torch_npu's schemas over
// aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad, whose headers give the formulas.
// _cross_entropy is the loss alone, with the shape that torch returns, in one autograd node. The
// three are derivatives of one another and therefore share a file.

#include <string>
#include <tuple>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "aclnnop/aclnn_cross_entropy_loss.h"
#include "aclnnop/aclnn_cross_entropy_loss_grad.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/straight.h"

namespace aclnn_torch::cross_entropy_loss_ops {
namespace {

using c10::string_view;
using c10::SymInt;
using OptionalTensor = std::optional<Tensor>;
using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // loss, log_prob, zloss, lse_for_zloss

ACLNN_DECLARE(CrossEntropyLoss);
ACLNN_DECLARE(CrossEntropyLossGrad);

// The operators as the dispatcher knows them.

using LossSignature = Results(const Tensor&, const Tensor&, const OptionalTensor&, string_view,
                              int64_t, double, double, bool);
using GradSignature = Tensor(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&, string_view, int64_t,
                             double, double);
using NumberSignature = Tensor(const Tensor&, const Tensor&, const OptionalTensor&, string_view,
                               int64_t, double);

const auto& loss_op() {
  static const auto op = find_operator<LossSignature>("aclnn::cross_entropy_loss");
  return op;
}

const auto& grad_op() {
  static const auto op = find_operator<GradSignature>("aclnn::cross_entropy_loss_grad");
  return op;
}

const auto& number_op() {
  static const auto op = find_operator<NumberSignature>("aclnn::_cross_entropy");
  return op;
}

// Converts CANN's one-dimensional loss to torch's shape: zero-dimensional if rows are reduced.
Tensor number_of(const Tensor& loss, string_view reduction) {
  return reduction == "none" ? loss : loss.squeeze(0);
}

// Devices: aclnn. Meta: sizes, strides and dtype only.

Results loss_outputs(const Tensor& input, const Tensor& target, const Tensor& weight,
                     string_view reduction, double zloss_scale, bool return_zloss) {
  check_tensors(CrossEntropyLoss::kStage1,
                {{"input", input}, {"target", target}, {"weight", weight, /*optional=*/true}});
  const SymInt rows = input.dim() > 0 ? input.sym_size(0) : SymInt(0);  // stage 1 wants two
  const SymInt results = reduction == "none" ? rows : SymInt(1);
  const auto empty = [&](c10::SymIntArrayRef sizes) {
    return new_tensor(input, sizes, input.scalar_type());
  };
  return {empty({results}), empty(input.sym_sizes()), empty({return_zloss ? results : SymInt(0)}),
          empty({zloss_scale != 0 ? rows : SymInt(0)})};
}

void check_grad_tensors(const Tensor& grad_loss, const Tensor& log_prob, const Tensor& target,
                        const Tensor& weight, const Tensor& grad_zloss, const Tensor& lse) {
  check_tensors(CrossEntropyLossGrad::kStage1, {{"gradLoss", grad_loss},
                                                {"logProb", log_prob},
                                                {"target", target},
                                                {"weight", weight, /*optional=*/true},
                                                {"gradZloss", grad_zloss, /*optional=*/true},
                                                {"lseForZloss", lse, /*optional=*/true}});
}

Tensor grad_output(const Tensor& grad_loss, const Tensor& log_prob, const Tensor& target,
                   const Tensor& weight, const Tensor& grad_zloss, const Tensor& lse) {
  check_grad_tensors(grad_loss, log_prob, target, weight, grad_zloss, lse);
  return new_tensor(log_prob, log_prob.sym_sizes(), log_prob.scalar_type());
}

Results loss_device(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                    string_view reduction, int64_t ignore_index, double label_smoothing,
                    double zloss_scale, bool return_zloss) {
  const Tensor weights = tensor_of(weight);
  Results results = loss_outputs(input, target, weights, reduction, zloss_scale, return_zloss);
  const auto& [loss, log_prob, zloss, lse] = results;
  std::string word(reduction);
  call_device<CrossEntropyLoss>(input, target, weights, word.data(), ignore_index, label_smoothing,
                                zloss_scale, return_zloss, Written{loss}, Written{log_prob},
                                Written{zloss}, Written{lse});
  return results;
}

Tensor grad_device(const Tensor& grad_loss, const Tensor& log_prob, const Tensor& target,
                   const OptionalTensor& weight, const OptionalTensor& grad_zloss,
                   const OptionalTensor& lse, string_view reduction, int64_t ignore_index,
                   double label_smoothing, double zloss_scale) {
  const Tensor weights = tensor_of(weight), grad_z = tensor_of(grad_zloss), lses = tensor_of(lse);
  Tensor out = grad_output(grad_loss, log_prob, target, weights, grad_z, lses);
  std::string word(reduction);
  call_device<CrossEntropyLossGrad>(grad_loss, log_prob, target, weights, grad_z, lses, word.data(),
                                    ignore_index, label_smoothing, zloss_scale, Written{out});
  return out;
}

// The same for a log_prob that is not used afterwards: on CPU, where the operator allows it, the
// gradient overwrites its memory. This halves the memory of a training step with a large
// vocabulary.
Tensor grad_of_unneeded(const Tensor& grad_loss, const Tensor& log_prob, const Tensor& target,
                        const Tensor& weight, const Tensor& grad_zloss, const Tensor& lse,
                        const std::string& reduction, int64_t ignore_index, double label_smoothing,
                        double zloss_scale) {
  // Checked before the list below makes copies that count as owners; a wrapper has no storage.
  const bool has_one_owner = log_prob.use_count() == 1;
  if (!has_one_owner ||
      !goes_straight_to_cpu({grad_loss, log_prob, target, weight, grad_zloss, lse}) ||
      !is_known_to_nobody_else(log_prob.storage())) {
    return grad_op().call(grad_loss, log_prob, target, optional_of(weight), optional_of(grad_zloss),
                          optional_of(lse), reduction, ignore_index, label_smoothing, zloss_scale);
  }
  RECORD_FUNCTION("aclnn::cross_entropy_loss_grad",
                  std::vector<c10::IValue>({grad_loss, log_prob, target}));
  check_grad_tensors(grad_loss, log_prob, target, weight, grad_zloss, lse);
  std::string word(reduction);
  const Tensor out = log_prob.variable_data();
  call_device<CrossEntropyLossGrad>(grad_loss, log_prob, target, weight, grad_zloss, lse,
                                    word.data(), ignore_index, label_smoothing, zloss_scale,
                                    Written{out});
  return out;
}

// The checks of stage 1, as far as a trace knows the sizes.
void check_trace(const char* api, Named matrix, const Tensor& target, string_view reduction) {
  const auto require = [&](bool condition, const std::string& text) {
    if (!condition) refuse(api, matrix.tensor.device(), text, ACLNN_ERR_INNER_TILING_ERROR);
  };
  const Tensor& values = matrix.tensor;
  require(values.dim() == 2, std::string(matrix.name) + " has shape " +
                                 c10::str(values.sym_sizes()) +
                                 ", expected [N, C] with C > 0; reshape it");
  const auto rows = values.sym_size(0).maybe_as_int();
  const auto labels = target.dim() == 1 ? target.sym_size(0).maybe_as_int() : std::nullopt;
  require(target.dim() == 1 && !(rows && labels && *rows != *labels),
          "target has shape " + c10::str(target.sym_sizes()) +
              ", expected [N], a label for every "
              "row of " +
              matrix.name + ", which has shape " + c10::str(values.sym_sizes()));
  require(
      reduction == "none" || reduction == "mean" || reduction == "sum",
      "reduction is \"" + std::string(reduction) + "\", expected \"none\", \"mean\" or \"sum\"");
}

Results loss_meta(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                  string_view reduction, int64_t, double, double zloss_scale, bool return_zloss) {
  check_trace(CrossEntropyLoss::kStage1, {"input", input}, target, reduction);
  return loss_outputs(input, target, tensor_of(weight), reduction, zloss_scale, return_zloss);
}

Tensor grad_meta(const Tensor& grad_loss, const Tensor& log_prob, const Tensor& target,
                 const OptionalTensor& weight, const OptionalTensor& grad_zloss,
                 const OptionalTensor& lse, string_view reduction, int64_t, double, double) {
  check_trace(CrossEntropyLossGrad::kStage1, {"logProb", log_prob}, target, reduction);
  return grad_output(grad_loss, log_prob, target, tensor_of(weight), tensor_of(grad_zloss),
                     tensor_of(lse));
}

// ---- Derivatives -------------------------------------------------------------------------------

// The arguments of both operators other than tensors.
struct Options {
  std::string reduction;
  int64_t ignore_index;
  double label_smoothing;
  double zloss_scale;

  // Applies the reduction to one value per row, with the shape and dtype of `like`.
  Tensor reduced(const Tensor& rows, const Tensor& like) const {
    const Tensor values = reduction == "none" ? rows : rows.sum().reshape_symint(like.sym_sizes());
    return values.to(like.scalar_type());
  }
};

// From the attributes of a node.
template <class... T>
Options options_of(const std::tuple<std::string, int64_t, double, double, T...>& attributes) {
  return {std::get<0>(attributes), std::get<1>(attributes), std::get<2>(attributes),
          std::get<3>(attributes)};
}

// 16-bit tensors are computed in FP32, as in the kernels.
at::ScalarType widened_type(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}
Tensor widened(const Tensor& tensor) {
  return tensor.to(widened_type(tensor));
}

// The derivatives, in terms of per-row coefficients that do not depend on the differentiated input:
//   loss = -sum over rows of (of_label * log_prob[label] + of_class * sum of weight * log_prob)
//   zloss = sum over rows of of_zloss / 2 * lse^2
// without the sums over rows for the reduction "none". An ignored row has zero coefficients.
class Rows {
 public:
  Rows(const Tensor& log_prob, const Tensor& target, const Tensor& weight, const Options& options)
      : valid_(at::ne(target, options.ignore_index)),
        label_(at::where(valid_, target, 0).to(at::kLong).unsqueeze(1)) {
    const auto type = widened_type(log_prob);
    const Tensor ones = valid_.to(type);
    Tensor label_weight = ones;
    if (weight.defined()) {
      weight_ = weight.to(type);
      label_weight = at::where(valid_, weight_.gather(0, label_.squeeze(1)), 0);
    }
    const auto averaged = [&](const Tensor& rows, const Tensor& weights) {
      if (options.reduction != "mean") return rows;
      return at::where(valid_, rows / weights.sum(), 0);
    };
    of_label_ = averaged(label_weight * (1 - options.label_smoothing), label_weight);
    of_softmax = of_label_;
    if (options.label_smoothing != 0) {
      const at::Scalar classes(log_prob.sym_size(1));
      const Tensor smoothing = averaged(ones * options.label_smoothing, label_weight);
      of_class_ = smoothing / classes;
      of_softmax = of_softmax + (weight_.defined() ? of_class_ * weight_.sum() : smoothing);
    }
    if (options.zloss_scale != 0) of_zloss = averaged(ones * (2 * options.zloss_scale), ones);
  }

  // of_label * values[label] + of_class * sum of weight * values, for values [N, C].
  Tensor weighted(const Tensor& values) const {
    const Tensor counted = without_ignored(values);
    const Tensor rows = of_label_ * counted.gather(1, label_).squeeze(1);
    if (!of_class_.defined()) return rows;
    return rows + of_class_ * (weight_.defined() ? counted * weight_ : counted).sum(1);
  }

  // Zeroes the ignored rows of values [N, C], even where they hold NaN.
  Tensor without_ignored(const Tensor& values) const {
    return at::where(valid_.unsqueeze(1), values, 0);
  }

  Tensor of_softmax;  // of_label + of_class * sum of weight
  Tensor of_zloss;    // undefined without z-loss

 private:
  Tensor valid_;
  Tensor label_;  // [N, 1], 0 where ignored
  Tensor weight_;
  Tensor of_label_;
  Tensor of_class_;  // undefined without smoothing
};

// Saves log_prob, target, weight, lse.
struct CrossEntropyLossFormula {
  static constexpr const char* kName = "AclnnCrossEntropyLossBackward0";
  static constexpr bool kReleasesFirst = true;
  using Attributes = std::tuple<std::string, int64_t, double, double, bool>;  // ..., return_zloss

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes& attributes) {
    const Options options = options_of(attributes);
    const Tensor &log_prob = saved[0], &target = saved[1], &weight = saved[2], &lse = saved[3];
    const bool zloss_counts = std::get<4>(attributes) && options.zloss_scale != 0;
    const Tensor grad_zloss = zloss_counts ? grads[2] : Tensor();
    const Tensor grad_lse = options.zloss_scale != 0 ? grads[3] : Tensor();
    Tensor grad;
    if (grads[0].defined() || grad_zloss.defined()) {
      const Tensor grad_loss = grads[0].defined() ? grads[0] : at::zeros_like(grad_zloss);
      // A second reference, so that log_prob is not overwritten if it is needed below.
      const Tensor needed = grads[1].defined() || grad_lse.defined() ? log_prob : Tensor();
      grad = grad_of_unneeded(grad_loss, log_prob, target, weight, grad_zloss,
                              grad_zloss.defined() ? lse : Tensor(), options.reduction,
                              options.ignore_index, options.label_smoothing, options.zloss_scale);
    }
    if (grads[1].defined() || grad_lse.defined()) {
      const Tensor softmax = widened(log_prob).exp();
      Tensor others;
      if (grads[1].defined()) {
        const Tensor values = widened(grads[1]);
        others = values - softmax * values.sum(1, /*keepdim=*/true);
      }
      if (grad_lse.defined()) {
        others = sum_of_defined(others, softmax * widened(grad_lse).unsqueeze(1));
      }
      grad = sum_of_defined(grad.defined() ? widened(grad) : grad, others);
    }
    if (!grad.defined()) return {at::zeros_like(log_prob)};
    return {grad.to(log_prob.scalar_type())};
  }
};

// Saves grad_loss, log_prob, target, weight, grad_zloss, lse.
struct CrossEntropyLossGradFormula {
  static constexpr const char* kName = "AclnnCrossEntropyLossGradBackward0";
  using Attributes = std::tuple<std::string, int64_t, double, double>;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const Options options = options_of(attributes);
    const Tensor &grad_loss = saved[0], &log_prob = saved[1], &grad_zloss = saved[4];
    const Rows rows(log_prob, saved[2], saved[3], options);
    const Tensor grad = rows.without_ignored(widened(grads[0]));
    const Tensor softmax = rows.without_ignored(widened(log_prob)).exp();
    const Tensor weighted_sum = (grad * softmax).sum(1);
    const bool zloss_counts = grad_zloss.defined() && options.zloss_scale != 0;
    variable_list result(4);
    if (needed[0]) {
      result[0] = options.reduced(weighted_sum * rows.of_softmax - rows.weighted(grad), grad_loss);
    }
    if (needed[1]) {
      const Tensor factor = softmax_factor(grad_loss, grad_zloss, saved[5], rows);
      result[1] = (grad * softmax * factor.unsqueeze(1)).to(log_prob.scalar_type());
    }
    if (needed[2] && zloss_counts) {
      result[2] = options.reduced(weighted_sum * rows.of_zloss * widened(saved[5]), grad_zloss);
    }
    if (needed[3] && zloss_counts) {
      result[3] = (weighted_sum * rows.of_zloss * widened(grad_zloss)).to(saved[5].scalar_type());
    }
    return result;
  }

  // The gradient is exp(log_prob) times this factor per row, minus terms independent of log_prob.
  static Tensor softmax_factor(const Tensor& grad_loss, const Tensor& grad_zloss, const Tensor& lse,
                               const Rows& rows) {
    const Tensor of_loss = widened(grad_loss) * rows.of_softmax;
    if (!grad_zloss.defined() || !rows.of_zloss.defined()) return of_loss;
    return of_loss + widened(grad_zloss) * rows.of_zloss * widened(lse);
  }
};

// As in torch, whose cross entropy treats the weights as constants.
void refuse_derivative(const char* name, const Tensor& weight) {
  TORCH_CHECK(!torch::autograd::compute_requires_grad(weight) && !tangent_of(weight).defined(),
              name,
              ": weight requires a gradient, but the operator has no derivative with respect to "
              "weight; detach it");
}

// Sets the tangents of the results, from the tangent of the input.
void set_tangents(const Results& results, const Tensor& tangent, const Tensor& target,
                  const Tensor& weight, const Options& options, bool return_zloss) {
  const auto& [loss, log_prob, zloss, lse] = results;
  const Rows rows(log_prob, target, weight, options);
  const Tensor values = widened(tangent);
  const Tensor of_lse = (widened(log_prob).exp() * values).sum(1);
  const Tensor of_log_prob = values - of_lse.unsqueeze(1);
  const Tensor of_loss = options.reduced(rows.weighted(of_log_prob).neg(), loss);
  Tensor of_zloss;
  if (options.zloss_scale != 0) {
    of_zloss = options.reduced(rows.of_zloss * widened(lse) * of_lse, loss);
    set_tangent(lse, of_lse);
  }
  set_tangent(loss, of_loss);
  set_tangent(log_prob, of_log_prob);
  if (return_zloss) set_tangent(zloss, of_zloss);
}

// `as_number`: computes the loss in the shape that _cross_entropy returns.
Results differentiable_loss(c10::DispatchKeySet keys, const Tensor& input, const Tensor& target,
                            const OptionalTensor& weight, string_view reduction,
                            int64_t ignore_index, double label_smoothing, double zloss_scale,
                            bool return_zloss, bool as_number) {
  const Tensor weights = tensor_of(weight);
  refuse_derivative("aclnn::cross_entropy_loss", weights);
  const Options options{std::string(reduction), ignore_index, label_smoothing, zloss_scale};
  const auto node = make_node<CrossEntropyLossFormula>(
      {options.reduction, ignore_index, label_smoothing, zloss_scale, return_zloss}, input);
  Results results = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Results results =
        loss_op().redispatch(keys & c10::after_autograd_keyset, input, target, weight, reduction,
                             ignore_index, label_smoothing, zloss_scale, return_zloss);
    if (as_number) std::get<0>(results) = number_of(std::get<0>(results), reduction);
    return results;
  }();
  const auto& [loss, log_prob, zloss, lse] = results;
  if (node) torch::autograd::set_history({loss, log_prob, zloss, lse}, node);
  if (const Tensor tangent = tangent_of(input); tangent.defined()) {
    set_tangents(results, tangent, target, weights, options, return_zloss);
  }
  if (node) {  // the results carry tangents
    node->save(log_prob, /*is_output=*/true);
    node->save(target, /*is_output=*/false);
    node->save(weights, /*is_output=*/false);
    node->save(lse, /*is_output=*/true);
  }
  return results;
}

Results loss_autograd(c10::DispatchKeySet keys, const Tensor& input, const Tensor& target,
                      const OptionalTensor& weight, string_view reduction, int64_t ignore_index,
                      double label_smoothing, double zloss_scale, bool return_zloss) {
  return differentiable_loss(keys, input, target, weight, reduction, ignore_index, label_smoothing,
                             zloss_scale, return_zloss, /*as_number=*/false);
}

Tensor number_autograd(c10::DispatchKeySet keys, const Tensor& input, const Tensor& target,
                       const OptionalTensor& weight, string_view reduction, int64_t ignore_index,
                       double label_smoothing) {
  return std::get<0>(differentiable_loss(keys, input, target, weight, reduction, ignore_index,
                                         label_smoothing, /*zloss_scale=*/0, /*return_zloss=*/false,
                                         /*as_number=*/true));
}

// The same through cross_entropy_loss, for dispatch keys that record no graph.
Tensor number_composed(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                       string_view reduction, int64_t ignore_index, double label_smoothing) {
  const Tensor loss =
      std::get<0>(loss_op().call(input, target, weight, reduction, ignore_index, label_smoothing,
                                 /*zloss_scale=*/0, /*return_zloss=*/false));
  return number_of(loss, reduction);
}

Tensor grad_autograd(c10::DispatchKeySet keys, const Tensor& grad_loss, const Tensor& log_prob,
                     const Tensor& target, const OptionalTensor& weight,
                     const OptionalTensor& grad_zloss, const OptionalTensor& lse,
                     string_view reduction, int64_t ignore_index, double label_smoothing,
                     double zloss_scale) {
  const Tensor weights = tensor_of(weight), grad_z = tensor_of(grad_zloss), lses = tensor_of(lse);
  refuse_derivative("aclnn::cross_entropy_loss_grad", weights);
  const Options options{std::string(reduction), ignore_index, label_smoothing, zloss_scale};
  const auto node = make_node<CrossEntropyLossGradFormula>(
      {options.reduction, ignore_index, label_smoothing, zloss_scale}, grad_loss, log_prob, grad_z,
      lses);
  if (node) {
    for (const Tensor& tensor : {grad_loss, log_prob, target, weights, grad_z, lses}) {
      node->save(tensor, /*is_output=*/false);
    }
  }
  Tensor out = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return grad_op().redispatch(keys & c10::after_autograd_keyset, grad_loss, log_prob, target,
                                weight, grad_zloss, lse, reduction, ignore_index, label_smoothing,
                                zloss_scale);
  }();
  if (node) torch::autograd::set_history(out, node);

  const Tensor grad_tangent = tangent_of(grad_loss);
  const Tensor log_prob_tangent = tangent_of(log_prob);
  const Tensor grad_z_tangent = tangent_of(grad_z);
  const Tensor lse_tangent = tangent_of(lses);
  const bool zloss_counts = grad_z.defined() && zloss_scale != 0;
  Tensor tangent;
  const auto add = [&](const Tensor& term) { tangent = sum_of_defined(tangent, term); };
  if (grad_tangent.defined() || (zloss_counts && grad_z_tangent.defined())) {  // linear in both
    const Tensor of_loss =
        grad_tangent.defined() ? grad_tangent : at::zeros_like(primal_of(grad_loss));
    const bool with_z = zloss_counts && grad_z_tangent.defined();
    add(widened(grad_op().call(of_loss, primal_of(log_prob), target, weight,
                               with_z ? optional_of(grad_z_tangent) : std::nullopt,
                               with_z ? optional_of(primal_of(lses)) : std::nullopt, reduction,
                               ignore_index, label_smoothing, zloss_scale)));
  }
  if (log_prob_tangent.defined() || (zloss_counts && lse_tangent.defined())) {
    const Tensor values = primal_of(log_prob);
    const Rows rows(values, target, weights, options);
    const Tensor softmax = rows.without_ignored(widened(values)).exp();
    if (log_prob_tangent.defined()) {
      const Tensor factor = CrossEntropyLossGradFormula::softmax_factor(
          primal_of(grad_loss), zloss_counts ? primal_of(grad_z) : Tensor(),
          zloss_counts ? primal_of(lses) : Tensor(), rows);
      add(rows.without_ignored(widened(log_prob_tangent)) * softmax * factor.unsqueeze(1));
    }
    if (zloss_counts && lse_tangent.defined()) {
      const Tensor factor = widened(primal_of(grad_z)) * rows.of_zloss * widened(lse_tangent);
      add(softmax * factor.unsqueeze(1));
    }
  }
  set_tangent(out, tangent);
  return out;
}

// As torch's nll_loss, the loss is computed in FP32 under autocast.
template <at::DeviceType kDevice, class Value>
Value widened_by_autocast(const Value& value) {
  return at::autocast::cached_cast(at::kFloat, value, kDevice);
}

template <at::DeviceType kDevice>
Results loss_autocast(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                      string_view reduction, int64_t ignore_index, double label_smoothing,
                      double zloss_scale, bool return_zloss) {
  const c10::impl::ExcludeDispatchKeyGuard guard(
      at::autocast::get_autocast_dispatch_key_from_device_type(kDevice));
  return loss_op().call(widened_by_autocast<kDevice>(input), target,
                        widened_by_autocast<kDevice>(weight), reduction, ignore_index,
                        label_smoothing, zloss_scale, return_zloss);
}

template <at::DeviceType kDevice>
Tensor number_autocast(const Tensor& input, const Tensor& target, const OptionalTensor& weight,
                       string_view reduction, int64_t ignore_index, double label_smoothing) {
  const c10::impl::ExcludeDispatchKeyGuard guard(
      at::autocast::get_autocast_dispatch_key_from_device_type(kDevice));
  return number_op().call(widened_by_autocast<kDevice>(input), target,
                          widened_by_autocast<kDevice>(weight), reduction, ignore_index,
                          label_smoothing);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def(
      "cross_entropy_loss(Tensor input, Tensor target, Tensor? weight=None, str "
      "reduction=\"mean\", "
      "int ignore_index=-100, float label_smoothing=0.0, float lse_square_scale_for_zloss=0.0, "
      "bool return_zloss=False) -> (Tensor loss, Tensor log_prob, Tensor zloss, Tensor "
      "lse_for_zloss)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "cross_entropy_loss_grad(Tensor grad_loss, Tensor log_prob, Tensor target, Tensor? "
      "weight=None, Tensor? grad_zloss=None, Tensor? lse_for_zloss=None, str reduction=\"mean\", "
      "int ignore_index=-100, float label_smoothing=0.0, float lse_square_scale_for_zloss=0.0) -> "
      "Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction=\"mean\", "
      "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.impl("_cross_entropy",
         torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, &number_composed));
}

TORCH_LIBRARY_IMPL(aclnn, FuncTorchBatchedDecomposition, m) {
  m.impl("_cross_entropy", &number_composed);
}

ACLNN_IMPL_ON_DEVICES(m) {
  m.impl("cross_entropy_loss", &loss_device);
  m.impl("cross_entropy_loss_grad", &grad_device);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("cross_entropy_loss", &loss_meta);
  m.impl("cross_entropy_loss_grad", &grad_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("cross_entropy_loss", &loss_autograd);
  m.impl("cross_entropy_loss_grad", &grad_autograd);
}

// Registered per device: a kernel for the Autograd alias key would rank behind the composite
// kernel.
TORCH_LIBRARY_IMPL(aclnn, AutogradCPU, m) {
  m.impl("_cross_entropy", &number_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutogradPrivateUse1, m) {
  m.impl("_cross_entropy", &number_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastCPU, m) {
  m.impl("cross_entropy_loss", &loss_autocast<at::kCPU>);
  m.impl("_cross_entropy", &number_autocast<at::kCPU>);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastPrivateUse1, m) {
  m.impl("cross_entropy_loss", &loss_autocast<at::kPrivateUse1>);
  m.impl("_cross_entropy", &number_autocast<at::kPrivateUse1>);
}

}  // namespace aclnn_torch::cross_entropy_loss_ops
