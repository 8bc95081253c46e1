#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host_cann/descriptors/scalar.h"
#include "host_cann/descriptors/tensor.h"
#include "host_cann/runtime/descriptor.h"

namespace aclnn_host {

// The values of an array; short ones are stored inline. (Not std::vector: its bool specialisation
// has no data().)
template <class T>
class Values {
 public:
  // Makes room for this many.
  T* resize(uint64_t size) {
    if (size > kFew) many_ = std::make_unique<T[]>(size);
    return get();
  }

  T* get() { return many_ ? many_.get() : few_; }
  const T* get() const { return many_ ? many_.get() : few_; }
  T operator[](uint64_t i) const { return get()[i]; }

 private:
  static constexpr uint64_t kFew = 8;
  T few_[kFew];
  std::unique_ptr<T[]> many_;
};

// An int, float or bool array, copied from the caller.
template <class T>
struct Array : Descriptor<Object::kArray, sizeof(T)> {
  Values<T> values;
  uint64_t size = 0;
};

// Destroys an element of a list, unless the caller has already done so.
struct DestroyElement {
  template <class T>
  void operator()(const T* element) const noexcept {
    if (element->is_alive()) delete element;
  }
};

// A list, which owns its elements as soon as it is created.
template <class T, uint8_t kVariant>
struct List : Descriptor<Object::kList, kVariant> {
  std::vector<std::unique_ptr<const T, DestroyElement>> elements;
};

}  // namespace aclnn_host

struct aclIntArray : aclnn_host::Array<int64_t> {};
struct aclFloatArray : aclnn_host::Array<float> {};
struct aclBoolArray : aclnn_host::Array<bool> {};
struct aclTensorList : aclnn_host::List<aclTensor, 0> {};
struct aclScalarList : aclnn_host::List<aclScalar, 1> {};

namespace aclnn_host {

// True if an argument of an operator may be read: it is null, an object that was not destroyed, or
// not a descriptor at all.
template <class T>
bool is_usable(const T& argument) noexcept {
  if constexpr (requires { argument->elements; }) {
    if (argument == nullptr) return true;
    if (!argument->is_alive()) return false;
    for (const auto& element : argument->elements) {
      if (!is_usable(element.get())) return false;
    }
    return true;
  } else if constexpr (requires { argument->is_alive(); }) {
    return argument == nullptr || argument->is_alive();
  } else {
    return true;
  }
}

}  // namespace aclnn_host
