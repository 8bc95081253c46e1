#pragma once

#include "aclnn/aclnn_base.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host {

// Runs the body of an extern "C" function. No exception crosses the ABI: it becomes `status` with a
// message.
template <class Result, class Body>
Result guarded(const char* api, Result on_failure, int status, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    fail_with_exception({status, status, status}, api);
    return on_failure;
  }
}

// Checks that a non-null descriptor was not destroyed and has the right type; records a message if
// not. The remains of a destroyed descriptor are readable.
template <class T>
bool is_gone(const char* api, const char* argument, const T* object) noexcept {
  if (object == nullptr || object->is_alive()) return false;
  fail(ACLNN_ERR_PARAM_INVALID, "%s: %s is %p, which was destroyed, or is another kind of object",
       api, argument, static_cast<const void*>(object));
  return true;
}

// Destroys a descriptor; null is allowed.
template <class T>
aclnnStatus destroy(const char* api, const char* argument, const T* object) noexcept {
  if (is_gone(api, argument, object)) return ACLNN_ERR_PARAM_INVALID;
  delete object;
  return OK;
}

}  // namespace aclnn_host
