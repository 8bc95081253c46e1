// Makes the kernels of an elementwise operator, its in-place form and its gradient from the parts
// that differ between operators: the CANN functions, schemas, names of autograd nodes and the
// second derivative.
//
//   struct Forward : CannFunction<Elu, "self"> {
//     static constexpr const char* kSchema = "elu(Tensor self, Scalar alpha=1, ...) -> Tensor";
//     using Signature = Tensor(const Tensor&, const Scalar&, ...);  // self, then coefficients
//     static constexpr const char* kNode = "AclnnEluBackward0";
//   };
//   struct InPlace : CannFunction<InplaceElu, "selfRef"> {
//     static constexpr const char* kSchema = "elu_(Tensor(a!) self, ...) -> Tensor(a!)";
//   };
//   struct Backward : CannFunction<EluBackward, "gradOutput", "selfOrResult"> {
//     static constexpr const char* kSchema = "elu_backward(Tensor grad_output, ...) -> Tensor";
//     // The tensors are grad_output and the tensor that the gradient starts from, in schema order.
//     // The other arguments are Forward's coefficients, in its order, followed for
//     // StartsFrom::kEither by a bool that is true if that tensor is the result.
//     using Signature = Tensor(const Tensor&, const Scalar&, ..., bool, const Tensor&);
//     static constexpr const char* kNode = "AclnnEluBackwardBackward0";
//     static constexpr StartsFrom kStartsFrom = StartsFrom::kEither;
//     // The gradient of the second tensor. `product` is grad_output times the incoming gradient;
//     // the other arguments are the operator's.
//     static Tensor second_gradient(const Tensor& product, const Scalar& alpha, ...);
//   };
//
//   TORCH_LIBRARY_FRAGMENT(aclnn, m) {
//     add_elementwise<Forward, Backward, InPlace>(m);  // or <Forward, Backward>
//   }
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "torch_ops/autograd.h"
#include "torch_ops/device_call.h"
#include "torch_ops/inplace.h"

namespace aclnn_torch {

// The tensor of the forward operator from which the gradient is computed.
enum class StartsFrom { kInput, kResult, kEither };

namespace elementwise {

template <class T>
inline constexpr bool kIsTensor = std::is_same_v<std::remove_cvref_t<T>, Tensor>;

template <class T>
auto if_tensor(const T& argument) {
  if constexpr (kIsTensor<T>) {
    return std::tie(argument);
  } else {
    return std::tuple<>();
  }
}

template <class T>
auto unless_tensor(const T& argument) {
  if constexpr (kIsTensor<T>) {
    return std::tuple<>();
  } else if constexpr (std::is_same_v<T, c10::string_view>) {
    return std::tuple<std::string>(argument);
  } else {
    return std::tuple<T>(argument);
  }
}

// References to the tensors among the arguments of an operator.
template <class... Args>
auto tensors_of(const Args&... args) {
  return std::tuple_cat(if_tensor(args)...);
}

// The other arguments, in the form that a node stores.
template <class... Args>
auto attributes_of(const Args&... args) {
  return std::tuple_cat(unless_tensor(args)...);
}

}  // namespace elementwise

// A string that can be a template argument: the name of an operator's argument.
template <size_t kSize>
struct ArgumentName {
  char text[kSize];
  constexpr ArgumentName(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }
};

// A torch operator that calls one CANN function. `kNames` are its tensors' names in the function's
// document. An operator that chooses among functions defines its own `check` and `call`.
template <class Function, ArgumentName... kNames>
struct CannFunction {
  static constexpr const char* kArguments[] = {kNames.text...};
  static constexpr StartsFrom kStartsFrom = StartsFrom::kInput;

  // Checks that need no library.
  template <class... Args>
  static void check(const Args&... args) {
    const auto tensors = elementwise::tensors_of(args...);
    static_assert(std::tuple_size_v<decltype(tensors)> == sizeof...(kNames));
    const Named first{kArguments[0], std::get<0>(tensors)};
    if constexpr (sizeof...(kNames) == 1) {
      check_tensors(Function::kStage1, {first});
    } else {
      const Named second{kArguments[1], std::get<1>(tensors)};
      check_tensors(Function::kStage1, {first, second});
      check_same(Function::kStage1, second, first);
    }
  }

  // The checks of an operator that overwrites its only tensor.
  static void check_overwritten(const Tensor& self) {
    check(self);
    check_overwritable(Function::kStage1, {kArguments[0], self});
  }

  template <class... Args>
  static void call(const Args&... args) {
    call_device<Function>(args...);
  }
};

namespace elementwise {

inline std::string name_in(std::string_view schema) {
  return c10::str("aclnn::", schema.substr(0, schema.find('(')));
}

// Kernels of any operator that computes a new tensor from one or two tensors.
template <class Operator, class Signature = typename Operator::Signature>
struct OutOfPlace;

template <class Operator, class... Args>
struct OutOfPlace<Operator, Tensor(Args...)> {
  using Attributes = decltype(attributes_of(std::declval<Args>()...));

  static const auto& op() {
    static const auto op = find_operator<Tensor(Args...)>(name_in(Operator::kSchema).c_str());
    return op;
  }

  // Meta: sizes, strides and dtype only.
  static Tensor meta(Args... args) {
    Operator::check(args...);
    const auto tensors = tensors_of(args...);
    return empty_output(std::get<0>(tensors),
                        std::get<std::tuple_size_v<decltype(tensors)> - 1>(tensors));
  }

  // Devices: aclnn.
  static Tensor device(Args... args) {
    Tensor out = meta(args...);
    Operator::call(args..., Written{out});
    return out;
  }

  // Calls f with the arguments, given as references to tensors, and attributes.
  template <class F, class Tensors>
  static Tensor apply(F f, const Tensors& tensors, const Attributes& attributes) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return f(argument<I>(tensors, attributes)...);
    }(std::index_sequence_for<Args...>());
  }

 private:
  template <size_t I, class Tensors>
  static const auto& argument(const Tensors& tensors, const Attributes& attributes) {
    constexpr bool is_tensor[] = {kIsTensor<Args>...};
    constexpr size_t tensors_before = std::count(is_tensor, is_tensor + I, true);
    if constexpr (is_tensor[I]) {
      return std::get<tensors_before>(tensors);
    } else {
      return std::get<I - tensors_before>(attributes);
    }
  }
};

// The kernels of a gradient.
template <class Backward, class Signature = typename Backward::Signature>
struct Gradient;

template <class Backward, class... Args>
struct Gradient<Backward, Tensor(Args...)> : OutOfPlace<Backward> {
  using Base = OutOfPlace<Backward>;
  using typename Base::Attributes;

  static Tensor call(const Tensor& grad, const Tensor& value, const Attributes& attributes) {
    const auto call = [](const auto&... args) { return Base::op().call(args...); };
    return Base::apply(call, std::tie(grad, value), attributes);
  }

  // Saves grad_output, in which the operator is linear, and the tensor that it starts from.
  struct Formula {
    static constexpr const char* kName = Backward::kNode;
    using Attributes = typename Base::Attributes;

    static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                  Needed needed, const Attributes& attributes) {
      variable_list result(2);
      if (needed[0]) result[0] = call(grads[0], saved[1], attributes);
      if (needed[1]) {
        const Tensor product = grads[0] * saved[0];
        result[1] =
            Base::apply(&Backward::second_gradient, std::tie(product, saved[1]), attributes);
      }
      return result;
    }
  };

  static Tensor autograd(c10::DispatchKeySet keys, Args... args) {
    const auto run = [&] {
      return Base::op().redispatch(keys & c10::after_autograd_keyset, args...);
    };
    const auto differentiate = [&](const auto&... tensors) {
      return differentiate_elementwise<Formula>(attributes_of(args...), run, tensors...);
    };
    return std::apply(differentiate, tensors_of(args...));
  }
};

// Saves the tensor that the gradient starts from.
template <class Forward, class Backward>
struct Formula {
  static constexpr const char* kName = Forward::kNode;
  using Attributes = typename Gradient<Backward>::Attributes;

  static variable_list backward(const variable_list& grads, const std::vector<Tensor>& saved,
                                Needed, const Attributes& attributes) {
    return {Gradient<Backward>::call(grads[0], saved[0], attributes)};
  }

  // The gradient's attributes, for a start from the result or from the input.
  template <class... Coefficients>
  static Attributes attributes(bool is_result, const Coefficients&... coefficients) {
    if constexpr (Backward::kStartsFrom == StartsFrom::kEither) {
      return std::tuple_cat(attributes_of(coefficients...), std::tuple(is_result));
    } else {
      return attributes_of(coefficients...);
    }
  }
};

// The kernels of an operator.
template <class Forward, class Backward, class Signature = typename Forward::Signature>
struct Function;

template <class Forward, class Backward, class... Coefficients>
struct Function<Forward, Backward, Tensor(const Tensor&, Coefficients...)> : OutOfPlace<Forward> {
  using Base = OutOfPlace<Forward>;
  using Formula = elementwise::Formula<Forward, Backward>;

  static Tensor autograd(c10::DispatchKeySet keys, const Tensor& self,
                         Coefficients... coefficients) {
    const auto run = [&] {
      return Base::op().redispatch(keys & c10::after_autograd_keyset, self, coefficients...);
    };
    if constexpr (Backward::kStartsFrom == StartsFrom::kResult) {
      return differentiate_from_result(Formula::attributes(true, coefficients...), run, self);
    } else {
      return differentiate_elementwise<Formula>(Formula::attributes(false, coefficients...), run,
                                                self);
    }
  }

 private:
  template <class Run>
  static Tensor differentiate_from_result(const typename Formula::Attributes& attributes, Run run,
                                          const Tensor& self) {
    const auto node = make_node<Formula>(attributes, self);
    Tensor out = [&] {
      const at::AutoDispatchBelowADInplaceOrView guard;
      return run();
    }();
    if (node) torch::autograd::set_history(out, node);
    if (const Tensor tangent = tangent_of(self); tangent.defined()) {
      set_tangent(out, Gradient<Backward>::call(tangent, primal_of(out), attributes));
    }
    if (node) node->save(out, /*is_output=*/true);  // with its tangent
    return out;
  }
};

// The kernels of the in-place form.
template <class Forward, class Backward, class InPlace,
          class Signature = typename Forward::Signature>
struct Overwriting;

template <class Forward, class Backward, class InPlace, class... Coefficients>
struct Overwriting<Forward, Backward, InPlace, Tensor(const Tensor&, Coefficients...)> {
  using Formula = elementwise::Formula<Forward, Backward>;

  static const auto& op() {
    static const auto op =
        find_operator<Tensor&(Tensor&, Coefficients...)>(name_in(InPlace::kSchema).c_str());
    return op;
  }

  static Tensor& meta(Tensor& self, Coefficients...) {
    InPlace::check_overwritten(self);
    return self;
  }

  static Tensor& device(Tensor& self, Coefficients... coefficients) {
    InPlace::check_overwritten(self);
    InPlace::call(Written{self}, coefficients...);
    return self;
  }

  // Like ATen, saves the result if the gradient can start from it, otherwise a copy of the input.
  // The tangent is computed from the input if possible, before it is overwritten: for a negative
  // alpha of ELU, the result does not identify the branch.
  static Tensor& autograd(c10::DispatchKeySet keys, Tensor& self, Coefficients... coefficients) {
    constexpr bool kSavesResult = Backward::kStartsFrom != StartsFrom::kInput;
    constexpr bool kTangentFromResult = Backward::kStartsFrom == StartsFrom::kResult;
    torch::autograd::check_inplace(self, torch::autograd::compute_requires_grad(self));
    const auto node = make_node<Formula>(Formula::attributes(kSavesResult, coefficients...), self);
    if (node && !kSavesResult) node->save(self.clone(), /*is_output=*/false);  // with its tangent
    const Tensor tangent = tangent_of(self);
    const auto pushed_forward = [&] {
      return Gradient<Backward>::call(tangent, primal_of(self),
                                      Formula::attributes(kTangentFromResult, coefficients...));
    };
    Tensor new_tangent;
    if (tangent.defined() && !kTangentFromResult) new_tangent = pushed_forward();
    {
      const at::AutoDispatchBelowAutograd guard;
      op().redispatch(keys & c10::after_autograd_keyset, self, coefficients...);
    }
    if (node) torch::autograd::rebase_history(self, node);
    if (tangent.defined()) tangent.copy_(kTangentFromResult ? pushed_forward() : new_tangent);
    if (node && kSavesResult) node->save(self, /*is_output=*/true, self.is_view());
    return self;
  }

  static Tensor& overwrite(c10::DispatchKeySet keys, Tensor& self, Coefficients... coefficients) {
    return aclnn_torch::overwrite(self, [&] {
      op().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, coefficients...);
    });
  }

  // Compilers see the out-of-place operator and a replacement of self.
  static Tensor& functionalize(Tensor& self, Coefficients... coefficients) {
    return replace_by_functional(self, [&](const Tensor& value) {
      return OutOfPlace<Forward>::op().call(value, coefficients...);
    });
  }
};

// The tags that ATen gives its own elementwise operators. Versions of torch before 2.13 have no tag
// for in-place ones.
template <class Tag = at::Tag>
std::vector<Tag> tags_of(const std::string& name) {
  std::vector<Tag> tags = {Tag::pt2_compliant_tag, Tag::pointwise};
  if constexpr (requires { Tag::inplace; }) {
    if (name.ends_with('_')) tags.push_back(Tag::inplace);
  }
  return tags;
}

template <class Kernels>
void add(torch::Library& m, const char* schema) {
  const std::string name = name_in(schema);
  m.def(schema, {tags_of(name)});  // without braces, an overload takes it for the function
  for (const auto device : {c10::DispatchKey::CPU, c10::DispatchKey::PrivateUse1}) {
    m.impl(name.c_str(), device, &Kernels::device);
  }
  m.impl(name.c_str(), c10::DispatchKey::Meta, &Kernels::meta);
  m.impl(name.c_str(), c10::DispatchKey::Autograd, &Kernels::autograd);
}

}  // namespace elementwise

// Defines an operator, its gradient and its in-place form, if it has one.
template <class Forward, class Backward, class InPlace = void>
void add_elementwise(torch::Library& m) {
  elementwise::add<elementwise::Function<Forward, Backward>>(m, Forward::kSchema);
  elementwise::add<elementwise::Gradient<Backward>>(m, Backward::kSchema);
  if constexpr (!std::is_void_v<InPlace>) {
    using Kernels = elementwise::Overwriting<Forward, Backward, InPlace>;
    elementwise::add<Kernels>(m, InPlace::kSchema);
    const std::string name = elementwise::name_in(InPlace::kSchema);
    m.impl(name.c_str(), c10::DispatchKey::ADInplaceOrView, &Kernels::overwrite);
    m.impl(name.c_str(), c10::DispatchKey::Functionalize, &Kernels::functionalize);
  }
}

}  // namespace aclnn_torch
