#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "meta/scalar.h"
#include "meta/tensor.h"

namespace aclnn_host {

// The values of an int, float or bool array, copied from the caller. (Not std::vector: its bool
// specialisation has no data().)
template <class T>
struct Array {
  std::unique_ptr<T[]> values;
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
