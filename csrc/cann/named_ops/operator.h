#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cann/rows/checks.h"
#include "cann/rows/row.h"
#include "host_cann/descriptors/containers.h"
#include "host_cann/runtime/description.h"
#include "host_cann/runtime/named_call.h"

// One thing, the language of the named operators: those that programs call by name
// (aclopCompileAndExecute), each a few calls of ATen. An entry says what one takes and what it
// does:
//
//   NAMED_OPERATOR(StrideAdd, (In, x1), (In, x2), (Out, y), (Attribute<int64_t>, c1_len)) {
//     y = ...;
//   }
//
// Inputs and outputs are taken in the order of the call; attributes are found by their name. The
// kinds of tensors are those of the rows (rows/engine/kinds.h), and so are the checks and the
// way to the stream; any tensor may be in a private format, of which an operator sees the elements
// in order.

namespace aclnn_host {

// The arguments of one call, which an operator takes one after the other.
class NamedArguments {
 public:
  // Copies the descriptions, and values in host memory to the device.
  explicit NamedArguments(const NamedCall& call);

  // The next input or output; null for one that is absent.
  const aclTensor* next_input();
  aclTensor* next_output();
  // All inputs or outputs that are left.
  const aclTensorList* other_inputs();
  aclTensorList* other_outputs();
  // The values of the next input, which the call has in host memory or as a constant.
  at::Tensor next_values(const char* name);
  // An attribute, which is taken; null for one that is absent.
  const AttributeValue* attribute(const char* name);

  // Hands memory that only the arguments have to the call.
  void give_memory(Preparation& stage);
  // Refuses inputs, outputs and attributes that the operator did not take, but for attributes that
  // begin with _, which tell CANN's compiler something, and empty lists, which say nothing.
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

// An operator that there is. They are static objects, which are found by their name.
struct NamedOperator {
  using Prepare = aclnnStatus (*)(NamedArguments& arguments, Preparation& stage);
  NamedOperator(std::string_view name, const char* api, Prepare prepare);

  std::string_view name;
  const char* api;  // "aclop StrideAdd", as its texts begin
  Prepare prepare;
  const NamedOperator* next;
};

// An attribute: bool, int64_t, double, std::string, std::vector<int64_t> or <double>; or nothing,
// if the call does not set it. Numbers are converted, as CANN does. torch_npu has calls that set a
// text as a bool, because a literal in C++ becomes one; that is nothing, too.
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

// An attribute that changes the result and of which the host CANN has some values alone, which
// stand behind its name: "CALCULATED", "-1|1" or "false", the first of which is CANN's own for an
// attribute that is absent. Stated is one that has to be there, because the host CANN does not have
// CANN's own value.
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

// An input whose values the operator needs before it runs, such as axes: the call has them in host
// memory, or as a constant.
struct HostInts {
  using Value = std::vector<int64_t>;
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};
struct HostFloats {
  using Value = std::vector<double>;
  static Value get(const Frame& frame, size_t i) { return std::get<Value>(frame.slots[i]); }
};

// Refuses sizes that are not the last ones of the tensor whose shape they repeat. None say nothing.
void expect_repeats(const char* name, const std::optional<Integers>& sizes, const char* of,
                    const at::Tensor& tensor);

// A number that is an integer of 64 bits, which others are not cut to.
int64_t integer_of(const char* name, double number);

// The slot of an attribute.
Slot slot_of(const char* name, const AttributeValue* value);

// Takes from the call what a kind stands for. The text is what stands behind the name: a reason, or
// the values of an attribute.
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

// The signature of every operator stands in the section named_operators of the library, for whoever
// asks what there is: "StrideAdd (In, x1), (In, x2), (Out, y), (Attribute<int64_t>, c1_len)".
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
