// What operators called by name (aclop) take: buffers, tensor descriptions, attributes.
#include <cstdint>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "acl/acl_op.h"
#include "guard.h"
#include "live_objects.h"

using aclnn_host::Counted;
using aclnn_host::guarded;
using aclnn_host::null_argument;
using aclnn_host::Object;

struct aclDataBuffer {
  void* data;
  size_t size;
  Counted<Object::kDescription> counted = {};
};

struct aclTensorDesc {
  aclDataType type;
  aclFormat format;
  std::vector<int64_t> dims;
  std::string name = {};
  aclFormat storage_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> storage_dims = {};
  aclMemType place = ACL_MEMTYPE_DEVICE;
  Counted<Object::kDescription> counted = {};
};

struct aclopAttr {
  std::set<std::string> names = {};
  Counted<Object::kDescription> counted = {};
};

namespace {

bool is_list(int count, const void* values) {
  return count >= 0 && (count == 0 || values != nullptr);
}

aclError bad_list(const char* api, const char* argument, int count) {
  return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                          "%s: %s has %d elements, or is a null pointer with elements", api,
                          argument, count);
}

// What all setters of attributes do.
aclError set(const char* api, aclopAttr* attr, const char* name, bool has_value = true) {
  return guarded(api, [&]() -> aclError {
    if (attr == nullptr) return null_argument(api, "attr");
    if (name == nullptr) return null_argument(api, "attrName");
    if (!has_value) {
      return aclnn_host::fail(ACL_ERROR_INVALID_PARAM,
                              "%s: the value of %s is a null pointer, or its size negative", api,
                              name);
    }
    attr->names.insert(name);
    return ACL_SUCCESS;
  });
}

}  // namespace

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  return new (std::nothrow) aclDataBuffer{data, size};
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  if (dataBuffer == nullptr) return null_argument("aclDestroyDataBuffer", "dataBuffer");
  delete dataBuffer;
  return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  if (dataBuffer == nullptr) return null_argument("aclUpdateDataBuffer", "dataBuffer");
  dataBuffer->data = data;
  dataBuffer->size = size;
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? nullptr : dataBuffer->data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? 0 : dataBuffer->size;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) {
  constexpr const char* kApi = "aclCreateTensorDesc";
  aclTensorDesc* desc = nullptr;
  guarded(kApi, [&]() -> aclError {
    if (!is_list(numDims, dims)) return bad_list(kApi, "dims", numDims);
    desc = new aclTensorDesc{dataType, format, {dims, dims + numDims}};
    return ACL_SUCCESS;
  });
  return desc;
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  delete desc;
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  if (desc == nullptr) return null_argument("aclSetTensorFormat", "desc");
  desc->storage_format = format;
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  constexpr const char* kApi = "aclSetTensorShape";
  return guarded(kApi, [&]() -> aclError {
    if (desc == nullptr) return null_argument(kApi, "desc");
    if (!is_list(numDims, dims)) return bad_list(kApi, "dims", numDims);
    desc->storage_dims.assign(dims, dims + numDims);
    return ACL_SUCCESS;
  });
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  if (desc == nullptr) return null_argument("aclSetTensorPlaceMent", "desc");
  desc->place = memType;
  return ACL_SUCCESS;
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  guarded("aclSetTensorDescName", [&]() -> aclError {
    if (desc != nullptr) desc->name = name == nullptr ? "" : name;
    return ACL_SUCCESS;
  });
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  return desc == nullptr ? ACL_DT_UNDEFINED : desc->type;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return desc == nullptr ? ACL_FORMAT_UNDEFINED : desc->format;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  return desc == nullptr ? 0 : desc->dims.size();
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  return desc == nullptr ? "" : desc->name.c_str();
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  constexpr const char* kApi = "aclGetTensorDescDimV2";
  if (desc == nullptr) return null_argument(kApi, "desc");
  if (dimSize == nullptr) return null_argument(kApi, "dimSize");
  if (index >= desc->dims.size()) {
    return aclnn_host::fail(ACL_ERROR_INVALID_PARAM, "%s: index is %zu; there are %zu dims", kApi,
                            index, desc->dims.size());
  }
  *dimSize = desc->dims[index];
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr(void) {
  return new (std::nothrow) aclopAttr;
}

void aclopDestroyAttr(const aclopAttr* attr) {
  delete attr;
}

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return set("aclopSetAttrBool", attr, attrName);
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set("aclopSetAttrInt", attr, attrName);
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set("aclopSetAttrFloat", attr, attrName);
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  return set("aclopSetAttrString", attr, attrName, attrValue != nullptr);
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return set("aclopSetAttrDataType", attr, attrName);
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  return set("aclopSetAttrListBool", attr, attrName, is_list(numValues, values));
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  return set("aclopSetAttrListInt", attr, attrName, is_list(numValues, values));
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  return set("aclopSetAttrListFloat", attr, attrName, is_list(numValues, values));
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) {
  return set("aclopSetAttrListListInt", attr, attrName,
             is_list(numLists, numValues) && is_list(numLists, values));
}
