#include "host_cann/runtime/description.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host_cann/runtime/acl_guard.h"

using aclnn_host::check_list;
using aclnn_host::guarded;
using aclnn_host::null_argument;

namespace aclnn_host {

aclError check_list(const char* api, const char* count_argument, int count, const char* argument,
                    const void* elements) noexcept {
  if (count < 0) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: %s is %d, expected 0 or more", api, count_argument,
                count);
  }
  if (count > 0 && elements == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: %s is a null pointer, but %s is %d", api, argument,
                count_argument, count);
  }
  return ACL_SUCCESS;
}

}  // namespace aclnn_host

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

// Shared by all setters of attributes; calls value() unless check() fails.
template <class Check, class Value>
aclError set_checked(const char* api, aclopAttr* attr, const char* name, Check check, Value value) {
  return guarded(api, [&]() -> aclError {
    if (!is_there(attr)) return missing(api, "attr", attr);
    if (name == nullptr) return null_argument(api, "attrName");
    if (const aclError status = check()) return status;
    attr->values.insert_or_assign(name, value());
    return ACL_SUCCESS;
  });
}

template <class Value>
aclError set(const char* api, aclopAttr* attr, const char* name, Value value) {
  return set_checked(api, attr, name, [] { return ACL_SUCCESS; }, value);
}

// Sets an attribute to a list of numbers, which are stored as T.
template <class T, class Given>
aclError set_list(const char* api, aclopAttr* attr, const char* name, int count,
                  const Given* values) {
  return set_checked(
      api, attr, name, [&] { return check_list(api, "numValues", count, "values", values); },
      [&] { return std::vector<T>(values, values + count); });
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
    if (const aclError status = check_list(kApi, "numDims", numDims, "dims", dims)) return status;
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
    if (const aclError status = check_list(kApi, "numDims", numDims, "dims", dims)) return status;
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
    return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                            "%s: index is %zu, expected less than the number of dims, %zu", kApi,
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
  return set("aclopSetAttrBool", attr, attrName, [&] { return attrValue != 0; });
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set("aclopSetAttrInt", attr, attrName, [&] { return attrValue; });
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set("aclopSetAttrFloat", attr, attrName, [&] { return double{attrValue}; });
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  constexpr const char* kApi = "aclopSetAttrString";
  const auto check = [&] {
    return attrValue == nullptr ? null_argument(kApi, "attrValue") : ACL_SUCCESS;
  };
  return set_checked(kApi, attr, attrName, check, [&] { return std::string(attrValue); });
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return set("aclopSetAttrDataType", attr, attrName,
             [&] { return static_cast<int64_t>(attrValue); });
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  return set_list<int64_t>("aclopSetAttrListBool", attr, attrName, numValues, values);
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  return set_list<int64_t>("aclopSetAttrListInt", attr, attrName, numValues, values);
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  return set_list<double>("aclopSetAttrListFloat", attr, attrName, numValues, values);
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) {
  constexpr const char* kApi = "aclopSetAttrListListInt";
  const auto check = [&]() -> aclError {
    aclError status = check_list(kApi, "numLists", numLists, "numValues", numValues);
    if (status == ACL_SUCCESS) status = check_list(kApi, "numLists", numLists, "values", values);
    for (int i = 0; status == ACL_SUCCESS && i < numLists; ++i) {
      const std::string at = std::to_string(i) + "]";
      status = check_list(kApi, ("numValues[" + at).c_str(), numValues[i], ("values[" + at).c_str(),
                          values[i]);
    }
    return status;
  };
  return set_checked(kApi, attr, attrName, check, [&] {
    std::vector<std::vector<int64_t>> lists;
    lists.reserve(static_cast<size_t>(numLists));
    for (int i = 0; i < numLists; ++i) lists.emplace_back(values[i], values[i] + numValues[i]);
    return lists;
  });
}
