#include "host_cann/runtime/description.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host_cann/runtime/acl_guard.h"

using aclnn_host::guarded;
using aclnn_host::null_argument;

namespace {

template <class T>
bool is_there(const T* object) {
  return object != nullptr && object->is_alive();
}

// The failure of a check for an object that the caller passed.
template <class T>
aclError missing(const char* api, const char* argument, const T* object) noexcept {
  if (object == nullptr) return null_argument(api, argument);
  return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                          "%s: %s is %p, which was destroyed, or is another kind of object", api,
                          argument, static_cast<const void*>(object));
}

// Makes an object; null if memory runs out.
template <class T, class... Arguments>
T* create(const char* api, Arguments&&... arguments) {
  T* made = nullptr;
  guarded(api, [&]() -> aclError {
    made = new T(std::forward<Arguments>(arguments)...);
    return ACL_SUCCESS;
  });
  return made;
}

template <class T>
aclError destroy(const char* api, const char* argument, const T* object) {
  if (!is_there(object)) return missing(api, argument, object);
  delete object;
  return ACL_SUCCESS;
}

bool is_list(int count, const void* values) {
  return count >= 0 && (count == 0 || values != nullptr);
}

aclError bad_list(const char* api, const char* argument, int count) {
  return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                          "%s: %s has %d elements, or is a null pointer with elements", api,
                          argument, count);
}

// Shared by all setters of attributes; calls value() if `has_value`.
template <class Value>
aclError set(const char* api, aclopAttr* attr, const char* name, bool has_value, Value value) {
  return guarded(api, [&]() -> aclError {
    if (!is_there(attr)) return missing(api, "attr", attr);
    if (name == nullptr) return null_argument(api, "attrName");
    if (!has_value) {
      return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                              "%s: the value of %s is a null pointer, or its size negative", api,
                              name);
    }
    attr->values.insert_or_assign(name, value());
    return ACL_SUCCESS;
  });
}

}  // namespace

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  return create<aclDataBuffer>("aclCreateDataBuffer", data, size);
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  return destroy("aclDestroyDataBuffer", "dataBuffer", dataBuffer);
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  if (!is_there(dataBuffer)) return missing("aclUpdateDataBuffer", "dataBuffer", dataBuffer);
  dataBuffer->data = data;
  dataBuffer->size = size;
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return is_there(dataBuffer) ? dataBuffer->data : nullptr;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return is_there(dataBuffer) ? dataBuffer->size : 0;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) {
  constexpr const char* kApi = "aclCreateTensorDesc";
  aclTensorDesc* desc = nullptr;
  guarded(kApi, [&]() -> aclError {
    if (!is_list(numDims, dims)) return bad_list(kApi, "dims", numDims);
    desc = new aclTensorDesc(dataType, format, {dims, dims + numDims});
    return ACL_SUCCESS;
  });
  return desc;
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  if (desc != nullptr) destroy("aclDestroyTensorDesc", "desc", desc);
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  if (!is_there(desc)) return missing("aclSetTensorFormat", "desc", desc);
  desc->storage_format = format;
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  constexpr const char* kApi = "aclSetTensorShape";
  return guarded(kApi, [&]() -> aclError {
    if (!is_there(desc)) return missing(kApi, "desc", desc);
    if (!is_list(numDims, dims)) return bad_list(kApi, "dims", numDims);
    desc->storage_dims.assign(dims, dims + numDims);
    return ACL_SUCCESS;
  });
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  if (!is_there(desc)) return missing("aclSetTensorPlaceMent", "desc", desc);
  desc->place = memType;
  return ACL_SUCCESS;
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  constexpr const char* kApi = "aclSetTensorConst";
  if (!is_there(desc)) return missing(kApi, "desc", desc);
  if (dataBuffer == nullptr) return null_argument(kApi, "dataBuffer");
  return guarded(kApi, [&]() -> aclError {
    const auto* const bytes = static_cast<const char*>(dataBuffer);
    desc->constant.assign(bytes, bytes + length);
    return ACL_SUCCESS;
  });
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  guarded("aclSetTensorDescName", [&]() -> aclError {
    if (is_there(desc)) desc->name = name == nullptr ? "" : name;
    return ACL_SUCCESS;
  });
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  return is_there(desc) ? desc->type : ACL_DT_UNDEFINED;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return is_there(desc) ? desc->format : ACL_FORMAT_UNDEFINED;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  return is_there(desc) ? desc->dims.size() : 0;
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  return is_there(desc) ? desc->name.c_str() : "";
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  constexpr const char* kApi = "aclGetTensorDescDimV2";
  if (!is_there(desc)) return missing(kApi, "desc", desc);
  if (dimSize == nullptr) return null_argument(kApi, "dimSize");
  if (index >= desc->dims.size()) {
    return aclnn_host::fail(ACL_ERROR_INVALID_PARAM, "%s: index is %zu; there are %zu dims", kApi,
                            index, desc->dims.size());
  }
  *dimSize = desc->dims[index];
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr(void) {
  return create<aclopAttr>("aclopCreateAttr");
}

void aclopDestroyAttr(const aclopAttr* attr) {
  if (attr != nullptr) destroy("aclopDestroyAttr", "attr", attr);
}

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return set("aclopSetAttrBool", attr, attrName, true, [&] { return attrValue != 0; });
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set("aclopSetAttrInt", attr, attrName, true, [&] { return attrValue; });
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set("aclopSetAttrFloat", attr, attrName, true, [&] { return double{attrValue}; });
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  return set("aclopSetAttrString", attr, attrName, attrValue != nullptr,
             [&] { return std::string(attrValue); });
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return set("aclopSetAttrDataType", attr, attrName, true,
             [&] { return static_cast<int64_t>(attrValue); });
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  return set("aclopSetAttrListBool", attr, attrName, is_list(numValues, values),
             [&] { return std::vector<int64_t>(values, values + numValues); });
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  return set("aclopSetAttrListInt", attr, attrName, is_list(numValues, values),
             [&] { return std::vector<int64_t>(values, values + numValues); });
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  return set("aclopSetAttrListFloat", attr, attrName, is_list(numValues, values),
             [&] { return std::vector<double>(values, values + numValues); });
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) {
  bool are_lists = is_list(numLists, numValues) && is_list(numLists, values);
  for (int i = 0; are_lists && i < numLists; ++i) are_lists = is_list(numValues[i], values[i]);
  return set("aclopSetAttrListListInt", attr, attrName, are_lists, [&] {
    std::vector<std::vector<int64_t>> lists;
    lists.reserve(static_cast<size_t>(numLists));
    for (int i = 0; i < numLists; ++i) lists.emplace_back(values[i], values[i] + numValues[i]);
    return lists;
  });
}
