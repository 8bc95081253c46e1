#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "runtime/error.h"

namespace aclnn_host {

// Runs the body of an extern "C" function: nothing is thrown across the ABI. Out of memory becomes
// `status` with a message.
template <class Result, class Body>
Result guarded(const char* api, Result on_failure, int status, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    fail(status, "%s: out of host memory", api);
  } catch (const std::length_error&) {
    fail(status, "%s: a size is out of range", api);
  } catch (const std::exception& error) {
    fail(status, "%s: unexpected exception: %s", api, error.what());
  } catch (...) {
    fail(status, "%s: unexpected exception", api);
  }
  return on_failure;
}

}  // namespace aclnn_host
