// Shared by all differentiable operators: an autograd node over saved tensors and attributes, like
// ATen's generated nodes, so that first and higher derivatives, torch.func, vmap over grad and
// compiled autograd all work. Each operator supplies a Formula:
//
//   struct LayerNormFormula {
//     static constexpr const char* kName = "AclnnLayerNormBackward0";
//     using Attributes = std::tuple<std::vector<c10::SymInt>>;  // packable into IValues
//     // Optional, true: if the graph is not retained, the node releases the saved tensors before
//     // the call, so that the formula may reuse the memory of tensors that it alone holds.
//     static constexpr bool kReleasesFirst = false;
//     // The gradients of the operator's tensor inputs, undefined where needed[i] is false.
//     static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
//                                   Needed needed, const Attributes&);
//   };
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include "client/error.h"
#include "torch_ops/torch_versions.h"

namespace aclnn_torch {

using at::Tensor;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// The tensor inputs that need a gradient, one bit each.
struct Needed {
  int64_t bits;
  bool operator[](size_t i) const { return (bits >> i) & 1; }
};

template <class Formula>
class Node final : public torch::autograd::Node {
 public:
  using Attributes = typename Formula::Attributes;

  explicit Node(Attributes attributes) : attributes_(std::move(attributes)) {}

  std::string name() const override { return Formula::kName; }

  // `is_output` marks a result of the operator, which must not keep its own node alive. An
  // undefined tensor (an absent optional argument) is unpacked as undefined.
  void save(const Tensor& tensor, bool is_output, bool is_inplace_on_view = false) {
    outputs_ |= uint64_t{is_output} << saved_.size();
    saved_.emplace_back(tensor, is_output, is_inplace_on_view);
  }

  variable_list apply(variable_list&& grads) override {
    std::vector<Tensor> saved;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (released_) throw std::runtime_error(torch::autograd::ERR_BACKWARD_TWICE);
      saved = unpack();
      if (releases_first()) release();
    }
    const bool any_defined =
        std::any_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); });
    if (!any_defined) return variable_list(num_outputs());
    return Formula::backward(grads, saved, needed_inputs(), attributes_);
  }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    release();
  }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    for (size_t i = 0; i < saved_.size(); ++i) args.collect(saved_[i], (outputs_ >> i) & 1);
    std::apply([&](const auto&... attribute) { (args.collect(attribute), ...); }, attributes_);
  }

  variable_list apply_with_saved(const variable_list& grads,
                                 torch::dynamo::autograd::SwapSavedVariables& saved) override {
    namespace compiled = torch::dynamo::autograd;
    for (SavedVariable& variable : saved_) saved.before(variable);
    std::apply([&](auto&... attribute) { (saved.before(attribute), ...); }, attributes_);

    c10::List<std::optional<Tensor>> tensors;
    for (const Tensor& tensor : unpack()) {
      tensors.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
    }
    std::vector<at::IValue> arguments{tensors, needed_inputs().bits};
    std::vector<at::TypePtr> types{at::ListType::ofOptionalTensors(), at::IntType::get()};
    std::apply(
        [&]<class... T>(const T&... attribute) {
          (arguments.push_back(compiled::IValuePacker<T>::pack(attribute)), ...);
          (types.push_back(compiled::IValuePacker<T>::packed_type()), ...);
        },
        attributes_);
    const auto& interface = compiled::getPyCompilerInterface();
    // Once per process: the compiler identifies functions by name.
    static const std::string function =
        interface->bind_function(saved.get_py_compiler(), name(), backward_of_ivalues, types);
    const auto metadata =
        compiled::IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
            compiled::get_input_metadata(next_edges()));
    variable_list result = interface->call_function(saved.get_py_compiler(), "apply_functional",
                                                    function, grads, arguments, metadata);

    for (SavedVariable& variable : saved_) saved.after(variable);
    std::apply([&](auto&... attribute) { (saved.after(attribute), ...); }, attributes_);
    return result;
  }

 private:
  // True only in a call by the engine itself, not by a hook: only the engine knows whether the
  // graph is retained.
  bool releases_first() const {
    if constexpr (requires { Formula::kReleasesFirst; }) {
      return Formula::kReleasesFirst && torch::autograd::get_current_node().get() == this &&
             !torch::autograd::get_current_graph_task_keep_graph();
    }
    return false;
  }

  void release() {
    for (SavedVariable& variable : saved_) variable.reset_data();
    released_ = true;
  }

  std::vector<Tensor> unpack() {
    std::vector<Tensor> tensors;
    tensors.reserve(saved_.size());
    for (const SavedVariable& variable : saved_) tensors.push_back(variable.unpack(getptr()));
    return tensors;
  }

  Needed needed_inputs() const {
    Needed needed{0};
    for (size_t i = 0; i < num_outputs(); ++i) {
      needed.bits |= static_cast<int64_t>(task_should_compute_output(i)) << i;
    }
    return needed;
  }

  // The backward as a function of IValues, which compiled autograd inserts into its graph: saved
  // tensors, needed inputs, attributes.
  static variable_list backward_of_ivalues(const variable_list& grads,
                                           const std::vector<at::IValue>& arguments) {
    const auto attributes = [&]<size_t... I>(std::index_sequence<I...>) {
      return Attributes{
          torch::dynamo::autograd::IValuePacker<std::tuple_element_t<I, Attributes>>::unpack(
              arguments[I + 2])...};
    }(std::make_index_sequence<std::tuple_size_v<Attributes>>());
    std::vector<Tensor> saved;
    for (const at::IValue& tensor : arguments[0].toListRef()) {
      saved.push_back(tensor.isNone() ? Tensor() : tensor.toTensor());
    }
    return Formula::backward(grads, saved, Needed{arguments[1].toInt()}, attributes);
  }

  c10::SmallVector<SavedVariable, 4> saved_;
  uint64_t outputs_ = 0;  // which saved tensors are results of the operator, one bit each
  Attributes attributes_;
  bool released_ = false;
};

// The node of one call, or null when no input needs a gradient.
template <class Formula, class... Tensors>
GraphNodePtr<Node<Formula>> make_node(typename Formula::Attributes attributes,
                                      const Tensors&... inputs) {
  if (!torch::autograd::compute_requires_grad(inputs...)) return nullptr;
  auto node = make_graph_node<Node<Formula>>(std::move(attributes));
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  return node;
}

// Looks up an operator in the dispatcher.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").template typed<Signature>();
}

// The tangent of an input, or an undefined tensor.
inline Tensor tangent_of(const Tensor& input) {
  return torch::autograd::isFwGradDefined(input) ? input._fw_grad(/*level=*/0) : Tensor();
}

// Sets an output's tangent, cast to the output's dtype; an undefined tangent counts as zero.
inline void set_tangent(const Tensor& output, const Tensor& tangent) {
  if (!tangent.defined()) return;
  output._set_fw_grad(tangent.to(output.scalar_type()), /*level=*/0, /*is_inplace_op=*/false);
}

// The sum of two tensors, each of which may be undefined and then counts as zero.
inline Tensor sum_of_defined(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
}

// An input without its tangent.
inline Tensor primal_of(const Tensor& input) {
  return torch::autograd::isFwGradDefined(input) ? input._fw_primal(/*level=*/0) : input;
}

// The Autograd kernel of an operator whose result is elementwise in its inputs. Each Jacobian is
// diagonal, so the same formula gives tangents, too. `run` calls the kernels below. Saves the
// inputs.
template <class Formula, class Run, class... Tensors>
Tensor differentiate_elementwise(const typename Formula::Attributes& attributes, Run run,
                                 const Tensors&... inputs) {
  const auto node = make_node<Formula>(attributes, inputs...);
  if (node) (node->save(inputs, /*is_output=*/false), ...);
  Tensor out = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return run();
  }();
  if (node) torch::autograd::set_history(out, node);
  if ((torch::autograd::isFwGradDefined(inputs) || ...)) {
    const std::vector<Tensor> primals{primal_of(inputs)...};
    Tensor sum;
    int64_t bit = 1;
    for (const Tensor& tangent : {tangent_of(inputs)...}) {
      if (tangent.defined()) {
        for (const Tensor& part : Formula::backward({tangent}, primals, Needed{bit}, attributes)) {
          sum = sum_of_defined(sum, part);
        }
      }
      bit <<= 1;
    }
    set_tangent(out, sum);
  }
  return out;
}

}  // namespace aclnn_torch
