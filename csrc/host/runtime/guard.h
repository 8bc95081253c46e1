#pragma once

#include <exception>
#include <new>
#include <system_error>

#include "acl/acl_rt.h"
#include "error.h"

namespace aclnn_host {

// Runs the body of an ABI function; what it throws becomes a status, for no exception may reach a
// C caller.
template <class Body>
aclError guarded(const char* api, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ACL_ERROR_BAD_ALLOC, "%s: the host's memory is exhausted", api);
  } catch (const std::system_error& error) {
    return fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: %s", api, error.what());
  } catch (const std::exception& error) {
    return fail(ACL_ERROR_INTERNAL_ERROR, "%s: unexpected exception: %s", api, error.what());
  } catch (...) {
    return fail(ACL_ERROR_INTERNAL_ERROR, "%s: unexpected exception", api);
  }
}

// What a check for a required output pointer says.
inline aclError null_argument(const char* api, const char* argument) noexcept {
  return fail(ACL_ERROR_INVALID_PARAM, "%s: %s is a null pointer", api, argument);
}

}  // namespace aclnn_host
