// The CANN version that this implementation behaves like, and its capabilities.
#include <cstdio>
#include <cstring>
#include <iterator>

#include "acl/acl_base_rt.h"
#include "acl/acl_rt.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/product.h"

namespace aclnn_host {
namespace {

constexpr const char* kMajor = "9";
constexpr const char* kMinor = "1";
constexpr const char* kPatch = "0";

constexpr aclCannAttr kAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                       ACL_CANN_ATTR_JIT_COMPILE};

void write_version(char* text, size_t size) {
  std::snprintf(text, size, "%s.%s.%s", kMajor, kMinor, kPatch);
}

template <size_t kSize>
void copy(const char* text, char (&field)[kSize]) {
  std::snprintf(field, kSize, "%s", text);
}

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  constexpr const char* kApi = "aclsysGetCANNVersion";
  if (version == nullptr) return null_argument(kApi, "version");
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "%s: name is %d, expected 0 (ACL_PKG_NAME_CANN) to 7 (ACL_PKG_NAME_DRIVER)", kApi,
                name);
  }
  *version = {};
  write_version(version->version, sizeof(version->version));
  copy(kMajor, version->majorVersion);
  copy(kMinor, version->minorVersion);
  copy(kPatch, version->releaseVersion);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  constexpr const char* kApi = "aclsysGetVersionStr";
  if (pkgName == nullptr) return null_argument(kApi, "pkgName");
  if (versionStr == nullptr) return null_argument(kApi, "versionStr");
  write_version(versionStr, ACL_PKG_VERSION_MAX_SIZE);
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  constexpr const char* kApi = "aclGetCannAttribute";
  if (value == nullptr) return null_argument(kApi, "value");
  switch (cannAttr) {
    case ACL_CANN_ATTR_INF_NAN:
    case ACL_CANN_ATTR_BF16: *value = has_bfloat16(current_product()) ? 1 : 0; return ACL_SUCCESS;
    case ACL_CANN_ATTR_JIT_COMPILE: *value = 0; return ACL_SUCCESS;
    default:
      return fail(ACL_ERROR_INVALID_PARAM,
                  "%s: cannAttr is %d, expected 0 (ACL_CANN_ATTR_INF_NAN) to 2 "
                  "(ACL_CANN_ATTR_JIT_COMPILE)",
                  kApi, cannAttr);
  }
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  constexpr const char* kApi = "aclGetCannAttributeList";
  if (cannAttrList == nullptr) return null_argument(kApi, "cannAttrList");
  if (num == nullptr) return null_argument(kApi, "num");
  *cannAttrList = kAttributes;
  *num = std::size(kAttributes);
  return ACL_SUCCESS;
}
