#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "acl/acl_op.h"
#include "host_cann/runtime/descriptor.h"

// The arguments of operators called by name (aclop): buffers, tensor descriptions, attributes.

namespace aclnn_host {

// Numbers and lists store BOOL and data types as integers, and all floats as double.
using AttributeValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, std::vector<std::vector<int64_t>>>;

// Fails if a caller's list has a negative number of elements, or elements and a null pointer.
aclError check_list(const char* api, const char* count_argument, int count, const char* argument,
                    const void* elements) noexcept;

}  // namespace aclnn_host

struct aclDataBuffer : aclnn_host::Descriptor<aclnn_host::Object::kDescription, 0> {
  aclDataBuffer(void* data, size_t size) : data(data), size(size) {}

  void* data;
  size_t size;
};

struct aclTensorDesc : aclnn_host::Descriptor<aclnn_host::Object::kDescription, 1> {
  aclTensorDesc(aclDataType type, aclFormat format, std::vector<int64_t> dims)
      : type(type), format(format), dims(std::move(dims)) {}

  aclDataType type;
  aclFormat format;
  std::vector<int64_t> dims;
  std::string name;
  aclFormat storage_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> storage_dims;
  aclMemType place = ACL_MEMTYPE_DEVICE;
  std::vector<char> constant;
};

struct aclopAttr : aclnn_host::Descriptor<aclnn_host::Object::kDescription, 2> {
  std::map<std::string, aclnn_host::AttributeValue, std::less<>> values;
};
