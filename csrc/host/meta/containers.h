#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "meta/recycled.h"
#include "meta/scalar.h"
#include "meta/tensor.h"

namespace aclnn_host {

// The values of an array. A few stand in the object itself. (Not std::vector: its bool
// specialisation has no data().)
template <class T>
class Values {
 public:
  // Makes room for so many.
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
struct Array : Recycled {
  Values<T> values;
  uint64_t size = 0;
  Counted<Object::kArray> counted;
};

// A list owns its elements from its creation on.
template <class T>
struct List {
  std::vector<std::unique_ptr<const T>> elements;
  Counted<Object::kList> counted;
};

}  // namespace aclnn_host

struct aclIntArray : aclnn_host::Array<int64_t> {};
struct aclFloatArray : aclnn_host::Array<float> {};
struct aclBoolArray : aclnn_host::Array<bool> {};
struct aclTensorList : aclnn_host::List<aclTensor> {};
struct aclScalarList : aclnn_host::List<aclScalar> {};
