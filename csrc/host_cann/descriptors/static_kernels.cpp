#include <climits>
#include <cstdlib>

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"

// Operators compiled in advance, which a device's CANN loads anew. The host CANN has none. No
// header of CANN declares the functions: torch_npu looks them up by name.

namespace {

bool is_resolved(const char* path) {
  char resolved[PATH_MAX];
  return realpath(path, resolved) != nullptr;
}

}  // namespace

extern "C" {

ACL_FUNC_VISIBILITY aclnnStatus aclnnReselectStaticKernel(void) {
  return OK;
}

ACL_FUNC_VISIBILITY aclnnStatus aclnnReselectStaticKernelWithPath(const char* staticKernelPath) {
  if (staticKernelPath == nullptr) {
    return aclnn_host::fail(ACLNN_ERR_PARAM_NULLPTR,
                            "aclnnReselectStaticKernelWithPath: staticKernelPath is null");
  }
  if (!is_resolved(staticKernelPath)) {
    return aclnn_host::fail(ACLNN_ERR_PARAM_INVALID,
                            "aclnnReselectStaticKernelWithPath: staticKernelPath is \"%s\", "
                            "expected a path that exists",
                            staticKernelPath);
  }
  return OK;
}

}  // extern "C"
