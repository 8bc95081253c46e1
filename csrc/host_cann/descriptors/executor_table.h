#pragma once

#include <memory>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/visibility.h"

// Handles of executors for callers. A handle is not an address, so one that was consumed or
// destroyed is detected without touching freed memory, even if another executor reuses its slot. (A
// handle repeats after 2^32 executors in one slot.) Lock-free and thread-safe; of several threads
// that end a handle, one gets the executor.
namespace aclnn_host {

// Returns a new handle for the executor. Throws std::bad_alloc if the table holds 2^24 executors.
ACLNN_HOST_INTERNAL aclOpExecutor* hand_out(std::unique_ptr<aclOpExecutor> executor);

// The executor of a handle, or null.
aclOpExecutor* find_executor(const aclOpExecutor* handle) noexcept;

// Ends the handle: unless its executor is repeatable; or in any case. Null if it has no executor.
std::unique_ptr<aclOpExecutor> use_up(const aclOpExecutor* handle) noexcept;
std::unique_ptr<aclOpExecutor> take_back(const aclOpExecutor* handle) noexcept;

// Makes the executor repeatable; false if the handle has no executor.
bool make_repeatable(const aclOpExecutor* handle) noexcept;

// True if the handle once had an executor.
bool was_executor(const aclOpExecutor* handle) noexcept;

}  // namespace aclnn_host
