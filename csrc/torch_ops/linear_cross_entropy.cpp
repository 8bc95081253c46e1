// torch.ops.aclnn.linear_cross_entropy, which is differentiable, and _linear_cross_entropy, which
// computes its losses and its gradients: on CPU with one function of the host CANN, on an NPU with
// two of CANN's, which fused_linear_cross_entropy.cpp makes operators.

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "aclnnop/aclnn_host_linear_cross_entropy.h"
#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/linear_cross_entropy_shared.h"
#include "torch_ops/straight.h"

namespace aclnn_torch::linear_cross_entropy_ops {
namespace {

using namespace linear_cross_entropy;
using Mask = std::array<bool, 3>;  // for input, weight, bias

ACLNN_DECLARE(FusedLinearOnlineMaxSum);
ACLNN_DECLARE(HostLinearCrossEntropy);

// losses, lse, and the gradients of input, weight and bias; empty where the mask is false
using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

using PartsSignature = Parts(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                             const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                             int64_t, double, Mask, int64_t, int64_t);
using TotalSignature = Tensor(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&,
                              const OptionalTensor&, const OptionalTensor&, int64_t, double, bool);

const auto& parts_op() {
  static const auto op = find_operator<PartsSignature>("aclnn::_linear_cross_entropy");
  return op;
}

const auto& total_op() {
  static const auto op = find_operator<TotalSignature>("aclnn::linear_cross_entropy");
  return op;
}

// ---- The whole loss in one call ----------------------------------------------------------------

Parts parts_outputs(const Tensor& input, const Tensor& weight, const Tensor& target,
                    const Tensor& bias, const Tensor& class_weights, const Tensor& factors,
                    const Tensor& lse, Mask mask) {
  check_tensors(HostLinearCrossEntropy::kStage1, {{"input", input},
                                                  {"weight", weight},
                                                  {"target", target},
                                                  {"bias", bias, /*optional=*/true},
                                                  {"classWeights", class_weights, true},
                                                  {"factors", factors, /*optional=*/true},
                                                  {"lse", lse, /*optional=*/true}});
  const SymInt rows = lse.defined() ? SymInt(0) : size_of(input, 0);
  const auto wanted = [&](size_t i, const Tensor& tensor) {
    return mask[i] && tensor.defined() ? like(input, tensor.sym_sizes()) : like(input, {SymInt(0)});
  };
  return {sum_like(input, {rows}), sum_like(input, {rows}), wanted(0, input), wanted(1, weight),
          wanted(2, bias)};
}

Parts parts_cpu(const Tensor& input, const Tensor& weight, const Tensor& target,
                const OptionalTensor& bias, const OptionalTensor& class_weights,
                const OptionalTensor& factors, const OptionalTensor& lse, int64_t ignore_index,
                double label_smoothing, Mask mask, int64_t first_class, int64_t vocabulary) {
  const Tensor biases = tensor_of(bias), weights = tensor_of(class_weights);
  const Tensor factor = tensor_of(factors), given_lse = tensor_of(lse);
  Parts results = parts_outputs(input, weight, target, biases, weights, factor, given_lse, mask);
  const auto& [losses, lse_out, input_grad, weight_grad, bias_grad] = results;
  const Tensor none;
  const bool has_lse = given_lse.defined();
  call_device<HostLinearCrossEntropy>(
      input, weight, biases, target, weights, factor, given_lse, ignore_index, label_smoothing,
      first_class, vocabulary, Written{has_lse ? none : losses}, Written{has_lse ? none : lse_out},
      Written{mask[0] ? input_grad : none}, Written{mask[1] ? weight_grad : none},
      Written{mask[2] && biases.defined() ? bias_grad : none});
  return results;
}

// Appends a column, of ones or of the bias, because CANN's functions have no bias argument.
Tensor with_column(const Tensor& matrix, const Tensor& column) {
  return at::cat({matrix, column.to(matrix.scalar_type()).unsqueeze(1)}, 1);
}

Parts parts_npu(const Tensor& input, const Tensor& weight, const Tensor& target,
                const OptionalTensor& bias, const OptionalTensor& class_weights,
                const OptionalTensor& factors, const OptionalTensor& lse, int64_t ignore_index,
                double label_smoothing, Mask mask, int64_t first_class, int64_t vocabulary) {
  const Tensor biases = tensor_of(bias), weights = tensor_of(class_weights);
  Parts results = parts_outputs(input, weight, target, biases, weights, tensor_of(factors),
                                tensor_of(lse), mask);
  if (label_smoothing != 0) {
    refuse(FusedLinearOnlineMaxSum::kStage1, input.device(),
           "label_smoothing is " + std::to_string(label_smoothing) +
               ", expected 0 on an NPU; call cross_entropy of the logits");
  }
  auto& [losses, lse_out, input_grad, weight_grad, bias_grad] = results;
  Tensor rows = input, matrix = weight;
  if (biases.defined()) {
    rows = with_column(input, at::ones({input.size(0)}, input.options()));
    matrix = with_column(weight, biases);
  }
  const Tensor counts = at::ne(target, ignore_index);
  const int64_t end_class = first_class + weight.size(0);
  const Tensor is_here = counts & at::ge(target, first_class) & at::lt(target, end_class);
  Tensor of_rows_in_total = counts.to(sum_type(input));
  if (weights.defined()) {
    of_rows_in_total = of_rows_in_total * weights.index_select(0, at::where(counts, target, 0));
  }
  Tensor sum_exp, max = tensor_of(lse), masks, masked;
  if (max.defined()) {
    masked = at::where(is_here, target - first_class, 0);
    masks = is_here.logical_not();  // as bytes, the form in which the gradient accepts it, too
    sum_exp = at::ones_like(max);
  } else {
    Tensor predicted;
    std::tie(max, sum_exp, predicted, masks, masked, std::ignore) =
        sums_op().call(rows, matrix, target, first_class, end_class, /*return_logits=*/false);
    const Tensor log_sum = sum_exp.log();
    lse_out = max + log_sum;
    losses = at::where(is_here, log_sum - predicted, lse_out) * of_rows_in_total;
    losses = at::where(counts, losses, 0);
  }
  if (!mask[0] && !mask[1] && !mask[2]) return results;
  // An ignored row has no gradient, whatever its factor.
  const Tensor grad =
      factors ? at::where(counts, of_rows_in_total * *factors, 0) : of_rows_in_total;
  const auto [of_rows, of_matrix] =
      grad_op().call(grad, rows, matrix, masks, masked,
                     /*label_smoothing=*/0, max, sum_exp, std::nullopt);
  const int64_t depth = input.size(1);
  if (mask[0]) input_grad = of_rows.narrow(1, 0, depth).contiguous();
  if (mask[1]) weight_grad = of_matrix.narrow(1, 0, depth).contiguous();
  if (mask[2] && biases.defined()) bias_grad = of_matrix.select(1, depth).contiguous();
  return results;
}

Parts parts_meta(const Tensor& input, const Tensor& weight, const Tensor& target,
                 const OptionalTensor& bias, const OptionalTensor& class_weights,
                 const OptionalTensor& factors, const OptionalTensor& lse, int64_t, double,
                 Mask mask, int64_t, int64_t) {
  check_matrices(HostLinearCrossEntropy::kStage1, input, weight, target);
  return parts_outputs(input, weight, target, tensor_of(bias), tensor_of(class_weights),
                       tensor_of(factors), tensor_of(lse), mask);
}

// ---- Derivatives -------------------------------------------------------------------------------

// The factor of each row's loss in the differentiated value. For a reduced loss, whose gradient is
// one number, the caller's factors are scaled by it.
Tensor factors_of(const Tensor& grad, const Tensor& factors, bool reduced) {
  if (!reduced || !factors.defined()) return grad;
  return factors * grad;
}

// The arguments other than matrices and labels.
struct Options {
  int64_t ignore_index;
  double label_smoothing;
  bool reduced;
};

// The derivatives in ATen operations, which are differentiable again; holds the whole logits.
struct Composition {
  Tensor gradient;  // of the sum of factors * losses with respect to the logits, in FLOAT or DOUBLE
  Tensor input;
  Tensor weight;

  Composition(const Tensor& input, const Tensor& weight, const Tensor& target, const Tensor& bias,
              const Tensor& class_weights, const Tensor& factors, const Options& options)
      : input(input.to(sum_type(input))), weight(weight.to(sum_type(input))) {
    Tensor logits = at::matmul(this->input, this->weight.t());
    if (bias.defined()) logits = logits + bias.to(logits.scalar_type());
    const Tensor counts = at::ne(target, options.ignore_index);
    const Tensor label = at::where(counts, target, 0).to(at::kLong);
    const Tensor of_rows = at::where(counts, factors, 0).unsqueeze(1);
    Tensor of_label = at::ones_like(of_rows);
    if (class_weights.defined()) of_label = class_weights.index_select(0, label).unsqueeze(1);
    Tensor of_softmax = of_label = of_label * (1 - options.label_smoothing);
    Tensor of_classes;
    if (options.label_smoothing != 0) {
      const Tensor weights = class_weights.defined()
                                 ? class_weights
                                 : at::ones_symint({weight.sym_size(0)}, logits.options());
      of_classes = weights * options.label_smoothing / at::Scalar(weight.sym_size(0));
      of_softmax = of_softmax + of_classes.sum();
    }
    Tensor of_logits =
        (at::softmax(logits, 1) * of_softmax).scatter_add(1, label.unsqueeze(1), of_label.neg());
    if (of_classes.defined()) of_logits = of_logits - of_classes;
    // Zero for ignored rows, even where their logits are NaN.
    gradient = at::where(counts.unsqueeze(1), of_logits * of_rows, 0);
  }

  variable_list all(Needed needed, at::ScalarType type) const {
    variable_list result(3);
    if (needed[0]) result[0] = at::matmul(gradient, weight).to(type);
    if (needed[1]) result[1] = at::matmul(gradient.t(), input).to(type);
    if (needed[2]) result[2] = gradient.sum(0).to(type);
    return result;
  }
};

// Saves input, weight, target, bias, class_weights, factors, lse, and the gradients if the forward
// computed them.
struct LinearCrossEntropyFormula {
  static constexpr const char* kName = "AclnnLinearCrossEntropyBackward0";
  static constexpr bool kReleasesFirst = true;
  using Attributes = std::tuple<int64_t, double, bool>;  // Options

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed needed, const Attributes& attributes) {
    const auto [ignore_index, label_smoothing, reduced] = attributes;
    const Tensor &input = saved[0], &weight = saved[1], &target = saved[2], &bias = saved[3];
    const Tensor &class_weights = saved[4], &given_factors = saved[5], &lse = saved[6];
    if (at::GradMode::is_enabled() || have_tangents(grads[0], input, weight, bias)) {
      Tensor factors = factors_of(grads[0], given_factors, reduced);
      if (factors.dim() == 0) factors = factors.expand_symint({input.sym_size(0)});
      return Composition(input, weight, target, bias, class_weights, factors,
                         {ignore_index, label_smoothing, reduced})
          .all(needed, input.scalar_type());
    }
    variable_list result(3);
    if (saved[7].defined() || saved[8].defined() || saved[9].defined()) {
      for (size_t i = 0; i < 3; ++i) {
        if (needed[i] && saved[7 + i].defined()) result[i] = scaled(saved[7 + i], grads[0]);
      }
      return result;
    }
    Tensor factors = factors_of(grads[0].to(sum_type(input)), given_factors, reduced);
    if (factors.dim() == 0) factors = factors.expand_symint({input.sym_size(0)});
    const auto [_, __, of_input, of_weight, of_bias] = parts_op().call(
        input, weight, target, optional_of(bias), optional_of(class_weights), factors, lse,
        ignore_index, label_smoothing, {needed[0], needed[1], needed[2]}, 0, 0);
    if (needed[0]) result[0] = of_input;
    if (needed[1]) result[1] = of_weight;
    if (needed[2]) result[2] = of_bias;
    return result;
  }

  // The incoming gradient is usually 1, and a weight's gradient is large: it is scaled in place
  // unless it has another owner, such as the node of a retained graph.
  static Tensor scaled(const Tensor& gradient, const Tensor& number) {
    if (gradient.use_count() > 1 || !goes_straight_to_cpu({gradient, number}) ||
        !is_known_to_nobody_else(gradient.storage())) {
      return gradient * number.to(gradient.scalar_type());
    }
    if (number.item<double>() != 1) gradient.mul_(number);
    return gradient;
  }
};

// As in torch, whose cross entropy treats the class weights as constants.
void refuse_derivative(const char* name, const Tensor& tensor) {
  TORCH_CHECK(!torch::autograd::compute_requires_grad(tensor) && !have_tangents(tensor),
              "aclnn::linear_cross_entropy: ", name,
              " requires a gradient, but the operator has no derivative with respect to it; detach "
              "it");
}

Tensor total_of(const Tensor& losses, const Tensor& factors, bool reduced) {
  if (!reduced) return losses;
  const Tensor rows = factors.defined() ? losses * factors : losses;
  const c10::SymInt size = rows.sym_size(0);
  // Sums rows in pieces, then the pieces: threads share the pieces, but not one whole sum. Not in a
  // trace with symbolic sizes, which this would specialise to a number of pieces.
  constexpr int64_t kPiece = 1024;
  const bool in_pieces = rows.is_cpu() && !size.is_symbolic() && size > kPiece;
  if (!in_pieces) return rows.sum(at::kDouble).to(losses.scalar_type());
  const int64_t pieces = (size.expect_int() + kPiece - 1) / kPiece;
  const Tensor padded = at::constant_pad_nd(rows, {0, pieces * kPiece - size.expect_int()});
  const Tensor sums = padded.view({pieces, kPiece}).sum(1, false, at::kDouble);
  return sums.sum().to(losses.scalar_type());
}

// For dispatch keys that record no graph.
Tensor total_composed(const Tensor& input, const Tensor& weight, const Tensor& target,
                      const OptionalTensor& bias, const OptionalTensor& class_weights,
                      const OptionalTensor& factors, int64_t ignore_index, double label_smoothing,
                      bool reduced) {
  const Tensor losses = std::get<0>(parts_op().call(input, weight, target, bias, class_weights,
                                                    std::nullopt, std::nullopt, ignore_index,
                                                    label_smoothing, {false, false, false}, 0, 0));
  return total_of(losses, tensor_of(factors), reduced);
}

Tensor total_autograd(const Tensor& input, const Tensor& weight, const Tensor& target,
                      const OptionalTensor& bias, const OptionalTensor& class_weights,
                      const OptionalTensor& factors, int64_t ignore_index, double label_smoothing,
                      bool reduced) {
  const Tensor biases = tensor_of(bias), weights = tensor_of(class_weights);
  const Tensor factor = tensor_of(factors);
  refuse_derivative("class_weights", weights);
  refuse_derivative("factors", factor);
  const auto node = make_node<LinearCrossEntropyFormula>({ignore_index, label_smoothing, reduced},
                                                         input, weight, biases);
  // If all rows' factors are known, computing the gradients with the loss saves a matrix product.
  // Not in 16 bits: small gradients would underflow before the incoming gradient scales them up.
  const bool at_once = node && reduced && input.is_cpu() && sum_type(input) == input.scalar_type();
  const Mask mask{at_once && input.requires_grad(), at_once && weight.requires_grad(),
                  at_once && biases.defined() && biases.requires_grad()};
  Parts parts;
  Tensor total;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    parts = parts_op().call(input, weight, target, bias, class_weights,
                            at_once ? factors : std::nullopt, std::nullopt, ignore_index,
                            label_smoothing, mask, 0, 0);
    total = total_of(std::get<0>(parts), factor, reduced);
  }
  const auto& [losses, lse, of_input, of_weight, of_bias] = parts;
  if (node) {
    torch::autograd::set_history(total, node);
    for (const Tensor& tensor : {input, weight, target, biases, weights, factor, lse}) {
      node->save(tensor, /*is_output=*/false);
    }
    node->save(mask[0] ? of_input : Tensor(), /*is_output=*/false);
    node->save(mask[1] ? of_weight : Tensor(), /*is_output=*/false);
    node->save(mask[2] ? of_bias : Tensor(), /*is_output=*/false);
  }
  const Tensor of_rows = tangent_of(input), of_matrix = tangent_of(weight);
  const Tensor of_biases = biases.defined() ? tangent_of(biases) : Tensor();
  if (of_rows.defined() || of_matrix.defined() || of_biases.defined()) {
    const Tensor ones =
        at::ones_symint({input.sym_size(0)}, input.options().dtype(sum_type(input)));
    const Composition composition(primal_of(input), primal_of(weight), target,
                                  biases.defined() ? primal_of(biases) : biases, weights, ones,
                                  {ignore_index, label_smoothing, reduced});
    const auto type = sum_type(input);
    Tensor tangent;
    if (of_rows.defined()) tangent = at::matmul(of_rows.to(type), composition.weight.t());
    if (of_matrix.defined()) {
      tangent = sum_of_defined(tangent, at::matmul(composition.input, of_matrix.to(type).t()));
    }
    if (of_biases.defined()) tangent = sum_of_defined(tangent, of_biases.to(type));
    set_tangent(total, total_of((composition.gradient * tangent).sum(1), factor, reduced));
  }
  return total;
}

// Autocast to 16 bits, as for linear; the loss itself is computed in FP32 anyway.
template <at::DeviceType kDevice>
Tensor total_autocast(const Tensor& input, const Tensor& weight, const Tensor& target,
                      const OptionalTensor& bias, const OptionalTensor& class_weights,
                      const OptionalTensor& factors, int64_t ignore_index, double label_smoothing,
                      bool reduced) {
  const c10::impl::ExcludeDispatchKeyGuard guard(
      at::autocast::get_autocast_dispatch_key_from_device_type(kDevice));
  const auto type = at::autocast::get_autocast_dtype(kDevice);
  const auto cast = [type](const auto& value) {
    return at::autocast::cached_cast(type, value, kDevice);
  };
  return total_op().call(cast(input), cast(weight), target, cast(bias), class_weights, factors,
                         ignore_index, label_smoothing, reduced);
}

Parts parts_autograd(const Tensor& input, const Tensor& weight, const Tensor& target,
                     const OptionalTensor& bias, const OptionalTensor& class_weights,
                     const OptionalTensor& factors, const OptionalTensor& lse, int64_t ignore_index,
                     double label_smoothing, Mask mask, int64_t first_class, int64_t vocabulary) {
  refuse_derivatives("aclnn::_linear_cross_entropy", input, weight, tensor_of(bias),
                     tensor_of(class_weights), tensor_of(factors));
  const at::AutoDispatchBelowADInplaceOrView guard;
  return parts_op().call(input, weight, target, bias, class_weights, factors, lse, ignore_index,
                         label_smoothing, mask, first_class, vocabulary);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(aclnn, m) {
  m.def(
      "_linear_cross_entropy(Tensor input, Tensor weight, Tensor target, Tensor? bias=None, "
      "Tensor? class_weights=None, Tensor? factors=None, Tensor? lse=None, int ignore_index=-100, "
      "float label_smoothing=0.0, bool[3] output_mask=[False, False, False], int first_class=0, "
      "int "
      "vocabulary_size=0) -> (Tensor losses, Tensor lse_out, Tensor input_grad, Tensor "
      "weight_grad, "
      "Tensor bias_grad)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "linear_cross_entropy(Tensor input, Tensor weight, Tensor target, Tensor? bias=None, "
      "Tensor? class_weights=None, Tensor? factors=None, int ignore_index=-100, float "
      "label_smoothing=0.0, bool reduced=True) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.impl("linear_cross_entropy",
         torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, &total_composed));
}

TORCH_LIBRARY_IMPL(aclnn, CPU, m) {
  m.impl("_linear_cross_entropy", &parts_cpu);
}

TORCH_LIBRARY_IMPL(aclnn, PrivateUse1, m) {
  m.impl("_linear_cross_entropy", &parts_npu);
}

TORCH_LIBRARY_IMPL(aclnn, Meta, m) {
  m.impl("_linear_cross_entropy", &parts_meta);
}

TORCH_LIBRARY_IMPL(aclnn, Autograd, m) {
  m.impl("_linear_cross_entropy", &parts_autograd);
}

// Registered per device: a kernel for the Autograd alias key would rank behind the composite
// kernel.
TORCH_LIBRARY_IMPL(aclnn, AutogradCPU, m) {
  m.impl("linear_cross_entropy", &total_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutogradPrivateUse1, m) {
  m.impl("linear_cross_entropy", &total_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutogradMeta, m) {
  m.impl("linear_cross_entropy", &total_autograd);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastCPU, m) {
  m.impl("linear_cross_entropy", &total_autocast<at::kCPU>);
}

TORCH_LIBRARY_IMPL(aclnn, AutocastPrivateUse1, m) {
  m.impl("linear_cross_entropy", &total_autocast<at::kPrivateUse1>);
}

}  // namespace aclnn_torch::linear_cross_entropy_ops
