#pragma once

#include <string>

#include "host_cann/runtime/visibility.h"

namespace aclnn_host {

// Records a message for the calling thread, to be fetched by aclGetRecentErrMsg, and returns
// `status`, so that a check reads `return fail(status, ...)`. Never throws: a message that cannot
// be stored is dropped.
ACLNN_HOST_INTERNAL int fail(int status, const char* format, ...) noexcept
    __attribute__((format(printf, 2, 3)));

// The codes that exceptions become: for want of memory, for want of another resource of the system,
// and for anything else.
struct FailureCodes {
  int memory;
  int resource;
  int other;
};

// Called where an exception was caught: fail() with the code and text that it becomes.
ACLNN_HOST_INTERNAL int fail_with_exception(const FailureCodes& codes, const char* api) noexcept;

// Moves all messages out of the calling thread's store, oldest first, one a line; and puts such a
// text into it. A stream's worker uses them to hand its messages to the thread that synchronises.
ACLNN_HOST_INTERNAL std::string take_messages() noexcept;
ACLNN_HOST_INTERNAL void put_messages(const std::string& text) noexcept;

// Repeats on the calling thread a failure that happened on another: stores its text, returns
// status.
int fail_again(int status, const std::string& text) noexcept;

}  // namespace aclnn_host
