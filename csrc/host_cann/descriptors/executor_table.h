#pragma once

#include <memory>

#include "aclnn/acl_meta.h"
#include "host_cann/runtime/visibility.h"

// What callers hold of executors: handles, which are no addresses, so that one that was used up or
// destroyed is recognised without touching freed memory, also when another executor has its place.
// (A handle comes again after 2^32 executors in one place of the table.) Lock-free, and used by all
// threads at once; of several that end a handle, one gets the executor.
namespace aclnn_host {

// Gives the executor a handle. std::bad_alloc if the table is full, of 2^24 executors.
ACLNN_HOST_INTERNAL aclOpExecutor* hand_out(std::unique_ptr<aclOpExecutor> executor);

// The executor of a handle; null if it has none.
aclOpExecutor* find_executor(const aclOpExecutor* handle) noexcept;

// Ends the handle, unless its executor is repeatable, or in any case; null if it has none.
std::unique_ptr<aclOpExecutor> use_up(const aclOpExecutor* handle) noexcept;
std::unique_ptr<aclOpExecutor> take_back(const aclOpExecutor* handle) noexcept;

// Makes the executor repeatable; false if the handle has none.
bool make_repeatable(const aclOpExecutor* handle) noexcept;

// Whether a handle had an executor once.
bool was_executor(const aclOpExecutor* handle) noexcept;

}  // namespace aclnn_host
