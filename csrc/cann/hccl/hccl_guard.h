#pragma once

#include <system_error>

#include <c10/util/Exception.h>

#include "cann/hccl/transport.h"
#include "host_cann/runtime/error_messages.h"

namespace aclnn_host::hccl {

// Converts the exception that is being handled to a Failure; call it in a catch block.
inline Failure failure_of_exception() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return {HCCL_E_MEMORY, "the host has no memory left"};
  } catch (const std::system_error& error) {
    return {HCCL_E_SYSCALL, error.what()};
  } catch (const c10::Error& error) {
    return {HCCL_E_INTERNAL, error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {HCCL_E_INTERNAL, error.what()};
  } catch (...) {
    return {HCCL_E_INTERNAL, "an exception of an unknown type"};
  }
}

// Runs the body of an interface function and converts exceptions to its result.
template <class Body>
HcclResult guarded(const char* api, Body&& body) noexcept {
  try {
    try {
      return body();
    } catch (...) {
      const Failure failure = failure_of_exception();
      fail(failure.code(), "%s: %s", api, failure.what());
      return failure.code();
    }
  } catch (...) {
    return HCCL_E_MEMORY;  // no memory for the text either
  }
}

inline HcclResult null_argument(const char* api, const char* argument) noexcept {
  fail(HCCL_E_PTR, "%s: %s is a null pointer", api, argument);
  return HCCL_E_PTR;
}

}  // namespace aclnn_host::hccl
