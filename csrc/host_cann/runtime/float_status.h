#pragma once

#include "acl/acl_rt.h"
#include "host_cann/runtime/visibility.h"

// How a product tells of results out of range. In infinity mode they are infinities and NaN. In
// saturation mode the device keeps a float status beside them: that an operator had such a result
// since the status was cleared. A second one, for debugging, is cleared apart. The status is that
// of one device in this process.
namespace aclnn_host {

enum class FloatStatus { kOperators, kDebugging };

// The mode: the one that a product has alone, or the one that was set, infinity mode at first.
ACLNN_HOST_INTERNAL aclrtFloatOverflowMode overflow_mode() noexcept;

// Whether a task that the stream gets now tells of its results: in saturation mode, and not where
// the product has a switch for it and the stream's is off.
ACLNN_HOST_INTERNAL bool tells_of_overflow(aclrtStream stream) noexcept;

// Sets both statuses of the calling thread's device, if it has one.
ACLNN_HOST_INTERNAL void note_overflow() noexcept;

// The status of the calling thread's device; false if it has none.
ACLNN_HOST_INTERNAL bool has_overflowed(FloatStatus status) noexcept;
ACLNN_HOST_INTERNAL void clear_overflow(FloatStatus status) noexcept;

// Clears what a device that is reset had.
void forget_overflow(int32_t device) noexcept;

}  // namespace aclnn_host
