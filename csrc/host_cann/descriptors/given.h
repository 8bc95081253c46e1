#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// An argument of a stage 1 with its name in the document: written once in each entry point, and
// read by checks, traces and error texts.
template <class T>
struct Named {
  const char* name;
  T value;
};
template <class T>
Named(const char*, T) -> Named<T>;

// The value of an argument, of any type of the interface.
class GivenValue {
 public:
  using Any = std::variant<const aclTensor*, const aclScalar*, const aclIntArray*,
                           const aclFloatArray*, const aclBoolArray*, const aclTensorList*,
                           const aclScalarList*, const char*, bool, int64_t, uint64_t, double>;

  template <class T>
  GivenValue(T* value) : any_(std::in_place_type<const T*>, value) {}
  GivenValue(bool value) : any_(std::in_place_type<bool>, value) {}
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  GivenValue(T value) : any_(std::in_place_type<int64_t>, static_cast<int64_t>(value)) {}
  GivenValue(uint64_t value) : any_(std::in_place_type<uint64_t>, value) {}
  GivenValue(double value) : any_(std::in_place_type<double>, value) {}

  const Any& any() const { return any_; }

 private:
  Any any_;
};

// The arguments of a stage 1 are an array of these. Functions that take any number of arguments of
// any types take a span of it, so that they are compiled once.
struct Given {
  Given(const char* name, GivenValue value) : name(name), value(value) {}
  // From a Named or another pair of a name and a value.
  template <class T>
  Given(const T& argument) : Given(from(argument)) {}

  const char* name;
  GivenValue value;

 private:
  template <class T>
  static Given from(const T& argument) {
    const auto& [name, value] = argument;
    return Given(name, value);
  }
};
using GivenArguments = std::span<const Given>;

// The name of the first descriptor argument that was destroyed; null if there is none.
ACLNN_HOST_INTERNAL const char* find_gone(GivenArguments given) noexcept;

}  // namespace aclnn_host
