#pragma once

#include <string>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Records a message for the calling thread, to be fetched by aclGetRecentErrMsg, and returns
// `status`, so that a check can end with `return fail(status, ...)`. Never throws: a message that
// cannot be stored is dropped.
ACLNN_HOST_INTERNAL int fail(int status, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));

// Called by fail() before it stores its message; returns the status. In releases, it changes
// nothing. A test build changes the message or the status, to see which tests notice
// (tests/mutants).
int reported(int status, std::string& message);

// The status codes of exceptions: out of memory, out of another system resource, anything else.
struct FailureCodes {
  int memory;
  int resource;
  int other;
};

// Call in a catch block: fails with the code and text of the caught exception.
ACLNN_HOST_INTERNAL int fail_with_exception(const FailureCodes& codes, const char* api) noexcept;

// Moves all messages out of the calling thread's store, oldest first, one per line; and stores such
// a text. A stream's worker uses both to pass its messages to the thread that synchronises.
ACLNN_HOST_INTERNAL std::string take_messages() noexcept;
ACLNN_HOST_INTERNAL void put_messages(const std::string& text) noexcept;

// Reports on the calling thread a failure of another thread: stores its text, returns `status`.
int fail_again(int status, const std::string& text) noexcept;

}  // namespace aclnn_host
