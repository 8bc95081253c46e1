#include <atomic>

#include "acl/acl.h"
#include "acl/acl_host.h"
#include "host_cann/runtime/acl_guard.h"
#include "host_cann/runtime/configuration.h"
#include "host_cann/runtime/device.h"
#include "host_cann/runtime/settings.h"

namespace aclnn_host {
namespace {

std::atomic<bool> initialised = false;

}  // namespace
}  // namespace aclnn_host

using namespace aclnn_host;

aclError aclInit(const char* configPath) {
  constexpr const char* kApi = "aclInit";
  return guarded(kApi, [&]() -> aclError {
    if (configPath != nullptr && *configPath != '\0') {
      if (const aclError status = check_configuration(kApi, configPath)) return status;
    }
    if (!settings().problem.empty()) {
      return fail(ACL_ERROR_INVALID_PARAM, "%s: %s", kApi, settings().problem.c_str());
    }
    for (const char* problem : {aclHostProductProblem(), aclHostCannReleaseProblem()}) {
      if (problem != nullptr) return fail(ACL_ERROR_INVALID_PARAM, "%s: %s", kApi, problem);
    }
    if (initialised.exchange(true)) {
      return fail(ACL_ERROR_REPEAT_INITIALIZE,
                  "%s: AscendCL is already initialised; call aclFinalize first", kApi);
    }
    return ACL_SUCCESS;
  });
}

aclError aclFinalize(void) {
  constexpr const char* kApi = "aclFinalize";
  return guarded(kApi, [&]() -> aclError {
    if (!initialised.exchange(false)) {
      return fail(ACL_ERROR_REPEAT_FINALIZE, "%s: AscendCL is not initialised; call aclInit first",
                  kApi);
    }
    return end_devices();
  });
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  constexpr const char* kApi = "aclrtGetVersion";
  if (majorVersion == nullptr) return null_argument(kApi, "majorVersion");
  if (minorVersion == nullptr) return null_argument(kApi, "minorVersion");
  if (patchVersion == nullptr) return null_argument(kApi, "patchVersion");
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}
