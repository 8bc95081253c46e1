#include "host_cann/descriptors/containers.h"

#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "host_cann/descriptors/aclnn_guard.h"
#include "host_cann/descriptors/null_arguments.h"

namespace {

using aclnn_host::destroy;
using aclnn_host::fail;
using aclnn_host::guarded;
using aclnn_host::is_gone;
using aclnn_host::refuse_null;

template <class ArrayType, class T>
ArrayType* create_array(const char* api, const T* values, uint64_t size) {
  if (values == nullptr && size > 0) {
    fail(ACLNN_ERR_PARAM_NULLPTR, "%s: value is null although size is not 0", api);
    return nullptr;
  }
  return guarded(api, static_cast<ArrayType*>(nullptr), ACL_ERROR_BAD_ALLOC, [&] {
    auto array = std::make_unique<ArrayType>();
    std::copy_n(values, size, array->values.resize(size));
    array->size = size;
    return array.release();
  });
}

template <class ListType, class T>
ListType* create_list(const char* api, const T* const* values, uint64_t size) {
  if (values == nullptr && size > 0) {
    fail(ACLNN_ERR_PARAM_NULLPTR, "%s: value is null although size is not 0", api);
    return nullptr;
  }
  for (uint64_t i = 0; i < size; ++i) {
    if (is_gone(api, "an element", values[i])) return nullptr;
  }
  return guarded(api, static_cast<ListType*>(nullptr), ACL_ERROR_BAD_ALLOC, [&] {
    auto list = std::make_unique<ListType>();
    // Ownership passes only after the last step that can fail.
    list->elements.resize(size);
    for (uint64_t i = 0; i < size; ++i) list->elements[i].reset(values[i]);
    return list.release();
  });
}

uint64_t size_of(const auto& object) {
  if constexpr (requires { object.elements; }) {
    return object.elements.size();
  } else {
    return object.size;
  }
}

template <class T>
aclnnStatus get_size(const char* api, const char* argument, const T* object, uint64_t* size) {
  if (const aclnnStatus status = refuse_null(api, {{argument, object}, {"size", size}})) {
    return status;
  }
  if (is_gone(api, argument, object)) return ACLNN_ERR_PARAM_INVALID;
  *size = size_of(*object);
  return OK;
}

}  // namespace

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return create_array<aclIntArray>("aclCreateIntArray", value, size);
}
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return create_array<aclFloatArray>("aclCreateFloatArray", value, size);
}
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return create_array<aclBoolArray>("aclCreateBoolArray", value, size);
}
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return create_list<aclTensorList>("aclCreateTensorList", value, size);
}
aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return create_list<aclScalarList>("aclCreateScalarList", value, size);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return destroy("aclDestroyIntArray", "array", array);
}
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy("aclDestroyFloatArray", "array", array);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy("aclDestroyBoolArray", "array", array);
}
aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy("aclDestroyTensorList", "array", array);
}
aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy("aclDestroyScalarList", "array", array);
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return get_size("aclGetIntArraySize", "array", array, size);
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return get_size("aclGetFloatArraySize", "array", array, size);
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return get_size("aclGetBoolArraySize", "array", array, size);
}
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return get_size("aclGetTensorListSize", "tensorList", tensorList, size);
}
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return get_size("aclGetScalarListSize", "scalarList", scalarList, size);
}
