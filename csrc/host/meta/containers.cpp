#include "meta/containers.h"

#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "meta/guard.h"

namespace {

using aclnn_host::fail;
using aclnn_host::guarded;

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
  return guarded(api, static_cast<ListType*>(nullptr), ACL_ERROR_BAD_ALLOC, [&] {
    auto list = std::make_unique<ListType>();
    // Ownership passes only once nothing can fail any more.
    list->elements.resize(size);
    for (uint64_t i = 0; i < size; ++i) list->elements[i].reset(values[i]);
    return list.release();
  });
}

aclnnStatus get_size(const char* api, bool any_null, uint64_t value, uint64_t* size) {
  if (any_null) return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: an argument is null", api);
  *size = value;
  return OK;
}

template <class T>
aclnnStatus destroy(const T* object) {
  delete object;
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
  return destroy(array);
}
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy(array);
}
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy(array);
}
aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy(array);
}
aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy(array);
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return get_size("aclGetIntArraySize", !array || !size, array ? array->size : 0, size);
}
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return get_size("aclGetFloatArraySize", !array || !size, array ? array->size : 0, size);
}
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return get_size("aclGetBoolArraySize", !array || !size, array ? array->size : 0, size);
}
aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
  return get_size("aclGetTensorListSize", !list || !size, list ? list->elements.size() : 0, size);
}
aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
  return get_size("aclGetScalarListSize", !list || !size, list ? list->elements.size() : 0, size);
}
