#pragma once

#include "acl/acl_rt.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {

// Runs the body of an ABI function and turns an exception into a status, because no exception may
// reach a C caller.
template <class Body>
aclError guarded(const char* api, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    constexpr FailureCodes kCodes{ACL_ERROR_BAD_ALLOC, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                                  ACL_ERROR_INTERNAL_ERROR};
    return fail_with_exception(kCodes, api);
  }
}

// The failure of a check for a required output pointer.
inline aclError null_argument(const char* api, const char* argument) noexcept {
  return fail(ACL_ERROR_INVALID_PARAM, "%s: %s is a null pointer", api, argument);
}

}  // namespace aclnn_host
