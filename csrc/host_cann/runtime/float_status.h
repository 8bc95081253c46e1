#pragma once

#include "acl/acl_rt.h"
#include "host_cann/runtime/visibility.h"

// Reports of results out of range. In infinity mode such results are infinities and NaN. In
// saturation mode the device also keeps a float status: set if an operator had such a result since
// the status was cleared. A second status, for debugging, is cleared separately. The statuses are
// per device and process.
namespace aclnn_host {

enum class FloatStatus { kOperators, kDebugging };

// The product's only mode, or the mode that was set; infinity mode by default.
ACLNN_HOST_INTERNAL aclrtFloatOverflowMode overflow_mode() noexcept;

// True if a task submitted to the stream now reports overflow: in saturation mode, unless the
// product has a switch for it and the stream's is off.
ACLNN_HOST_INTERNAL bool reports_overflow(aclrtStream stream) noexcept;

// Sets both statuses of the calling thread's device, if it has one.
ACLNN_HOST_INTERNAL void note_overflow() noexcept;

// The status of the calling thread's device; false if it has none.
ACLNN_HOST_INTERNAL bool has_overflowed(FloatStatus status) noexcept;
ACLNN_HOST_INTERNAL void clear_overflow(FloatStatus status) noexcept;

// Clears the statuses of a device at its reset.
void forget_overflow(int32_t device) noexcept;

}  // namespace aclnn_host
