#pragma once

#include "runtime/error.h"

namespace aclnn_host {

// Runs the body of an extern "C" function: nothing is thrown across the ABI. What the body throws
// becomes `status` with a message.
template <class Result, class Body>
Result guarded(const char* api, Result on_failure, int status, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    fail_with_exception({status, status, status}, api);
    return on_failure;
  }
}

}  // namespace aclnn_host
