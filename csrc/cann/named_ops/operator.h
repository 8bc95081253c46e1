#pragma once

#include <concepts>
#include <cstddef>
#include <deque>
#include <memory>
#include <variant>

#include "cann/rows/row.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/runtime/description.h"
#include "host_cann/runtime/named_call.h"

// The language of the named operators, which programs call by name (aclopCompileAndExecute). Each
// is a few calls of ATen. An entry declares the arguments and defines the computation:
//
//   NAMED_OPERATOR(StrideAdd, (In, x1), (In, x2), (Out, y), (Attribute<int64_t>, c1_len)) {
//     y = ...;
//   }
//
// Inputs and outputs are matched by the order of the call, attributes by name. The kinds of
// tensors, the checks and the launch on the stream are those of the rows (rows/engine/kinds.h). Any
// tensor may be in a private format; an operator sees its elements in logical order.

namespace aclnn_host {

// The arguments of one call, which an operator takes one after the other.
class NamedArguments {
 public:
  // Copies the descriptions, and copies values in host memory to the device.
  explicit NamedArguments(const NamedCall& call);

  // Takes the next input or output; null if it is absent.
  const aclTensor* next_input();
  aclTensor* next_output();
  // Takes all remaining inputs or outputs.
  const aclTensorList* other_inputs();
  aclTensorList* other_outputs();
  // Takes the values of the next input, which the call has in host memory or as a constant.
  at::Tensor next_values(const char* name);
  // Takes an attribute; null if it is absent.
  const AttributeValue* attribute(const char* name);

  // Transfers ownership of memory that the arguments hold to the call.
  void give_memory(Preparation& stage);
  // Refuses inputs, outputs and attributes that the operator did not take, except for attributes
  // that begin with _, which are for CANN's compiler, and empty lists.
  void expect_all_taken() const;
  const aclTensorList& inputs() const { return inputs_; }
  const aclTensorList& outputs() const { return outputs_; }

 private:
  const NamedCall& call_;
  aclTensorList inputs_;
  aclTensorList outputs_;
  std::deque<aclTensorList> lists_;
  std::vector<std::shared_ptr<const void>> memory_;
  size_t inputs_taken_ = 0;
  size_t outputs_taken_ = 0;
  std::vector<std::string_view> attributes_taken_;
};

// A registered operator, a static object that is found by its name.
struct NamedOperator {
  using Prepare = aclnnStatus (*)(NamedArguments& arguments, Preparation& stage);
  NamedOperator(std::string_view name, const char* api, Prepare prepare);

  std::string_view name;
  const char* api;  // the prefix of its error texts, such as "aclop StrideAdd"
  Prepare prepare;
  const NamedOperator* next;
};

// An attribute of type bool, int64_t, double, std::string, std::vector<int64_t> or
// std::vector<double>; empty if the call does not set it. Numbers are converted, as in CANN. Some
// calls of torch_npu set a text as a bool, because a string literal converts to bool in C++; this
// counts as not set.
template <class T>
struct Attribute {
  using Value = std::optional<T>;
  static Value get(const Frame& frame, size_t i);
};
template <>
Attribute<bool>::Value Attribute<bool>::get(const Frame& frame, size_t i);
template <>
Attribute<int64_t>::Value Attribute<int64_t>::get(const Frame& frame, size_t i);
template <>
Attribute<double>::Value Attribute<double>::get(const Frame& frame, size_t i);
template <>
Attribute<std::string>::Value Attribute<std::string>::get(const Frame& frame, size_t i);
using Integers = std::vector<int64_t>;
template <>
Attribute<Integers>::Value Attribute<Integers>::get(const Frame& frame, size_t i);
using Numerals = std::vector<double>;
template <>
Attribute<Numerals>::Value Attribute<Numerals>::get(const Frame& frame, size_t i);

// An attribute that changes the result, and of which the host CANN supports only the values that
// follow its name: "CALCULATED", "-1|1" or "false". The first one is CANN's default for an absent
// attribute. With Stated the attribute is required, because the host CANN does not support CANN's
// default.
struct Only {
  using Value = Nothing;
  static constexpr bool kMayBeAbsent = true;
  static Value get(const Frame& /*frame*/, size_t /*i*/) { return {}; }
};
struct Stated : Only {
  static constexpr bool kMayBeAbsent = false;
};
void expect_value(const char* name, const AttributeValue* value, std::string_view values,
                  bool may_be_absent);

std::vector<int64_t> integers_of(const at::Tensor& values);
std::vector<double> floats_of(const at::Tensor& values);

// An input whose values the operator needs before it runs, such as axes. The call has them in host
// memory or as a constant.
struct HostInts {
  using Value = std::vector<int64_t>;
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct HostFloats {
  using Value = std::vector<double>;
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};

// Refuses sizes that are not the last ones of the tensor whose shape they repeat. Absent or empty
// sizes are accepted.
void expect_repeats(const char* name, const std::optional<Integers>& sizes, const char* tensor_name,
                    const at::Tensor& tensor);

// The number of a list of one number.
template <class T>
T one_of(const char* name, const std::vector<T>& numbers) {
  EXPECT(numbers.size() == 1, name, " has ", numbers.size(), " numbers, expected one");
  return numbers[0];
}

// Refuses a tensor of more or less than one element.
inline void expect_one(const char* name, const at::Tensor& tensor) {
  EXPECT(tensor.numel() == 1, name, " has ", tensor.numel(), " elements, expected one");
}

// Converts a number to int64_t; refuses fractions and numbers out of range.
int64_t integer_of(const char* name, double number);

// The slot of an attribute.
Slot slot_of(const char* name, const AttributeValue* value);

// Takes an argument of a kind from the call. The text follows the name in the declaration: a
// reason, or the values of an attribute.
template <class Kind>
void take(NamedArguments& arguments, Preparation& stage, const char* name, const char* text = "") {
  if constexpr (requires { typename Kind::Taken; }) {
    take<typename Kind::Taken>(arguments, stage, name);
  } else if constexpr (std::same_as<Kind, HostInts>) {
    stage.add_slot(name, integers_of(arguments.next_values(name)));
  } else if constexpr (std::same_as<Kind, HostFloats>) {
    stage.add_slot(name, floats_of(arguments.next_values(name)));
  } else if constexpr (requires { typename Kind::C; }) {
    using C = typename Kind::C;
    if constexpr (std::same_as<C, const aclTensorList*>) {
      Kind::add(stage, name, arguments.other_inputs());
    } else if constexpr (std::same_as<C, aclTensorList*>) {
      Kind::add(stage, name, arguments.other_outputs());
    } else if constexpr (std::same_as<C, const aclTensor*>) {
      Kind::add(stage, name, arguments.next_input());
    } else {
      static_assert(std::same_as<C, aclTensor*>);
      Kind::add(stage, name, arguments.next_output());
    }
    stage.allow(Preparation::Allowed::kFormats);
  } else if constexpr (requires { Kind::kMayBeAbsent; }) {
    expect_value(name, arguments.attribute(name), text, Kind::kMayBeAbsent);
    stage.add_slot(name, std::monostate());
  } else {
    stage.add_slot(name, slot_of(name, arguments.attribute(name)));
  }
}

}  // namespace aclnn_host

// The section named_operators of the library holds the signature of every operator, for programs
// that list them: "StrideAdd (In, x1), (In, x2), (Out, y), (Attribute<int64_t>, c1_len)".
#define NAMED_OPERATOR(Name, ...)                                                           \
  [[gnu::section("named_operators"), gnu::used]] static const char signature_##Name[] =     \
      #Name " " #__VA_ARGS__;                                                               \
  static void operator_##Name(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__));                    \
  static const ::aclnn_host::NamedOperator entry_##Name(                                    \
      #Name, "aclop " #Name,                                                                \
      [](::aclnn_host::NamedArguments& arguments, ::aclnn_host::Preparation& stage) {       \
        (ACLNN_FOR_EACH(NAMED_TAKE, __VA_ARGS__));                                          \
        arguments.give_memory(stage);                                                       \
        arguments.expect_all_taken();                                                       \
        return stage.finish([](const ::aclnn_host::Frame& frame) {                          \
          ::aclnn_host::Row<ACLNN_FOR_EACH(ACLNN_KIND, __VA_ARGS__)>::call(operator_##Name, \
                                                                           frame);          \
        });                                                                                 \
      });                                                                                   \
  static void operator_##Name(ACLNN_FOR_EACH(ACLNN_VALUE, __VA_ARGS__))

#define NAMED_TAKE(kind, name, ...) \
  ::aclnn_host::take<::aclnn_host::Kind<kind>>(arguments, stage, #name __VA_OPT__(, ) __VA_ARGS__)
